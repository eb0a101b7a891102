//! The keeper: the task of one step, an attempt or an errand. It launches the step if it never ran, meets it again if
//! it lives, and reports on it until nothing of it is left.
//!
//! The keeper believes, in this order: the shim's socket, its lock, its records, and only then identities of
//! processes. A lock that is held means: never launch, only ask. Missing or damaged records mean nothing by
//! themselves: the keeper searches for a step that may have run, and never launches it again.

mod begin;
mod ending;
mod errand;
mod launch;
mod launched;
mod orphan;
mod overdue;
mod pulse;
mod session;

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{
    Answer, BootId, Custody, EndCause, Exit, Input, Run, RunSpec, Step, StopMode,
};
use outlast_home::layout::{AttemptDir, RunDir};
use outlast_wire::api::Trouble;
use outlast_wire::codes::Code;
use outlast_wire::shim::{NeverStarted, Record};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::ground::Ground;
use crate::lanes::Lane;
use crate::mailbox::{Handle, Message};
use crate::records;
use crate::restarts::Restarts;
use crate::watch::Watcher;
use crate::world::host;
use ending::Ending;
use launched::Past;
use session::Session;

/// Between TERM and KILL when the shim ends a turn by itself.
pub(crate) const GRACE_MS: u64 = 10_000;

/// Between two tries to reach a shim that lives and does not answer.
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LAST_RETRY: Duration = Duration::from_secs(10);

/// How often, and how far apart, it is looked whether a shim that has hung up is gone.
const GONE_LOOKS: u32 = 500;
const GONE_LOOK: Duration = Duration::from_millis(10);

/// How often an epoch is raised for one greeting, each time by twice as much.
const RAISES: u32 = 32;

/// After this many failed launches the keeper says that no shim can be started.
const PATIENCE: u32 = 6;

/// How often records that we may not read are tried again before their step is looked for without them.
const MEND_TRIES: u32 = 10;

/// Which step is kept.
pub(crate) struct Task {
    pub(crate) run: Arc<Run>,
    pub(crate) step: Step,
    pub(crate) boot: BootId,
}

/// Lets go of the step when dropped; the step lives on.
pub(crate) struct Keeper {
    step: Step,
    stop: watch::Sender<Option<StopMode>>,
    task: AbortHandle,
}

