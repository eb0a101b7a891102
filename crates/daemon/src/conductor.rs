//! The task of one open run: it carries out what the run's conductor decides.
//!
//! [`Conductor`] decides and has no IO; this task has the mailbox, the journal, the task of the step that is due, and
//! the snapshot that other tasks look at.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use outlast_conduct::conductor::{Conductor, Due, Next, Over as Ended, Shared, Taken};
use outlast_conduct::fenced_run::{FencedRun, Tell};
use outlast_engine::{Context, Input, Outcome, Run, RunId, Seen, State, Time, WaitCause};
use outlast_home::layout::AttemptDir;
use outlast_store::{Append, Entry, Error};
use outlast_wire::api::Trouble;
use outlast_wire::codes::Code;
use outlast_wire::hook;
use outlast_wire::words::TroubleCode;
use tokio::sync::{mpsc, oneshot, watch};

use crate::children;
use crate::ended;
use crate::leaving::Leaving;
use crate::mailbox::{Handle, Message, Snapshot};
use crate::notify::Words;
use crate::redaction;
use crate::reserve;
use crate::sight::Sight;
use crate::silence::SilenceProbe;
use crate::steps::StepTask;
use crate::successors;
use crate::supervisor::Supervisor;
use crate::view;
use crate::workspace_op::WorkspaceTask;
use crate::world::files;

/// Between two looks at the memory that a waiting run needs.
const MEMORY_LOOK: Duration = Duration::from_secs(5);

/// Between two tries to read a run's environment while the host lacks something.
const ENVIRONMENT_AGAIN: Duration = Duration::from_millis(500);

/// How much news can wait for one run; a task that brings more waits.
const MAILBOX: usize = 64;

/// Gives a run its conductor, and enters the run in the table.
pub(crate) fn start(
    supervisor: &Arc<Supervisor>,
    fenced: FencedRun,
    first: Option<Input>,
) -> Handle {
    let (mailbox, inbox) = mpsc::channel(MAILBOX);
    let (snapshot, seen) = watch::channel(Snapshot::of(fenced.run()));
    let (output, agent, stop_asked) = (Arc::default(), Arc::default(), Arc::default());
    let handle = Handle { mailbox, snapshot: seen, output, agent, stop_asked };
    supervisor.enter(fenced.run(), handle.clone());
    let driver = Driver::new(supervisor.clone(), fenced, handle.clone(), snapshot);
    #[expect(
        clippy::disallowed_methods,
        reason = "a conductor is owned by the table of runs and leaves it when it ends"
    )]
    let _conductor = tokio::spawn(driver.drive(inbox, first));
    handle
}

struct Driver {
    supervisor: Arc<Supervisor>,
    conductor: Conductor,
    handle: Handle,
    snapshot: watch::Sender<Snapshot>,
    step: Option<StepTask>,
    workspace_task: Option<WorkspaceTask>,
    /// The children that this daemon has stopped for the run.
    stopped_children: BTreeSet<RunId>,
    /// What keeps us from the journal, and what keeps the task of the step from its work: each ends by itself.
    journal_trouble: Option<Trouble>,
    step_trouble: Option<Trouble>,
    silence: SilenceProbe,
}

/// The task has no more to do here.
struct Over;

/// Given back however the task ends: clients are answered from the store from then on, and a run that is open gets
/// another conductor.
struct LeaveGuard {
    supervisor: Arc<Supervisor>,
    id: RunId,
    is_done: bool,
}

impl LeaveGuard {
    fn of(driver: &Driver) -> Self {
        let (supervisor, id) = (driver.supervisor.clone(), driver.conductor.run().id.clone());
        Self { supervisor, id, is_done: false }
    }
}

impl Drop for LeaveGuard {
    fn drop(&mut self) {
        if self.is_done {
            self.supervisor.forget(&self.id);
        } else {
            self.supervisor.lost(&self.id);
        }
    }
}

/// What a run goes by beside its own journal.
struct Around<'a> {
    supervisor: &'a Supervisor,
    silence: &'a mut SilenceProbe,
    words: Words<'a>,
}

