//! Stop: the whole tree, proven empty, and only then said.

use std::fs;

use crate::harness::{Gate, Home, is_alive, kill, str_of, until};

/// Starts a script that writes the pid of each of its processes to a file, and waits until all are there.
fn tree(home: &Home, script: &str, count: usize) -> (String, Vec<u32>) {
    let file = home.scratch().join("pids");
    let id = home.ok(&[
        "run",
        "-d",
        "--env",
        &format!("PIDS={}", file.display()),
        "--",
        "sh",
        "-c",
        script,
    ]);
    let pids = until("the tree is whole", || {
        let text = fs::read_to_string(&file).ok()?;
        let pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        (pids.len() == count).then_some(pids)
    });
    (id, pids)
}

/// A shell in a shell in a sleep, a grandchild in a session of its own, and one that ignores TERM.
const DEEP: &str = r#"
    echo $$ >> "$PIDS"
    sh -c 'echo $$ >> "$PIDS"; sleep 600 & echo $! >> "$PIDS"; wait' &
    setsid sh -c 'echo $$ >> "$PIDS"; exec sleep 600' &
    sh -c 'trap "" TERM; echo $$ >> "$PIDS"; while :; do sleep 600; done' &
    wait
"#;

#[test]
fn a_tree_dies_whole() {
    let home = Home::new();
    let (id, pids) = tree(&home, DEEP, 5);
    assert_eq!(home.ok(&["stop", &id, "--now"]), format!("stopped {id}"));
    let alive: Vec<&u32> = pids.iter().filter(|pid| is_alive(**pid)).collect();
    assert_eq!(alive, Vec::<&u32>::new(), "alive after stop");
    let run = home.show(&id);
    assert_eq!((str_of(&run, "state"), str_of(&run, "outcome")), ("stopped", "stopped"));
}

#[test]
fn a_graceful_stop_asks_first_and_then_kills_who_would_not_go() {
    let home = Home::new();
    let script =
        r#"echo $$ >> "$PIDS"; trap 'echo asked; exit 3' TERM; while :; do sleep 0.05; done"#;
    let (id, _) = tree(&home, script, 1);
    home.ok(&["stop", &id]);
    let run = home.show(&id);
    assert_eq!(
        run["exit"],
        serde_json::json!({"code": 3}),
        "the true exit of a stopped command is kept"
    );
    assert_eq!(str_of(&run, "outcome"), "stopped");
    assert_eq!(home.ok(&["logs", &id]), "asked");
    assert_eq!(home.wait(&id), 5);
}

#[test]
fn a_stop_is_durable_and_safe_to_repeat() {
    let home = Home::new();
    let (id, pids) = tree(&home, DEEP, 5);
    let mut stopping = home.spawn(&["stop", &id]);
    until("the stop is in the journal", || (home.count(&id, "StopRequested") == 1).then_some(()));
    home.crash_daemon();
    home.ok(&["stop", &id]);
    home.ok(&["stop", &id]);
    assert!(stopping.0.wait().expect("it is our child").success());
    assert!(!pids.into_iter().any(is_alive));
    assert_eq!(str_of(&home.show(&id), "state"), "stopped");
    assert_eq!(home.count(&id, "RunEnded"), 1);
    // Two orders were given while there was something to stop. The third found that the run had ended.
    let events = home.events(&id);
    let stops = events.iter().filter(|event| event["kind"] == "StopRequested");
    let orders: std::collections::BTreeSet<&str> = stops.map(|it| str_of(it, "order")).collect();
    assert_eq!((orders.len(), home.count(&id, "StopRequested")), (2, 2));
}

#[test]
fn a_stop_that_was_acknowledged_holds_when_the_daemon_dies_at_once() {
    let home = Home::new();
    let id = home.start("sleep 600");
    let pid = home.pid(&id);
    let token = home.scratch().join("token");
    fs::write(&token, "").expect("the scratch directory is ours");
    home.ok(&["daemon", "stop"]);
    let mut start = home.outlast(&["daemon", "start"]);
    start.env("OUTLAST_CRASH_AT", "daemon.after-append").env("OUTLAST_CRASH_TOKEN", &token);
    // It dies at its first append, which is either the adoption or the stop; in both cases the client that
    // was told of the stop finds it stopped.
    assert!(start.status().expect("it starts").success());
    home.ok(&["stop", &id, "--now"]);
    assert!(!is_alive(pid));
    assert_eq!(home.wait(&id), 5);
}

