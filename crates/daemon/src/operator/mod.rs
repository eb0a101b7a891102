//! What the operator's scripts see: whether the daemon is ready, its metrics, pings and traces.
//!
//! Hears of what the journal has taken, and of nothing else. Decides nothing about runs and never delays one: what
//! cannot be sent at once is counted as lost. It asks the layers above through two closures ([`Above`]).

pub(crate) mod listen;
pub(crate) mod metrics;
#[cfg(feature = "otlp")]
mod otlp;
pub(crate) mod ping;
pub(crate) mod readiness;

use std::sync::Arc;

use outlast_engine::{Event, Run};
use outlast_workflow::Config;

use self::listen::Listening;
use self::metrics::Metrics;
use self::ping::Pinging;
use self::readiness::{Obstacle, Readiness};
use crate::ground::Ground;

/// What is kept for the operator while the daemon lives.
#[derive(Default)]
pub(crate) struct Operator {
    pub(crate) metrics: Metrics,
    pub(crate) readiness: Readiness,
    pub(crate) listening: Listening,
    pub(crate) pinging: Pinging,
    #[cfg(feature = "otlp")]
    traces: otlp::Queue,
}

impl Operator {
    /// Hears what the journal has just taken of a run, which is as it was before.
    pub(crate) fn observe(&self, before: &Run, events: &[Event]) {
        self.metrics.observe(before, events);
        #[cfg(feature = "otlp")]
        self.traces.observe(before, events);
    }

    #[cfg(feature = "otlp")]
    pub(crate) fn traces(&self) -> otlp::ExportStatus {
        self.traces.status()
    }
}

/// What the operator's tasks work with.
pub(crate) struct Tasks {
    pub(crate) ground: Arc<Ground>,
    pub(crate) operator: Arc<Operator>,
    pub(crate) above: Above,
}

/// What the operator's tasks ask of the layers above: they know neither the runs nor the API.
pub(crate) struct Above {
    /// What keeps this daemon from new work. May wait for the disk.
    pub(crate) obstacles: Box<dyn Fn() -> Vec<Obstacle> + Send + Sync>,
    /// What other programs meet on the TCP listener, given the token that they have to show.
    pub(crate) router: Box<dyn Fn(Option<String>) -> axum::Router + Send + Sync>,
}

/// Sees to listeners, pings and traces, as the config says; never ends.
pub(crate) async fn follow(tasks: Arc<Tasks>) {
    #[cfg(feature = "otlp")]
    let traces = otlp::export(&tasks);
    #[cfg(not(feature = "otlp"))]
    let traces = std::future::pending::<()>();
    tokio::join!(listen::follow(&tasks), ping::follow(&tasks), traces);
}

/// Does `act` with a part of the config, and again with the new one whenever that part has changed.
async fn with_each<T: PartialEq + Clone>(
    tasks: &Tasks,
    part: impl Fn(&Config) -> T,
    mut act: impl AsyncFnMut(T),
) {
    let mut changes = tasks.ground.settings.changes();
    let now = || tasks.ground.settings.current().as_deref().map(&part).ok();
    let mut current = now();
    loop {
        let changed = async {
            loop {
                if changes.changed().await.is_err() {
                    // No task is left that could change it.
                    std::future::pending::<()>().await;
                }
                let next = now();
                if next != current {
                    return next;
                }
            }
        };
        let done = async {
            if let Some(part) = current.clone() {
                act(part).await;
            }
            std::future::pending::<()>().await;
        };
        let next = tokio::select! {
            next = changed => next,
            () = done => unreachable!("it is never done"),
        };
        current = next;
    }
}
