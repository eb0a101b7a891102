//! What a shim has written about its step, and what that means to the engine.
//!
//! A missing file is no record, and a last line without its end does not count. Any other unreadable line is an
//! error.

use std::io;
use std::path::Path;

use outlast_engine as engine;
use outlast_engine::{Custody, End, Report, Started, Step, Survivor, Time, TreeNews};
use outlast_wire::shim::{self, Record};

use crate::world::World;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("cannot read {path}: {error}")]
    Io { path: String, error: io::Error },
    #[error("{path} line {line} is not a record: {error}")]
    Line { path: String, line: usize, error: serde_json::Error },
}

/// Reads `events.jsonl`. No file means no record; a last line without its end was never written whole and
/// does not count; anything else that cannot be read is refused.
pub(crate) fn read(path: &Path) -> Result<Vec<Record>, Unreadable> {
    let name = || path.display().to_string();
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Unreadable::Io { path: name(), error }),
    };
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(&[][..], |end| &bytes[..end]);
    if whole.is_empty() {
        return Ok(Vec::new());
    }
    let lines = whole.split(|byte| *byte == b'\n').enumerate();
    lines
        .map(|(index, line)| {
            serde_json::from_slice(line).map_err(|error| Unreadable::Line {
                path: name(),
                line: index + 1,
                error,
            })
        })
        .collect()
}

/// The records of a step of another boot: those before the first that a power loss took. The bytes that never got to
/// the disk are zeros; other damage is refused. The record of an exit is synced with all before it, so it is not lost.
pub(crate) fn read_after_boot(path: &Path) -> Result<Vec<Record>, Unreadable> {
    let (line, unreadable) = match read(path) {
        Err(Unreadable::Line { line, path, error }) => {
            (line, Unreadable::Line { line, path, error })
        }
        other => return other,
    };
    let bytes = std::fs::read(path)
        .map_err(|error| Unreadable::Io { path: path.display().to_string(), error })?;
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let before: Vec<&[u8]> = lines.by_ref().take(line - 1).collect();
    if !lines.next().is_some_and(|damaged| damaged.contains(&0)) {
        return Err(unreadable);
    }
    tracing::warn!(path = %path.display(), line, "a power loss took the records from this line on");
    Ok(before.into_iter().map_while(|line| serde_json::from_slice(line).ok()).collect())
}

/// True if a shim was told to start this attempt.
pub(crate) fn is_begun(records: &[Record]) -> bool {
    !records.is_empty()
}

/// True if no process of this attempt can be left.
pub(crate) fn is_over(records: &[Record]) -> bool {
    records
        .iter()
        .any(|record| matches!(record, Record::TreeEmpty { .. } | Record::NeverStarted { .. }))
}

/// True if the main process is known to be gone, or never to have run.
pub(crate) fn has_ended(records: &[Record]) -> bool {
    end(records).is_some()
}

pub(crate) fn identity(records: &[Record]) -> Option<&shim::Identity> {
    records.iter().find_map(|record| match record {
        Record::Started { identity, .. } => Some(identity),
        _ => None,
    })
}

/// Why the shim was ending the tree, if it was.
pub(crate) fn ending(records: &[Record]) -> Option<engine::EndCause> {
    records.iter().find_map(|record| match record {
        Record::Ending { cause, .. } => Some(end_cause(*cause)),
        _ => None,
    })
}

/// How often a stop is known to have failed.
pub(crate) fn failed_stops(records: &[Record]) -> usize {
    records.iter().filter(|record| matches!(record, Record::StopIncomplete { .. })).count()
}

/// The records as a report. `stops_before` is how many failed stops were there before the latest was asked for.
pub(crate) fn report(
    step: Step,
    custody: Custody,
    records: &[Record],
    stops_before: usize,
) -> Report {
    let output_bytes = records.iter().find_map(|record| match record {
        Record::Exited { output_bytes, .. } => Some(*output_bytes),
        _ => None,
    });
    Report {
        started: records.iter().find_map(started),
        end: end(records),
        tree: tree(records, stops_before),
        output_bytes: output_bytes.unwrap_or(0),
        ..Report::of(step, custody)
    }
}

/// The times of a shim are on the line of time of the daemon that started it, which may have moved since.
pub(crate) fn in_our_time(report: &mut Report, line: Option<i64>, world: &World) {
    if let Some(started) = &mut report.started {
        started.at = world.of_shim(started.at, line);
    }
    if let Some(End::Exited { at, .. } | End::NeverStarted { at, .. }) = &mut report.end {
        *at = world.of_shim(*at, line);
    }
}

