//! Runs that belong to another: made by its agent, waited for, and heard of when they end.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};

use crate::harness::{Gate, Home, is_alive, str_of, text, until};
use crate::loops::{Loop, assert_sound, ran, request, rests, until_waiting};

const OUTLAST: &str = env!("CARGO_BIN_EXE_outlast");

/// A loop whose first turn makes these children and waits for them, and whose second is the last.
fn parent(home: &Home, children: &[&str]) -> String {
    parent_that(home, children, "children")
}

fn parent_that(home: &Home, children: &[&str], wait: &str) -> String {
    let make = |(at, script): (usize, &&str)| {
        let path = home.scratch().join(format!("child{at}.sh"));
        fs::write(&path, script).expect("the scratch directory is ours");
        format!(
            "'{OUTLAST}' run -d --parent \"$OUTLAST_RUN_ID\" --key \"$OUTLAST_KEY_BASE/{at}\" --name child{at} \
             --watch result -- sh '{}' >>\"$HOME/children\" || exit 1\n",
            path.display()
        )
    };
    let made: String = children.iter().enumerate().map(make).collect();
    let script = format!(
        "[ $OUTLAST_TURN = 1 ] || {{ say done ok; exit; }}\n{made}\
         answer '{{\"status\":\"continue\",\"summary\":\"waiting\",\"wait\":{{\"{wait}\":true}}}}'"
    );
    Loop::of(home, &script).start()
}

/// The ids that the agent was told.
fn children(home: &Home) -> Vec<String> {
    let printed = fs::read_to_string(home.scratch().join("children")).unwrap_or_default();
    printed.lines().map(str::to_owned).collect()
}

fn of_kind(home: &Home, id: &str, kind: &str) -> Vec<Value> {
    home.events(id).into_iter().filter(|event| event["kind"] == kind).collect()
}

/// What the second turn was told, each child once.
fn assert_heard(home: &Home, id: &str, children: &[String]) -> Vec<Value> {
    let messages = request(home, id, 2, 1)["messages"].as_array().expect("a list").clone();
    let heard: BTreeSet<String> =
        messages.iter().map(|message| str_of(message, "from").to_owned()).collect();
    let expected: BTreeSet<String> = children.iter().map(|id| format!("child:{id}")).collect();
    assert_eq!((heard, messages.len()), (expected, children.len()), "{messages:?}");
    for kind in ["ChildSpawned", "ChildSettled", "MessageReceived"] {
        assert_eq!(home.count(id, kind), children.len(), "{kind}");
    }
    messages
}

#[test]
fn a_parent_is_woken_by_the_end_of_its_child_whatever_became_of_the_daemon() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let id = parent(&home, &[&format!("echo so far; {}; echo result 42; exit 3", gate.pass())]);
    until_waiting(&home, &id, "children");
    let child = children(&home)[0].clone();
    let spawned = of_kind(&home, &id, "ChildSpawned");
    assert_eq!(
        (str_of(&spawned[0], "child"), str_of(&spawned[0], "key")),
        (child.as_str(), format!("{id}/t1/0").as_str())
    );
    home.crash_daemon();
    home.ok(&["daemon", "start"]);
    until_waiting(&home, &id, "children");
    gate.open();
    rests(&home, &id, "completed", "done");
    let messages = assert_heard(&home, &id, std::slice::from_ref(&child));
    let said = str_of(&messages[0], "text");
    for part in ["(child0)", "ended as failed: exit code 3", "so far\nresult 42"] {
        assert!(said.contains(part), "no {part:?} in {said}");
    }
    let settled = of_kind(&home, &id, "ChildSettled");
    assert_eq!(
        (str_of(&settled[0], "state"), str_of(&settled[0], "reason_code")),
        ("failed", "exit_code")
    );
    let (parent, child) = (home.show(&id), home.show(&child));
    assert_eq!((&parent["children"], &parent["root"]), (&json!([child["id"]]), &json!(id)));
    assert_eq!((&child["parent"], &child["root"]), (&json!(id), &json!(id)));
    assert_eq!(ran(&home), ["1 1", "2 1"]);
}

#[test]
fn a_parent_waits_for_all_of_its_children() {
    let home = Home::new();
    let (mut one, mut two) = (Gate::new(&home, "one"), Gate::new(&home, "two"));
    let id = parent(&home, &[&one.pass(), &two.pass()]);
    until_waiting(&home, &id, "children");
    one.open();
    until("the first is heard of", || (home.count(&id, "ChildSettled") == 1).then_some(()));
    assert_eq!(str_of(&home.show(&id), "phase"), "children");
    two.open();
    rests(&home, &id, "completed", "done");
    assert_heard(&home, &id, &children(&home));
}

