//! What a new user stumbled over: each is a test named after what went wrong.

use std::fs;

use serde_json::{Value, json};

use crate::budgets::uses;
use crate::harness::{Gate, Home, str_of, text, until};
use crate::health::{a_loop, configure};
use crate::loops::{Loop, assert_sound, ran, rests, until_waiting};
use crate::report::paste;
use crate::stalls::{says, start};
use crate::web::serve;

fn row(home: &Home, id: &str) -> Value {
    let rows = home.json(&["ps", "-a", "--json"]);
    let rows = rows.as_array().expect("a list");
    rows.iter().find(|row| row["id"] == *id).expect("the run is listed").clone()
}

/// The report, whether or not it needs a person.
fn report(home: &Home, flags: &[&str]) -> Value {
    let output = home.output(&[&["report", "--json"], flags].concat());
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn a_run_that_a_shared_budget_had_ended_had_no_way_on() {
    let home = Home::new();
    let budget = |most: u64| {
        format!(
            "[budgets.labels.night]\nmax_tokens = {most}\non_exceed = \"end\"\nper = \"total\"\n"
        )
    };
    configure(&home, &budget(10));
    let file = home.scratch().join("WORKFLOW.md");
    let script = format!(
        "if [ $OUTLAST_TURN = 1 ]; then\n{}\nelse\n{}\nfi",
        uses("continue", 20, 0.1),
        says("done")
    );
    fs::write(&file, a_loop(&script, "no_progress_turns: 50")).expect("the scratch is ours");
    let file = file.to_str().expect("UTF-8");
    let id = home.ok(&["run", "-d", "--name", "port", "--label", "night=1", "-f", file]);
    assert_eq!(home.wait(&id), 4);
    let told = text(&home.output(&["wait", "port"]).stderr);
    assert!(told.contains("outlast budgets") && told.contains("outlast resume port"), "{told}");
    let shown = home.ok(&["show", "port"]);
    assert!(shown.contains("outlast resume port"), "{shown}");
    let item = report(&home, &[])["not_done"][0].clone();
    assert_eq!(item["commands"], json!(["outlast budgets", "outlast resume port"]));
    // While nothing has changed it would end again at once.
    let said = home.fails(2, &["resume", "port"]);
    assert!(said.contains("the budget label night, which run port shares, is spent"), "{said}");
    assert!(said.contains("outlast budgets"), "{said}");
    configure(&home, &budget(1_000_000));
    let said = home.ok(&["resume", "port"]);
    assert_eq!(said, "resumed port: it goes on where it was");
    assert_eq!(home.wait(&id), 0);
    assert_eq!(home.show(&id)["turns_committed"], 2);
    assert_eq!(home.count(&id, "LimitsRaised"), 1);
    // Another run that ended is not let go on by this.
    let said = home.fails(2, &["resume", "port"]);
    assert!(said.contains("has ended: completed"), "{said}");
    assert_sound(&home);
}

#[test]
fn a_stopped_parent_waited_for_its_children() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "parent");
    let script = gate.pass();
    let start = ["run", "-d", "--name", "night", "--children", "wait", "--", "sh", "-c", &script];
    let id = home.ok(&start);
    let child = ["run", "-d", "--parent", &id, "--key", "a", "--", "sh", "-c", "exec sleep 600"];
    let child = home.ok(&child);
    home.pid(&child);
    gate.open();
    until("it waits for its child", || {
        let view = home.show(&id);
        (view["state"] == "finishing" && view["phase"] == "children").then_some(())
    });
    let stopped = home.output(&["stop", "night"]);
    assert!(stopped.status.success(), "{}", text(&stopped.stderr));
    let told = text(&stopped.stderr);
    assert!(told.contains("1 run below it goes on"), "{told}");
    assert!(told.contains("outlast stop --tree night"), "{told}");
    assert_eq!(str_of(&home.show(&id), "state"), "completed", "its own work was done");
    assert_eq!(str_of(&home.show(&child), "state"), "running");
    let said = home.ok(&["stop", "--tree", "night"]);
    assert_eq!(said, "stopped 1 run below night, which had already ended");
    assert_eq!(str_of(&home.show(&child), "state"), "stopped");
    let again = home.ok(&["stop", "--tree", "night"]);
    assert_eq!(
        again, "night and all below it have already ended",
        "a stop that stopped nothing said it had"
    );
    assert_sound(&home);
}