#[test]
fn a_grandchild_that_holds_stdout_does_not_keep_a_run_running() {
    let home = Home::new();
    let script = r#"sleep 600 & echo $! >> "$PIDS"; echo done"#;
    let (id, pids) = tree(&home, script, 1);
    assert_eq!(home.wait(&id), 0);
    let run = home.show(&id);
    assert_eq!(str_of(&run, "state"), "completed");
    assert_eq!(run["survivors"][0]["pid"].as_u64(), Some(u64::from(pids[0])));
    assert_eq!(home.ok(&["logs", &id]), "done");
    assert!(home.ok(&["ps"]).contains(&id), "a run with survivors is listed");
    home.crash_daemon();
    assert!(is_alive(pids[0]));
    home.ok(&["stop", &id]);
    assert!(!is_alive(pids[0]));
    let run = home.show(&id);
    assert_eq!(
        (str_of(&run, "state"), run["survivors"].as_array().map(Vec::len)),
        ("completed", Some(0))
    );
}

#[test]
fn a_zombie_does_not_count_as_alive() {
    let home = Home::new();
    // The inner shell becomes a sleep that never reaps its child, which ends only then.
    let mut gate = Gate::new(&home, "gate");
    let held = gate.path().display().to_string();
    let script = format!(
        r#"sh -c 'sh -c "read -r _ <{held}" & echo $! >> "$PIDS"; exec sleep 600' & echo $! >> "$PIDS"; wait"#
    );
    let (id, pids) = tree(&home, &script, 2);
    let is_sleep = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "sleep")
    };
    until("the shell is a sleep", || pids.iter().any(is_sleep).then_some(()));
    gate.open();
    until("there is a zombie", || pids.iter().any(|pid| is_zombie(*pid)).then_some(()));
    kill(home.shim_pid(&id), "KILL");
    until("it is an orphan", || (str_of(&home.show(&id), "health") == "orphaned").then_some(()));
    home.ok(&["stop", &id, "--now"]);
    assert_eq!(str_of(&home.show(&id), "state"), "stopped");
}

fn is_zombie(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
}

#[test]
fn the_turn_timeout_holds_while_no_daemon_lives() {
    let home = Home::new();
    let id = home.ok(&["run", "-d", "--turn-timeout", "1s", "--", "sleep", "600"]);
    let pid = home.pid(&id);
    home.ok(&["daemon", "stop"]);
    until("the shim has ended it", || (!is_alive(pid)).then_some(()));
    assert_eq!(home.wait(&id), 4);
    let run = home.show(&id);
    assert_eq!((str_of(&run, "state"), str_of(&run, "outcome")), ("exhausted", "timed_out"));
}

#[test]
fn silence_ends_a_command_that_was_given_a_window() {
    let home = Home::new();
    let id = home.ok(&["run", "-d", "--stall", "300ms", "--", "sh", "-c", "echo once; sleep 600"]);
    assert_eq!(home.wait(&id), 4);
    assert_eq!(str_of(&home.show(&id), "outcome"), "stalled");
}

#[test]
fn the_run_timeout_ends_the_run() {
    let home = Home::new();
    let id = home.ok(&["run", "-d", "--run-timeout", "500ms", "--", "sleep", "600"]);
    assert_eq!(home.wait(&id), 4);
    assert_eq!(str_of(&home.show(&id), "reason_code"), "run_timeout");
}

#[test]
fn a_failed_attempt_is_tried_again_with_its_survivors_gone() {
    let home = Home::new();
    let script = r#"echo "attempt $OUTLAST_ATTEMPT"; if [ "$OUTLAST_ATTEMPT" = 1 ]; then sleep 600 & echo $! >> "$PIDS"; exit 9; fi"#;
    let file = home.scratch().join("pids");
    let env = format!("PIDS={}", file.display());
    let id = home.ok(&[
        "run",
        "-d",
        "--retry",
        "2",
        "--backoff",
        "50ms",
        "--env",
        &env,
        "--",
        "sh",
        "-c",
        script,
    ]);
    assert_eq!(home.wait(&id), 0);
    let survivor: u32 = fs::read_to_string(file)
        .expect("the first attempt wrote it")
        .trim()
        .parse()
        .expect("a pid");
    assert!(!is_alive(survivor));
    assert_eq!(home.ok(&["logs", &id]), "attempt 1\nattempt 2");
    assert_eq!(home.show(&id)["attempt"], 2);
}
