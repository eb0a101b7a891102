//! What is done to a workspace itself: the twin of the daemon's chores, over a workspace that is one word.

use outlast_engine::{Effect, Input, Strategy};

use crate::truth;
use crate::world::{RunIndex, World};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chore {
    Prepare,
    Discard,
    Remove,
}

/// What there is of a run's workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Absent,
    /// Made, and not known to be whole.
    Half,
    Whole,
}

impl Chore {
    /// The chore that is due, if one is.
    pub(crate) fn due(effects: &[Effect]) -> Option<Self> {
        effects.iter().find_map(|effect| match effect {
            Effect::PrepareWorkspace => Some(Self::Prepare),
            Effect::DiscardWorkspace => Some(Self::Discard),
            Effect::RemoveWorkspace => Some(Self::Remove),
            Effect::Ensure { .. } | Effect::Stop { .. } | Effect::Finish { .. } => None,
        })
    }

    /// Does it, or does not, and says so.
    pub(crate) fn carry_out(self, world: &mut World, run: RunIndex) -> Input {
        let fails = world.rng.chance(world.faults.workspace);
        world.note(|| format!("run {run}: {self:?} of its workspace, fails: {fails}"));
        let why = "simulated".to_owned();
        if fails {
            return match self {
                Self::Prepare => Input::WorkspaceRefused { why },
                Self::Discard => Input::WorkspaceDiscarded { problem: Some(why) },
                Self::Remove => Input::WorkspaceKept { why },
            };
        }
        truth::on_chore(world, run, self);
        let is_inplace = world.runs[run].spec.workspace.strategy == Strategy::Inplace;
        let place = &mut world.runs[run].place;
        match self {
            Self::Prepare if is_inplace || *place == Place::Whole => {
                Input::WorkspaceMade { created: false }
            }
            Self::Prepare => {
                *place = Place::Half;
                Input::WorkspaceMade { created: true }
            }
            Self::Discard => {
                *place = Place::Absent;
                Input::WorkspaceDiscarded { problem: None }
            }
            Self::Remove if is_inplace => Input::WorkspaceKept { why },
            Self::Remove => {
                *place = Place::Absent;
                Input::WorkspaceRemoved { bytes: 1 }
            }
        }
    }
}
