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
    inner: Mutex<Inner>,
    news: Notify,
}

#[derive(Default)]
struct Inner {
    /// Nothing is kept for a collector that the config does not name. Until it has been read, it may name one.
    is_off: bool,
    waiting: Vec<End>,
    status: ExportStatus,
}

impl Queue {
    pub(super) fn observe(&self, before: &Run, events: &[Event]) {
        let mut inner = self.lock();
        if inner.is_off {
            return;
        }
        for event in events.iter().filter(|event| ends_span(event, before)) {
            if inner.waiting.len() >= MOST_WAITING {
                inner.status.lost += 1;
                continue;
            }
            inner.waiting.push(End { run: before.id.clone(), seq: event.seq });
        }
        if !inner.waiting.is_empty() {
            self.news.notify_one();
        }
    }

    pub(super) fn status(&self) -> ExportStatus {
        self.lock().status.clone()
    }

    fn wanted(&self, is_wanted: bool) {
        let mut inner = self.lock();
        inner.is_off = !is_wanted;
        if !is_wanted {
            inner.waiting.clear();
        }
    }

    /// Up to so many ends, by their runs.
    fn take(&self, most: usize) -> BTreeMap<RunId, Vec<u64>> {
        let mut inner = self.lock();
        let count = inner.waiting.len().min(most);
        let mut by_run: BTreeMap<RunId, Vec<u64>> = BTreeMap::new();
        for End { run, seq } in inner.waiting.drain(..count) {
            by_run.entry(run).or_default().push(seq);
        }
        by_run
    }

    fn sent(&self, spans: usize) {
        let mut inner = self.lock();
        inner.status.sent += spans as u64;
        inner.status.trouble = None;
    }

    fn lost(&self, spans: usize, why: String) {
        let mut inner = self.lock();
        inner.status.lost += spans as u64;
        if inner.status.trouble.is_none() {
            tracing::warn!(%why, spans, "traces are not taken");
        }
        inner.status.trouble = Some(why);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
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
