//! What a report is made from: the lists of the daemon, and the daemon's diary.

use std::collections::BTreeMap;

use jiff::Timestamp;
use outlast_client::ask::{Ask, run_path};
use outlast_client::problem::Problem;
use outlast_client::session::Session;
use outlast_wire::api::{
    BudgetView, DaemonStatus, NightView, RunRow, RunView, SinkRow, TriggerView,
};

use crate::duration::{self, Since};
use crate::loop_file;
use crate::world::World;

/// So many runs are looked at one by one; of more than these the list is all that is said.
const MOST_VIEWS: usize = 200;

#[derive(Debug)]
pub(crate) struct Facts {
    /// The daemon's time.
    pub(crate) now: Timestamp,
    pub(crate) since: Timestamp,
    pub(crate) night: NightView,
    /// Every run that has not ended, and those that ended since; the newest first.
    pub(crate) rows: Vec<RunRow>,
    /// What is known of those beyond their row.
    pub(crate) views: BTreeMap<String, RunView>,
    pub(crate) budgets: Vec<BudgetView>,
    pub(crate) sinks: Vec<SinkRow>,
    pub(crate) triggers: Vec<TriggerView>,
    /// Since when everything is paused.
    pub(crate) held_since: Option<String>,
    /// What is wrong with config.toml.
    pub(crate) config: Vec<String>,
}

/// Asks for everything. `since` is asked by the daemon's clock; without one, for the last 12 hours.
pub(crate) async fn gather(world: &World, since: Option<Since>) -> Result<Facts, Problem> {
    let mut session = Session::new(&world.client);
    let ask = Ask::get("/v1/report");
    let ask = match since {
        Some(Since::Ago(ago)) => ask.query("ago_ms", duration::as_ms(ago)),
        Some(since) => ask.query("since", since.timestamp(&world.now_here())),
        None => ask,
    };
    let night: NightView = session.call(&ask).await?;
    let (now, since) = (read(&night.now)?, read(&night.since)?);
    let all: Vec<RunRow> = session.call(&Ask::get("/v1/runs").query("all", true)).await?;
    let this_run = world.client.var("OUTLAST_RUN_ID").and_then(|id| id.to_str());
    let rows: Vec<RunRow> = all
        .into_iter()
        .filter(|row| concerns(row, since) && this_run != Some(row.id.as_str()))
        .collect();
    let mut views = BTreeMap::new();
    for row in rows.iter().take(MOST_VIEWS) {
        // A run that was removed since it was listed, or cannot be read, is told by its row.
        if let Ok(view) = session.call::<RunView>(&Ask::get(&run_path(&row.id, ""))).await {
            views.insert(row.id.clone(), view);
        }
    }
    let status: DaemonStatus = session.call(&Ask::get("/v1/daemon")).await?;
    Ok(Facts {
        now,
        since,
        night,
        rows,
        views,
        budgets: session.call(&Ask::get("/v1/budgets")).await?,
        sinks: session.call(&Ask::get("/v1/sinks")).await?,
        triggers: session.call(&Ask::get("/v1/triggers")).await?,
        held_since: status.held_since,
        config: config_problems(world)?,
    })
}

/// What has not ended, or ended since, or has left something behind.
fn concerns(row: &RunRow, since: Timestamp) -> bool {
    match row.ended_at.as_deref() {
        None => true,
        Some(at) => {
            row.trouble.is_some() || at.parse::<Timestamp>().is_ok_and(|ended| ended >= since)
        }
    }
}

fn config_problems(world: &World) -> Result<Vec<String>, Problem> {
    let refused = loop_file::config(world.client.layout()?).err();
    let problems = refused.map(|refused| refused.errors).unwrap_or_default();
    Ok(problems.iter().map(ToString::to_string).collect())
}

fn read(time: &str) -> Result<Timestamp, Problem> {
    time.parse()
        .map_err(|_| Problem::failure(format_args!("the daemon's time {time:?} is no time")))
}
