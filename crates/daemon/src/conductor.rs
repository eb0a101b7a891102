//! The conductor: the task of one open run. It receives inputs, appends what follows to the journal, then performs
//! the effects that are due.
//!
//! The conductor takes one input at a time, so a run has one writer. It acts on nothing that the journal does not
//! have. What follows from an input is decided by the engine.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{
    Effect, Input, Moment, Outcome, Run, RunId, Seen, State, StopMode, Time, WaitCause,
};
use outlast_home::layout::AttemptDir;
use outlast_store::{Append, Entry, Error};
use outlast_wire::api::Trouble;
use outlast_wire::codes::Code;
use outlast_wire::hook;
use tokio::sync::{mpsc, oneshot, watch};

use crate::children;
use crate::ended;
use crate::keeper::{Keeper, Task};
use crate::leaving::Leaving;
use crate::mailbox::{Handle, Message, Snapshot};
use crate::notify::Words;
use crate::reserve;
use crate::silence::SilenceProbe;
use crate::supervisor::Supervisor;
use crate::view;
use crate::workspace_op::{self, WorkspaceOp};
use crate::world::files;
use outlast_conduct::fenced_run::{FencedRun, Proposal};

/// The word for a run whose next events the journal does not take.
pub(crate) const UNWRITABLE: &str = "unwritable";

/// Between two tries to write to a disk that is full.
const FIRST_RETRY: Duration = Duration::from_millis(250);
const LAST_RETRY: Duration = Duration::from_secs(5);

/// Between two looks at the memory that a waiting run needs.
const MEMORY_LOOK: Duration = Duration::from_secs(5);

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
    let (output, stop_asked) = (Arc::default(), Arc::default());
    let handle = Handle { mailbox, snapshot: seen, output, stop_asked };
    supervisor.enter(fenced.run(), handle.clone());
    let conductor = Conductor::new(supervisor.clone(), fenced, handle.clone(), snapshot);
    #[expect(
        clippy::disallowed_methods,
        reason = "a conductor is owned by the table of runs and leaves it when it ends"
    )]
    let _conductor = tokio::spawn(conductor.conduct(inbox, first));
    handle
}

struct Conductor {
    supervisor: Arc<Supervisor>,
    fenced: FencedRun,
    handle: Handle,
    snapshot: watch::Sender<Snapshot>,
    keeper: Option<Keeper>,
    workspace_op: Option<WorkspaceOp>,
    /// What keeps us from the journal, and what keeps the keeper from the attempt: each ends by itself.
    journal_trouble: Option<Trouble>,
    keeper_trouble: Option<Trouble>,
    /// True once its parent is being told that the run has ended.
    has_told_parent: bool,
    /// Since when the step's shim does not answer.
    unreachable: Option<Time>,
    silence: SilenceProbe,
}

/// The conductor has no more to do here.
struct Over;

/// Given back however the conductor goes: whoever still asks is answered from the store, and a run that is
/// open does not stay without anybody.
struct LeaveGuard {
    supervisor: Arc<Supervisor>,
    id: RunId,
    is_done: bool,
}

