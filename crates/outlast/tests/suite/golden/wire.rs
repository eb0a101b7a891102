//! What a daemon and a shim say to each other, and what they leave on disk for each other.

use outlast_wire::output::{CHUNK_BYTES, Chunk, HEADER_BYTES, Header, Stream};
use outlast_wire::shim::{
    self, Decoder, EndCause, EnvVar, Frame, Identity, News, Order, Record, Refusal, Revive, Role,
    Spec, Spool,
};
use outlast_wire::{OsText, version};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{as_lines, assert_takes_more, from_lines, golden, has_all};

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
        Order::Watch { .. } => 6,
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
        watches: false,
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
            Refusal::NotTheDaemon => 8,
        },
        News::Window { .. } => 9,
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

/// What daemons have learned to say since the first of these files was written.
#[test]
fn what_a_later_daemon_says_to_a_shim() {
    let frames = [true, false].map(|keys| Frame::Message(Order::Watch { keys }));
    assert_eq!(from_frames::<Order>(&golden("orders-later.frames", &as_frames(&frames))), frames);
}

/// What shims have learned to say since the first of these files was written.
#[test]
fn what_a_later_shim_says_to_a_daemon() {
    let message = "only the process that holds the daemon's lock is the daemon".to_owned();
    let frames = vec![Frame::Message(News::Refused { code: Refusal::NotTheDaemon, message })];
    assert_eq!(from_frames(&golden("news-later.frames", &as_frames(&frames))), frames);
    let window = shim::Window { rows: 24, cols: 80 };
    let frames = vec![Frame::Message(News::Window { window })];
    assert_eq!(from_frames(&golden("news-window.frames", &as_frames(&frames))), frames);
}

fn records() -> Vec<Record> {
    let at_ms = 1_790_000_000_000;
    let never = |code, why: &str| Record::NeverStarted { at_ms, code, why: why.to_owned() };
    let survivors =
        vec![shim::Survivor { pid: 99, start: 12, command: "sleep (1) \"x\"".to_owned() }];
    let boot = "d9d22936-516e-4c66-91e1-97e9fcb7a695".to_owned();
    vec![
        Record::Starting { at_ms, epoch: 7, booted_at_ms: None },
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
            shim::NeverStarted::NoShim => unreachable!("the daemon alone says it"),
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
            soft_limits: shim::SoftLimits::default(),
        },
        booted_at_ms: None,
        secrets: shim::SecretRules::default(),
        lacks_program: false,
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
