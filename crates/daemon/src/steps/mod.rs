//! The task of one step, an attempt or an errand: it carries out what the step's monitor decides.
//!
//! [`StepMonitor`] decides and has no IO; this task has the IO and decides nothing: the shim's socket, its lock and
//! records, the note beside the step's directory, processes, and the workspace.

mod driving;
mod ending;
mod errand;
mod launch;
mod note;
mod processes;
mod program;
mod session;

use std::sync::Arc;
use std::time::Duration;

use outlast_agents::is_driven;
use outlast_conduct::steps::{
    Effect, Greeting, Hello, Left, News, Owner, Say, StepMonitor, Surroundings, Task, Trouble,
    Unreadable, UnreadableKind,
};
use outlast_engine::{
    Answer, BootId, Custody, End, Exit, Input, Report, Run, RunSpec, Step, StopMode, Time, Usage,
};
use outlast_home::layout::{AttemptDir, RunDir};
use outlast_wire::shim;
use outlast_wire::{api, hook};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::ground::Ground;
use crate::lanes::Lane;
use crate::mailbox::{Handle, Message};
use crate::records;
use crate::redaction;
use crate::restarts::Restarts;
use crate::sight::Sight;
use crate::silence;
use crate::watch::Watcher;
use crate::world::host;
use crate::world::process::Who;
use processes::Watched;
use session::Session;

pub(crate) use outlast_conduct::steps::GRACE_MS;

/// How often, and how far apart, it is looked whether a shim that has hung up is gone.
const GONE_LOOKS: u32 = 500;
const GONE_LOOK: Duration = Duration::from_millis(10);

/// How often an epoch is raised for one greeting, each time by twice as much.
const RAISES: u32 = 32;

/// Lets go of the step when dropped; the step lives on.
pub(crate) struct StepTask {
    step: Step,
    stop: watch::Sender<Option<StopMode>>,
    task: AbortHandle,
}

impl StepTask {
    pub(crate) fn start(
        ground: Arc<Ground>,
        restarts: Arc<Restarts>,
        handle: Handle,
        run: Arc<Run>,
        (step, boot): (Step, BootId),
        stop: Option<StopMode>,
    ) -> Self {
        let (stop, ordered) = watch::channel(stop);
        let dir = step_dir(&ground.layout.run(run.id.as_str()), step);
        let watcher = Watcher::start(&ground, &handle, &run, step, &dir);
        let (timeout_ms, stall_window_ms) =
            (errand::timeout_ms(&run, step), stall_window_ms(&run, step));
        let task = Task { run, step, boot, timeout_ms, stall_window_ms };
        let owner =
            Owner { epoch: ground.epoch, boot: ground.world.boot.clone(), began: ground.began };
        let driver = Driver {
            monitor: StepMonitor::new(task.clone(), owner),
            ground,
            restarts,
            task,
            dir,
            handle,
            stop: ordered,
            session: None,
            has_hung_up: false,
            watched: Watched::default(),
            watcher,
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "the task of a step is owned by its conductor, which aborts it"
        )]
        let task = tokio::spawn(driver.drive()).abort_handle();
        Self { step, stop, task }
    }

    pub(crate) fn is_for(&self, step: Step) -> bool {
        self.step == step
    }

    /// `None` takes nothing back: it only says that no order is out, so that the next one is news.
    pub(crate) fn order_stop(&self, mode: Option<StopMode>) {
        self.stop.send_if_modified(|ordered| std::mem::replace(ordered, mode) != mode);
    }
}

impl Drop for StepTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn stall_window_ms(run: &Run, step: Step) -> Option<u64> {
    match step {
        Step::Attempt { .. } => run.spec.limits.stall_window_ms,
        Step::Errand { .. } => None,
    }
}

/// Where a step has its files.
pub(crate) fn step_dir(run: &RunDir, step: Step) -> AttemptDir {
    match step {
        Step::Attempt { turn, attempt } => run.attempt(turn, attempt),
        Step::Errand { errand } => run.errand(errand),
    }
}

/// True while a shim holds the step's lock.
pub(crate) fn is_locked(dir: &AttemptDir) -> bool {
    launch::is_locked(dir)
}

/// What an attempt of such a run answered, by the files it left.
pub(crate) fn answer(spec: &RunSpec, dir: &AttemptDir, exit: Exit) -> std::io::Result<Answer> {
    ending::answer(spec, dir, exit)
}

