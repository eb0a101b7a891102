//! Jobs for the writer: the work to be done, and the callback that gets the answer.

use outlast_engine::RunId;

use crate::{Append, Change, Depth, Error, Remove, TriggerChange};

pub(super) struct WriteJob {
    pub(super) work: Work,
    pub(super) reply: Reply,
}

/// Called with the epoch under which the work was done; for a change of a trigger, with the number of new deliveries.
pub(super) type Reply = Box<dyn FnOnce(Result<u64, Error>) + Send>;

pub(super) enum Work {
    TakeEpoch {
        floor: u64,
    },
    Append(Box<Append>),
    Remove {
        run: RunId,
        epoch: u64,
        how: Remove,
    },
    Outbox {
        epoch: u64,
        change: Box<Change>,
    },
    Notes {
        notes: Vec<(String, Option<String>)>,
        epoch: u64,
    },
    Trigger {
        change: Box<TriggerChange>,
        epoch: u64,
    },
    /// Writes nothing: the writer looks whether its files are in place, and puts them back.
    Look(Depth),
}

impl Work {
    /// How much to look at, if the work is `Look`.
    pub(super) fn depth(&self) -> Option<Depth> {
        match self {
            Self::Look(depth) => Some(*depth),
            Self::TakeEpoch { .. }
            | Self::Append(_)
            | Self::Remove { .. }
            | Self::Outbox { .. }
            | Self::Notes { .. }
            | Self::Trigger { .. } => None,
        }
    }
}
