//! Trees of runs: children by key, what a parent gives them, and orders to a run with all below it.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};

use crate::harness::{Gate, Home, kill, lines, str_of, text, until};
use crate::loops::{Loop, assert_sound, rests};

const OUTLAST: &str = env!("CARGO_BIN_EXE_outlast");

fn of_kind(home: &Home, id: &str, kind: &str) -> Vec<Value> {
    home.events(id).into_iter().filter(|event| event["kind"] == kind).collect()
}

/// A parent that goes on, with these flags.
fn parent(home: &Home, flags: &[&str]) -> String {
    let id = home.ok(&[&["run", "-d"], flags, &["--", "sleep", "600"]].concat());
    home.pid(&id);
    id
}

/// A child of a run under a key; each execution leaves a line in `ran`.
fn child<'a>(parent: &'a str, key: &'a str, flags: &[&'a str], script: &'a str) -> Vec<&'a str> {
    [&["run", "-d", "--parent", parent, "--key", key], flags, &["--", "sh", "-c", script]].concat()
}

#[test]
fn a_key_gives_the_child_that_has_it() {
    let home = Home::new();
    let id = parent(&home, &[]);
    let ran = home.scratch().join("ran");
    let script = |code: u32| format!("echo . >>'{}'; exit {code}", ran.display());
    let (good, bad) = (script(0), script(3));
    let done = home.ok(&child(&id, "good", &[], &good));
    assert_eq!(home.wait(&done), 0);
    assert_eq!(home.ok(&child(&id, "good", &[], &good)), done, "it has completed");
    assert_eq!(lines(&ran), 1);
    let said = home.fails(2, &child(&id, "good", &[], &bad));
    assert!(said.contains(&format!("run {done} has key \"good\"")), "{said}");
    // Another parent's keys are other keys.
    let other = parent(&home, &[]);
    let theirs = home.ok(&child(&other, "good", &[], &bad));
    assert_ne!(theirs, done);
    assert_eq!(home.wait(&theirs), 1);

    let failed = home.ok(&child(&id, "bad", &["--tries", "2"], &bad));
    assert_eq!(home.wait(&failed), 1);
    let again = home.ok(&child(&id, "bad", &["--tries", "2"], &bad));
    assert_ne!(again, failed, "a failed one is made again");
    assert_eq!(home.wait(&again), 1);
    assert_eq!(home.ok(&child(&id, "bad", &["--tries", "2"], &bad)), again, "as often as declared");
    assert_eq!(lines(&ran), 4);

    let mut gate = Gate::new(&home, "gate");
    let held = gate.pass();
    let live = home.ok(&child(&id, "live", &[], &held));
    assert_eq!(home.ok(&child(&id, "live", &[], &held)), live, "it goes on");
    gate.open();
    assert_eq!(home.wait(&live), 0);
    let spawned = of_kind(&home, &id, "ChildSpawned");
    let keys: Vec<(&str, u64)> = spawned
        .iter()
        .map(|event| (str_of(event, "key"), event["try"].as_u64().unwrap_or(1)))
        .collect();
    assert_eq!(keys, [("good", 1), ("bad", 1), ("bad", 2), ("live", 1)]);
    until("all are heard of", || (home.count(&id, "ChildSettled") == 4).then_some(()));
    let settled = of_kind(&home, &id, "ChildSettled");
    let cursors: Vec<u64> = settled.iter().filter_map(|event| event["cursor"].as_u64()).collect();
    assert_eq!(cursors, [1, 2, 3, 4], "in the order in which they were delivered");
    assert_eq!(settled[1]["exit"], json!({"code": 3}));
    assert_sound(&home);
}

