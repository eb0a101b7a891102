//! `outlast __complete WORDS…`: what Tab offers for the last of the words. The completion scripts ask this.
//!
//! Never starts a daemon, and never says that something is wrong: Tab then offers nothing.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use outlast_agents::adapter::DRIVEN;
use outlast_client::ask::Ask;
use outlast_client::session::Session;
use outlast_wire::api::{RunRow, SinkRow, TriggerView};
use serde::de::DeserializeOwned;

use crate::Answer;
use crate::args;
use crate::completion::{self, Objects, Offer};
use crate::loop_file;
use crate::output::{self, figures};
use crate::world::World;

/// A daemon that takes longer offers nothing.
const PATIENCE: Duration = Duration::from_secs(1);
/// So many of the newest runs are offered.
const MOST_RUNS: u32 = 200;

pub(crate) fn complete(mut env: Vec<(OsString, OsString)>, words: Vec<OsString>) -> Answer {
    // A key must not start a daemon.
    env.push(("OUTLAST_NO_AUTOSTART".into(), "1".into()));
    let world = World::new(env);
    let words: Vec<String> =
        words.into_iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let current = words.last().cloned().unwrap_or_default();
    let offered = match completion::offer(&args::whole(), &words) {
        Offer::Words(words) => words,
        Offer::Objects(objects) => known(&world, objects, &current),
        Offer::Files => return output::print_line(":files").map(|()| 0),
        Offer::Directories => return output::print_line(":dirs").map(|()| 0),
        Offer::Command(first) => {
            return output::print_line(&format!(":command {first}")).map(|()| 0);
        }
    };
    // Bash gives `=` as a word of its own.
    let typed = if current == "=" { "" } else { &current };
    for (word, about) in offered.iter().filter(|(word, _)| word.starts_with(typed)) {
        output::print_line(&format!("{word}\t{}", output::printable(about)))?;
    }
    Ok(0)
}

/// What the daemon knows by name; nothing if no daemon answers.
fn known(world: &World, objects: Objects, typed: &str) -> Vec<(String, String)> {
    match objects {
        Objects::LiveRuns => runs(ask(world, &Ask::get("/v1/runs")), typed),
        Objects::AllRuns => {
            let all = Ask::get("/v1/runs").query("all", true).query("most", MOST_RUNS);
            runs(ask(world, &all), typed)
        }
        Objects::Sinks => {
            let sinks: Vec<SinkRow> = ask(world, &Ask::get("/v1/sinks"));
            sinks.into_iter().map(|sink| (sink.name, sink.kind.unwrap_or_default())).collect()
        }
        Objects::Queues => {
            let label = |(key, value): (String, String)| (key == "queue").then_some(value);
            counted(labels(world).filter_map(label))
        }
        Objects::Labels => counted(labels(world).map(|(key, value)| format!("{key}={value}"))),
        Objects::Agents => agents(world),
        Objects::Triggers => triggers(world).map(|it| (it.name, it.source)).collect(),
        Objects::Schedules => {
            let schedules = triggers(world).filter(|it| it.kind == "schedule");
            schedules.map(|it| (it.name, it.source)).collect()
        }
    }
}

/// The labels of the newest runs, each as often as a run has it.
fn labels(world: &World) -> impl Iterator<Item = (String, String)> {
    let all = Ask::get("/v1/runs").query("all", true).query("most", MOST_RUNS);
    let rows: Vec<RunRow> = ask(world, &all);
    rows.into_iter().flat_map(|row| row.labels)
}

/// Each word once, with how many runs have it.
fn counted(words: impl Iterator<Item = String>) -> Vec<(String, String)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    words.for_each(|word| *counts.entry(word).or_default() += 1);
    counts.into_iter().map(|(word, count)| (word, figures::count(count, "run"))).collect()
}

/// The kinds that are built in, and those that config.toml declares.
fn agents(world: &World) -> Vec<(String, String)> {
    let built_in = ["exec", "file"].into_iter().chain(DRIVEN.iter().map(|kind| kind.name));
    let mut kinds: Vec<(String, String)> =
        built_in.map(|kind| (kind.to_owned(), String::new())).collect();
    let declared = world.client.layout().ok().and_then(|it| loop_file::config(it).ok());
    let declared = declared.map(|(config, _)| config.agents).unwrap_or_default();
    kinds.extend(declared.into_keys().map(|kind| (kind, "of config.toml".to_owned())));
    kinds
}

fn triggers(world: &World) -> impl Iterator<Item = TriggerView> {
    ask(world, &Ask::get("/v1/triggers")).into_iter()
}

/// Each by its name, or by its id if it has none or the id is being typed; the newest first.
fn runs(rows: Vec<RunRow>, typed: &str) -> Vec<(String, String)> {
    let mut offered: Vec<(String, String)> = Vec::new();
    if typed.starts_with('@') {
        offered.push(("@last".to_owned(), "the newest run".to_owned()));
    }
    for RunRow { id, name, state, what, .. } in rows {
        let about = |other: &str| format!("{state}  {other}{what}");
        match name {
            Some(name) => {
                if !typed.is_empty() && id.starts_with(typed) {
                    offered.push((id.clone(), about(&format!("{name}: "))));
                }
                // Of runs with one name, the newest is meant.
                if !offered.iter().any(|(word, _)| *word == name) {
                    offered.push((name, about("")));
                }
            }
            None => offered.push((id, about(""))),
        }
    }
    offered
}

fn ask<T: DeserializeOwned>(world: &World, ask: &Ask) -> Vec<T> {
    let mut answer = Vec::new();
    let asked = super::block_on(async {
        let mut session = Session::new(&world.client);
        let waited = tokio::time::timeout(PATIENCE, session.call(ask)).await;
        answer = waited.ok().and_then(Result::ok).unwrap_or_default();
        Ok(0)
    });
    if asked.is_ok() { answer } else { Vec::new() }
}
