//! Batches on their way to a collector: gathered for a moment, sent, tried again a few times, then given up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{Event, RunId};
use outlast_store::Error;

use super::super::Tasks;
use super::encode;
use super::span::{self, Span};
use crate::http::{self, Post};
use crate::lanes::Lane;

/// So long others may join the first of a batch, and so many at most.
const GATHER: Duration = Duration::from_millis(500);
const MOST_IN_BATCH: usize = 512;

const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const FIRST_RETRY: Duration = Duration::from_secs(1);
const MOST_TRIES: u32 = 4;

/// How far back the beginning of a step is looked for before all of its journal is read.
const LOOK_BACK: u64 = 256;
const MOST_EVENTS: usize = 50_000_000;

/// Sends for ever. Waits without a timer while nothing ends.
pub(super) async fn to(tasks: &Arc<Tasks>, endpoint: &str) {
    let queue = &tasks.operator.traces;
    let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
    if let Some(why) = http::refuse(&url) {
        return queue.lost(0, format!("otlp.endpoint cannot be used: {why}"));
    }
    loop {
        queue.news.notified().await;
        tokio::time::sleep(GATHER).await;
        loop {
            let ends = queue.take(MOST_IN_BATCH);
            if ends.is_empty() {
                break;
            }
            send(tasks, &url, ends).await;
        }
    }
}

async fn send(tasks: &Arc<Tasks>, url: &str, ends: BTreeMap<RunId, Vec<u64>>) {
    let queue = &tasks.operator.traces;
    let reader = tasks.clone();
    let read = Lane::Surveys.run(move || read(&reader, &ends)).await;
    let spans = read.unwrap_or_default();
    if spans.is_empty() {
        return;
    }
    let post = Post { url, headers: Vec::new(), body: encode::request(&spans) };
    let mut retry_in = FIRST_RETRY;
    for tries in 1..=MOST_TRIES {
        let answer = http::post(&post, ANSWER_WITHIN).await;
        let (why, is_worth_retrying) = match answer.map(|answer| answer.status) {
            Ok(200..=299) => return queue.sent(spans.len()),
            Ok(status) => {
                let is_busy = matches!(status, 429 | 502 | 503 | 504);
                (format!("the collector answered with status {status}"), is_busy)
            }
            Err(error) => (error, true),
        };
        if tries == MOST_TRIES || !is_worth_retrying {
            return queue.lost(spans.len(), why);
        }
        tokio::time::sleep(retry_in).await;
        retry_in *= 2;
    }
}

/// What has ended, as the journals have it. A run that cannot be read has been said to be so elsewhere.
fn read(tasks: &Tasks, ends: &BTreeMap<RunId, Vec<u64>>) -> Vec<Span> {
    ends.iter().flat_map(|(run, seqs)| of_run(tasks, run, seqs).unwrap_or_default()).collect()
}

fn of_run(tasks: &Tasks, run: &RunId, seqs: &[u64]) -> Result<Vec<Span>, Error> {
    let first = seqs.iter().min().copied().unwrap_or(0);
    let after = first.saturating_sub(LOOK_BACK);
    let events = if after <= 1 {
        tasks.ground.store.events(run, 0, MOST_EVENTS)?
    } else {
        let mut events: Vec<Event> = tasks.ground.store.events(run, 0, 1)?;
        events.extend(tasks.ground.store.events(run, after, MOST_EVENTS)?);
        events
    };
    let found = span::spans(run, &events, seqs);
    if found.len() == seqs.len() || after <= 1 {
        return Ok(found);
    }
    let events = tasks.ground.store.events(run, 0, MOST_EVENTS)?;
    Ok(span::spans(run, &events, seqs))
}
