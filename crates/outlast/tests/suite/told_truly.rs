//! What an adversary found untrue in words, lists and refusals: each is a test named after what went wrong.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::budgets::uses;
use crate::harness::{Gate, Home, str_of, text, until};
use crate::health::{a_loop, configure};
use crate::hosted::{begin, git, post, repository};
use crate::loops::Loop;
use crate::metrics::findings;
use crate::report::paste;
use crate::stalls::{says, start};

/// One turn after the other, without an end.
const WORKER: &str = r#"echo "$OUTLAST_TURN" >>file; say continue "did $OUTLAST_TURN""#;

fn report(home: &Home) -> Value {
    let output = home.output(&["report", "--json"]);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The first command of the hint.
fn hint(said: &str) -> String {
    let from = said.find("hint: ").unwrap_or_else(|| panic!("no hint in {said}"));
    let lines = said[from..].lines().map(|line| line.trim().trim_start_matches("hint: "));
    let command = lines.into_iter().find(|line| line.starts_with("outlast "));
    command.unwrap_or_else(|| panic!("no command in {said}")).to_owned()
}

#[test]
fn the_name_of_an_older_run_was_offered_although_it_means_a_newer_one() {
    let home = Home::new();
    let old = Loop::of(&home, WORKER).agent("max_turns: 1").start_with(&["--name", "nightly"]);
    assert_eq!(home.wait(&old), 4);
    let said = text(&home.output(&["wait", &old]).stderr);
    assert_eq!(hint(&said), "outlast raise nightly --max-turns +10", "it has its name");
    let new = home.ok(&["run", "-d", "--name", "nightly", "--", "true"]);
    home.wait(&new);
    let raise = format!("outlast raise {old} --max-turns +10");
    let said = text(&home.output(&["wait", &old]).stderr);
    assert_eq!(hint(&said), raise);
    assert!(home.ok(&["show", &old]).contains(&raise), "{}", home.ok(&["show", &old]));
    assert_eq!(str_of(&home.show(&old), "called"), old);
    assert_eq!(str_of(&home.show(&new), "called"), "nightly");
    let item = &report(&home)["not_done"][0];
    assert_eq!((str_of(item, "id"), &item["commands"]), (old.as_str(), &json!([raise])));
    let said = home.fails(2, &["send", &old, "go on"]);
    assert!(said.contains(&format!("run {old} has ended")), "{said}");
    assert_eq!(hint(&said), raise, "by the daemon, too");
    paste(&home, &raise);
    assert_eq!(home.wait(&old), 4);
    assert_eq!(home.show(&old)["turns_committed"], 11);
}

#[test]
fn an_order_to_stay_stopped_was_told_as_the_end_of_a_daemon_that_was_killed() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    home.crash_daemon();
    home.ok(&["daemon", "stop"]);
    home.ok(&["daemon", "stop"]);
    home.ok(&["daemon", "start"]);
    let starts = report(&home)["night"]["starts"].clone();
    let last = starts.as_array().and_then(|all| all.last()).expect("it started").clone();
    assert_eq!(str_of(&last, "before"), "died", "{last}");
    assert!(str_of(&last, "last_sign_at") <= str_of(&last, "stay_stopped_at"), "{last}");
    let words = home.ok(&["report"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("died") && words.contains("ordered to stay stopped"), "{words}");
    assert!(!words.contains("stopped by an order"), "{words}");
    home.ok(&["daemon", "stop"]);
    home.ok(&["daemon", "stop"]);
    home.ok(&["daemon", "start"]);
    let starts = report(&home)["night"]["starts"].clone();
    let last = starts.as_array().and_then(|all| all.last()).expect("it started").clone();
    assert_eq!((str_of(&last, "before"), &last["stay_stopped_at"]), ("stopped", &Value::Null));
}

#[test]
fn what_a_lost_diary_had_was_called_none() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let diary = home.state().join("diary.json");
    for damage in [Some("[{\"kind\""), None] {
        home.ok(&["daemon", "stop"]);
        match damage {
            Some(damage) => fs::write(&diary, damage).expect("it is ours"),
            None => fs::remove_file(&diary).expect("it is ours"),
        }
        // The daemon after the next one still does not know.
        for _ in 0..2 {
            home.ok(&["daemon", "start"]);
            let report = report(&home);
            assert!(report["night"]["unknown_before"].is_string(), "{report}");
            assert!(report["night"]["problem"].is_string(), "{report}");
            let words = home.ok(&["report"]).split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains("no reboot seen since"), "{words}");
            assert!(words.contains("none missed since"), "{words}");
            assert!(words.contains("not known before"), "{words}");
            home.ok(&["daemon", "stop"]);
        }
        home.ok(&["daemon", "start"]);
    }
    let names = fs::read_dir(home.state()).expect("it is ours").flatten();
    let kept: Vec<String> = names
        .map(|it| it.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("diary.json."))
        .collect();
    assert_eq!(kept.len(), 1, "the unreadable one is set aside: {kept:?}");
}

