//! An upgrade: what release 0.1 has written and said, and what it has left running.
//!
//! `tests/golden/v0.1` holds the bytes. Today's code has to read them as what they meant, and to write the
//! same ones again: whoever changes what is written changes what a daemon of another release meets, and is
//! told so here. The files of a release are never changed. A later release gets a directory of its own, which
//! `OUTLAST_GOLDEN=write` fills: it writes a file that is missing and never one that is there.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use outlast_engine::{
    Actor, Agent, BootId, Event, Exit, Fact, Limit, Limits, NeverStarted, Outcome, Reason, Retry,
    Run, RunId, RunSpec, StateName, StopMode, Survivor, Time, TurnOutcome, TurnStatus, Verdict,
    WaitCause, Window, check,
};
use outlast_wire::output::{CHUNK_BYTES, Chunk, HEADER_BYTES, Header, Stream};
use outlast_wire::shim::{
    self, Decoder, EndCause, EnvVar, Frame, Identity, News, Order, Record, Refusal, Revive, Role,
    Spec, Spool,
};
use outlast_wire::{OsText, version};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::harness::{Gate, Home, PATIENCE, is_alive, kill, lines, str_of, text, until};

/// The bytes that the release has written, held against those of today.
fn golden(name: &str, today: &[u8]) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/v0.1").join(name);
    if !path.exists() && std::env::var_os("OUTLAST_GOLDEN").is_some_and(|wanted| wanted == "write")
    {
        fs::create_dir_all(path.parent().expect("it is in a directory"))
            .expect("the sources are ours");
        fs::write(&path, today).expect("the sources are ours");
    }
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (written, wanted) = (text(today), text(&bytes));
    assert!(
        today == bytes,
        "{name} would be written differently today:\n{written}\nand not as in the release:\n{wanted}"
    );
    bytes
}

/// One JSON value a line, as it is appended to a file.
fn as_lines<T: Serialize>(values: &[T]) -> Vec<u8> {
    let line = |value| serde_json::to_string(value).expect("plain data") + "\n";
    values.iter().map(line).collect::<String>().into_bytes()
}

fn from_lines<T: DeserializeOwned>(bytes: &[u8]) -> Vec<T> {
    let parse =
        |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    std::str::from_utf8(bytes).expect("JSON is text").lines().map(parse).collect()
}

fn as_frames<T: Serialize>(frames: &[Frame<T>]) -> Vec<u8> {
    frames.iter().flat_map(|frame| frame.encode().expect("they are short")).collect()
}

fn from_frames<T: DeserializeOwned>(bytes: &[u8]) -> Vec<Frame<T>> {
    let mut decoder = Decoder::default();
    let mut frames = Vec::new();
    // As slowly as a socket may hand them over.
    for byte in bytes {
        decoder.feed(&[*byte]);
        frames.extend(decoder.next().expect("a frame that was written can be read"));
    }
    frames
}

/// Objects in which every key is a value and not the name of a field, so that none can be added.
const CLOSED: [&str; 3] = ["exit", "labels", "value"];

/// A later release may say more: what it adds is passed over, at every level.
fn with_more_in_it(value: &Value) -> Value {
    let inside = |(key, value): (&String, &Value)| {
        let is_closed = CLOSED.contains(&key.as_str());
        (key.clone(), if is_closed { value.clone() } else { with_more_in_it(value) })
    };
    match value {
        Value::Object(object) => {
            let more = ("added_later".to_owned(), json!({"by": ["a", "newer", "release"]}));
            object.iter().map(inside).chain([more]).collect()
        }
        Value::Array(values) => values.iter().map(with_more_in_it).collect(),
        plain => plain.clone(),
    }
}

fn assert_takes_more<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    let more = with_more_in_it(&serde_json::to_value(value).expect("plain data"));
    assert_eq!(
        &serde_json::from_value::<T>(more.clone())
            .unwrap_or_else(|error| panic!("{more}: {error}")),
        value
    );
}

/// True if every one of `count` variants is there.
fn has_all<T>(values: &[T], count: usize, number: fn(&T) -> usize) -> bool {
    values.iter().map(number).collect::<BTreeSet<_>>() == (0..count).collect()
}

