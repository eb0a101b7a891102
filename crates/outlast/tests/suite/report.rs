//! `outlast report`: the morning after, told truly and with commands that work.

use std::fs;

use serde_json::Value;

use crate::clocks::Clock;
use crate::harness::{Home, str_of, text, until};
use crate::stalls::{says, start};
use crate::terminal::Terminal;

const HOUR_MS: i64 = 3_600_000;

/// The report as scripts have it; its exit code does not matter here.
fn report(home: &Home) -> Value {
    let output = home.output(&["report", "--json"]);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn names<'a>(report: &'a Value, list: &str) -> Vec<&'a str> {
    let items = report[list].as_array().expect("a list");
    items.iter().map(|item| item["name"].as_str().unwrap_or_default()).collect()
}

/// A loop that asks something.
fn blocked(home: &Home, name: &str) -> String {
    let script = says("blocked").replace("turn '$OUTLAST_TURN'", "left or right?");
    let file = home.scratch().join(format!("{name}.md"));
    let text = format!("---\nagent:\n  kind: exec\n  command: |\n    {script}\n---\nDo it.\n");
    fs::write(&file, text).expect("the scratch directory is ours");
    let id = home.ok(&["run", "-d", "-f", file.to_str().expect("UTF-8"), "--name", name]);
    until("it is blocked", || (home.show(&id)["state"] == "blocked").then_some(()));
    id
}

#[test]
fn a_quiet_night_needs_no_person_and_says_so() {
    let home = Home::new();
    home.ok(&["run", "--name", "build", "--", "true"]);
    let printed = home.ok(&["report"]);
    assert!(printed.contains("NEEDS YOU nothing"), "{printed}");
    assert!(printed.contains("build"), "{printed}");
    assert!(printed.contains("schedules: none missed"), "{printed}");
    assert!(printed.contains("without a restart"), "{printed}");
}

#[test]
fn each_run_is_told_in_its_group_and_the_pasted_command_works() {
    let home = Home::new().env("TZ", "Europe/Berlin");
    blocked(&home, "ask");
    home.ok(&["run", "--name", "build", "--", "true"]);
    let failed = home.start("echo CUDA out of memory; exit 137");
    home.wait(&failed);
    let serve = home.ok(&["run", "-d", "--name", "serve", "--", "sleep", "1000"]);
    home.pid(&serve);
    home.crash_daemon();
    home.ok(&["daemon", "start"]);
    let output = home.output(&["report"]);
    assert_eq!(output.status.code(), Some(1), "a person is needed");
    let printed = text(&output.stdout);
    for line in printed.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "asks: left or right?",
        "failed (exit 137)",
        "CUDA out of memory",
        "died and was restarted",
        "no run was lost",
    ] {
        assert!(words.contains(said), "{said}: {printed}");
    }
    let report = report(&home);
    assert_eq!(names(&report, "needs_you"), ["ask"]);
    assert_eq!(names(&report, "done"), ["build"]);
    assert_eq!(names(&report, "running"), ["serve"]);
    assert_eq!(str_of(&report["not_done"][0], "id"), failed);
    for list in ["needs_you", "not_done"] {
        let command = report[list][0]["commands"][0].as_str().expect("a command");
        assert!(printed.contains(command), "{command}: {printed}");
        paste(&home, command);
    }
    until("it goes on", || (home.show("ask")["turns_committed"] != 1).then_some(()));
    home.ok(&["stop", "serve"]);
}

/// Types a command of the report into a shell.
pub(crate) fn paste(home: &Home, command: &str) {
    let bin = std::path::Path::new(env!("CARGO_BIN_EXE_outlast")).parent().expect("a directory");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let output =
        home.command("sh").env("PATH", path).args(["-c", command]).output().expect("a shell");
    assert!(output.status.success(), "{command}: {}", text(&output.stderr));
}

