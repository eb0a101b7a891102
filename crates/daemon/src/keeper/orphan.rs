//! A step whose shim is gone or cannot be asked: its exit can no longer be seen, its processes still can.
//!
//! Nothing is polled: each process that is left is waited for through its own handle. A shim whose directory
//! is gone lives on without a way to it; it leaves once its tree is empty, and is ended if it does not.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::select_all;
use outlast_engine::{Custody, End, EndCause, Report, Started, StopMode, Survivor, Time, TreeNews};
use outlast_wire::shim::Record;
use outlast_wire::words::TroubleCode;
use rustix::process::Signal;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::GRACE_MS;
use super::{Work, records};
use crate::world::orphans::{self, Found, Marks};
use crate::world::process::{self, Who};

/// How long a KILL may take to show before the stop is called incomplete.
const KILL_WITHIN: Duration = Duration::from_secs(10);

/// How long a shim may take to leave after its tree. Longer than one takes that looks for a daemon first.
const LEAVE_WITHIN: Duration = Duration::from_secs(20);

/// Between two tries to look at processes when the system does not let us.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

pub(super) async fn keep(mut work: Work, mut records: Vec<Record>) {
    let mut main = main_process(&records).or_else(|| work.known_process());
    let mut marks = work.marks(main);
    let limit = match work.taken_over {
        Some(Some(cause)) => Some((Time(0), cause)),
        Some(None) | None => work.limit(&records, 0),
    };
    let mut ended = Ended::NotTried;
    // Its end was known before we tried to end what is left of it.
    let mut had_ended = false;
    loop {
        let seen = work.look_for(&marks, main).await;
        if let (None, Some(leader)) = (main, seen.found.leader) {
            main = Some(leader);
            marks.found_main(leader);
            continue;
        }
        // A shim that came to at last may have seen the end.
        records = work.freshest(records);
        if seen.is_over() {
            work.say_no_trouble().await;
        }
        let cause = if had_ended { Ended::NotTried } else { ended };
        if seen.is_over() && records::is_over(&records) {
            let mut report = records::report(work.task.step, Custody::Nobody, &records, 0);
            cause.is_cause_of(&mut report);
            return work.post_report(report, records::line(&records)).await;
        }
        work.report_left(&records, main, &seen, ended, cause).await;
        if seen.is_over() {
            return;
        }
        let until_limit = limit.map(|(at, _)| at.ms_since(work.ground.world.steady()));
        let ordered = *work.stop.borrow_and_update();
        match (ordered, limit) {
            (Some(mode), _) if ended != Ended::ByOrder => {
                had_ended |= ended == Ended::NotTried && records::has_ended(&records);
                end(&marks, mode).await;
                ended = Ended::ByOrder;
            }
            (None, Some((_, cause))) if until_limit == Some(0) && ended == Ended::NotTried => {
                had_ended |= records::has_ended(&records);
                end(&marks, StopMode::Gracefully).await;
                ended = Ended::For(cause);
            }
            _ => {
                let limit_in =
                    until_limit.filter(|_| ended == Ended::NotTried).map(Duration::from_millis);
                match work.any_gone_or_ordered(&seen, limit_in).await {
                    Woken::Ordered if ended == Ended::ByOrder => ended = Ended::NotTried,
                    // It owns nothing any more, and cannot be told so.
                    Woken::ShimStays => orphans::signal(&seen.found.shims, Signal::KILL),
                    Woken::Ordered | Woken::Looked => {}
                }
            }
        }
    }
}

/// True if nothing of the step is alive, as far as can be seen.
pub(super) async fn is_empty(work: &mut Work) -> bool {
    let marks = work.marks(None);
    work.look_for(&marks, None).await.is_over()
}

/// Who is alive of the step.
struct Seen {
    found: Found,
    is_main_alive: bool,
}

impl Seen {
    fn is_over(&self) -> bool {
        self.found.is_empty() && !self.is_main_alive
    }

    /// True if the tree is empty, as far as can be seen, and only the shim is left.
    fn is_shim_alone(&self) -> bool {
        self.found.tree.is_empty() && !self.is_main_alive && !self.found.shims.is_empty()
    }

    /// Who has to be gone next: the tree, and then its shim.
    fn left(&self) -> &[Survivor] {
        if self.is_shim_alone() { &self.found.shims } else { &self.found.tree }
    }
}

/// Why a wait was over.
enum Woken {
    /// A process has gone, or it is time.
    Looked,
    Ordered,
    ShimStays,
}

/// Whether we have tried to end the tree, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    NotTried,
    ByOrder,
    For(EndCause),
}

impl Ended {
    /// A shim that saw the end and was not asked for it takes it for the command's own.
    fn is_cause_of(self, report: &mut Report) {
        let ours = match self {
            Self::NotTried => None,
            Self::ByOrder => Some(EndCause::Stopped),
            Self::For(cause) => Some(cause),
        };
        if let Some(End::Exited { cause, .. }) = &mut report.end {
            *cause = cause.or(ours);
        }
    }
}

fn main_process(records: &[Record]) -> Option<Who> {
    records::identity(records).map(|identity| Who { pid: identity.pid, start: identity.start })
}

impl Work {
    /// Looks until looking is possible: that processes cannot be listed does not mean that they are gone.
    async fn look_for(&mut self, marks: &Marks, main: Option<Who>) -> Seen {
        loop {
            match see(marks, main) {
                Ok(seen) => return seen,
                Err(error) => {
                    let message = format!("cannot look for its processes: {error}");
                    self.say_trouble(TroubleCode::Unreachable, message).await;
                    tokio::time::sleep(LOOK_AGAIN).await;
                }
            }
        }
    }

