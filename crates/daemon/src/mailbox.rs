//! The way to one open run: the messages that its conductor takes, and the snapshot that it publishes.
//!
//! Plain channels and data, so that a task can hold one end without knowing the conductor at the other.

use std::sync::Arc;

use outlast_engine::{Input, Run, StopMode};
use outlast_wire::api::Trouble;
use tokio::sync::{Notify, mpsc, oneshot, watch};

use crate::activity::AgentWatch;
use crate::sight::Sight;

/// What a conductor is told.
pub(crate) enum Message {
    Input {
        input: Input,
        /// Told the run as the news left it, once that is durable.
        done: Option<oneshot::Sender<Arc<Run>>>,
    },
    /// The shim that holds the attempt, while one does.
    Shim { pid: Option<u32> },
    /// What keeps the task of the step from its work, or no longer does.
    Trouble { trouble: Option<Trouble> },
    /// The task of a step that an earlier daemon launched has seen what became of it, and has said so before this.
    Looked,
}

/// A run as every task may see it.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) run: Arc<Run>,
    pub(crate) shim_pid: Option<u32>,
    pub(crate) trouble: Option<Trouble>,
    pub(crate) sight: Sight,
}

impl Snapshot {
    pub(crate) fn of(run: &Run) -> Self {
        let sight = Sight::of(run);
        Self { run: Arc::new(run.clone()), shim_pid: None, trouble: None, sight }
    }
}

/// The way to a run's conductor.
#[derive(Clone)]
pub(crate) struct Handle {
    pub(crate) mailbox: mpsc::Sender<Message>,
    pub(crate) snapshot: watch::Receiver<Snapshot>,
    pub(crate) output: Arc<OutputWatch>,
    /// What its agent is at, for clients that look.
    pub(crate) agent: Arc<AgentWatch>,
    /// The order to stop that was given last, for a conductor that is kept from its mailbox by a full disk.
    pub(crate) stop_asked: Arc<watch::Sender<Option<StopMode>>>,
}

impl Handle {
    /// Brings news and waits until the journal has it; answers with the run as the news left it. `None` if the
    /// conductor is gone.
    pub(crate) async fn tell(&self, input: Input) -> Option<Arc<Run>> {
        let (done, told) = oneshot::channel();
        self.mailbox.send(Message::Input { input, done: Some(done) }).await.ok()?;
        told.await.ok()
    }
}

/// How much output there is, for those who follow it.
#[derive(Debug, Default)]
pub(crate) struct OutputWatch {
    /// How many follow.
    pub(crate) followers: watch::Sender<usize>,
    pub(crate) bytes: watch::Sender<u64>,
    /// A client wants to know how the step is doing.
    pub(crate) asked: Notify,
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
