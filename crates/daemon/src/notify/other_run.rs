//! Another run, which gets a message: it is durable in that run's journal, known again by the notice's id, and
//! wakes a run that rests.

use std::time::Duration;

use outlast_engine::{LONGEST_MESSAGE, RunId};
use outlast_wire::codes::Code;
use outlast_workflow::notify::Level;

use super::body::Telling;
use super::sink_workers::SinkWorkers;
use super::{Message, Outcome, Put, target, text};

pub(super) async fn send(
    workers: &SinkWorkers,
    run: &str,
    telling: &Telling,
    within: Duration,
) -> Outcome {
    let id = match target::run_meant(&*workers.ground.store, run) {
        Ok(id) => RunId(id),
        Err(refusal) if refusal.code == Code::JournalUnusable => {
            return Outcome::failed(refusal.message);
        }
        Err(refusal) => return Outcome::Hopeless { why: refusal.message },
    };
    if hears_as_parent(workers, &id, telling) {
        return Outcome::Delivered { said: format!("run {id} hears of it as its parent") };
    }
    let Some(inbox) = workers.inbox.upgrade() else {
        return Outcome::failed("this daemon is stopping");
    };
    let message = Message {
        id: telling.id.clone(),
        from: format!("run {}", telling.run),
        text: words(telling),
    };
    let Ok(put) = tokio::time::timeout(within, inbox.put(&id, message)).await else {
        return Outcome::failed(format!("the journal of run {id} cannot be written"));
    };
    match put {
        Put::There => delivered(&id),
        Put::Ended => ended(&id),
        Put::Unreadable => Outcome::failed(format!("run {id} cannot be read")),
        Put::Full => Outcome::failed(format!("the inbox of run {id} is full")),
        Put::NotTaken => Outcome::failed(format!("run {id} has not taken it")),
    }
}

/// True for the end of a child: the child itself tells its parent of that.
fn hears_as_parent(workers: &SinkWorkers, id: &RunId, telling: &Telling) -> bool {
    let row = workers.ground.store.row(&RunId(telling.run.clone())).ok().flatten();
    let is_child = row.is_some_and(|row| row.parent.as_ref() == Some(id));
    is_child && Level::Done.wants(&telling.kind)
}

fn delivered(id: &RunId) -> Outcome {
    Outcome::Delivered { said: format!("in the inbox of run {id}") }
}

fn ended(id: &RunId) -> Outcome {
    Outcome::Hopeless { why: format!("run {id} has ended") }
}

fn words(telling: &Telling) -> String {
    let text = format!("{} ({})\n{}", telling.title(), telling.run, telling.message());
    text::clipped(&text, LONGEST_MESSAGE)
}
