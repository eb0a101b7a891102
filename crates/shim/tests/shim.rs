//! A real shim with a real child, seen from a daemon's side.
//!
//! Tests wait for records, frames and ends of processes; none sleeps.

mod harness;
mod life;
mod secrets;

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;

use harness::{Attempt, EPOCH, exit_of, is_alive, never_started, put};
use outlast_home::layout::AttemptDir;
use outlast_wire::output::Stream;
use outlast_wire::shim::{
    EndCause, Exit, NeverStarted, News, Order, Record, Refusal, Role, Spool, Window,
};
use rustix::process::{Pid, Resource, Rlimit};

fn ending(records: &[Record]) -> Option<EndCause> {
    records.iter().find_map(|record| match record {
        Record::Ending { cause, .. } => Some(*cause),
        _ => None,
    })
}

#[test]
fn a_command_that_ends_leaves_its_code_and_an_empty_tree() {
    let attempt = Attempt::sh("exit 7");
    let records = attempt.run();
    let [
        Record::Starting { epoch: EPOCH, .. },
        Record::Started { identity, .. },
        Record::Exited { exit: Exit::Code(7), output_bytes: 0, survivors, .. },
        Record::TreeEmpty { .. },
    ] = &records[..]
    else {
        panic!("{records:?}")
    };
    assert!(survivors.is_empty() && identity.start > 0 && identity.boot.len() == 36);
    assert_eq!(attempt.records(), records);
}

#[test]
fn a_command_that_is_killed_leaves_its_signal() {
    assert_eq!(exit_of(&Attempt::sh("kill -9 $$").run()), Some(Exit::Signal(9)));
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a shell writes the script of this test")]
fn what_cannot_be_started_says_why() {
    let why = |attempt: &Attempt| never_started(&attempt.run());
    assert_eq!(
        why(&Attempt::of(&["nosuchcmd"])),
        Some((NeverStarted::CommandNotFound, "nosuchcmd: command not found".to_owned()))
    );

    let plain = Attempt::of(&["./plain"]);
    put(&plain.path("plain"), b"#!/bin/sh\n");
    assert_eq!(why(&plain).map(|(code, _)| code), Some(NeverStarted::NotExecutable));

    let shebangless = Attempt::of(&["./script"]);
    // A child process writes it: a process that another test forks meanwhile must not inherit the open file, because the
    // kernel executes no file that is open for writing.
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "echo true >\"$1\" && chmod 755 \"$1\"", "sh"]);
    assert!(shell.arg(shebangless.path("script")).status().expect("there is a sh").success());
    assert_eq!(why(&shebangless).map(|(code, _)| code), Some(NeverStarted::NotExecutable));

    let mut nowhere = Attempt::sh("true");
    nowhere.spec.dir = "/nowhere/at/all".into();
    assert_eq!(why(&nowhere).map(|(code, _)| code), Some(NeverStarted::NoDirectory));

    let long = Attempt::of(&["true", &"x".repeat(3 << 20)]);
    assert_eq!(why(&long).map(|(code, _)| code), Some(NeverStarted::TooLong));
}

#[test]
fn an_unreadable_spec_is_written_down_and_nothing_starts() {
    let attempt = Attempt::sh("true");
    put(&attempt.dir.spec(), b"{");
    let status = attempt.command().status().expect("runs");
    assert_eq!(status.code(), Some(65));
    assert_eq!(
        never_started(&attempt.records()).map(|(code, _)| code),
        Some(NeverStarted::BadSpec)
    );
}

#[test]
fn lines_on_both_streams_are_kept_apart_and_complete() {
    let script = "i=0; while [ $i -lt 20 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done";
    let attempt = Attempt::sh(script);
    assert_eq!(exit_of(&attempt.run()), Some(Exit::Code(0)));
    let lines = |word: &str| (0..20).map(|i| format!("{word} {i}\n")).collect::<String>();
    assert_eq!(String::from_utf8_lossy(&attempt.stream(Stream::Stdout)), lines("out"));
    assert_eq!(String::from_utf8_lossy(&attempt.stream(Stream::Stderr)), lines("err"));
}