#[test]
fn the_protocol_has_a_number() {
    assert_eq!((version::SHIM, version::OLDEST_SHIM), (1, 1));
    assert_eq!(
        version::BUILD.split('.').take(2).collect::<Vec<_>>(),
        ["0", "1"],
        "a release needs its own directory"
    );
}

fn orders() -> Vec<Order> {
    vec![
        Order::Hello { proto: 1, epoch: 7, role: Role::Daemon },
        Order::Hello { proto: 1, epoch: u64::MAX, role: Role::Viewer },
        Order::Start { turn: 2, attempt: 3, epoch: 7 },
        Order::Stop { grace_ms: 10_000 },
        Order::WatchOutput { after: 1 << 40 },
        Order::Attach { window: shim::Window { rows: 24, cols: 80 } },
        Order::Resize { window: shim::Window { rows: 50, cols: 132 } },
    ]
}

fn order_number(order: &Order) -> usize {
    match order {
        Order::Hello { .. } => 0,
        Order::Start { .. } => 1,
        Order::Stop { .. } => 2,
        Order::WatchOutput { .. } => 3,
        Order::Attach { .. } => 4,
        Order::Resize { .. } => 5,
    }
}

#[test]
fn what_a_daemon_says_to_a_shim() {
    let orders = orders();
    assert!(has_all(&orders, 6, order_number));
    orders.iter().for_each(assert_takes_more);
    let keys = Frame::Bytes(b"\x1b[A\x03\x00\xff".to_vec());
    let frames: Vec<_> = orders.into_iter().map(Frame::Message).chain([keys]).collect();
    assert_eq!(from_frames(&golden("orders.frames", &as_frames(&frames))), frames);
}

fn news() -> Vec<News> {
    let refused = |code, message: &str| News::Refused { code, message: message.to_owned() };
    let hello = |records, output_bytes| News::Hello {
        proto: 1,
        build: "0.1.0".to_owned(),
        pid: 4242,
        run: "k3v9d2m7q0xa".to_owned(),
        turn: 2,
        attempt: 3,
        records,
        output_bytes,
    };
    vec![
        hello(Vec::new(), 0),
        hello(records(), 1 << 40),
        News::Record { record: Record::TreeEmpty { at_ms: 1_790_000_000_000 } },
        News::Output { bytes: 123_456_789_012 },
        News::Disk { problem: Some("No space left on device (os error 28)".to_owned()) },
        News::Disk { problem: None },
        refused(Refusal::StaleEpoch, "a daemon of a higher epoch was here"),
        refused(Refusal::OtherAttempt, "this is turn 2 attempt 3"),
        refused(Refusal::NoTerminal, "this run has no terminal"),
        refused(Refusal::Protocol, "say hello first"),
    ]
}

fn news_number(news: &News) -> usize {
    match news {
        News::Hello { .. } => 0,
        News::Record { .. } => 1,
        News::Output { .. } => 2,
        News::Disk { .. } => 3,
        News::Refused { code, .. } => match code {
            Refusal::StaleEpoch => 4,
            Refusal::OtherAttempt => 5,
            Refusal::NoTerminal => 6,
            Refusal::Protocol => 7,
        },
    }
}

#[test]
fn what_a_shim_says_to_a_daemon() {
    let news = news();
    assert!(has_all(&news, 8, news_number));
    news.iter().for_each(assert_takes_more);
    let screen = Frame::Bytes(b"\x1b[2J\x1b[1;1Hhello\r\n".to_vec());
    let frames: Vec<_> = news.into_iter().map(Frame::Message).chain([screen]).collect();
    assert_eq!(from_frames(&golden("news.frames", &as_frames(&frames))), frames);
}

