//! What keeps a trigger from hearing what comes, written down, and when it tries again.

use std::sync::Arc;

use outlast_engine::Time;
use outlast_store::{Error, TriggerChange};

use super::change;
use super::progress::Progress;
use crate::api::error::ApiError;
use crate::supervisor::{Leaving, Supervisor};

/// Why a trigger cannot go on just now.
pub(super) struct Failure {
    pub(super) code: String,
    pub(super) message: String,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let ApiError(refusal) = error.into();
        Self { code: refusal.code.to_owned(), message: refusal.message }
    }
}

impl From<ApiError> for Failure {
    fn from(ApiError(refusal): ApiError) -> Self {
        Self { code: refusal.code.to_owned(), message: refusal.message }
    }
}

/// True if another daemon has taken over.
pub(super) fn is_fenced(supervisor: &Supervisor, failure: &Failure) -> bool {
    let is_fenced = failure.code == "daemon_leaving";
    if is_fenced {
        supervisor.leave(Leaving::Fenced);
    }
    is_fenced
}

/// Says what keeps the trigger, and when it is tried again.
pub(super) async fn failed(
    supervisor: &Arc<Supervisor>,
    name: &str,
    failure: Failure,
    least_ms: u64,
) -> Option<Time> {
    if is_fenced(supervisor, &failure) {
        return None;
    }
    let now = supervisor.world.now();
    let trouble = supervisor.trouble(&failure.code, failure.message);
    let progress = supervisor.triggers.with(name, |entry| {
        let is_news = entry.trouble.as_ref().is_none_or(|known| known.message != trouble.message);
        if is_news {
            let (code, message) = (&trouble.code, &trouble.message);
            tracing::error!(trigger = name, code, message, "nothing can be heard of what comes");
            entry.trouble = Some(trouble);
        }
        entry.progress = entry.progress.failed(now, least_ms);
        entry.progress
    })?;
    save(supervisor, name, progress).await;
    progress.retry_at()
}

/// Nothing keeps the trigger any more.
pub(super) async fn recovered(supervisor: &Arc<Supervisor>, name: &str) {
    let progress = supervisor.triggers.with(name, |entry| {
        entry.trouble = None;
        let had_failed = entry.progress.failures > 0;
        entry.progress = entry.progress.succeeded();
        had_failed.then_some(entry.progress)
    });
    if let Some(progress) = progress.flatten() {
        save(supervisor, name, progress).await;
    }
}

async fn save(supervisor: &Arc<Supervisor>, name: &str, progress: Progress) {
    let state = Some(progress.json());
    let order = TriggerChange::Update { trigger: name.to_owned(), spec: None, state, paused: None };
    if let Err(error) = change(supervisor, order).await {
        tracing::error!(trigger = name, %error, "cannot write down how far it has come");
    }
}