impl Keeper {
    pub(crate) fn start(
        ground: Arc<Ground>,
        restarts: Arc<Restarts>,
        task: Task,
        handle: Handle,
    ) -> Self {
        let step = task.step;
        let (stop, ordered) = watch::channel(None);
        let dir = step_dir(&ground.layout.run(task.run.id.as_str()), step);
        let watcher = Watcher::start(&ground, &handle, &task.run, step, &dir);
        let work = Work {
            ground,
            restarts,
            task,
            dir,
            handle,
            stop: ordered,
            tries: 0,
            silent_since_ms: None,
            taken_over: None,
            unreadable: 0,
            has_met: false,
            told: Vec::new(),
            ending: None,
            baseline: None,
            watcher,
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "a keeper is owned by its conductor, which aborts it"
        )]
        let task = tokio::spawn(work.keep()).abort_handle();
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

impl Drop for Keeper {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Work {
    ground: Arc<Ground>,
    restarts: Arc<Restarts>,
    task: Task,
    dir: AttemptDir,
    handle: Handle,
    stop: watch::Receiver<Option<StopMode>>,
    tries: u32,
    /// Since when the shim that holds the lock has not answered, by the clock that stands while the machine sleeps.
    silent_since_ms: Option<u64>,
    /// Set once the step is seen to without its shim: for a limit that is reached, or for an order.
    taken_over: Option<Option<EndCause>>,
    /// How often the records could not be read.
    unreadable: u32,
    /// True once this daemon has talked with the step's shim.
    has_met: bool,
    /// What the step's shim has told us of its records, which may outlast their file.
    told: Vec<Record>,
    /// What was found when the main process had ended.
    ending: Option<Ending>,
    /// The workspace as a loop's first attempt finds it.
    baseline: Option<String>,
    /// Who looks at its output, if somebody does.
    watcher: Option<Watcher>,
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

/// What is there of a step.
enum Sight {
    /// A shim answered.
    Met(Session),
    /// A shim holds the lock and did not answer.
    Silent,
    /// A shim answered in a protocol that this daemon does not speak; why.
    Foreign(String),
    /// Nobody holds the lock; this is what was written.
    Left(Vec<Record>),
}

impl Work {
    async fn keep(mut self) {
        if self.task.boot != self.ground.world.boot {
            return self.keep_rebooted().await;
        }
        let mut retry_in = FIRST_RETRY;
        loop {
            match self.look().await {
                Ok(Sight::Met(session)) => {
                    retry_in = FIRST_RETRY;
                    self.has_gone_on();
                    self.meet(session).await;
                }
                Ok(Sight::Left(records)) if records::is_begun(&records) => {
                    return self.keep_left(records).await;
                }
                Ok(Sight::Left(_)) => match self.past() {
                    Ok(Past::Ran) => return self.keep_left(Vec::new()).await,
                    Ok(Past::Launching) => {
                        self.note_silence("a shim was started for it and does not answer").await;
                    }
                    Ok(Past::Unlaunched) if self.is_held_back() => {
                        self.await_turn().await;
                        continue;
                    }
                    Ok(Past::Unlaunched) => self.begin().await,
                    Err(error) if let Some(code) = host::failure(&error) => {
                        self.say_trouble(code.word(), error.to_string()).await;
                    }
                    // It may have run, or it may not: neither is made up.
                    Err(error) => {
                        self.say_trouble("unreadable", error.to_string()).await;
                        if self.stop.borrow_and_update().is_some() {
                            return orphan::keep(self, Vec::new()).await;
                        }
                    }
                },
                Ok(Sight::Foreign(why)) => {
                    self.say_trouble("unreachable", &why).await;
                    self.note_silence(&why).await;
                }
                Ok(Sight::Silent) => {
                    self.note_silence(session::NO_ANSWER).await;
                }
                Err(records::Unreadable::Io { error, .. })
                    if let Some(code) = host::failure(&error) =>
                {
                    self.say_trouble(code.word(), error.to_string()).await;
                }
                Err(unreadable) => {
                    self.say_trouble("unreadable", unreadable.to_string()).await;
                    self.unreadable += 1;
                    // How it ended cannot be known; who is alive of it can.
                    let is_to_stop = self.stop.borrow_and_update().is_some();
                    if is_to_stop || self.is_given_up(&unreadable) {
                        let records = std::mem::take(&mut self.told);
                        return orphan::keep(self, records).await;
                    }
                }
            }
            if self.taken_over.is_some() {
                return self.take_over().await;
            }
            tokio::select! {
                () = tokio::time::sleep(retry_in) => {}
                Ok(()) = self.stop.changed() => retry_in = FIRST_RETRY,
            }
            retry_in = (retry_in * 2).min(self.longest_retry());
        }
    }

    /// True if records that cannot be read are not waited for any longer: they are damaged for good, or nobody
    /// has mended them for a while. Only of a step whose process is known can more be found out.
    fn is_given_up(&self, unreadable: &records::Unreadable) -> bool {
        let is_for_good = match unreadable {
            records::Unreadable::Line { .. } => true,
            records::Unreadable::Io { error, .. } => {
                error.kind() == std::io::ErrorKind::PermissionDenied && self.unreadable > MEND_TRIES
            }
        };
        is_for_good && self.known_process().is_some()
    }

    /// True if the run may start nothing yet. One that is to be stopped is seen to at once.
    fn is_held_back(&self) -> bool {
        self.stop.borrow().is_none() && self.restarts.is_pending(&self.task.run.id)
    }

    async fn await_turn(&mut self) {
        let restarts = self.restarts.clone();
        loop {
            let released = restarts.released();
            if !self.is_held_back() {
                return;
            }
            tokio::select! {
                () = released => {}
                Ok(()) = self.stop.changed() => {}
            }
        }
    }

    fn has_gone_on(&self) {
        self.restarts.started(&self.task.run.id);
    }

