//! What a run printed, read back: bytes as they were, bounded, and exact about what is missing.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};

use crate::harness::{Background, Gate, Home, text, until};

const MIB: u64 = 1 << 20;
const HEAD: u64 = 16 * MIB;
const TAIL: u64 = 48 * MIB;

/// How long the output of `seq 1 LAST` is.
fn length(last: u64) -> u64 {
    let mut length = 0;
    let (mut digits, mut first) = (1, 1);
    while first <= last {
        let until = (first * 10).min(last + 1);
        length += (until - first) * (digits + 1);
        (digits, first) = (digits + 1, first * 10);
    }
    length
}

/// Compares with the output of `seq 1 LAST`, all of it but the gaps.
fn assert_counted(what: &str, mut seen: &[u8], gaps: &[(u64, u64)], last: u64) {
    let seq = Command::new("seq").args(["1", &last.to_string()]).stdout(Stdio::piped()).spawn();
    let mut seq = Background(seq.expect("there is a seq"));
    let mut printed = seq.0.stdout.take().expect("it is piped");
    let mut offset = 0;
    let end = length(last);
    for (from, to) in gaps.iter().copied().chain([(end, end)]) {
        assert!(offset <= from && from <= to, "{what}: {gaps:?} are not in order");
        compare(what, &mut printed, &mut seen, from - offset);
        let skipped = std::io::copy(&mut printed.by_ref().take(to - from), &mut std::io::sink());
        assert_eq!(skipped.ok(), Some(to - from), "{what}: {gaps:?} are beyond the end");
        offset = to;
    }
    assert!(seen.is_empty(), "{what}: {} bytes too many", seen.len());
}

fn compare(what: &str, printed: &mut impl Read, seen: &mut &[u8], mut length: u64) {
    let mut chunk = vec![0; 1 << 20];
    while length > 0 {
        let part = usize::try_from(length).unwrap_or(chunk.len()).min(chunk.len());
        printed.read_exact(&mut chunk[..part]).expect("as much was printed");
        assert!(part <= seen.len(), "{what}: {length} bytes before a gap or the end are missing");
        let (one, rest) = seen.split_at(part);
        assert!(one == &chunk[..part], "{what}: other bytes, {} before the end", seen.len());
        *seen = rest;
        length -= part as u64;
    }
}

/// The daemon's answer, byte for byte: what `curl --unix-socket` would print.
fn raw(home: &Home, path: &str) -> Vec<u8> {
    let mut stream =
        UnixStream::connect(home.path().join("run/daemon.sock")).expect("a daemon listens");
    stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).expect("it reads");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("it answers");
    let head =
        answer.windows(4).position(|four| four == b"\r\n\r\n").expect("an answer has a head") + 4;
    let body = answer.split_off(head);
    assert!(answer.starts_with(b"HTTP/1.0 200"), "{}{}", text(&answer), text(&body));
    body
}

fn peak_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it is alive");
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel counts");
    peak.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// `[outlast: 5 bytes not kept (offset 3 to 8)]`
fn marker(from: u64, to: u64) -> String {
    format!("[outlast: {} bytes not kept (offset {from} to {to})]\n", to - from)
}

fn gaps(said: &[u8]) -> Vec<(u64, u64)> {
    let gap = |line: &str| {
        let digits = line.split(|letter: char| !letter.is_ascii_digit());
        let numbers: Vec<u64> = digits.filter_map(|word| word.parse().ok()).collect();
        let [_, from, to] = numbers[..] else { panic!("not a gap: {line:?}") };
        assert_eq!(format!("{line}\n"), marker(from, to));
        (from, to)
    };
    text(said).lines().map(gap).collect()
}