impl Shared for Around<'_> {
    fn context(&mut self, run: &Run, input: &Input, unreachable: Option<Time>) -> Context {
        let world = &self.supervisor.ground.world;
        if matches!(input, Input::UsageReported { .. }) {
            self.silence.heard(world);
        }
        let seen = match live_dir(self.supervisor, run) {
            Some(dir) => Seen { unreachable, ..self.silence.hear(run, &dir, world) },
            None => Seen::default(),
        };
        let slot = self.supervisor.slot_of(run);
        self.supervisor.context_of(run, slot, seen)
    }

    fn context_after(&mut self, run: &Run, context: &Context, spent: Entry) -> Context {
        self.supervisor.books.context_after(run, context, spent)
    }

    fn lets_go(&mut self, run: &Run) -> bool {
        self.supervisor.lets_go(run)
    }

    fn note(&mut self, run: &Run, spent: Entry) {
        self.supervisor.note(run, spent);
    }

    fn tell(&self) -> &dyn Tell {
        &self.words
    }
}

impl Driver {
    fn new(
        supervisor: Arc<Supervisor>,
        fenced: FencedRun,
        handle: Handle,
        snapshot: watch::Sender<Snapshot>,
    ) -> Self {
        let conductor = Conductor::new(fenced, supervisor.ground.epoch);
        let (journal_trouble, step_trouble) = (None, None);
        let (step, workspace_task, silence) = (None, None, SilenceProbe::default());
        Self {
            supervisor,
            conductor,
            handle,
            snapshot,
            step,
            workspace_task,
            stopped_children: BTreeSet::new(),
            journal_trouble,
            step_trouble,
            silence,
        }
    }

    async fn drive(mut self, mut inbox: mpsc::Receiver<Message>, first: Option<Input>) {
        let mut guard = LeaveGuard::of(&self);
        if self.until_over(&mut inbox, first).await.is_ok() {
            guard.is_done = true;
        }
    }

    async fn until_over(
        &mut self,
        inbox: &mut mpsc::Receiver<Message>,
        first: Option<Input>,
    ) -> Result<(), Over> {
        if let Some(input) = first {
            self.take(input).await?;
        }
        loop {
            self.perform().await?;
            self.tell_parent();
            if !self.conductor.run().is_open() {
                return Ok(());
            }
            if self.is_overdue() {
                self.take(Input::Woke).await?;
                continue;
            }
            let world = &self.supervisor.ground.world;
            self.silence.listen(self.conductor.run(), &self.handle, world);
            let message = self.next(inbox).await?;
            self.hear(message).await?;
        }
    }

    /// The next message, or that it is time.
    async fn next(&mut self, inbox: &mut mpsc::Receiver<Message>) -> Result<Message, Over> {
        let wait = self.wait();
        tokio::select! {
            biased;
            message = inbox.recv() => message.ok_or(Over),
            () = self.silence.output() => Ok(Message::Input { input: Input::Woke, done: None }),
            () = passed(wait) => Ok(Message::Input { input: Input::Woke, done: None }),
        }
    }

    /// How long to wait for news before looking again.
    fn wait(&self) -> Option<Duration> {
        let (run, world) = (self.conductor.run(), &self.supervisor.ground.world);
        let now = world.now();
        let due = self.conductor.wake_at().map(|at| Duration::from_millis(at.ms_since(now)));
        // The kernel does not say when memory is free again.
        let wants_memory = run.wants_slot() && self.supervisor.waits_for_memory();
        let look = wants_memory.then_some(MEMORY_LOOK);
        let quiet = self.silence.wait(run, world);
        [due, look, quiet].into_iter().flatten().min()
    }

    async fn hear(&mut self, message: Message) -> Result<(), Over> {
        match message {
            Message::Input { input, done } => {
                self.take(input).await?;
                if let Some(done) = done {
                    // The client may have gone; the answer is in the journal.
                    let _gone = done.send(self.snapshot.borrow().run.clone());
                }
            }
            Message::Shim { pid } => self.snapshot.send_modify(|snapshot| snapshot.shim_pid = pid),
            Message::Looked => self.snapshot.send_modify(|it| it.sight = Sight::Known),
            Message::Trouble { trouble } => {
                let is_unreachable =
                    trouble.as_ref().is_some_and(|it| it.code == TroubleCode::Unreachable);
                let now = self.supervisor.ground.world.now();
                self.step_trouble = trouble;
                self.publish_trouble();
                if self.conductor.note_unreachable(is_unreachable, now) {
                    self.take(Input::Woke).await?;
                }
            }
        }
        Ok(())
    }

