//! A shim's process: how far it has come, what it has written, and what it is connected to.

use super::{Key, ShimId};
use crate::record::Record;
use crate::wire::ConnId;

#[derive(Debug)]
pub(crate) struct Shim {
    pub(crate) id: ShimId,
    pub(crate) key: Key,
    pub(crate) stage: Stage,
    pub(crate) conns: Vec<ConnId>,
    /// Steps that it sleeps before it does anything.
    pub(crate) asleep: u64,
    /// The highest epoch that it has served.
    pub(crate) epoch: u64,
    pub(crate) ending: Ending,
    /// Steps without a daemon.
    pub(crate) alone: u32,
    /// What it has written, which it remembers also when the file is gone.
    pub(crate) records: Vec<Record>,
    /// Its directory is gone: no daemon can read what it writes, and no path leads to its socket.
    pub(crate) is_cut_off: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Spawned,
    Locked,
    Gate,
    Bygone,
    /// A daemon said Start; nothing is written yet.
    StartOrdered,
    StartingWritten,
    Forked,
    StartedWritten,
    Live,
    Over,
    /// Its socket is gone, its lock is not.
    Leaving,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    NotAsked,
    /// It is written down, and no process was signalled.
    Asked {
        grace: u8,
    },
    Grace {
        left: u8,
    },
    Killing {
        left: u8,
    },
    Incomplete,
}

impl Shim {
    pub(crate) fn new(id: ShimId, key: Key, conn: ConnId, asleep: u64) -> Self {
        let (stage, ending) = (Stage::Spawned, Ending::NotAsked);
        let (conns, records) = (vec![conn], Vec::new());
        let (epoch, alone, is_cut_off) = (0, 0, false);
        Self { id, key, stage, conns, asleep, epoch, ending, alone, records, is_cut_off }
    }

    /// True while it will see how the command ends.
    pub(crate) fn has_command(&self) -> bool {
        matches!(self.stage, Stage::Forked | Stage::StartedWritten | Stage::Live)
    }

    /// A signal lets it go on that was stopped by one.
    pub(crate) fn wake(&mut self) {
        self.asleep = 0;
    }
}
