//! A sign of life that another service waits for: only supervision notices that supervision is gone.
//!
//! Asks for one URL at each interval while this daemon is ready, and is silent otherwise: silence is the alarm.
//! Off unless the config names a URL, and then there is no timer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_workflow::Ping;

use super::Tasks;
use crate::lanes::Lane;
use crate::{http, view};

const ANSWER_WITHIN: Duration = Duration::from_secs(10);

/// How the last ping went, for `doctor`. The URL is not told: it is the secret.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum PingStatus {
    #[default]
    Off,
    Answered {
        at: String,
    },
    /// Since the first in a row that got no good answer.
    Failing {
        since: String,
        error: String,
    },
}

#[derive(Default)]
pub(crate) struct Pinging {
    status: Mutex<PingStatus>,
}

impl Pinging {
    pub(crate) fn status(&self) -> PingStatus {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn went(&self, at: String, answer: Result<(), String>) {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        let next = match (answer, &*status) {
            (Ok(()), _) => PingStatus::Answered { at },
            (Err(error), PingStatus::Failing { since, .. }) => {
                PingStatus::Failing { since: since.clone(), error }
            }
            (Err(error), PingStatus::Off | PingStatus::Answered { .. }) => {
                tracing::warn!(%error, "the ping is not answered");
                PingStatus::Failing { since: at, error }
            }
        };
        *status = next;
    }

    fn off(&self) {
        *self.status.lock().unwrap_or_else(PoisonError::into_inner) = PingStatus::Off;
    }
}

/// Pings as the config says, as long as it says so.
pub(super) async fn follow(tasks: &Arc<Tasks>) {
    super::with_each(
        tasks,
        |config| config.ping.clone(),
        async |wanted: Option<Ping>| {
            tasks.operator.pinging.off();
            if let Some(wanted) = wanted {
                ping(tasks, &wanted).await;
            }
        },
    )
    .await;
}

async fn ping(tasks: &Arc<Tasks>, wanted: &Ping) {
    let pinging = &tasks.operator.pinging;
    let at = || view::rfc3339(tasks.ground.world.now());
    if let Some(why) = http::refuse(&wanted.url) {
        return pinging.went(at(), Err(format!("ping.url cannot be used: {why}")));
    }
    let every = Duration::from_millis(wanted.every_ms);
    loop {
        let answer = match unready(tasks).await {
            Some(why) => Err(format!("no ping was sent, because this daemon is not ready: {why}")),
            None => judged(http::get(&wanted.url, ANSWER_WITHIN).await),
        };
        pinging.went(at(), answer);
        tokio::time::sleep(every).await;
    }
}

fn judged(answer: Result<http::Answer, String>) -> Result<(), String> {
    match answer?.status {
        200..=299 => Ok(()),
        status => Err(format!("answered with status {status}")),
    }
}

/// What keeps this daemon from new work, if something does.
async fn unready(tasks: &Arc<Tasks>) -> Option<String> {
    let looked_at = tasks.clone();
    let obstacles = Lane::Surveys.run(move || (looked_at.above.obstacles)()).await;
    match obstacles {
        Ok(obstacles) => obstacles.into_iter().next().map(|obstacle| obstacle.message),
        Err(error) => Some(error.to_string()),
    }
}
