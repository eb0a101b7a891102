//! What is wrong, if something is: the journal, the runs that cannot be read, the disk, and what is around them.

mod around;
mod stale;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use outlast_wire::api::{DoctorReport, Finding, Holding, Level, TriggerView};

use super::Daemon;
use super::error::Answer;
use super::runs::blocking;
use crate::notify;
use crate::supervisor::Supervisor;

/// Less free space than this is worth a warning.
const LOW_BYTES: u64 = 256 << 20;

#[utoipa::path(get, path = "/v1/doctor", responses((status = 200, body = DoctorReport)))]
pub(crate) async fn examine(State(supervisor): Daemon) -> Answer<Json<DoctorReport>> {
    let findings = blocking(move || {
        let mut findings = journal(&supervisor)?;
        findings.extend(EXAMINERS.iter().flat_map(|examine| examine(&supervisor)));
        Ok(findings)
    })
    .await?;
    let healthy = findings.iter().all(|finding| finding.level == Level::Ok);
    Ok(Json(DoctorReport { healthy, findings }))
}

type Examiner = fn(&Arc<Supervisor>) -> Vec<Finding>;

/// Who looks, in the order in which it is told. Each says nothing where there is nothing to look at.
const EXAMINERS: [Examiner; 13] = [
    runs,
    holding,
    hold,
    stale::runs,
    leftovers,
    config,
    sinks,
    triggers,
    disk,
    around::program,
    around::listener,
    around::outbound,
    around::clock,
];

fn sinks(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    notify::findings(supervisor)
}

/// A trigger that makes no runs looks like one that had no reason to.
fn triggers(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    let of = |trigger: TriggerView| {
        let trouble = trigger.trouble?;
        let message = format!("{:?} since {}: {:?}", trigger.name, trouble.since, trouble.message);
        let hint = "`outlast schedule ls` and `outlast trigger ls` show all of them";
        Some(finding(Level::Warning, "trigger", message, Some(hint)))
    };
    match crate::triggers::view::all(supervisor) {
        Ok(all) => all.into_iter().filter_map(of).collect(),
        Err(error) => {
            let message = format!("the triggers cannot be read: {error}");
            vec![finding(Level::Problem, "trigger", message, None)]
        }
    }
}

fn journal(supervisor: &Supervisor) -> Answer<Vec<Finding>> {
    let problems = supervisor.store.check()?;
    if problems.is_empty() {
        return Ok(vec![finding(
            Level::Ok,
            "journal",
            "every journal replays and agrees with its row",
            None,
        )]);
    }
    let hint =
        Some("the others are not touched by it; `outlast rm` removes a run that cannot be read");
    Ok(problems
        .into_iter()
        .map(|problem| match problem.run {
            Some(run) => {
                finding(Level::Problem, "run", format!("{run}: {}", problem.message), hint)
            }
            None => finding(Level::Problem, "journal", problem.message, None),
        })
        .collect())
}

/// Runs that are in quarantine, or in trouble, or have outlived their shim.
fn runs(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    let quarantined = supervisor.quarantined();
    let mut findings: Vec<Finding> = quarantined
        .iter()
        .map(|(id, trouble)| {
            let hint = Some("it is left alone and read again later; `outlast rm` removes it");
            finding(
                Level::Problem,
                "run",
                format!("{id} is in quarantine: {}", trouble.message),
                hint,
            )
        })
        .collect();
    for (id, handle) in supervisor.handles() {
        let snapshot = handle.snapshot.borrow();
        if let Some(trouble) = &snapshot.trouble {
            let hint = (trouble.code == "unreadable")
                .then_some("`outlast stop` ends what is left of it, `outlast rm` then removes it");
            findings.push(finding(
                Level::Problem,
                "run",
                format!("{id}: {} since {}: {}", trouble.code, trouble.since, trouble.message),
                hint,
            ));
        }
        if snapshot.run.is_orphaned() {
            let hint = Some("its output and exit cannot be seen any more; `outlast stop` ends it");
            findings.push(finding(
                Level::Warning,
                "run",
                format!("{id} has lost its shim and its process is alive"),
                hint,
            ));
        }
        let left = snapshot.run.survivors().len();
        if left > 0 && snapshot.run.has_ended() {
            findings.push(finding(
                Level::Warning,
                "run",
                format!("{id} has ended and {left} of its processes are alive"),
                Some("`outlast stop` ends them"),
            ));
        }
    }
    findings
}

/// A daemon that holds back what it resumes looks idle from outside.
fn holding(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    let Some(Holding { until, why, runs }) = supervisor.holding() else { return Vec::new() };
    let message = format!("nothing is resumed until {until}, {runs} waiting: {why}");
    let hint = "`outlast daemon logs` may say why; `outlast daemon stop` and `start` end the wait";
    vec![finding(Level::Problem, "daemon", message, Some(hint))]
}

/// Whoever paused everything may have forgotten it.
fn hold(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    let Some(since) = supervisor.held_since() else { return Vec::new() };
    let message = format!("everything is paused since {}", crate::view::rfc3339(since));
    let hint = Some("`outlast resume --all` lets it go on");
    vec![finding(Level::Warning, "hold", message, hint)]
}

/// A config that is wrong does not stop anything, so somebody has to say so.
fn config(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    // Whoever looks for what is wrong has perhaps just put it right.
    let holds = supervisor.config();
    let problems = supervisor.settings.problems();
    let hint = match holds {
        Ok(_) => Some("the last good one holds until this is right"),
        Err(_) => Some("no run can be started until this is right; those that run go on"),
    };
    let wrong = problems.iter().map(|it| finding(Level::Problem, "config", it.to_string(), hint));
    let warnings = supervisor.settings.warnings();
    let odd = warnings
        .iter()
        .map(|it| finding(Level::Warning, "config", it.to_string(), it.hint.as_deref()));
    wrong.chain(odd).collect()
}

fn leftovers(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    let mut unclaimed = super::gc::unclaimed(supervisor);
    unclaimed.retain(|run| supervisor.claim(run).is_some());
    if unclaimed.is_empty() {
        return Vec::new();
    }
    vec![finding(
        Level::Warning,
        "disk",
        format!("{} directories belong to no run", unclaimed.len()),
        Some("`outlast gc` removes them"),
    )]
}

fn disk(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    let found = match rustix::fs::statvfs(&supervisor.layout.state) {
        Ok(stat) => {
            let free = stat.f_bavail.saturating_mul(stat.f_frsize);
            let (level, hint) = if free < LOW_BYTES {
                (Level::Warning, Some("`outlast gc` removes old runs"))
            } else {
                (Level::Ok, None)
            };
            finding(level, "disk", format!("{} MiB free for the state directory", free >> 20), hint)
        }
        Err(error) => {
            finding(Level::Warning, "disk", format!("cannot tell the free space: {error}"), None)
        }
    };
    vec![found]
}

fn finding(level: Level, subject: &str, message: impl Into<String>, hint: Option<&str>) -> Finding {
    Finding {
        level,
        subject: subject.to_owned(),
        message: message.into(),
        hint: hint.map(str::to_owned),
    }
}