#[test]
fn a_parent_that_waits_for_a_word_is_woken_by_the_first_child() {
    let home = Home::new();
    let (mut one, mut two) = (Gate::new(&home, "one"), Gate::new(&home, "two"));
    let id = parent_that(&home, &[&one.pass(), &two.pass()], "message");
    until_waiting(&home, &id, "message");
    two.open();
    rests(&home, &id, "completed", "done");
    let messages = request(&home, &id, 2, 1)["messages"].clone();
    assert_eq!(messages[0]["from"], format!("child:{}", children(&home)[1]), "{messages}");
    one.open();
    assert_eq!(home.wait(&children(&home)[0]), 0);
}

#[test]
fn a_child_that_ends_while_no_daemon_lives_is_heard_of() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let id = parent(&home, &[&format!("{}; echo result; exit 0", gate.pass())]);
    until_waiting(&home, &id, "children");
    let child = children(&home)[0].clone();
    let pid = home.pid(&child);
    home.ok(&["daemon", "stop"]);
    gate.open();
    until("the child has ended", || (!is_alive(pid)).then_some(()));
    home.ok(&["daemon", "start"]);
    rests(&home, &id, "completed", "done");
    assert_heard(&home, &id, &[child]);
}

#[test]
fn a_child_that_was_stopped_or_cannot_start_has_ended_too() {
    let home = Home::new();
    let id = parent(&home, &["exec sleep 600"]);
    until_waiting(&home, &id, "children");
    // A stop of the one does not stop the other.
    let child = children(&home)[0].clone();
    home.pid(&child);
    home.ok(&["stop", &child, "--now"]);
    rests(&home, &id, "completed", "done");
    let messages = assert_heard(&home, &id, &[child]);
    assert!(str_of(&messages[0], "text").contains("ended as stopped"), "{messages:?}");
}

/// It would be a process of the turn, and go with it.
#[test]
fn an_agent_that_finds_no_daemon_leaves_it_to_its_shim() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let daemon = home.daemon_pid();
    let script = format!(
        "[ $OUTLAST_TURN = 1 ] || {{ say done ok; exit; }}\n\
         kill -9 {daemon}; while kill -0 {daemon}; do :; done\n\
         '{OUTLAST}' run -d --parent \"$OUTLAST_RUN_ID\" -- true >>\"$HOME/children\" || exit 1\n\
         answer '{{\"status\":\"continue\",\"wait\":{{\"children\":true}}}}'"
    );
    let id = Loop::of(&home, &script).start();
    rests(&home, &id, "completed", "done");
    assert_heard(&home, &id, &children(&home));
    let ended = of_kind(&home, &id, "AttemptEnded");
    assert!(ended.iter().all(|event| event["survivors"] == Value::Null), "{ended:?}");
    assert_eq!(ran(&home), ["1 1", "2 1"]);
}

/// A child that is over before its parent could have heard that it was made.
#[test]
fn a_quick_child_is_not_waited_for() {
    let home = Home::new();
    let id = parent(&home, &["echo result"]);
    rests(&home, &id, "completed", "done");
    until("the child is over", || (home.count(&id, "ChildSettled") == 1).then_some(()));
    let spawned = home.kinds(&id).iter().position(|kind| kind == "ChildSpawned");
    let settled = home.kinds(&id).iter().position(|kind| kind == "ChildSettled");
    assert!(spawned < settled);
    assert_eq!(ran(&home), ["1 1", "2 1"]);
}

/// A home in which the daemon dies at `point`.
fn told(point: Option<&str>) -> Home {
    let home = Home::new();
    let (token, log) = (home.scratch().join("token"), home.scratch().join("passed"));
    let home = home.env("OUTLAST_CRASH_LOG", &log).env("OUTLAST_CRASH_TOKEN", &token);
    match point {
        Some(point) => {
            fs::write(token, "").expect("the scratch directory is ours");
            home.env("OUTLAST_CRASH_AT", point)
        }
        None => home,
    }
}

/// A parent whose child is let end once it is waited for.
fn tell(home: &Home) -> String {
    let insist = |args: &[&str]| {
        until("the daemon answers", || {
            let output = home.output(args);
            output.status.success().then(|| text(&output.stdout))
        })
    };
    let mut gate = Gate::new(home, "gate");
    let id = parent(home, &[&format!("{}; echo result; {}", gate.pass(), gate.pass())]);
    let view = || serde_json::from_str::<Value>(&insist(&["show", &id, "--json"])).expect("JSON");
    until("it waits", || (view()["phase"] == "children").then_some(()));
    gate.open();
    let child = children(home)[0].clone();
    until("the watch has told", || {
        insist(&["events", &child, "--json"]).contains("OutputMatched").then_some(())
    });
    gate.open();
    until("the parent has ended", || view()["ended_at"].is_string().then_some(()));
    id
}

/// Every point that a parent and its child pass when no process dies.
pub(crate) fn points() -> BTreeSet<String> {
    let home = told(None);
    tell(&home);
    let passed = fs::read_to_string(home.scratch().join("passed")).unwrap_or_default();
    passed.lines().map(str::to_owned).collect()
}

