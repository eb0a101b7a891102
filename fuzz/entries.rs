//! One function for each parser of foreign bytes. A fuzzer calls them, and so does the suite, which puts the corpus
//! and a few thousand mutations of it through them on every test run (`fuzz_slice`).
//!
//! Each promises the same: whatever the bytes are, the answer is a value or an error. Where a parser has a writer,
//! what was read, written and read again is the same.

use std::path::Path;

use outlast_agents::adapter::{
    Act, Adapter, DRIVEN, Declared, Event as AgentEvent, Heard, Now, Turn,
};
use outlast_agents::{response, tool_input};
use outlast_engine::Event;
use outlast_wire::api::{
    AddTrigger, AnswerRun, CreateRun, OutputFrame, SendMessage, StopRun, TriggerRun,
};
use outlast_wire::output::{CHUNK_BYTES, Chunk, HEADER_BYTES, Header};
use outlast_wire::plain::{Plain, plain_text, without_sequences};
use outlast_wire::shim::{Decoder, News, Order, Record, Spec};
use outlast_workflow::template::{self, Variables};
use outlast_workflow::{Config, Overrides, Source, Surroundings, config_outline, import, load};
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) type Entry = fn(&[u8]);

/// All of them, by the name of their target and of their part of the corpus.
pub(crate) const ALL: [(&str, Entry); 13] = [
    ("agents", agents),
    ("config", config),
    ("event", event),
    ("frames", frames),
    ("http", http),
    ("index", index),
    ("output_frames", output_frames),
    ("plain", plain),
    ("records", records),
    ("response", response),
    ("template", template),
    ("tools", tools),
    ("workflow", workflow),
];

/// An agent of an operator's, whose lines are those of `claude -p`.
const DECLARED: &str = r#"{"command": ["agent"], "resume": ["{session}"], "session": "session_id",
    "cannot_resume": ["No conversation"], "said": [{"when": {"type": "assistant"}, "text": "message.content.*.text"}],
    "tool_started": [{"when": {"type": "*"}, "each": "message.content.*", "is": {"type": "tool_use"}, "id": "id",
        "name": "name", "about": "input.*"}],
    "usage": [{"when": {"type": "*"}, "scope": "session", "input": "message.usage.*", "cost": "*.*.costUSD"}],
    "background": {"when": {"subtype": "*"}, "each": "tasks.*"},
    "trouble": [{"when": {"type": "*"}, "kind": "quota", "until": "*.resetsAt"}],
    "retry": [{"when": {"subtype": "*"}, "delay_ms": "*"}],
    "result": {"completed": [{"type": "result"}], "failed": [{"is_error": true}]}}"#;

/// What an agent prints, answers and pushes, to each adapter: a turn ends once. And lines of an `agent.jsonl`, of which
/// little is held.
pub(crate) fn agents(bytes: &[u8]) {
    let mut now = Now::default();
    for line in bytes.split(|byte| *byte == b'\n') {
        let _what = now.take(line);
    }
    assert!(now.tools.len() <= 64 && now.asked.len() <= 64);
    let turn = Turn { command: vec!["agent".to_owned()], ..Turn::default() };
    for kind in DRIVEN {
        converse(kind.name, kind.adapter(turn.clone()), bytes);
    }
    let table: Declared = serde_json::from_str(DECLARED).expect("a table");
    let resumed = Turn { session: Some("s".to_owned()), ..turn };
    converse("a table", table.adapter(resumed).expect("it works"), bytes);
}

fn converse(name: &str, mut adapter: Box<dyn Adapter>, bytes: &[u8]) {
    let is_end = |act: &Act| matches!(act, Act::Tell(AgentEvent::Ended(_)));
    let ends = |acts: Vec<Act>| acts.iter().filter(|act| is_end(act)).count();
    let mut ended = ends(adapter.begin());
    for (call, line) in (0..).zip(bytes.split(|byte| *byte == b'\n')) {
        ended += ends(adapter.hear(Heard::Line(line)));
        ended += ends(adapter.hear(Heard::Pushed(line)));
        ended += ends(adapter.hear(Heard::Answer { call, status: 200, body: line }));
        ended += ends(adapter.hear_stderr(line));
    }
    ended += ends(adapter.hear(Heard::End));
    assert_eq!(ended, 1, "{name} ends a turn {ended} times");
}

/// What a shim and a daemon say to each other, in whatever pieces it comes.
pub(crate) fn frames(bytes: &[u8]) {
    directed::<Order>(bytes);
    directed::<News>(bytes);
}

fn directed<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    let mut whole = Decoder::default();
    whole.feed(bytes);
    let mut in_pieces = Decoder::default();
    let mut pieces = bytes.chunks(3);
    loop {
        let Ok(frame) = whole.next::<T>() else { return };
        let same = loop {
            match in_pieces.next::<T>() {
                Ok(None) => match pieces.next() {
                    Some(piece) => in_pieces.feed(piece),
                    None => break None,
                },
                Ok(frame) => break frame,
                Err(error) => panic!("in pieces it is refused: {error}"),
            }
        };
        assert_eq!(frame, same);
        let Some(frame) = frame else { return };
        let mut again = Decoder::default();
        again.feed(&frame.encode().expect("what was read can be written"));
        assert_eq!(again.next::<T>().expect("and be read"), Some(frame));
    }
}