fn records() -> Vec<Record> {
    let at_ms = 1_790_000_000_000;
    let never = |code, why: &str| Record::NeverStarted { at_ms, code, why: why.to_owned() };
    let survivors =
        vec![shim::Survivor { pid: 99, start: 12, command: "sleep (1) \"x\"".to_owned() }];
    let boot = "d9d22936-516e-4c66-91e1-97e9fcb7a695".to_owned();
    vec![
        Record::Starting { at_ms, epoch: 7 },
        Record::Started { at_ms, identity: Identity { boot, pid: 4243, start: 331_837 } },
        never(shim::NeverStarted::CommandNotFound, "no-such-command: command not found"),
        never(shim::NeverStarted::NotExecutable, "./plain: not executable"),
        never(shim::NeverStarted::NoDirectory, "/gone: no such directory"),
        never(shim::NeverStarted::NoResources, "fork: try again"),
        never(shim::NeverStarted::BadSpec, "spec.json: größe"),
        never(shim::NeverStarted::TooLong, "argument list too long"),
        never(shim::NeverStarted::Stopped, "stopped before it was started"),
        Record::Ending { at_ms, cause: EndCause::Stopped },
        Record::Ending { at_ms, cause: EndCause::TimedOut },
        Record::Ending { at_ms, cause: EndCause::Stalled },
        Record::Exited { at_ms, exit: shim::Exit::Code(7), output_bytes: 6, survivors: Vec::new() },
        Record::Exited {
            at_ms,
            exit: shim::Exit::Signal(9),
            output_bytes: 1 << 40,
            survivors: survivors.clone(),
        },
        Record::StopIncomplete { at_ms, survivors },
        Record::TreeEmpty { at_ms },
    ]
}

fn record_number(record: &Record) -> usize {
    match record {
        Record::Starting { .. } => 0,
        Record::Started { .. } => 1,
        Record::Exited { exit: shim::Exit::Code(_), .. } => 2,
        Record::Exited { exit: shim::Exit::Signal(_), .. } => 3,
        Record::StopIncomplete { .. } => 4,
        Record::TreeEmpty { .. } => 5,
        Record::Ending { cause, .. } => match cause {
            EndCause::Stopped => 6,
            EndCause::TimedOut => 7,
            EndCause::Stalled => 8,
        },
        Record::NeverStarted { code, .. } => match code {
            shim::NeverStarted::CommandNotFound => 9,
            shim::NeverStarted::NotExecutable => 10,
            shim::NeverStarted::NoDirectory => 11,
            shim::NeverStarted::NoResources => 12,
            shim::NeverStarted::BadSpec => 13,
            shim::NeverStarted::TooLong => 14,
            shim::NeverStarted::Stopped => 15,
        },
    }
}

#[test]
fn what_a_shim_leaves_on_disk() {
    let records = records();
    assert!(has_all(&records, 16, record_number));
    records.iter().for_each(assert_takes_more);
    assert_eq!(from_lines::<Record>(&golden("events.jsonl", &as_lines(&records))), records);
}

fn env_var(name: &str, value: OsText) -> EnvVar {
    EnvVar { name: name.into(), value }
}

/// With everything that can be there, or with as little as can be.
fn spec(is_full: bool) -> Spec {
    use std::os::unix::ffi::OsStringExt;

    let odd = OsText(std::ffi::OsString::from_vec(b"/odd/\xff".to_vec()));
    let if_full = |value: u64| is_full.then_some(value);
    Spec {
        proto: 1,
        run: "k3v9d2m7q0xa".to_owned(),
        turn: 2,
        attempt: 3,
        argv: ["sh", "-c", "echo \"größe\""].map(str::to_owned).to_vec(),
        dir: "/srv/work".into(),
        env_file: "/h/state/runs/k3v9d2m7q0xa/env.json".into(),
        env: if is_full {
            vec![env_var("OUTLAST_TURN", "2".into()), env_var("ODD", odd)]
        } else {
            Vec::new()
        },
        umask: is_full.then_some(0o022),
        tty: is_full.then_some(shim::Window { rows: 24, cols: 80 }),
        stdin: None,
        heartbeat: None,
        limits: shim::Limits {
            turn_timeout_ms: if_full(3_600_000),
            stall_window_ms: if_full(300_000),
            grace_ms: 10_000,
        },
        spool: Spool { head_bytes: 16 << 20, tail_bytes: 48 << 20 },
        revive: Revive {
            exe: "/usr/bin/outlast".into(),
            args: ["daemon", "run", "--detached"].map(str::to_owned).to_vec(),
            env_file: "/h/state/daemon.env.json".into(),
            daemon_lock: "/h/state/daemon.lock".into(),
            revive_lock: "/h/state/revive.lock".into(),
            stopped_marker: "/h/state/daemon.stopped".into(),
        },
    }
}