#[test]
fn output_is_bytes_and_not_text() {
    let attempt = Attempt::sh(r"printf '\000\377\376a\000'");
    attempt.run();
    assert_eq!(attempt.output(), b"\0\xff\xfea\0");
}

#[test]
fn the_child_gets_the_runs_environment_and_nothing_of_ours() {
    let mut attempt = Attempt::sh("umask; env | cut -d= -f1 | sort; ls /proc/self/fd; trap");
    attempt.vars.push(("LEAK", "1".into()));
    attempt.run();
    let text = String::from_utf8(attempt.output()).expect("text");
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(
        words,
        ["0022", "PATH", "PWD", "T", "0", "1", "2", "3"],
        "3 is the directory that ls reads"
    );
}

#[test]
fn start_said_twice_executes_once() {
    let attempt = Attempt::sh("echo ran >> $T/count; read x < $T/fifo");
    let fifo = attempt.fifo();
    let mut shim = attempt.start();
    shim.peer.until_started();
    shim.peer.say(Order::Start { turn: 1, attempt: 1, epoch: EPOCH });
    let mut other = attempt.connect_as_daemon();
    other.hello(EPOCH, Role::Daemon);
    other.say(Order::Start { turn: 1, attempt: 1, epoch: EPOCH });
    // Opens once the child does, so that it has run by then.
    put(&fifo, b"go\n");
    assert_eq!(exit_of(&shim.peer.until_over()), Some(Exit::Code(0)));
    assert_eq!(attempt.text("count"), "ran\n");

    let (mut again, records) = attempt.next_shim();
    assert_eq!(records, attempt.records());
    assert!(again.process.wait().success(), "a settled attempt is told and left");
    assert_eq!(attempt.text("count"), "ran\n");
}

#[test]
fn a_start_for_another_attempt_is_refused() {
    let attempt = Attempt::sh("true");
    let mut shim = attempt.shim();
    shim.peer.hello(EPOCH, Role::Daemon);
    shim.peer.say(Order::Start { turn: 1, attempt: 2, epoch: EPOCH });
    assert!(matches!(shim.peer.hear_news(), News::Refused { code: Refusal::OtherAttempt, .. }));
}

/// The child holds a copy of the lock until it execs or exits, so a shim that gets it proves it gone.
#[test]
fn a_shim_killed_before_the_barrier_opens_never_runs_its_child() {
    let before = [
        "shim.locked",
        "shim.bound",
        "shim.start-ordered",
        "shim.starting",
        "shim.forked",
        "shim.started",
    ];
    for point in before {
        let attempt = Attempt::sh("echo ran >> $T/count").crashing_at(point);
        let mut shim = attempt.shim();
        if shim.peer.try_hello(EPOCH).is_some() {
            shim.peer.say(Order::Start { turn: 1, attempt: 1, epoch: EPOCH });
        }
        assert_eq!(shim.process.wait().signal(), Some(9), "{point}");
        let (_next, records) = attempt.next_shim();
        let facts: Vec<_> =
            records.iter().map(|record| matches!(record, Record::Started { .. })).collect();
        let expected: &[bool] = match point {
            "shim.starting" | "shim.forked" => &[false],
            "shim.started" => &[false, true],
            _ => &[],
        };
        assert_eq!(facts, expected, "{point}: {records:?}");
        assert!(!attempt.path("count").exists(), "{point}");
    }
}