/// Has the shim of a step that no journal knows end its tree, and returns once the shim has gone.
pub(crate) async fn end(
    ground: &Arc<Ground>,
    dir: &AttemptDir,
    grace_ms: u64,
) -> std::io::Result<()> {
    let mut session = connect(ground, dir).await?;
    session.end(grace_ms).await?;
    // A shim hangs up before it is gone, and only its lock says that it is.
    for _ in 0..GONE_LOOKS {
        if !is_locked(dir) {
            return Ok(());
        }
        tokio::time::sleep(GONE_LOOK).await;
    }
    Err(std::io::Error::new(std::io::ErrorKind::TimedOut, "its shim does not go"))
}

struct Driver {
    monitor: StepMonitor,
    ground: Arc<Ground>,
    restarts: Arc<Restarts>,
    task: Task,
    dir: AttemptDir,
    handle: Handle,
    stop: watch::Receiver<Option<StopMode>>,
    session: Option<Session>,
    /// The connection ended while something was being said; the monitor has yet to hear so.
    has_hung_up: bool,
    watched: Watched,
    /// Looks at the step's output, if the run has watches.
    watcher: Option<Watcher>,
}

/// What the monitor sees of the world.
struct Around<'a> {
    ground: &'a Ground,
    restarts: &'a Restarts,
    run: &'a Run,
    dir: &'a AttemptDir,
}

impl Surroundings for Around<'_> {
    fn now(&self) -> Time {
        self.ground.world.now()
    }

    fn steady(&self) -> Time {
        self.ground.world.steady()
    }

    fn awake_ms(&self) -> u64 {
        self.ground.world.awake_ms()
    }

    fn of_shim(&self, at: Time, line: Option<i64>) -> Time {
        self.ground.world.of_shim(at, line)
    }

    fn last_sign(&self) -> Option<Time> {
        silence::last_sign(self.dir, &self.ground.world)
    }

    fn is_paced(&self) -> bool {
        self.restarts.is_pending(&self.run.id)
    }
}

impl Driver {
    async fn drive(mut self) {
        let stop = *self.stop.borrow_and_update();
        let mut effects = self.monitor.begin(stop);
        let mut sight = Sight::of(&self.task.run);
        loop {
            let mut answer = None;
            for effect in effects {
                debug_assert!(answer.is_none(), "a question is the last of its effects");
                answer = self.carry_out(effect).await;
            }
            if answer.is_none() && std::mem::take(&mut sight) == Sight::Checking {
                self.post(Message::Looked).await;
            }
            if self.monitor.is_done() {
                return;
            }
            let news = match answer {
                // An order that came meanwhile is older than the answer.
                Some(answer) => {
                    if self.stop.has_changed().unwrap_or(false) {
                        let ordered = News::Ordered(*self.stop.borrow_and_update());
                        let none = self.tell(ordered);
                        debug_assert!(none.is_empty(), "an open question has its answer first");
                    }
                    answer
                }
                None => match self.next().await {
                    Some(news) => news,
                    None => return,
                },
            };
            effects = self.tell(news);
        }
    }

    fn tell(&mut self, news: News) -> Vec<Effect> {
        let Self { monitor, ground, restarts, task, dir, .. } = self;
        monitor.handle(news, &Around { ground, restarts, run: &task.run, dir })
    }

    /// What happens next; `None` once the conductor has let go.
    async fn next(&mut self) -> Option<News> {
        if std::mem::take(&mut self.has_hung_up) {
            return Some(News::HungUp);
        }
        if let Some(session) = &mut self.session
            && let Err(error) = session.arm().await
        {
            self.lose(&error);
            return Some(News::HungUp);
        }
        let Self { monitor, ground, restarts, task, dir, session, watched, .. } = self;
        let around = Around { ground, restarts, run: &task.run, dir };
        let wake_in = monitor.wake_in(&around).map(Duration::from_millis);
        let is_paced = monitor.is_paced();
        // Asked for before the look at the books, so that nothing is missed in between.
        let released = restarts.released();
        if is_paced && !around.is_paced() {
            return Some(News::Released);
        }
        tokio::select! {
            heard = session::hear(session) => match heard {
                session::Heard::News(news) => Some(News::Heard(news)),
                session::Heard::Asked => Some(News::Asked),
                session::Heard::End => {
                    self.session = None;
                    Some(News::HungUp)
                }
                session::Heard::Lost(error) => {
                    self.lose(&error);
                    Some(News::HungUp)
                }
            },
            changed = self.stop.changed() => {
                changed.ok()?;
                Some(News::Ordered(*self.stop.borrow_and_update()))
            }
            () = watched.gone() => Some(News::Gone),
            () = released, if is_paced => Some(News::Released),
            () = after(wake_in) => Some(News::Woke),
        }
    }

