//! What supervisors of background work have been seen to get wrong; docs/scenarios.md has them all, with the
//! tests elsewhere that protect from them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::harness::{Gate, Home, is_alive, kill, lines, str_of, text, until};
use crate::hosted::of_kind;

#[test]
fn what_has_ended_is_started_again_by_no_daemon() {
    let home = Home::new();
    let executed = home.scratch().join("executed");
    let ends = ["exit 0", "exit 3", "kill -9 $$"].map(|end| {
        let id = home.start(&format!("echo x >>'{}'; {end}", executed.display()));
        home.wait(&id);
        id
    });
    let journals = ends.each_ref().map(|id| home.events(id));
    for _ in 0..3 {
        home.crash_daemon();
        home.ok(&["daemon", "start"]);
    }
    assert_eq!(ends.each_ref().map(|id| home.events(id)), journals);
    assert_eq!(lines(&executed), 3);
}

#[test]
fn a_run_that_was_adopted_is_adopted_again_after_the_next_crash() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let id = home.start(&format!("{}; exit 7", gate.pass()));
    let pid = home.pid(&id);
    for times in 1..=3 {
        home.crash_daemon();
        home.ok(&["daemon", "start"]);
        until("it is adopted", || (home.count(&id, "AttemptAdopted") == times).then_some(()));
        assert_eq!(home.pid(&id), pid);
    }
    gate.open();
    assert_eq!(home.wait(&id), 1);
    assert_eq!(home.show(&id)["exit"]["code"], 7);
    assert_eq!((home.count(&id, "TurnStarted"), home.count(&id, "RunEnded")), (1, 1));
}

#[test]
fn a_lock_that_names_a_living_stranger_keeps_no_daemon_from_starting() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    home.crash_daemon();
    let lock = home.state().join("daemon.lock");
    let mut holder: Value = serde_json::from_str(&fs::read_to_string(&lock).expect("it was held"))
        .expect("it says who held it");
    // A pid that was used again, as after a power cut: this test's own.
    holder["pid"] = std::process::id().into();
    fs::write(&lock, holder.to_string()).expect("it is ours");
    home.ok(&["daemon", "start"]);
    assert_ne!(home.daemon_pid(), std::process::id());
}

#[test]
fn without_a_daemon_status_and_stop_say_so_and_start_none() {
    let home = Home::new();
    let status = home.output(&["daemon", "status"]);
    assert_eq!((status.status.code(), text(&status.stdout)), (Some(7), "not running\n".to_owned()));
    let status = home.output(&["daemon", "status", "--json"]);
    let status: Value = serde_json::from_slice(&status.stdout).expect("it is JSON");
    assert_eq!((&status["running"], &status["pid"]), (&false.into(), &Value::Null));
    assert_eq!(home.ok(&["daemon", "stop"]), "not running");
    assert_eq!(home.daemon_if_up(), None);
    home.ok(&["daemon", "start"]);
    assert!(home.ok(&["daemon", "status"]).contains(&home.daemon_pid().to_string()));
    home.ok(&["daemon", "stop"]);
    assert_eq!(home.daemon_if_up(), None);
}

#[test]
fn a_daemon_that_is_terminated_leaves_in_order_and_its_runs_go_on() {
    for signal in ["TERM", "INT"] {
        let home = Home::new();
        let id = home.start("sleep 600");
        let pid = home.pid(&id);
        let daemon = home.daemon_pid();
        kill(daemon, signal);
        until("it has gone", || (!is_alive(daemon)).then_some(()));
        assert!(!home.path().join("run/daemon.sock").exists(), "{signal} left the socket");
        assert!(home.state().join("daemon.stopped").exists(), "a shim would start another");
        assert!(is_alive(pid));
        home.ok(&["daemon", "start"]);
        until("it is adopted", || (home.count(&id, "AttemptAdopted") == 1).then_some(()));
    }
}

#[test]
fn a_daemon_keeps_nothing_open_of_runs_that_are_over() {
    let home = Home::new();
    let open = |pid: u32| fs::read_dir(format!("/proc/{pid}/fd")).expect("it is ours").count();
    assert_eq!(home.wait(&home.start("true")), 0);
    let daemon = home.daemon_pid();
    // Clients come and go meanwhile; what a run would leave open is there for good.
    let before = until("the last client is gone", || {
        let once = open(daemon);
        (once == open(daemon)).then_some(once)
    });
    let runs: Vec<String> = (0..20).map(|number| home.start(&format!("echo {number}"))).collect();
    for (number, id) in runs.iter().enumerate() {
        assert_eq!(home.wait(id), 0);
        assert_eq!(home.ok(&["logs", id]), number.to_string(), "what is closed can be read");
    }
    until("nothing more is open than before", || (open(daemon) <= before + 2).then_some(()));
}

#[test]
fn daemon_start_starts_another_when_the_one_that_took_its_call_dies() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let dying = home.daemon_pid();
    kill(dying, "STOP");
    let mut start = home.outlast(&["daemon", "start"]);
    start.env("OUTLAST_NO_AUTOSTART", "1").stdout(Stdio::piped()).stderr(Stdio::piped());
    let start = start.spawn().expect("it starts");
    let fds = PathBuf::from(format!("/proc/{}/fd", start.id()));
    until("it has called the daemon that does not answer", || has_socket(&fds).then_some(()));
    kill(dying, "KILL");
    let said = start.wait_with_output().expect("it is our child");
    assert!(said.status.success(), "{}", text(&said.stderr));
    assert!(text(&said.stdout).starts_with("started, pid "), "{}", text(&said.stdout));
    assert_ne!(home.daemon_pid(), dying);
}