#[test]
fn spend_that_was_not_reported_was_no_spend_where_there_is_no_ceiling() {
    let home = Home::new();
    let id = start(&home, &a_loop(&says("done"), "no_progress_turns: 5"));
    assert_eq!(home.wait(&id), 0);
    let plain = home.ok(&["run", "-d", "--", "true"]);
    home.wait(&plain);
    let rows = home.json(&["ps", "-a", "--json"]);
    let row = |id: &str| {
        let rows = rows.as_array().expect("a list");
        rows.iter().find(|row| row["id"] == id).expect("it is listed").clone()
    };
    assert_eq!((&row(&id)["known"], &row(&id)["unreported_attempts"]), (&json!(false), &json!(1)));
    assert_eq!(row(&plain)["unreported_attempts"], 0, "a command has nothing to report");
    let list = home.ok(&["ps", "-a"]);
    let line = |id: &str| list.lines().find(|line| line.contains(id)).expect("it is listed");
    assert!(line(&id).split_whitespace().any(|cell| cell == "?"), "{list}");
    assert!(!line(&plain).split_whitespace().any(|cell| cell == "?"), "{list}");
    assert!(home.ok(&["show", &id]).contains("not reported"), "{}", home.ok(&["show", &id]));
    let report = report(&home);
    assert_eq!(report["spent"]["unreported_runs"], 1, "{report}");
    assert!(home.ok(&["report"]).contains("not all reported (1 run)"));
}

#[test]
fn an_order_of_another_body_under_the_same_id_was_acknowledged() {
    let home = Home::new();
    let id = Loop::of(&home, WORKER).agent("max_turns: 1").start();
    assert_eq!(home.wait(&id), 4);
    let path = format!("/v1/runs/{id}/raise");
    let raise = |by: u64| json!({"id": "r", "max_turns": {"by": by}, "env": [], "env_set": []});
    assert_eq!(post(&home, &path, &raise(1)).0, 202);
    assert_eq!(home.wait(&id), 4);
    assert_eq!(post(&home, &path, &raise(1)).0, 202, "it is the same order");
    let (status, answer) = post(&home, &path, &raise(2));
    assert_eq!((status, str_of(&answer["error"], "code")), (409, "id_conflict"), "{answer}");
    assert!(str_of(&answer["error"], "message").contains("raised (event "), "{answer}");
    assert_eq!(home.count(&id, "LimitsRaised"), 1);

    let script = r#"echo x >>file; say blocked "which way, $OUTLAST_TURN?""#;
    let asks = Loop::of(&home, script).start();
    assert_eq!(home.wait(&asks), 3);
    let answer = |text: &str| {
        let body = json!({"id": "a", "answer": {"text": text}});
        post(&home, &format!("/v1/runs/{asks}/answer"), &body).0
    };
    assert_eq!((answer("left"), answer("left"), answer("right")), (202, 202, 409));
    assert_eq!(home.wait(&asks), 3);
    let send = |text: &str| {
        let body = json!({"id": "m", "text": text});
        post(&home, &format!("/v1/runs/{asks}/messages"), &body).0
    };
    assert_eq!((send("one"), send("one"), send("two")), (202, 202, 409));

    let add = |every_ms: u64| {
        let source = json!({"kind": "schedule", "when": {"every_ms": every_ms}});
        let run = json!({"command": ["true"], "dir": "/", "env": []});
        let body = json!({"id": "t", "name": "hourly", "source": source, "run": run});
        post(&home, "/v1/triggers", &body).0
    };
    assert_eq!((add(3_600_000), add(3_600_000), add(7_200_000)), (201, 201, 409));
}

#[test]
fn amounts_that_are_too_much_were_cut_down_without_a_word() {
    let home = Home::new();
    let id = Loop::of(&home, WORKER).agent("max_turns: 1").start();
    assert_eq!(home.wait(&id), 4);
    let path = format!("/v1/runs/{id}/raise");
    for more in [json!({"by": u64::MAX}), json!({"to": u64::MAX}), json!({"to": 1_u64 << 32})] {
        let order = json!({"max_turns": more, "env": [], "env_set": []});
        let (status, answer) = post(&home, &path, &order);
        assert_eq!((status, str_of(&answer["error"], "code")), (400, "bad_value"), "{answer}");
        assert!(str_of(&answer["error"], "message").contains("no limit is larger"), "{answer}");
    }
    let said = home.fails(2, &["run", "-d", "--delay", "99999d", "--", "true"]);
    assert!(said.contains("longer than ten years"), "{said}");
    let (status, answer) = post(
        &home,
        "/v1/runs",
        &json!({"command": ["true"], "dir": "/", "env": [], "start": {"delay_ms": u64::MAX}}),
    );
    assert_eq!(status, 400, "{answer}");
}