#[test]
fn what_a_daemon_leaves_for_a_shim() {
    for (name, spec) in [("spec.json", spec(true)), ("spec-least.json", spec(false))] {
        assert_takes_more(&spec);
        let bytes = golden(name, &serde_json::to_vec(&spec).expect("plain data"));
        assert_eq!(serde_json::from_slice::<Spec>(&bytes).expect("it was written by us"), spec);
    }
}

#[test]
fn the_index_of_an_output() {
    let header =
        Header { gap_from: 16 << 20, gap_to: 40 << 20, chunk_gap_from: 1, chunk_gap_to: 900 };
    let at_ms = 1_790_000_000_000;
    let chunks = [
        Chunk { offset: 0, length: 6, stream: Stream::Stdout, at_ms },
        Chunk { offset: 6, length: 1 << 20, stream: Stream::Stderr, at_ms: at_ms + 1 },
        Chunk { offset: 1 << 40, length: u32::MAX, stream: Stream::Tty, at_ms: (1 << 48) - 1 },
    ];
    let mut today = header.encode().to_vec();
    chunks.iter().for_each(|chunk| today.extend(chunk.encode()));
    let bytes = golden("output.idx", &today);
    let (first, rest) = bytes.split_first_chunk::<HEADER_BYTES>().expect("there is a header");
    assert_eq!(Header::decode(first), Some(header));
    let (written, torn) = rest.as_chunks::<CHUNK_BYTES>();
    assert_eq!(written.iter().map(Chunk::decode).collect::<Vec<_>>(), chunks.map(Some));
    assert!(torn.is_empty());
}

fn run_spec() -> RunSpec {
    let agent =
        Agent { kind: "exec".to_owned(), command: ["make", "check"].map(str::to_owned).to_vec() };
    RunSpec {
        name: Some("nightly".to_owned()),
        key: Some("build-42".to_owned()),
        task: Some("make it pass".to_owned()),
        umask: Some(0o022),
        tty: Some(Window { rows: 24, cols: 80 }),
        labels: [("repo".to_owned(), "web".to_owned())].into(),
        parent: Some(RunId("0123456789ab".to_owned())),
        limits: Limits {
            turn_timeout_ms: Some(1),
            stall_window_ms: Some(2),
            run_timeout_ms: Some(3_600_000),
            ..Limits::default()
        },
        retry: Retry { max_attempts: 2, initial_backoff_ms: 10_000, max_backoff_ms: 300_000 },
        ..RunSpec::command(agent, "/srv/work".to_owned())
    }
}

/// Numbered and stamped as they come.
fn numbered(facts: Vec<Fact>) -> Vec<Event> {
    let event = |(seq, fact): (u64, Fact)| Event { seq, at: Time(1_790_000_000_000 + seq), fact };
    (1..).zip(facts).map(event).collect()
}

fn reason(reason_code: &str, actor: Actor) -> Reason {
    let evidence = vec!["exit code 1".to_owned()];
    Reason {
        reason: format!("because of {reason_code}"),
        reason_code: reason_code.to_owned(),
        evidence,
        actor,
    }
}

fn changed(from: StateName, to: StateName, reason_code: &str) -> Fact {
    let why = reason(reason_code, Actor::Engine);
    Fact::StateChanged { from, to, why, cause: None, until: None, verdict: None }
}

fn survivors() -> Vec<Survivor> {
    vec![Survivor { pid: 99, start: 12, command: "sleep".to_owned() }]
}

