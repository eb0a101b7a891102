//! When a run may start, and the queue that it starts in.

use std::collections::BTreeMap;

use outlast_engine::{After, Queue, RunId, Start, Time};
use outlast_wire::api::{AskedQueue, AskedStart, CreateRun};
use outlast_wire::codes::Code;

use crate::refusal::{Answer, Refusal, bad_request};

/// The longest name of a queue.
const LONGEST_NAME: usize = 100;

/// The run that has to end first.
pub(super) struct Before {
    pub(super) run: RunId,
    pub(super) name: Option<String>,
}

/// When a run may start; `before` is the run of `after`.
pub(super) fn start(asked: &AskedStart, before: Option<Before>, now: Time) -> Answer<Start> {
    let at = match (&asked.at, asked.delay_ms) {
        (Some(_), Some(_)) => {
            return Err(bad_request("a run has one time to start: at or delay_ms"));
        }
        (Some(text), None) => Some(start_time(text, now)?),
        (None, Some(ms)) if ms > LONGEST_DELAY_MS => return Err(too_long(ms)),
        (None, Some(ms)) => Some(now.plus_ms(ms)),
        (None, None) => None,
    };
    let after = before.map(|Before { run, name }| After { run, name, any: asked.after_any });
    Ok(Start { at, after })
}

/// Ten years. A run that waits longer was asked for by mistake.
const LONGEST_DELAY_MS: u64 = 3650 * 24 * 60 * 60 * 1000;

fn too_long(ms: u64) -> Refusal {
    let asked = outlast_engine::duration::short(ms);
    Refusal::new(Code::BadRequest, format!("a delay of {asked} is longer than ten years (3650d)"))
        .hint("outlast run --delay 8h -- COMMAND")
}

/// How far a clock of the client may be behind ours.
const CLOCK_DIFFERENCE_MS: u64 = 60_000;

fn start_time(text: &str, now: Time) -> Answer<Time> {
    let at: Option<jiff::Timestamp> = text.parse().ok();
    let ms = at.and_then(|at| u64::try_from(at.as_millisecond()).ok());
    let Some(ms) = ms else {
        return Err(Refusal::new(Code::BadRequest, format!("{text:?} is not a time"))
            .hint("RFC 3339, such as 2026-11-18T03:00:00Z"));
    };
    if ms.saturating_add(CLOCK_DIFFERENCE_MS) < now.0 {
        let message = format!("{text} is in the past");
        return Err(Refusal::new(Code::BadRequest, message).hint("leave it out to start now"));
    }
    Ok(Time(ms))
}

/// The label that every run of a queue has, so that lists, budgets and `concurrency.per_label` can name the queue.
const QUEUE_LABEL: &str = "queue";

pub(super) fn queue(asked: Option<&AskedQueue>, rules: Queue) -> Queue {
    let Some(AskedQueue { name, slots }) = asked else { return rules };
    Queue { name: Some(name.clone()), most_of_queue: *slots, ..rules }
}

pub(super) fn labels(asked: &CreateRun) -> BTreeMap<String, String> {
    let queue = asked.queue.as_ref().map(|queue| (QUEUE_LABEL.to_owned(), queue.name.clone()));
    asked.labels.clone().into_iter().chain(queue).collect()
}

pub(super) fn check_queue(asked: &CreateRun) -> Answer<()> {
    let Some(AskedQueue { name, slots }) = &asked.queue else { return Ok(()) };
    if let Some(label) = asked.labels.get(QUEUE_LABEL).filter(|label| *label != name) {
        let message =
            format!("the queue is {name}, and the label {QUEUE_LABEL}={label} says another");
        return Err(Refusal::new(Code::BadRequest, message).hint(format!(
            "leave --label {QUEUE_LABEL}={label} out: a run of a queue has its label"
        )));
    }
    let is_plain = |char: char| char.is_alphanumeric() || matches!(char, '.' | '_' | '-');
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_plain) {
        return Err(Refusal::new(Code::BadRequest, format!("{name:?} is not a name for a queue"))
            .hint(format!("letters, digits, `.` `_` `-`, up to {LONGEST_NAME} bytes")));
    }
    if *slots == Some(0) {
        return Err(Refusal::new(Code::BadRequest, "a queue of 0 slots would start nothing")
            .hint(format!("--queue {name}:1")));
    }
    Ok(())
}
