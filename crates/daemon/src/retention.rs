//! Once a day, removes the runs that ended longer ago than they are kept: what `outlast gc` does, without workspaces.
//!
//! A workspace may hold work that a person has yet to look at, so it goes only when a person asks. `gc.auto = false`
//! turns this off. When it was last done is in the store, so restarts neither repeat nor skip it.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::Time;
use outlast_workflow::Config;

use crate::lanes::{Lane, in_lane};
use crate::refusal::Answer;
use crate::runs::gc::{self, Sweep, Workspaces};
use crate::supervisor::Supervisor;

/// When runs were last removed, as the store has it.
const SWEPT: &str = "swept";

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// After a day that could not be read or written.
const AGAIN: Duration = Duration::from_secs(3600);

/// Goes on for the daemon's life.
pub(crate) async fn keep(supervisor: &Arc<Supervisor>) -> Infallible {
    loop {
        let wait = look(supervisor).await.unwrap_or_else(|error| {
            tracing::error!(%error, "cannot remove old runs; trying again later");
            AGAIN
        });
        tokio::time::sleep(wait).await;
    }
}

/// Removes what is due, if it is time for that; says how long to wait.
async fn look(supervisor: &Arc<Supervisor>) -> Answer<Duration> {
    let supervisor = supervisor.clone();
    in_lane(Lane::Removals, move || {
        let now = supervisor.ground.world.now();
        let noted = supervisor.ground.store.note(SWEPT)?;
        let last = noted.and_then(|at| at.parse().ok()).map(Time);
        let due = last.map(|at| at.plus_ms(DAY_MS));
        match due {
            // A clock that was set back must not put it off for longer than a day.
            Some(due) if now < due && due.ms_since(now) <= DAY_MS => {
                return Ok(Duration::from_millis(due.ms_since(now)));
            }
            Some(_) => sweep(&supervisor)?,
            // The first daemon that does this leaves a day to turn it off.
            None => {}
        }
        let text = now.0.to_string();
        supervisor.ground.store.set_notes(&[(SWEPT, Some(&text))], supervisor.ground.epoch)?;
        Ok(Duration::from_millis(DAY_MS))
    })
    .await
}

fn sweep(supervisor: &Arc<Supervisor>) -> Answer<()> {
    let is_wanted = |config: &Config| !config.keeps_old_runs;
    if !supervisor.ground.settings.current().is_ok_and(|config| is_wanted(&config)) {
        return Ok(());
    }
    let query = Sweep { dry_run: false, older_than_ms: None, workspaces: Workspaces::Stay };
    let report = gc::sweep(supervisor, query)?;
    let (runs, bytes) = (report.removed.len(), report.freed_bytes);
    if runs > 0 {
        tracing::info!(runs, bytes, "removed what ended longer ago than it is kept");
    }
    Ok(())
}
