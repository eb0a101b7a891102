//! What is done to a workspace: never to one that is in use, and nothing whole is thrown away unasked.

use crate::chore::{Chore, Place};
use crate::world::{RunIndex, World};

pub(crate) fn on_chore(world: &mut World, run: RunIndex, chore: Chore) {
    let mut sites = world.sites.iter().filter(|(key, _)| key.run == run);
    let is_in_use = sites.any(|(_, site)| site.tree.runs());
    let is_whole = world.runs[run].place == Place::Whole;
    // Preparing leaves what is there as it is, also if a daemon does it that was replaced.
    if is_in_use && chore != Chore::Prepare {
        world.broke(Some(run), format!("{chore:?} of a workspace that is in use"));
    }
    if chore == Chore::Discard && is_whole {
        world.broke(Some(run), "a workspace was discarded that was whole".to_owned());
    }
}