/// On which line of time these are, if the shim knew.
pub(crate) fn line(records: &[Record]) -> Option<i64> {
    records.iter().find_map(|record| match record {
        Record::Starting { booted_at_ms, .. } => *booted_at_ms,
        _ => None,
    })
}

fn started(record: &Record) -> Option<Started> {
    match record {
        Record::Started { at_ms, identity } => {
            Some(Started { at: Time(*at_ms), pid: identity.pid, start: identity.start })
        }
        _ => None,
    }
}

fn end(records: &[Record]) -> Option<End> {
    let never = records.iter().find_map(|record| match record {
        Record::NeverStarted { at_ms, code, why } => Some(End::NeverStarted {
            at: Time(*at_ms),
            code: never_started(*code),
            why: why.clone(),
        }),
        _ => None,
    });
    let cause = ending(records);
    // Ended after the main process was gone by itself is not how the attempt ended.
    let asked = records.iter().position(|record| matches!(record, Record::Ending { .. }));
    let exited = records.iter().enumerate().find_map(|(index, record)| match record {
        Record::Exited { at_ms, exit, .. } => {
            let cause = cause.filter(|_| asked.is_some_and(|asked| asked < index));
            Some(End::Exited { at: Time(*at_ms), exit: engine_exit(*exit), cause })
        }
        _ => None,
    });
    never.or(exited)
}

fn tree(records: &[Record], stops_before: usize) -> TreeNews {
    let last = records.iter().rev().find_map(|record| match record {
        Record::TreeEmpty { .. } | Record::NeverStarted { .. } => Some(TreeNews::Empty),
        Record::StopIncomplete { survivors, .. } => Some(TreeNews::Left {
            survivors: engine_survivors(survivors),
            stop_failed: failed_stops(records) > stops_before,
        }),
        Record::Exited { survivors, .. } if !survivors.is_empty() => {
            Some(TreeNews::Left { survivors: engine_survivors(survivors), stop_failed: false })
        }
        Record::Exited { .. }
        | Record::Starting { .. }
        | Record::Started { .. }
        | Record::Ending { .. } => None,
    });
    last.unwrap_or(TreeNews::Unknown)
}

fn engine_survivors(survivors: &[shim::Survivor]) -> Vec<Survivor> {
    let copy = |from: &shim::Survivor| Survivor {
        pid: from.pid,
        start: from.start,
        command: from.command.clone(),
    };
    survivors.iter().map(copy).collect()
}

fn engine_exit(exit: shim::Exit) -> engine::Exit {
    match exit {
        shim::Exit::Code(code) => engine::Exit::Code(code),
        shim::Exit::Signal(signal) => engine::Exit::Signal(signal),
    }
}

fn end_cause(cause: shim::EndCause) -> engine::EndCause {
    match cause {
        shim::EndCause::Stopped => engine::EndCause::Stopped,
        shim::EndCause::TimedOut => engine::EndCause::TimedOut,
        shim::EndCause::Stalled => engine::EndCause::Stalled,
    }
}

fn never_started(code: shim::NeverStarted) -> engine::NeverStarted {
    match code {
        shim::NeverStarted::CommandNotFound => engine::NeverStarted::CommandNotFound,
        shim::NeverStarted::NotExecutable => engine::NeverStarted::NotExecutable,
        shim::NeverStarted::NoDirectory => engine::NeverStarted::NoDirectory,
        shim::NeverStarted::NoResources => engine::NeverStarted::NoResources,
        shim::NeverStarted::BadSpec => engine::NeverStarted::BadSpec,
        shim::NeverStarted::TooLong => engine::NeverStarted::TooLong,
        shim::NeverStarted::Stopped => engine::NeverStarted::Stopped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_last_line_is_dropped_and_a_broken_whole_line_is_refused() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("events.jsonl");
        let good = r#"{"event":"starting","at_ms":1,"epoch":2}"#;
        let put = |text: String| {
            use std::io::Write;
            let mut file = std::fs::File::create(&path).expect("the file is ours");
            file.write_all(text.as_bytes()).expect("the file takes it");
        };
        put(format!("{good}\n{{\"event\":\"sta"));
        assert_eq!(read(&path).expect("the tail is dropped").len(), 1);
        put(format!("{{\"event\":\"sta\n{good}\n"));
        assert!(matches!(read(&path), Err(Unreadable::Line { line: 1, .. })));
        put(String::new());
        assert_eq!(read(&path).expect("nothing is nothing"), []);
    }
}
