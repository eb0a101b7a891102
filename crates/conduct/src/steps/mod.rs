//! The monitor of one step, an attempt or an errand: it has the step launched if it never ran, meets it again if it
//! lives, and reports on it until nothing of it is left.
//!
//! Without IO: news comes in, effects go out, and [`StepMonitor::wake_in`] says when to look again if nothing comes.
//! The daemon carries the effects out with sockets, locks, files and processes; the simulator with its own.
//!
//! The monitor believes, in this order: the shim's socket, its lock, its records, and only then identities of
//! processes. A lock that is held means: never launch, only ask. Missing or damaged records mean nothing by
//! themselves: the monitor searches for a step that may have run, and never launches it again.
//!
//! At most one effect that asks something is open at a time ([`Effect::is_question`]); its answer is the next news that
//! the monitor acts on. An order to stop that comes meanwhile is kept until then.

mod launching;
mod news;
mod orphan;
mod overdue;
mod pulse;
mod talking;

use outlast_engine::{Custody, End, EndCause, Exit, Report, Step, StopMode};
use outlast_wire::codes::Code;
use outlast_wire::shim::Record;
use outlast_wire::words::TroubleCode;

use crate::records;
use launching::Since;
use orphan::Orphan;
use talking::Session;

pub use news::{
    Effect, Ending, Evidence, Greeting, Hello, Launched, Left, News, Note, Owner, Say, Seen,
    Signal, Surroundings, Task, Trouble, Unreadable, UnreadableKind, Who,
};

/// Between TERM and KILL when a tree is ended.
pub const GRACE_MS: u64 = 10_000;

/// A shim answers within this, or it is asked again later.
pub const ANSWER_WITHIN_MS: u64 = pulse::ANSWER_WITHIN_MS;

/// Between two tries to reach a shim that lives and does not answer.
const FIRST_RETRY_MS: u64 = 50;
const LAST_RETRY_MS: u64 = 10_000;

/// How often records that the daemon may not read are tried again before their step is looked for without them.
const MEND_TRIES: u32 = 10;

const NO_ANSWER: &str = "its shim is alive and does not answer";

#[derive(Debug)]
pub struct StepMonitor {
    task: Task,
    owner: Owner,
    at: At,
    stop: Option<StopMode>,
    /// The order has changed since the monitor last acted on it.
    is_stop_news: bool,
    retry_ms: u64,
    /// Launches that no shim answered.
    tries: u32,
    /// Since when the shim that holds the lock has not answered, by the clock that stands while the machine sleeps.
    silent_since_ms: Option<u64>,
    /// Set once the step is seen to without its shim: for a limit that is reached, or for an order.
    taken_over: Option<Option<EndCause>>,
    /// How often the records could not be read.
    unreadable: u32,
    /// True once this daemon has talked with the step's shim.
    has_met: bool,
    /// What the step's shim has told of its records, which may outlast their file.
    told: Vec<Record>,
    /// The main process, as a daemon noted it.
    noted: Option<Who>,
    /// Something says that the step has run, and the lock was looked at before that.
    is_known_to_have_run: bool,
    ending: Option<Ending>,
    baseline: Option<String>,
    effects: Vec<Effect>,
}

/// What the monitor waits for.
#[derive(Debug)]
enum At {
    Connecting,
    ReadingLeft,
    ReadingAfterBoot,
    /// Of another boot, with records that cannot be read: only an order ends it.
    Unreadable,
    GatheringEvidence(Since),
    /// For processes of a step without a record, of which a launch was tried.
    LookingBehind,
    /// For processes of a step that was to start and may not have come to its command.
    LookingAtBarrier(Vec<Record>),
    HeldBack,
    /// Before a command of the host for which there were no resources is tried again.
    Pacing {
        until_ms: u64,
    },
    Launching,
    Fencing,
    /// Between two looks.
    Resting {
        until_ms: u64,
    },
    /// For what the ended step has left.
    LookingAtEnd(Box<Unposted>),
    Talking(Session),
    Orphaned(Orphan),
    Done,
}

/// A report that lacks what is found at the end, and how the monitor goes on.
#[derive(Debug)]
struct Unposted {
    report: Report,
    line: Option<i64>,
    then: Then,
}

#[derive(Debug)]
enum Then {
    /// Passes the order on that was given before the shim was met.
    Order(Session),
    Talk(Session),
    Decide(Orphan),
    Done,
}

