//! Traces of what runs did, for a collector of OTLP over HTTP.
//!
//! Spans are derived from the journal once their end stands there, by whichever daemon wrote it. Best effort and
//! never in the way: what does not fit the queue, or is refused, is counted as lost.

mod encode;
mod export;
mod span;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_engine::{Event, Fact, Purpose, Run, RunId};
use tokio::sync::Notify;

use super::Tasks;

/// Ends that may wait to be sent.
const MOST_WAITING: usize = 4096;

/// An event that ends a span.
#[derive(Debug, Clone, PartialEq, Eq)]
struct End {
    run: RunId,
    seq: u64,
}

/// How it stands with what is sent, for `doctor`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ExportStatus {
    pub(crate) sent: u64,
    pub(crate) lost: u64,
    /// Why the last batch was not taken.
    pub(crate) trouble: Option<String>,
}

#[derive(Default)]
pub(crate) struct Queue {
    queue: Mutex<Queue>,
    news: Notify,
}

#[derive(Default)]
struct Queue {
    /// Nothing is kept for a collector that the config does not name. Until it has been read, it may name one.
    is_off: bool,
    waiting: Vec<End>,
    status: ExportStatus,
}

impl Queue {
    pub(super) fn observe(&self, before: &Run, events: &[Event]) {
        let mut queue = self.lock();
        if queue.is_off {
            return;
        }
        for event in events.iter().filter(|event| ends_span(event, before)) {
            if queue.waiting.len() >= MOST_WAITING {
                queue.status.lost += 1;
                continue;
            }
            queue.waiting.push(End { run: before.id.clone(), seq: event.seq });
        }
        if !queue.waiting.is_empty() {
            self.news.notify_one();
        }
    }

    pub(super) fn status(&self) -> ExportStatus {
        self.lock().status.clone()
    }

    fn wanted(&self, is_wanted: bool) {
        let mut queue = self.lock();
        queue.is_off = !is_wanted;
        if !is_wanted {
            queue.waiting.clear();
        }
    }

    /// Up to so many ends, by their runs.
    fn take(&self, most: usize) -> BTreeMap<RunId, Vec<u64>> {
        let mut queue = self.lock();
        let count = queue.waiting.len().min(most);
        let mut by_run: BTreeMap<RunId, Vec<u64>> = BTreeMap::new();
        for End { run, seq } in queue.waiting.drain(..count) {
            by_run.entry(run).or_default().push(seq);
        }
        by_run
    }

    fn sent(&self, spans: usize) {
        let mut queue = self.lock();
        queue.status.sent += spans as u64;
        queue.status.trouble = None;
    }

    fn lost(&self, spans: usize, why: String) {
        let mut queue = self.lock();
        queue.status.lost += spans as u64;
        if queue.status.trouble.is_none() {
            tracing::warn!(%why, spans, "traces are not taken");
        }
        queue.status.trouble = Some(why);
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn ends_span(event: &Event, before: &Run) -> bool {
    match &event.fact {
        Fact::AttemptEnded { .. } | Fact::RunEnded { .. } => true,
        Fact::ErrandEnded { errand, .. } => {
            let known = before.errand.as_ref().filter(|known| known.number == *errand);
            known.is_none_or(|known| matches!(known.purpose, Purpose::Tool { .. }))
        }
        _ => false,
    }
}

/// Sends what has ended, as the config says; never ends.
pub(super) async fn export(tasks: &Arc<Tasks>) {
    super::with_each(
        tasks,
        |config| config.otlp.clone(),
        async |endpoint: Option<String>| {
            tasks.operator.traces.wanted(endpoint.is_some());
            if let Some(endpoint) = endpoint {
                export::to(tasks, &endpoint).await;
            }
        },
    )
    .await;
}
