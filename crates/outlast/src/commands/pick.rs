//! The runs that a verb is for: those it names, and those with a state or a label.

use outlast_client::ask::Ask;
use outlast_client::problem::Problem;
use outlast_client::session::Session;
use outlast_wire::api::RunRow;

use crate::args::Pick;

/// Which runs a verb can be for when it names none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// They go on.
    Live,
    Ended,
    Any,
    /// They are paused or blocked.
    Resting,
}

/// The runs, and how many match and are not of the kind that the verb is for.
pub(super) struct Picked {
    pub(super) runs: Vec<String>,
    pub(super) passed: usize,
}

/// The ids or names, in the order in which they were named; of those that were picked the oldest first, or the newest
/// if they are to be stopped.
pub(super) async fn picked(
    session: &mut Session<'_>,
    named: &[String],
    pick: &Pick,
    kind: Kind,
    all: bool,
) -> Result<Picked, Problem> {
    let mut runs = named.to_vec();
    if !all && pick.state.is_none() && pick.label.is_empty() {
        return Ok(Picked { runs, passed: 0 });
    }
    let mut ask = Ask::get("/v1/runs").query_if("state", pick.state.as_ref());
    if matches!(kind, Kind::Ended | Kind::Any) {
        ask = ask.query("all", true);
    }
    for (key, value) in &pick.label {
        ask = ask.query("label", format_args!("{key}={value}"));
    }
    let mut rows: Vec<RunRow> = session.call(&ask).await?;
    let matching = rows.len();
    rows.retain(|row| is_meant(row, kind));
    // Without a state or a label, those of another kind were not asked for.
    let is_narrowed = pick.state.is_some() || !pick.label.is_empty();
    let passed = if is_narrowed { matching - rows.len() } else { 0 };
    rows.sort_by(|one, other| match kind {
        // What waits for others is stopped before it can start in their place.
        Kind::Live => other.created_at.cmp(&one.created_at),
        Kind::Ended | Kind::Any | Kind::Resting => one.created_at.cmp(&other.created_at),
    });
    for row in rows {
        let is_named = |run: &String| *run == row.id || row.name.as_ref() == Some(run);
        if !runs.iter().any(is_named) {
            // By its id: several runs that have ended may have one name.
            runs.push(row.id);
        }
    }
    Ok(Picked { runs, passed })
}

fn is_meant(row: &RunRow, kind: Kind) -> bool {
    let has_ended = row.state.has_ended();
    match kind {
        Kind::Live => !has_ended || row.survivors > 0,
        Kind::Ended => has_ended,
        Kind::Any => true,
        Kind::Resting => {
            let is_blocked = row.state == outlast_wire::words::StateName::Blocked;
            !has_ended && (row.paused || is_blocked)
        }
    }
}
