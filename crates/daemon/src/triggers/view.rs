//! Triggers as clients see them. What a run of theirs is given, and secrets, are not among it.

use outlast_engine::Time;
use outlast_store::{Error, Tally};
use outlast_wire::api::{Overlap, TriggerSource, TriggerView, Trouble, When};

use super::Entry;
use crate::supervisor::Supervisor;
use crate::view::rfc3339;

/// All triggers, by name. Blocks.
pub(crate) fn all(supervisor: &Supervisor) -> Result<Vec<TriggerView>, Error> {
    let desk = &supervisor.triggers;
    let mut views = Vec::new();
    for entry in desk.entries() {
        views.push(one(supervisor, &entry)?);
    }
    views.extend(desk.unreadable().into_iter().map(unreadable));
    views.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(views)
}

/// Blocks.
pub(crate) fn one(supervisor: &Supervisor, entry: &Entry) -> Result<TriggerView, Error> {
    let spec = &entry.spec;
    let Tally { waiting, made, skipped, refused, last_made, last_refused } =
        supervisor.store.tally(&spec.name)?;
    let is_schedule = matches!(spec.source, TriggerSource::Schedule { .. });
    let (last_at, last_run) = last_made.unzip();
    let refusal = last_refused
        .filter(|_| refused > 0)
        .map(|message| Trouble { since: rfc3339(entry.created_at), ..told("refused", &message) });
    Ok(TriggerView {
        name: spec.name.clone(),
        kind: spec.source.kind().to_owned(),
        source: source(&spec.source, &spec.name),
        overlap: entry.overlap(),
        missed: is_schedule.then(|| entry.missed()),
        paused: entry.paused,
        created_at: rfc3339(entry.created_at),
        next_at: next_at(entry, supervisor.world.wall()).map(rfc3339),
        last_at: last_at.map(rfc3339),
        last_run: last_run.map(|run| run.0),
        runs: made,
        open: supervisor.store.open_runs_of(&spec.name)?,
        waiting,
        skipped: skipped + entry.progress.skipped,
        refused,
        filtered: entry.filtered,
        trouble: trouble(entry).or(refusal),
        what: what(entry),
    })
}

/// What is wrong, the worst of it.
fn trouble(entry: &Entry) -> Option<Trouble> {
    let stuck = entry.stuck.as_ref().map(|stuck| stuck.trouble.clone());
    stuck.or_else(|| entry.trouble.clone()).or_else(|| entry.note.clone())
}

fn told(code: &str, message: &str) -> Trouble {
    Trouble { code: code.to_owned(), message: message.to_owned(), since: String::new() }
}

fn unreadable((name, (kind, trouble)): (String, (String, Trouble))) -> TriggerView {
    TriggerView {
        name,
        kind,
        source: "?".to_owned(),
        overlap: Overlap::Skip,
        missed: None,
        paused: false,
        created_at: trouble.since.clone(),
        next_at: None,
        last_at: None,
        last_run: None,
        runs: 0,
        open: 0,
        waiting: 0,
        skipped: 0,
        refused: 0,
        filtered: 0,
        trouble: Some(trouble),
        what: String::new(),
    }
}

fn next_at(entry: &Entry, now: Time) -> Option<Time> {
    if entry.paused {
        return None;
    }
    let cursor = entry.progress.cursor();
    match (&entry.spec.source, entry.progress.retry_at()) {
        (_, Some(retry_at)) => Some(retry_at),
        (TriggerSource::Schedule { .. }, None) => {
            entry.schedule.as_ref()?.next_after(cursor.max(now))
        }
        (TriggerSource::Poll { every_ms, .. }, None) => Some(cursor.plus_ms(*every_ms).max(now)),
        (TriggerSource::Webhook { .. } | TriggerSource::Folder { .. }, None) => None,
    }
}

fn source(source: &TriggerSource, name: &str) -> String {
    match source {
        TriggerSource::Schedule { when: When::Cron(text), tz } => {
            format!("cron {text} {}", tz.as_deref().unwrap_or("UTC"))
        }
        TriggerSource::Schedule { when: When::EveryMs(ms), .. } => format!("every {}", span(*ms)),
        TriggerSource::Schedule { when: When::At(text), tz } => {
            format!("at {text} {}", tz.as_deref().unwrap_or("UTC"))
        }
        TriggerSource::Webhook { .. } => format!("/hooks/{name}"),
        TriggerSource::Folder { dir, .. } => dir.clone(),
        TriggerSource::Poll { command, every_ms, .. } => {
            format!("{command} every {}", span(*every_ms))
        }
    }
}

/// As it is typed: `1h30m`.
fn span(ms: u64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms")];
    let mut left = ms;
    let parts = units.iter().filter_map(|(unit, name)| {
        let count = left / unit;
        left %= unit;
        (count > 0).then(|| format!("{count}{name}"))
    });
    parts.collect()
}

fn what(entry: &Entry) -> String {
    let run = &entry.spec.run;
    let file = || run.workflow.as_ref().map(|file| file.path.clone());
    let text = run.task.clone().or_else(file).unwrap_or_else(|| run.command.join(" "));
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_as_they_are_typed() {
        assert_eq!(
            [90_000, 3_600_000, 5_400_000, 86_400_000, 1500].map(span),
            ["1m30s", "1h", "1h30m", "1d", "1s500ms"]
        );
    }
}