#[test]
fn a_time_that_passed_while_no_daemon_ran_is_told() {
    let clock = Clock::new();
    let home = &clock.home;
    home.ok(&["schedule", "add", "hourly", "--every", "1h", "--missed", "skip", "--", "true"]);
    home.ok(&["daemon", "stop"]);
    clock.set(5 * HOUR_MS + HOUR_MS / 2);
    home.ok(&["daemon", "start"]);
    let report = until("it is noticed", || {
        let report = report(home);
        (report["night"]["missed"] != Value::Array(Vec::new())).then_some(report)
    });
    let missed = &report["night"]["missed"][0];
    assert_eq!((str_of(missed, "trigger"), missed["skipped"].as_u64()), ("hourly", Some(5)));
    let starts = report["night"]["starts"].as_array().expect("a list");
    assert_eq!(str_of(starts.last().expect("it started"), "before"), "stopped");
    let printed = home.ok(&["report"]);
    assert!(printed.contains("hourly missed 5 times"), "{printed}");
    assert!(printed.contains("was stopped by an order"), "{printed}");
}

#[test]
fn a_look_in_a_pipe_is_no_look() {
    let home = Home::new();
    home.ok(&["run", "--name", "build", "--", "true"]);
    for _ in 0..2 {
        assert!(home.ok(&["report"]).contains("build"));
    }
    assert!(!home.ok(&["report", "--since", "0s"]).contains("build"));
}

#[test]
fn a_scheduled_report_is_the_text_of_its_notice() {
    let home = Home::new();
    blocked(&home, "ask");
    let told = home.scratch().join("told.jsonl");
    let sink = format!("cmd:cat >> {}", told.display());
    let outlast = env!("CARGO_BIN_EXE_outlast");
    home.ok(&[
        "schedule",
        "add",
        "morning",
        "--cron",
        "0 8 * * *",
        "--notify",
        &sink,
        "--",
        outlast,
        "report",
        "--notice",
    ]);
    home.ok(&["schedule", "run", "morning"]);
    let notice: Value = until("it is told", || {
        let text = fs::read_to_string(&told).ok()?;
        serde_json::from_str(text.lines().next()?).ok()
    });
    assert_eq!(str_of(&notice, "type"), "run.completed", "{notice}");
    let summary = str_of(&notice["data"], "summary");
    assert!(
        summary.contains("NEEDS YOU (1)") && summary.contains("outlast answer ask 'TEXT'"),
        "{summary}"
    );
    assert!(!summary.contains("morning"), "a report does not tell of itself: {summary}");
}

#[test]
fn a_run_that_waits_for_a_slot_is_listed() {
    let home = Home::new();
    fs::write(home.path().join("config.toml"), "[concurrency]\nmax_runs = 1\n").expect("ours");
    let gate = crate::harness::Gate::new(&home, "gate");
    let script = format!("{}\n{}", gate.pass(), says("done"));
    let first = start(
        &home,
        &format!(
            "---\nagent:\n  kind: exec\n  command: |\n    {}\n---\nDo it.\n",
            script.replace('\n', "\n    ")
        ),
    );
    home.pid(&first);
    let second = start(
        &home,
        &format!("---\nagent:\n  kind: exec\n  command: |\n    {}\n---\nDo it.\n", says("done")),
    );
    let report = until("it is listed", || {
        let report = report(&home);
        (report["waiting"][0]["id"] == second.as_str()).then_some(report)
    });
    assert_eq!(report["needs_person"], false);
    home.ok(&["stop", &second, "--now"]);
    home.ok(&["stop", &first, "--now"]);
}

#[test]
fn outlast_alone_is_help_in_a_pipe_and_on_a_terminal_the_report_and_then_top() {
    let home = Home::new();
    let help = |output: std::process::Output| text(&output.stdout) + &text(&output.stderr);
    assert!(help(home.output::<&str>(&[])).contains("Usage: outlast"));
    home.ok(&["run", "--name", "build", "--", "true"]);
    assert!(help(home.output::<&str>(&[])).contains("Usage: outlast"));
    let mut terminal = Terminal::new(24, 80);
    terminal.start(&home, &[]);
    terminal.until_shows("STILL RUNNING");
    assert_eq!(terminal.code(), 0);
    // Nothing has happened since.
    terminal.start(&home, &[]);
    terminal.until_shows("? keys");
    terminal.press(b"q");
    assert_eq!(terminal.code(), 0);
}
