//! `tree:` of a loop file: caps and a policy that need no flag, whichever client or trigger makes the run.

use std::fs;

use crate::harness::{Gate, Home, str_of, until};
use crate::loops::{Loop, assert_sound};
use crate::triggered::{made, runs};

/// A loop whose turn goes on until it is stopped.
fn held<'h>(home: &'h Home, tree: &str) -> Loop<'h> {
    Loop::of(home, "exec sleep 600").with(&format!("tree: {tree}"))
}

fn child<'a>(parent: &'a str, flags: &[&'a str]) -> Vec<&'a str> {
    [&["run", "-d", "--parent", parent], flags, &["--", "sleep", "600"]].concat()
}

fn going(home: &Home, id: String) -> String {
    home.pid(&id);
    id
}

#[test]
fn the_caps_of_a_file_hold_and_a_flag_goes_before_them() {
    let home = Home::new();
    let file = held(&home, "{ width: 1, runs: 2, depth: 1 }");
    let id = going(&home, file.start());
    let one = home.ok(&child(&id, &[]));
    let said = home.fails(2, &child(&id, &[]));
    assert!(said.contains("1 children of run") || said.contains("1 child of run"), "{said}");
    let said = home.fails(2, &child(&one, &[]));
    assert!(said.contains("may have no runs below it"), "{said}");
    home.ok(&["stop", "--now", &one]);
    until("its parent knows", || (home.count(&id, "ChildSettled") == 1).then_some(()));
    let two = home.ok(&child(&id, &[]));
    home.ok(&["stop", "--now", &two]);
    until("its parent knows", || (home.count(&id, "ChildSettled") == 2).then_some(()));
    let said = home.fails(2, &child(&id, &[]));
    assert!(said.contains("no runs left"), "{said}");
    home.ok(&["stop", "--tree", "--now", &id]);

    let wider = going(&home, file.start_with(&["--tree-width", "2", "--tree-runs", "4"]));
    home.ok(&child(&wider, &[]));
    let below = home.ok(&child(&wider, &[]));
    let said = home.fails(2, &child(&below, &[]));
    assert!(said.contains("may have no runs below it"), "the depth is still the file's: {said}");
    home.ok(&["stop", "--tree", "--now", &wider]);
    assert_sound(&home);
}

#[test]
fn a_file_of_a_child_takes_no_more_than_its_parent_has() {
    let home = Home::new();
    let id = going(&home, held(&home, "{ runs: 4, depth: 2, turns: 30 }").start());
    let greedy = held(&home, "{ runs: 99, depth: 99, turns: 99, width: 1 }");
    let below = going(&home, greedy.start_with(&["--parent", &id]));
    let view = home.show(&below);
    // One of the four is the child itself, and one turn of the thirty is the parent's.
    assert_eq!(view["tree"]["runs"]["total"], 3, "{view}");
    assert_eq!(view["tree"]["turns"]["total"], 29, "{view}");
    let last = home.ok(&child(&below, &["--tree-runs", "1"]));
    let said = home.fails(2, &child(&last, &[]));
    assert!(said.contains("may have no runs below it"), "{said}");
    home.fails(2, &child(&below, &[]));
    home.ok(&["stop", "--tree", "--now", &id]);
    assert_sound(&home);
}

#[test]
fn the_policy_of_a_file_holds_also_for_the_runs_of_a_schedule() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let file = Loop::of(&home, &format!("{}\nsay done over", gate.pass()));
    let file = file.with("tree: { children: stop, width: 7 }");
    let id = going(&home, file.start());
    let below = home.ok(&child(&id, &[]));
    home.ok(&["schedule", "add", "tick", "--every", "1s", "-f", "WORKFLOW.md"]);
    made(&home, "tick", 1);
    home.ok(&["schedule", "rm", "tick"]);
    let listed = runs(&home, "tick");
    let of_schedule = going(&home, str_of(&listed[0], "id").to_owned());
    let created = home.events(&of_schedule).remove(0);
    assert_eq!(created["spec"]["tree"]["width"], 7, "{created}");
    let also_below = home.ok(&child(&of_schedule, &[]));
    gate.open();
    gate.open();
    for (run, child) in [(id, below), (of_schedule, also_below)] {
        assert_eq!(home.wait(&run), 0);
        assert_eq!(str_of(&home.show(&child), "state"), "stopped");
    }
    assert_sound(&home);
}

#[test]
fn a_repetition_of_a_child_has_no_more_room_than_the_child_had() {
    let home = Home::new();
    let parent = home.ok(&["run", "-d", "--tree-runs", "4", "--", "sleep", "1000"]);
    home.pid(&parent);
    let caps = ["--tree-runs", "1", "--tree-turns", "5", "--tree-depth", "1", "--tree-width", "2"];
    let child = ["run", "-d", "--parent", &parent, "--key", "c"];
    let child = home.ok(&[&child[..], &caps, &["--", "true"]].concat());
    home.wait(&child);
    let again = home.ok(&["rerun", "-d", &child]);
    home.wait(&again);
    let tree = |id: &str| home.events(id).remove(0)["spec"]["tree"].clone();
    for cap in ["runs", "turns", "depth", "width"] {
        assert_eq!(tree(&again)[cap], tree(&child)[cap], "{cap}: {}", tree(&again));
    }
    home.ok(&["stop", "--tree", "--now", &parent]);
}

#[test]
fn a_typo_under_tree_is_an_error_with_a_hint_and_the_rest_is_explained() {
    let home = Home::new();
    let write = |tree: &str| {
        let file = format!("---\nagent: {{ command: ./agent }}\n{tree}\n---\n");
        fs::write(home.scratch().join("WORKFLOW.md"), file).expect("the scratch directory is ours");
    };
    write("tree: { childern: stop }");
    let said = home.fails(2, &["check"]);
    assert!(said.starts_with("error: WORKFLOW.md:3: tree.childern: unknown key"), "{said}");
    assert!(said.contains("hint: did you mean tree.children?"), "{said}");
    let said = home.fails(2, &["run", "-d", "-f", "WORKFLOW.md"]);
    assert!(said.contains("did you mean tree.children?"), "{said}");
    write("tree_depth: 2");
    let said = home.fails(2, &["check"]);
    assert!(said.contains("hint: did you mean tree.depth?"), "{said}");
    write("tree: { children: wait, turns: 9 }");
    let said = home.ok(&["check", "--explain"]);
    let line = |key: &str| {
        let found = said.lines().find(|line| line.trim_start().starts_with(key));
        found.unwrap_or_else(|| panic!("no {key} in {said}")).to_owned()
    };
    assert!(line("tree.children").contains("wait"), "{said}");
    assert!(line("tree.turns").contains('9'), "{said}");
    assert!(line("tree.depth").contains("no limit"), "{said}");
}