#[test]
fn a_config_that_is_no_toml_was_shown_as_if_defaults_held() {
    let home = Home::new();
    fs::write(home.path().join("config.toml"), "[budgets.day\nmax_cost_usd = 40\n")
        .expect("it is ours");
    for arguments in [&["config", "show"][..], &["config", "show", "--json"]] {
        let shown = home.output(arguments);
        assert_eq!(shown.status.code(), Some(2));
        let (stdout, stderr) = (text(&shown.stdout), text(&shown.stderr));
        assert!(!stdout.contains("max_cost_usd"), "{stdout}");
        assert!(stderr.contains("config.toml"), "{stderr}");
    }
}

#[test]
fn a_directory_in_the_place_of_a_loop_file_was_called_nothing() {
    let home = Home::new();
    let said = home.fails(2, &["check", "."]);
    assert!(!said.contains(": : "), "{said}");
}

#[test]
fn a_paused_run_that_waited_was_not_shown_as_paused() {
    let home = Home::new();
    let hours = "retry: {initial_backoff_ms: 3600000, max_backoff_ms: 3600000}";
    let id = Loop::of(&home, "exit 7").retry(hours).start_with(&["--name", "port"]);
    until_waiting(&home, &id, "backoff");
    assert!(home.ok(&["ps"]).contains("retry 2/"), "{}", home.ok(&["ps"]));
    home.ok(&["pause", "port"]);
    let listed = home.ok(&["ps"]);
    assert!(listed.contains("paused (retry 2/"), "{listed}");
    assert!(listed.contains(", exit 7)"), "{listed}");
    let shown = home.ok(&["show", "port"]);
    assert!(shown.contains("paused (retry 2/") && shown.contains("outlast resume port"), "{shown}");
    let (view, listed) = (home.show(&id), row(&home, &id));
    assert_eq!((&view["state"], &view["paused"]), (&json!("waiting"), &json!(true)));
    assert_eq!((&listed["paused"], &listed["wake_at"]), (&json!(true), &Value::Null));
    let waiting = report(&home, &[])["waiting"][0].clone();
    assert_eq!(waiting["commands"], json!(["outlast resume port"]), "{waiting}");
    home.ok(&["resume", "port"]);
    assert!(home.ok(&["ps"]).contains("retry 2/5 in"), "{}", home.ok(&["ps"]));
    home.ok(&["stop", "port"]);
}

#[test]
fn a_message_to_a_command_that_had_not_started_was_taken() {
    let home = Home::new();
    let id = home.ok(&["run", "-d", "--name", "later", "--delay", "1h", "--", "true"]);
    let said = home.fails(2, &["send", "later", "hi"]);
    assert!(said.contains("later is a command that runs once, and reads no messages"), "{said}");
    assert!(said.contains("hint: "), "{said}");
    assert_eq!(home.count(&id, "MessageReceived"), 0);
    home.ok(&["stop", "later"]);
    // A loop that has not started reads it in its first turn.
    let turns = Loop::of(&home, "say done ok").start_with(&["--delay", "1h"]);
    home.ok(&["send", &turns, "hi"]);
    home.ok(&["stop", &turns]);
}

#[test]
fn a_program_that_is_not_there_was_tried_again_and_again() {
    let home = Home::new();
    let id = Loop::running(&home, "command: ./gone.sh --fast").start();
    let run = rests(&home, &id, "failed", "never_started");
    assert_eq!(run["attempt"], 1, "{run:#}");
    assert!(str_of(&run, "reason").contains("there is no ./gone.sh in "), "{run:#}");
    // Of a command in a script only the shell knows: it is tried again, and the reason says what the shell said.
    let inner = Loop::of(&home, "no-such-command-here").start();
    let run = rests(&home, &inner, "failed", "exit_code");
    assert!(run["attempt"].as_u64() > Some(1), "{run:#}");
    assert!(str_of(&run, "reason").contains("exit code 127: a command was not found"), "{run:#}");
    assert_eq!(ran(&home).len() as u64, run["attempt"].as_u64().expect("a number"));
}

