//! Holds a disk after a cut against what clients had been told before it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Result;
use outlast_engine::{Event, Fact, RunId, StateName};
use outlast_store::{Journal, Outbox, Sqlite, Triggers};
use serde_json::Value;

use super::cut::Image;
use crate::random::Random;

/// What clients had been told when the power went.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) runs: BTreeSet<String>,
    ended: BTreeSet<String>,
    stopped: BTreeSet<String>,
    /// The kinds of the events that a client has read.
    pub(super) kinds: BTreeMap<String, Vec<String>>,
    seqs: BTreeMap<String, u64>,
    /// Orders: the run, and what stands in an event of it.
    orders: Vec<(String, String)>,
    triggers: BTreeSet<String>,
    notices: BTreeSet<String>,
    removed: BTreeSet<String>,
    /// Runs whose removal a client had asked for.
    pub(super) removing: BTreeSet<String>,
}

impl Told {
    pub(super) fn new(told: &[&Value]) -> Self {
        let asked = told.iter().filter(|what| what["told"] == "removing");
        let removing = asked.filter_map(|what| what["run"].as_str()).map(str::to_owned).collect();
        let mut all = Self { removing, ..Self::default() };
        for what in told {
            let text = |key: &str| what[key].as_str().unwrap_or_default().to_owned();
            let run = text("run");
            if all.removing.contains(&run) {
                if what["told"] == "removed" {
                    all.removed.insert(run);
                }
                continue;
            }
            all.take(what, &text, run);
        }
        all
    }

    fn take(&mut self, what: &Value, text: &dyn Fn(&str) -> String, run: String) {
        match what["told"].as_str() {
            Some("run") => drop(self.runs.insert(run)),
            Some("end") => drop(self.ended.insert(run)),
            Some("stopped") => drop(self.stopped.insert(run)),
            Some("events") => {
                let kinds = what["kinds"].as_array().into_iter().flatten();
                let kinds = kinds.filter_map(Value::as_str).map(str::to_owned).collect();
                self.kinds.insert(run, kinds);
            }
            Some("state") => {
                let seq = what["seq"].as_u64().unwrap_or(0);
                self.seqs.insert(run, seq);
            }
            Some("order") => self.orders.push((run, text("text"))),
            Some("trigger") => drop(self.triggers.insert(text("name"))),
            // What the command of the sink was told: the notice itself.
            _ => drop(what["data"]["run"].as_str().map(|run| self.notices.insert(run.to_owned()))),
        }
    }
}

/// Everything that is wrong with this disk. `scratch` is an empty directory for its journal.
pub(super) fn judge(
    image: &Image<'_, '_>,
    told: &Told,
    scratch: &Path,
    seed: u64,
) -> Result<Vec<String>> {
    let database = scratch.join("outlast.db");
    let Some(bytes) = image.read("state/outlast.db") else {
        let log = image.read("state/outlast.db-wal").is_some_and(|log| log.len() > 32);
        let lost = !told.runs.is_empty() || !told.triggers.is_empty() || log;
        return Ok(lost.then(|| "the journal is gone".to_owned()).into_iter().collect());
    };
    fs::write(&database, bytes)?;
    if let Some(log) = image.read("state/outlast.db-wal") {
        fs::write(scratch.join("outlast.db-wal"), log)?;
    }
    let mut random = Random::new(seed);
    if random.below(2) == 0 {
        // The shared index may be found with anything in it, and must not be believed.
        let garbage: Vec<u8> = (0..4096).flat_map(|_| random.next().to_le_bytes()).collect();
        fs::write(scratch.join("outlast.db-shm"), garbage)?;
    }
    let store = match Sqlite::open(&database) {
        Ok(store) => store,
        Err(error) => return Ok(vec![format!("the journal does not open: {error}")]),
    };
    let mut problems: Vec<String> = match store.check() {
        Ok(found) => found.into_iter().map(|it| format!("{:?}: {}", it.run, it.message)).collect(),
        Err(error) => vec![format!("the journal cannot be checked: {error}")],
    };
    problems.extend(missing(&store, told));
    problems.extend(files(&store, image));
    Ok(problems)
}

