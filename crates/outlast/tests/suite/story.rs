//! Eight hours, as a person lives them: a file, some runs, bed; and a report at eight that is true.

use std::fs;

use serde_json::Value;

use crate::clocks::Clock;
use crate::harness::{Home, str_of, text, until};
use crate::init::at;
use crate::report::paste;

const HOUR_MS: i64 = 3_600_000;

fn report(home: &Home) -> Value {
    let output = home.output(&["report", "--since", "9h", "--json"]);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

fn names(list: &Value) -> Vec<&str> {
    let items = list.as_array().expect("a list");
    items.iter().map(|item| item["name"].as_str().unwrap_or_default()).collect()
}

#[test]
fn the_night_is_told_truly_at_eight() {
    let clock = Clock::new();
    let home = &clock.home;
    fs::write(
        home.path().join("config.toml"),
        "[sinks.dead]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:9/never\"\n",
    )
    .expect("ours");
    // 00:00: the first evening.
    let dir = home.scratch().join("work");
    fs::create_dir(&dir).expect("ours");
    fs::write(dir.join("Makefile"), "test:\n\ttest -f made\n").expect("ours");
    let output = at(home, &dir, &["init", "--yes", "--agent", "script"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let output =
        at(home, &dir, &["run", "-d", "-f", "WORKFLOW.md", "--name", "ask", "--notify", "dead"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    until("it asks", || (home.show("ask")["state"] == "blocked").then_some(()));
    let serve =
        home.ok(&["run", "-d", "--name", "serve", "--", "sh", "-c", "echo up; exec sleep 100000"]);
    let pid = home.pid(&serve);
    home.ok(&["schedule", "add", "hourly", "--every", "1h", "--", "true"]);
    let failed = home.ok(&[
        "run",
        "-d",
        "--name",
        "train",
        "--",
        "sh",
        "-c",
        "echo out of memory; exit 137",
    ]);
    assert_eq!(home.wait(&failed), 1);
    // 01:00: the daemon is killed, and the one that a shim or the waiter starts finds the schedule due.
    clock.set(HOUR_MS);
    let died = home.crash_daemon();
    let back = until("a shim or the waiter has started another", || home.daemon_if_up());
    assert_ne!(died, back);
    until("the schedule has run", || {
        let list = home.json(&["ps", "-a", "--trigger", "hourly", "--json"]);
        (list[0]["state"] == "completed").then_some(())
    });
    // 08:00: the report.
    clock.set(8 * HOUR_MS);
    let night = until("all of it is known", || {
        let report = report(home);
        let is_failing = report["night"]["sinks"][0]["failing_since"].is_string();
        (is_failing && names(&report["running"]) == ["serve"]).then_some(report)
    });
    assert_eq!(names(&night["needs_you"]), ["ask"]);
    assert_eq!(names(&night["not_done"]), ["train"]);
    assert_eq!(str_of(&night["done"][0], "trigger"), "hourly");
    let died: Vec<&Value> = night["night"]["starts"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|start| start["before"] == "died")
        .collect();
    assert_eq!(died.len(), 1, "{night}");
    assert_eq!(
        (died[0]["rebooted"].as_bool(), &night["night"]["lost_runs"]),
        (Some(false), &0.into())
    );
    assert_eq!(home.pid(&serve), pid, "the same process, adopted");
    let output = home.output(&["report", "--since", "9h"]);
    assert_eq!(output.status.code(), Some(1));
    let printed = text(&output.stdout);
    let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "(9h)",
        "NEEDS YOU (1) ask blocked",
        "asks: no agent is set",
        "outlast answer ask 'TEXT'",
        "failed (exit 137)",
        "out of memory",
        "STILL RUNNING (1) serve",
        "last line: up",
        "died and was restarted",
        "no run was lost",
        "no reboot",
        "sink: dead fails since",
        "1 notice waiting",
    ] {
        assert!(words.contains(said), "{said:?} is not said:\n{printed}");
    }
    for line in printed.lines().filter(|line| !line.contains("outlast ")) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    // What it says to paste works.
    for list in ["needs_you", "not_done"] {
        for command in night[list][0]["commands"].as_array().expect("a list") {
            paste(home, command.as_str().expect("text"));
        }
    }
    until("the answer let it go on", || (home.show("ask")["turn"] == 2).then_some(()));
    let output = home.output(&["sink", "test", "dead"]);
    assert_eq!(
        output.status.code(),
        Some(1),
        "the pasted test of a dead sink says that it is dead"
    );
    home.ok(&["stop", "serve", "--now"]);
}
