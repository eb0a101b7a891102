//! What a child is given to read, and what counts as a sign of its life.
//!
//! Time passes here as the clock says; how long anything took is never judged.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outlast_wire::shim::{EndCause, Exit, NeverStarted, News, Role, Window};
use rustix::process::{Pid, Signal};

use crate::ending;
use crate::harness::{
    Attempt, EPOCH, KillOnDrop, Peer, eventually, exit_of, is_alive, never_started, put,
};

#[test]
fn a_file_is_read_as_standard_input_and_nothing_without_one() {
    let mut attempt = Attempt::sh("cat; echo end");
    put(&attempt.path("input"), b"one\ntwo\n");
    attempt.spec.stdin = Some(attempt.path("input"));
    assert_eq!(exit_of(&attempt.run()), Some(Exit::Code(0)));
    assert_eq!(attempt.output(), b"one\ntwo\nend\n");

    let plain = Attempt::sh("cat; echo end");
    assert_eq!(exit_of(&plain.run()), Some(Exit::Code(0)));
    assert_eq!(plain.output(), b"end\n");
}

#[test]
fn a_standard_input_that_is_no_file_starts_nothing() {
    let why = |name: &str| {
        let mut attempt = Attempt::sh("echo ran >> $T/count");
        attempt.fifo();
        put(&attempt.path("file"), b"");
        std::os::unix::fs::symlink(attempt.path("file"), attempt.path("link")).expect("links");
        attempt.spec.stdin = Some(attempt.path(name));
        let records = attempt.run();
        assert!(!attempt.path("count").exists(), "{name}");
        never_started(&records).map(|(code, _)| code)
    };
    for name in ["missing", "fifo", "link", "."] {
        assert_eq!(why(name), Some(NeverStarted::BadSpec), "{name}");
    }
}

#[test]
fn a_terminal_run_reads_its_terminal_and_not_a_file() {
    let mut attempt = Attempt::sh("test -t 0");
    attempt.spec.tty = Some(Window { rows: 24, cols: 80 });
    attempt.spec.stdin = Some(attempt.path("missing"));
    assert_eq!(exit_of(&attempt.run()), Some(Exit::Code(0)));
}

#[test]
fn a_quiet_child_lives_while_its_heart_beats_and_is_ended_after_that() {
    let window = Duration::from_secs(1);
    let mut attempt = quiet("exec sleep 1000", window);
    let beat = attempt.path("beat");
    attempt.spec.heartbeat = Some(beat.clone());
    let mut shim = attempt.start();
    let pid = shim.peer.until_started();
    until_passed(3 * window, || put(&beat, b"x"));
    assert!(is_alive(pid));
    assert_eq!(ending_by_now(&mut attempt.connect_as_daemon()), None);
    let records = shim.peer.until_over();
    assert_eq!(ending(&records), Some(EndCause::Stalled));
}

#[test]
fn a_heartbeat_dated_in_the_year_2100_saves_nobody() {
    let far = UNIX_EPOCH + Duration::from_secs(4_102_444_800);
    let window = Duration::from_millis(300);

    let mut before = quiet("exec sleep 1000", window);
    before.spec.heartbeat = Some(before.path("beat"));
    date(&before.path("beat"), far);
    assert_eq!(ending(&before.run()), Some(EndCause::Stalled));

    let mut meanwhile = quiet("touch -d 2100-01-01 $T/beat; exec sleep 1000", window);
    meanwhile.spec.heartbeat = Some(meanwhile.path("beat"));
    assert_eq!(ending(&meanwhile.run()), Some(EndCause::Stalled));
    assert!(meanwhile.path("beat").exists());
}

#[test]
fn being_stopped_is_not_being_silent() {
    let window = Duration::from_secs(2);
    let attempt = quiet("read x < $T/fifo; echo $x", window);
    // Open on both sides, so that neither end waits for the other to open it.
    let fifo = attempt.fifo();
    let mut gate = File::options().read(true).write(true).open(fifo).expect("opens");
    let mut shim = attempt.start();
    let child = KillOnDrop(shim.peer.until_started());
    let shim_pid = shim.process.0.id();
    for pid in [shim_pid, child.0] {
        signal(pid, Signal::STOP);
        eventually(|| is_stopped(pid).then_some(()));
    }
    // Not so long that the wait itself is seen to have taken too long.
    until_passed(window + Duration::from_millis(500), std::thread::yield_now);

    signal(shim_pid, Signal::CONT);
    let mut other = attempt.connect_as_daemon();
    assert_eq!(ending_by_now(&mut other), None);
    std::io::Write::write_all(&mut gate, b"here\n").expect("the pipe has room");
    signal(child.0, Signal::CONT);
    let records = shim.peer.until_over();
    assert_eq!((ending(&records), exit_of(&records)), (None, Some(Exit::Code(0))));
    assert_eq!(attempt.output(), b"here\n");
}

/// An attempt at a command that says nothing, and how long it may.
fn quiet(script: &str, window: Duration) -> Attempt {
    let mut attempt = Attempt::sh(script);
    attempt.spec.limits.stall_window_ms = u64::try_from(window.as_millis()).ok();
    attempt
}

/// Does `meanwhile` over and over until the clock has gone on by `time`.
#[expect(clippy::disallowed_methods, reason = "a test waits on a real clock")]
fn until_passed(time: Duration, meanwhile: impl Fn()) {
    let end = std::time::Instant::now() + time;
    while std::time::Instant::now() < end {
        meanwhile();
    }
}

fn date(path: &Path, modified: SystemTime) {
    File::create(path).and_then(|file| file.set_modified(modified)).expect("dates");
}

/// Whether the shim has begun to end its tree, as it says to each new connection.
fn ending_by_now(peer: &mut Peer) -> Option<EndCause> {
    match peer.hello(EPOCH, Role::Daemon) {
        News::Hello { records, .. } => ending(&records),
        other => panic!("{other:?}"),
    }
}

fn signal(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a pid");
    rustix::process::kill_process(pid, signal).expect("it is alive");
}

fn is_stopped(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.contains(") T ")
}
