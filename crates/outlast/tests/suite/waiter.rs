//! A daemon that is killed while no shim lives: the waiter starts another, and costs next to nothing until then.
//!
//! No command that starts a daemon by itself is given between a kill and what is looked for.

use std::fs::{self, File, TryLockError};
use std::path::Path;

use serde_json::Value;

use crate::harness::{Home, is_alive, kill, lines, str_of, until};
use crate::hosted::{
    BEARS_ALL, RETRY, becomes, begin, configure, file, left, start, until_left, until_waiting,
};

/// A release build is to stay below this; a debug build maps and changes more.
const OWN_KIB: u64 = if cfg!(debug_assertions) { 600 } else { 307 };

fn is_held(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// The waiter that holds its lock, if one does.
fn waiter_if_any(home: &Home) -> Option<u32> {
    let path = home.state().join("waiter.lock");
    let said: Value = serde_json::from_slice(&fs::read(&path).ok()?).ok()?;
    let pid = u32::try_from(said["pid"].as_u64()?).ok()?;
    (is_held(&path) && is_alive(pid)).then_some(pid)
}

fn waiter(home: &Home) -> u32 {
    until("there is a waiter", || waiter_if_any(home))
}

/// Waits for a daemon that is not this one, without a command that would start it.
fn another_daemon(home: &Home, dead: u32) -> u32 {
    until("another daemon answers", || home.daemon_if_up().filter(|pid| *pid != dead))
}

/// Kills the daemon once there is a waiter.
fn crash(home: &Home) -> u32 {
    waiter(home);
    home.crash_daemon()
}

/// Waits until no process of this home is left: then nothing can come back by itself.
fn nothing_is_left(home: &Home) {
    until("no process is left", || home.processes().is_empty().then_some(()));
    assert_eq!(home.daemon_if_up(), None);
}

#[test]
fn a_daemon_that_dies_while_a_loop_waits_for_a_time_is_started_again() {
    let home = Home::new();
    let agent = r#"if [ "$OUTLAST_TURN" = 1 ]; then
  respond "{\"status\":\"continue\",\"wait\":{\"until\":\"$(date -u -d '+3 seconds' +%Y-%m-%dT%H:%M:%SZ)\"}}"
else
  echo "$OUTLAST_TURN" >>"$HOME/turns"; say done x
fi"#;
    let id = begin(&home, agent, "");
    until_waiting(&home, &id, "timer");
    let dead = crash(&home);
    assert_eq!(until_left(&home, "turns"), ["2"]);
    another_daemon(&home, dead);
    assert_eq!(home.wait(&id), 0);
}

/// That a daemon is needed is written before the run is. The client starts no daemon here.
#[test]
fn a_daemon_that_dies_as_soon_as_a_run_is_written_is_started_again() {
    let home = Home::new();
    let token = home.scratch().join("token");
    fs::write(&token, "").unwrap();
    let home = home
        .env("OUTLAST_CRASH_AT", "daemon.run-created")
        .env("OUTLAST_CRASH_TOKEN", token.to_str().unwrap())
        .env("OUTLAST_NO_AUTOSTART", "1");
    home.ok(&["daemon", "start"]);
    waiter(&home);
    let dead = home.daemon_pid();
    let id = home.start("echo ran >>\"$HOME/ran\"");
    another_daemon(&home, dead);
    assert_eq!(home.wait(&id), 0);
    assert_eq!(until_left(&home, "ran"), ["ran"]);
}

#[test]
fn a_daemon_that_dies_in_a_delay_after_a_failure_is_started_again() {
    let home = Home::new();
    let agent = "[ $OUTLAST_ATTEMPT -gt 1 ] || exit 1\necho again >>\"$HOME/again\"\nsay done x";
    let path = file(&home, "later", agent, "");
    let slow = "retry: {initial_backoff_ms: 3000, max_backoff_ms: 3000}";
    fs::write(&path, fs::read_to_string(&path).unwrap().replace(RETRY, slow)).unwrap();
    let id = start(&home, &path, &[]);
    until_waiting(&home, &id, "backoff");
    crash(&home);
    assert_eq!(until_left(&home, "again"), ["again"]);
    assert_eq!(home.wait(&id), 0);
}

#[test]
fn a_daemon_that_dies_while_a_run_waits_for_its_place_is_started_again() {
    let home = Home::new();
    configure(&home, "[supervision]\nresumes_at_once = 1\nresume_gap_ms = 86400000\n");
    let agent =
        "[ $OUTLAST_ATTEMPT -gt 1 ] || exit 1\necho $OUTLAST_RUN_ID >>\"$HOME/ran\"\nsay done x";
    let path = file(&home, "later", agent, "");
    let slow = "retry: {initial_backoff_ms: 3000, max_backoff_ms: 3000}";
    fs::write(&path, fs::read_to_string(&path).unwrap().replace(RETRY, slow)).unwrap();
    let ids = [(); 2].map(|()| start(&home, &path, &[]));
    for id in &ids {
        until_waiting(&home, id, "backoff");
    }
    // The next daemon lets one of them go on, and the other waits for its turn.
    let dead = crash(&home);
    let first = until_left(&home, "ran").swap_remove(0);
    let second = ids.iter().find(|id| **id != first).expect("there are two");
    assert_eq!(home.wait(&first), 0);
    until_waiting(&home, second, "slot");
    another_daemon(&home, dead);
    crash(&home);
    until("the other goes on", || (left(&home, "ran").len() == 2).then_some(()));
    assert_eq!(home.wait(second), 0);
}

#[test]
fn slow_daemons_that_die_anywhere_in_a_fast_loop_are_always_started_again() {
    let home = Home::new();
    configure(&home, BEARS_ALL);
    let agent = r#"echo "$OUTLAST_TURN" >>"$HOME/turns"
[ "$OUTLAST_TURN" -lt 150 ] && say continue x || say done x"#;
    let path = file(&home, "fast", agent, "limits: {no_progress_turns: 0}");
    let id = start(&home, &path, &["--max-turns", "200"]);
    let turns = home.scratch().join("turns");
    let is_over = || left(&home, "turns").last().is_some_and(|turn| turn == "150");
    let mut dead = 0;
    for kills in 1..=8 {
        let so_far = lines(&turns);
        until("the loop goes on", || (lines(&turns) > so_far + kills || is_over()).then_some(()));
        if is_over() {
            break;
        }
        dead = another_daemon(&home, dead);
        kill(dead, "KILL");
    }
    assert!(dead > 0, "no daemon was killed");
    until("the loop comes to its end by itself", || is_over().then_some(()));
    assert_eq!(home.wait(&id), 0);
    assert_eq!(home.count(&id, "TurnCommitted"), 150);
}

#[test]
fn a_daemon_that_dies_while_all_runs_wait_for_a_person_stays_dead_until_one_comes() {
    let home = Home::new();
    let blocked = begin(&home, "say blocked x", "");
    becomes(&home, &blocked, "blocked", "agent_blocked");
    let paused = start(
        &home,
        &file(&home, "idle", "respond '{\"status\":\"continue\",\"wait\":{\"message\":true}}'", ""),
        &[],
    );
    until_waiting(&home, &paused, "message");
    home.ok(&["pause", &paused]);
    crash(&home);
    nothing_is_left(&home);
    // The person's command starts one, and the run is as it was.
    assert_eq!(str_of(&home.show(&blocked), "state"), "blocked");
    waiter(&home);
}

#[test]
fn daemon_stop_ends_the_waiter_and_nothing_comes_back() {
    let home = Home::new();
    let id = begin(
        &home,
        "respond '{\"status\":\"continue\",\"wait\":{\"until\":\"2099-01-01T00:00:00Z\"}}'",
        "",
    );
    until_waiting(&home, &id, "timer");
    let pid = waiter(&home);
    home.ok(&["daemon", "stop"]);
    until("its lock is free", || (!is_held(&home.state().join("waiter.lock"))).then_some(()));
    nothing_is_left(&home);
    assert!(!is_alive(pid));
    // A stop that finds no daemon holds off the waiter, too, which is about to start one.
    home.ok(&["daemon", "start"]);
    crash(&home);
    home.ok(&["daemon", "stop"]);
    nothing_is_left(&home);
    assert_eq!(str_of(&home.show(&id), "state"), "waiting");
}

#[test]
fn a_waiter_that_is_killed_is_started_again_and_without_one_the_next_command_does_it() {
    let home = Home::new();
    let id = begin(
        &home,
        "respond '{\"status\":\"continue\",\"wait\":{\"until\":\"2099-01-01T00:00:00Z\"}}'",
        "",
    );
    until_waiting(&home, &id, "timer");
    let first = waiter(&home);
    kill(first, "KILL");
    let second = until("there is another", || waiter_if_any(&home).filter(|pid| *pid != first));
    let daemon = home.daemon_pid();
    // Both at once: neither is left to start the other.
    kill(daemon, "STOP");
    kill(second, "KILL");
    until("the waiter is dead", || (!is_alive(second)).then_some(()));
    kill(daemon, "KILL");
    nothing_is_left(&home);
    assert_eq!(str_of(&home.show(&id), "state"), "waiting");
    waiter(&home);
}

#[test]
fn there_is_one_waiter_and_it_serves_one_daemon_after_the_other() {
    let home = Home::new();
    configure(&home, BEARS_ALL);
    let id = begin(
        &home,
        "respond '{\"status\":\"continue\",\"wait\":{\"until\":\"2099-01-01T00:00:00Z\"}}'",
        "",
    );
    until_waiting(&home, &id, "timer");
    let first = waiter(&home);
    let mut dead = crash(&home);
    for _ in 0..2 {
        dead = another_daemon(&home, dead);
        assert_eq!(waiter(&home), first);
        kill(dead, "KILL");
    }
    another_daemon(&home, dead);
    let waiting = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == b"__wait")
    };
    until("only one is left", || {
        let waiters: Vec<u32> = home.processes().into_iter().filter(waiting).collect();
        (waiters == [first]).then_some(())
    });
}