#[test]
fn a_shim_killed_later_leaves_what_it_had_said_and_is_never_followed_by_a_second_run() {
    let after = [
        ("shim.released", 2),
        ("shim.main-exited", 2),
        ("shim.stop-ordered", 3),
        ("shim.exited", 3),
        ("shim.tree-empty", 4),
    ];
    for (point, count) in after {
        let script = if point == "shim.stop-ordered" {
            "echo ran >> $T/count; exec sleep 1000"
        } else {
            "echo ran >> $T/count"
        };
        let attempt = Attempt::sh(script).crashing_at(point);
        let mut shim = attempt.start();
        if point == "shim.stop-ordered" {
            let pid = shim.peer.until_started();
            harness::eventually(|| attempt.path("count").exists().then_some(()));
            shim.peer.say(Order::Stop { grace_ms: 0 });
            assert_eq!(shim.process.wait().signal(), Some(9), "{point}");
            drop(harness::KillOnDrop(pid));
        }
        assert_eq!(shim.process.wait().signal(), Some(9), "{point}");
        let (_next, records) = attempt.next_shim();
        assert_eq!(records.len(), count, "{point}: {records:?}");
        harness::eventually(|| (attempt.text("count") == "ran\n").then_some(()));
    }
}

#[test]
fn a_disk_that_takes_no_writes_holds_the_child_up_and_loses_nothing() {
    let attempt = Attempt::sh("seq 1 200000 & seq 1 200000 >&2; wait; exit 5");
    let mut shim = attempt.shim();
    shim.peer.hello(EPOCH, Role::Daemon);
    let process = i32::try_from(shim.process.0.id()).ok().and_then(Pid::from_raw);
    let limit = |bytes| {
        let limit = Rlimit { current: bytes, maximum: None };
        rustix::process::prlimit(process, Resource::Fsize, limit).expect("our own child");
    };
    limit(Some(100_000));
    shim.peer.say(Order::Start { turn: 1, attempt: 1, epoch: EPOCH });
    loop {
        if let News::Disk { problem } = shim.peer.hear_news() {
            assert!(problem.is_some());
            break;
        }
    }
    assert_eq!(attempt.output().len(), 100_000);
    limit(None);
    loop {
        match shim.peer.hear_news() {
            News::Disk { problem } => break assert_eq!(problem, None),
            other => assert!(
                !matches!(other, News::Record { record: Record::Exited { .. } }),
                "{other:?}"
            ),
        }
    }
    assert_eq!(exit_of(&shim.peer.until_over()), Some(Exit::Code(5)));
    let whole: Vec<u8> = (1..=200_000).flat_map(|n| format!("{n}\n").into_bytes()).collect();
    assert!(attempt.stream(Stream::Stdout) == whole);
    assert!(attempt.stream(Stream::Stderr) == whole);
}

#[test]
fn a_daemon_that_comes_back_finds_everything_said() {
    let attempt = Attempt::sh("echo hello; read x < $T/fifo; exit 3");
    let fifo = attempt.fifo();
    let mut shim = attempt.start();
    assert_eq!(shim.peer.until_output(0), 6);
    let harness::Shim { mut process, peer } = shim;
    drop(peer);
    let mut next = attempt.connect_as_daemon();
    let News::Hello { records, output_bytes, pid, .. } = next.hello(EPOCH + 1, Role::Daemon) else {
        panic!("no hello")
    };
    assert_eq!((records, output_bytes, pid), (attempt.records(), 6, process.0.id()));
    put(&fifo, b"go\n");
    assert_eq!(exit_of(&next.until_over()), Some(Exit::Code(3)));
    assert!(process.wait().success());
}

#[test]
fn an_older_daemon_is_refused_and_a_newer_one_replaces() {
    let attempt = Attempt::sh("sleep 100");
    let mut shim = attempt.start();
    shim.peer.until_started();
    let refusal = attempt.connect_as_daemon().hello(EPOCH - 1, Role::Daemon);
    assert!(matches!(refusal, News::Refused { code: Refusal::StaleEpoch, .. }), "{refusal:?}");
    let mut newer = attempt.connect_as_daemon();
    newer.hello(EPOCH + 1, Role::Daemon);
    assert!(matches!(shim.peer.hear_news(), News::Refused { code: Refusal::StaleEpoch, .. }));
    assert_eq!(shim.peer.hear(), None);
    newer.say(Order::Stop { grace_ms: 0 });
    newer.until_over();
}

