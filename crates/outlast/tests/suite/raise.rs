//! `outlast raise`: more room for a run that goes on, and another start for one that was exhausted.

use std::collections::BTreeSet;
use std::fs;

use serde_json::json;

use crate::harness::{Gate, Home, str_of, text, until};
use crate::hosted::post;
use crate::loops::{Loop, assert_sound, ran};
use crate::programs;

/// Does one turn after the other, each with what the environment says.
const WORKER: &str = r#"echo "$OUTLAST_TURN $FOO" >>file; say continue "did $OUTLAST_TURN""#;

fn exhausted(home: &Home) -> String {
    let id = Loop::of(home, WORKER).agent("max_turns: 2").agent("env: [FOO]").start();
    assert_eq!(home.wait(&id), 4);
    id
}

#[test]
fn an_exhausted_run_was_final_and_now_goes_on_with_its_context() {
    let home = Home::new().env("FOO", "a");
    let id = exhausted(&home);
    let said = text(&home.output(&["wait", &id]).stderr);
    assert!(said.contains(&format!("hint: outlast raise {id} --max-turns +10")), "{said}");
    let said = home.ok(&["raise", &id, "--max-turns", "+1", "--env", "FOO=b"]);
    assert_eq!(
        said,
        format!("raised the limits of {id}: max turns 3; it was exhausted and runs again")
    );
    assert_eq!(home.wait(&id), 4);
    assert_eq!(ran(&home), ["1 1", "2 1", "3 1"]);
    let worked = fs::read_to_string(crate::loops::workspace(&home).join("file")).expect("its work");
    assert_eq!(worked, "1 a\n2 a\n3 b\n");
    let run = home.show(&id);
    assert_eq!(
        (&run["turns_committed"], &run["limits"]["max_turns"]["max"]),
        (&json!(3), &json!(3))
    );
    let raised = home.events(&id).into_iter().find(|event| event["kind"] == "LimitsRaised");
    assert_eq!(raised.expect("it is in the journal")["by"]["kind"], "user");
    assert_eq!(home.count(&id, "RunEnded"), 2);
    let env = home.state().join("runs").join(&id).join("env.json");
    assert!(!env.exists(), "no secret is left of the second end");
    let row = &home.json(&["ps", "-a", "--json"])[0];
    assert_eq!(row["max_turns"], 3, "lists have the new limit: {row}");
    assert_sound(&home);
}

#[test]
fn an_order_to_raise_that_comes_again_raises_nothing() {
    let home = Home::new();
    let id = exhausted(&home);
    let order = json!({"id": "r-1", "max_turns": {"by": 1}, "env": [], "env_set": []});
    let path = format!("/v1/runs/{id}/raise");
    assert_eq!(post(&home, &path, &order).0, 202);
    assert_eq!(home.wait(&id), 4);
    assert_eq!(post(&home, &path, &order).0, 202, "it is the same order");
    assert_eq!(home.count(&id, "LimitsRaised"), 1);
    assert_eq!(ran(&home).len(), 3);
}

#[test]
fn a_live_run_has_the_new_limit_and_no_second_start() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script = format!("{}; {WORKER}", gate.pass());
    let id = Loop::of(&home, &script).agent("max_turns: 1").start();
    home.pid(&id);
    home.ok(&["raise", &id, "--max-turns", "2"]);
    gate.open();
    gate.open();
    assert_eq!(home.wait(&id), 4);
    assert_eq!(ran(&home), ["1 1", "2 1"]);
    let said = home.fails(2, &["raise", &id, "--max-turns", "2"]);
    assert!(said.contains("is 2 already") && said.contains("hint: outlast raise"), "{said}");
}

