//! News to a run: brought to its conductor, durable before it is answered, and refused with a reason.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{Input, LONGEST_MESSAGE, LONGEST_ORDER_ID, Run, RunId};
use outlast_wire::api::{ReportUsage, Trouble};
use outlast_wire::codes::Code;

use super::find::snapshot_of;
use crate::recovery;
use crate::refusal::{Answer, Refusal, bad_request};
use crate::supervisor::Supervisor;
use crate::world;

/// How long news may take to reach a journal that cannot be written.
const DURABLE_WITHIN: Duration = Duration::from_secs(10);

/// More than this, in tokens or in dollars, is a mistake and no report.
const MOST_TOKENS: u64 = 1_000_000_000_000_000;
const MOST_USD_MICROS: u64 = 1_000_000_000_000_000;

/// What an attempt says that it has used up.
pub(crate) fn reported(asked: &ReportUsage) -> Answer<outlast_engine::Usage> {
    let tokens = |count: Option<u64>| match count {
        Some(count) if count > MOST_TOKENS => {
            Err(bad_request(format!("{count} tokens are too many to be true")))
        }
        count => Ok(count),
    };
    let micros = |usd: f64| {
        let text = format!("{usd:.6}");
        let micros =
            outlast_workflow::money::micros(&text).filter(|micros| *micros <= MOST_USD_MICROS);
        micros.ok_or_else(|| bad_request(format!("{usd} is not an amount in US dollars")))
    };
    let usage = outlast_engine::Usage {
        input_tokens: tokens(asked.input_tokens)?,
        output_tokens: tokens(asked.output_tokens)?,
        cached_tokens: tokens(asked.cached_tokens)?,
        cost_usd_micros: asked.cost_usd.map(micros).transpose()?,
    };
    if usage == outlast_engine::Usage::default() {
        return Err(bad_request("there is no usage in it".to_owned()));
    }
    Ok(usage)
}

/// Brings news to a run, and waits until the journal has it. Answers with the run as the news left it: whether
/// it was taken is for the caller to see.
pub(crate) async fn tell(
    supervisor: &Arc<Supervisor>,
    id: &RunId,
    input: Input,
) -> Answer<Arc<Run>> {
    let Some(handle) = supervisor.handle(id) else {
        if supervisor.restarts.is_lost(id) {
            return Err(lost(supervisor, id));
        }
        return Ok(snapshot_of(supervisor, id).await?.run);
    };
    match tokio::time::timeout(DURABLE_WITHIN, handle.tell(input)).await {
        Ok(Some(after)) => Ok(after),
        // A conductor goes when its run is over. One that died before that has written nothing down.
        Ok(None) => {
            let run = snapshot_of(supervisor, id).await?.run;
            if run.is_open() { Err(restarting(id)) } else { Ok(run) }
        }
        Err(_elapsed) => Err(not_durable(id, supervisor.trouble_of(id).as_ref())),
    }
}

/// The journal did not take the news in time. The conductor has the news and may still write it.
fn not_durable(id: &RunId, trouble: Option<&Trouble>) -> Refusal {
    let cause = trouble.map_or("the run does not answer", |trouble| trouble.message.as_str());
    if trouble.is_some_and(|trouble| trouble.code == Code::DiskFull) {
        let message = format!("this could not be written to the journal of {id}: {cause}");
        return Refusal::new(Code::DiskFull, message)
            .hint(format!("it will be as soon as there is space:\noutlast show {id}"));
    }
    let seconds = DURABLE_WITHIN.as_secs();
    let message = format!("the journal of {id} did not take this within {seconds} s: {cause}");
    Refusal::new(Code::TimedOut, message)
        .hint(format!("it may be written later:\noutlast show {id}"))
}

