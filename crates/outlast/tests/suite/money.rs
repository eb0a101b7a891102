//! Money is never invented: a plain command costs nothing, what was not reported is shown as not reported wherever a
//! figure stands, and a run that waits for a budget or a slot says so at once.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::{Value, json};

use crate::budgets::{to_noon_ms, uses};
use crate::clocks::Clock;
use crate::harness::{Gate, Home, str_of, text, until};
use crate::health::{a_loop, configure};
use crate::metrics::get;
use crate::stalls::{says, start};

/// The config that every new user is told to copy, with another line or two.
fn example_config(home: &Home, more: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/config.toml");
    let text = fs::read_to_string(path).expect("the repository has the example");
    // What this machine has of memory is no part of the story.
    let text = text.replace("min_free_memory_mb = 1024", "min_free_memory_mb = 0");
    configure(home, &format!("{text}{more}"));
}

fn row(home: &Home, id: &str) -> Value {
    let rows = home.json(&["ps", "-a", "--json"]);
    let rows = rows.as_array().expect("a list");
    rows.iter().find(|row| row["id"] == *id).expect("the run is listed").clone()
}

/// The line of a table that has this word in it.
fn line_with<'a>(page: &'a str, word: &str) -> &'a str {
    page.lines().find(|line| line.contains(word)).unwrap_or_else(|| panic!("no {word} in\n{page}"))
}

#[test]
fn a_hundred_plain_commands_under_the_example_config_cost_nothing_and_start_at_once() {
    let home = Home::new();
    example_config(&home, "");
    for _ in 0..100 {
        let done = home.output(&["run", "--", "true"]);
        assert!(done.status.success() && !text(&done.stderr).contains("waiting"), "{done:?}");
    }
    let rows = home.json(&["ps", "-a", "--json"]);
    let rows = rows.as_array().expect("a list");
    assert_eq!(rows.len(), 100);
    for row in rows {
        let cost = row.get("cost_usd").and_then(Value::as_f64).unwrap_or(0.0);
        assert_eq!(
            (cost, &row["unreported_usd"], &row["known"]),
            (0.0, &json!(0.0), &json!(false))
        );
    }
    let day = &home.json(&["budgets", "--json"])[0];
    assert_eq!(
        (&day["used"], &day["known"]),
        (&json!({"tokens": 0, "cost_usd": 0.0}), &json!(true))
    );
    assert!(!home.ok(&["ps", "-a"]).contains('$'));
    let limited = home.ok(&["run", "-d", "--max-cost", "5", "--", "echo", "x"]);
    home.wait(&limited);
    assert_eq!(home.show(&limited)["usage"]["cost_usd"], json!(0.0), "a limit is no price");
}

#[test]
fn an_attempt_that_ran_and_ended_with_127_was_called_free() {
    let home = Home::new();
    let path = home.scratch().join("WORKFLOW.md");
    let script = "echo it worked and spent; exit 127";
    let limits = "max_cost_usd: 5, max_attempts: 1";
    fs::write(&path, a_loop(script, limits)).expect("the scratch directory is ours");
    let file = path.to_str().expect("the path is text");
    let id = home.ok(&["run", "-d", "--max-turns", "2", "-f", file]);
    assert_eq!(home.wait(&id), 1);
    let run = home.show(&id);
    assert_eq!(run["reason_code"], "exit_code");
    assert_eq!(run["usage"]["known"], false);
    assert_eq!(run["usage"]["unreported_attempts"], 1);
}

