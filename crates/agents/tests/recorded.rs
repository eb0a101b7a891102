//! Every recording of a real agent, played to its adapter: the events that come of it are beside the recording.
//!
//! `OUTLAST_WRITE_EVENTS=1 cargo test -p outlast-agents --test recorded` writes those files anew; look at the difference.

#![expect(
    clippy::disallowed_methods,
    reason = "reads recordings, and writes what comes of them when asked"
)]

use std::fs;
use std::path::{Path, PathBuf};

use outlast_agents::adapter::{
    Act, Adapter, ApprovalMode, Approvals, End, Event, Heard, Turn, driven,
};

/// Which recordings are of which kind.
const RECORDED: [(&str, &str); 3] =
    [("claude-2.1.197", "claude"), ("claude-2.1.325", "claude"), ("pi-0.87.1", "pi")];

struct Recording {
    kind: &'static str,
    path: PathBuf,
    lines: Vec<Vec<u8>>,
}

/// What the agent has written in each recording.
fn recordings() -> Vec<Recording> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings");
    let mut found = Vec::new();
    for (dir, kind) in RECORDED {
        let mut paths: Vec<PathBuf> = fs::read_dir(root.join(dir))
            .expect("recordings")
            .map(|entry| entry.expect("a recording").path())
            .collect();
        paths.retain(|path| path.extension().is_some_and(|it| it == "jsonl"));
        paths.sort();
        found.extend(paths.into_iter().map(|path| Recording { kind, lines: lines(&path), path }));
    }
    assert!(!found.is_empty());
    found
}

/// The agent's own lines: all of a plain recording, one direction of a transcript.
fn lines(path: &Path) -> Vec<Vec<u8>> {
    let whole = fs::read_to_string(path).expect("a recording");
    let own = |line: &str| -> Option<Vec<u8>> {
        let Ok(value) = serde_json::from_str::<serde_json::Value>(line) else {
            return Some(line.into());
        };
        match (value.get("dir").and_then(|it| it.as_str()), value.get("msg")) {
            (Some("<"), Some(said)) => Some(said.to_string().into_bytes()),
            (Some(_), Some(_)) => None,
            _ => Some(line.into()),
        }
    };
    whole.lines().filter_map(own).collect()
}

fn adapter(kind: &str) -> Box<dyn Adapter> {
    let approvals = Approvals { mode: ApprovalMode::Allow, allow: Vec::new() };
    let turn =
        Turn { prompt: "Do it.".to_owned(), dir: "/work".to_owned(), approvals, ..Turn::default() };
    driven(kind).expect("a driven kind").adapter(turn)
}

/// The events of one turn: what comes after its end is of another.
fn play<'a>(kind: &str, lines: impl Iterator<Item = &'a [u8]>) -> Vec<Event> {
    let mut adapter = adapter(kind);
    let mut events = told(adapter.begin());
    for line in lines {
        events.extend(told(adapter.hear(Heard::Line(line))));
        if is_over(&events) {
            return events;
        }
    }
    events.extend(told(adapter.hear(Heard::End)));
    events
}

fn told(acts: Vec<Act>) -> Vec<Event> {
    acts.into_iter()
        .filter_map(|act| if let Act::Tell(event) = act { Some(event) } else { None })
        .collect()
}

fn is_over(events: &[Event]) -> bool {
    events.iter().any(|event| matches!(event, Event::Ended(_)))
}

fn end(events: &[Event]) -> &End {
    let ends: Vec<&End> = events
        .iter()
        .filter_map(|it| if let Event::Ended(end) = it { Some(end) } else { None })
        .collect();
    assert_eq!(ends.len(), 1, "a turn ends once: {events:?}");
    ends[0]
}

#[test]
fn each_recording_is_understood_as_it_was() {
    let is_writing = std::env::var_os("OUTLAST_WRITE_EVENTS").is_some();
    for recording in recordings() {
        let events = play(recording.kind, recording.lines.iter().map(Vec::as_slice));
        let mut text = String::new();
        for event in &events {
            text.push_str(&serde_json::to_string(event).unwrap());
            text.push('\n');
        }
        let beside = recording.path.with_extension("events");
        if is_writing {
            fs::write(&beside, &text).unwrap();
        }
        let expected = fs::read_to_string(&beside).unwrap_or_default();
        assert!(text == expected, "{}:\n{text}\nis not\n{expected}", recording.path.display());
        end(&events);
    }
}

#[test]
fn a_recording_that_is_cut_at_any_line_is_never_a_success_before_its_time() {
    for recording in recordings() {
        let whole = play(recording.kind, recording.lines.iter().map(Vec::as_slice));
        for cut in 0..recording.lines.len() {
            let events = play(recording.kind, recording.lines[..cut].iter().map(Vec::as_slice));
            match end(&events) {
                End::Interrupted => {}
                ended => assert_eq!(ended, end(&whole), "{} at {cut}", recording.path.display()),
            }
        }
    }
}

#[test]
fn garbage_between_lines_is_counted_and_changes_nothing_else() {
    let garbage: [&[u8]; 4] =
        [b"\xff\xfe not text", b"{\"type\":", b"[1,2,3]", b"Debugger attached."];
    for recording in recordings() {
        let clean = play(recording.kind, recording.lines.iter().map(Vec::as_slice));
        let between = recording
            .lines
            .iter()
            .enumerate()
            .flat_map(|(at, line)| [garbage[at % 4], line.as_slice()]);
        let mut noisy = play(recording.kind, between);
        let is_count = |event: &Event| matches!(event, Event::NotUnderstood { .. });
        assert!(noisy.iter().any(is_count), "{}", recording.path.display());
        noisy.retain(|event| !is_count(event));
        let clean: Vec<Event> = clean.into_iter().filter(|event| !is_count(event)).collect();
        assert_eq!(noisy, clean, "{}", recording.path.display());
    }
}

/// A later version may rename anything. What is then not understood is no success.
#[test]
fn a_version_to_come_is_interrupted_and_never_a_success() {
    for recording in recordings() {
        let renamed = |line: &Vec<u8>| {
            let text = String::from_utf8_lossy(line);
            let text = text.replace("\"type\":", "\"kind\":").replace("\"method\":", "\"verb\":");
            text.replace("\"result\":", "\"outcome\":").into_bytes()
        };
        let lines: Vec<Vec<u8>> = recording.lines.iter().map(renamed).collect();
        let events = play(recording.kind, lines.iter().map(Vec::as_slice));
        assert_eq!(end(&events), &End::Interrupted, "{}", recording.path.display());
    }
}