impl LeaveGuard {
    fn of(conductor: &Conductor) -> Self {
        let (supervisor, id) = (conductor.supervisor.clone(), conductor.fenced.run().id.clone());
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

impl Conductor {
    fn new(
        supervisor: Arc<Supervisor>,
        fenced: FencedRun,
        handle: Handle,
        snapshot: watch::Sender<Snapshot>,
    ) -> Self {
        let (journal_trouble, keeper_trouble) = (None, None);
        let (keeper, workspace_op) = (None, None);
        let (unreachable, silence) = (None, SilenceProbe::default());
        Self {
            supervisor,
            fenced,
            handle,
            snapshot,
            keeper,
            workspace_op,
            journal_trouble,
            keeper_trouble,
            has_told_parent: false,
            unreachable,
            silence,
        }
    }

    async fn conduct(mut self, mut inbox: mpsc::Receiver<Message>, first: Option<Input>) {
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
            if !self.fenced.run().is_open() {
                return Ok(());
            }
            if self.is_overdue() {
                self.take(Input::Woke).await?;
                continue;
            }
            self.silence.listen(self.fenced.run(), &self.handle, &self.supervisor.ground.world);
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
        let now = self.supervisor.ground.world.now();
        let due = self.fenced.wake_at().map(|at| Duration::from_millis(at.ms_since(now)));
        // Nobody says when memory is free again.
        let wants_memory = self.fenced.run().wants_slot() && self.supervisor.waits_for_memory();
        let look = wants_memory.then_some(MEMORY_LOOK);
        let quiet = self.silence.wait(self.fenced.run(), &self.supervisor.ground.world);
        [due, look, quiet].into_iter().flatten().min()
    }

    async fn hear(&mut self, message: Message) -> Result<(), Over> {
        match message {
            Message::Input { input, done } => {
                self.take(input).await?;
                if let Some(done) = done {
                    // Whoever asked may have gone; the answer is in the journal.
                    let _gone = done.send(self.snapshot.borrow().run.clone());
                }
            }
            Message::Shim { pid } => self.snapshot.send_modify(|snapshot| snapshot.shim_pid = pid),
            Message::Trouble { trouble } => {
                let is_unreachable = trouble.as_ref().is_some_and(|it| it.code == "unreachable");
                let was_unreachable = self.unreachable.is_some();
                if is_unreachable != was_unreachable {
                    self.unreachable = is_unreachable.then(|| self.supervisor.ground.world.now());
                }
                self.keeper_trouble = trouble;
                self.publish_trouble();
                if is_unreachable != was_unreachable {
                    self.take(Input::Woke).await?;
                }
            }
        }
        Ok(())
    }

    /// Remembers what follows from `input`, however long the disk takes to let us.
    async fn take(&mut self, input: Input) -> Result<(), Over> {
        let mut retry_in = FIRST_RETRY;
        loop {
            let seen = self.seen(&input);
            let slot = self.supervisor.slot_of(self.fenced.run());
            let moment = self.supervisor.moment_of(self.fenced.run(), slot, seen);
            let proposed = self.propose(&input, &moment);
            let is_held_back = proposed.as_ref().is_some_and(|proposal| proposal.is_held_back);
            if is_held_back && self.supervisor.lets_go(self.fenced.run()) {
                continue;
            }
            let Some(Proposal { append, accepted, .. }) = proposed else {
                self.supervisor.note_slot(self.fenced.run());
                self.supervisor.note_spent(self.fenced.run(), Entry::default());
                return Ok(());
            };
            let spent = append.spent;
            let events = append.events.clone();
            let told: Vec<String> =
                append.outbox.iter().map(|notice| notice.sink.clone()).collect();
            hook!("daemon.before-append");
            match append_to(&self.supervisor, append).await {
                Ok(()) => {
                    hook!("daemon.after-append");
                    self.supervisor.operator.observe(self.fenced.run(), &events);
                    self.supervisor.notices.wake(told.iter().map(String::as_str));
                    self.fenced.accept(accepted);
                    self.publish();
                    self.supervisor.note_slot(self.fenced.run());
                    self.supervisor.note_spent(self.fenced.run(), spent);
                    return Ok(());
                }
                Err(Error::Conflict { .. }) => self.reload()?,
                Err(error @ (Error::StaleEpoch { .. } | Error::Closed)) => {
                    return Err(self.give_way(&error));
                }
                Err(error @ Error::Gone { .. }) => {
                    tracing::error!(run = %self.fenced.run().id, %error, "the journal is gone");
                    self.supervisor.ground.heed_store(&error);
                    return Err(Over);
                }
                // It would be rejected again, however often it is tried: a person has to know.
                Err(Error::Rejected(why)) => {
                    self.supervisor.quarantine_as(&self.fenced.run().id, UNWRITABLE, why);
                    return Err(Over);
                }
                Err(error) => {
                    self.suspend(&error);
                    if self.stops_on_a_full_disk(&error) {
                        continue;
                    }
                    let mut stop_asked = self.handle.stop_asked.subscribe();
                    tokio::select! {
                        () = tokio::time::sleep(retry_in) => {}
                        _ = stop_asked.changed() => {}
                    }
                    retry_in = (retry_in * 2).min(LAST_RETRY);
                }
            }
        }
    }

    /// What has to be remembered, given also what the run will have used up by it.
    fn propose(&self, input: &Input, moment: &Moment) -> Option<Proposal> {
        let words = Words { layout: &self.supervisor.ground.layout };
        let proposal = self.fenced.propose(input, moment, &words)?;
        let spent = proposal.append.spent;
        if spent.amount.is_nothing() {
            return Some(proposal);
        }
        let after = self.supervisor.moment_after(self.fenced.run(), moment, spent);
        if after == *moment { Some(proposal) } else { self.fenced.propose(input, &after, &words) }
    }

    /// What the world knows of the attempt that is alive.
    fn seen(&mut self, input: &Input) -> Seen {
        let (run, world) = (self.fenced.run(), &self.supervisor.ground.world);
        if matches!(input, Input::UsageReported { .. }) {
            self.silence.heard(world);
        }
        let Some(dir) = live_dir(&self.supervisor, run) else { return Seen::default() };
        Seen { unreachable: self.unreachable, ..self.silence.hear(run, &dir, world) }
    }

    /// Turns to the attempt that is alive now, which may have been silent before anybody asked.
    fn is_overdue(&mut self) -> bool {
        let (run, supervisor) = (self.fenced.run(), &self.supervisor);
        live_dir(supervisor, run)
            .is_some_and(|dir| self.silence.attend(run, &dir, &supervisor.ground.world))
    }

    /// An append was made whose answer got lost: the journal is right.
    fn reload(&mut self) -> Result<(), Over> {
        let id = self.fenced.run().id.clone();
        match self.supervisor.ground.replay(&id) {
            Ok(run) => {
                self.fenced = FencedRun::new(run, self.supervisor.ground.epoch);
                self.supervisor.notices.wake_waiting();
                self.supervisor.reload_budgets();
                self.publish();
                Ok(())
            }
            Err(message) => {
                tracing::error!(run = %id, %message, "cannot read the run back");
                Err(Over)
            }
        }
    }

    fn give_way(&self, error: &Error) -> Over {
        tracing::error!(run = %self.fenced.run().id, %error, "this daemon may no longer write");
        self.supervisor.ground.leave(Leaving::Fenced);
        Over
    }

    fn suspend(&mut self, error: &Error) {
        let code = match error {
            Error::Full(_) => Code::DiskFull.word(),
            Error::Locked(_) => Code::JournalLocked.word(),
            Error::Unsaved { .. } => Code::JournalGone.word(),
            _ => "journal_unwritable",
        };
        if self.journal_trouble.as_ref().is_none_or(|trouble| trouble.code != code) {
            tracing::error!(run = %self.fenced.run().id, %error, "suspended until the journal can be written");
            self.journal_trouble = Some(self.supervisor.ground.trouble(code, error.to_string()));
            self.publish_trouble();
        }
    }

    /// A run that is to be stopped, and whose journal takes nothing: it may have the reserve's room. If that is not enough, the
    /// processes are ended before the journal says why, since it may be they who fill the disk. The shim
    /// records that they were stopped, and the order follows when there is room. True if writing is worth
    /// another try at once.
    fn stops_on_a_full_disk(&self, error: &Error) -> bool {
        let asked = *self.handle.stop_asked.borrow();
        let Some(mode) = asked.filter(|_| matches!(error, Error::Full(_))) else { return false };
        if reserve::spend(&self.supervisor.ground.layout) {
            return true;
        }
        if let Some(keeper) = &self.keeper {
            keeper.order_stop(Some(mode));
        }
        false
    }

    fn publish_trouble(&self) {
        let trouble = self.trouble();
        self.snapshot.send_modify(|snapshot| snapshot.trouble = trouble);
        self.supervisor.watchers.note(&self.fenced.run().id);
    }

    fn trouble(&self) -> Option<Trouble> {
        let of_us = self.journal_trouble.clone().or_else(|| self.keeper_trouble.clone());
        of_us.or_else(|| shortage(self.fenced.run()))
    }

    /// What the journal has taken, which it therefore can be written.
    fn publish(&mut self) {
        self.journal_trouble = None;
        let (run, trouble) = (self.fenced.shared(), self.trouble());
        self.snapshot.send_modify(|snapshot| {
            snapshot.run = run;
            snapshot.trouble = trouble;
        });
        self.supervisor.watchers.note(&self.fenced.run().id);
    }

    /// Sees to what is due, until nothing more can be done without news.
    async fn perform(&mut self) -> Result<(), Over> {
        loop {
            let due = self.fenced.due();
            self.keep(&due);
            self.see_to_workspace(&due);
            let is_finishing = due.iter().any(|effect| matches!(effect, Effect::Finish { .. }));
            if !is_finishing {
                return Ok(());
            }
            self.finish();
            self.take(Input::Finished).await?;
        }
    }

    /// Has a keeper for the step that is due, with the right order, and none otherwise.
    fn keep(&mut self, due: &[Effect]) {
        let wanted = due.iter().find_map(|effect| match effect {
            Effect::Ensure { step, boot } => Some((*step, boot.clone())),
            _ => None,
        });
        let Some((step, boot)) = wanted else {
            self.keeper = None;
            return;
        };
        if self.keeper.as_ref().is_none_or(|keeper| !keeper.is_for(step)) {
            let task = Task { run: self.snapshot.borrow().run.clone(), step, boot };
            self.keeper = Some(self.keeper_of(task));
        }
        let keeper = self.keeper.as_ref().expect("it was just made");
        keeper.order_stop(stop_mode(due));
    }

    fn keeper_of(&self, task: Task) -> Keeper {
        let Supervisor { ground, restarts, .. } = &*self.supervisor;
        Keeper::start(ground.clone(), restarts.clone(), task, self.handle.clone())
    }

    /// Has the workspace operation done that is due, and none otherwise.
    fn see_to_workspace(&mut self, due: &[Effect]) {
        let Some(kind) = workspace_op::Kind::due(due) else {
            self.workspace_op = None;
            return;
        };
        if self.workspace_op.as_ref().is_none_or(|op| op.kind != kind) {
            let run = self.snapshot.borrow().run.clone();
            let dir = self.supervisor.ground.layout.run(run.id.as_str());
            let ground = self.supervisor.ground.clone();
            self.workspace_op =
                Some(WorkspaceOp::start(ground, kind, run, dir, self.handle.clone()));
        }
    }

    /// A run that has ended has its parent hear of it, which a parent that knows makes nothing of.
    fn tell_parent(&mut self) {
        let run = self.fenced.run();
        let is_due = run.ended_at.is_some() && run.spec.parent.is_some();
        if is_due && !std::mem::replace(&mut self.has_told_parent, true) {
            children::ended(&self.supervisor, self.snapshot.borrow().run.clone());
        }
    }

    /// How the run ends is left in its directory, and its environment is needed no longer.
    fn finish(&self) {
        hook!("daemon.before-finish");
        let id: &RunId = &self.fenced.run().id;
        let dir = self.supervisor.ground.layout.run(id.as_str());
        if let Err(error) = ended::leave(&dir, self.fenced.run(), &self.supervisor.ground.world) {
            tracing::error!(run = %id, %error, "cannot leave in the run's directory how it ended");
        }
        if let Err(error) = files::remove(&dir.env()) {
            tracing::error!(run = %id, %error, "cannot remove the run's environment; `outlast doctor` will show it");
        }
        hook!("daemon.finished");
    }
}

/// What the host lacked for the last attempt, while the next one waits for it.
fn shortage(run: &Run) -> Option<Trouble> {
    let is_waiting = matches!(run.state, State::Waiting { cause: WaitCause::Backoff, .. });
    let (outcome, at) = run.attempt.as_ref().filter(|_| is_waiting)?.held.end.as_ref()?;
    let Outcome::NeverStarted { why, .. } = outcome else { return None };
    let trouble = Trouble {
        code: Code::NoResources.word().to_owned(),
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

fn stop_mode(due: &[Effect]) -> Option<StopMode> {
    due.iter().find_map(|effect| match effect {
        Effect::Stop { mode, .. } => Some(*mode),
        _ => None,
    })
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
    let trouble = |code: &str, message| supervisor.ground.trouble(code, message);
    supervisor.operator.readiness.note_append(&result, trouble);
    result
}