    /// Does what the monitor has decided, and answers if that was a question.
    async fn carry_out(&mut self, effect: Effect) -> Option<News> {
        match effect {
            Effect::Connect => return Some(News::Greeted(self.greet().await)),
            Effect::ReadLeft => return Some(News::Left(self.read_left())),
            Effect::ReadAfterBoot => {
                let records = records::read_after_boot(&self.dir.events());
                return Some(News::AfterBoot(records.map_err(|unreadable| unreadable.to_string())));
            }
            Effect::GatherEvidence => return Some(News::Evidence(self.gather_evidence())),
            Effect::LookForProcesses { main } => return Some(News::Seen(self.see(main))),
            Effect::Launch => return Some(News::Launched(self.launch().await)),
            Effect::Fence { code, why } => return Some(News::Fenced(self.fence(code, why))),
            Effect::LookAtEnd { exit } => {
                let ending = self.look_at_end(exit).await;
                hook!("daemon.ending-seen");
                return Some(News::EndSeen(ending));
            }
            Effect::Say(say) => self.say(say).await,
            Effect::HangUp => self.session = None,
            Effect::TakeOver => {
                tracing::warn!(run = %self.task.run.id, "a shim does not answer; its tree is ended without it");
            }
            Effect::WakeShim => processes::wake(&self.marks(None)),
            Effect::Signal { to, signal } => processes::signal(&to, signal),
            Effect::Watch { these, all } => self.watched.set(&these, all),
            Effect::NoteMain(main) => self.note_main(main),
            Effect::HasStarted => self.restarts.started(&self.task.run.id),
            Effect::Tell(input) => {
                if matches!(input, Input::Adopted { .. }) {
                    hook!("daemon.adopted");
                }
                self.post(Message::Input { input, done: None }).await;
            }
            Effect::Report { report, line } => self.post_report(*report, line).await,
            Effect::Shim(pid) => {
                self.post(Message::Shim { pid }).await;
                if pid.is_some() {
                    hook!("daemon.shim-hello");
                }
            }
            Effect::Trouble(Some(trouble)) => self.say_trouble(trouble).await,
            Effect::Trouble(None) => {
                self.post(Message::Trouble { trouble: None }).await;
            }
        }
        None
    }

    async fn greet(&mut self) -> Greeting {
        self.session = None;
        // A step that was not launched yet has no directory, and so no shim that could answer.
        if matches!(self.dir.0.try_exists(), Ok(false)) {
            return Greeting::NoDirectory;
        }
        if let Err(error) = self.has_room() {
            let path = self.dir.socket().display().to_string();
            return Greeting::Failed(self.unreadable(&records::Unreadable::Io { path, error }));
        }
        match connect(&self.ground, &self.dir).await {
            Ok(session) => Greeting::Met(self.enter(session)),
            Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {
                Greeting::Foreign { why: error.to_string(), records: self.readable_records() }
            }
            Err(_not_there) => Greeting::NotThere,
        }
    }

    /// Talks over this connection from here on.
    fn enter(&mut self, mut session: Session) -> Hello {
        session.serve(self.handle.output.clone());
        let hello =
            Hello { shim_pid: session.shim_pid, records: std::mem::take(&mut session.records) };
        self.session = Some(session);
        hello
    }

    fn read_left(&self) -> Result<Left, Unreadable> {
        match launch::left(&self.dir) {
            Ok(Some(records)) => Ok(Left::Free { records, noted: self.noted() }),
            Ok(None) => Ok(Left::Locked { records: self.readable_records() }),
            Err(unreadable) => Err(self.unreadable(&unreadable)),
        }
    }

    /// The records as they are on disk, as far as they can be read.
    fn readable_records(&self) -> Vec<shim::Record> {
        records::read(&self.dir.events()).unwrap_or_default()
    }

    fn unreadable(&self, unreadable: &records::Unreadable) -> Unreadable {
        let kind = match unreadable {
            records::Unreadable::Line { .. } => UnreadableKind::Damaged,
            records::Unreadable::Io { error, .. } => match host::failure(error) {
                Some(code) => UnreadableKind::Host(code),
                None if error.kind() == std::io::ErrorKind::PermissionDenied => {
                    UnreadableKind::Denied
                }
                None => UnreadableKind::Other,
            },
        };
        let message = match (kind, unreadable) {
            (UnreadableKind::Host(_), records::Unreadable::Io { error, .. }) => error.to_string(),
            (_, unreadable) => unreadable.to_string(),
        };
        Unreadable { kind, message, noted: self.noted() }
    }

