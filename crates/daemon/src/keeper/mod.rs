//! One step, kept: an attempt or an errand, launched if it never was, met again if it lives, and reported
//! on until nothing of it is left.
//!
//! The order in which things are believed: the shim's socket, its lock, its records, and only then
//! identities of processes. A lock that is held means: never launch, only ask.

mod ending;
mod errand;
mod launch;
mod orphan;
mod session;

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{BootId, Custody, Input, Run, Step, StopMode};
use outlast_wire::api::Trouble;
use outlast_wire::layout::{AttemptDir, RunDir};
use outlast_wire::shim::{NeverStarted, Record};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use crate::conductor::Message;
use crate::records;
use crate::supervisor::{Handle, Supervisor};
use ending::Ending;
use session::Session;

/// Between two tries to reach a shim that lives and does not answer.
const FIRST_RETRY: Duration = Duration::from_millis(50);
const LAST_RETRY: Duration = Duration::from_secs(10);

/// After this many tries in vain a shim is called unreachable.
const PATIENCE: u32 = 6;

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

/// How much output there is, for those who follow it.
#[derive(Debug, Default)]
pub(crate) struct OutputWatch {
    /// How many follow.
    pub(crate) followers: watch::Sender<usize>,
    pub(crate) bytes: watch::Sender<u64>,
}

/// Asks the shim to say when there is more, for as long as this is kept.
pub(crate) struct Following {
    handle: Handle,
}

impl Following {
    pub(crate) fn new(handle: Handle) -> Self {
        handle.output.followers.send_modify(|count| *count += 1);
        Self { handle }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.handle.output.followers.send_modify(|count| *count -= 1);
    }
}

impl Keeper {
    pub(crate) fn start(supervisor: Arc<Supervisor>, task: Task, handle: Handle) -> Self {
        let step = task.step;
        let (stop, ordered) = watch::channel(None);
        let dir = step_dir(&supervisor.layout.run(task.run.id.as_str()), step);
        let work = Work {
            supervisor,
            task,
            dir,
            handle,
            stop: ordered,
            tries: 0,
            has_met: false,
            ending: None,
            baseline: None,
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
    supervisor: Arc<Supervisor>,
    task: Task,
    dir: AttemptDir,
    handle: Handle,
    stop: watch::Receiver<Option<StopMode>>,
    tries: u32,
    /// True once this daemon has talked with the step's shim.
    has_met: bool,
    /// What was found when the main process had ended.
    ending: Option<Ending>,
    /// The workspace as a loop's first attempt finds it.
    baseline: Option<String>,
}

/// Where a step has its files.
pub(crate) fn step_dir(run: &RunDir, step: Step) -> AttemptDir {
    match step {
        Step::Attempt { turn, attempt } => run.attempt(turn, attempt),
        Step::Errand { errand } => run.errand(errand),
    }
}

/// What is there of a step.
enum Sight {
    /// A shim answered.
    Met(Session),
    /// A shim holds the lock and did not answer.
    Silent,
    /// Nobody holds the lock; this is what was written.
    Left(Vec<Record>),
}

impl Work {
    async fn keep(mut self) {
        if self.task.boot != self.supervisor.world.boot {
            return self.keep_rebooted().await;
        }
        let mut retry_in = FIRST_RETRY;
        loop {
            match self.look().await {
                Ok(Sight::Met(session)) => {
                    retry_in = FIRST_RETRY;
                    self.meet(session).await;
                }
                Ok(Sight::Left(records)) if !records::is_begun(&records) => {
                    match self.launch().await {
                        Ok(Some(session)) => self.meet(session).await,
                        Ok(None) if self.tries < PATIENCE => self.tries += 1,
                        Ok(None) => self.give_up("no shim answers").await,
                        Err(error) if is_full(&error) => {
                            self.say_trouble("disk_full", error.to_string()).await;
                        }
                        // What the step is given cannot be made, and will not be next time either.
                        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                            self.fence(NeverStarted::BadSpec, error.to_string()).await;
                        }
                        Err(error) => self.give_up(&error.to_string()).await,
                    }
                }
                Ok(Sight::Left(records)) => return self.keep_left(records).await,
                Ok(Sight::Silent) => {
                    self.note_silence("its shim is alive and does not answer").await;
                }
                Err(unreadable) => {
                    self.say_trouble("unreadable", unreadable.to_string()).await;
                    // How it ended cannot be known; who is alive of it can, once they are to be gone.
                    if self.stop.borrow_and_update().is_some() {
                        return orphan::keep(self, Vec::new()).await;
                    }
                }
            }
            tokio::select! {
                () = tokio::time::sleep(retry_in) => {}
                Ok(()) = self.stop.changed() => {}
            }
            retry_in = (retry_in * 2).min(LAST_RETRY);
        }
    }

    async fn look(&self) -> Result<Sight, records::Unreadable> {
        if let Ok(session) = Session::connect(&self.dir.socket(), self.supervisor.epoch).await {
            return Ok(Sight::Met(session));
        }
        Ok(match launch::left(&self.dir)? {
            Some(records) => Sight::Left(records),
            None => Sight::Silent,
        })
    }

    async fn note_silence(&mut self, message: &str) {
        self.tries += 1;
        if self.tries == PATIENCE {
            self.say_trouble("unreachable", message).await;
        }
    }

    /// Another boot: what was written is all there is, and no process is looked for.
    async fn keep_rebooted(&mut self) {
        match records::read(&self.dir.events()) {
            Ok(records) => self.report(Custody::Rebooted, &records, 0).await,
            Err(unreadable) => {
                self.say_trouble("unreadable", unreadable.to_string()).await;
                if self.stop.wait_for(Option::is_some).await.is_ok() {
                    self.report(Custody::Rebooted, &[], 0).await;
                }
            }
        }
    }

    /// The shim is gone and these are its records.
    async fn keep_left(mut self, records: Vec<Record>) {
        self.say_shim(None).await;
        self.say_no_trouble().await;
        if records::is_over(&records) {
            return self.report(Custody::Nobody, &records, 0).await;
        }
        match records::identity(&records) {
            None => self.report(Custody::NeverHeld, &records, 0).await,
            Some(_) => orphan::keep(self, records).await,
        }
    }

    /// No shim can be had. That nothing ran is written down where a late shim would read it, and the next look
    /// finds it there.
    async fn give_up(&self, why: &str) {
        self.fence(NeverStarted::NoResources, format!("cannot start a shim: {why}")).await;
    }

    async fn fence(&self, code: NeverStarted, why: String) {
        let at_ms = self.supervisor.world.now().0;
        tracing::error!(run = %self.task.run.id, %why, "step not launched");
        if let Err(error) = launch::fence(&self.dir, at_ms, code, why) {
            let code = if is_full(&error) { "disk_full" } else { "unreadable" };
            self.say_trouble(code, error.to_string()).await;
        }
    }

    async fn report(&mut self, custody: Custody, records: &[Record], stops_before: usize) {
        let report = records::report(self.task.step, custody, records, stops_before);
        self.post_report(report).await;
    }

    /// Posts a report, with what was found at the end if there is one.
    async fn post_report(&mut self, mut report: outlast_engine::Report) {
        self.look_at_end(&mut report).await;
        records::in_our_time(&mut report, &self.supervisor.world);
        let input = Input::Reported(Box::new(report));
        self.post(Message::Input { input, done: None }).await;
    }

    async fn say_trouble(&self, code: &str, message: impl Into<String>) {
        let trouble = self.supervisor.trouble(code, message);
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

fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
}
