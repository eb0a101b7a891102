//! Which sink is meant: by a name in the config, or by an address.

use std::path::Path;

use outlast_engine::RunId;
use outlast_store::{Journal, Resolved};
use outlast_wire::codes::Code;
use outlast_workflow::notify::{self, LOG, Secret, Settings, Sink, Way};
use outlast_workflow::{Config, Refused};

use crate::ground::Ground;
use crate::refusal::Refusal;
use crate::world;

/// Bounds on what is written into every journal.
const MOST_SINKS: usize = 16;
const LONGEST_SINK: usize = 2048;

/// Sinks that a hint names; an operator may have thousands.
const MOST_NAMED: usize = 20;

/// No secret is longer.
const LONGEST_SECRET: usize = 4096;

/// The sink and what holds for all of them, as the config has it now.
pub(super) fn find(ground: &Ground, sink: &str) -> Result<(Sink, Settings), String> {
    let config = ground.settings.current().map_err(|refused| {
        let first = refused.errors.first().map(ToString::to_string).unwrap_or_default();
        format!("the config cannot be read: {first}")
    })?;
    let found = match config.sinks.get(sink) {
        Some(sink) => sink.clone(),
        None => match Sink::at(sink) {
            Some(sink) => sink?,
            None => return Err(format!("there is no sink {sink:?} in {}", config.file)),
        },
    };
    Ok((found, config.notify.clone()))
}

/// Where the command of a sink runs: beside the config that names it; else where the run was started, or the sender of
/// a test is. The root, if that is not there.
pub(super) fn dir(ground: &Ground, sink: &str, started_in: Option<&str>) -> String {
    let is_configured = ground.settings.current().is_ok_and(|config| {
        config.sinks.contains_key(sink) || config.notify.default.iter().any(|name| name == sink)
    });
    let beside_config = ground.settings.path().parent().filter(|_| is_configured);
    let dir = beside_config.or(started_in.map(Path::new)).filter(|dir| dir.is_dir());
    dir.and_then(Path::to_str).unwrap_or("/").to_owned()
}

/// What was meant by a name or an address that a person typed; refused if nothing can be.
pub(crate) fn known(config: &Config, sink: &str) -> Result<Sink, Refusal> {
    if sink.len() > LONGEST_SINK {
        let message = format!("a sink's address has at most {LONGEST_SINK} bytes");
        return Err(Refusal::new(Code::BadSink, message).hint("cmd: may name a script"));
    }
    if let Some(found) = config.sinks.get(sink) {
        return Ok(found.clone());
    }
    let hint = || hint(config.sinks.keys());
    match Sink::at(sink) {
        Some(Ok(found)) => Ok(found),
        Some(Err(why)) => {
            let message = format!("{} is not an address: {why}", notify::shown(sink));
            Err(Refusal::new(Code::BadSink, message).hint(hint()))
        }
        None => {
            Err(Refusal::new(Code::UnknownSink, format!("there is no sink {sink:?}")).hint(hint()))
        }
    }
}

/// What could have been typed instead.
fn hint<'n>(names: impl ExactSizeIterator<Item = &'n String>) -> String {
    let more = names.len().saturating_sub(MOST_NAMED);
    let named: Vec<&str> = names.take(MOST_NAMED).map(String::as_str).collect();
    let named = named.join(", ");
    match (named.is_empty(), more) {
        (true, _) => "no sinks are configured; cmd:COMMAND, webhook:URL, ntfy:URL, desktop and run:RUN need none".to_owned(),
        (false, 0) => format!("{named}, or an address such as cmd:COMMAND, webhook:URL or run:RUN"),
        (false, more) => format!("{named}, an address such as cmd:COMMAND, webhook:URL or run:RUN, or one of {more} more:\noutlast sink ls"),
    }
}

/// A config that was never right says nothing about sinks.
pub(crate) fn unreadable(refused: &Refused) -> Refusal {
    let lines: Vec<String> = refused.errors.iter().map(ToString::to_string).collect();
    Refusal::new(Code::ConfigUnusable, lines.join("\n")).hint("outlast config check")
}

/// The sinks that a run is made with, each once; a run that is named is pinned to its id. Blocks.
pub(crate) fn pinned(
    store: &dyn Journal,
    config: &Config,
    sinks: &[String],
) -> Result<Vec<String>, Refusal> {
    let mut pinned: Vec<String> = Vec::new();
    for sink in sinks {
        let sink = if sink == LOG { sink.clone() } else { pin(store, config, sink)? };
        if !pinned.contains(&sink) {
            pinned.push(sink);
        }
    }
    if pinned.len() > MOST_SINKS {
        let message = format!("{} sinks are more than {MOST_SINKS}", pinned.len());
        return Err(Refusal::new(Code::BadSink, message).hint("one cmd: sink can notify many"));
    }
    Ok(pinned)
}

fn pin(store: &dyn Journal, config: &Config, sink: &str) -> Result<String, Refusal> {
    let found = known(config, sink)?;
    match (&found.way, sink.strip_prefix("run:")) {
        (Way::Run { .. }, Some(run)) => Ok(format!("run:{}", run_meant(store, run)?)),
        _ => Ok(sink.to_owned()),
    }
}

/// The run that is meant by an id, the beginning of one, or a name.
pub(super) fn run_meant(store: &dyn Journal, run: &str) -> Result<String, Refusal> {
    let newest = || Ok(store.newest()?.map_or(Resolved::None, Resolved::One));
    let resolved = if run == Resolved::LAST { newest() } else { store.resolve(run) };
    let resolved =
        resolved.map_err(|error| Refusal::new(Code::JournalUnusable, error.to_string()))?;
    match resolved {
        Resolved::One(id) => Ok(id.0),
        Resolved::None => {
            Err(Refusal::new(Code::UnknownRun, format!("there is no run {run} to notify"))
                .hint("outlast ps -a"))
        }
        Resolved::Many(some) => {
            let ids: Vec<&str> = some.iter().map(RunId::as_str).collect();
            let message = format!("{run} is ambiguous: {}", ids.join(", "));
            Err(Refusal::new(Code::AmbiguousRun, message).hint("outlast ps -a"))
        }
    }
}

/// A secret's value, from where it is kept.
pub(super) fn reveal(secret: &Secret) -> Result<String, String> {
    match secret {
        Secret::Given(text) => Ok(text.clone()),
        Secret::Env(name) => {
            world::variable(name).ok_or_else(|| format!("the daemon's environment has no {name}"))
        }
        Secret::File(path) => {
            let bytes =
                std::fs::read(path).map_err(|error| format!("cannot read {path}: {error}"))?;
            let text = String::from_utf8(bytes).map_err(|_| format!("{path} is not text"))?;
            let line = text.lines().next().unwrap_or_default().trim();
            match line.len() {
                0 => Err(format!("{path} is empty")),
                1..=LONGEST_SECRET => Ok(line.to_owned()),
                _ => Err(format!("the first line of {path} is longer than {LONGEST_SECRET} bytes")),
            }
        }
    }
}
