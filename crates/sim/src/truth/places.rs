//! What is done to a workspace: never to one that is in use, and nothing whole is thrown away unasked.

use outlast_conduct::conductor::WorkspaceOp;

use crate::world::{RunIndex, WorkspaceFiles, World};

pub(crate) fn on_workspace_op(world: &mut World, run: RunIndex, op: WorkspaceOp) {
    let mut sites = world.sites.iter().filter(|(key, _)| key.run == run);
    let is_in_use = sites.any(|(_, site)| site.tree.runs());
    let is_whole = world.runs[run].workspace == WorkspaceFiles::Whole;
    // Preparing leaves what is there as it is, also if a daemon does it that was replaced.
    if is_in_use && op != WorkspaceOp::Prepare {
        world.broke(Some(run), format!("{op:?} of a workspace that is in use"));
    }
    if op == WorkspaceOp::Discard && is_whole {
        world.broke(Some(run), "a workspace was discarded that was whole".to_owned());
    }
}
