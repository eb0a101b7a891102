//! Triggers as clients see them. What a run of theirs is given, and secrets, are not among it.

use outlast_engine::Time;
use outlast_engine::duration::typed;
use outlast_store::{Error, Tally};
use outlast_wire::api::{CreateRun, Overlap, TriggerSource, TriggerView, Trouble, When};
use outlast_wire::words::TroubleCode;

use super::{Entry, Known, Triggers};
use crate::view::rfc3339;

/// Up to `most` triggers after this name, by name. Blocks.
pub(crate) fn page(
    triggers: &Triggers,
    after: &str,
    most: usize,
) -> Result<Vec<TriggerView>, Error> {
    let page = triggers.table.page(after, most);
    let (Some(first), Some(last)) = (page.first(), page.last()) else { return Ok(Vec::new()) };
    let mut tallies = triggers.ground.store.tallies(first.name(), last.name())?;
    let view = |known: &Known| {
        let tally = tallies.remove(known.name()).unwrap_or_default();
        of(triggers, known, tally)
    };
    Ok(page.iter().map(view).collect())
}

/// The trigger of this name. Blocks.
pub(crate) fn one(triggers: &Triggers, name: &str) -> Result<Option<TriggerView>, Error> {
    let Some(known) = triggers.table.known(name) else { return Ok(None) };
    Ok(Some(of(triggers, &known, triggers.ground.store.tally(name)?)))
}

fn of(triggers: &Triggers, known: &Known, tally: Tally) -> TriggerView {
    match known {
        Known::Readable(entry) => readable(triggers, entry, tally),
        Known::Unreadable { name, kind, trouble } => unreadable(name, kind, trouble),
    }
}

fn readable(triggers: &Triggers, entry: &Entry, tally: Tally) -> TriggerView {
    let brief = &entry.brief;
    let Tally { open, waiting, made, skipped, refused, last_made, last_refused, is_refusing } =
        tally;
    let is_schedule = matches!(brief.source, TriggerSource::Schedule { .. });
    let (last_at, last_run) = last_made.unzip();
    let refusal = last_refused.map(|(at, message)| Trouble {
        code: TroubleCode::Refused.into(),
        message,
        since: rfc3339(at),
    });
    TriggerView {
        id: Some(entry.id()),
        name: brief.name.to_string(),
        kind: brief.source.kind().to_owned(),
        source: source(&brief.source, &brief.name),
        overlap: entry.overlap(),
        missed: is_schedule.then(|| entry.missed()),
        paused: entry.paused,
        created_at: rfc3339(entry.created_at),
        next_at: next_at(entry, triggers.ground.world.now()).map(rfc3339),
        last_at: last_at.map(rfc3339),
        last_run: last_run.map(|run| run.0),
        runs: made,
        open,
        waiting,
        skipped: skipped + entry.progress.skipped,
        refused,
        filtered: entry.filtered,
        trouble: trouble(entry).or_else(|| refusal.clone().filter(|_| is_refusing)),
        refusal,
        hook: None,
        what: brief.what.clone(),
    }
}

/// What is wrong, the worst of it.
fn trouble(entry: &Entry) -> Option<Trouble> {
    let stuck = entry.stuck.as_ref().map(|stuck| stuck.trouble.clone());
    stuck.or_else(|| entry.trouble.clone()).or_else(|| entry.note.clone())
}

fn unreadable(name: &str, kind: &str, trouble: &Trouble) -> TriggerView {
    TriggerView {
        id: None,
        name: name.to_owned(),
        kind: kind.to_owned(),
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
        trouble: Some(trouble.clone()),
        refusal: None,
        hook: None,
        what: String::new(),
    }
}

fn next_at(entry: &Entry, now: Time) -> Option<Time> {
    if entry.paused {
        return None;
    }
    let cursor = entry.progress.cursor();
    match (&entry.brief.source, entry.progress.retry_at()) {
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
        TriggerSource::Schedule { when: When::EveryMs(ms), .. } => format!("every {}", typed(*ms)),
        TriggerSource::Schedule { when: When::At(text), tz } => {
            format!("at {text} {}", tz.as_deref().unwrap_or("UTC"))
        }
        TriggerSource::Webhook { .. } => format!("/hooks/{name}"),
        TriggerSource::Folder { dir, .. } => dir.clone(),
        TriggerSource::Poll { command, every_ms, .. } => {
            format!("{command} every {}", typed(*every_ms))
        }
    }
}

/// A word as a shell takes it.
fn typed_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The loop file, the command as it could be typed, or the task, on one line.
pub(super) fn what(run: &CreateRun) -> String {
    let file = run.workflow.as_ref().map(|file| file.path.clone());
    let command = || run.command.iter().map(|word| typed_word(word)).collect::<Vec<_>>().join(" ");
    let text = match (file, &run.task) {
        (Some(file), _) => file,
        (None, Some(task)) if run.command.is_empty() => task.clone(),
        (None, _) => command(),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_of_a_loop_file_shows_the_file_and_not_its_task() {
        let asked = |json: serde_json::Value| -> CreateRun {
            serde_json::from_value(json).expect("a request")
        };
        let file = serde_json::json!({ "path": "/w/WORKFLOW.md", "text": "" });
        let task = "fix {{ item.title }}";
        let looped = asked(serde_json::json!({ "dir": "/w", "task": task, "workflow": file }));
        assert_eq!(what(&looped), "/w/WORKFLOW.md");
        let agent = asked(serde_json::json!({ "dir": "/w", "task": task, "agent": "claude" }));
        assert_eq!(what(&agent), task);
        let command =
            asked(serde_json::json!({ "dir": "/w", "task": task, "command": ["make", "-j8"] }));
        assert_eq!(what(&command), "make -j8");
    }

    #[test]
    fn spans_are_as_they_are_typed() {
        assert_eq!(
            [90_000, 3_600_000, 5_400_000, 86_400_000, 1500].map(typed),
            ["1m30s", "1h", "1h30m", "1d", "1s500ms"]
        );
    }
}