/// A run's output as a client gets it.
pub(crate) fn output_frames(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((frame, data, taken))) = OutputFrame::decode(rest) {
        let written = frame.encode(data);
        assert_eq!(OutputFrame::decode(&written).expect("ours").expect("whole").0, frame);
        rest = &rest[taken..];
    }
}

/// What a shim writes about its step, and is given to start it.
pub(crate) fn records(bytes: &[u8]) {
    for line in bytes.split(|byte| *byte == b'\n') {
        same_again::<Record>(line);
    }
    drop(serde_json::from_slice::<Spec>(bytes));
}

/// The journal's events.
pub(crate) fn event(bytes: &[u8]) {
    same_again::<Event>(bytes);
}

fn same_again<T: DeserializeOwned + Serialize + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    let Ok(read) = serde_json::from_slice::<T>(bytes) else { return };
    let written = serde_json::to_vec(&read).expect("what was read can be written");
    assert_eq!(serde_json::from_slice::<T>(&written).expect("and be read"), read);
}

/// The index of a run's output, also with sums that are right, as a process of the same user could write them.
pub(crate) fn index(bytes: &[u8]) {
    if let Some(header) = bytes.first_chunk::<HEADER_BYTES>().and_then(Header::decode) {
        assert_eq!(Header::decode(&header.encode()), Some(header));
    }
    for chunk in bytes.chunks_exact(CHUNK_BYTES) {
        let Ok(chunk) = <&[u8; CHUNK_BYTES]>::try_from(chunk) else { continue };
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|n| chunk[at + n]));
        let length = u32::try_from(word(16) & 0xffff_ffff).unwrap_or(0);
        let stream = outlast_wire::output::Stream::Stdout;
        let crafted = Chunk { offset: word(0), length, stream, at_ms: word(8) >> 16 };
        for chunk in [Chunk::decode(chunk), Chunk::decode(&crafted.encode())].into_iter().flatten()
        {
            assert!(chunk.end() >= chunk.offset);
            assert_eq!(Chunk::decode(&chunk.encode()), Some(chunk));
        }
        let crafted = Header { gap_from: word(0), gap_to: word(8), ..Header::default() };
        if let Some(header) = Header::decode(&crafted.encode()) {
            assert!(header.gap_from <= header.gap_to);
        }
    }
}

/// What a command prints, in whatever pieces it comes.
pub(crate) fn plain(bytes: &[u8]) {
    let is_text = |char: char| !char.is_control() || matches!(char, '\n' | '\t');
    assert!(plain_text(bytes).chars().all(is_text), "nothing is left that a terminal obeys");
    let (mut plain, mut in_pieces) = (Plain::default(), String::new());
    for piece in bytes.chunks(3) {
        plain.feed(piece, &mut |char| in_pieces.push(char));
    }
    plain.finish(&mut |char| in_pieces.push(char));
    assert_eq!(in_pieces, without_sequences(bytes), "pieces do not matter");
}

/// What an agent answers.
pub(crate) fn response(bytes: &[u8]) {
    drop(response::parse(bytes));
}

/// A tool's schema and what an agent gives it, with a zero byte between them.
pub(crate) fn tools(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |byte| *byte == 0).map(std::str::from_utf8);
    let (Some(Ok(schema)), input) = (parts.next(), parts.next()) else { return };
    let is_schema = match tool_input::check_schema(schema) {
        Ok(()) => true,
        Err(bad) => bad.what == tool_input::Wrong::UnknownKeyword,
    };
    if let Some(Ok(input)) = input {
        let checked = tool_input::check(schema, input);
        assert!(is_schema || checked.is_err(), "what is no schema allows nothing");
    }
}

/// A loop file: its YAML and all that is settled from it, and what others' files become.
pub(crate) fn workflow(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let source = Source { path: Path::new("/repo/WORKFLOW.md"), text };
    let around = Surroundings {
        home: Some(Path::new("/people/ada")),
        env: &|name| (name == "ROOM").then(|| "/room".to_owned()),
        temp_dir: Path::new("/tmp"),
        default_root: Path::new("/state/workspaces"),
    };
    drop(load(&source, &Config::default(), &Overrides::default(), &around));
    drop(import::symphony(&source));
    drop(import::ace(&source));
}

/// A prompt.
pub(crate) fn template(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let checked = template::check(text);
    for variables in [Variables::default(), Variables::sample()] {
        if let Ok(prompt) = template::render(text, &variables) {
            assert!(checked.is_ok(), "what renders is fine: {checked:?}");
            assert!(prompt.len() <= template::LARGEST_PROMPT);
        }
        drop(template::render_within(text, &variables, 100));
    }
}

/// The operator's file.
pub(crate) fn config(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    drop(Config::parse(&Source { path: Path::new("/config.toml"), text }));
    drop(config_outline(text));
}

/// The bodies of the HTTP API.
pub(crate) fn http(bytes: &[u8]) {
    drop(serde_json::from_slice::<CreateRun>(bytes));
    drop(serde_json::from_slice::<AddTrigger>(bytes));
    drop(serde_json::from_slice::<TriggerRun>(bytes));
    drop(serde_json::from_slice::<AnswerRun>(bytes));
    drop(serde_json::from_slice::<SendMessage>(bytes));
    drop(serde_json::from_slice::<StopRun>(bytes));
}