fn has_socket(fds: &Path) -> bool {
    let Ok(entries) = fs::read_dir(fds) else { return false };
    let target = |entry: fs::DirEntry| fs::read_link(entry.path()).ok();
    entries
        .flatten()
        .filter_map(target)
        .any(|target| target.to_string_lossy().starts_with("socket:"))
}

#[test]
fn a_descendant_that_goes_on_writing_does_not_keep_a_run_running() {
    let home = Home::new();
    let script = "(while :; do echo more; sleep 0.05; done) & echo last; exit 3";
    let id = home.start(script);
    assert_eq!(home.wait(&id), 1);
    let run = home.show(&id);
    assert_eq!((str_of(&run, "state"), &run["exit"]["code"]), ("failed", &3.into()));
    assert!(run["survivors"].as_array().is_some_and(|left| !left.is_empty()), "{run}");
    home.ok(&["stop", &id]);
    assert_eq!(home.show(&id)["survivors"].as_array().map(Vec::len), Some(0));
}

#[test]
fn a_command_that_closes_its_output_early_runs_until_it_exits() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let id = home.start(&format!("echo all; exec >/dev/null 2>&1; {}; exit 4", gate.pass()));
    let pid = home.pid(&id);
    until("what it wrote is there", || (home.ok(&["logs", &id]) == "all").then_some(()));
    assert_eq!(str_of(&home.show(&id), "state"), "running");
    gate.open();
    assert_eq!(home.wait(&id), 1);
    assert_eq!(home.show(&id)["exit"]["code"], 4);
    until("it is reaped", || (!Path::new(&format!("/proc/{pid}")).exists()).then_some(()));
}

#[test]
fn a_command_that_reads_finds_an_end_and_not_our_terminal() {
    let home = Home::new();
    let id = home.start("cat; echo read all of it");
    assert_eq!(home.wait(&id), 0);
    assert_eq!(home.ok(&["logs", &id]), "read all of it");
}

#[test]
fn stopping_what_has_ended_changes_nothing() {
    let home = Home::new();
    let id = home.start("exit 3");
    assert_eq!(home.wait(&id), 1);
    let before = home.events(&id);
    home.ok(&["stop", &id]);
    home.ok(&["stop", "--now", &id]);
    assert_eq!(home.events(&id), before);
    let run = home.show(&id);
    assert_eq!((str_of(&run, "state"), &run["exit"]["code"]), ("failed", &3.into()));
}

#[test]
fn a_stop_that_meets_the_exit_makes_one_end() {
    let home = Home::new();
    for _ in 0..5 {
        let mut gate = Gate::new(&home, &format!("gate{}", home.processes().len()));
        let id = home.start(&format!("{}; exit 0", gate.pass()));
        home.pid(&id);
        let stopping = home.spawn(&["stop", "--now", &id]);
        gate.open();
        assert_eq!(stopping.code(), 0);
        home.wait(&id);
        let ends = of_kind(&home, &id, "AttemptEnded");
        let run = home.show(&id);
        assert_eq!((ends.len(), home.count(&id, "RunEnded")), (1, 1));
        let states = ["completed", "stopped"];
        assert!(states.contains(&str_of(&run, "state")), "{run}");
        fs::remove_file(gate.path()).expect("it is ours");
    }
}

#[test]
fn an_empty_name_is_no_run_and_not_all_of_them() {
    let home = Home::new();
    let id = home.start("sleep 600");
    for verb in ["show", "logs", "stop", "rm", "wait"] {
        let said = home.fails(2, &[verb, ""]);
        assert!(said.contains("there is no run \"\""), "{verb}: {said}");
    }
    assert_eq!(str_of(&home.show(&id), "state"), "running");
}

/// A table that names tests which are not there protects nothing.
#[test]
fn every_test_that_the_tables_of_scenarios_and_of_upgrades_name_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let tables = [("docs/scenarios.md", 60), ("docs/upgrade.md", 12)];
    let tables = tables.map(|(page, least)| {
        let table = fs::read_to_string(root.join(page)).expect("there is a table");
        (page, least, table)
    });
    let mut named: Vec<&str> = Vec::new();
    for (page, least, table) in &tables {
        let words = table.split('`').skip(1).step_by(2).filter_map(|word| word.rsplit_once("::"));
        let before = named.len();
        named.extend(words.map(|(_, name)| name));
        let count = named.len() - before;
        assert!(count >= *least, "{page} names only {count} tests");
    }
    let mut sources = String::new();
    gather(&root.join("crates"), &mut sources);
    let is_there =
        |name: &str| ["(", "<"].iter().any(|after| sources.contains(&format!("fn {name}{after}")));
    let is_missing = |name: &&&str| !is_there(name);
    let missing: Vec<&&str> = named.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "there is no such test: {missing:#?}");
}

/// The text of every source file below a directory.
fn gather(dir: &Path, sources: &mut String) {
    for entry in fs::read_dir(dir).expect("it is our source").flatten() {
        let path = entry.path();
        if path.is_dir() {
            gather(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push_str(&fs::read_to_string(&path).expect("source is text"));
        }
    }
}
