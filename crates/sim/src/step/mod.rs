//! The production [`StepMonitor`] over the files, sockets and processes of this world.
//!
//! Carries out what the monitor decides, one step at a time, and decides nothing: between any two steps daemons, shims
//! and the machine may die. A question that production answers by several system calls takes several steps here.

mod asked;
mod files;

use outlast_conduct::steps::{
    Effect, News, Owner, Say, Seen, Signal, StepMonitor, Surroundings, Task, Who as Main,
};
use outlast_engine::{
    Answer, BootId, Custody, End, Exit, Input, Report, Run, Step, StopMode, Survivor, Time,
};
use outlast_wire::shim;
use outlast_wire::words::TroubleCode;

use crate::options::Sabotage;
use crate::processes;
use crate::record::Record;
use crate::shim as process;
use crate::tree::{self, Who};
use crate::wire::{ConnId, News as Word, Order};
use crate::world::{Key, LaunchNote, Shim, ShimId, World, boot_id};
use asked::named;

/// What the host's commands may take.
const ERRAND_MS: u64 = 4_000;

#[derive(Debug)]
pub(crate) struct StepDriver {
    pub(crate) key: Key,
    monitor: StepMonitor,
    epoch: u64,
    /// The stop that is ordered, and the one that the monitor knows of.
    stop: Option<StopMode>,
    known_stop: Option<StopMode>,
    conn: Option<ConnId>,
    question: Option<Question>,
    watched: Option<(Vec<Survivor>, bool)>,
    is_begun: bool,
    /// The driver is broken, and has let the step go.
    is_let_go: bool,
    /// The run may start nothing yet.
    pub(crate) is_paced: bool,
    /// It has come to what the run was let go for after a restart.
    pub(crate) has_started: bool,
}

/// What the monitor wants to know, and how far the answer has come.
#[derive(Debug)]
enum Question {
    Connect,
    Hello(ConnId),
    ReadLeft,
    /// Only a broken driver comes here: the lock was free some time ago.
    ReadUnlocked,
    ReadAfterBoot,
    Evidence,
    Look(Option<Main>),
    /// Who is alive was seen; the records are read after that.
    Records(Seen),
    WriteSpec,
    Spawn(Option<String>),
    FirstHello(ConnId, Option<String>),
    Fence(shim::NeverStarted, String),
    LookAtEnd(Exit),
}

/// What is told to the run's conductor.
#[derive(Debug, Clone)]
pub(crate) enum Said {
    Input(Input),
    Unreachable(bool),
}

/// What the monitor sees of this world.
struct Around {
    now: Time,
    awake_ms: u64,
    is_paced: bool,
}

impl Surroundings for Around {
    fn now(&self) -> Time {
        self.now
    }

    fn steady(&self) -> Time {
        Time(self.awake_ms)
    }

    fn awake_ms(&self) -> u64 {
        self.awake_ms
    }

    fn of_shim(&self, at: Time, _line: Option<i64>) -> Time {
        at
    }

    fn last_sign(&self) -> Option<Time> {
        None
    }

    fn is_paced(&self) -> bool {
        self.is_paced
    }
}

impl StepDriver {
    pub(crate) fn new(
        world: &World,
        key: Key,
        run: std::sync::Arc<Run>,
        boot: BootId,
        stop: Option<StopMode>,
        (epoch, began): (u64, Time),
    ) -> Self {
        let is_timeless = world.is_sabotaged(Sabotage::LimitsDieWithShim);
        let limits = run.spec.limits;
        let (timeout_ms, stall_window_ms) = match key.step {
            Step::Attempt { .. } => (limits.turn_timeout_ms, limits.stall_window_ms),
            Step::Errand { .. } => (Some(ERRAND_MS), None),
        };
        let timeout_ms = timeout_ms.filter(|_| !is_timeless);
        let stall_window_ms = stall_window_ms.filter(|_| !is_timeless);
        let task = Task { run, step: key.step, boot, timeout_ms, stall_window_ms };
        let owner = Owner { epoch, boot: boot_id(world.boot), began };
        Self {
            key,
            monitor: StepMonitor::new(task, owner),
            epoch,
            stop,
            known_stop: stop,
            conn: None,
            question: None,
            watched: None,
            is_begun: false,
            is_let_go: false,
            is_paced: false,
            has_started: false,
        }
    }

    pub(crate) fn order_stop(&mut self, mode: Option<StopMode>) {
        self.stop = mode;
    }

    fn run(&self) -> &Run {
        &self.monitor.task().run
    }

    pub(crate) fn let_go(&self, world: &mut World) {
        let asked = match &self.question {
            Some(Question::Hello(conn) | Question::FirstHello(conn, _)) => Some(*conn),
            _ => None,
        };
        for conn in asked.into_iter().chain(self.conn) {
            world.hang_up(conn);
        }
    }