/// Each with a daemon that dies there; a number says at which pass of it.
#[test]
fn a_parent_hears_of_its_child_once_wherever_the_daemon_died() {
    let points = [
        "daemon.child-announced",
        "daemon.child-ended",
        "daemon.parent-told",
        "daemon.lines-matched",
        "daemon.run-created@2",
        "daemon.create-files@2",
        "daemon.before-append@4",
        "daemon.after-append@4",
        "daemon.before-append@8",
        "daemon.after-append@8",
        "daemon.finished",
        "daemon.ending-seen@2",
    ];
    for point in points {
        let home = told(Some(point));
        let id = tell(&home);
        assert!(!home.scratch().join("token").exists(), "no process died at {point}");
        rests(&home, &id, "completed", "done");
        let made = children(&home);
        assert_eq!(made.len(), 1, "{point}: {made:?}");
        assert_heard(&home, &id, &made);
        assert_eq!(home.count(&made[0], "OutputMatched"), 1, "{point}");
        assert_eq!(ran(&home), ["1 1", "2 1"], "{point}");
        assert_sound(&home);
    }
}

#[test]
fn a_tree_shows_the_children_of_the_children() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let held = |flags: &[&str]| {
        let script = gate.pass();
        home.ok(&[&["run", "-d"], flags, &["--", "sh", "-c", &script]].concat())
    };
    let top = held(&["--name", "top"]);
    let left = held(&["--parent", "top", "--name", "left"]);
    let right = held(&["--parent", &top[..5]]);
    let leaf = held(&["--parent", &left]);
    let tree = home.json(&["tree", "top", "--json"]);
    let ids = |node: &Value| {
        let children = node["children"].as_array().expect("a list");
        children.iter().map(|child| str_of(child, "id").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        (str_of(&tree, "id"), ids(&tree)),
        (top.as_str(), vec![left.clone(), right.clone()])
    );
    assert_eq!(ids(&tree["children"][0]).concat(), leaf);
    assert_eq!(str_of(&tree["children"][0], "state"), "running");
    let page = home.ok(&["tree", &top]);
    let first: Vec<&str> = page.lines().filter_map(|line| line.split("  ").next()).collect();
    let expected = [top.clone(), format!("├─ {left}"), "│".to_owned(), format!("└─ {right}")];
    assert_eq!(first, expected, "{page}");
    assert!(page.contains(&format!("└─ {leaf}")), "{page}");
    assert_eq!(home.show(&leaf)["root"], json!(top));
    for _ in 0..4 {
        gate.open();
    }
    for id in [&top, &left, &right, &leaf] {
        assert_eq!(home.wait(id), 0);
    }
}

#[test]
fn who_cannot_be_a_parent_is_said() {
    let home = Home::new();
    let said = home.fails(2, &["run", "-d", "--parent", "norun", "--", "true"]);
    assert!(said.contains("there is no run norun"), "{said}");
    let ended = home.start("exit 0");
    assert_eq!(home.wait(&ended), 0);
    let said = home.fails(2, &["run", "-d", "--parent", &ended, "--", "true"]);
    assert!(said.contains("has ended: completed"), "{said}");
    let mut last = home.start("sleep 600");
    for _ in 0..16 {
        last = home.ok(&["run", "-d", "--parent", &last, "--", "sleep", "600"]);
    }
    let said = home.fails(2, &["run", "-d", "--parent", &last, "--", "true"]);
    assert!(said.contains("has 16 runs above it"), "{said}");
}

#[test]
fn a_parent_is_not_forgotten_while_a_child_goes_on() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let mut other = Gate::new(&home, "other");
    let id = home.start(&gate.pass());
    let child = home.ok(&["run", "-d", "--parent", &id, "--", "sh", "-c", &other.pass()]);
    gate.open();
    assert_eq!(home.wait(&id), 0);
    let said = home.fails(2, &["rm", &id]);
    assert!(said.contains(&format!("has children that go on: {child}")), "{said}");
    other.open();
    assert_eq!(home.wait(&child), 0);
    home.ok(&["rm", &id]);
    assert_eq!(home.show(&child)["root"], json!(id));
}

#[test]
fn a_child_that_is_asked_for_again_is_the_same_run_also_after_its_parent() {
    let home = Home::new();
    let parent = home.start("exec sleep 600");
    home.pid(&parent);
    let child = ["run", "-d", "--parent", &parent, "--key", "once", "--", "true"];
    let id = home.ok(&child);
    assert_eq!(home.wait(&id), 0);
    home.ok(&["stop", "--now", &parent]);
    assert_eq!(home.wait(&parent), 5);
    assert_eq!(home.ok(&child), id, "its parent has ended");
    home.ok(&["rm", &parent]);
    assert_eq!(home.ok(&child), id, "its parent is gone");
}
