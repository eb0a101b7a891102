//! What keeps a trigger from hearing what comes, written down, and when it tries again.

use std::sync::Arc;

use outlast_engine::Time;
use outlast_store::{Error, TriggerChange};
use outlast_wire::codes::Code;
use outlast_wire::words::TroubleCode;

use super::progress::Progress;
use super::{Triggers, change};
use crate::leaving::Leaving;
use crate::refusal::Refusal;

/// Why a trigger cannot go on just now.
pub(super) struct Failure {
    pub(super) code: TroubleCode,
    pub(super) message: String,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let refusal = Refusal::from(error);
        Self { code: refusal.code.into(), message: refusal.message }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self { code: refusal.code.into(), message: refusal.message }
    }
}

/// True if another daemon has taken over.
pub(super) fn is_fenced(triggers: &Triggers, failure: &Failure) -> bool {
    let is_fenced = failure.code == TroubleCode::Of(Code::DaemonLeaving);
    if is_fenced {
        triggers.ground.leave(Leaving::Fenced);
    }
    is_fenced
}

/// Says what keeps the trigger, and when it is tried again.
pub(super) async fn failed(
    triggers: &Arc<Triggers>,
    name: &str,
    failure: Failure,
    least_ms: u64,
) -> Option<Time> {
    if is_fenced(triggers, &failure) {
        return None;
    }
    let now = triggers.ground.world.now();
    let trouble = triggers.ground.trouble(failure.code, failure.message);
    let progress = triggers.table.with(name, |entry| {
        let is_news = entry.trouble.as_ref().is_none_or(|known| known.message != trouble.message);
        if is_news {
            let (code, message) = (&trouble.code, &trouble.message);
            tracing::error!(trigger = name, %code, message, "trigger source unavailable");
            entry.trouble = Some(trouble);
        }
        entry.progress = entry.progress.failed(now, least_ms);
        entry.progress
    })?;
    save(triggers, name, progress).await;
    progress.retry_at()
}

/// Nothing keeps the trigger any more.
pub(super) async fn recovered(triggers: &Arc<Triggers>, name: &str) {
    let progress = triggers.table.with(name, |entry| {
        entry.trouble = None;
        let had_failed = entry.progress.failures > 0;
        entry.progress = entry.progress.succeeded();
        had_failed.then_some(entry.progress)
    });
    if let Some(progress) = progress.flatten() {
        save(triggers, name, progress).await;
    }
}

async fn save(triggers: &Arc<Triggers>, name: &str, progress: Progress) {
    let state = Some(progress.json());
    let order = TriggerChange::Update { trigger: name.to_owned(), spec: None, state, paused: None };
    if let Err(error) = change(triggers, order).await {
        tracing::error!(trigger = name, %error, "cannot save how far the trigger has come");
    }
}
