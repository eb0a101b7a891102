//! Clients that do not read, slow gits and many chores: none of them holds up a turn or an order.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use crate::harness::{Gate, Home, PATIENCE, kill, str_of, until};
use crate::hosted::{file, repository, start};
use crate::loops::Loop;

/// More than there are threads for any kind of work.
const CROWD: usize = 6;

/// A client that has been sent the begin of an answer, and reads no more of it.
fn stuck(home: &Home, path: &str) -> UnixStream {
    let socket = home.path().join("run/daemon.sock");
    let mut stream = UnixStream::connect(socket).expect("a daemon listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket has a time limit");
    let request = format!("GET {path} HTTP/1.1\r\nHost: outlast\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("the daemon reads");
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).expect("the answer begins");
    assert_eq!(&begin, b"HTTP/1.1 200", "{path}");
    stream
}

/// Runs whose labels make their list far longer than what a socket takes unread.
fn make_a_long_list(home: &Home) {
    let labels: Vec<String> = (0..25).map(|n| format!("l{n}={}", "x".repeat(4000))).collect();
    let labels = labels.iter().flat_map(|label| ["--label", label]);
    let args: Vec<&str> = ["run", "-d"].into_iter().chain(labels).chain(["--", "true"]).collect();
    for _ in 0..30 {
        let id = home.ok(&args);
        assert_eq!(home.wait(&id), 0);
    }
}

/// A loop that makes turn after turn.
pub(crate) fn endless(home: &Home) -> String {
    let looping = Loop::of(home, "say continue on").agent("max_turns: 100000");
    looping.with("limits: {no_progress_turns: 0}").start()
}

pub(crate) fn turns(home: &Home, id: &str) -> u64 {
    home.show(id)["turns_committed"].as_u64().unwrap_or_default()
}

/// The loop makes more turns, and everything that a person asks for is answered.
fn assert_all_goes_on(home: &Home, looping: &str) {
    let before = turns(home, looping);
    until("the loop makes turns", || (turns(home, looping) > before + 2).then_some(()));
    let id = home.start("sleep 1000");
    home.pid(&id);
    assert!(home.ok(&["ps"]).contains(&id[..8]));
    assert_eq!(home.json(&["daemon", "status", "--json"])["running"], true);
    home.ok(&["stop", &id[..6]]);
    assert_eq!(home.wait(&id), 5);
}

#[test]
fn clients_that_do_not_read_hold_up_no_turn_and_no_order() {
    let home = Home::new();
    make_a_long_list(&home);
    let looping = endless(&home);
    let loud =
        home.start("yes a line that is printed again and again | head -c 8000000; sleep 1000");
    until("there is output", || {
        (home.show(&loud)["output_bytes"].as_u64() >= Some(8_000_000)).then_some(())
    });
    let mut clients = Vec::new();
    let output = format!("/v1/runs/{loud}/output?follow=true");
    let events = format!("/v1/runs/{looping}/events?follow=true");
    for path in ["/v1/runs?all=true", &output, &events, "/v1/watch"] {
        clients.extend((0..CROWD).map(|_| stuck(&home, path)));
    }
    assert_all_goes_on(&home, &looping);
    // One that reads after all gets all of it.
    let mut whole = Vec::new();
    let mut late = clients.swap_remove(0);
    late.set_read_timeout(Some(PATIENCE)).expect("a socket has a time limit");
    while !whole.ends_with(b"0\r\n\r\n") {
        let mut some = vec![0; 1 << 16];
        let count = late.read(&mut some).expect("it is sent");
        assert!(count > 0, "it was cut short after {} bytes", whole.len());
        whole.extend_from_slice(&some[..count]);
    }
    assert!(whole.len() > 3_000_000, "{} bytes", whole.len());
}

#[test]
fn slow_a_client_that_does_not_read_is_dropped_after_a_while() {
    let home = Home::new();
    make_a_long_list(&home);
    let _client = stuck(&home, "/v1/runs?all=true");
    until("it is dropped", || {
        let log = fs::read_to_string(home.state().join("daemon.log")).unwrap_or_default();
        log.contains("a client was dropped that does not read").then_some(())
    });
    assert_eq!(home.json(&["daemon", "status", "--json"])["running"], true);
}

