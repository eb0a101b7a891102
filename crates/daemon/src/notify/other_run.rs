//! Another run, which gets a message: it is durable in that run's journal, known again by the notice's id, and
//! wakes a run that rests.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{Input, LONGEST_MESSAGE, RunId};

use super::body::Telling;
use super::{Outcome, target, text};
use crate::supervisor::Supervisor;

pub(super) async fn send(
    supervisor: &Arc<Supervisor>,
    run: &str,
    telling: &Telling,
    within: Duration,
) -> Outcome {
    let id = match target::run_meant(supervisor, run) {
        Ok(id) => RunId(id),
        Err(refusal) if refusal.code == "journal_unusable" => {
            return Outcome::failed(refusal.message);
        }
        Err(refusal) => return Outcome::Hopeless { why: refusal.message },
    };
    if supervisor.quarantined().contains_key(&id) {
        return Outcome::failed(format!("run {id} cannot be read"));
    }
    let Some(handle) = supervisor.handle(&id) else { return ended(&id) };
    let before = handle.snapshot.borrow().run.clone();
    if before.inbox.has_had(&telling.id) {
        return delivered(&id);
    }
    if before.has_ended() {
        return ended(&id);
    }
    if before.inbox.is_full() {
        return Outcome::failed(format!("the inbox of run {id} is full"));
    }
    let message = Input::Sent {
        message: telling.id.clone(),
        from: format!("run {}", telling.run),
        text: words(telling),
        by: None,
    };
    if tokio::time::timeout(within, handle.tell(message)).await.is_err() {
        return Outcome::failed(format!("the journal of run {id} cannot be written"));
    }
    let after = handle.snapshot.borrow().run.clone();
    match after.inbox.has_had(&telling.id) {
        true => delivered(&id),
        false if after.has_ended() => ended(&id),
        false => Outcome::failed(format!("run {id} has not taken it")),
    }
}

fn delivered(id: &RunId) -> Outcome {
    Outcome::Delivered { said: format!("it is in the inbox of run {id}") }
}

fn ended(id: &RunId) -> Outcome {
    Outcome::Hopeless { why: format!("run {id} has ended") }
}

fn words(telling: &Telling) -> String {
    let text = format!("{} ({})\n{}", telling.title(), telling.run, telling.message());
    text::clipped(&text, LONGEST_MESSAGE)
}