impl StepMonitor {
    pub fn new(task: Task, owner: Owner) -> Self {
        Self {
            task,
            owner,
            at: At::Done,
            stop: None,
            is_stop_news: false,
            retry_ms: FIRST_RETRY_MS,
            tries: 0,
            silent_since_ms: None,
            taken_over: None,
            unreadable: 0,
            has_met: false,
            told: Vec::new(),
            noted: None,
            is_known_to_have_run: false,
            ending: None,
            baseline: None,
            effects: Vec::new(),
        }
    }

    /// The first effects. `stop` is the order that is out already.
    pub fn begin(&mut self, stop: Option<StopMode>) -> Vec<Effect> {
        self.stop = stop;
        self.at = if self.task.boot == self.owner.boot {
            self.look()
        } else {
            self.effects.push(Effect::ReadAfterBoot);
            At::ReadingAfterBoot
        };
        std::mem::take(&mut self.effects)
    }

    pub fn handle(&mut self, news: News, around: &dyn Surroundings) -> Vec<Effect> {
        let at = std::mem::replace(&mut self.at, At::Done);
        let at = match news {
            News::Ordered(mode) => self.ordered(at, mode, around),
            news => self.heard(at, news, around),
        };
        self.at = match at {
            At::Talking(session) => self.tend(session, around),
            at => at,
        };
        std::mem::take(&mut self.effects)
    }

    pub fn task(&self) -> &Task {
        &self.task
    }

    /// True once nothing of the step is left, and the run has heard so.
    pub fn is_done(&self) -> bool {
        matches!(self.at, At::Done)
    }

    /// True while the monitor waits for [`News::Released`].
    pub fn is_paced(&self) -> bool {
        matches!(self.at, At::HeldBack)
    }

    /// How long to wait for news before [`News::Woke`].
    pub fn wake_in(&self, around: &dyn Surroundings) -> Option<u64> {
        let left_ms = |until_ms: u64| until_ms.saturating_sub(around.awake_ms());
        match &self.at {
            At::Pacing { until_ms } | At::Resting { until_ms } => Some(left_ms(*until_ms)),
            At::Talking(session) => self.look_in(session, around),
            At::Orphaned(orphan) => orphan.wake_in(around),
            _ => None,
        }
    }

    fn heard(&mut self, at: At, news: News, around: &dyn Surroundings) -> At {
        match (at, news) {
            (At::Connecting, News::Greeted(greeting)) => self.greeted(greeting, around),
            (At::ReadingLeft, News::Left(left)) => self.left(left, around),
            (At::ReadingAfterBoot, News::AfterBoot(records)) => self.after_boot(records, around),
            (At::GatheringEvidence(since), News::Evidence(evidence)) => {
                self.weigh(evidence, since, around)
            }
            (At::LookingBehind, News::Seen(seen)) => self.looked_behind(seen, around),
            (At::LookingAtBarrier(records), News::Seen(seen)) => {
                self.looked_at_barrier(records, seen, around)
            }
            (At::HeldBack, News::Released) if around.is_paced() => At::HeldBack,
            (At::HeldBack, News::Released) => self.look(),
            (At::Pacing { until_ms }, News::Woke) if around.awake_ms() < until_ms => {
                At::Pacing { until_ms }
            }
            (At::Pacing { .. }, News::Woke) => self.launch(),
            (At::Launching, News::Launched(launched)) => self.launched(launched, around),
            (At::Fencing, News::Fenced(fenced)) => self.fenced(fenced, around),
            (At::Resting { until_ms }, News::Woke) if around.awake_ms() < until_ms => {
                At::Resting { until_ms }
            }
            (At::Resting { .. }, News::Woke) => self.look(),
            (At::LookingAtEnd(unposted), News::EndSeen(ending)) => {
                self.ending = Some(ending);
                self.finish_post(*unposted, around)
            }
            (At::Talking(session), news) => self.talk(session, news, around),
            (At::Orphaned(orphan), news) => self.watch_over(orphan, news, around),
            // An answer or a wake-up that came too late for what it was meant for.
            (at, _) => at,
        }
    }

