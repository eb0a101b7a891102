//! The commands of polls: how many run at once, and which is next.
//!
//! Those that are due start in the order in which they became due, so that a slow tracker holds up no other for
//! longer than its own time limit.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::Time;
use outlast_wire::api::TriggerSource;
use outlast_wire::words::TroubleCode;
use tokio::task::JoinSet;

use super::agenda::Line;
use super::failure::{Failure, failed};
use super::make::spec_of;
use super::progress::Progress;
use super::{Entry, Triggers, keep, poll};

/// Commands that run at once.
const MOST_POLLS: usize = 16;
const POLL_TIMEOUT_MS: u64 = 60_000;

#[derive(Default)]
pub(super) struct Polls {
    running: JoinSet<()>,
    due: Line,
}

impl Polls {
    /// Has the trigger's command run as soon as there is room.
    pub(super) fn push(&mut self, name: &Arc<str>) {
        self.due.push(name);
    }

    /// Starts what is due, as far as there is room.
    pub(super) fn start(&mut self, triggers: &Arc<Triggers>) {
        while self.running.try_join_next().is_some() {}
        while self.running.len() < MOST_POLLS {
            let Some(name) = self.due.pop() else { return };
            // It may have been paused or removed while it stood in line.
            let begin = |entry: &mut Entry| {
                let may_begin = !entry.paused && !entry.is_polling;
                entry.is_polling |= may_begin;
                may_begin.then(|| entry.clone())
            };
            if let Some(entry) = triggers.table.with(&name, begin).flatten() {
                let now = triggers.ground.world.now();
                self.running.spawn(poll_once(triggers.clone(), entry, now));
            }
        }
    }

    /// Returns when a command has ended, and never while none runs.
    pub(super) async fn ended(&mut self) {
        if self.running.join_next().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// Asks the trigger's command once, and keeps what it says.
async fn poll_once(triggers: Arc<Triggers>, entry: Entry, now: Time) {
    let TriggerSource::Poll { every_ms, .. } = &entry.brief.source else { return };
    let name = entry.name();
    let asked = ask(&triggers, &entry, now).await;
    if !is_there(&triggers, &entry) {
        return;
    }
    match asked {
        Ok(progress) => {
            triggers.table.with(name, |entry| {
                entry.progress = progress;
                entry.trouble = None;
            });
        }
        Err(failure) => drop(failed(&triggers, name, failure, *every_ms).await),
    }
    triggers.table.with(name, |entry| entry.is_polling = false);
    triggers.table.look_at(name);
}

/// True unless the trigger was removed meanwhile, also if another has its name.
fn is_there(triggers: &Triggers, entry: &Entry) -> bool {
    triggers.table.entry(entry.name()).is_some_and(|now| now.id() == entry.id())
}

async fn ask(triggers: &Arc<Triggers>, entry: &Entry, now: Time) -> Result<Progress, Failure> {
    let TriggerSource::Poll { command, timeout_ms, .. } = &entry.brief.source else {
        return Ok(entry.progress);
    };
    let within = Duration::from_millis(timeout_ms.unwrap_or(POLL_TIMEOUT_MS));
    let spec = spec_of(triggers, entry.name()).await?;
    let printed = poll::ask(&triggers.ground, command, &spec.run, within).await;
    // A command takes its time. What it says is for the trigger that asked, and not for one that has its name now.
    if !is_there(triggers, entry) {
        return Ok(entry.progress);
    }
    let items = printed.and_then(|printed| poll::items(&printed, now));
    let items = items.map_err(|message| Failure { code: TroubleCode::PollFailed, message })?;
    let progress = Progress { cursor_ms: now.0, ..entry.progress }.succeeded();
    keep(triggers, entry.name(), items, Some(progress)).await?;
    Ok(progress)
}