/// A run through which everything went that can go through one, as a journal has to be to be legal.
fn story() -> Vec<Event> {
    let boot = || BootId("d9d22936-516e-4c66-91e1-97e9fcb7a695".to_owned());
    let turn_started = |turn, attempt| Fact::TurnStarted { turn, attempt, boot: boot() };
    let started = |turn, attempt| Fact::AttemptStarted { turn, attempt, pid: 4243, start: 331_837 };
    let ended = |turn, attempt, outcome, survivors| Fact::AttemptEnded {
        turn,
        attempt,
        outcome,
        output_bytes: 6,
        survivors,
    };
    let why = |code| reason(code, Actor::User);
    numbered(vec![
        Fact::RunCreated { spec: Box::new(run_spec()) },
        changed(StateName::Queued, StateName::Running, "slot_free"),
        turn_started(1, 1),
        started(1, 1),
        Fact::AttemptAdopted { turn: 1, attempt: 1, epoch: 7 },
        ended(1, 1, Outcome::Signaled { signal: 11 }, survivors()),
        Fact::TreeEmptied { turn: 1, attempt: 1 },
        Fact::StateChanged {
            from: StateName::Running,
            to: StateName::Waiting,
            why: reason("signal", Actor::Engine),
            cause: Some(WaitCause::Backoff),
            until: Some(Time(1_790_000_010_000)),
            verdict: None,
        },
        changed(StateName::Waiting, StateName::Running, "backoff_over"),
        turn_started(1, 2),
        started(1, 2),
        ended(1, 2, Outcome::Exited { code: 0 }, Vec::new()),
        Fact::TurnCommitted {
            turn: 1,
            attempt: 2,
            status: TurnStatus::Continue,
            outcome: TurnOutcome::MeaningfulCompletion,
        },
        turn_started(2, 1),
        started(2, 1),
        Fact::AttemptOrphaned { turn: 2, attempt: 1 },
        Fact::LimitReached { limit: Limit::RunTimeout },
        Fact::StopRequested { mode: StopMode::Gracefully, actor: Actor::User },
        Fact::StopIncomplete { turn: 2, attempt: 1, survivors: survivors() },
        Fact::StopRequested { mode: StopMode::Now, actor: Actor::User },
        ended(2, 1, Outcome::Stopped { exit: None }, Vec::new()),
        Fact::StateChanged {
            from: StateName::Running,
            to: StateName::Finishing,
            why: why("stopped"),
            cause: None,
            until: None,
            verdict: Some(Verdict::Stopped),
        },
        changed(StateName::Finishing, StateName::Stopped, "stopped"),
        Fact::RunEnded { state: Verdict::Stopped, reason_code: Some("stopped".to_owned()) },
    ])
}

fn fact_number(event: &Event) -> usize {
    match event.fact {
        Fact::RunCreated { .. } => 0,
        Fact::StateChanged { .. } => 1,
        Fact::TurnStarted { .. } => 2,
        Fact::AttemptStarted { .. } => 3,
        Fact::AttemptAdopted { .. } => 4,
        Fact::AttemptOrphaned { .. } => 5,
        Fact::AttemptEnded { .. } => 6,
        Fact::TreeEmptied { .. } => 7,
        Fact::StopIncomplete { .. } => 8,
        Fact::TurnCommitted { .. } => 9,
        Fact::StopRequested { .. } => 10,
        Fact::LimitReached { .. } => 11,
        Fact::RunEnded { .. } => 12,
    }
}

#[test]
fn the_journal_of_a_run() {
    let story = story();
    assert!(has_all(&story, 13, fact_number));
    story.iter().for_each(assert_takes_more);
    let events = from_lines::<Event>(&golden("journal.jsonl", &as_lines(&story)));
    assert_eq!(events, story);
    // It means what it meant.
    let id = RunId("k3v9d2m7q0xa".to_owned());
    assert_eq!(check(&id, &events), []);
    let run = Run::replay(&id, &events).expect("it was legal then");
    let row = run.row();
    assert_eq!((row.state, row.exit, row.turn, row.attempt), (StateName::Stopped, None, 2, 1));
    assert_eq!(
        (row.name.as_deref(), row.key.as_deref(), row.is_open),
        (Some("nightly"), Some("build-42"), false)
    );
    assert_eq!((run.turns_committed, run.spec), (1, run_spec()));
}