#[test]
fn many_removals_at_once_do_not_wait_for_each_other() {
    let home = Home::new();
    repository(&home);
    let checkout = file(&home, "tree", "say done x", "workspace: {strategy: worktree}");
    let trees: Vec<String> = (0..2 * CROWD).map(|_| start(&home, &checkout, &[])).collect();
    for tree in &trees {
        assert_eq!(home.wait(tree), 0, "{}", home.show(tree));
    }
    let removals: Vec<_> = trees.iter().map(|tree| home.spawn(&["rm", tree])).collect();
    for removal in removals {
        assert_eq!(removal.code(), 0);
    }
    assert_eq!(home.json(&["ps", "-a", "--json"]).as_array().map(Vec::len), Some(0));
}

/// A git that waits at a gate before it does anything.
fn slow_git(home: &Home, gate: &Gate) {
    let bin = home.scratch().join("slow");
    fs::create_dir(&bin).expect("the scratch directory is ours");
    let path = std::env::var("PATH").unwrap_or_default();
    let script = format!(
        "#!/bin/sh\necho $$ >>'{}'\n{}\nPATH='{path}' exec git \"$@\"\n",
        home.scratch().join("gits").display(),
        gate.pass()
    );
    crate::programs::script(&bin.join("git"), &script);
}

#[test]
fn gits_that_take_their_time_hold_up_no_turn_and_no_order() {
    let home = Home::new();
    let scratch = home.scratch();
    let path = std::env::var("PATH").unwrap_or_default();
    let home = home.env("PATH", format!("{}:{path}", scratch.join("slow").display()));
    repository(&home);
    let mut gate = Gate::new(&home, "gate");
    slow_git(&home, &gate);
    let looping = endless(&home);
    let checkout = file(&home, "tree", "say done x", "workspace: {strategy: worktree}");
    let trees: Vec<String> = (0..CROWD).map(|_| start(&home, &checkout, &[])).collect();
    let gits = || fs::read_to_string(scratch.join("gits")).unwrap_or_default();
    until("every thread for chores has a git", || (gits().lines().count() >= 4).then_some(()));
    for tree in &trees {
        assert_eq!(str_of(&home.show(tree), "state"), "preparing");
    }
    assert_all_goes_on(&home, &looping);
    // Stopped while its git hangs: a run does not wait for the chore of another.
    home.ok(&["stop", &trees[0]]);
    for _ in 0..1000 {
        gate.open();
    }
    for tree in &trees[1..] {
        assert_eq!(home.wait(tree), 0, "{}", home.show(tree));
    }
}

#[test]
fn a_follower_of_a_run_that_is_removed_is_told_so() {
    let home = Home::new();
    let id = home.ok(&["run", "-d", "--retry", "1", "--", "sleep", "1000"]);
    home.pid(&id);
    let mut follower = home.spawn(&["events", &id, "-f", "-v"]);
    let mut lines = BufReader::new(follower.0.stdout.take().expect("it is piped")).lines();
    assert!(lines.next().expect("a line").expect("text").contains("RunCreated"));
    // It reads no more until the run is gone, and there is more to read than the way to it holds.
    kill(follower.0.id(), "STOP");
    for _ in 0..60 {
        home.ok(&["send", &id, &"x".repeat(60_000)]);
    }
    home.ok(&["stop", "--now", &id]);
    assert_eq!(home.wait(&id), 5);
    home.ok(&["rm", &id]);
    kill(follower.0.id(), "CONT");
    let last = lines.map_while(Result::ok).last();
    let mut said = String::new();
    let mut errors = follower.0.stderr.take().expect("it is piped");
    errors.read_to_string(&mut said).expect("it is text");
    assert!(said.contains("was removed while it was followed"), "{said} after {last:?}");
    assert_eq!(follower.code(), 2);
}