#[test]
fn a_child_that_was_removed_is_answered_by_its_parent_and_never_run_again() {
    let home = Home::new();
    let id = parent(&home, &["--tree-runs", "2"]);
    let ran = home.scratch().join("ran");
    let script = |code: u32| format!("echo . >>'{}'; exit {code}", ran.display());
    let (good, bad) = (script(0), script(3));
    let done = home.ok(&child(&id, "good", &[], &good));
    let failed = home.ok(&child(&id, "bad", &["--tries", "1"], &bad));
    assert_eq!((home.wait(&done), home.wait(&failed)), (0, 1));
    until("both are heard of", || (home.count(&id, "ChildSettled") == 2).then_some(()));
    let swept = home.json(&["gc", "--older-than", "0s", "--json"]);
    assert_eq!(swept["removed"], json!([]), "their parent goes on");
    let why = format!("its parent {id} goes on");
    assert!(swept["skipped"].as_array().is_some_and(|all| all.iter().any(|it| it["why"] == why)));
    home.ok(&["rm", &done, &failed]);

    let asked = |key, script, flags: &[&str]| {
        let words = ["run", "--parent", &id, "--key", key];
        home.output(&[&words, flags, &["--", "sh", "-c", script]].concat())
    };
    let again = asked("good", &good, &[]);
    assert_eq!(again.status.code(), Some(0), "{}", text(&again.stderr));
    let said = text(&again.stderr);
    assert!(said.contains(&format!("run {done} has ended as completed and was removed")), "{said}");
    assert_eq!(asked("bad", &bad, &["--tries", "1"]).status.code(), Some(1));
    assert_eq!(home.ok(&child(&id, "good", &[], &good)), done, "its id is its own for ever");
    assert_eq!(lines(&ran), 2, "nothing ran again");
    let third = home.fails(2, &child(&id, "third", &[], &good));
    assert!(third.contains("has no runs left to give to a child"), "{third}");
    let told = home
        .json(&["run", "-d", "--json", "--parent", &id, "--key", "good", "--", "sh", "-c", &good]);
    assert_eq!((&told["existed"], &told["child"]["removed"]), (&json!(true), &json!(true)));
    assert_eq!(told["child"]["exit"], json!({"code": 0}));

    home.ok(&["stop", &id]);
    home.wait(&id);
    let late = asked("good", &good, &[]);
    assert_eq!(late.status.code(), Some(0), "{}", text(&late.stderr));
    assert_eq!(lines(&ran), 2);
    assert_sound(&home);
}

#[test]
fn a_child_whose_end_was_not_observed_is_in_doubt_until_the_asker_decides() {
    let home = Home::new();
    let id = parent(&home, &["--max-tokens", "1000"]);
    let flags = ["--max-tokens", "300"];
    let lost = home.ok(&child(&id, "step", &flags, "exec sleep 600"));
    let (pid, shim) = (home.pid(&lost), home.shim_pid(&lost));
    kill(shim, "KILL");
    kill(pid, "KILL");
    assert_eq!(home.wait(&lost), 6, "its end is unknown");
    until("its parent knows", || (home.count(&id, "ChildSettled") == 1).then_some(()));
    let settled = &of_kind(&home, &id, "ChildSettled")[0];
    assert_eq!(
        (&settled["charged"]["tokens"], &settled["spend_unknown"]),
        (&json!(300), &json!(true)),
        "what it used is not known: {settled}"
    );
    let said = home.fails(2, &child(&id, "step", &flags, "exec sleep 600"));
    assert!(said.contains("was not observed") && said.contains("--lost again"), "{said}");
    assert_eq!(home.count(&id, "ChildSpawned"), 1, "nothing was made");
    let keep = [&flags[..], &["--lost", "keep"]].concat();
    assert_eq!(home.ok(&child(&id, "step", &keep, "exec sleep 600")), lost);
    let again = [&flags[..], &["--lost", "again"]].concat();
    let second = home.ok(&child(&id, "step", &again, "exec sleep 600"));
    assert_ne!(second, lost);
    let pots = &home.show(&id)["tree"]["tokens"];
    assert_eq!(
        *pots,
        json!({"total": 1000, "free": 400, "reserved": 300, "committed": 300, "over": 0})
    );
    home.ok(&["stop", "--tree", "--now", &id]);
    assert_sound(&home);
}

/// The planner starts five children, waits for all of them and prints what they printed, in order.
fn planner(home: &Home, slow: &str) -> String {
    let child = home.scratch().join("child.sh");
    let script = format!("echo $1 >>\"$HOME/ran\"; case $1 in 4|5) {slow};; esac; echo result $1");
    fs::write(&child, script).expect("the scratch directory is ours");
    let script = format!(
        "for i in 1 2 3 4 5; do\n\
           '{OUTLAST}' run --parent \"$OUTLAST_RUN_ID\" --key step$i --max-tokens 100 --lost again \
           -- sh '{}' $i >\"out.$i\" 2>>err &\n\
         done\n\
         wait\n\
         cat out.1 out.2 out.3 out.4 out.5 >result\n\
         say done planned",
        child.display()
    );
    Loop::of(home, &script).agent("max_turns: 20").with("limits: {max_tokens: 2000}").start()
}

fn planned(home: &Home) -> String {
    fs::read_to_string(crate::loops::workspace(home).join("result")).expect("the planner wrote it")
}

/// Which of the planner's children really ran, and how often.
fn executions(home: &Home) -> BTreeMap<String, usize> {
    let ran = fs::read_to_string(home.scratch().join("ran")).unwrap_or_default();
    let mut counts = BTreeMap::new();
    ran.lines().for_each(|line| *counts.entry(line.to_owned()).or_default() += 1);
    counts
}