/// The sum of these fields of a file of `/proc`, in its own unit.
fn sum(path: &str, keys: &[&str]) -> u64 {
    let text = fs::read_to_string(path).expect("the process lives");
    let value = |line: &str| line.split_whitespace().nth(1)?.parse::<u64>().ok();
    text.lines().filter(|line| keys.iter().any(|key| line.starts_with(key))).filter_map(value).sum()
}

#[test]
fn a_waiter_takes_next_to_no_memory_and_is_woken_by_nothing_but_a_death() {
    let home = Home::new();
    let id = begin(
        &home,
        "respond '{\"status\":\"continue\",\"wait\":{\"until\":\"2099-01-01T00:00:00Z\"}}'",
        "",
    );
    until_waiting(&home, &id, "timer");
    let pid = waiter(&home);
    until("it sleeps", || {
        let stack = fs::read_to_string(format!("/proc/{pid}/wchan")).unwrap_or_default();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        (stack.contains("lock") || stat.contains(") S ")).then_some(())
    });
    let status = format!("/proc/{pid}/status");
    let sleeps = || sum(&status, &["voluntary_ctxt_switches:", "nonvoluntary_ctxt_switches:"]);
    // The first look is after its own start; from there on nothing that a daemon does concerns it.
    assert_eq!(home.wait(&home.start("true")), 0);
    let before = sleeps();
    for _ in 0..5 {
        assert_eq!(home.wait(&home.start("true")), 0);
    }
    assert_eq!(sleeps(), before, "the waiter was woken");
    let own = sum(&format!("/proc/{pid}/smaps_rollup"), &["Private_Clean:", "Private_Dirty:"]);
    assert!(own <= OWN_KIB, "{own} KiB of its own");
}