#[test]
fn a_program_that_vanished_in_the_night_may_come_back() {
    let home = Home::new();
    let script = home.scratch().join("workspace").join("agent.sh");
    let file = Loop::running(&home, "command: ./agent.sh").with("limits: {max_attempts: 10000}");
    fs::create_dir_all(script.parent().expect("a directory")).expect("ours");
    let path = script.display();
    let first = format!("#!/bin/sh\n{}\nrm '{path}'\n", says("continue"));
    crate::programs::script(&script, &first);
    let id = file.start();
    until("it was not found once", || (home.count(&id, "AttemptEnded") >= 2).then_some(()));
    crate::programs::script(&script, &format!("#!/bin/sh\n{}\n", says("done")));
    assert_eq!(home.wait(&id), 0);
}

#[test]
fn money_that_was_reported_was_called_incomplete_because_tokens_were_missing() {
    let home = Home::new();
    let script = r#"echo '{"status":"done","usage":{"cost_usd":0.42}}' > "$OUTLAST_RESPONSE_FILE""#;
    let id = start(&home, &a_loop(script, "max_attempts: 1"));
    assert_eq!(home.wait(&id), 0);
    let usage = home.show(&id)["usage"].clone();
    let known = |key: &str| usage[key].as_bool();
    assert_eq!((known("known"), known("money_known")), (Some(false), Some(true)), "{usage}");
    assert_eq!(known("tokens_known"), Some(false));
    let listed = row(&home, &id);
    assert_eq!((&listed["known"], &listed["money_known"]), (&json!(false), &json!(true)));
    let page = home.ok(&["ps", "-a"]);
    assert!(page.contains("$0.42") && !page.contains('≥'), "{page}");
    let shown = home.ok(&["show", &id]);
    assert!(shown.contains("$0.42, tokens not reported"), "{shown}");
    let report = text(&home.output(&["report"]).stdout);
    assert!(report.contains("$0.42 reported"), "{report}");
    assert!(report.contains("not all tokens reported (1 run)"), "{report}");
    home.crash_daemon();
    home.ok(&["daemon", "start"]);
    assert_eq!(row(&home, &id)["money_known"], json!(true), "the journal has it");
    assert_sound(&home);
}

#[test]
fn a_parent_whose_children_held_its_money_was_told_to_raise_a_budget() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "child");
    let child = gate.pass();
    let script = format!(
        "if [ $OUTLAST_TURN = 1 ]; then\n\
         '{}' run -d --parent $OUTLAST_RUN_ID --key a --name held --max-cost 0.9 -- sh -c \"{child}\"\n\
         {}\nelse\n{}\nfi",
        env!("CARGO_BIN_EXE_outlast"),
        uses("continue", 10, 0.1),
        uses("done", 10, 0.1),
    );
    let id = start(&home, &a_loop(&script, "max_cost_usd: 1, no_progress_turns: 50"));
    let run = until("its child holds what is left", || {
        let run = home.show(&id);
        (run["state"] == "waiting" && run["reason_code"] == "budget").then_some(run)
    });
    assert_eq!(run["waiting"]["held_by"], json!(["held"]), "{run:#}");
    assert_eq!(run["waiting"]["setting"], Value::Null);
    let shown = home.ok(&["show", &id]);
    assert!(shown.contains("held holds $0.90"), "{shown}");
    assert!(shown.contains("outlast stop held"), "{shown}");
    let doctor = text(&home.output(&["doctor"]).stdout);
    assert!(doctor.contains("outlast stop held") && !doctor.contains("raise it in"), "{doctor}");
    gate.open();
    assert_eq!(home.wait(&id), 0);
}

#[test]
fn a_report_since_an_hour_of_the_day_was_refused() {
    let home = Home::new();
    let id = home.start("echo out");
    assert_eq!(home.wait(&id), 0);
    for since in ["yesterday", "2020-02-29", "2020-02-29T22:00"] {
        let done = report(&home, &["--since", since])["done"].clone();
        assert_eq!(done[0]["id"], json!(id), "{since}");
        assert!(home.ok(&["ps", "--since", since]).contains(&id), "{since}");
        assert_eq!(home.ok(&["logs", &id, "--since", since]), "out", "{since}");
    }
    // Whether the run ended since then depends on the time of day.
    for since in ["22:00", "7:30", "today"] {
        assert!(report(&home, &["--since", since])["since"].is_string(), "{since}");
    }
    let said = home.fails(2, &["ps", "--since", "25:00"]);
    assert!(said.contains("22:00, yesterday"), "{said}");
}

