//! What is done to a workspace itself, over a workspace that is one word.

use outlast_conduct::conductor::WorkspaceOp;
use outlast_engine::{Input, Strategy};

use crate::truth;
use crate::world::{RunIndex, WorkspaceFiles, World};

/// Does it, or does not, and says so.
pub(crate) fn carry_out(op: WorkspaceOp, world: &mut World, run: RunIndex) -> Input {
    let fails = world.rng.chance(world.faults.workspace);
    world.note(|| format!("run {run}: {op:?} of its workspace, fails: {fails}"));
    let why = "simulated".to_owned();
    if fails {
        return match op {
            WorkspaceOp::Prepare => Input::WorkspaceRefused { why },
            WorkspaceOp::Discard => Input::WorkspaceDiscarded { problem: Some(why) },
            WorkspaceOp::Remove => Input::WorkspaceKept { why },
        };
    }
    truth::on_workspace_op(world, run, op);
    let is_inplace = world.runs[run].spec.workspace.strategy == Strategy::Inplace;
    let workspace = &mut world.runs[run].workspace;
    match op {
        WorkspaceOp::Prepare if is_inplace || *workspace == WorkspaceFiles::Whole => {
            Input::WorkspaceMade { created: false }
        }
        WorkspaceOp::Prepare => {
            *workspace = WorkspaceFiles::Half;
            Input::WorkspaceMade { created: true }
        }
        WorkspaceOp::Discard => {
            *workspace = WorkspaceFiles::Absent;
            Input::WorkspaceDiscarded { problem: None }
        }
        WorkspaceOp::Remove if is_inplace => Input::WorkspaceKept { why },
        WorkspaceOp::Remove => {
            *workspace = WorkspaceFiles::Absent;
            Input::WorkspaceRemoved { bytes: 1 }
        }
    }
}