#[test]
fn a_loop_that_never_reports_ends_at_its_limit_and_every_screen_says_that_it_did_not_report() {
    let home = Home::new();
    example_config(&home, "");
    let told = home.scratch().join("told.jsonl");
    let path = home.scratch().join("WORKFLOW.md");
    fs::write(&path, a_loop(&says("continue"), "max_cost_usd: 5, no_progress_turns: 5"))
        .expect("the scratch directory is ours");
    let sink = format!("cmd:cat >> '{}'; echo >> '{}'", told.display(), told.display());
    let file = path.to_str().expect("the path is text");
    let asked = ["run", "-d", "--max-turns", "3", "--notify", &sink, "-f", file];
    let id = home.ok(&asked);
    assert_eq!(home.wait(&id), 4);
    assert!(line_with(&home.ok(&["ps", "-a"]), &id).contains("≤$5.00?"));
    let page = home.ok(&["show", &id]);
    assert!(line_with(&page, "used  ").contains("≤ $5.00 of $5.00, not reported"), "{page}");
    let limits = home.ok(&["show", &id, "--limits"]);
    assert!(line_with(&limits, "max cost").contains("≤ $5.00 of $5.00"), "{limits}");
    assert!(line_with(&limits, "spend").ends_with("≤ $5.00, not reported"), "{limits}");
    let budgets = home.ok(&["budgets"]);
    assert!(line_with(&budgets, "day").contains("≤$5.00?"), "{budgets}");
    assert!(budgets.contains("day: 3 attempts did not report: ≤ $5.00, not reported"), "{budgets}");
    let row = row(&home, &id);
    assert_eq!((&row["known"], row["unreported_usd"].as_f64()), (&json!(false), Some(5.000_001)));
    let usage = &home.show(&id)["usage"];
    assert_eq!(
        (&usage["known"], &usage["unreported_usd"]),
        (&json!(false), &row["unreported_usd"])
    );
    assert_eq!(usage["input_tokens"], 0, "the operator's ceiling of tokens is not its price");
    let day = &home.json(&["budgets", "--json"])[0];
    assert_eq!((&day["known"], &day["unreported_attempts"]), (&json!(false), &json!(3)));
    let notice = until("the sink was told", || {
        let told = fs::read_to_string(&told).ok()?;
        told.lines().find_map(|line| serde_json::from_str::<Value>(line).ok())
    });
    assert_eq!(notice["data"]["usage"]["known"], json!(false), "{notice}");
    let (_, metrics) = get(&home, "/metrics");
    let cost = line_with(&metrics, "outlast_cost_usd_total{");
    assert!(cost.contains("estimated=\"true\""), "{cost}");
    assert!(metrics.contains("outlast_unreported_attempts_total{agent=\"exec\"} 3"), "{metrics}");
}

#[test]
fn what_was_reported_and_what_was_not_are_told_apart() {
    let home = Home::new();
    let script = format!(
        "if [ $OUTLAST_TURN -eq 1 ]; then\n{}\nelse\n{}\nfi",
        uses("continue", 10, 0.5),
        says("done")
    );
    let id = start(&home, &a_loop(&script, "max_cost_usd: 20"));
    assert_eq!(home.wait(&id), 0);
    let page = home.ok(&["show", &id]);
    let spend = line_with(&page, "used  ");
    assert!(spend.contains("≤ $1.50") && spend.contains("$1.00 of it not reported"), "{spend}");
}

#[test]
fn an_agent_whose_command_is_missing_is_not_charged_for_it() {
    let home = Home::new();
    let id = start(&home, &a_loop("./no-such-agent.sh", "max_cost_usd: 5, max_attempts: 2"));
    assert_eq!(home.wait(&id), 1);
    let usage = &home.show(&id)["usage"];
    assert_eq!((&usage["cost_usd"], &usage["known"]), (&json!(0.0), &json!(true)));
}

/// A home whose budget of the day is spent, at noon.
fn spent_day() -> Clock {
    let clock = Clock::new();
    clock.set(to_noon_ms());
    configure(&clock.home, "[budgets]\ntz = \"UTC\"\n[budgets.day]\nmax_cost_usd = 0.5\n");
    let spender = start(&clock.home, &a_loop(&uses("done", 10, 0.6), "max_attempts: 1"));
    assert_eq!(clock.home.wait(&spender), 0);
    clock
}