/// Adversary: a waiter that was frozen saw no daemon die.
#[test]
fn a_frozen_waiter_goes_on_when_its_daemon_sees_it() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let frozen = waiter(&home);
    kill(frozen, "STOP");
    // Its parent is told by the kernel.
    until("the waiter goes on", || (!is_frozen(frozen)).then_some(()));
    // Another daemon is not its parent, and looks when it comes.
    home.crash_daemon();
    kill(frozen, "STOP");
    home.ok(&["daemon", "start"]);
    if let Some(pid) = waiter_if_any(&home) {
        until("the waiter goes on", || (!is_frozen(pid)).then_some(()));
    }
}

fn is_frozen(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
}

#[test]
fn a_pipe_in_the_place_of_a_file_keeps_no_process_waiting() {
    for name in ["waiter.json", "daemon.needed", "daemon.env.json", "revive.lock", "daemon.lock"] {
        let home = Home::new();
        let id = home.ok(&["run", "-d", "--delay", "2s", "--", "true"]);
        waiter(&home);
        let dead = home.daemon_pid();
        put_pipe(&home, name);
        kill(dead, "KILL");
        another_daemon(&home, dead);
        assert_eq!(home.wait(&id), 0, "{name}");
    }
}

fn put_pipe(home: &Home, name: &str) {
    let beside = home.state().join("pipe");
    let made = home.command("mkfifo").arg(&beside).status().expect("there is a mkfifo");
    assert!(made.success());
    fs::rename(beside, home.state().join(name)).expect("it is ours");
}