    /// When the shim would have ended the tree, and why: what it was doing, or the turn's own time. By the clock that
    /// nothing moves: the run may be told of another line of time meanwhile.
    pub(super) fn limit(&self, records: &[Record], slack_ms: u64) -> Option<(Time, EndCause)> {
        let is_open = self.task.run.held(self.task.step).is_some_and(|held| held.end.is_none());
        let begun = records::ending(records).map(|cause| (Time(0), cause));
        let timed = self.started_at(records).zip(self.timeout_ms()).map(|(at, ms)| {
            (self.steady_after(at, ms.saturating_add(slack_ms)), EndCause::TimedOut)
        });
        begun.or(timed).filter(|_| is_open)
    }

    /// When so much time has passed since then, by the clock that nothing moves.
    pub(super) fn steady_after(&self, since: Time, ms: u64) -> Time {
        let world = &self.ground.world;
        let age_ms = world.now().ms_since(since);
        world.steady().plus_ms(ms.saturating_sub(age_ms))
    }

    /// When the command was started, as its shim or the journal has it.
    pub(super) fn started_at(&self, records: &[Record]) -> Option<Time> {
        let journalled = self.task.run.held(self.task.step).and_then(|held| held.process);
        let started = records::report(self.task.step, Custody::Orphan, records, 0).started;
        let world = &self.ground.world;
        let ours = started.map(|it| world.of_shim(it.at, records::line(records)));
        ours.or(journalled.map(|it| it.at))
    }

    async fn report_left(
        &mut self,
        records: &[Record],
        main: Option<Who>,
        seen: &Seen,
        ended: Ended,
        cause: Ended,
    ) {
        // Whether a shim that is alone has seen an end is not known before it is gone, too.
        let is_held = seen.is_main_alive || seen.is_shim_alone();
        let custody = if is_held { Custody::Orphan } else { Custody::Nobody };
        let stop_failed = ended != Ended::NotTried;
        let tree = match seen.left() {
            [] => TreeNews::Empty,
            _ if seen.is_shim_alone() && !stop_failed => TreeNews::Unknown,
            some => TreeNews::Left { survivors: some.to_vec(), stop_failed },
        };
        let ended_for = match ended {
            Ended::For(cause) => Some(cause),
            Ended::NotTried | Ended::ByOrder => None,
        };
        let mut known = records::report(self.task.step, custody, records, 0);
        cause.is_cause_of(&mut known);
        // Found by its marks: when it began was not seen, and it was not later than now.
        let found = main.filter(|_| seen.is_main_alive);
        let at = self.ground.world.now();
        let found = found.map(|Who { pid, start }| Started { at, pid, start });
        let started = known.started.or(found);
        let report = Report { tree, ended_for, started, ..known };
        self.post_report(report, records::line(records)).await;
    }

    /// Waits until one of these is gone, the limit is reached, or another order is given.
    async fn any_gone_or_ordered(&mut self, seen: &Seen, limit_in: Option<Duration>) -> Woken {
        let Found { tree, shims, .. } = &seen.found;
        let left = tree.iter().chain(shims);
        let gone = left.map(|one| gone(Who { pid: one.pid, start: one.start }).boxed());
        // The main process alone, out of its session and with another environment: looked at now and then.
        let is_hidden = seen.found.is_empty();
        let nobody = is_hidden.then(|| tokio::time::sleep(LOOK_AGAIN).boxed());
        let gone = select_all(gone.chain(nobody));
        let is_alone = seen.is_shim_alone();
        tokio::select! {
            _ = gone => Woken::Looked,
            () = after(limit_in) => Woken::Looked,
            () = after(is_alone.then_some(LEAVE_WITHIN)) => Woken::ShimStays,
            _ = self.stop.changed() => Woken::Ordered,
        }
    }
}

fn see(marks: &Marks, main: Option<Who>) -> io::Result<Seen> {
    let is_main_alive = match main {
        Some(main) => process::is_alive(main)?,
        None => false,
    };
    Ok(Seen { found: orphans::look(marks)?, is_main_alive })
}

/// Comes back after so long, or never.
pub(super) async fn after(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}

/// Returns when the process is dead.
async fn gone(who: Who) {
    loop {
        match process::open(who) {
            Ok(Some(handle)) => return wait_readable(handle).await,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(pid = who.pid, %error, "cannot watch a process of an orphan");
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
    }
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

/// TERM, grace, KILL, until nothing is left or it has taken too long. The shim goes last: while it lives, all that
/// its tree starts descends from it.
async fn end(marks: &Marks, mode: StopMode) {
    if mode == StopMode::Gracefully {
        let asked = look(marks).tree;
        orphans::signal(&asked, Signal::TERM);
        orphans::signal(&asked, Signal::CONT);
        all_gone_within(&asked, Duration::from_millis(GRACE_MS)).await;
    }
    // Each round kills what the processes of the last one had started meanwhile.
    for _round in 0..16 {
        let Found { tree, shims, .. } = look(marks);
        let next = if tree.is_empty() { shims } else { tree };
        orphans::signal(&next, Signal::KILL);
        if next.is_empty() || !all_gone_within(&next, KILL_WITHIN).await {
            return;
        }
    }
}

/// Lets a shim go on that was stopped by a signal.
pub(super) fn wake(marks: &Marks) {
    orphans::signal(&look(marks).shims, Signal::CONT);
}

/// As far as can be seen; who is not seen is looked for again before anything is said.
fn look(marks: &Marks) -> Found {
    orphans::look(marks).unwrap_or_else(|error| {
        tracing::warn!(%error, "cannot look for processes to end");
        Found::default()
    })
}

async fn all_gone_within(these: &[Survivor], limit: Duration) -> bool {
    let all = async {
        for one in these {
            gone(Who { pid: one.pid, start: one.start }).await;
        }
    };
    tokio::time::timeout(limit, all).await.is_ok()
}