#[test]
fn a_run_that_waits_for_the_day_says_so_at_once_attached_or_not() {
    let clock = spent_day();
    let home = &clock.home;
    let file = home.scratch().join("WORKFLOW.md");
    let file = file.to_str().expect("the path is text");
    let why =
        "outlast: waiting: today's budget is spent ($0.60 of $0.50); goes on at 00:00 UTC (in ";
    let hint = "hint: raise [budgets.day] in ";
    let detached = home.output(&["run", "-d", "--name", "late", "-f", file]);
    let told = text(&detached.stderr);
    assert!(line_with(&told, "waiting").starts_with(why) && told.contains(hint), "{told}");
    assert_eq!(text(&detached.stdout).lines().count(), 1, "standard output has the id alone");
    let mut attached = home.spawn(&["run", "-f", file]);
    let stderr = attached.0.stderr.take().expect("it is a pipe");
    let mut lines = BufReader::new(stderr).lines().map(|line| line.expect("a line"));
    assert!(lines.any(|line| line.starts_with(why)), "it says nothing of it");
    assert!(lines.next().is_some_and(|line| line.starts_with(hint)), "and not how to go on");
    let shown = home.show("late");
    assert_eq!(
        (str_of(&shown["waiting"], "cause"), str_of(&shown["waiting"], "tz")),
        ("budget", "UTC")
    );
    assert!(
        home.ok(&["show", "late"]).contains("today's budget is spent ($0.60 of $0.50); goes on at")
    );
    assert_eq!(home.json(&["budgets", "--json"])[0]["waiting"], json!(2));
    let doctor = text(&home.output(&["doctor"]).stdout);
    assert!(doctor.contains("2 runs wait: today's budget is spent"), "{doctor}");
    assert!(line_with(&doctor, "2 runs wait").contains("late"), "{doctor}");
    let plain = home.output(&["run", "--", "echo", "hi"]);
    assert_eq!((text(&plain.stdout).as_str(), plain.status.code()), ("hi\n", Some(0)));
    // A workspace is made before the budget is asked.
    let own = home.scratch().join("OWN.md");
    let loop_file = fs::read_to_string(file).expect("it was written above");
    let loop_file = loop_file.replacen("---\n", "---\nworkspace: { strategy: dir }\n", 1);
    fs::write(&own, loop_file).expect("the scratch directory is ours");
    let told = home.output(&["run", "-d", "-f", own.to_str().expect("the path is text")]);
    let told = text(&told.stderr);
    assert!(line_with(&told, "waiting").starts_with(why) && told.contains(hint), "{told}");
}

#[test]
fn a_run_that_was_let_go_on_said_nothing_of_the_day_that_is_spent() {
    let clock = spent_day();
    let home = &clock.home;
    let why = "outlast: waiting: today's budget is spent (";
    let told = |args: &[&str]| {
        let output = home.output(args);
        assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
        let told = text(&output.stderr);
        assert!(line_with(&told, "waiting").starts_with(why), "{args:?}: {told}");
    };
    configure(home, "[budgets]\ntz = \"UTC\"\n[budgets.day]\nmax_cost_usd = 1.0\n");
    home.ok(&["daemon", "restart"]);
    let asks = start(home, &a_loop(&uses("blocked", 10, 0.6), "no_progress_turns: 5"));
    assert_eq!(home.wait(&asks), 3);
    told(&["answer", &asks, "go on"]);
    home.ok(&["pause", &asks]);
    told(&["resume", &asks]);
    home.ok(&["stop", &asks]);
    configure(home, "[budgets]\ntz = \"UTC\"\n[budgets.day]\nmax_cost_usd = 1.5\n");
    home.ok(&["daemon", "restart"]);
    let path = home.scratch().join("WORKFLOW.md");
    fs::write(&path, a_loop(&uses("continue", 10, 0.6), "no_progress_turns: 5")).expect("ours");
    let file = path.to_str().expect("the path is text");
    let ends = home.ok(&["run", "-d", "--max-turns", "1", "-f", file]);
    assert_eq!(home.wait(&ends), 4);
    told(&["raise", &ends, "--max-turns", "+5"]);
}