fn missing(store: &Sqlite, told: &Told) -> Vec<String> {
    let mut problems = Vec::new();
    let triggers = store.triggers().unwrap_or_default();
    for name in &told.triggers {
        if !triggers.iter().any(|trigger| trigger.name == *name) {
            problems.push(format!("trigger {name} was acknowledged and is gone"));
        }
    }
    for run in &told.removed {
        if !journal(store, run).is_empty() {
            problems.push(format!("run {run} was removed and is back"));
        }
    }
    for run in &told.runs {
        problems.extend(of_run(store, told, run));
    }
    for (run, text) in &told.orders {
        let is_there = |event: &Event| {
            serde_json::to_string(event).is_ok_and(|json| json.contains(text.as_str()))
        };
        if !journal(store, run).iter().any(is_there) {
            problems.push(format!("run {run}: the order {text:?} was acknowledged and is gone"));
        }
    }
    problems
}

fn of_run(store: &Sqlite, told: &Told, run: &String) -> Vec<String> {
    let events = journal(store, run);
    let kinds: Vec<&str> = events.iter().map(|event| event.fact.kind()).collect();
    let mut problems = Vec::new();
    if kinds.first() != Some(&"RunCreated") {
        problems.push(format!("run {run} was acknowledged and is gone"));
    }
    if let Some(seen) = told.kinds.get(run)
        && !begins_with(&kinds, seen)
    {
        problems.push(format!("run {run}: a client has read {seen:?}, and there is {kinds:?}"));
    }
    if told.seqs.get(run).is_some_and(|seq| *seq > events.len() as u64) {
        problems.push(format!("run {run}: a client has seen event {}", told.seqs[run]));
    }
    if told.ended.contains(run) && !kinds.contains(&"RunEnded") {
        problems.push(format!("run {run}: its end was told and is gone"));
    }
    if told.stopped.contains(run) && !kinds.contains(&"StopRequested") {
        problems.push(format!("run {run}: a stop was acknowledged and is gone"));
    }
    if told.notices.contains(run) {
        let counts = store.notice_counts(&RunId(run.clone())).unwrap_or_default();
        if counts.pending + counts.delivered == 0 {
            problems.push(format!("run {run}: its notice was delivered and is gone"));
        }
    }
    // An end that a client knows of is told, or still to be told.
    if let Some(Fact::RunCreated { spec, .. }) = events.first().map(|event| &event.fact) {
        let counts = store.notice_counts(&RunId(run.clone())).unwrap_or_default();
        let told_to = !spec.notify.is_empty();
        if told_to && kinds.contains(&"RunEnded") && counts.pending + counts.delivered == 0 {
            problems.push(format!("run {run} has ended, and no notice says so"));
        }
    }
    problems
}

/// True if the journal is still what a client has read of it, and at least as long.
pub(super) fn begins_with(kinds: &[&str], seen: &[String]) -> bool {
    seen.len() <= kinds.len() && seen.iter().zip(kinds).all(|(seen, kind)| seen == kind)
}

/// What a run needs to go on after the boot.
fn files(store: &Sqlite, image: &Image<'_, '_>) -> Vec<String> {
    let mut problems = Vec::new();
    for run in store.open_runs().unwrap_or_default() {
        let events = journal(store, &run.0);
        let Some(Fact::RunCreated { spec, .. }) = events.first().map(|event| &event.fact) else {
            continue;
        };
        let state = store.row(&run).ok().flatten().map(|row| row.state);
        let has_begun = events.iter().any(|event| event.fact.kind() == "TurnStarted");
        let may_go_on = spec.retry.max_attempts > 1 || spec.workflow.is_some() || !has_begun;
        let has_ended = events.iter().any(|event| event.fact.kind() == "RunEnded");
        if !may_go_on || has_ended || state == Some(StateName::Finishing) {
            continue;
        }
        let env = image.read(&format!("state/runs/{run}/env.json"));
        let is_sound = env.is_some_and(|env| serde_json::from_slice::<Value>(&env).is_ok());
        if !is_sound {
            problems.push(format!("run {run} may go on, and its environment is gone"));
        }
        let text = image.read(&format!("state/runs/{run}/workflow.md"));
        if spec.workflow.is_some() && text.is_none_or(|text| text.is_empty()) {
            problems.push(format!("run {run} may go on, and its loop file is gone"));
        }
    }
    problems
}

pub(super) fn journal(store: &Sqlite, run: &str) -> Vec<Event> {
    store.events(&RunId(run.to_owned()), 0, usize::MAX).unwrap_or_default()
}