    /// An order is acted on at once where nothing is being asked, and otherwise once that is answered.
    fn ordered(&mut self, at: At, mode: Option<StopMode>, around: &dyn Surroundings) -> At {
        if self.stop == mode {
            return at;
        }
        (self.stop, self.is_stop_news) = (mode, true);
        match at {
            At::Talking(session) => self.pass_on(session, around),
            At::Resting { .. } => self.rest(around),
            At::HeldBack if mode.is_some() => self.look(),
            At::Pacing { .. } => self.launch(),
            At::Unreadable if mode.is_some() => {
                self.post_records(Custody::Rebooted, &[], Then::Done, around)
            }
            At::Orphaned(orphan) => self.order_orphan(orphan),
            at => at,
        }
    }

    fn look(&mut self) -> At {
        self.effects.push(Effect::Connect);
        At::Connecting
    }

    fn greeted(&mut self, greeting: Greeting, around: &dyn Surroundings) -> At {
        match greeting {
            Greeting::Met(hello) => {
                self.retry_ms = FIRST_RETRY_MS;
                self.effects.push(Effect::HasStarted);
                self.meet(hello, false, around)
            }
            Greeting::Foreign { why, records } => {
                self.say_trouble(TroubleCode::Unreachable, why.clone());
                self.note_silence(&why, &records, around);
                self.rest(around)
            }
            Greeting::NotThere => {
                self.effects.push(Effect::ReadLeft);
                At::ReadingLeft
            }
            Greeting::NoDirectory => {
                let (records, noted) = (Vec::new(), self.noted);
                self.left(Ok(Left::Free { records, noted }), around)
            }
            Greeting::Failed(unreadable) => self.left(Err(unreadable), around),
        }
    }

    fn left(&mut self, left: Result<Left, Unreadable>, around: &dyn Surroundings) -> At {
        match left {
            Ok(Left::Locked { records }) => {
                self.note_silence(NO_ANSWER, &records, around);
                self.rest(around)
            }
            Ok(Left::Free { records, noted }) => {
                self.noted = noted.or(self.noted);
                // A file that was cut short says less than its shim had told.
                let is_cut = records.len() < self.told.len();
                let records = if is_cut { self.told.clone() } else { records };
                if records::is_begun(&records) {
                    return self.see_to_left(records, around);
                }
                self.ask_evidence(around)
            }
            Err(Unreadable { kind: UnreadableKind::Host(code), message, .. }) => {
                self.say_trouble(code, message);
                self.rest(around)
            }
            Err(unreadable) => {
                self.noted = unreadable.noted.or(self.noted);
                self.unreadable += 1;
                let is_given_up = self.is_given_up(unreadable.kind);
                self.say_trouble(Code::Unreadable, unreadable.message);
                // How it ended cannot be known; who is alive of it can.
                if self.takes_order() || is_given_up {
                    let records = std::mem::take(&mut self.told);
                    return self.orphan(records, around);
                }
                self.rest(around)
            }
        }
    }

    /// True if a stop is ordered, which is acted on now.
    fn takes_order(&mut self) -> bool {
        self.is_stop_news = false;
        self.stop.is_some()
    }

    /// True if records that cannot be read are not waited for any longer: they are damaged for good, or were not
    /// mended for a while. Only of a step whose process is known can more be found out.
    fn is_given_up(&self, kind: UnreadableKind) -> bool {
        let is_for_good = match kind {
            UnreadableKind::Damaged => true,
            UnreadableKind::Denied => self.unreadable > MEND_TRIES,
            UnreadableKind::Host(_) | UnreadableKind::Other => false,
        };
        is_for_good && self.known_process().is_some()
    }

    /// Another boot: what was written is all there is, and no process is looked for.
    fn after_boot(
        &mut self,
        records: Result<Vec<Record>, String>,
        around: &dyn Surroundings,
    ) -> At {
        match records {
            Ok(records) => self.post_records(Custody::Rebooted, &records, Then::Done, around),
            Err(message) => {
                self.say_trouble(Code::Unreadable, message);
                if self.takes_order() {
                    return self.post_records(Custody::Rebooted, &[], Then::Done, around);
                }
                At::Unreadable
            }
        }
    }

    /// The shim is gone, or is not to be found where it should be, and these are its records; none if they are
    /// gone too.
    fn see_to_left(&mut self, records: Vec<Record>, around: &dyn Surroundings) -> At {
        self.effects.extend([Effect::Shim(None), Effect::Trouble(None), Effect::HasStarted]);
        if records::is_over(&records) {
            return self.post_records(Custody::Nobody, &records, Then::Done, around);
        }
        let is_at_barrier = records::is_begun(&records)
            && records::identity(&records).is_none()
            && self.known_process().is_none();
        if is_at_barrier {
            self.effects.push(Effect::LookForProcesses { main: None });
            return At::LookingAtBarrier(records);
        }
        self.orphan(records, around)
    }