#[test]
fn a_planner_that_was_killed_with_everything_runs_only_what_had_not_settled() {
    let control = Home::new();
    let uninterrupted = planner(&control, "true");
    rests(&control, &uninterrupted, "completed", "done");

    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let id = planner(&home, &gate.pass());
    until("three have settled and two go on", || {
        let started = executions(&home).len() == 5;
        (started && home.count(&id, "ChildSettled") == 3).then_some(())
    });
    // The daemon, every shim, the waiter, the planner and its children.
    home.processes().into_iter().for_each(|pid| kill(pid, "KILL"));
    home.ok(&["daemon", "start"]);
    until("the two run again", || (executions(&home).values().sum::<usize>() == 7).then_some(()));
    gate.open();
    gate.open();
    rests(&home, &id, "completed", "done");
    assert_eq!(planned(&home), planned(&control), "as if nothing had happened");
    let ran = executions(&home);
    assert_eq!(ran.values().copied().collect::<Vec<_>>(), [1, 1, 1, 2, 2], "{ran:?}");
    let settled = of_kind(&home, &id, "ChildSettled");
    let unknown: Vec<&Value> =
        settled.iter().filter(|event| event["spend_unknown"] == json!(true)).collect();
    assert_eq!((settled.len(), unknown.len()), (7, 2), "{settled:?}");
    for event in unknown {
        assert_eq!(event["charged"]["tokens"], json!(100), "charged at its ceiling: {event}");
    }
    let pot = &home.show(&id)["tree"]["tokens"];
    let sum = ["free", "reserved", "committed"].map(|part| pot[part].as_u64().expect("a number"));
    assert_eq!(sum.iter().sum::<u64>(), 2000, "{pot}");
    assert_eq!(pot["reserved"], json!(0));
    // The equation at every event.
    assert_sound(&home);
}

#[test]
fn no_child_of_a_deep_chain_has_more_than_its_parent() {
    let home = Home::new();
    let root = parent(&home, &["--max-tokens", "1000", "--tree-depth", "10", "--tree-runs", "40"]);
    let mut chain = vec![root];
    for level in 1..=10_u64 {
        let above = chain.last().expect("the root is there").clone();
        let runs = (38 - 2 * level).to_string();
        let flags = ["--max-tokens", "5000", "--tree-depth", "99", "--tree-runs", &runs];
        let id = home.ok(&child(&above, "down", &flags, "exec sleep 600"));
        let spawned = &of_kind(&home, &above, "ChildSpawned")[0];
        assert_eq!(spawned["granted"]["tokens"], json!(1000), "never more: {spawned}");
        assert_eq!(spawned["granted"]["depth"], json!(10 - level), "{spawned}");
        let said = home.fails(2, &child(&above, "beside", &["--max-tokens", "1"], "true"));
        assert!(said.contains("no tokens left to give"), "{said}");
        chain.push(id);
    }
    let last = chain.last().expect("the chain is there");
    let said = home.fails(2, &child(last, "down", &[], "true"));
    assert!(said.contains("may have no runs below it"), "{said}");
    let said = home.fails(2, &["raise", last, "--max-tokens", "+1"]);
    assert!(said.contains("has reserved for it"), "{said}");
    assert_sound(&home);
    home.ok(&["stop", "--tree", "--now", &chain[0]]);
    for id in &chain {
        assert_eq!(str_of(&home.show(id), "state"), "stopped");
    }
    // What was not used came back, from the last to the first.
    assert_eq!(home.show(&chain[0])["tree"]["tokens"]["free"], json!(1000));
    assert_sound(&home);
}

#[test]
fn caps_of_width_and_of_runs_hold() {
    let home = Home::new();
    let id = parent(&home, &["--tree-width", "2", "--tree-runs", "3"]);
    let held = |key: &str| home.ok(&child(&id, key, &[], "exec sleep 600"));
    let (one, _two) = (held("one"), held("two"));
    let said = home.fails(2, &child(&id, "three", &[], "true"));
    assert!(said.contains("2 children of run") && said.contains("no more at once"), "{said}");
    home.ok(&["stop", "--now", &one]);
    until("its parent knows", || (home.count(&id, "ChildSettled") == 1).then_some(()));
    let three = held("three");
    home.ok(&["stop", "--now", &three]);
    until("its parent knows", || (home.count(&id, "ChildSettled") == 2).then_some(()));
    let said = home.fails(2, &child(&id, "four", &[], "true"));
    assert!(said.contains("no runs left"), "{said}");
    home.ok(&["stop", "--tree", "--now", &id]);
}

