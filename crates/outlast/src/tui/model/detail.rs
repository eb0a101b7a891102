//! One run, looked into: its turns, and its output as it comes.

use outlast_client::follow::Piece;
use outlast_wire::api::{RunRow, RunView};
use outlast_wire::words::{StateName, Word};

use super::Followed;
use super::scrollback::Scrollback;
use crate::turns::Turns;

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
        let Self { run, turns, view, looked_at, .. } = self;
        Self { turns, view, looked_at, ..Self::new(run, turn) }
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
        }
    }

    pub(super) fn take(&mut self, news: Followed) {
        match news {
            Followed::Happened(event) => self.turns.take(&event),
            Followed::Wrote(Piece::Data { bytes, .. }) => self.output.write(&bytes),
            Followed::Wrote(Piece::Gap { from, to }) => {
                self.output.say(&format!("[outlast: {} bytes not kept]", to - from));
            }
            Followed::Wrote(Piece::Damaged) => self.output.say("[outlast: the index is damaged]"),
            Followed::Wrote(Piece::End) => self.reading = Reading::Whole,
            Followed::Broke { why } => self.reading = Reading::Broken { why },
        }
    }

    /// True if the run has come further than what is shown of it.
    pub(super) fn is_behind(&mut self, row: &RunRow) -> bool {
        let now = (row.state.clone(), row.phase.clone(), row.turn, row.attempt);
        let is_behind = self.looked_at.as_ref() != Some(&now);
        self.looked_at = Some(now);
        is_behind
    }
}
