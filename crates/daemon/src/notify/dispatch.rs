//! A sink worker for each sink while something waits for it, and none otherwise: an idle daemon has no task here.

use std::sync::{Arc, Weak};

use super::sink_worker::SinkWorker;
use super::sink_workers::SinkWorkers;
use super::{Inbox, Outcome, send, target};
use crate::ground::Ground;
use crate::refusal::Refusal;
use outlast_workflow::notify::Sink;

pub(crate) struct Dispatch {
    workers: Arc<SinkWorkers>,
}

impl Dispatch {
    pub(crate) fn new(ground: Arc<Ground>, inbox: Weak<dyn Inbox>) -> Self {
        Self { workers: Arc::new(SinkWorkers::new(ground, inbox)) }
    }

    /// Has these sinks be told what waits for them.
    pub(crate) fn wake<'s>(&self, sinks: impl IntoIterator<Item = &'s str>) {
        for sink in sinks {
            let Some(bell) = self.workers.ring(sink) else { continue };
            let worker = SinkWorker::new(self.workers.clone(), sink.to_owned(), bell);
            #[expect(
                clippy::disallowed_methods,
                reason = "a sink worker is owned by the table of sink workers and leaves it when it ends"
            )]
            let _worker = tokio::spawn(worker.tell());
        }
    }

    /// Has every sink be told for which something waits.
    pub(crate) fn wake_waiting(&self) {
        match self.workers.ground.store.waiting_sinks() {
            Ok(sinks) => self.wake(sinks.iter().map(String::as_str)),
            Err(error) => tracing::error!(%error, "cannot read the outbox"),
        }
    }

    /// Forgets what was told long ago.
    pub(crate) fn prune(&self) {
        self.workers.prune();
    }

    /// Sends a test to the sink of this name or address, and says what came of it. `dir` is where its sender is.
    pub(crate) async fn test(
        &self,
        name: &str,
        sink: &Sink,
        dir: Option<&str>,
    ) -> Result<(String, Outcome), Refusal> {
        let dir = target::dir(&self.workers.ground, name, dir);
        send::test(&self.workers, sink, &dir).await
    }
}