#[test]
fn slow_much_output_is_bounded_in_memory_and_on_disk_and_its_gaps_are_exact() {
    const FIRST: u64 = 9_000_000;
    const LAST: u64 = 36_000_000;
    let total = length(LAST);
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let id =
        home.start(&format!("seq 1 {FIRST}; {0}; seq {1} {LAST}; {0}", gate.pass(), FIRST + 1));
    let until_printed = |bytes| {
        until("so much is printed", || {
            (home.show(&id)["output_bytes"].as_u64() == Some(bytes)).then_some(())
        });
    };
    // One who reads as fast as it can, and one whose output is not read for now.
    let seen = home.scratch().join("seen");
    let file = File::create(&seen).expect("the test's directory is ours");
    let fast = home.outlast(&["attach", &id]).stdout(file).stderr(Stdio::piped()).spawn();
    let mut fast = Background(fast.expect("the program starts"));
    let mut slow = home.spawn(&["attach", &id]);
    until_printed(length(FIRST));
    let between = jiff::Timestamp::now().to_string();
    gate.open();
    until_printed(total);

    let (shim, daemon) = (peak_kib(home.shim_pid(&id)), peak_kib(home.daemon_pid()));
    assert!(shim < 12 << 10, "the shim took {shim} KiB");
    assert!(daemon < 64 << 10, "the daemon took {daemon} KiB");
    let dir = home.attempt_dir(&id, 1, 1);
    let disk = |name: &str| fs::metadata(dir.join(name)).expect("the shim made it").blocks() * 512;
    assert!(disk("output.log") <= HEAD + TAIL + 4 * MIB, "{} bytes on disk", disk("output.log"));
    assert!(disk("output.idx") <= MIB, "{} bytes of index on disk", disk("output.idx"));

    let logs = home.output(&["logs", &id]);
    let gap = gaps(&logs.stderr);
    let [(HEAD, to)] = gap[..] else { panic!("{gap:?}") };
    assert!(total - to >= TAIL, "only {} bytes of tail", total - to);
    assert_counted("logs", &logs.stdout, &gap, LAST);
    let tail = &logs.stdout[usize::try_from(HEAD).expect("small")..];

    // From places that are gone: in time, and by offset. The API has the gap in the same stream.
    let since = home.output(&["logs", &id, "--since", &between]);
    assert_eq!(gaps(&since.stderr), gap);
    assert!(
        since.stdout == tail,
        "{} bytes since then, and not {}",
        since.stdout.len(),
        tail.len()
    );
    let from = HEAD + 1000;
    let raw = raw(&home, &format!("/v1/runs/{id}/output?offset={from}"));
    let marker = format!("\n{}", marker(from, to));
    assert!(raw == [marker.as_bytes(), tail].concat(), "{}", text(&raw[..raw.len().min(200)]));
    assert_eq!(home.ok(&["logs", &id, "--tail", "2"]), "35999999\n36000000");

    // What each of them missed is said, and the rest is exact.
    gate.open();
    let missed = said_by(&mut fast);
    assert_counted("the fast one", &fs::read(&seen).expect("it was made"), &missed, LAST);
    let stdout = slow.0.stdout.as_mut().expect("it is piped");
    let mut seen = Vec::new();
    stdout.read_to_end(&mut seen).expect("a pipe can be read");
    assert_counted("the slow one", &seen, &said_by(&mut slow), LAST);
    assert_eq!((fast.code(), slow.code()), (0, 0));
}

/// The gaps that a client tells of until it leaves.
fn said_by(client: &mut Background) -> Vec<(u64, u64)> {
    let mut said = Vec::new();
    let stderr = client.0.stderr.as_mut().expect("it is piped");
    stderr.read_to_end(&mut said).expect("a pipe can be read");
    gaps(&said)
}

/// Every byte there is, in no order that is valid UTF-8.
fn every_byte() -> Vec<u8> {
    (0..=255)
        .rev()
        .chain(0..=255)
        .chain(*b"\xff\xfe\x00\xc3\x28\xed\xa0\x80 end without a newline")
        .collect()
}

#[test]
fn any_bytes_come_back_unchanged() {
    let home = Home::new();
    let file = home.scratch().join("bytes");
    fs::write(&file, every_byte()).expect("the test's directory is ours");
    let script = format!("cat '{0}'; cat '{0}' >&2", file.display());
    let run = home.output(&["run", "--name", "bytes", "--", "sh", "-c", &script]);
    let logs = home.output(&["logs", "bytes"]);
    let attach = home.output(&["attach", "bytes"]);
    let follow = home.output(&["logs", "-f", "bytes"]);
    for (what, output) in [("run", run), ("logs", logs), ("attach", attach), ("logs -f", follow)] {
        assert!(output.status.success(), "{what}: {}", text(&output.stderr));
        assert!(output.stdout == every_byte(), "{what}: {}", output.stdout.escape_ascii());
        assert!(output.stderr == every_byte(), "{what}: {}", output.stderr.escape_ascii());
    }
    assert!(raw(&home, "/v1/runs/bytes/output") == [every_byte(), every_byte()].concat());
    assert!(raw(&home, "/v1/runs/bytes/output?stream=stderr&follow=true") == every_byte());
    assert!(
        raw(&home, "/v1/runs/bytes/output?offset=600")
            == [every_byte(), every_byte()].concat()[600..]
    );
}

