//! Daemon and shim die by SIGKILL; what is said of the run stays true.

use std::fs;
use std::process::Command;

use crate::harness::{Home, is_alive, kill, lines, str_of, text, until};

/// Prints 20 lines, one for each line that the test lets through the FIFO, and exits 7.
fn twenty_lines(home: &Home) -> (String, fs::File) {
    let gate = home.scratch().join("gate");
    let made = Command::new("mkfifo").arg(&gate).status().expect("there is a mkfifo");
    assert!(made.success());
    let script = format!(
        "exec 3<{}; for i in $(seq 20); do read -r _ <&3; echo line $i; done; exit 7",
        gate.display()
    );
    let id = home.start(&script);
    // Opening the other end returns when the script has opened its own.
    let gate = fs::OpenOptions::new().write(true).open(gate).expect("the script reads");
    (id, gate)
}

fn let_through(gate: &mut fs::File, count: usize) {
    use std::io::Write;
    gate.write_all("go\n".repeat(count).as_bytes()).expect("the script reads on");
}

fn expected_lines() -> String {
    (1..=20).map(|number| format!("line {number}\n")).collect()
}

fn assert_seen_whole(home: &Home, id: &str) {
    assert_eq!(home.wait(id), 1);
    assert_eq!(format!("{}\n", home.ok(&["logs", id])), expected_lines());
    let run = home.show(id);
    assert_eq!(run["exit"], serde_json::json!({"code": 7}));
    assert_eq!((str_of(&run, "outcome"), run["attempt"].as_u64()), ("exited", Some(1)));
    assert_eq!(home.count(id, "RunEnded"), 1);
    assert_eq!(home.count(id, "AttemptEnded"), 1);
}

#[test]
fn a_command_outlives_its_daemon_and_its_exit_is_seen() {
    let home = Home::new();
    let (id, mut gate) = twenty_lines(&home);
    let pid = home.pid(&id);
    let_through(&mut gate, 10);
    home.crash_daemon();
    assert!(is_alive(pid), "the command died with the daemon");
    home.ok(&["daemon", "start"]);
    let_through(&mut gate, 10);
    assert_seen_whole(&home, &id);
}

#[test]
fn an_end_that_came_while_no_daemon_lived_is_stamped_with_when_it_was() {
    let home = Home::new();
    let (id, mut gate) = twenty_lines(&home);
    let pid = home.pid(&id);
    home.ok(&["daemon", "stop"]);
    let_through(&mut gate, 20);
    until("the command has ended", || (!is_alive(pid)).then_some(()));
    let records = home.attempt_dir(&id, 1, 1).join("events.jsonl");
    let exited = until("the end is on disk", || {
        let text = fs::read_to_string(&records).ok()?;
        let records: Vec<serde_json::Value> =
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        records.into_iter().find(|record| record["event"] == "exited")
    });
    assert_seen_whole(&home, &id);
    let ended: jiff::Timestamp = str_of(&home.show(&id), "ended_at").parse().expect("a time");
    assert_eq!(u64::try_from(ended.as_millisecond()).ok(), exited["at_ms"].as_u64());
}

#[test]
fn a_daemon_that_was_killed_is_started_again_by_a_shim() {
    let home = Home::new();
    let id = home.start("sleep 600");
    home.pid(&id);
    let killed = home.crash_daemon();
    let unasked = |home: &Home| {
        let output =
            home.outlast(&["daemon", "status", "--json"]).env("OUTLAST_NO_AUTOSTART", "1").output();
        let status: serde_json::Value =
            serde_json::from_slice(&output.expect("it starts").stdout).ok()?;
        (status["running"] == true).then(|| status["pid"].clone())
    };
    let revived = until("a daemon is back", || unasked(&home));
    assert_ne!(revived, killed);
    until("the run is adopted", || (home.count(&id, "AttemptAdopted") == 1).then_some(()));
    assert_eq!(str_of(&home.show(&id), "state"), "running");
    // Nothing of the run's environment is the daemon's.
    let environment = fs::read(format!("/proc/{revived}/environ")).expect("it is our process");
    assert!(!text(&environment).contains("OUTLAST_RUN_ID"));
}