    /// Has the journal take what follows from `input`, however long the disk takes to let us.
    async fn take(&mut self, input: Input) -> Result<(), Over> {
        let input = self.without_secrets(input).await;
        let mut next = self.ask(|conductor, shared| conductor.take(input, shared));
        loop {
            next = match next {
                Next::Append(append) => self.append(*append).await,
                Next::Reload => self.reload()?,
                Next::Suspended { retry_in_ms } => {
                    self.wait_for_journal(retry_in_ms).await;
                    self.ask(Conductor::again)
                }
                Next::Taken(Taken { is_news, wake }) => {
                    if is_news {
                        self.supervisor.notices.wake(wake.iter().map(String::as_str));
                        self.publish();
                    }
                    return Ok(());
                }
                Next::Over(why) => return Err(self.give_up(why)),
            }
        }
    }

    /// The input without the run's secrets, however long the host keeps us from knowing them.
    async fn without_secrets(&self, mut input: Input) -> Input {
        let (ground, run) = (&self.supervisor.ground, self.conductor.run());
        while let Err(error) = redaction::hide_in_input(ground, run, &mut input) {
            tracing::error!(run = %run.id, %error, "cannot read the run's environment; trying again");
            tokio::time::sleep(ENVIRONMENT_AGAIN).await;
        }
        input
    }

    fn ask(&mut self, what: impl FnOnce(&mut Conductor, &mut dyn Shared) -> Next) -> Next {
        let Self { supervisor, conductor, silence, .. } = self;
        let words = Words { layout: &supervisor.ground.layout };
        what(conductor, &mut Around { supervisor, silence, words })
    }

    async fn append(&mut self, append: Append) -> Next {
        let events = append.events.clone();
        hook!("daemon.before-append");
        let result = append_to(&self.supervisor, append).await;
        match &result {
            Ok(()) => {
                hook!("daemon.after-append");
                self.supervisor.operator.observe(self.conductor.run(), &events);
            }
            Err(error) => self.note_failure(error),
        }
        self.ask(|conductor, shared| conductor.appended(&result, shared))
    }

    fn note_failure(&mut self, error: &Error) {
        let id = &self.conductor.run().id;
        match error {
            Error::Conflict { .. } | Error::Rejected(_) => {}
            Error::StaleEpoch { .. } | Error::Closed => {
                tracing::error!(run = %id, %error, "this daemon may no longer write");
            }
            Error::Gone { .. } => {
                tracing::error!(run = %id, %error, "the journal is gone");
                self.supervisor.ground.heed_store(error);
            }
            error => self.suspend(error),
        }
    }

    fn give_up(&self, why: Ended) -> Over {
        match why {
            Ended::Fenced => self.supervisor.ground.leave(Leaving::Fenced),
            Ended::Gone => {}
            Ended::Rejected(why) => {
                self.supervisor.quarantine_as(
                    &self.conductor.run().id,
                    TroubleCode::Unwritable,
                    why,
                );
            }
        }
        Over
    }

    /// Turns to the attempt that is alive now, which may have been silent before this daemon looked.
    fn is_overdue(&mut self) -> bool {
        let (run, supervisor) = (self.conductor.run(), &self.supervisor);
        live_dir(supervisor, run)
            .is_some_and(|dir| self.silence.attend(run, &dir, &supervisor.ground.world))
    }

    /// Reads the run back: the journal is right.
    fn reload(&mut self) -> Result<Next, Over> {
        let id = self.conductor.run().id.clone();
        let run = self.supervisor.ground.replay(&id).map_err(|message| {
            tracing::error!(run = %id, %message, "cannot read the run back");
            Over
        })?;
        self.supervisor.notices.wake_waiting();
        self.supervisor.reload_budgets();
        let next = self.ask(|conductor, shared| conductor.reloaded(run, shared));
        self.publish();
        Ok(next)
    }

