//! A service's daemon takes the place of one in the background, and waits for one that another process ends.

use std::process::Stdio;

use super::stand_in::Stage;
use crate::harness::{Background, Gate, Home, is_alive, kill, str_of, until};

/// What a service manager would run, without one.
fn service(home: &Home) -> Background {
    let mut command = home.outlast(&["daemon", "run", "--wait"]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    Background(child.expect("the program starts"))
}

fn mode(home: &Home) -> String {
    let output = home.output(&["daemon", "status", "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    status["mode"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn an_install_hands_the_runs_of_a_daemon_in_the_background_over() {
    let stage = Stage::new();
    let mut gate = Gate::new(&stage.home, "gate");
    let id = stage.home.start(&format!("{}; echo after; exit 7", gate.pass()));
    let (pid, before) = (stage.home.pid(&id), stage.home.daemon_pid());
    let status = stage.home.json(&["daemon", "install", "--json"]);
    assert_eq!(status["installed"], true, "{status}");
    assert_eq!(status["pid"], stage.home.daemon_pid());
    until("the other has gone", || (!is_alive(before)).then_some(()));
    assert!(is_alive(pid));
    gate.open();
    assert_eq!(stage.home.wait(&id), 1);
    let run = stage.home.show(&id);
    assert_eq!((&run["attempt"], &run["exit"]["code"]), (&1.into(), &7.into()));
}

#[test]
fn a_services_daemon_is_restarted_by_its_manager_and_who_waits_goes_on() {
    let stage = Stage::new();
    stage.home.ok(&["daemon", "install"]);
    let mut gate = Gate::new(&stage.home, "gate");
    let id = stage.home.start(&format!("{}; exit 7", gate.pass()));
    let (pid, before) = (stage.home.pid(&id), stage.home.daemon_pid());
    let waiting = stage.home.spawn(&["wait", &id]);
    let attached = stage.home.spawn(&["attach", &id]);
    stage.calls();
    let status = stage.home.json(&["daemon", "restart", "--json"]);
    assert_eq!(status["mode"], "service", "{status}");
    assert_eq!(stage.orders(), ["--user --no-block restart outlast.service"]);
    assert_eq!(status["pid"], stage.home.daemon_pid());
    assert!(!is_alive(before) && is_alive(pid));
    gate.open();
    assert_eq!((waiting.code(), attached.code()), (1, 1));
}

#[test]
fn a_daemon_in_somebodys_terminal_is_waited_for() {
    let stage = Stage::new();
    let by_hand = stage.home.spawn(&["daemon", "run"]);
    until("it answers", || stage.home.daemon_if_up());
    let status = stage.home.json(&["daemon", "install", "--json"]);
    let hints = status["hints"].to_string();
    assert_eq!(status["installed"], true, "{status}");
    assert!(hints.contains(&format!("pid {}", by_hand.0.id())), "{hints}");
    assert!(hints.contains("the service takes over"), "{hints}");
    kill(by_hand.0.id(), "INT");
    until("the service has the place", || (mode(&stage.home) == "service").then_some(()));
    assert_eq!(status["pid"], stage.home.daemon_pid(), "it was not started again meanwhile");
}

#[test]
fn after_a_crash_the_service_takes_its_place_back_from_the_daemon_a_shim_started() {
    let home = Home::new();
    let first = service(&home);
    until("the service's daemon answers", || home.daemon_if_up());
    let id = home.start("exec sleep 1000");
    let pid = home.pid(&id);
    kill(first.0.id(), "KILL");
    until("a shim has started one", || (mode(&home) == "background").then_some(()));
    let second = service(&home);
    until("the service has its place back", || (mode(&home) == "service").then_some(()));
    assert_eq!(home.daemon_pid(), second.0.id());
    assert_eq!((home.pid(&id), str_of(&home.show(&id), "state")), (pid, "running"));
}

#[test]
fn of_two_services_neither_displaces_the_other() {
    let home = Home::new();
    let mut first = service(&home);
    until("the first answers", || home.daemon_if_up());
    let mut second = service(&home);
    let waiter = second.0.id().to_string();
    // It has asked before it is held up by the lock, and was refused.
    until("the second is held up", || {
        let locks = std::fs::read_to_string("/proc/locks").expect("there is a /proc");
        let is_waiter =
            |line: &str| line.contains("->") && line.split_whitespace().any(|word| word == waiter);
        locks.lines().any(is_waiter).then_some(())
    });
    assert!(matches!(first.0.try_wait(), Ok(None)) && matches!(second.0.try_wait(), Ok(None)));
    assert_eq!(home.daemon_pid(), first.0.id());
    kill(first.0.id(), "TERM");
    until("the second has its turn", || (home.daemon_if_up()? == second.0.id()).then_some(()));
}

#[test]
fn a_daemon_that_waited_took_the_place_of_one_that_was_stopped() {
    let home = Home::new();
    let first = service(&home);
    until("the first answers", || home.daemon_if_up());
    let second = service(&home);
    let waiter = second.0.id().to_string();
    until("the second is held up", || {
        let locks = std::fs::read_to_string("/proc/locks").expect("there is a /proc");
        let is_waiter =
            |line: &str| line.contains("->") && line.split_whitespace().any(|word| word == waiter);
        locks.lines().any(is_waiter).then_some(())
    });
    let said = home.ok(&["daemon", "stop"]);
    assert!(said.starts_with("stopped; commands that run keep running"), "{said}");
    // An exit code of 0 is what keeps a service manager from starting it again.
    assert_eq!((first.code(), second.code()), (0, 0));
    assert_eq!(home.daemon_if_up(), None);
    home.ok(&["daemon", "start"]);
    assert!(home.daemon_if_up().is_some(), "the order is over with the next start");
}
