//! Which processes lead the sessions of which run, so that an order costs the same however many runs are open.
//!
//! Follows what the conductors publish; a run without a conductor has no entry.

use std::collections::HashMap;
use std::sync::Mutex;

use outlast_engine::{BootId, Run, RunId};

use crate::sync::lock;

/// The main process of what is alive of a run: its number is its session's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Leader {
    pid: u32,
    start: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<HashMap<RunId, Vec<Leader>>>);

impl Sessions {
    pub(crate) fn note(&self, run: &Run, boot: &BootId) {
        let leaders = leaders(run, boot);
        let mut known = lock(&self.0);
        if leaders.is_empty() {
            known.remove(&run.id);
        } else {
            known.insert(run.id.clone(), leaders);
        }
    }

    pub(crate) fn forget(&self, id: &RunId) {
        lock(&self.0).remove(id);
    }

    /// The runs in whose session a process is that was started at `start`.
    pub(crate) fn runs_of(&self, session: u32, start: u64) -> Vec<RunId> {
        let is_above = |it: &Leader| it.pid == session && it.start <= start;
        let known = lock(&self.0);
        let found = known.iter().filter(|(_, leaders)| leaders.iter().any(is_above));
        found.map(|(id, _)| id.clone()).collect()
    }
}

fn leaders(run: &Run, boot: &BootId) -> Vec<Leader> {
    let live = run.live().map(|it| &it.state).into_iter();
    let live = live.chain(run.live_errand().map(|it| &it.state));
    let has_left = run.has_survivors();
    let left = run.attempt.as_ref().filter(|_| has_left).map(|it| &it.state).into_iter();
    let left = left.chain(run.errand.as_ref().filter(|_| has_left).map(|it| &it.state));
    let here = live.chain(left).filter(|state| state.boot == *boot);
    here.filter_map(|state| state.process)
        .map(|it| Leader { pid: it.pid, start: it.start })
        .collect()
}
