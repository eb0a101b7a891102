//! Removing what is not needed any longer: runs that ended long ago, and directories that belong to no run.

use std::path::Path;
use std::sync::Arc;

use outlast_engine::{Fact, Row, RunId, StateName, Strategy, Time};
use outlast_store::{Filter, Remove};
use outlast_wire::api::{GcItem, GcReport};
use outlast_workflow::duration;

use super::workspaces::{self, Removed};
use super::{refs, remove};
use crate::children;
use crate::refusal::Answer;
use crate::supervisor::Supervisor;
use crate::view;
use crate::world::files;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// What is asked of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sweep {
    /// Say what would go, and remove nothing.
    pub(crate) dry_run: bool,
    /// Instead of the usual retention: everything that ended longer ago than this.
    pub(crate) older_than_ms: Option<u64>,
    pub(crate) workspaces: Workspaces,
}

/// What becomes of the workspaces of ended runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Workspaces {
    /// They go when nothing keeps them.
    Go,
    /// They stay, and so do their runs.
    Stay,
}

/// Removes what nothing keeps any longer. Blocks.
pub(crate) fn sweep(supervisor: &Arc<Supervisor>, query: Sweep) -> Answer<GcReport> {
    let dry_run = query.dry_run;
    let mut report = GcReport { dry_run, ..GcReport::default() };
    let now = supervisor.ground.world.now();
    for row in supervisor.ground.store.rows(&Filter { all: true, ..Filter::default() })? {
        let workspace = sweep_workspace(supervisor, &row, now, query, &mut report)?;
        match verdict(&row, now, query.older_than_ms) {
            Ok(_) if workspace == Workspace::Stays => {}
            Ok(_) if let Some(parent) = open_parent(supervisor, &row)? => {
                report.skipped.push(item(&row, format!("its parent {parent} goes on"), 0));
            }
            Ok(_) if let Err(refusal) = children::refuse_removal(supervisor, &row.id) => {
                report.skipped.push(item(&row, refusal.message, 0));
            }
            Ok(why) => {
                let bytes = files::disk_usage(&supervisor.ground.layout.run(row.id.as_str()).0);
                if !dry_run {
                    remove::run(supervisor, &row.id, Remove::Ended)?;
                }
                report.freed_bytes += bytes;
                report.removed.push(item(&row, why, bytes));
            }
            Err(why) => report.skipped.push(item(&row, why, 0)),
        }
    }
    let unfinished = if dry_run { supervisor.sweepable()? } else { supervisor.sweep_strays()? };
    for (run, bytes) in unfinished {
        report.freed_bytes += bytes;
        report.removed.push(unknown(&run, "belongs to no run".to_owned(), bytes));
    }
    for (run, stray) in supervisor.strays.all() {
        let why = stray.trouble.message;
        report.skipped.push(GcItem { overdue: true, ..unknown(&run, why, 0) });
    }
    for orphan in refs::look(supervisor)?.orphans {
        let why = format!("the snapshots of no run of this home: {}", orphan.command());
        report.skipped.push(GcItem { overdue: true, ..unknown(&orphan.run, why, 0) });
    }
    Ok(report)
}

/// The parent of a run, if it goes on: it may ask for the result of its child again.
fn open_parent<'a>(supervisor: &Supervisor, row: &'a Row) -> Answer<Option<&'a RunId>> {
    let Some(parent) = &row.parent else { return Ok(None) };
    let above = supervisor.ground.store.row(parent)?;
    Ok(above.is_some_and(|above| above.is_open).then_some(parent))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Workspace {
    None,
    /// And so does its run, which says what it is.
    Stays,
}

/// Removes the workspace of an ended run if nothing keeps it any longer.
fn sweep_workspace(
    supervisor: &Arc<Supervisor>,
    row: &Row,
    now: Time,
    query: Sweep,
    report: &mut GcReport,
) -> Answer<Workspace> {
    if row.is_open || !may_have_workspace(supervisor, &row.id)? {
        return Ok(Workspace::None);
    }
    let Ok(run) = supervisor.ground.replay(&row.id) else { return Ok(Workspace::None) };
    if !workspaces::has_workspace(&run) {
        return Ok(Workspace::None);
    }
    if query.workspaces == Workspaces::Stay {
        return Ok(Workspace::Stays);
    }
    let mut skip = |why: String, overdue: bool| {
        let why = format!("workspace {}: {why}", run.spec.dir);
        report.skipped.push(GcItem { overdue, ..item(row, why, 0) });
        Ok(Workspace::Stays)
    };
    // Another age than usual is for runs. What a loop file keeps may be a person's work.
    match workspaces::kept_until(&run) {
        None => return skip("is kept for ever".to_owned(), false),
        Some(until) if until > now => {
            return skip(format!("is kept until {}", view::rfc3339(until)), false);
        }
        Some(_) => {}
    }
    if workspaces::is_shared(supervisor, &run)? {
        return Ok(Workspace::None);
    }
    if let Some(why) = workspaces::obstacle(supervisor, &run) {
        return skip(why, true);
    }
    let bytes = files::disk_usage(Path::new(&run.spec.dir));
    if !query.dry_run
        && let Removed::Kept { why } = remove::workspace(supervisor, &row.id)?
    {
        return skip(why, true);
    }
    report.freed_bytes += bytes;
    let why = format!("workspace {}", run.spec.dir);
    report.removed.push(item(row, why, bytes));
    Ok(Workspace::None)
}

fn item(row: &Row, why: String, bytes: u64) -> GcItem {
    GcItem { name: row.name.clone(), ..unknown(&row.id, why, bytes) }
}

/// Of a directory that the journal does not know.
fn unknown(run: &RunId, why: String, bytes: u64) -> GcItem {
    GcItem { run: run.0.clone(), name: None, why, bytes, overdue: false }
}

/// Looked up in the run's first event, because most runs have none.
fn may_have_workspace(supervisor: &Supervisor, id: &RunId) -> Answer<bool> {
    let first = supervisor.ground.store.events(id, 0, 1)?;
    Ok(first.first().is_some_and(|event| match &event.fact {
        Fact::RunCreated { spec, .. } => spec.workspace.strategy != Strategy::Inplace,
        _ => false,
    }))
}

/// Why a run goes, or why it stays.
fn verdict(row: &Row, now: Time, older_than_ms: Option<u64>) -> Result<String, String> {
    if row.is_open {
        return Err(match row.survivors {
            0 => format!("is {}", row.state.word()),
            left => format!("is {}, and {left} of its processes are alive", row.state.word()),
        });
    }
    let keep_ms = older_than_ms.unwrap_or(match row.state {
        StateName::Completed | StateName::Stopped => 7 * DAY_MS,
        _ => 30 * DAY_MS,
    });
    let age_ms = row.ended_at.map_or(0, |ended| now.ms_since(ended));
    match age_ms >= keep_ms {
        true => Ok(format!("{} {} ago", row.state.word(), duration::short(age_ms))),
        false => {
            Err(format!("{} less than {} days ago", row.state.word(), keep_ms.div_ceil(DAY_MS)))
        }
    }
}