#[test]
fn a_refusal_named_other_runs_by_their_ids() {
    let home = Home::new();
    let id = home.ok(&["run", "-d", "--name", "night", "--", "sleep", "600"]);
    home.pid(&id);
    let child =
        ["run", "-d", "--parent", &id, "--key", "a", "--name", "tests", "--", "sleep", "600"];
    let child = home.ok(&child);
    home.pid(&child);
    let (above, below) = (home.ok(&["show", "night"]), home.ok(&["show", "tests"]));
    assert!(above.contains(&format!("tests ({child})")), "{above}");
    assert!(below.contains(&format!("night ({id})")), "{below}");
    // The parent is stopped, and its child goes on.
    home.ok(&["stop", "--now", "night"]);
    let said = home.fails(2, &["rm", "night"]);
    assert!(said.contains("tests") && !said.contains(&child), "{said}");
    let said = home.fails(2, &["logs", "tests", "--turn", "7"]);
    assert!(said.contains("run tests has no such attempt"), "{said}");
    assert!(said.contains("outlast events tests") && !said.contains(&child), "{said}");
    home.ok(&["stop", "--tree", "--now", "night"]);
}

#[test]
fn a_daemon_that_could_not_be_reached_was_told_as_a_link_that_does_not_exist() {
    let home = Home::new();
    let id = home.ok(&["run", "-d", "--name", "port", "--", "true"]);
    assert_eq!(home.wait(&id), 0);
    let _page = serve(&home);
    let said = home.fails(2, &["web", "unshare", "port"]);
    assert!(said.contains("there is no read-only link port"), "{said}");
    let said = home.fails(2, &["web", "unshare", "no-such-run"]);
    assert!(said.contains("there is no read-only link no-such-run"), "{said}");
    home.ok(&["daemon", "stop"]);
    let mut asked = home.outlast(&["web", "unshare", "port"]);
    let asked = asked.env("OUTLAST_NO_AUTOSTART", "1").output().expect("it runs");
    assert_eq!(asked.status.code(), Some(7), "{}", text(&asked.stderr));
    assert!(text(&asked.stderr).contains("daemon unreachable"), "{}", text(&asked.stderr));
}

#[test]
fn the_hint_of_a_call_in_doubt_named_an_order_that_was_refused() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "end");
    let said = home.scratch().join("said");
    // The process that makes the call is killed, and the attempt goes on.
    let script = format!(
        "outlast() {{ '{}' \"$@\"; }}\n\
         outlast call --key pay --class unsafe -- sh -c 'kill -9 $PPID'\n\
         outlast call --key pay --class unsafe -- sh -c 'kill -9 $PPID' 2>'{}.part'\n\
         mv '{}.part' '{}'\n{}\nexit 1",
        env!("CARGO_BIN_EXE_outlast"),
        said.display(),
        said.display(),
        said.display(),
        gate.pass()
    );
    let id = Loop::of(&home, &script).with("limits: {max_attempts: 1}").start();
    let told = until("the call is refused", || fs::read_to_string(&said).ok());
    assert!(told.contains("once this attempt has ended, say so"), "{told}");
    let resolve = ["call", "--run", &id, "--key", "pay", "--resolve", "made"];
    let refused = home.fails(2, &resolve);
    assert!(refused.contains("that made the call pay has not ended"), "{refused}");
    gate.open();
    rests(&home, &id, "blocked", "unknown_call_outcome");
    paste(&home, &format!("outlast {}", resolve.join(" ")));
}

#[test]
fn a_schedule_that_was_to_be_changed_had_no_verb() {
    let home = Home::new();
    let said = home.fails(2, &["schedule", "edit", "nightly"]);
    assert!(said.contains("outlast schedule add NAME --replace"), "{said}");
    home.ok(&["schedule", "add", "nightly", "--every", "2h", "--", "true"]);
    paste(&home, "outlast schedule add nightly --replace --every 1h -- true");
    assert_eq!(home.json(&["schedule", "ls", "--json"]).as_array().map(Vec::len), Some(1));
    home.ok(&["schedule", "rm", "nightly"]);
}