/// A run that reads this.
fn fed(home: &Home, input: &str) -> String {
    let file = home.scratch().join("input");
    fs::write(&file, input).expect("the scratch directory is ours");
    let mut run = home.outlast(&["run", "-d", "-i", "--", "cat"]);
    run.stdin(Stdio::from(fs::File::open(&file).expect("it is there")));
    let output = run.output().expect("it starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let id = text(&output.stdout).trim().to_owned();
    home.wait(&id);
    id
}

#[test]
fn a_standard_input_that_was_changed_was_read_again() {
    let home = Home::new();
    let id = fed(&home, "all of it\n");
    let again = home.ok(&["rerun", "-d", &id]);
    home.wait(&again);
    assert_eq!(home.ok(&["logs", &again]), "all of it");
    let kept = home.state().join("runs").join(&id).join("stdin");
    fs::write(&kept, "all").expect("an agent could");
    let said = home.fails(2, &["rerun", "-d", &id]);
    assert!(said.contains("was changed in its directory") && said.contains("10 bytes"), "{said}");
    fs::remove_file(&kept).expect("it is there");
    // The same bytes, and another file: a link is not followed.
    symlink(home.scratch().join("input"), &kept).expect("an agent could");
    let said = home.fails(2, &["rerun", "-d", &id]);
    assert!(said.contains("it is a link"), "{said}");
}

#[test]
fn a_run_that_a_shared_budget_ended_was_raised_and_ended_at_once() {
    let home = Home::new();
    let budget = |most: u64| {
        format!(
            "[budgets.labels.night]\nmax_tokens = {most}\non_exceed = \"end\"\nper = \"total\"\n"
        )
    };
    configure(&home, &budget(10));
    let file = home.scratch().join("WORKFLOW.md");
    fs::write(&file, a_loop(&uses("continue", 20, 0.1), "max_cost_usd: 5, no_progress_turns: 50"))
        .expect("the scratch directory is ours");
    let file = file.to_str().expect("UTF-8");
    let id = home.ok(&["run", "-d", "--name", "port", "--label", "night=1", "-f", file]);
    assert_eq!(home.wait(&id), 4);
    assert_eq!(home.show(&id)["reason_code"], "budget");
    let said = home.fails(2, &["raise", "port", "--max-cost", "+5"]);
    assert!(said.contains("the budget label night, which run port shares, is spent"), "{said}");
    assert_eq!(hint(&said), "outlast budgets");
    assert!(
        home.ok(&["show", "port"]).contains("outlast budgets"),
        "{}",
        home.ok(&["show", "port"])
    );
    assert_eq!(home.count(&id, "LimitsRaised"), 0);
    configure(&home, &budget(1_000_000));
    home.ok(&["raise", "port", "--max-cost", "+5"]);
    home.ok(&["stop", "port"]);
    assert!(home.show(&id)["turns_committed"].as_u64() >= Some(1));
}

#[test]
fn names_and_queues_that_contradict_or_say_nothing_were_taken() {
    let home = Home::new();
    let said =
        home.fails(2, &["run", "-d", "--queue", "gpu", "--label", "queue=cpu", "--", "true"]);
    assert!(said.contains("the queue is gpu") && said.contains("queue=cpu"), "{said}");
    let id = home.ok(&["run", "-d", "--queue", "gpu", "--label", "queue=gpu", "--", "true"]);
    home.wait(&id);
    for name in [" ", " a", "a "] {
        let said = home.fails(2, &["run", "-d", "--name", name, "--", "true"]);
        assert!(said.contains("is not a name for a run"), "{said}");
    }
    let script = "printf '{\"status\":\"blocked\",\"summary\":\"de\\342\\200\\213ploy?\"}' > \"$OUTLAST_RESPONSE_FILE\"";
    let asks = start(&home, &a_loop(script, "no_progress_turns: 5"));
    assert_eq!(home.wait(&asks), 3);
    let page = home.ok(&["show", &asks]);
    assert!(page.contains("de·ploy?") && !page.contains('\u{200b}'), "{page}");
}

#[test]
fn what_was_removed_was_told_by_what_was_typed() {
    let home = Home::new();
    home.ok(&["schedule", "add", "nightly", "--every", "24h", "--", "true"]);
    home.ok(&["schedule", "run", "nightly"]);
    let id = until("it has run", || {
        let rows = home.json(&["ps", "-a", "--json", "--trigger", "nightly"]);
        Some(str_of(rows.get(0)?, "id").to_owned())
    });
    home.wait(&id);
    let name = str_of(&home.show(&id), "name").to_owned();
    assert_ne!(name, "nightly");
    assert_eq!(home.ok(&["rm", "nightly"]), format!("removed {name} ({id})"));
}

#[test]
fn removing_what_goes_on_was_passed_over_or_said_to_match_nothing() {
    let home = Home::new();
    let gate = Gate::new(&home, "gate");
    let live = home.ok(&["run", "-d", "--name", "live", "--", "sh", "-c", &gate.pass()]);
    home.pid(&live);
    let said = home.fails(2, &["rm", "live"]);
    assert!(said.contains("hint: outlast stop live\n  outlast rm --force live"), "{said}");
    let waits = home.ok(&["run", "-d", "--after", "live", "--name", "next", "--", "true"]);
    assert!(home.ok(&["show", "next"]).contains("starts after run live"), "by its name");
    let said = home.fails(2, &["rm", "--state", "waiting"]);
    assert!(said.contains("1 matching run has not ended"), "{said}");
    assert_eq!(hint(&said), "outlast rm --force --state waiting");
    home.ok(&["rm", "--all", "--force"]);
    assert_eq!(home.json(&["ps", "-a", "--json"]), json!([]), "{live} {waits}");
}

#[test]
fn a_worktree_with_work_in_it_goes_only_by_an_order_that_says_so() {
    let home = Home::new();
    repository(&home);
    let id = begin(&home, "echo mine >> work; say done ok", "workspace: {strategy: worktree}");
    assert_eq!(home.wait(&id), 0);
    let said = home.fails(2, &["rm", &id]);
    assert!(said.contains("stays:"), "{said}");
    assert_eq!(hint(&said), format!("outlast rm --keep-workspace {id}"));
    let (_, discard) = said.split_once("or discard the work:\n").expect("both ways");
    assert!(std::path::Path::new(str_of(&home.show(&id), "workspace")).is_dir());
    paste(&home, discard.trim());
    home.ok(&["rm", &id]);
    assert!(git(&crate::hosted::work(&home), &["worktree", "list"]).lines().count() <= 1);
}

#[test]
fn a_raise_was_told_as_a_crash_and_a_command_as_resumed() {
    let home = Home::new();
    let id = home.ok(&["run", "-d", "--turn-timeout", "1s", "--", "sleep", "600"]);
    assert_eq!(home.wait(&id), 4);
    let said = text(&home.output(&["wait", &id]).stderr);
    assert!(said.contains("the command starts again, from its beginning"), "{said}");
    let said = home.ok(&["raise", &id, "--turn-timeout", "+1h"]);
    assert!(said.ends_with("its command starts again as a new attempt"), "{said}");
    home.pid(&id);
    let page = home.ok(&["show", &id]);
    assert!(!page.contains("after a crash"), "{page}");
    assert_eq!(home.show(&id)["restarts"]["crash"], 0);
    home.ok(&["stop", "--now", &id]);
}

#[test]
fn a_hint_offered_more_than_the_operator_allows() {
    let home = Home::new();
    configure(&home, "[ceilings]\nmax_turns = 5\n");
    let id = Loop::of(&home, WORKER).agent("max_turns: 1").start();
    assert_eq!(home.wait(&id), 4);
    let said = text(&home.output(&["wait", &id]).stderr);
    assert_eq!(hint(&said), format!("outlast raise {id} --max-turns 5"));
    let said = home.fails(2, &["raise", &id, "--max-turns", "+10"]);
    assert_eq!(hint(&said), format!("outlast raise {id} --max-turns 5"));
    paste(&home, &hint(&said));
    assert_eq!(home.wait(&id), 4);
    let said = text(&home.output(&["wait", &id]).stderr);
    assert_eq!(hint(&said), format!("outlast rerun {id}"), "there is no more room");
}

#[test]
fn an_editor_that_no_person_sees_was_waited_for() {
    let home = Home::new();
    let id = home.ok(&["run", "-d", "--", "true"]);
    home.wait(&id);
    let said = home.fails(2, &["rerun", "--edit", &id]);
    assert!(said.contains("no terminal to edit on") && said.contains("EDITOR"), "{said}");
    assert_eq!(home.json(&["ps", "-a", "--json"]).as_array().map(Vec::len), Some(1));
}

#[test]
fn a_webhook_that_nothing_listens_for_was_no_finding() {
    let home = Home::new();
    home.ok(&["trigger", "add", "hook", "--webhook", "--", "true"]);
    let found = findings(&home, "listener");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(str_of(&found[0], "message").contains("trigger hook is a webhook"), "{found:?}");
}
