//! An attempt whose shim is gone: its exit can no longer be seen, its processes still can.
//!
//! Nothing is polled: each process that is left is waited for through its own handle.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::select_all;
use outlast_engine::{Custody, EndCause, Report, StopMode, Survivor, Time, TreeNews};
use outlast_wire::shim::Record;
use rustix::process::Signal;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::launch::GRACE_MS;
use super::{Work, records};
use crate::world::orphans::{self, Marks};
use crate::world::process::{self, Who};

/// How long a KILL may take to show before the stop is called incomplete.
const KILL_WITHIN: Duration = Duration::from_secs(10);

pub(super) async fn keep(mut work: Work, records: Vec<Record>) {
    let main = main_process(&records).or_else(|| work.journalled_process());
    let marks = Marks::new(&work.task.run.id, work.task.step, main);
    let limit = work.limit(&records);
    let mut ended = Ended::NotTried;
    loop {
        let left = orphans::members(&marks);
        let is_main_alive = main.is_some_and(|main| process::open(main).is_some());
        work.report_left(&records, is_main_alive, &left, ended).await;
        if left.is_empty() && !is_main_alive {
            return;
        }
        let until_limit = limit.map(|(at, _)| at.ms_since(work.supervisor.world.now()));
        let ordered = *work.stop.borrow_and_update();
        match (ordered, limit) {
            (Some(mode), _) if ended != Ended::ByOrder => {
                end(&marks, mode).await;
                ended = Ended::ByOrder;
            }
            (None, Some((_, cause))) if until_limit == Some(0) && ended == Ended::NotTried => {
                end(&marks, StopMode::Gracefully).await;
                ended = Ended::For(cause);
            }
            _ => {
                let limit_in =
                    until_limit.filter(|_| ended == Ended::NotTried).map(Duration::from_millis);
                let is_ordered = work.any_gone_or_ordered(&left, limit_in).await;
                if is_ordered && ended == Ended::ByOrder {
                    ended = Ended::NotTried;
                }
            }
        }
    }
}

/// Whether we have tried to end the tree, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    NotTried,
    ByOrder,
    For(EndCause),
}

fn main_process(records: &[Record]) -> Option<Who> {
    records::identity(records).map(|identity| Who { pid: identity.pid, start: identity.start })
}

impl Work {
    /// The main process as the journal has it, for an attempt whose own records cannot be read.
    fn journalled_process(&self) -> Option<Who> {
        let process = self.task.run.held(self.task.step)?.process?;
        Some(Who { pid: process.pid, start: process.start })
    }

    /// When the shim would have ended the tree, and why: what it was doing, or the turn's own time.
    fn limit(&self, records: &[Record]) -> Option<(Time, EndCause)> {
        let is_open = self.task.run.held(self.task.step).is_some_and(|held| held.end.is_none());
        let begun = records::ending(records).map(|cause| (Time(0), cause));
        let started = records::report(self.task.step, Custody::Orphan, records, 0).started;
        let timeout_ms = self.timeout_ms();
        let timed = started
            .zip(timeout_ms)
            .map(|(started, ms)| (started.at.plus_ms(ms), EndCause::TimedOut));
        begun.or(timed).filter(|_| is_open)
    }

    async fn report_left(
        &mut self,
        records: &[Record],
        is_main_alive: bool,
        left: &[Survivor],
        ended: Ended,
    ) {
        let custody = if is_main_alive { Custody::Orphan } else { Custody::Nobody };
        let stop_failed = ended != Ended::NotTried;
        let tree = match left {
            [] => TreeNews::Empty,
            some => TreeNews::Left { survivors: some.to_vec(), stop_failed },
        };
        let ended_for = match ended {
            Ended::For(cause) => Some(cause),
            Ended::NotTried | Ended::ByOrder => None,
        };
        let report =
            Report { tree, ended_for, ..records::report(self.task.step, custody, records, 0) };
        self.post_report(report).await;
    }

    /// Waits until one of these is gone, the limit is reached, or somebody gives another order; true for that.
    async fn any_gone_or_ordered(&mut self, left: &[Survivor], limit_in: Option<Duration>) -> bool {
        let gone = left.iter().map(|one| gone(Who { pid: one.pid, start: one.start }).boxed());
        // The main process alone, out of its session and with another environment: looked at now and then.
        let nobody = left.is_empty().then(|| tokio::time::sleep(Duration::from_secs(1)).boxed());
        let gone = select_all(gone.chain(nobody));
        let limit = async {
            match limit_in {
                Some(limit_in) => tokio::time::sleep(limit_in).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = gone => false,
            () = limit => false,
            _ = self.stop.changed() => true,
        }
    }
}

/// Returns when the process is dead.
async fn gone(who: Who) {
    let Some(handle) = process::open(who) else { return };
    wait_readable(handle).await;
}

/// A pidfd can be read from once its process has died.
async fn wait_readable(handle: OwnedFd) {
    #[expect(unsafe_code, reason = "tokio leaves it to its caller that the descriptor stays open")]
    // SAFETY: an `OwnedFd` is open, and stays so for as long as the `AsyncFd` that now owns it.
    let watched = unsafe { AsyncFd::register_with_interest(handle, Interest::READABLE) };
    match watched {
        Ok(handle) => {
            if let Err(error) = handle.readable().await {
                tracing::warn!(%error, "cannot wait for an orphan");
            }
        }
        Err(error) => tracing::warn!(%error, "cannot watch an orphan"),
    }
}

/// TERM, grace, KILL, until nobody is left or it has taken too long.
async fn end(marks: &Marks, mode: StopMode) {
    if mode == StopMode::Gracefully {
        let asked = orphans::signal(marks, Signal::TERM);
        orphans::signal(marks, Signal::CONT);
        all_gone_within(&asked, Duration::from_millis(GRACE_MS)).await;
    }
    // Each round kills whoever the last one's victims had started meanwhile.
    for _round in 0..16 {
        let killed = orphans::signal(marks, Signal::KILL);
        if killed.is_empty() || !all_gone_within(&killed, KILL_WITHIN).await {
            return;
        }
    }
}

async fn all_gone_within(these: &BTreeMap<u32, Survivor>, limit: Duration) -> bool {
    let all = async {
        for one in these.values() {
            gone(Who { pid: one.pid, start: one.start }).await;
        }
    };
    tokio::time::timeout(limit, all).await.is_ok()
}