/// Every word that can stand in an event and did not come up in the story.
fn words() -> Vec<Event> {
    use StateName::{
        Blocked, Completed, Exhausted, Failed, Finishing, Preparing, Queued, Running, Stopped,
        Verifying, Waiting,
    };
    let never = |code| Outcome::NeverStarted { code, why: "so it is".to_owned() };
    let outcomes = vec![
        Outcome::Exited { code: 255 },
        Outcome::Signaled { signal: 11 },
        never(NeverStarted::CommandNotFound),
        never(NeverStarted::NotExecutable),
        never(NeverStarted::NoDirectory),
        never(NeverStarted::NoResources),
        never(NeverStarted::BadSpec),
        never(NeverStarted::TooLong),
        never(NeverStarted::NoShim),
        never(NeverStarted::Stopped),
        Outcome::Stalled { exit: Some(Exit::Code(3)) },
        Outcome::TimedOut { exit: Some(Exit::Signal(15)) },
        Outcome::Stopped { exit: None },
        Outcome::Interrupted { by: "reboot".to_owned() },
        Outcome::Lost,
    ];
    let states = [
        Queued, Preparing, Running, Waiting, Verifying, Blocked, Finishing, Completed, Failed,
        Stopped, Exhausted,
    ];
    let verdicts = [Verdict::Completed, Verdict::Failed, Verdict::Stopped, Verdict::Exhausted];
    let committed = |status, outcome| Fact::TurnCommitted { turn: 1, attempt: 1, status, outcome };
    let ended = |outcome| Fact::AttemptEnded {
        turn: 1,
        attempt: 1,
        outcome,
        output_bytes: 0,
        survivors: Vec::new(),
    };
    let mut facts: Vec<Fact> = outcomes.into_iter().map(ended).collect();
    facts.extend(states.map(|state| changed(state, state, "word")));
    facts.extend(verdicts.map(|state| Fact::RunEnded { state, reason_code: None }));
    facts.extend(
        [Limit::RunTimeout, Limit::TurnTimeout, Limit::StallWindow]
            .map(|limit| Fact::LimitReached { limit }),
    );
    facts.extend([
        committed(TurnStatus::Continue, TurnOutcome::MeaningfulCompletion),
        committed(TurnStatus::Done, TurnOutcome::NoOpSuccess),
        committed(TurnStatus::Blocked, TurnOutcome::EscalationBlocker),
        committed(TurnStatus::Failed, TurnOutcome::NoOpSuccess),
        Fact::StopRequested { mode: StopMode::Now, actor: Actor::Engine },
    ]);
    numbered(facts)
}

fn outcome_number(outcome: &&Outcome) -> usize {
    match outcome {
        Outcome::Exited { .. } => 0,
        Outcome::Signaled { .. } => 1,
        Outcome::Stalled { .. } => 2,
        Outcome::TimedOut { .. } => 3,
        Outcome::Stopped { .. } => 4,
        Outcome::Interrupted { .. } => 5,
        Outcome::Lost => 6,
        Outcome::NeverStarted { code, .. } => match code {
            NeverStarted::CommandNotFound => 7,
            NeverStarted::NotExecutable => 8,
            NeverStarted::NoDirectory => 9,
            NeverStarted::NoResources => 10,
            NeverStarted::BadSpec => 11,
            NeverStarted::TooLong => 12,
            NeverStarted::NoShim => 13,
            NeverStarted::Stopped => 14,
        },
    }
}

#[test]
fn every_word_of_a_journal() {
    let words = words();
    let outcomes: Vec<&Outcome> = words
        .iter()
        .filter_map(|event| match &event.fact {
            Fact::AttemptEnded { outcome, .. } => Some(outcome),
            _ => None,
        })
        .collect();
    assert!(has_all(&outcomes, 15, outcome_number));
    words.iter().for_each(assert_takes_more);
    assert_eq!(from_lines::<Event>(&golden("words.jsonl", &as_lines(&words))), words);
}

/// The same program at another place, as an upgrade that keeps the old one would have it.
fn upgraded(home: &Home) -> PathBuf {
    let program = home.scratch().join("upgraded").join("outlast");
    fs::create_dir(home.scratch().join("upgraded")).expect("the scratch directory is ours");
    fs::copy(env!("CARGO_BIN_EXE_outlast"), &program).expect("there is room for it");
    program
}