    /// Takes one step; answers what it has to say to the run's conductor.
    pub(crate) fn step(&mut self, world: &mut World) -> Vec<Said> {
        let mut said = Vec::new();
        if !self.is_begun {
            self.is_begun = true;
            let effects = self.monitor.begin(self.stop);
            self.known_stop = self.stop;
            self.carry_out(world, effects, &mut said);
            return said;
        }
        if self.monitor.is_done() || self.is_let_go {
            return said;
        }
        let news = match self.question.take() {
            Some(question) => self.answer(world, question, &mut said),
            None => self.next(world),
        };
        if let Some(news) = news {
            // An order that came meanwhile is older than the answer.
            if self.stop != self.known_stop && !matches!(news, News::Ordered(_)) {
                self.tell(world, News::Ordered(self.stop), &mut said);
            }
            self.tell(world, news, &mut said);
        }
        said
    }

    fn tell(&mut self, world: &mut World, news: News, said: &mut Vec<Said>) {
        if let News::Ordered(mode) = news {
            self.known_stop = mode;
        }
        let around = self.around(world);
        let effects = self.monitor.handle(news, &around);
        self.carry_out(world, effects, said);
    }

    fn around(&self, world: &World) -> Around {
        Around { now: world.now(), awake_ms: world.awake_ms, is_paced: self.is_paced }
    }

    /// What happens next, if something does.
    fn next(&mut self, world: &mut World) -> Option<News> {
        if self.stop != self.known_stop && world.rng.chance(700) {
            return Some(News::Ordered(self.stop));
        }
        if let Some(news) = self.hear(world) {
            return Some(news);
        }
        if let Some((these, all)) = &self.watched
            && self.are_gone(world, these, *all)
        {
            self.watched = None;
            return Some(News::Gone);
        }
        if self.monitor.is_paced() && !self.is_paced {
            return Some(News::Released);
        }
        if self.monitor.wake_in(&self.around(world)) == Some(0) {
            return Some(News::Woke);
        }
        world.rng.chance(5).then_some(News::Asked)
    }

    fn hear(&mut self, world: &mut World) -> Option<News> {
        let id = self.conn?;
        let conn = world.conns.get_mut(&id);
        let is_gone = conn.as_ref().is_none_or(|conn| conn.shim_is_gone);
        match conn.and_then(|conn| conn.to_daemon.pop_front()) {
            Some(Word::Record(record)) => Some(News::Heard(shim::News::Record { record })),
            Some(Word::Hello { records }) => Some(News::Heard(hello(records))),
            Some(Word::Refused) => {
                let (code, message) = (shim::Refusal::StaleEpoch, String::new());
                Some(News::Heard(shim::News::Refused { code, message }))
            }
            None if is_gone => {
                self.hang_up(world);
                Some(News::HungUp)
            }
            None => None,
        }
    }

    fn hang_up(&mut self, world: &mut World) {
        if let Some(conn) = self.conn.take() {
            world.hang_up(conn);
        }
    }

    fn carry_out(&mut self, world: &mut World, effects: Vec<Effect>, said: &mut Vec<Said>) {
        for effect in effects {
            let question = match effect {
                Effect::Connect => Question::Connect,
                Effect::ReadLeft => Question::ReadLeft,
                Effect::ReadAfterBoot => Question::ReadAfterBoot,
                Effect::GatherEvidence => Question::Evidence,
                Effect::LookForProcesses { main } => Question::Look(main),
                Effect::Launch => Question::WriteSpec,
                Effect::Fence { code, why } => Question::Fence(code, why),
                Effect::LookAtEnd { exit } => Question::LookAtEnd(exit),
                done => {
                    self.carry_out_one(world, done, said);
                    continue;
                }
            };
            self.question = Some(question);
        }
    }

    fn carry_out_one(&mut self, world: &mut World, effect: Effect, said: &mut Vec<Said>) {
        match effect {
            Effect::Say(say) => self.say(world, say),
            Effect::HangUp => self.hang_up(world),
            Effect::TakeOver => world.stats.taken_over += 1,
            Effect::WakeShim => {
                let of_us = world.shims.values_mut().filter(|shim| shim.key == self.key);
                of_us.for_each(Shim::wake);
            }
            Effect::Signal { to, signal } => self.signal(world, &to, signal),
            Effect::Watch { these, all } => self.watched = Some((these, all)),
            Effect::NoteMain(main) => {
                let main = Some(Who { pid: main.pid, start: main.start });
                let (step, epoch) = (self.key.step, self.epoch);
                world.runs[self.key.run].launched = Some(LaunchNote { step, epoch, main });
            }
            Effect::HasStarted => self.has_started = true,
            Effect::Tell(input) => said.push(Said::Input(input)),
            Effect::Report { report, .. } => said.push(Said::Input(self.report(world, *report))),
            Effect::Trouble(trouble) => {
                let is_unreachable =
                    trouble.is_some_and(|trouble| trouble.code == TroubleCode::Unreachable);
                said.push(Said::Unreachable(is_unreachable));
            }
            Effect::Shim(_) => {}
            question => unreachable!("{question:?} is a question"),
        }
    }

