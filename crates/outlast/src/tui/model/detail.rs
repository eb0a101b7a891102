//! One run, looked into: its turns, and its output as it comes.

use outlast_client::follow::Piece;
use outlast_wire::api::{RunRow, RunView};
use outlast_wire::words::{StateName, Word};

use super::Followed;
use super::scrollback::Scrollback;
use crate::turns::Turns;

/// Events that change what a tree may use, and neither the state nor the turn of the run at its top.
const CHANGES_BUDGETS: [&str; 3] = ["ChildSpawned", "ChildSettled", "LimitsRaised"];

#[derive(Debug)]
pub(crate) struct Detail {
    pub(crate) run: String,
    pub(crate) turns: Turns,
    pub(crate) output: Scrollback,
    /// Whose output is shown; `None` for that of the last turn, and of the next when it comes.
    pub(crate) turn: Option<u64>,
    pub(crate) view: Option<RunView>,
    pub(crate) reading: Reading,
    /// What of the run was known when it was last asked about.
    looked_at: Option<(Word<StateName>, Option<String>, u32, u32)>,
    /// The last event that changed what its tree may use.
    budget_seq: u64,
    /// True while it is being asked about, so that many events are one question.
    is_looking: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reading {
    Following,
    /// There will be no more.
    Whole,
    Broken {
        why: String,
    },
}

impl Detail {
    /// The same run, its output read anew.
    pub(crate) fn again(self, turn: Option<u64>) -> Self {
        let Self { run, turns, view, looked_at, budget_seq, .. } = self;
        Self { turns, view, looked_at, budget_seq, ..Self::new(run, turn) }
    }

    pub(crate) fn new(run: String, turn: Option<u64>) -> Self {
        Self {
            run,
            turns: Turns::default(),
            output: Scrollback::default(),
            turn,
            view: None,
            reading: Reading::Following,
            looked_at: None,
            budget_seq: 0,
            // It is asked about when it is opened.
            is_looking: true,
        }
    }

    pub(super) fn take(&mut self, news: Followed) {
        match news {
            Followed::Happened(event) => {
                if CHANGES_BUDGETS.contains(&event.kind.as_str()) {
                    self.budget_seq = event.seq;
                }
                self.turns.take(&event);
            }
            Followed::Wrote(Piece::Data { bytes, .. }) => self.output.write(&bytes),
            Followed::Wrote(Piece::Gap { from, to }) => {
                self.output.say(&format!("[outlast: {} bytes not kept]", to - from));
            }
            Followed::Wrote(Piece::Damaged) => self.output.say("[outlast: the index is damaged]"),
            Followed::Wrote(Piece::End) => self.reading = Reading::Whole,
            Followed::Broke { why } => self.reading = Reading::Broken { why },
        }
    }

    /// What the run is now.
    pub(super) fn looked(&mut self, view: RunView) {
        self.is_looking = false;
        self.view = Some(view);
    }

    /// The question went without an answer.
    pub(super) fn not_looked(&mut self) {
        self.is_looking = false;
    }

    /// True if its budgets have changed since it was asked about, and it is to be asked about again.
    pub(super) fn is_to_look(&mut self) -> bool {
        let known = self.view.as_ref().map_or(0, |view| view.seq);
        let is_due = !self.is_looking && self.budget_seq > known;
        self.is_looking |= is_due;
        is_due
    }

    /// True if the run has come further than what is shown of it.
    pub(super) fn is_behind(&mut self, row: &RunRow) -> bool {
        let now = (row.state.clone(), row.phase.clone(), row.turn, row.attempt);
        let is_behind = self.looked_at.as_ref() != Some(&now);
        self.looked_at = Some(now);
        is_behind
    }
}