fn program_of(pid: u32) -> PathBuf {
    fs::read_link(format!("/proc/{pid}/exe")).expect("it is our process")
}

#[test]
fn a_daemon_of_another_build_takes_over_what_runs() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let executed = home.scratch().join("executed");
    let printing = home.start(&format!(
        "echo once >>'{}'; echo before; {}; echo after; exit 7",
        executed.display(),
        gate.pass()
    ));
    let sleeping = home.start("exec sleep 600");
    let pids = [home.pid(&printing), home.pid(&sleeping)];
    let shims = [home.shim_pid(&printing), home.shim_pid(&sleeping)];
    let program = upgraded(&home);
    // The shims may be faster, and start the old one again.
    until("the new build's daemon is up", || {
        home.crash_daemon();
        let started = home
            .command(program.to_str().expect("our paths are text"))
            .args(["daemon", "start"])
            .output();
        assert!(started.expect("it starts").status.success());
        (program_of(home.daemon_pid()) == program).then_some(())
    });
    for id in [&printing, &sleeping] {
        until("the run is adopted", || (home.count(id, "AttemptAdopted") >= 1).then_some(()));
    }
    assert_eq!([home.pid(&printing), home.pid(&sleeping)], pids);
    assert_eq!([home.shim_pid(&printing), home.shim_pid(&sleeping)], shims);
    assert_eq!(program_of(shims[0]), Path::new(env!("CARGO_BIN_EXE_outlast")));

    let attached = home.spawn(&["attach", &printing]);
    gate.open();
    assert_eq!(attached.code(), 1);
    let run = home.show(&printing);
    assert_eq!((&run["exit"], run["attempt"].as_u64()), (&json!({"code": 7}), Some(1)));
    assert_eq!(home.ok(&["logs", &printing]), "before\nafter");
    assert_eq!(lines(&executed), 1, "it was started again");
    home.ok(&["stop", &sleeping]);
    assert!(!is_alive(pids[1]));
    assert_eq!(str_of(&home.show(&sleeping), "state"), "stopped");

    let new = home.start("exec sleep 600");
    assert_eq!(program_of(home.shim_pid(&new)), program);
}

/// A shim of another release, played by the test: it holds the lock and answers on the socket.
struct OtherShim {
    listener: UnixListener,
    _lock: File,
    hello: Value,
}

impl OtherShim {
    /// Takes the place of the run's real shim, which is killed, while no daemon lives.
    fn in_place_of(home: &Home, id: &str) -> Self {
        let shim = home.shim_pid(id);
        home.ok(&["daemon", "stop"]);
        kill(shim, "KILL");
        until("the shim is dead", || (!is_alive(shim)).then_some(()));
        let dir = home.attempt_dir(id, 1, 1);
        let lock =
            File::options().write(true).open(dir.join("shim.lock")).expect("a shim has made it");
        lock.try_lock().expect("the dead hold no locks");
        fs::remove_file(dir.join("ctl.sock")).expect("it was killed");
        let opened = File::open(&dir).expect("it is ours");
        // However long the path is.
        let listener = UnixListener::bind(format!("/proc/self/fd/{}/ctl.sock", opened.as_raw_fd()))
            .expect("the name is free");
        listener.set_nonblocking(true).expect("it is open");
        let records: Vec<Value> =
            from_lines(&fs::read(dir.join("events.jsonl")).expect("a shim has written it"));
        let hello = json!({
            "say": "hello", "proto": 2, "build": "9.9.9", "pid": std::process::id(), "run": id, "turn": 1, "attempt": 1,
            "records": records, "output_bytes": 0,
        });
        Self { listener, _lock: lock, hello: with_more_in_it(&hello) }
    }