    fn suspend(&mut self, error: &Error) {
        let code = match error {
            Error::Full(_) => Code::DiskFull.into(),
            Error::Locked(_) => Code::JournalLocked.into(),
            Error::Unsaved { .. } => Code::JournalGone.into(),
            _ => TroubleCode::JournalUnwritable,
        };
        if self.journal_trouble.as_ref().is_none_or(|trouble| trouble.code != code) {
            tracing::error!(run = %self.conductor.run().id, %error, "suspended until the journal can be written");
            self.journal_trouble = Some(self.supervisor.ground.trouble(code, error.to_string()));
            self.publish_trouble();
        }
    }

    async fn wait_for_journal(&self, retry_in_ms: u64) {
        if self.stops_on_a_full_disk() {
            return;
        }
        let mut stop_asked = self.handle.stop_asked.subscribe();
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(retry_in_ms)) => {}
            _ = stop_asked.changed() => {}
        }
    }

    /// A run that is to be stopped, and whose journal takes nothing: it may have the reserve's room. If that is not
    /// enough, the processes are ended before the journal says why, since it may be they who fill the disk. The shim
    /// records that they were stopped, and the order follows when there is room. True if writing is worth
    /// another try at once.
    fn stops_on_a_full_disk(&self) -> bool {
        let is_full = self.journal_trouble.as_ref().is_some_and(|it| it.code == Code::DiskFull);
        let asked = *self.handle.stop_asked.borrow();
        let Some(mode) = asked.filter(|_| is_full) else { return false };
        if reserve::spend(&self.supervisor.ground.layout) {
            return true;
        }
        if let Some(step) = &self.step {
            step.order_stop(Some(mode));
        }
        false
    }

    fn publish_trouble(&self) {
        let trouble = self.trouble();
        self.snapshot.send_modify(|snapshot| snapshot.trouble = trouble);
        self.supervisor.watchers.note(&self.conductor.run().id);
    }

    fn trouble(&self) -> Option<Trouble> {
        let of_us = self.journal_trouble.clone().or_else(|| self.step_trouble.clone());
        of_us.or_else(|| shortage(self.conductor.run()))
    }

    /// Publishes the run after an append. The journal has taken it, so nothing keeps us from the journal.
    fn publish(&mut self) {
        self.journal_trouble = None;
        let (run, trouble) = (self.conductor.shared(), self.trouble());
        self.supervisor.sessions.note(&run, &self.supervisor.ground.world.boot);
        self.snapshot.send_modify(|snapshot| {
            snapshot.run = run;
            snapshot.trouble = trouble;
        });
        self.supervisor.watchers.note(&self.conductor.run().id);
    }

    /// Sees to what is due, until nothing more can be done without news.
    async fn perform(&mut self) -> Result<(), Over> {
        loop {
            let due = self.conductor.due();
            self.see_to_step(&due);
            self.see_to_workspace(&due);
            self.see_to_children(&due);
            if !due.is_finishing {
                return Ok(());
            }
            self.finish();
            self.take(Input::Finished).await?;
        }
    }

    /// Has a task for the step that is due, with the right order, and none otherwise.
    fn see_to_step(&mut self, due: &Due) {
        let Some((step, boot)) = &due.step else {
            self.step = None;
            return;
        };
        if self.step.as_ref().is_none_or(|task| !task.is_for(*step)) {
            let Supervisor { ground, restarts, .. } = &*self.supervisor;
            let (ground, restarts) = (ground.clone(), restarts.clone());
            let (handle, run) = (self.handle.clone(), self.conductor.shared());
            let what = (*step, boot.clone());
            self.step = Some(StepTask::start(ground, restarts, handle, run, what, due.stop));
        } else if let Some(task) = &self.step {
            task.order_stop(due.stop);
        }
    }

    /// Has the workspace operation done that is due, and none otherwise.
    fn see_to_workspace(&mut self, due: &Due) {
        let Some(op) = due.workspace else {
            self.workspace_task = None;
            return;
        };
        if self.workspace_task.as_ref().is_none_or(|task| task.op != op) {
            let run = self.conductor.shared();
            let ground = self.supervisor.ground.clone();
            let dir = ground.layout.run(run.id.as_str());
            let handle = self.handle.clone();
            self.workspace_task = Some(WorkspaceTask::start(ground, op, run, dir, handle));
        }
    }

    /// Has the children stopped that go on, each once by this daemon.
    fn see_to_children(&mut self, due: &Due) {
        let Some(mode) = due.stop_children else { return };
        let run = self.conductor.run();
        let new: Vec<RunId> = run
            .live_child_ids()
            .filter(|id| !self.stopped_children.contains(*id))
            .cloned()
            .collect();
        self.stopped_children.extend(new.iter().cloned());
        children::stop(&self.supervisor, &run.id, new, mode);
    }

    /// A run that has ended has its parent hear of it, and the runs that start after it.
    fn tell_parent(&mut self) {
        if !self.conductor.has_just_ended() {
            return;
        }
        successors::ended(&self.supervisor, self.conductor.run());
        children::stop_bound(&self.supervisor, &self.conductor.run().id);
        if self.conductor.run().spec.parent.is_some() {
            children::ended(&self.supervisor, self.conductor.shared());
        }
    }

    /// How the run ends is left in its directory, and its environment is needed no longer.
    fn finish(&self) {
        hook!("daemon.before-finish");
        let id: &RunId = &self.conductor.run().id;
        let dir = self.supervisor.ground.layout.run(id.as_str());
        let world = &self.supervisor.ground.world;
        if let Err(error) = ended::leave(&dir, self.conductor.run(), world) {
            tracing::error!(run = %id, %error, "cannot leave in the run's directory how it ended");
        }
        self.supervisor.ground.secrets.forget(&dir.env());
        if let Err(error) = files::remove(&dir.env()) {
            tracing::error!(run = %id, %error, "cannot remove the run's environment; outlast doctor will show it");
        }
        hook!("daemon.finished");
    }
}