#[test]
fn a_ceiling_of_the_operator_was_the_price_of_a_loop_with_one_turn() {
    let home = Home::new();
    example_config(&home, "");
    let path = home.scratch().join("WORKFLOW.md");
    fs::write(&path, a_loop(&says("done"), "no_progress_turns: 5")).expect("ours");
    let file = path.to_str().expect("the path is text");
    let id = home.ok(&["run", "-d", "--max-turns", "1", "-f", file]);
    assert_eq!(home.wait(&id), 0);
    let row = row(&home, &id);
    assert_eq!(row["unreported_usd"].as_f64(), Some(1.0), "a twentieth of $20, and not all of it");
    let report = home.output(&["report"]);
    let report = text(&report.stdout);
    assert!(line_with(&report, "SPENT").contains("≤ 250k tokens not reported"), "{report}");
    let report: Value =
        serde_json::from_slice(&home.output(&["report", "--json"]).stdout).expect("it is JSON");
    assert_eq!(report["spent"]["unreported_tokens"], report["spent"]["tokens"]);
}

#[test]
fn a_run_that_waits_for_a_slot_says_so_at_once() {
    let home = Home::new();
    configure(&home, "[concurrency]\nmax_runs = 1\n");
    let mut gate = Gate::new(&home, "gate");
    let first = home.start(&gate.pass());
    home.pid(&first);
    let second = home.output(&["run", "-d", "--", "true"]);
    let told = text(&second.stderr);
    let why = "outlast: waiting for a slot: 1 run is running, which is the limit; goes on when one of them ends";
    assert!(told.starts_with(why), "{told}");
    let id = text(&second.stdout).trim().to_owned();
    assert_eq!(str_of(&home.show(&id)["waiting"], "cause"), "slot");
    let doctor = text(&home.output(&["doctor"]).stdout);
    assert!(doctor.contains("1 run waits: 1 run is running"), "{doctor}");
    gate.open();
    assert_eq!((home.wait(&first), home.wait(&id)), (0, 0));
    assert_eq!(home.show(&id)["waiting"], Value::Null);
}

#[test]
fn a_day_of_a_budget_ends_at_the_midnight_of_its_zone() {
    let clock = Clock::new();
    let home = &clock.home;
    clock.set(to_noon_ms());
    configure(home, "[budgets]\ntz = \"Asia/Kathmandu\"\n[budgets.day]\nmax_tokens = 5\n");
    let day = &home.json(&["budgets", "--json"])[0];
    assert_eq!(str_of(day, "tz"), "Asia/Kathmandu");
    assert!(str_of(day, "resets_at").ends_with("T18:15:00.000Z"), "{day}");
    assert!(home.ok(&["budgets"]).contains("a day begins at 00:00 Asia/Kathmandu"));
    configure(home, "[budgets]\ntz = \"Mars/Base\"\n[budgets.day]\nmax_tokens = 5\n");
    let doctor = text(&home.output(&["doctor"]).stdout);
    assert!(doctor.contains("there is no time zone \"Mars/Base\""), "{doctor}");
}

#[test]
fn the_timers_of_a_blocked_run_stand_still() {
    let clock = Clock::new();
    let home = &clock.home;
    let id = start(home, &a_loop(&says("blocked"), "turn_timeout_ms: 3000"));
    assert_eq!(home.wait(&id), 3);
    let worked = |home: &Home| row(home, &id)["worked_ms"].as_u64().expect("it has worked");
    let before = worked(home);
    clock.set(9 * 3_600_000);
    let run = home.show(&id);
    assert_eq!(run["limits"]["turn_timeout_ms"], json!({"used": 0, "max": 3000}));
    assert_eq!((worked(home), &run["worked_ms"]), (before, &json!(before)), "it rests");
}

#[test]
fn a_loop_has_no_limit_of_time_or_turns_unless_one_is_set() {
    let home = Home::new();
    let script = format!("[ $OUTLAST_TURN -ge 25 ] && {} || {}", says("done"), {
        r#"echo '{"status":"continue","next_task":"'$OUTLAST_TURN'"}' > "$OUTLAST_RESPONSE_FILE""#
    });
    let id = start(&home, &a_loop(&script, "max_attempts: 1"));
    assert_eq!(home.wait(&id), 0);
    let run = home.show(&id);
    assert_eq!(run["turns_committed"], 25);
    assert_eq!(
        (&run["limits"]["max_turns"], &run["limits"]["run_timeout_ms"]),
        (&Value::Null, &Value::Null)
    );
}
