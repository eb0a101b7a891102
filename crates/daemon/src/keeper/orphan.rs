//! An attempt whose shim is gone: its exit can no longer be seen, its processes still can.
//!
//! Nothing is polled: each process that is left is waited for through its own handle.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::select_all;
use outlast_engine::{Custody, Report, StopMode, Survivor, TreeNews};
use outlast_wire::shim::Record;
use rustix::process::Signal;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::launch::GRACE_MS;
use super::{Work, records};
use crate::conductor::Message;
use crate::world::orphans::{self, Marks};
use crate::world::process::{self, Who};

/// How long a KILL may take to show before the stop is called incomplete.
const KILL_WITHIN: Duration = Duration::from_secs(10);

pub(super) async fn keep(mut work: Work, records: Vec<Record>) {
    let main = main_process(&records).or_else(|| work.journalled_process());
    let marks = Marks::new(&work.task.run.id, work.task.turn, work.task.attempt, main);
    loop {
        let left = orphans::members(&marks);
        let is_main_alive = main.is_some_and(|main| process::open(main).is_some());
        work.report_left(&records, is_main_alive, &left, false).await;
        if left.is_empty() && !is_main_alive {
            return;
        }
        let ordered = *work.stop.borrow_and_update();
        match ordered {
            Some(mode) => {
                let left = end(&marks, mode).await;
                let is_main_alive = main.is_some_and(|main| process::open(main).is_some());
                work.report_left(&records, is_main_alive, &left, true).await;
                if left.is_empty() {
                    return;
                }
                work.any_gone_or_ordered(&left).await;
            }
            None => work.any_gone_or_ordered(&left).await,
        }
    }
}

fn main_process(records: &[Record]) -> Option<Who> {
    records::identity(records).map(|identity| Who { pid: identity.pid, start: identity.start })
}

impl Work {
    /// The main process as the journal has it, for an attempt whose own records cannot be read.
    fn journalled_process(&self) -> Option<Who> {
        let attempt = self.task.run.attempt.as_ref()?;
        let is_this = (attempt.turn, attempt.number) == (self.task.turn, self.task.attempt);
        let process = attempt.process.filter(|_| is_this)?;
        Some(Who { pid: process.pid, start: process.start })
    }

    async fn report_left(
        &self,
        records: &[Record],
        is_main_alive: bool,
        left: &[Survivor],
        stop_failed: bool,
    ) {
        let custody = if is_main_alive { Custody::Orphan } else { Custody::Nobody };
        let tree = match left {
            [] => TreeNews::Empty,
            some => TreeNews::Left { survivors: some.to_vec(), stop_failed },
        };
        let (turn, attempt) = (self.task.turn, self.task.attempt);
        let report = Report { tree, ..records::report(turn, attempt, custody, records, 0) };
        self.post(Message::Input { input: outlast_engine::Input::Reported(report), done: None })
            .await;
    }

    /// Waits until one of these is gone, or somebody wants them to be.
    async fn any_gone_or_ordered(&mut self, left: &[Survivor]) {
        let gone = left.iter().map(|one| gone(Who { pid: one.pid, start: one.start }).boxed());
        let gone = select_all(gone.chain(left.is_empty().then(|| std::future::ready(()).boxed())));
        tokio::select! {
            _ = gone => {}
            _ = self.stop.changed() => {}
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

/// TERM, grace, KILL; returns whoever would not go.
async fn end(marks: &Marks, mode: StopMode) -> Vec<Survivor> {
    if mode == StopMode::Gracefully {
        let asked = orphans::signal(marks, Signal::TERM);
        orphans::signal(marks, Signal::CONT);
        all_gone_within(&asked, Duration::from_millis(GRACE_MS)).await;
    }
    // Each round kills whoever the last one's victims had started meanwhile.
    for _round in 0..16 {
        let killed = orphans::signal(marks, Signal::KILL);
        if killed.is_empty() {
            return Vec::new();
        }
        if !all_gone_within(&killed, KILL_WITHIN).await {
            break;
        }
    }
    orphans::members(marks)
}

async fn all_gone_within(these: &BTreeMap<u32, Survivor>, limit: Duration) -> bool {
    let all = async {
        for one in these.values() {
            gone(Who { pid: one.pid, start: one.start }).await;
        }
    };
    tokio::time::timeout(limit, all).await.is_ok()
}