/// What `logs` with these arguments prints on standard output and on standard error.
fn logs(home: &Home, args: &[&str]) -> (String, String) {
    let Output { status, stdout, stderr } = home.output(&[&["logs"], args].concat());
    assert!(status.success(), "logs {args:?}: {}", text(&stderr));
    (text(&stdout), text(&stderr))
}

#[test]
fn logs_shows_one_stream_or_the_last_lines() {
    let home = Home::new();
    let id = home
        .start("for i in 1 2 3 4 5; do echo out $i; echo err $i >&2; done; printf 'no newline'");
    assert_eq!(home.wait(&id), 0);
    let lines = |word: &str, from: u32| {
        (from..=5).map(|number| format!("{word} {number}\n")).collect::<String>()
    };
    let out = |from| lines("out", from) + "no newline";
    let err = |from| lines("err", from);
    let nothing = String::new;
    for (args, expected) in [
        (["--tail", "100"].as_slice(), (out(1), err(1))),
        (&["--stream", "stdout"], (out(1), nothing())),
        (&["--stream", "stderr"], (nothing(), err(1))),
        (&["--stream", "stderr", "--tail", "2"], (nothing(), err(4))),
        (&["--stream", "stdout", "--tail", "1"], ("no newline".to_owned(), nothing())),
        (&["--stream", "stdout", "--tail", "2", "-f"], (out(5), nothing())),
        (&["--tail", "0"], (nothing(), nothing())),
        (&[], (out(1), err(1))),
    ] {
        assert_eq!(logs(&home, &[&[&*id], args].concat()), expected, "logs {args:?}");
    }
}

#[test]
fn logs_shows_the_last_lines_of_a_run_that_goes_on_and_what_comes() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let id = home.start(&format!("seq 1 50000; {}; seq 50001 50005", gate.pass()));
    let printed = Some(length(50_000));
    until("the first part is printed", || {
        (home.show(&id)["output_bytes"].as_u64() == printed).then_some(())
    });
    assert_eq!(logs(&home, &[&id, "--tail", "3"]).0, "49998\n49999\n50000\n");
    let mut following = home.spawn(&["logs", "-f", "--tail", "2", &id]);
    let mut seen = vec![0; "49999\n50000\n".len()];
    let stdout = following.0.stdout.as_mut().expect("it is piped");
    stdout.read_exact(&mut seen).expect("the last lines are there");
    gate.open();
    stdout.read_to_end(&mut seen).expect("a pipe can be read");
    assert_eq!(text(&seen), "49999\n50000\n50001\n50002\n50003\n50004\n50005\n");
    assert_eq!(following.code(), 0);
}

#[test]
fn logs_tells_when_each_line_came_and_shows_what_came_since() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let id = home.start(&format!(
        "echo one; echo two; echo bad >&2; {}; echo three; printf four",
        gate.pass()
    ));
    until("the first part is printed", || {
        (home.show(&id)["output_bytes"].as_u64() == Some(12)).then_some(())
    });
    // The shim stamps whole milliseconds on the daemon's line of time, which the wall clock here may be ahead of by a few.
    let (out, err) = logs(&home, &[&id, "--timestamps"]);
    let last = out.lines().chain(err.lines()).map(stamp).max().expect("three lines");
    until("another time has come", || {
        (jiff::Timestamp::now().duration_since(last).as_millis() > 10).then_some(())
    });
    let between = (last + jiff::SignedDuration::from_millis(1)).to_string();
    gate.open();
    assert_eq!(home.wait(&id), 0);

    let (out, err) = logs(&home, &[&id, "--timestamps"]);
    let words: Vec<&str> = out
        .lines()
        .chain(err.lines())
        .map(|line| line.split_once(' ').expect("a time and a word").1)
        .collect();
    assert_eq!(words, ["one", "two", "three", "four", "bad"]);
    let times: Vec<jiff::Timestamp> = out.lines().map(stamp).collect();
    assert!(times.is_sorted(), "{out}");
    assert!(!out.ends_with('\n'), "a newline was made up");

    assert_eq!(logs(&home, &[&id, "--since", &between]), ("three\nfour".to_owned(), String::new()));
    assert_eq!(logs(&home, &[&id, "--since", "1h"]).0, "one\ntwo\nthree\nfour");
    assert_eq!(logs(&home, &[&id, "--since", "2100-01-01T00:00:00Z"]).0, "");
}