    fn say(&self, world: &mut World, say: Say) {
        let (key, epoch) = (self.key, self.epoch);
        world.note(|| format!("  {key}: the daemon of epoch {epoch} says {say:?}"));
        let order = match say {
            Say::Hello => Order::Hello { epoch },
            Say::Start => Order::Start { epoch },
            Say::Stop { grace_ms } => Order::Stop { is_graceful: grace_ms > 0 },
        };
        if let Some(conn) = self.conn.and_then(|conn| world.conns.get_mut(&conn)) {
            conn.tell_shim(order);
        }
    }

    fn signal(&self, world: &mut World, to: &[Survivor], signal: Signal) {
        let shims: Vec<ShimId> =
            self.shims(world).into_iter().filter(|id| to.contains(&named(*id))).collect();
        match signal {
            Signal::Cont => {}
            Signal::Term => processes::signal(world, self.key, tree::Signal::Term),
            Signal::Kill => {
                let listed = world.site(self.key).tree.members();
                if listed.iter().any(|member| to.contains(member)) {
                    processes::signal(world, self.key, tree::Signal::Kill);
                }
                shims.into_iter().for_each(|shim| process::kill(world, shim));
            }
        }
    }

    /// A report as it leaves the driver; broken ones lie here.
    fn report(&self, world: &mut World, mut report: Report) -> Input {
        let has_answered = matches!(world.site(self.key).response, Answer::Given(_));
        let lie = Some(End::Exited { at: world.now(), exit: Exit::Code(0), cause: None });
        if world.is_sabotaged(Sabotage::CommitsUnseen) && has_answered && report.end.is_none() {
            let found = self.look_at_end(world, Exit::Code(0));
            (report.end, report.answer) = (lie.clone(), found.answer);
            (report.refused, report.workspace) = (found.refused, found.workspace);
        }
        let is_lost = report.custody == Custody::Nobody;
        if world.is_sabotaged(Sabotage::LostIsSuccess) && is_lost && report.end.is_none() {
            report.end = lie;
        }
        if world.is_sabotaged(Sabotage::LostNeverRan) && is_lost {
            report.custody = Custody::NeverHeld;
        }
        Input::Reported(Box::new(report))
    }

    /// Goes on with the answer; `None` while it is not there yet.
    fn answer(
        &mut self,
        world: &mut World,
        question: Question,
        said: &mut Vec<Said>,
    ) -> Option<News> {
        match question {
            Question::Connect => self.connect(world),
            Question::Hello(conn) => self.await_hello(world, conn),
            Question::ReadLeft => self.read_left(world),
            Question::ReadUnlocked if world.rng.chance(900) => self.later(Question::ReadUnlocked),
            Question::ReadUnlocked => Some(News::Left(Ok(self.free(world)))),
            Question::ReadAfterBoot => {
                Some(News::AfterBoot(Ok(world.site(self.key).records.clone())))
            }
            Question::Evidence => Some(News::Evidence(Ok(self.evidence(world)))),
            Question::Look(main) => {
                let seen = self.look(world, main);
                self.later(Question::Records(seen))
            }
            Question::Records(seen) => {
                let mut records = world.site(self.key).records.clone();
                if world.is_sabotaged(Sabotage::LimitsDieWithShim) {
                    records.retain(|record| !matches!(record, Record::Ending { .. }));
                }
                let noted = self.noted(world);
                Some(News::Seen(Ok(Seen { records, noted, ..seen })))
            }
            Question::WriteSpec => self.write_spec(world),
            // A monitor launches nothing while a shim of its step lives: only a shim that is on its way is missed.
            Question::Spawn(baseline)
                if world.is_sabotaged(Sabotage::GivesUpUnfenced) && world.rng.chance(900) =>
            {
                self.later(Question::Spawn(baseline))
            }
            Question::Spawn(baseline) => {
                let conn = self.spawn(world);
                self.later(Question::FirstHello(conn, baseline))
            }
            Question::FirstHello(conn, baseline) => self.await_first_hello(world, conn, baseline),
            Question::Fence(code, why) => self.fence(world, code, why, said),
            Question::LookAtEnd(exit) => Some(News::EndSeen(self.look_at_end(world, exit))),
        }
    }

    fn later(&mut self, question: Question) -> Option<News> {
        self.question = Some(question);
        None
    }
}

/// What a shim that is there says.
fn hello(records: Vec<Record>) -> shim::News {
    let (proto, build, run) = (0, String::new(), String::new());
    shim::News::Hello {
        proto,
        build,
        pid: 1,
        run,
        turn: 0,
        attempt: 0,
        records,
        output_bytes: 0,
        watches: true,
    }
}