#[test]
fn a_stop_of_a_tree_ends_all_of_it_also_across_a_restart() {
    let home = Home::new();
    let id = parent(&home, &[]);
    let mut all = vec![id.clone()];
    for key in ["a", "b", "c"] {
        let one = home.ok(&child(&id, key, &[], "exec sleep 600"));
        all.push(home.ok(&child(&one, key, &[], "exec sleep 600")));
        all.push(one);
    }
    let said = home.ok(&["stop", "--tree", &id]);
    assert!(said.contains("and 6 runs below it"), "{said}");
    for run in &all {
        assert_eq!(str_of(&home.show(run), "state"), "stopped");
    }
    let said = home.fails(2, &child(&id, "d", &[], "true"));
    assert!(said.contains("has ended: stopped"), "{said}");
    // One that has ended, and whose child goes on.
    let left = parent(&home, &[]);
    let last = home.ok(&child(&left, "a", &[], "exec sleep 600"));
    home.ok(&["stop", "--now", &left]);
    assert_eq!(str_of(&home.show(&last), "state"), "running");
    home.ok(&["stop", "--tree", "--now", &left]);
    assert_eq!(str_of(&home.show(&last), "state"), "stopped");
    assert_sound(&home);
}

#[test]
fn a_policy_says_what_becomes_of_children_when_their_parent_ends() {
    let home = Home::new();
    let mut gates = [Gate::new(&home, "stop"), Gate::new(&home, "wait")];
    let mut other = Gate::new(&home, "other");
    let start = |policy: &str, gate: &Gate| {
        let script = gate.pass();
        home.ok(&["run", "-d", "--children", policy, "--", "sh", "-c", &script])
    };
    let (stops, waits) = (start("stop", &gates[0]), start("wait", &gates[1]));
    let stopped = home.ok(&child(&stops, "a", &[], "exec sleep 600"));
    let awaited = home.ok(&child(&waits, "a", &[], &other.pass()));
    gates[0].open();
    assert_eq!(home.wait(&stops), 0);
    assert_eq!(str_of(&home.show(&stopped), "state"), "stopped");
    assert_eq!(home.count(&stops, "ChildSettled"), 1, "it ended after its child");
    gates[1].open();
    until("it waits for its child", || {
        let view = home.show(&waits);
        (view["state"] == "finishing" && view["phase"] == "children").then_some(())
    });
    home.crash_daemon();
    home.ok(&["daemon", "start"]);
    assert_eq!(str_of(&home.show(&waits), "state"), "finishing");
    other.open();
    assert_eq!(home.wait(&waits), 0);
    assert_eq!(home.wait(&awaited), 0);
    assert_sound(&home);
}

#[test]
fn a_tree_is_paused_resumed_and_waited_for() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let id = home.ok(&["run", "-d", "--", "sh", "-c", &gate.pass()]);
    let turns = Loop::of(&home, &format!("{}; say done ok", gate.pass()));
    let inner = turns.start_with(&["--parent", &id]);
    let leaf = turns.start_with(&["--parent", &inner]);
    // The command at the top has no turn to pause before; the loops below it have.
    home.ok(&["pause", "--tree", &id]);
    let paused = || [&id, &inner, &leaf].map(|run| home.show(run)["paused"] == json!(true));
    assert_eq!(paused(), [false, true, true]);
    home.ok(&["resume", "--tree", &id]);
    assert_eq!(paused(), [false, false, false]);
    let waiting = home.spawn(&["wait", "--tree", &id]);
    (0..3).for_each(|_| gate.open());
    assert_eq!(waiting.code(), 0);
    for run in [&id, &inner, &leaf] {
        assert_eq!(str_of(&home.show(run), "state"), "completed");
    }
    let page = text(&home.output(&["tree", &id]).stdout);
    assert_eq!(page.lines().count(), 3, "{page}");
}

#[test]
fn an_event_that_this_build_does_not_know_is_refused_with_the_build_that_wrote_it() {
    let home = Home::new();
    let id = home.start("exit 0");
    assert_eq!(home.wait(&id), 0);
    home.ok(&["daemon", "stop"]);
    let path = home.state().join("outlast.db");
    let mut bytes = fs::read(&path).expect("a journal is one file");
    let known = br#"{"kind":"TurnStarted""#;
    let at: Vec<usize> =
        (0..bytes.len() - known.len()).filter(|at| bytes[*at..].starts_with(known)).collect();
    assert!(!at.is_empty(), "the journal has no such event");
    for at in at {
        bytes[at + 9] = b'F';
    }
    fs::write(path, bytes).expect("it is ours");
    let said = home.fails(2, &["show", &id]);
    let build = env!("CARGO_PKG_VERSION");
    assert!(said.contains("FurnStarted"), "{said}");
    assert!(said.contains(&format!("(outlast {build} conducted the run last)")), "{said}");
}
