//! Links that answer a question from a notice, for sinks that may have them.
//!
//! The same notice has the same links however often it is told: they are made of the question and its time.

use outlast_engine::{Asked, Decision, RunId};
use outlast_wire::api;
use outlast_workflow::notify::Sink;

use super::body::Telling;
use crate::answer_links::{AnswerLink, LASTS_MS};
use crate::ground::Ground;

/// The telling with its links; `None` if it has none.
pub(super) fn of(
    ground: &Ground,
    (name, sink): (&str, &Sink),
    telling: &Telling,
) -> Option<Telling> {
    if !sink.actions {
        return None;
    }
    let base = ground.settings.current().ok()?.web.public_url.clone()?;
    let notice = telling.notice()?;
    let asks = notice.data.asks.as_ref()?;
    let told: jiff::Timestamp = notice.timestamp.parse().ok()?;
    let until_ms = u64::try_from(told.as_millisecond()).ok()?.saturating_add(LASTS_MS);
    let run = RunId(notice.data.run.clone());
    let press = |decision| {
        let sink = name.to_owned();
        let link = AnswerLink { run: run.clone(), seq: asks.seq, decision, until_ms, sink };
        match link.signed(&ground.tokens) {
            Ok(token) => Some(format!("{base}/a/{token}")),
            Err(error) => {
                tracing::error!(%error, "a notice goes without its links");
                None
            }
        }
    };
    // A yes or a no is no answer to what a model wants to know.
    let is_decided = asks.kind != Asked::Question.word();
    let links = api::NoticeLinks {
        approve: is_decided.then(|| press(Decision::Approve)).flatten(),
        deny: is_decided.then(|| press(Decision::Deny)).flatten(),
        open: format!("{base}/runs/{run}"),
    };
    Some(telling.linked(links))
}
