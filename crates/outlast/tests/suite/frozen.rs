//! A shim that does not answer: it is noticed, its limits hold, and a stop ends its tree and it.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;

use outlast_wire::shim::{Decoder, Frame, News, Order, Refusal, Role};
use serde_json::Value;

use crate::harness::{Home, is_alive, kill, lines, str_of, until};

fn is_stopped(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['T', 't']))
}

/// A command that has frozen its shim.
fn freeze(home: &Home, flags: &[&str]) -> (String, u32, u32) {
    let go = home.scratch().join("freeze");
    // A shim that is frozen before it has named its command never names it.
    let command = format!(
        "until [ -e '{}' ]; do sleep 0.01; done; kill -STOP $PPID; exec sleep 600",
        go.display()
    );
    let mut args = vec!["run", "-d"];
    args.extend(flags);
    args.extend(["--", "sh", "-c", &command]);
    let id = home.ok(&args);
    let (pid, shim) = (home.pid(&id), home.shim_pid(&id));
    fs::write(&go, "").expect("the scratch directory is ours");
    until("the shim stands still", || is_stopped(shim).then_some(()));
    (id, pid, shim)
}

fn assert_gone(pids: &[u32]) {
    let alive: Vec<&u32> = pids.iter().filter(|pid| is_alive(**pid)).collect();
    assert_eq!(alive, Vec::<&u32>::new(), "alive after its end");
}

#[test]
fn a_frozen_shim_is_unreachable_to_who_looks_and_well_when_it_goes_on() {
    let home = Home::new();
    let (id, pid, shim) = freeze(&home, &[]);
    let run = until("it is called unreachable", || {
        Some(home.show(&id)).filter(|run| run["health"] == "unreachable")
    });
    assert_eq!(str_of(&run["trouble"], "code"), "unreachable");
    assert!(is_stopped(shim) && is_alive(pid), "nothing was due, and it was touched");
    kill(shim, "CONT");
    until("it is well again", || (home.show(&id)["trouble"] == Value::Null).then_some(()));
    home.ok(&["stop", &id, "--now"]);
    assert_gone(&[pid, shim]);
}

/// The first answer of a daemon that was started again was what the journal had of the daemon before.
#[test]
fn a_run_whose_shim_has_yet_to_answer_a_new_daemon_is_being_checked() {
    let home = Home::new();
    let (id, pid, shim) = freeze(&home, &[]);
    kill(home.daemon_pid(), "KILL");
    let first = home.json(&["ps", "--json"]);
    assert_eq!(str_of(&first[0], "phase"), "checking");
    kill(shim, "CONT");
    until("the daemon has looked", || (home.show(&id)["phase"] != "checking").then_some(()));
    home.ok(&["stop", &id, "--now"]);
    assert_gone(&[pid, shim]);
}

#[test]
fn the_turns_time_holds_for_a_frozen_shim() {
    let home = Home::new();
    let (id, pid, shim) = freeze(&home, &["--turn-timeout", "1s"]);
    assert_eq!(home.wait(&id), 4);
    assert_eq!(str_of(&home.show(&id), "outcome"), "timed_out");
    assert_gone(&[pid, shim]);
}

#[test]
fn the_runs_time_holds_for_a_frozen_shim() {
    let home = Home::new();
    let (id, pid, shim) = freeze(&home, &["--run-timeout", "1s"]);
    assert_eq!(home.wait(&id), 4);
    assert_eq!(str_of(&home.show(&id), "reason_code"), "run_timeout");
    assert_gone(&[pid, shim]);
}

#[test]
fn silence_is_bounded_for_a_frozen_shim() {
    let home = Home::new();
    let (id, pid, shim) = freeze(&home, &["--stall", "1s"]);
    assert_eq!(home.wait(&id), 4);
    assert_eq!(str_of(&home.show(&id), "outcome"), "stalled");
    assert_gone(&[pid, shim]);
}

#[test]
fn a_stop_wakes_a_frozen_shim_and_its_end_is_seen() {
    let home = Home::new();
    let (id, pid, shim) = freeze(&home, &[]);
    home.ok(&["stop", &id, "--now"]);
    let run = home.show(&id);
    assert_eq!((str_of(&run, "state"), str_of(&run, "outcome")), ("stopped", "stopped"));
    assert!(run["exit"]["signal"].is_number(), "the woken shim saw the end: {run}");
    assert_gone(&[pid, shim]);
}