/// What the host lacked for the last attempt, while the next one waits for it.
fn shortage(run: &Run) -> Option<Trouble> {
    let is_waiting = matches!(run.state, State::Waiting { cause: WaitCause::Backoff, .. });
    let (outcome, at) = run.attempt.as_ref().filter(|_| is_waiting)?.state.end.as_ref()?;
    let Outcome::NeverStarted { why, .. } = outcome else { return None };
    let trouble = Trouble {
        code: TroubleCode::Of(Code::NoResources).into(),
        message: why.clone(),
        since: view::rfc3339(*at),
    };
    outcome.is_shortage().then_some(trouble)
}

/// Where the attempt that is alive has its files.
fn live_dir(supervisor: &Supervisor, run: &Run) -> Option<AttemptDir> {
    let live = run.live()?;
    Some(supervisor.ground.layout.run(run.id.as_str()).attempt(live.turn, live.number))
}

/// Comes back after so long, or never.
async fn passed(wait: Option<Duration>) {
    match wait {
        Some(wait) => tokio::time::sleep(wait).await,
        None => std::future::pending().await,
    }
}

/// Appends, and waits until it is durable.
pub(crate) async fn append_to(supervisor: &Supervisor, append: Append) -> Result<(), Error> {
    let (done, durable) = oneshot::channel();
    let run = append.run.clone();
    // Before it is written: a daemon that dies in between leaves a run that needs another.
    let is_expected = append.row.is_open && supervisor.needs.expect(&run);
    supervisor.ground.store.append(
        append,
        Box::new(move |result| {
            // The conductor may have been told to go meanwhile.
            let _gone = done.send(result);
        }),
    );
    let result = durable.await.unwrap_or(Err(Error::Closed));
    // An append whose fate is not known may have been made.
    let is_refused = match &result {
        Ok(()) | Err(Error::Closed | Error::Io(_) | Error::Unsaved { .. } | Error::Gone { .. }) => {
            false
        }
        Err(_) => true,
    };
    if is_expected && is_refused {
        supervisor.needs.forget(&run);
    }
    let trouble = |code: TroubleCode, message| supervisor.ground.trouble(code, message);
    supervisor.operator.readiness.note_append(&result, trouble);
    result
}
