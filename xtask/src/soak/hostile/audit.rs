//! What must hold when the adversary has left.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::ledger::Run;
use super::{Soak, person, tasks};
use crate::{interrupt, process};

const PATIENCE: Duration = Duration::from_secs(120);
/// The journals of so many runs are printed with what is wrong with them.
const SHOWN: usize = 3;

#[derive(Default)]
pub(super) struct Found {
    pub(super) problems: Vec<String>,
    /// What was lost, to which hazard, and how it is said.
    pub(super) named: Vec<String>,
}

pub(super) fn audit(soak: &Soak<'_>) -> Result<Found> {
    let mut found = Found::default();
    tasks::again(soak, "a daemon", || soak.outlast.ask(&["daemon", "start"]))?;
    // The schedule goes on making runs for ever.
    let paused = tasks::again(soak, "an end of the schedule", || {
        soak.outlast.ask(&["schedule", "rm", "tick"])
    });
    if paused.is_err() && soak.ledger.restores().is_empty() {
        found.problems.push("the schedule was acknowledged and is gone".to_owned());
    }
    recovered(soak, &mut found)?;
    settle(soak, &mut found)?;
    let listed = listed(soak)?;
    let mut shown = 0;
    for run in soak.ledger.runs() {
        let before = found.problems.len();
        of_run(soak, &run, &listed, &mut found)?;
        if found.problems.len() > before && shown < SHOWN {
            shown += 1;
            let events = soak.outlast.ask(&["events", &run.id, "--json"]).unwrap_or_default();
            println!("soak: the journal of {}:\n{events}", run.id);
        }
    }
    orders(soak, &mut found)?;
    twice(soak, &mut found)?;
    notices(soak, &mut found)?;
    doctor(soak, &mut found)?;
    left_alive(soak, &mut found)?;
    Ok(found)
}

/// Runs that a restored journal does not know are on disk, are shown, and can be rebuilt.
fn recovered(soak: &Soak<'_>, found: &mut Found) -> Result<()> {
    if soak.ledger.restores().is_empty() {
        return Ok(());
    }
    let output = soak.outlast.output(&["recover"])?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.code() {
        Some(0 | 1) => found.named.extend(said.lines().map(|line| format!("recover: {line}"))),
        _ => found.named.push("recover: this program has no such verb".to_owned()),
    }
    Ok(())
}

/// Until everything has ended or rests; what does not is stopped, and said.
fn settle(soak: &Soak<'_>, found: &mut Found) -> Result<()> {
    let mut said = person::Said::new();
    let settled = interrupt::wait_for("everything has ended", PATIENCE, || {
        person::come_by(soak, &mut said);
        let Ok(open) = soak.outlast.ask_json(&["ps", "--json"]) else { return Ok(None) };
        Ok(open.as_array().is_some_and(Vec::is_empty).then_some(()))
    });
    interrupt::check()?;
    if settled.is_ok() {
        return Ok(());
    }
    let open = soak.outlast.ask_json(&["ps", "--json"])?;
    for row in open.as_array().into_iter().flatten() {
        let id = row["id"].as_str().unwrap_or_default();
        let told = format!("run {id} is {} ({}) and did not end", row["state"], row["reason_code"]);
        match soak.ledger.harm_of(id) {
            Some(harm) => found.named.push(format!("{told}: {harm}")),
            None => found.problems.push(told),
        }
        let stopped = soak.outlast.output(&["stop", "--now", id])?;
        if !stopped.status.success() {
            let why = String::from_utf8_lossy(&stopped.stderr).trim().to_owned();
            found.problems.push(format!("run {id} cannot be stopped: {why}"));
        }
    }
    Ok(())
}

fn listed(soak: &Soak<'_>) -> Result<BTreeMap<String, Value>> {
    let rows = soak.outlast.ask_json(&["ps", "-a", "--json"])?;
    let rows = rows.as_array().cloned().unwrap_or_default();
    Ok(rows.into_iter().filter_map(|row| Some((row["id"].as_str()?.to_owned(), row))).collect())
}

fn of_run(
    soak: &Soak<'_>,
    run: &Run,
    listed: &BTreeMap<String, Value>,
    found: &mut Found,
) -> Result<()> {
    let (id, task) = (&run.id, run.task);
    let Some(row) = listed.get(id) else {
        found.problems.push(format!("run {id} ({task:?}) was acknowledged and is gone"));
        return Ok(());
    };
    let state = row["state"].as_str().unwrap_or("unknown");
    if state == task.expected() {
        return Ok(());
    }
    let told = format!("run {id} ({task:?}) is {state} ({})", row["reason_code"]);
    match soak.ledger.harm_of(id) {
        Some(harm) => found.named.push(format!("{told}: {harm}")),
        None => found.problems.push(told),
    }
    Ok(())
}