#[test]
fn after_daemon_stop_none_comes_back_until_asked() {
    let home = Home::new();
    let id = home.start("sleep 600");
    let pid = home.pid(&id);
    let shim = home.shim_pid(&id);
    home.ok(&["daemon", "stop"]);
    // The shim looks for a daemon within its first delay; that it has looked shows in what it waits for.
    let before = context_switches(shim);
    until("the shim has looked twice", || (context_switches(shim) >= before + 2).then_some(()));
    assert_eq!(home.daemon_if_up(), None);
    assert!(is_alive(pid));
    assert_eq!(str_of(&home.show(&id), "state"), "running");
    until("the run is adopted", || (home.count(&id, "AttemptAdopted") == 1).then_some(()));
}

fn context_switches(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the shim lives");
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))
        .expect("the kernel counts");
    line.trim().parse().expect("a number")
}

#[test]
fn a_killed_shim_leaves_an_orphan_and_then_a_lost_end() {
    let home = Home::new();
    let id = home.start("sleep 600");
    let pid = home.pid(&id);
    kill(home.shim_pid(&id), "KILL");
    until("it is shown as an orphan", || {
        (str_of(&home.show(&id), "health") == "orphaned").then_some(())
    });
    assert!(home.ok(&["ps"]).contains("orphaned"));
    kill(pid, "TERM");
    assert_eq!(home.wait(&id), 6);
    let run = home.show(&id);
    assert_eq!(
        (str_of(&run, "state"), str_of(&run, "reason_code"), str_of(&run, "outcome")),
        ("failed", "lost", "lost")
    );
    assert_eq!(run["exit"], serde_json::Value::Null, "an exit code was invented");
}

#[test]
fn an_orphan_can_be_stopped_with_its_tree() {
    let home = Home::new();
    let pids = home.scratch().join("pids");
    let script =
        format!("exec >{0}; setsid sh -c 'echo $$; exec sleep 600' & sleep 600", pids.display());
    let id = home.start(&script);
    let pid = home.pid(&id);
    let escaped: u32 =
        until("the tree is whole", || fs::read_to_string(&pids).ok()?.trim().parse().ok());
    kill(home.shim_pid(&id), "KILL");
    until("it is shown as an orphan", || {
        (str_of(&home.show(&id), "health") == "orphaned").then_some(())
    });
    home.ok(&["stop", &id, "--now"]);
    assert!(!is_alive(pid) && !is_alive(escaped));
    let run = home.show(&id);
    assert_eq!((str_of(&run, "state"), str_of(&run, "outcome")), ("stopped", "stopped"));
    assert_eq!(run["exit"], serde_json::Value::Null);
}

#[test]
fn daemon_and_shim_killed_at_once_is_an_orphan_too() {
    let home = Home::new();
    let id = home.start("sleep 600");
    let pid = home.pid(&id);
    let shim = home.shim_pid(&id);
    let daemon = home.daemon_pid();
    kill(daemon, "STOP");
    kill(shim, "KILL");
    kill(daemon, "KILL");
    until("both are dead", || (!is_alive(daemon) && !is_alive(shim)).then_some(()));
    until("it is shown as an orphan", || {
        (str_of(&home.show(&id), "health") == "orphaned").then_some(())
    });
    kill(pid, "KILL");
    assert_eq!(home.wait(&id), 6);
}