#[test]
fn a_limit_is_raised_by_no_run_never_above_the_ceiling_and_only_where_there_is_one() {
    let home = Home::new();
    fs::write(home.path().join("config.toml"), "[ceilings]\nmax_turns = 3\n").expect("it is ours");
    let id = exhausted(&home);
    let said = home.fails(2, &["raise", &id, "--max-turns", "+9"]);
    assert!(said.contains("the operator's ceiling is 3"), "{said}");
    let said = home.fails(2, &["raise", &id, "--max-tokens", "+9"]);
    assert!(said.contains("has no limit --max-tokens"), "{said}");
    let inside =
        home.start(&format!("{} raise {id} --max-turns +1", env!("CARGO_BIN_EXE_outlast")));
    assert_eq!(home.wait(&inside), 1);
    let said = text(&home.output(&["logs", &inside]).stderr);
    assert!(said.contains("only a person may raise the limits"), "{said}");
    assert_eq!(home.count(&id, "LimitsRaised"), 0);
    let done = home.start("exit 0");
    assert_eq!(home.wait(&done), 0);
    let said = home.fails(2, &["raise", &done, "--run-timeout", "+1h"]);
    assert!(said.contains("has ended: completed") && said.contains("outlast rerun"), "{said}");
}

#[test]
fn a_raise_without_the_workspace_ended_the_run_for_good() {
    let home = Home::new().env("FOO", "a");
    let id = exhausted(&home);
    let workspace = crate::loops::workspace(&home);
    let aside = workspace.with_extension("aside");
    fs::rename(&workspace, &aside).expect("it is ours");
    let said = home.fails(2, &["raise", &id, "--max-turns", "+1"]);
    assert!(said.contains("is not there"), "{said}");
    fs::rename(&aside, &workspace).expect("it is ours");
    home.ok(&["raise", &id, "--max-turns", "+1"]);
    assert_eq!(home.wait(&id), 4);
    assert_eq!(home.count(&id, "TurnCommitted"), 3);
}

#[test]
fn another_age_of_gc_removed_a_workspace_that_is_kept_for_ever() {
    let home = Home::new().env("FOO", "a");
    let id = Loop::of(&home, WORKER)
        .agent("max_turns: 2")
        .agent("env: [FOO]")
        .with("workspace: {strategy: dir, retain: {exhausted: forever}}")
        .start();
    assert_eq!(home.wait(&id), 4);
    let workspace = home.ok(&["path", &id]);
    home.ok(&["gc", "--older-than", "1ms"]);
    assert!(std::path::Path::new(&workspace).is_dir(), "{workspace}");
    assert_eq!(str_of(&home.show(&id), "state"), "exhausted");
}

/// Every point that a raise passes when no process dies.
pub(crate) fn points() -> BTreeSet<String> {
    let home = Home::new().env("FOO", "a");
    let log = home.scratch().join("passed");
    let home = home.env("OUTLAST_CRASH_LOG", &log);
    let id = exhausted(&home);
    home.ok(&["raise", &id, "--max-turns", "3"]);
    assert_eq!(home.wait(&id), 4);
    fs::read_to_string(log).unwrap_or_default().lines().map(str::to_owned).collect()
}

#[test]
fn a_daemon_that_dies_while_an_exhausted_run_is_raised_loses_neither() {
    for hook in ["daemon.raise-env", "daemon.before-append", "daemon.after-append"] {
        let home = Home::new().env("FOO", "a");
        let id = exhausted(&home);
        home.ok(&["daemon", "stop"]);
        let token = home.scratch().join("token");
        fs::write(&token, "").expect("the scratch directory is ours");
        let home = home.env("OUTLAST_CRASH_TOKEN", &token).env("OUTLAST_CRASH_AT", hook);
        // As a person would: a daemon that does not answer is asked again.
        until("it is raised", || {
            home.output(&["raise", &id, "--max-turns", "3"]).status.success().then_some(())
        });
        assert!(!token.exists(), "it died at {hook}");
        assert_eq!(until("it ends", || Some(home.wait(&id)).filter(|code| *code != 7)), 4);
        assert_eq!(ran(&home), ["1 1", "2 1", "3 1"], "{hook}");
        assert_sound(&home);
    }
}

#[test]
fn a_name_that_another_run_has_taken_keeps_an_exhausted_run_ended() {
    let home = Home::new();
    let id = Loop::of(&home, WORKER).agent("max_turns: 1").start_with(&["--name", "nightly"]);
    assert_eq!(home.wait(&id), 4);
    let other = home.ok(&["run", "-d", "--name", "nightly", "--", "sleep", "600"]);
    let said = home.fails(2, &["raise", &id, "--max-turns", "+1"]);
    assert!(said.contains(&format!("run {other} has the name \"nightly\" now")), "{said}");
    home.ok(&["stop", &other]);
    home.ok(&["raise", &id, "--max-turns", "+1"]);
    assert_eq!(home.wait(&id), 4);
}

