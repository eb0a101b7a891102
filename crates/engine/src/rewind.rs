//! Going back because a person asks: the workspace of a run at rest, or of one that has ended, becomes what a turn left.
//!
//! What is found is kept as a snapshot first. No turn is taken back: the next one has the next number, begins with the
//! older files, and is told. Nothing is done while a process of the run is alive.

use crate::advance::Facts;
use crate::handle::Draft;
use crate::run::{Removal, WorkspaceState};
use crate::{
    Actor, Cause, Context, Fact, Order, Point, Purpose, Run, State, Strategy, Undo, reason,
};

/// What a person has asked for and is not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AskedRestore {
    /// The turn whose end the workspace goes back to; 0 is before the first.
    pub back_to: u32,
    pub point: Point,
    /// The snapshot of what was found, once there is one.
    pub(crate) wreck: Option<String>,
}

/// Which attempt is the first after it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WentBack {
    turn: u32,
    attempt: u32,
    pub back_to: u32,
    /// How many files were written or removed for it.
    pub files: u64,
}

/// Why a run does not go back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CannotRestore {
    /// It has no snapshots.
    NoSnapshots,
    /// A person works in the same directory.
    Inplace,
    /// It is at work, or about to be.
    AtWork,
    /// It is being ended.
    IsEnding,
    /// A process of it is left.
    Survivors,
    WorkspaceGone,
    /// Another order of this kind is being carried out.
    UnderWay,
}

impl Run {
    /// Why the workspace cannot be taken back now, if it cannot.
    pub fn refuse_restore(&self) -> Result<(), CannotRestore> {
        let is_gone = matches!(self.removal, Removal::Asked | Removal::Removed)
            || !matches!(self.preparation.workspace, WorkspaceState::Ready { .. });
        let rests = match self.state {
            State::Waiting { .. } | State::Blocked { .. } => true,
            State::Ended { .. } => self.ended_at.is_some(),
            State::Queued
            | State::Preparing
            | State::Running
            | State::Verifying
            | State::Finishing { .. } => false,
        };
        if self.spec.workspace.strategy == Strategy::Inplace {
            Err(CannotRestore::Inplace)
        } else if !self.spec.has_snapshots() {
            Err(CannotRestore::NoSnapshots)
        } else if self.snapshots.asked.is_some() {
            Err(CannotRestore::UnderWay)
        } else if self.is_being_ended() && !self.has_ended() {
            Err(CannotRestore::IsEnding)
        } else if self.live().is_some() || self.live_errand().is_some() || !rests {
            Err(CannotRestore::AtWork)
        } else if self.has_survivors() {
            Err(CannotRestore::Survivors)
        } else if is_gone {
            Err(CannotRestore::WorkspaceGone)
        } else {
            Ok(())
        }
    }

    /// What a person had put back right before this attempt.
    pub fn went_back(&self, turn: u32, attempt: u32) -> Option<&WentBack> {
        self.snapshots.back.as_ref().filter(|it| it.turn == turn && it.attempt == attempt)
    }

    pub(crate) fn ask_restore(&mut self, back_to: u32, point: &Point) {
        self.snapshots.asked = Some(AskedRestore { back_to, point: point.clone(), wreck: None });
    }

    /// The workspace is as the asked turn left it.
    pub(crate) fn go_back(&mut self, asked: AskedRestore, files: u64) {
        let known = &mut self.snapshots;
        known.point = Some(asked.point.clone());
        known.since = Some(asked.point);
        known.has_rested = false;
        let open = self.attempt.as_ref().filter(|last| last.turn > self.turns_committed);
        known.undo = match open {
            Some(last) => {
                let (turn, attempt) = (last.turn, last.number);
                Undo::Restored { turn, attempt, files }
            }
            None => Undo::Nothing,
        };
        let turn = self.turns_committed + 1;
        let attempt = open.map_or(0, |last| last.number) + 1;
        known.back = Some(WentBack { turn, attempt, back_to: asked.back_to, files });
        // What was put back is no turn's work, and not held against the next.
        self.digest = None;
        self.counters.no_progress = 0;
    }
}

/// A person asks for it. What cannot be is not taken, and the caller says why.
pub(crate) fn asked(
    draft: &mut Draft,
    back_to: u32,
    point: &Point,
    order: &Order,
    context: &Context,
) {
    if draft.run().orders.has(order) || draft.run().refuse_restore().is_err() {
        return;
    }
    let order = Order { answers: None, ..order.clone() };
    let point = Box::new(point.clone());
    let fact = Fact::RestoreRequested { actor: Actor::User, back_to, point, order };
    draft.push(context.now, fact);
}

/// The next step of what was asked for, if any is left.
pub(crate) fn next(run: &Run, context: &Context) -> Option<Facts> {
    let asked = run.snapshots.asked.as_ref().filter(|_| !run.is_busy())?;
    let purpose = match &asked.wreck {
        None => Purpose::Snapshot { cause: Cause::Wreck },
        Some(_) => Purpose::Restore { to: asked.point.commit.clone() },
    };
    Some(reason::errand(run, context, purpose))
}