/// Nothing wakes it for long, so the tree is ended without it.
#[test]
fn a_stop_ends_a_shim_that_is_frozen_again_and_again() {
    let home = Home::new();
    let pids = home.scratch().join("pids");
    let script = format!(
        "echo $$ >>'{0}'; (while kill -STOP $PPID; do :; done) & echo $! >>'{0}'; wait",
        pids.display()
    );
    let id = home.start(&script);
    let shim = home.shim_pid(&id);
    until("both run", || (lines(&pids) == 2).then_some(()));
    until("the shim stands still", || is_stopped(shim).then_some(()));
    home.ok(&["stop", &id, "--now"]);
    assert_eq!(str_of(&home.show(&id), "state"), "stopped");
    let text = fs::read_to_string(&pids).expect("they wrote it");
    let mut all: Vec<u32> = text.lines().map(|line| line.parse().expect("a pid")).collect();
    all.push(shim);
    assert_gone(&all);
}

/// No way leads to this shim, and it cannot be woken either: it is awake.
#[test]
fn a_stop_ends_a_shim_whose_socket_is_gone() {
    let home = Home::new();
    let id = home.start("exec sleep 600");
    let (pid, shim) = (home.pid(&id), home.shim_pid(&id));
    home.ok(&["daemon", "stop"]);
    fs::remove_file(home.attempt_dir(&id, 1, 1).join("ctl.sock")).expect("it is ours");
    home.ok(&["daemon", "start"]);
    until("it is called unreachable", || {
        (str_of(&home.show(&id), "health") == "unreachable").then_some(())
    });
    assert!(is_alive(pid) && is_alive(shim), "nothing was due, and it was touched");
    home.ok(&["stop", &id, "--now"]);
    let run = home.show(&id);
    assert_eq!((str_of(&run, "state"), str_of(&run, "outcome")), ("stopped", "stopped"));
    assert_gone(&[pid, shim]);
}

#[test]
fn the_turns_time_holds_for_a_shim_whose_socket_is_gone_and_that_is_frozen() {
    let home = Home::new();
    let (id, pid, shim) = freeze(&home, &["--turn-timeout", "2s"]);
    home.ok(&["daemon", "stop"]);
    fs::remove_file(home.attempt_dir(&id, 1, 1).join("ctl.sock")).expect("it is ours");
    home.ok(&["daemon", "start"]);
    assert_eq!(home.wait(&id), 4);
    assert_eq!(str_of(&home.show(&id), "outcome"), "timed_out");
    assert_gone(&[pid, shim]);
}

/// What an agent can do: it is of the same user, and knows where the socket is.
#[test]
fn a_process_that_is_not_the_daemon_cannot_claim_an_epoch() {
    let home = Home::new();
    let id = home.start("exec sleep 600");
    let (pid, shim) = (home.pid(&id), home.shim_pid(&id));
    let socket = home.scratch().join("ctl.sock");
    // A path that is short enough for a socket's address.
    std::os::unix::fs::symlink(home.attempt_dir(&id, 1, 1).join("ctl.sock"), &socket)
        .expect("the scratch directory is ours");
    for role in [Role::Daemon, Role::Viewer] {
        let mut stream = UnixStream::connect(&socket).expect("the shim listens");
        let mut decoder = Decoder::default();
        let mut say = |stream: &mut UnixStream, role| {
            let hello = Order::Hello { proto: 1, epoch: u64::MAX, role };
            let bytes = Frame::Message(hello).encode().expect("it is short");
            stream.write_all(&bytes).expect("the shim takes it");
            match decoder.read::<News>(stream).expect("the shim answers") {
                Some(Frame::Message(news)) => news,
                other => panic!("{other:?}"),
            }
        };
        let wanted = match role {
            Role::Daemon => Refusal::NotTheDaemon,
            Role::Viewer => {
                assert!(matches!(say(&mut stream, role), News::Hello { .. }));
                Refusal::Protocol
            }
        };
        let answer = say(&mut stream, Role::Daemon);
        assert!(matches!(answer, News::Refused { code, .. } if code == wanted), "{answer:?}");
    }
    // The next daemon is met as if nothing had been said.
    home.crash_daemon();
    until("the run is adopted", || (home.count(&id, "AttemptAdopted") == 1).then_some(()));
    home.ok(&["stop", &id, "--now"]);
    assert!(home.show(&id)["exit"]["signal"].is_number(), "its end was not seen");
    assert_gone(&[pid, shim]);
}