#[test]
fn both_killed_and_the_command_gone_before_anybody_looked_is_lost() {
    let home = Home::new();
    let id = home.start("sleep 600");
    let pid = home.pid(&id);
    let shim = home.shim_pid(&id);
    let daemon = home.daemon_pid();
    kill(daemon, "STOP");
    kill(shim, "KILL");
    kill(pid, "KILL");
    kill(daemon, "KILL");
    until("all are dead", || (![daemon, shim, pid].into_iter().any(is_alive)).then_some(()));
    assert_eq!(home.wait(&id), 6);
}

/// A pid that belongs to another process by now: the record names it, its start time does not fit.
#[test]
fn a_recycled_pid_gets_no_signal() {
    let home = Home::new();
    let marker = home.scratch().join("signalled");
    let id = home.start("sleep 600");
    let pid = home.pid(&id);
    let shim = home.shim_pid(&id);
    home.ok(&["daemon", "stop"]);
    kill(shim, "KILL");
    kill(pid, "KILL");
    until("both are dead", || (!is_alive(shim) && !is_alive(pid)).then_some(()));
    let script = format!(
        "trap 'echo hit >> {}' TERM INT HUP; while :; do sleep 0.05; done",
        marker.display()
    );
    let mut bystander = Command::new("sh").args(["-c", &script]).spawn().expect("there is a sh");
    let records = home.attempt_dir(&id, 1, 1).join("events.jsonl");
    let forged = fs::read_to_string(&records)
        .expect("the shim wrote it")
        .replace(&format!("\"pid\":{pid}"), &format!("\"pid\":{}", bystander.id()));
    fs::write(&records, forged).expect("the record is ours");
    let stopped = home.output(&["stop", &id, "--now"]);
    let is_spared = is_alive(bystander.id()) && lines(&marker) == 0;
    bystander.kill().expect("it is our child");
    bystander.wait().expect("it is our child");
    assert!(is_spared, "a process that only has the same number was signalled: {stopped:?}");
    assert!(["lost", "stopped"].contains(&str_of(&home.show(&id), "outcome")));
}

#[test]
fn another_boot_interrupts_without_a_probe() {
    let home = Home::new().env("OUTLAST_FAKE_BOOT_ID", "first-boot");
    let id = home.start("sleep 600");
    let pid = home.pid(&id);
    home.ok(&["daemon", "stop"]);
    let start =
        home.outlast(&["daemon", "start"]).env("OUTLAST_FAKE_BOOT_ID", "second-boot").status();
    assert!(start.expect("it starts").success());
    assert_eq!(home.wait(&id), 1);
    let run = home.show(&id);
    assert_eq!(
        (str_of(&run, "outcome"), str_of(&run, "reason_code")),
        ("interrupted", "interrupted")
    );
    assert!(is_alive(pid), "a process of another boot was probed and ended");
}

#[test]
fn an_end_seen_before_a_reboot_is_still_the_end() {
    let home = Home::new().env("OUTLAST_FAKE_BOOT_ID", "first-boot");
    let (id, mut gate) = twenty_lines(&home);
    let shim = home.shim_pid(&id);
    home.ok(&["daemon", "stop"]);
    let_through(&mut gate, 20);
    until("the shim has gone", || (!is_alive(shim)).then_some(()));
    let start =
        home.outlast(&["daemon", "start"]).env("OUTLAST_FAKE_BOOT_ID", "second-boot").status();
    assert!(start.expect("it starts").success());
    assert_seen_whole(&home, &id);
}

#[test]
fn a_turn_timeout_outlives_its_shim() {
    let home = Home::new();
    let id = home.ok(&["run", "-d", "--turn-timeout", "4s", "--", "sleep", "600"]);
    let pid = home.pid(&id);
    kill(home.shim_pid(&id), "KILL");
    assert_eq!(home.wait(&id), 4);
    assert!(!is_alive(pid));
    let run = home.show(&id);
    assert_eq!(
        (str_of(&run, "outcome"), str_of(&run, "reason_code")),
        ("timed_out", "turn_timeout")
    );
    assert_eq!(run["exit"], serde_json::Value::Null);
}