fn orders(soak: &Soak<'_>, found: &mut Found) -> Result<()> {
    for order in soak.ledger.orders() {
        interrupt::check()?;
        let events = soak.outlast.ask(&["events", &order.run, "--json"]).unwrap_or_default();
        if events.contains(&order.text) {
            continue;
        }
        let told = format!("run {}: {:?} was acknowledged and is gone", order.run, order.text);
        match soak.ledger.restores().iter().any(|restore| restore.covers(order.at)) {
            true => found.named.push(format!("{told}: an older journal was put back")),
            false => found.problems.push(told),
        }
    }
    Ok(())
}

/// No run had two trees at once, and no attempt was executed twice.
fn twice(soak: &Soak<'_>, found: &mut Found) -> Result<()> {
    let twice = fs::read_to_string(soak.scratch.join("twice")).unwrap_or_default();
    found
        .problems
        .extend(twice.lines().map(|line| format!("two trees of one run at once: {line}")));
    for entry in fs::read_dir(soak.scratch.join("counts"))? {
        let entry = entry?;
        let times = fs::read_to_string(entry.path())?.lines().count();
        let attempt = entry.file_name().to_string_lossy().into_owned();
        if times > 1 {
            found.problems.push(format!("attempt {attempt} was executed {times} times"));
        }
    }
    Ok(())
}

/// Every end has been told at least once.
fn notices(soak: &Soak<'_>, found: &mut Found) -> Result<()> {
    let ends: Vec<Run> = soak.ledger.runs();
    let missing = || -> Vec<String> {
        let told = told_ends(&fs::read_to_string(soak.scratch.join("notices")).unwrap_or_default());
        // A run of a client that was killed has no sink.
        let is_missing = |run: &&Run| run.task != tasks::Task::Killed && !told.contains(&run.id);
        ends.iter().filter(is_missing).map(|run| run.id.clone()).collect()
    };
    let told = interrupt::wait_for("every end is told", PATIENCE, || {
        Ok(missing().is_empty().then_some(()))
    });
    interrupt::check()?;
    if told.is_err() {
        let untold = missing().into_iter().map(|run| format!("run {run}: its end was not told"));
        found.problems.extend(untold);
    }
    Ok(())
}

/// The runs of which the sink was told that they have ended.
fn told_ends(text: &str) -> BTreeSet<String> {
    let notices =
        serde_json::Deserializer::from_str(text).into_iter::<Value>().map_while(Result::ok);
    let is_end = |notice: &Value| {
        let kind = notice["type"].as_str().and_then(|kind| kind.strip_prefix("run."));
        matches!(kind, Some("completed" | "failed" | "stopped" | "exhausted"))
    };
    notices
        .filter(is_end)
        .filter_map(|notice| notice["data"]["run"].as_str().map(str::to_owned))
        .collect()
}

fn doctor(soak: &Soak<'_>, found: &mut Found) -> Result<()> {
    let output = soak.outlast.output(&["doctor", "--json"])?;
    let report: Value = serde_json::from_slice(&output.stdout).context("what doctor says")?;
    let findings = report["findings"].as_array().cloned().unwrap_or_default();
    for finding in findings.iter().filter(|finding| finding["level"] == "problem") {
        let told = format!("doctor: {}: {}", finding["subject"], finding["message"]);
        let runs = soak.ledger.runs();
        let is_harmed =
            runs.iter().any(|run| told.contains(&run.id) && soak.ledger.harm_of(&run.id).is_some());
        match is_harmed {
            true => found.named.push(told),
            false => found.problems.push(told),
        }
    }
    Ok(())
}

fn left_alive(soak: &Soak<'_>, found: &mut Found) -> Result<()> {
    tasks::again(soak, "a stop of the daemon", || soak.outlast.ask(&["daemon", "stop"]))?;
    let gone = interrupt::wait_for("nothing is left alive", Duration::from_secs(30), || {
        let left = process::ours(&soak.scratch);
        Ok(left.iter().all(|pid| !process::is_alive(*pid)).then_some(()))
    });
    interrupt::check()?;
    if gone.is_err() {
        for pid in process::ours(&soak.scratch) {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            found.problems.push(format!("process {pid} is left alive: {line}"));
        }
    }
    Ok(())
}