#[test]
fn a_process_that_does_not_hold_the_daemons_lock_claims_no_epoch() {
    let attempt = Attempt::sh("sleep 100");
    let mut shim = attempt.start();
    shim.peer.until_started();
    let refusal = attempt.connect().hello(u64::MAX, Role::Daemon);
    assert!(matches!(refusal, News::Refused { code: Refusal::NotTheDaemon, .. }), "{refusal:?}");
    // Nor does one that comes as a viewer, and says later that it is more.
    let mut viewer = attempt.connect();
    assert!(matches!(viewer.hello(u64::MAX, Role::Viewer), News::Hello { .. }));
    let refusal = viewer.hello(u64::MAX, Role::Daemon);
    assert!(matches!(refusal, News::Refused { code: Refusal::Protocol, .. }), "{refusal:?}");
    let mut next = attempt.connect_as_daemon();
    assert!(matches!(next.hello(EPOCH + 1, Role::Daemon), News::Hello { .. }));
    next.say(Order::Stop { grace_ms: 0 });
    next.until_over();
}

#[test]
fn an_order_before_hello_is_refused() {
    let attempt = Attempt::sh("true");
    let mut shim = attempt.shim();
    shim.peer.say(Order::Start { turn: 1, attempt: 1, epoch: EPOCH });
    assert!(matches!(shim.peer.hear_news(), News::Refused { code: Refusal::Protocol, .. }));
    assert_eq!(attempt.records(), []);
}

#[test]
fn stop_before_start_never_starts() {
    let attempt = Attempt::sh("echo ran >> $T/count");
    let mut shim = attempt.shim();
    shim.peer.hello(EPOCH, Role::Daemon);
    shim.peer.say(Order::Stop { grace_ms: 1000 });
    let records = shim.peer.until_over();
    assert_eq!(never_started(&records).map(|(code, _)| code), Some(NeverStarted::Stopped));
    assert!(!attempt.path("count").exists());
}

#[test]
fn stop_ends_a_tree_with_a_session_of_its_own_and_one_that_ignores_term() {
    let script = "setsid sh -c 'echo $$ >> $T/pids; echo x; exec sleep 1000' &
        sh -c 'trap \"\" TERM; echo $$ >> $T/pids; echo x; while :; do sleep 1000; done' &
        echo x; wait";
    let attempt = Attempt::sh(script);
    let mut shim = attempt.start();
    assert_eq!(shim.peer.until_output(5), 6);
    shim.peer.say(Order::Stop { grace_ms: 200 });
    let records = shim.peer.until_over();
    assert_eq!(ending(&records), Some(EndCause::Stopped));
    assert_eq!(exit_of(&records), Some(Exit::Signal(15)));
    assert!(matches!(records.last(), Some(Record::TreeEmpty { .. })), "{records:?}");
    let pids = attempt.text("pids");
    assert_eq!(pids.lines().count(), 2);
    for pid in pids.lines() {
        assert!(!is_alive(pid.parse().expect("a pid")), "{pid}");
    }
}

#[test]
fn a_shorter_grace_takes_over() {
    let attempt = Attempt::sh("trap '' TERM; echo x; while :; do sleep 1000; done");
    let mut shim = attempt.start();
    shim.peer.until_output(1);
    shim.peer.say(Order::Stop { grace_ms: 1_000_000 });
    shim.peer.until(|record| matches!(record, Record::Ending { .. }));
    shim.peer.say(Order::Stop { grace_ms: 0 });
    assert_eq!(exit_of(&shim.peer.until_over()), Some(Exit::Signal(9)));
}

