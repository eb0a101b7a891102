//! Reading what a shim has written about its step. What that means is `outlast_conduct::records`.
//!
//! A missing file is no record, and a last line without its end does not count. Any other unreadable line is an
//! error.

use std::io;
use std::path::Path;

use outlast_engine::{End, Report};
use outlast_wire::shim::Record;

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
    let bytes = match outlast_home::regular::read(path) {
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
    let bytes = outlast_home::regular::read(path)
        .map_err(|error| Unreadable::Io { path: path.display().to_string(), error })?;
    let mut lines = bytes.split(|byte| *byte == b'\n');
    let before: Vec<&[u8]> = lines.by_ref().take(line - 1).collect();
    if !lines.next().is_some_and(|damaged| damaged.contains(&0)) {
        return Err(unreadable);
    }
    tracing::warn!(path = %path.display(), line, "a power loss took the records from this line on");
    Ok(before.into_iter().map_while(|line| serde_json::from_slice(line).ok()).collect())
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