    fn looked_at_barrier(
        &mut self,
        records: Vec<Record>,
        seen: Result<Seen, String>,
        around: &dyn Surroundings,
    ) -> At {
        match seen {
            Ok(seen) if seen.is_over() => {
                self.post_records(Custody::NeverHeld, &records, Then::Done, around)
            }
            // As an orphan it is looked for until looking is possible.
            Ok(_) | Err(_) => self.orphan(records, around),
        }
    }

    /// Waits before it looks again, unless an order has come that was not acted on yet.
    fn rest(&mut self, around: &dyn Surroundings) -> At {
        if self.taken_over.is_some() {
            return self.take_over(around);
        }
        let is_ordered = std::mem::take(&mut self.is_stop_news);
        if is_ordered {
            self.retry_ms = FIRST_RETRY_MS;
        }
        let until_ms = around.awake_ms() + self.retry_ms;
        self.retry_ms = (self.retry_ms * 2).min(self.longest_retry_ms(around));
        if is_ordered { self.look() } else { At::Resting { until_ms } }
    }

    fn say_trouble(&mut self, code: impl Into<TroubleCode>, message: String) {
        let (code, is_shortage) = (code.into(), false);
        self.effects.push(Effect::Trouble(Some(Trouble { code, message, is_shortage })));
    }

    fn post_records(
        &mut self,
        custody: Custody,
        records: &[Record],
        then: Then,
        around: &dyn Surroundings,
    ) -> At {
        let report = records::report(self.task.step, custody, records, 0);
        self.post(Unposted { report, line: records::line(records), then }, around)
    }

    /// Posts a report, with what is found at the end if there is one. That is looked at once, before the journal hears
    /// of the end, and again by the next daemon if this one dies in between.
    fn post(&mut self, unposted: Unposted, around: &dyn Surroundings) -> At {
        let is_errand = matches!(self.task.step, Step::Errand { .. });
        let wanted = match unposted.report.end {
            Some(End::Exited { exit, cause: None, .. }) => Some(exit),
            Some(End::Exited { cause: Some(_), .. }) if is_errand => Some(Exit::Code(1)),
            Some(End::Exited { .. } | End::NeverStarted { .. }) | None => None,
        };
        match wanted.filter(|_| self.ending.is_none()) {
            Some(exit) => {
                self.effects.push(Effect::LookAtEnd { exit });
                At::LookingAtEnd(Box::new(unposted))
            }
            None => self.finish_post(unposted, around),
        }
    }

    fn finish_post(&mut self, unposted: Unposted, around: &dyn Surroundings) -> At {
        let Unposted { mut report, line, then } = unposted;
        match report.end {
            Some(End::Exited { cause: None, .. }) => {
                if let Some(found) = self.ending.clone() {
                    report.answer = found.answer;
                    report.refused = found.refused;
                    report.workspace = found.workspace;
                    report.tail = found.tail;
                    report.made = found.made;
                }
            }
            Some(End::Exited { cause: Some(_), .. } | End::NeverStarted { .. }) | None => {
                report.workspace.clone_from(&self.baseline);
                let is_exit = matches!(report.end, Some(End::Exited { .. }));
                let is_errand = matches!(self.task.step, Step::Errand { .. });
                if let Some(found) = self.ending.as_ref().filter(|_| is_exit && is_errand) {
                    report.tail.clone_from(&found.tail);
                }
            }
        }
        self.effects.push(Effect::Report { report: Box::new(report), line });
        match then {
            Then::Order(session) => self.pass_on(session, around),
            Then::Talk(session) if self.is_stop_news => self.pass_on(session, around),
            Then::Talk(session) => At::Talking(session),
            Then::Decide(orphan) => self.decide(orphan, around),
            Then::Done => At::Done,
        }
    }

    /// The main process as the journal has it.
    fn journalled_process(&self) -> Option<Who> {
        let process = self.task.run.step_state(self.task.step)?.process?;
        Some(Who { pid: process.pid, start: process.start })
    }

    /// The main process as the journal has it, or as the daemon that launched it noted it.
    fn known_process(&self) -> Option<Who> {
        self.journalled_process().or(self.noted)
    }
}