#[test]
fn a_grandchild_that_holds_stdout_does_not_hold_the_exit() {
    let attempt = Attempt::sh(
        "sleep 1000 & until tr '\\0' ' ' < /proc/$!/cmdline | grep -q '^sleep'; do :; done; echo done; exit 4",
    );
    let mut shim = attempt.start();
    let exited = shim.peer.until(|record| matches!(record, Record::Exited { .. }));
    let Record::Exited { exit: Exit::Code(4), output_bytes: 5, survivors, .. } = exited else {
        panic!("{exited:?}")
    };
    let [survivor] = &survivors[..] else { panic!("{survivors:?}") };
    assert_eq!(survivor.command, "sleep 1000");
    assert!(is_alive(survivor.pid));
    shim.peer.say(Order::Stop { grace_ms: 1000 });
    assert!(matches!(shim.peer.until_over().last(), Some(Record::TreeEmpty { .. })));
    assert!(!is_alive(survivor.pid));
}

#[test]
fn a_survivors_output_is_kept_after_the_exit() {
    let attempt = Attempt::sh("{ read x < $T/fifo; echo late; } & echo early");
    let fifo = attempt.fifo();
    let mut shim = attempt.start();
    shim.peer.until(|record| matches!(record, Record::Exited { .. }));
    put(&fifo, b"go\n");
    shim.peer.until_over();
    assert_eq!(attempt.output(), b"early\nlate\n");
}

#[test]
fn a_turn_that_takes_too_long_times_out() {
    let mut attempt = Attempt::sh("while :; do echo x; sleep 0.05; done");
    attempt.spec.limits.turn_timeout_ms = Some(300);
    attempt.spec.limits.stall_window_ms = Some(10_000);
    let records = attempt.run();
    assert_eq!(ending(&records), Some(EndCause::TimedOut));
    assert_eq!(exit_of(&records), Some(Exit::Signal(15)));
}

#[test]
fn a_turn_that_falls_silent_stalls() {
    let mut attempt = Attempt::sh("echo x; sleep 0.1; echo y; sleep 1000");
    attempt.spec.limits.turn_timeout_ms = Some(100_000);
    attempt.spec.limits.stall_window_ms = Some(400);
    let records = attempt.run();
    assert_eq!(ending(&records), Some(EndCause::Stalled));
    assert_eq!(attempt.output(), b"x\ny\n");
}

#[test]
fn a_spool_keeps_its_head_and_tail_and_says_exactly_what_is_missing() {
    let mut attempt = Attempt::sh("seq 1 400000");
    attempt.spec.spool = Spool { head_bytes: 10_000, tail_bytes: 50_000 };
    attempt.run();
    let whole: Vec<u8> = (1..=400_000).flat_map(|n| format!("{n}\n").into_bytes()).collect();
    let (header, output) = (attempt.header(), attempt.output());
    assert_eq!(output.len(), whole.len());
    assert_eq!(header.gap_from, 10_000);
    let gap_to = usize::try_from(header.gap_to).expect("small");
    assert!(
        gap_to <= whole.len() - 50_000 && gap_to + 50_000 + 8192 + 4096 > whole.len(),
        "{header:?}"
    );
    assert!(output[..10_000] == whole[..10_000]);
    assert!(output[gap_to..] == whole[gap_to..]);
    let on_disk = std::fs::metadata(attempt.dir.output()).expect("there").blocks() * 512;
    assert!(on_disk < 100_000, "{on_disk}");
}

#[test]
fn output_is_watched_once_each() {
    let attempt = Attempt::sh("printf 12345; read x < $T/fifo; printf 678");
    let fifo = attempt.fifo();
    let mut shim = attempt.start();
    assert_eq!(shim.peer.until_output(0), 5);
    assert_eq!(shim.peer.until_output(2), 5, "at once, if there is more already");
    shim.peer.say(Order::WatchOutput { after: 5 });
    put(&fifo, b"go\n");
    let mut bytes = Vec::new();
    while let Some(frame) = shim.peer.hear() {
        if let outlast_wire::shim::Frame::Message(News::Output { bytes: count }) = frame {
            bytes.push(count);
        }
    }
    assert_eq!(bytes, [8]);
}