    /// The next connection of the daemon, if it has called, with Hello said on both sides.
    fn accept(&self) -> Option<Line> {
        let (stream, _) = self.listener.accept().ok()?;
        stream.set_nonblocking(false).expect("it is open");
        stream.set_read_timeout(Some(PATIENCE)).expect("it is open");
        let mut line = Line { stream, decoder: Decoder::default() };
        let order = line.hear();
        assert!(
            matches!(order, Some(Order::Hello { proto: 1, role: Role::Daemon, .. })),
            "{order:?}"
        );
        line.say(&self.hello);
        Some(line)
    }
}

struct Line {
    stream: UnixStream,
    decoder: Decoder,
}

impl Line {
    /// Whether the daemon still listens shows in what it does, not here.
    fn say(&mut self, news: &Value) {
        let frame = Frame::Message(news).encode().expect("it is short");
        drop(self.stream.write_all(&frame));
    }

    fn record(&mut self, record: &Value) {
        self.say(&json!({"say": "record", "record": with_more_in_it(record), "added_later": 1}));
    }

    /// The next order; `None` if the daemon has hung up.
    fn hear(&mut self) -> Option<Order> {
        match self.decoder.read(&mut self.stream) {
            Ok(Some(Frame::Message(order))) => Some(order),
            Ok(Some(Frame::Bytes(bytes))) => panic!("a daemon types nothing: {bytes:?}"),
            Ok(None) => None,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("the daemon says nothing any more: {error}"),
        }
    }
}

#[test]
fn a_shim_that_says_more_than_we_know_is_understood() {
    let home = Home::new();
    let id = home.start("exec sleep 600");
    let pid = home.pid(&id);
    let shim = OtherShim::in_place_of(&home, &id);
    home.ok(&["daemon", "start"]);
    let daemon = home.daemon_pid();
    // Twice it says what nobody has heard of; then it knows that it is not understood.
    for _ in 0..2 {
        let mut line = until("the daemon calls", || shim.accept());
        line.say(
            &json!({"say": "weather", "sun": true, "record": {"event": "rained", "at_ms": 1}}),
        );
        while line.hear().is_some() {}
    }
    let mut line = until("the daemon calls again", || shim.accept());
    until("it is its shim", || (home.show(&id)["shim_pid"] == std::process::id()).then_some(()));
    let run = home.show(&id);
    assert_eq!(
        (str_of(&run, "state"), &run["trouble"], home.pid(&id)),
        ("running", &Value::Null, pid)
    );

    let stop = home.spawn(&["stop", &id]);
    assert!(matches!(line.hear(), Some(Order::Stop { grace_ms: 10_000 })));
    let at_ms = 1_790_000_000_000_u64;
    line.record(&json!({"event": "ending", "at_ms": at_ms, "cause": "stopped"}));
    line.record(&json!({"event": "exited", "at_ms": at_ms, "exit": {"signal": 15}, "output_bytes": 0, "survivors": []}));
    line.record(&json!({"event": "tree_empty", "at_ms": at_ms}));
    assert_eq!(stop.code(), 0);
    let run = home.show(&id);
    assert_eq!((str_of(&run, "state"), &run["exit"]), ("stopped", &json!({"signal": 15})));
    assert_eq!(home.count(&id, "AttemptAdopted"), 1, "one daemon has adopted it once");
    assert_eq!(home.daemon_pid(), daemon);
}

#[test]
fn a_shim_that_is_too_old_is_left_alone() {
    let home = Home::new();
    let id = home.start("exec sleep 600");
    let pid = home.pid(&id);
    let mut shim = OtherShim::in_place_of(&home, &id);
    shim.hello["proto"] = 0.into();
    home.ok(&["daemon", "start"]);
    let trouble = until("the daemon gives up on it", || {
        drop(shim.accept());
        Some(home.show(&id)["trouble"].clone()).filter(|trouble| !trouble.is_null())
    });
    assert_eq!(str_of(&trouble, "code"), "unreachable");
    // Its lock is held: it is neither started again nor called ended.
    let run = home.show(&id);
    assert_eq!(
        (str_of(&run, "state"), run["attempt"].as_u64(), &run["exit"]),
        ("running", Some(1), &Value::Null)
    );
    assert_eq!(home.count(&id, "TurnStarted"), 1);
    assert!(is_alive(pid));
    assert!(home.output(&["doctor"]).status.code() == Some(1));
}