    async fn look(&self) -> Result<Sight, records::Unreadable> {
        // A step that was not launched yet has no directory, and so no shim that could answer.
        if matches!(self.dir.0.try_exists(), Ok(false)) {
            return Ok(Sight::Left(self.told.clone()));
        }
        self.has_room().map_err(|error| {
            let path = self.dir.socket().display().to_string();
            records::Unreadable::Io { path, error }
        })?;
        match connect(&self.ground, &self.dir).await {
            Ok(session) => return Ok(Sight::Met(session)),
            Err(error) if error.kind() == std::io::ErrorKind::Unsupported => {
                return Ok(Sight::Foreign(error.to_string()));
            }
            Err(_not_there) => {}
        }
        Ok(match launch::left(&self.dir)? {
            // A file that was cut short says less than its shim had told.
            Some(records) if records.len() < self.told.len() => Sight::Left(self.told.clone()),
            Some(records) => Sight::Left(records),
            None => Sight::Silent,
        })
    }

    /// Another boot: what was written is all there is, and no process is looked for.
    async fn keep_rebooted(&mut self) {
        // A power loss leaves holes in what was not synced. Whatever the records say, nothing of the step lives.
        match records::read_after_boot(&self.dir.events()) {
            Ok(records) => self.report(Custody::Rebooted, &records, 0).await,
            Err(unreadable) => {
                self.say_trouble("unreadable", unreadable.to_string()).await;
                if self.stop.wait_for(Option::is_some).await.is_ok() {
                    self.report(Custody::Rebooted, &[], 0).await;
                }
            }
        }
    }

    /// The shim is gone, or is not to be found where it should be, and these are its records; none if they are
    /// gone too.
    async fn keep_left(mut self, records: Vec<Record>) {
        self.say_shim(None).await;
        self.say_no_trouble().await;
        self.has_gone_on();
        if records::is_over(&records) {
            return self.report(Custody::Nobody, &records, 0).await;
        }
        let is_held_at_barrier = records::is_begun(&records)
            && records::identity(&records).is_none()
            && self.known_process().is_none();
        if is_held_at_barrier && orphan::is_empty(&mut self).await {
            return self.report(Custody::NeverHeld, &records, 0).await;
        }
        orphan::keep(self, records).await;
    }

    /// Writes down that nothing ran, where a late shim would read it; the next look finds it there.
    async fn fence(&self, code: NeverStarted, why: String) {
        let at_ms = self.ground.world.now().0;
        tracing::error!(run = %self.task.run.id, %why, "step not launched");
        if let Err(error) = launch::fence(&self.dir, at_ms, code, why) {
            let code = host::failure(&error).map_or("unreadable", Code::word);
            self.say_trouble(code, error.to_string()).await;
        }
    }

    async fn report(&mut self, custody: Custody, records: &[Record], stops_before: usize) {
        let report = records::report(self.task.step, custody, records, stops_before);
        self.post_report(report, records::line(records)).await;
    }

    /// Posts a report, with what was found at the end if there is one. `line` is the line of time that it is on.
    async fn post_report(&mut self, mut report: outlast_engine::Report, line: Option<i64>) {
        self.look_at_end(&mut report).await;
        self.look_at_output(&mut report).await;
        // Times of another boot are the wall's of then: there is no line from that boot to this.
        let line = line.filter(|_| self.task.boot == self.ground.world.boot);
        records::in_our_time(&mut report, line, &self.ground.world);
        let input = Input::Reported(Box::new(report));
        self.post(Message::Input { input, done: None }).await;
    }

    async fn say_trouble(&self, code: &str, message: impl Into<String>) {
        let trouble = self.ground.trouble(code, message);
        let is_told =
            |known: &Trouble| known.code == trouble.code && known.message == trouble.message;
        // Told again it would look as if it had only begun.
        if self.handle.snapshot.borrow().trouble.as_ref().is_some_and(is_told) {
            return;
        }
        tracing::error!(run = %self.task.run.id, code, message = %trouble.message, "trouble");
        self.post(Message::Trouble { trouble: Some(trouble) }).await;
    }

    async fn say_no_trouble(&self) {
        self.post(Message::Trouble { trouble: None }).await;
    }

    async fn say_shim(&self, pid: Option<u32>) {
        self.post(Message::Shim { pid }).await;
    }

    async fn post(&self, message: Message) {
        // A conductor that is gone has let go of this keeper too.
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