#[test]
fn a_terminal_has_a_size_and_answers_while_nobody_is_attached() {
    let script =
        "stty size; stty raw -echo; printf '\\033[6n'; dd bs=1 count=6 2>/dev/null | od -An -c";
    let mut attempt = Attempt::sh(script);
    attempt.spec.tty = Some(Window { rows: 30, cols: 111 });
    assert_eq!(exit_of(&attempt.run()), Some(Exit::Code(0)));
    let output = String::from_utf8_lossy(&attempt.output()).into_owned();
    assert!(output.starts_with("30 111"), "{output:?}");
    assert!(output.contains("033   [   2   ;   1   R"), "{output:?}");
}

/// Nothing has the terminal open for a moment, which is not its end.
#[test]
fn a_terminal_that_was_closed_for_a_moment_is_heard_again() {
    let script = "echo before; exec </dev/null >/dev/null 2>&1; echo closed > $T/closed;
        read x < $T/fifo; echo after > /dev/tty; yes filler | head -c 300000 > /dev/tty; exit 4";
    let mut attempt = Attempt::sh(script);
    attempt.spec.tty = Some(Window { rows: 24, cols: 80 });
    let fifo = attempt.fifo();
    let mut shim = attempt.start();
    harness::eventually(|| (attempt.text("closed") == "closed\n").then_some(()));
    put(&fifo, b"go\n");
    assert_eq!(exit_of(&shim.peer.until_over()), Some(Exit::Code(4)));
    let output = String::from_utf8_lossy(&attempt.output()).into_owned();
    assert!(output.starts_with("before\r\nafter\r\nfiller\r\n"), "{:?}", &output[..40]);
    assert_eq!(output.matches("filler").count(), 42_857);
}

#[test]
fn whoever_attaches_late_is_painted_the_screen_in_their_own_size() {
    let script = "printf 'lost\\033[?1049h\\033[2J\\033[3;5Hhere'; read x; stty size; echo got $x; read y; exit 9";
    let mut attempt = Attempt::sh(script);
    attempt.spec.tty = Some(Window { rows: 24, cols: 80 });
    let mut shim = attempt.start();
    shim.peer.until_output(25);
    let mut viewer = attempt.connect();
    viewer.hello(EPOCH, Role::Viewer);
    viewer.say(Order::Attach { window: Window { rows: 40, cols: 100 } });
    viewer.until_screen(40, 100, |screen| {
        screen.alternate_screen() && screen.rows(0, 100).nth(2).as_deref() == Some("    here")
    });
    viewer.press(b"word\r");
    viewer.until_screen(40, 100, |screen| {
        let text = screen.contents();
        text.contains("40 100") && text.contains("got word")
    });
    viewer.press(b"\r");
    assert_eq!(exit_of(&shim.peer.until_over()), Some(Exit::Code(9)));
    while viewer.hear().is_some() {}
}

#[test]
fn attach_without_a_terminal_is_refused() {
    let attempt = Attempt::sh("sleep 100");
    let mut shim = attempt.start();
    shim.peer.until_started();
    let mut viewer = attempt.connect();
    viewer.hello(EPOCH, Role::Viewer);
    viewer.say(Order::Attach { window: Window { rows: 40, cols: 100 } });
    assert!(matches!(viewer.hear_news(), News::Refused { code: Refusal::NoTerminal, .. }));
    shim.peer.say(Order::Stop { grace_ms: 0 });
    shim.peer.until_over();
}