#[test]
fn the_end_of_a_raised_run_is_followed_to_its_last_event() {
    let home = Home::new();
    let id = exhausted(&home);
    home.ok(&["raise", &id, "--max-turns", "+1"]);
    assert_eq!(home.wait(&id), 4);
    let followed = home.ok(&["events", &id, "-f", "--json"]);
    assert_eq!(followed.lines().count(), home.events(&id).len());
    let logs = home.ok(&["logs", "-f", &id]);
    assert_eq!(logs, home.ok(&["logs", &id]));
}

#[test]
fn a_run_is_started_again_as_it_was_and_says_of_which_it_is_a_repetition() {
    let home = Home::new().env("FOO", "a");
    let id = Loop::of(&home, WORKER).agent("max_turns: 1").agent("env: [FOO]").start_with(&[
        "--label",
        "repo=web",
        "--max-turns",
        "2",
    ]);
    assert_eq!(home.wait(&id), 4);
    // The file has changed since; the run was made of what it was.
    fs::write(home.scratch().join("WORKFLOW.md"), "---\nagent: {kind: exec}\n---\n").expect("ours");
    let again = home.ok(&["rerun", "-d", &id, "--env", "FOO=b"]);
    assert_eq!(home.wait(&again), 4);
    let run = home.show(&again);
    assert_eq!(run["labels"], json!({"repo": "web", "rerun": id}));
    assert_eq!(run["limits"]["max_turns"]["max"], 2);
    let worked = fs::read_to_string(crate::loops::workspace(&home).join("file")).expect("its work");
    assert_eq!(worked, "1 a\n2 a\n1 b\n2 b\n");
    let said = home.fails(2, &["rerun", "-d", "--fresh-file", &id]);
    assert!(said.contains("WORKFLOW.md"), "{said}");
    let copy = home.state().join("runs").join(&id).join("workflow.md");
    fs::write(&copy, "---\nagent: {kind: exec, command: evil}\n---\n").expect("an agent could");
    let said = home.fails(2, &["rerun", "-d", &id]);
    assert!(said.contains("was changed in its directory"), "{said}");
}

#[test]
fn a_command_is_edited_before_it_is_started_again() {
    let home = Home::new();
    let editor = home.scratch().join("editor");
    programs::script(&editor, "#!/bin/sh\nsed -i 's/one two/three/' \"$1\"\n");
    let home = home.env("EDITOR", &editor);
    let id = home.ok(&["run", "-d", "--", "sh", "-c", "echo 'it is' \"$1\"", "sh", "one two"]);
    assert_eq!(home.wait(&id), 0);
    assert_eq!(home.ok(&["logs", &id]), "it is one two");
    let output = home.output(&["rerun", "--edit", &id]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "it is three\n");
    let rows = home.json(&["ps", "-a", "--json", "--label", &format!("rerun={id}")]);
    assert_eq!(str_of(&rows[0], "state"), "completed");
}

/// Each hint once named one limit, and its raise was refused because of the other.
#[test]
fn a_hint_names_every_limit_that_has_to_be_raised_and_works_when_pasted() {
    let home = Home::new();
    let limits = ["--name", "lp", "--max-cost", "1"];
    let id = Loop::of(&home, WORKER).agent("max_turns: 1").start_with(&limits);
    assert_eq!(home.wait(&id), 4);
    let line = "outlast raise lp --max-turns +10 --max-cost +5";
    for looks in [&["show", "lp"][..], &["report"]] {
        let page = text(&home.output(looks).stdout);
        assert!(page.contains(line), "{page}");
    }
    let said = text(&home.output(&["wait", "lp"]).stderr);
    assert!(said.contains(line), "{said}");
    let said = home.fails(2, &["raise", "lp", "--max-turns", "+10"]);
    let (_, hint) = said.split_once("hint: outlast ").expect("a line to paste");
    let words: Vec<&str> = hint.lines().next().expect("one line").split(' ').collect();
    assert_eq!(words, ["raise", "lp", "--max-cost", "+5", "--max-turns", "+10"]);
    home.ok(&words);
}