fn stamp(line: &str) -> jiff::Timestamp {
    let (time, _) = line.split_once(' ').expect("a time and a word");
    time.parse().expect("RFC 3339")
}

#[test]
fn logs_shows_all_attempts_or_one() {
    let home = Home::new();
    let script = "echo attempt $OUTLAST_ATTEMPT; exit 7";
    let id =
        home.ok(&["run", "-d", "--retry", "1", "--backoff", "100ms", "--", "sh", "-c", script]);
    // Follows from the first attempt into the second.
    let (followed, _) = logs(&home, &["-f", &id]);
    assert_eq!(followed, "attempt 1\nattempt 2\n");
    assert_eq!(home.wait(&id), 1);
    assert_eq!(logs(&home, &[&id]).0, followed);
    assert_eq!(logs(&home, &[&id, "--attempt", "1"]).0, "attempt 1\n");
    assert_eq!(logs(&home, &[&id, "--attempt", "2"]).0, "attempt 2\n");
    assert_eq!(logs(&home, &[&id, "--turn", "1", "--attempt", "2"]).0, "attempt 2\n");
    assert_eq!(logs(&home, &[&id, "--tail", "5"]).0, followed);
    assert_eq!(logs(&home, &[&id, "--tail", "1"]).0, "attempt 2\n");
    assert_eq!(logs(&home, &[&id, "--attempt", "1", "--tail", "5"]).0, "attempt 1\n");
    assert!(home.fails(2, &["logs", &id, "--attempt", "3"]).contains("hint:"));
    assert!(home.fails(2, &["logs", "zzzzzz"]).starts_with("outlast: "));
}

/// A run of one command that has ended, and where its output is.
fn ended(home: &Home, script: &str) -> (String, std::path::PathBuf) {
    let id = home.start(script);
    assert_eq!(home.wait(&id), 0);
    let dir = home.attempt_dir(&id, 1, 1);
    (id, dir)
}

#[test]
fn a_damaged_index_costs_the_streams_and_the_times_and_not_the_bytes() {
    let home = Home::new();
    let (id, dir) = ended(&home, "echo one; echo two >&2; echo three");
    let index = dir.join("output.idx");
    let whole = std::fs::read(&index).expect("the shim wrote it");
    let mut holed = whole.clone();
    holed[70..].fill(0xff);
    let damages: [(&str, &[u8]); 4] = [
        ("emptied", b""),
        ("cut short", &whole[..70]),
        ("garbage", &[0x5a; 300]),
        ("garbage after its header", &holed),
    ];
    for (what, bytes) in damages {
        std::fs::write(&index, bytes).expect("it is ours");
        assert_shown_raw(&home, &id, what);
    }
    std::fs::remove_file(&index).expect("it is ours");
    assert_shown_raw(&home, &id, "removed");
    std::fs::write(&index, &whole).expect("it is ours");
    assert_eq!(logs(&home, &[&id]).1, "two\n", "a whole index knows the streams");
}

fn assert_shown_raw(home: &Home, id: &str, what: &str) {
    let log = home.attempt_dir(id, 1, 1).join("output.log");
    let printed = std::fs::read_to_string(log).expect("the shim wrote it");
    assert_eq!(printed.lines().count(), 3, "{printed}");
    for args in [&[id][..], &[id, "--timestamps"], &[id, "-f"], &[id, "--stream", "stderr"]] {
        let (out, said) = logs(home, args);
        assert_eq!(out, printed, "{what}: {args:?}: {said}");
        assert!(said.contains("the index of this output is damaged"), "{what}: {said}");
    }
    let lines: Vec<&str> = printed.split_inclusive('\n').collect();
    assert_eq!(logs(home, &[id, "--tail", "2"]).0, lines[1..].concat(), "{what}");
}

#[test]
fn output_that_cannot_be_read_is_said_once_and_is_no_unreachable_daemon() {
    let home = Home::new();
    let (id, dir) = ended(&home, "echo one");
    std::fs::remove_file(dir.join("output.log")).expect("it is ours");
    std::fs::create_dir(dir.join("output.log")).expect("it is ours");
    let said = home.fails(2, &["logs", &id]);
    assert!(said.starts_with("outlast: ") && !said.contains("unreachable"), "{said}");
    let log = std::fs::read_to_string(home.state().join("daemon.log")).expect("it logs");
    assert_eq!(log.matches("cannot read output").count(), 1, "{log}");
}