    /// What the shim cannot be told ends the conversation.
    async fn say(&mut self, say: Say) {
        let Some(session) = &mut self.session else { return };
        let said = session.say(session::order(say, self.task.step, &self.ground)).await;
        if matches!(say, Say::Stop { .. }) {
            hook!("daemon.stop-sent");
        }
        if let Err(error) = said {
            self.lose(&error);
            self.has_hung_up = true;
        }
    }

    fn lose(&mut self, error: &std::io::Error) {
        tracing::warn!(run = %self.task.run.id, %error, "lost the shim");
        self.session = None;
    }

    /// Posts a report in our time, with the last that the watches have found if there will be no more of them.
    async fn post_report(&mut self, mut report: Report, line: Option<i64>) {
        self.look_at_output(&mut report).await;
        if is_over(&report) && matches!(report.step, Step::Attempt { .. }) {
            redaction::hide_in_files(&self.ground, &self.task.run, &self.dir, report.step);
        }
        // Times of another boot are the wall's of then: there is no line from that boot to this.
        let line = line.filter(|_| self.task.boot == self.ground.world.boot);
        records::in_our_time(&mut report, line, &self.ground.world);
        let input = Input::Reported(Box::new(report));
        self.post(Message::Input { input, done: None }).await;
    }

    async fn look_at_output(&self, report: &mut Report) {
        let is_over = is_over(report);
        let run = self.handle.snapshot.borrow().run.clone();
        let is_live = run.live().is_some_and(|live| live.step() == report.step);
        if let Some(watcher) = self.watcher.as_ref().filter(|_| is_over && is_live) {
            report.matched = watcher.last_words().await;
        }
        if is_over && is_live && is_driven(&run.spec.agent, &run.spec.driving) {
            let has_left = matches!(report.end, Some(End::Exited { exit: Exit::Code(_), .. }));
            let used = self.used(has_left).await;
            report.used_is_floor = used.is_some_and(|(_, is_floor)| is_floor);
            report.used = used.map(|(usage, _)| usage);
        }
    }

    /// What an agent has used up, however it ended. What cannot be read is unknown, and charged as that.
    async fn used(&self, has_left: bool) -> Option<(Usage, bool)> {
        let dir = self.dir.clone();
        match Lane::Steps.run(move || driving::used(&dir, has_left)).await {
            Ok(Ok(used)) => used,
            Ok(Err(error)) => {
                tracing::error!(run = %self.task.run.id, %error, "cannot read what the agent used up");
                None
            }
            Err(error) => {
                tracing::error!(run = %self.task.run.id, %error, "reading what the agent used up died");
                None
            }
        }
    }

    async fn say_trouble(&self, trouble: Trouble) {
        let Trouble { code, message, .. } = trouble;
        let trouble = self.ground.trouble(code, message);
        let is_told =
            |known: &api::Trouble| known.code == trouble.code && known.message == trouble.message;
        // Told again it would look as if it had only begun.
        if self.handle.snapshot.borrow().trouble.as_ref().is_some_and(is_told) {
            return;
        }
        tracing::error!(run = %self.task.run.id, code = %trouble.code, message = %trouble.message, "trouble");
        self.post(Message::Trouble { trouble: Some(trouble) }).await;
    }

    async fn post(&self, message: Message) {
        // A conductor that is gone has let go of this task too.
        let _gone = self.handle.mailbox.send(message).await;
    }
}

/// Greets the shim, with a higher epoch if it has met one: we hold the lock and the journal, so a shim that knows
/// better has outlived a journal that was lost.
async fn connect(ground: &Arc<Ground>, dir: &AttemptDir) -> std::io::Result<Session> {
    let socket = dir.socket();
    for _ in 0..RAISES {
        match Session::connect(&socket, ground.lineage.shim_epoch()).await {
            Err(error) if session::is_stale(&error) => {
                let ground = ground.clone();
                let raised = Lane::Steps.run(move || ground.raise_shim_epoch());
                raised.await.map_err(std::io::Error::other)??;
            }
            other => return other,
        }
    }
    Err(std::io::Error::other("the shim has met a higher epoch than could be reached"))
}

/// True if the main process is gone, or its end will not be heard of.
fn is_over(report: &Report) -> bool {
    report.end.is_some()
        || matches!(report.custody, Custody::Nobody | Custody::Rebooted | Custody::NeverHeld)
}

/// Comes back after so long, or never.
async fn after(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}

fn who(of: outlast_conduct::steps::Who) -> Who {
    Who { pid: of.pid, start: of.start }
}

fn conduct_who(of: Who) -> outlast_conduct::steps::Who {
    outlast_conduct::steps::Who { pid: of.pid, start: of.start }
}
