//! Starts the real daemon on a disk after a cut, under another boot, and sees that it tells the truth.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::cut::Image;
use super::verdict::{Told, begins_with};
use crate::private::{self, Private};
use crate::{interrupt, process};

/// Ends of attempts that no process could have observed under this boot.
const UNTRUE: [&str; 2] = ["never_started", "lost"];

/// Everything that is wrong with what the daemon makes of it.
pub(super) fn revive(
    image: &Image<'_, '_>,
    told: &Told,
    binary: &Path,
    scratch: &Path,
) -> Result<Vec<String>> {
    let home = scratch.join("home");
    if home.exists() {
        fs::remove_dir_all(&home).context("the disk of the cut before")?;
    }
    fs::create_dir(&home)?;
    lay_out(image, &home)?;
    let outlast = Private::new(binary, home.clone())?;
    let found = look(&outlast, told);
    let stopped = outlast.output(&["daemon", "stop"]).map(drop);
    private::sweep(scratch)?;
    stopped?;
    found
}

fn lay_out(image: &Image<'_, '_>, home: &Path) -> Result<()> {
    for (path, content) in image.all() {
        let at = home.join(path);
        match content {
            None => {
                fs::create_dir(&at)?;
                fs::set_permissions(&at, fs::Permissions::from_mode(0o700))?;
            }
            Some(content) => {
                fs::write(&at, content)?;
                fs::set_permissions(&at, fs::Permissions::from_mode(0o600))?;
            }
        }
    }
    Ok(())
}

fn look(outlast: &Private, told: &Told) -> Result<Vec<String>> {
    let started = outlast
        .command(&["daemon", "start"])
        .env("OUTLAST_FAKE_BOOT_ID", "after-the-power-loss")
        .output()?;
    if !started.status.success() {
        let said = String::from_utf8_lossy(&started.stderr).trim().to_owned();
        return Ok(vec![format!("no daemon starts: {said}")]);
    }
    let listed = outlast.ask_json(&["ps", "-a", "--json"])?;
    let listed: Vec<&str> =
        listed.as_array().into_iter().flatten().filter_map(|row| row["id"].as_str()).collect();
    let gone = told.runs.iter().filter(|run| !listed.contains(&run.as_str()));
    let mut problems: Vec<String> =
        gone.map(|run| format!("the daemon does not list run {run}")).collect();
    let mut unheard_of = Vec::new();
    for run in &listed {
        // The power went while this run was made: no client was told of it, only a directory is left, and the
        // daemon keeps that and says so.
        let was_told = told.runs.contains(*run) || told.removing.contains(*run);
        if !was_told && is_only_a_directory(outlast, run)? {
            unheard_of.push(*run);
            continue;
        }
        problems.extend(settles(outlast, run, told)?);
    }
    problems.extend(doctor(outlast, &unheard_of)?);
    Ok(problems)
}

fn is_only_a_directory(outlast: &Private, run: &str) -> Result<bool> {
    Ok(outlast.show(run)?["trouble"]["code"] == "not_in_journal")
}

/// The run comes to an end or to a rest, and its journal goes on from what a client has read.
fn settles(outlast: &Private, run: &str, told: &Told) -> Result<Vec<String>> {
    let mut last = Value::Null;
    let came = interrupt::wait_for("it rests", Duration::from_secs(60), || {
        last = outlast.show(run)?;
        let is_live = last["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        let rests = matches!(
            last["state"].as_str(),
            Some("completed" | "failed" | "stopped" | "exhausted" | "blocked")
        ) || last["phase"] == "message";
        Ok((rests && is_live.is_none_or(|pid| !process::is_alive(pid))).then_some(()))
    });
    let mut problems = Vec::new();
    if came.is_err() {
        interrupt::check()?;
        problems.push(format!("run {run} comes to no rest: {last}"));
    }
    if last["trouble"]["code"] == "not_in_journal" {
        problems.push(format!("the journal does not know run {run}, of which a client was told"));
        return Ok(problems);
    }
    let events = outlast.events(run)?;
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["kind"].as_str()).collect();
    if let Some(seen) = told.kinds.get(run)
        && !begins_with(&kinds, seen)
    {
        problems.push(format!("run {run}: a client has read {seen:?}, and there is {kinds:?}"));
    }
    for event in &events {
        let outcome = event["outcome"].as_str().filter(|_| event["kind"] == "AttemptEnded");
        if outcome.is_some_and(|outcome| UNTRUE.contains(&outcome)) {
            problems.push(format!("run {run}: {event}"));
        }
    }
    Ok(problems)
}

fn doctor(outlast: &Private, unheard_of: &[&str]) -> Result<Vec<String>> {
    let output = outlast.output(&["doctor", "--json"])?;
    let report: Value = serde_json::from_slice(&output.stdout).context("what doctor says")?;
    let findings = report["findings"].as_array();
    ensure!(findings.is_some(), "doctor has no findings: {report}");
    let is_of_none = |finding: &&Value| {
        let message = finding["message"].as_str().unwrap_or_default();
        !unheard_of.iter().any(|run| message.starts_with(run))
    };
    let problems = findings.into_iter().flatten().filter(|finding| finding["level"] == "problem");
    let problems = problems.filter(is_of_none);
    Ok(problems
        .map(|finding| format!("doctor: {}: {}", finding["subject"], finding["message"]))
        .collect())
}
