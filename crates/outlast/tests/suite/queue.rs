//! Who may go on, and who waits: queued runs cost nothing, keep their place, and lose none of their chances.

use std::path::Path;

use serde_json::Value;

use crate::harness::{Gate, Home, str_of, until};
use crate::hosted::{becomes, begin, configure, file, left, start, until_left, until_state};

/// An agent that says who it is and then is held up.
fn held(gate: &Gate) -> String {
    format!("echo \"$OUTLAST_RUN_ID\" >>\"$HOME/order\"; {}; say done x", gate.pass())
}

fn assert_untouched(run: &Value) {
    assert_eq!(str_of(run, "state"), "queued", "{run:#}");
    assert_eq!(str_of(run, "phase"), "queue");
    assert_eq!(
        (&run["turn"], &run["attempt"], &run["turns_committed"]),
        (&0.into(), &0.into(), &0.into())
    );
    assert_eq!(run["restarts"], serde_json::json!({"stall": 0, "crash": 0}));
    for (name, limit) in run["limits"].as_object().expect("limits") {
        assert_eq!(limit["used"], 0, "{name}");
    }
    assert!(run["started_at"].is_null(), "{run:#}");
}

#[test]
fn more_runs_than_there_is_room_for_wait_in_the_order_of_their_priority() {
    let home = Home::new();
    configure(&home, "[concurrency]\nmax_runs = 1\n");
    let mut gate = Gate::new(&home, "gate");
    let file = file(&home, "loop", &held(&gate), "");
    let first = start(&home, &file, &[]);
    until_left(&home, "order");
    let low = start(&home, &file, &["--priority", "-1"]);
    let middle = start(&home, &file, &[]);
    let high = start(&home, &file, &["--priority", "7"]);
    for id in [&low, &middle, &high] {
        assert_untouched(&home.show(id));
    }
    assert_eq!(home.show(&high)["priority"], 7);
    let listed = home.json(&["ps", "--state", "queued", "--json"]);
    assert_eq!(listed.as_array().map(Vec::len), Some(3));
    for running in [&first, &high, &middle, &low] {
        until("it is its turn", || (left(&home, "order").last() == Some(running)).then_some(()));
        gate.open();
        becomes(&home, running, "completed", "done");
    }
    assert_eq!(left(&home, "order").len(), 4);
}

#[test]
fn a_queued_run_outlasts_the_daemon_and_can_be_stopped() {
    let home = Home::new();
    configure(&home, "[concurrency]\nmax_runs = 1\n");
    let mut gate = Gate::new(&home, "gate");
    let file = file(&home, "loop", &held(&gate), "");
    let first = start(&home, &file, &[]);
    until_left(&home, "order");
    let (second, third) = (start(&home, &file, &[]), start(&home, &file, &[]));
    home.crash_daemon();
    home.ok(&["ps"]);
    for id in [&second, &third] {
        assert_untouched(&home.show(id));
    }
    home.ok(&["stop", &second]);
    let stopped = becomes(&home, &second, "stopped", "stopped");
    assert_eq!((&stopped["turn"], home.count(&second, "TurnStarted")), (&0.into(), 0));
    gate.open();
    becomes(&home, &first, "completed", "done");
    gate.open();
    becomes(&home, &third, "completed", "done");
    assert_eq!(left(&home, "order"), [first, third]);
}

#[test]
fn a_run_that_rests_lets_others_go_on_and_waits_for_its_place() {
    let home = Home::new();
    configure(&home, "[concurrency]\nmax_runs = 1\n");
    let mut gate = Gate::new(&home, "gate");
    let asks = "if [ \"$OUTLAST_TURN\" = 1 ]; then say blocked 'which?'; else say done x; fi";
    let asks = begin(&home, asks, "");
    becomes(&home, &asks, "blocked", "agent_blocked");
    let other = start(&home, &file(&home, "other", &held(&gate), ""), &[]);
    until_left(&home, "order");
    home.ok(&["answer", &asks, "this"]);
    let run = until("it waits for its place", || {
        Some(home.show(&asks))
            .filter(|run| run["state"] == "waiting" && run["reason_code"] == "slot")
    });
    assert_eq!((&run["turns_committed"], &run["inbox"]["unread"]), (&1.into(), &1.into()));
    gate.open();
    becomes(&home, &other, "completed", "done");
    becomes(&home, &asks, "completed", "done");
}

#[test]
fn a_label_has_a_limit_of_its_own() {
    let home = Home::new();
    configure(&home, "[concurrency.per_label]\ngpu = 1\n\"repo=web\" = 1\n");
    let mut gate = Gate::new(&home, "gate");
    let file = file(&home, "loop", &held(&gate), "");
    let run = |label: &str| start(&home, &file, &["--label", label]);
    let goes = [run("gpu=0"), run("repo=web"), run("repo=api")];
    until("they run", || (left(&home, "order").len() == 3).then_some(()));
    let waits = [run("gpu=1"), run("repo=web")];
    for id in &waits {
        assert_untouched(&home.show(id));
    }
    for _ in 0..5 {
        gate.open();
    }
    for id in goes.iter().chain(&waits) {
        becomes(&home, id, "completed", "done");
    }
}

#[test]
fn a_file_has_a_limit_of_its_own() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let limited = file(&home, "limited", &held(&gate), "");
    let text = std::fs::read_to_string(&limited).expect("it was written");
    let text = text.replace("kind: exec,", "kind: exec, max_concurrent_agents: 1,");
    crate::hosted::put(Path::new(&limited), &text);
    let first = start(&home, &limited, &[]);
    until_left(&home, "order");
    let second = start(&home, &limited, &[]);
    let other = start(&home, &file(&home, "other", &held(&gate), ""), &[]);
    until("another file goes on", || (left(&home, "order").len() == 2).then_some(()));
    assert_untouched(&home.show(&second));
    for _ in 0..3 {
        gate.open();
    }
    for id in [&first, &second, &other] {
        becomes(&home, id, "completed", "done");
    }
}

#[test]
fn who_needs_memory_that_there_is_not_waits_behind_the_first() {
    let home = Home::new();
    configure(&home, "[concurrency]\nmin_free_memory_mb = 1000000000\n");
    let mut gate = Gate::new(&home, "gate");
    let file = file(&home, "loop", &held(&gate), "");
    let first = start(&home, &file, &[]);
    until_left(&home, "order");
    let second = start(&home, &file, &[]);
    assert_untouched(&home.show(&second));
    gate.open();
    becomes(&home, &first, "completed", "done");
    until_state(&home, &second, "running");
    gate.open();
    becomes(&home, &second, "completed", "done");
}

#[test]
fn a_config_that_makes_room_lets_those_in_who_wait() {
    let home = Home::new();
    configure(&home, "[concurrency]\nmax_runs = 1\n");
    let mut gate = Gate::new(&home, "gate");
    let file = file(&home, "loop", &held(&gate), "");
    let first = start(&home, &file, &[]);
    until_left(&home, "order");
    let second = start(&home, &file, &[]);
    assert_untouched(&home.show(&second));
    configure(&home, "[concurrency]\nmax_runs = 3\n");
    home.ok(&["doctor"]);
    until("the second runs", || (left(&home, "order").len() == 2).then_some(()));
    let third = start(&home, &file, &[]);
    until("all of them run", || (left(&home, "order").len() == 3).then_some(()));
    for _ in 0..3 {
        gate.open();
    }
    for id in [&first, &second, &third] {
        becomes(&home, id, "completed", "done");
    }
}