/// Why a run that has no conductor takes no orders.
fn lost(supervisor: &Supervisor, id: &RunId) -> Refusal {
    match supervisor.trouble_of(id) {
        Some(trouble) if trouble.code == recovery::BEHIND => {
            let message = format!("run {id} takes no orders yet: {}", trouble.message);
            Refusal::new(Code::JournalBehind, message)
                .hint(format!("take it on to where its directory is:\noutlast recover {id}"))
        }
        _ => restarting(id),
    }
}

/// Its conductor has died, or it cannot be read: what is said now would reach no journal.
fn restarting(id: &RunId) -> Refusal {
    Refusal::new(Code::Busy, format!("run {id} is restarting; nothing was written down"))
        .hint("try again, or look at what is wrong:\noutlast doctor")
}

/// What was said reached the run, and the journal does not have it.
pub(crate) fn not_taken(id: &RunId) -> Refusal {
    Refusal::new(Code::NotTaken, format!("run {id} changed in that moment and did not take it"))
        .hint(format!("look at it, and try again:\noutlast show {id}"))
}

/// The id of an order or a message: the client's, or one of our own.
pub(crate) fn order_id(given: Option<String>) -> Answer<String> {
    let Some(id) = given else { return Ok(RunId::from_random(world::random()?).0) };
    let is_fit = !id.is_empty() && id.len() <= LONGEST_ORDER_ID;
    if !is_fit || id.chars().any(char::is_control) {
        let message = format!("an id has 1 to {LONGEST_ORDER_ID} bytes and no control characters");
        return Err(bad_request(message));
    }
    Ok(id)
}

pub(crate) fn check_text(text: &str) -> Answer<&str> {
    if text.trim().is_empty() {
        return Err(bad_request("a message needs text".to_owned()));
    }
    if text.len() > LONGEST_MESSAGE {
        let refusal = Refusal::new(
            Code::BadRequest,
            format!("a message of {} bytes is longer than {LONGEST_MESSAGE}", text.len()),
        );
        return Err(refusal.hint("put it into a file of the workspace and name that"));
    }
    Ok(text)
}

pub(crate) fn refuse_ended(run: &Run) -> Answer<()> {
    if !run.has_ended() {
        return Ok(());
    }
    let message = format!("run {} has ended: {}", run.id, run.state.name().word());
    let verb = if run.was_ended_by_budget() { "resume" } else { "rerun" };
    Err(Refusal::new(Code::HasEnded, message).hint(format!("outlast {verb} {}", run.id)))
}

pub(crate) fn refuse_full(run: &Run) -> Answer<()> {
    if !run.inbox.is_full() {
        return Ok(());
    }
    let message = format!("the inbox of {} holds {} messages", run.id, run.inbox.unread.len());
    Err(Refusal::new(Code::InboxFull, message).hint("its next turn takes them"))
}

#[cfg(test)]
mod tests {
    use outlast_wire::words::TroubleCode;

    use super::*;

    #[test]
    fn news_that_waits_for_a_locked_journal_is_not_said_to_wait_for_space() {
        let refused = |trouble: Option<(Code, &str)>| {
            let trouble = trouble.map(|(code, message)| Trouble {
                code: TroubleCode::Of(code).into(),
                message: message.to_owned(),
                since: String::new(),
            });
            let refusal = not_durable(&RunId("k3m".to_owned()), trouble.as_ref());
            (refusal.code, refusal.message, refusal.hint.is_some_and(|it| it.contains("space")))
        };
        let locked = "the journal of k3m did not take this within 10 s: it is locked".to_owned();
        let silent = "the journal of k3m did not take this within 10 s: the run does not answer";
        let full = "this could not be written to the journal of k3m: no room".to_owned();
        assert_eq!(
            refused(Some((Code::JournalLocked, "it is locked"))),
            (Code::TimedOut, locked, false)
        );
        assert_eq!(refused(None), (Code::TimedOut, silent.to_owned(), false));
        assert_eq!(refused(Some((Code::DiskFull, "no room"))), (Code::DiskFull, full, true));
    }
}