#[test]
fn a_long_path_has_a_socket_too() {
    let temp = tempfile::tempdir().expect("a directory");
    let dir = AttemptDir(temp.path().join("d".repeat(90)).join("e".repeat(90)));
    let attempt = Attempt::at(temp, dir, &["sleep", "100"]);
    let mut shim = attempt.start();
    shim.peer.until_started();
    let folder = std::fs::File::open(&attempt.dir.0).expect("opens");
    let short = format!("/proc/self/fd/{}/ctl.sock", std::os::fd::AsRawFd::as_raw_fd(&folder));
    assert!(std::os::unix::net::UnixStream::connect(short).is_ok());
    shim.peer.say(Order::Stop { grace_ms: 0 });
    shim.peer.until_over();
}

#[test]
fn a_second_shim_finds_the_lock_taken_and_leaves() {
    let attempt = Attempt::sh("sleep 100");
    let mut shim = attempt.start();
    shim.peer.until_started();
    assert_eq!(attempt.command().status().expect("runs").code(), Some(75));
    shim.peer.say(Order::Stop { grace_ms: 0 });
    shim.peer.until_over();
}

/// An attempt whose shim may start a daemon, for which a shell stands in: it holds the lock and says who
/// it is, whose child, and with what environment.
fn revivable(command: &str) -> Attempt {
    let mut attempt = Attempt::sh(command);
    std::fs::remove_file(attempt.path("stopped")).expect("the marker was there");
    let script = format!(
        "cd {}; exec 9>daemon.lock; flock 9; env > daemon.env; echo $$ $PPID > tmp; mv tmp daemon.pid; exec sleep 1000",
        attempt.temp.path().display()
    );
    attempt.spec.revive.args = vec!["-c".into(), script];
    attempt
}

/// The stand-in's pid, which is ended with the guard, and its parent's.
fn revived(attempt: &Attempt) -> (harness::KillOnDrop, u32) {
    harness::eventually(|| {
        let text = attempt.text("daemon.pid");
        let mut numbers = text.split_whitespace().map(|number| number.parse().expect("a pid"));
        Some((harness::KillOnDrop(numbers.next()?), numbers.next()?))
    })
}

#[test]
fn a_dead_daemon_is_started_again_and_is_not_ended_with_the_run() {
    let attempt = revivable("exec sleep 1000");
    let mut shim = attempt.start();
    shim.peer.until_started();
    let harness::Shim { mut process, peer } = shim;
    drop(peer);
    let (daemon, parent) = revived(&attempt);
    assert_ne!(parent, process.0.id(), "not a descendant of the shim");
    assert!(!attempt.text("daemon.env").contains("T="), "not the run's environment");
    let main = attempt.records().iter().find_map(|record| match record {
        Record::Started { identity, .. } => Some(identity.pid),
        _ => None,
    });
    drop(harness::KillOnDrop(main.expect("it was started")));
    assert!(process.wait().success());
    assert!(is_alive(daemon.0), "the end of the run is not the end of the daemon");
}

#[test]
fn an_end_that_no_daemon_saw_starts_one_before_the_shim_leaves() {
    let attempt = revivable("read x < $T/fifo; exit 6");
    let fifo = attempt.fifo();
    let mut shim = attempt.start();
    shim.peer.until_started();
    let harness::Shim { mut process, peer } = shim;
    drop(peer);
    put(&fifo, b"go\n");
    assert!(process.wait().success());
    let (daemon, _) = revived(&attempt);
    assert!(is_alive(daemon.0));
    assert_eq!(exit_of(&attempt.records()), Some(Exit::Code(6)));
    assert!(std::os::unix::net::UnixStream::connect(attempt.dir.socket()).is_err());
}

#[test]
fn a_daemon_that_was_asked_to_be_down_stays_down() {
    let attempt = revivable("exit 6");
    put(&attempt.path("stopped"), b"");
    let mut shim = attempt.start();
    shim.peer.until_started();
    let harness::Shim { mut process, peer } = shim;
    drop(peer);
    assert!(process.wait().success());
    assert!(!attempt.path("daemon.pid").exists());
}
