//! A host that lacks descriptors or processes: runs wait, which is shown, and none of them fails for it.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::harness::{Gate, Home, skip, str_of, text, until};

/// A daemon that was started with this `ulimit`.
fn start_with(home: &Home, ulimit: &str) {
    let mut limited = home.command("sh");
    let script = format!("ulimit {ulimit}; exec \"$0\" daemon start");
    limited.args(["-c", &script, env!("CARGO_BIN_EXE_outlast")]);
    let started = limited.output().expect("there is a sh");
    assert!(started.status.success(), "{}", text(&started.stderr));
}

/// The soft and the hard limit of a process.
fn limits(pid: u32, what: &str) -> (String, String) {
    let limits = std::fs::read_to_string(format!("/proc/{pid}/limits")).expect("it is alive");
    let line = limits.lines().find_map(|line| line.strip_prefix(what)).expect("a known limit");
    let mut words = line.split_whitespace().map(str::to_owned);
    (words.next().expect("a soft limit"), words.next().expect("a hard limit"))
}

fn in_trouble(home: &Home, code: &str) -> Vec<String> {
    let rows = home.json(&["ps", "--json"]);
    let rows = rows.as_array().expect("a list").iter();
    let troubled = rows.filter(|row| row["trouble"]["code"] == code);
    troubled.map(|row| str_of(row, "id").to_owned()).collect()
}

#[test]
fn the_daemon_may_have_all_that_the_host_allows_and_a_command_what_it_always_had() {
    let home = Home::new();
    start_with(&home, "-S -n 256");
    let (soft, hard) = limits(home.daemon_pid(), "Max open files");
    assert_eq!(soft, hard, "the daemon's own limit was raised");
    let own = home.start("ulimit -S -n; sleep 1000");
    until("it has printed", || (home.ok(&["logs", &own]) == "256").then_some(()));
    assert_eq!(limits(home.shim_pid(&own), "Max open files").0, "256");
    // The daemon that a shim starts goes on from there.
    home.crash_daemon();
    let next = until("a shim has started a daemon", || home.daemon_if_up());
    assert_eq!(limits(next, "Max open files").0, hard);
    let id = home.start("ulimit -S -n");
    assert_eq!(home.wait(&id), 0);
    assert_eq!(home.ok(&["logs", &id]), "256");
}

#[test]
fn slow_runs_wait_for_descriptors_and_none_of_them_fails() {
    let home = Home::new();
    start_with(&home, "-n 64");
    let mut gate = Gate::new(&home, "gate");
    let ids: Vec<String> = (0..40).map(|_| home.start(&gate.pass())).collect();
    let waiting = until("runs wait for descriptors", || {
        Some(in_trouble(&home, "no_resources")).filter(|waiting| waiting.len() > 5)
    });
    assert!(home.ok(&["ps"]).contains("suspended: no resources"), "{}", home.ok(&["ps"]));
    let doctor = home.output(&["doctor"]);
    assert!(text(&doctor.stdout).contains("no_resources"), "{}", text(&doctor.stdout));
    let shown = home.show(&waiting[0]);
    assert_eq!((str_of(&shown, "state"), shown["attempt"].as_u64()), ("running", Some(1)));
    // A run that waits can be stopped, and one that runs too.
    home.ok(&["stop", &waiting[0]]);
    assert_eq!(home.wait(&waiting[0]), 5);
    // Another daemon finds the same shortage, and fails nothing for it either.
    home.crash_daemon();
    start_with(&home, "-n 64");
    for _ in 0..ids.len() {
        gate.open();
    }
    for id in ids.iter().filter(|id| **id != waiting[0]) {
        assert_eq!(home.wait(id), 0, "{}", home.show(id));
        assert_eq!(home.show(id)["attempt"], 1, "no attempt was spent");
        assert_eq!(home.count(id, "TurnCommitted"), 1);
    }
    assert_eq!(in_trouble(&home, "no_resources"), Vec::<String>::new());
}

/// The number of processes is limited for a user other than root, who is not held to it.
fn as_nobody(home: &Home, script: &str) -> Command {
    let mut command = home.command("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "sh", "-c", script]);
    command
}

#[test]
fn slow_runs_wait_for_processes_and_none_of_them_fails() {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root || Command::new("setpriv").arg("--version").output().is_err() {
        return skip("only root can start a daemon of another user");
    }
    let home = Home::within(Path::new("/tmp"), "home");
    let program = home.scratch().join("outlast");
    crate::programs::copy(&program);
    for path in [home.scratch(), home.path()] {
        std::os::unix::fs::chown(&path, Some(65534), Some(65534)).expect("root may");
    }
    let outlast = program.display();
    let run = |script: &str| {
        let output = as_nobody(&home, script).output().expect("there is a setpriv");
        assert!(output.status.success(), "{script}: {}", text(&output.stderr));
        text(&output.stdout).trim().to_owned()
    };
    // Shells do not agree on its name.
    let limit = "ulimit -u 24 2>/dev/null || ulimit -p 24";
    run(&format!("{{ {limit}; }}; exec {outlast} daemon start"));
    let ids: Vec<String> = (0..20).map(|_| run(&format!("{outlast} run -d -- sleep 2"))).collect();
    for id in &ids {
        run(&format!("{outlast} wait {id} --timeout 60s"));
        let shown = run(&format!("{outlast} show {id} --json"));
        let shown: Value = serde_json::from_str(&shown).expect("a run is JSON");
        assert_eq!(str_of(&shown, "state"), "completed", "{shown}");
    }
    let log = std::fs::read_to_string(home.state().join("daemon.log")).expect("a daemon ran");
    assert!(log.contains("Resource temporarily unavailable"), "the limit was never met");
    run(&format!("{outlast} daemon stop"));
}
