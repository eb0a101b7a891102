//! Much of everything: triggers, sinks, events, and texts at their longest. What is asked for costs what it is, and
//! not what there is beside it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use outlast_engine::{Event, Fact, Health, Run, RunId, Time};
use outlast_store::{Append, Entry, Journal, Sqlite, Trigger, TriggerChange, Triggers};
use serde_json::{Value, json};

use crate::crowd::{endless, turns};
use crate::harness::{Gate, Home, lines, str_of, until};
use crate::triggered::post;

const SCHEDULES: usize = 100_000;
const SINKS: usize = 10_000;
const EVENTS: u64 = 1_000_000;
const PAGE: u64 = 10_000;

/// The home's journal, while it has no daemon.
fn journal(home: &Home) -> (Sqlite, u64) {
    let store = Sqlite::open(&home.state().join("outlast.db")).expect("a daemon has made it");
    let epoch = store.take_epoch().expect("it can be written");
    (store, epoch)
}

/// As many schedules as the first, and like it, under other names.
fn multiply(home: &Home, name: &str, count: usize) {
    let (store, epoch) = journal(home);
    let first = store.trigger(name).expect("it can be read").expect("it was added");
    let quoted = format!("\"name\":\"{name}\"");
    for number in 1..count {
        let copy = format!("{name}{number:06}");
        let spec = first.spec.replace(&quoted, &format!("\"name\":\"{copy}\""));
        let change = TriggerChange::Add(Trigger { name: copy, spec, ..first.clone() });
        store.change_trigger(change, epoch, Box::new(|added| assert_eq!(added, Ok(0))));
    }
    // Dropping it waits until all of it is written.
}

fn names(home: &Home) -> Vec<String> {
    let listed = home.json(&["schedule", "ls", "--json"]);
    let listed = listed.as_array().expect("a list");
    listed.iter().map(|view| str_of(view, "name").to_owned()).collect()
}

#[test]
fn slow_a_hundred_thousand_schedules_are_started_with_listed_and_hold_up_nothing() {
    let home = Home::new();
    home.ok(&["schedule", "add", "yearly", "--cron", "0 3 1 1 *", "--tz", "UTC", "--", "true"]);
    home.ok(&["schedule", "add", "due", "--every", "1s", "--overlap", "parallel", "--", "true"]);
    home.ok(&["daemon", "stop"]);
    multiply(&home, "yearly", SCHEDULES);
    home.ok(&["daemon", "start"]);
    let looping = endless(&home);
    let made = || home.json(&["ps", "-a", "--trigger", "due", "--json"]).as_array().map(Vec::len);
    let before = made();
    until("the one that is due makes runs", || (made() > before).then_some(()));
    let committed = turns(&home, &looping);
    let listed = names(&home);
    assert_eq!(listed.len(), SCHEDULES + 1);
    assert!(listed.is_sorted(), "by name");
    until("turns are committed", || (turns(&home, &looping) > committed).then_some(()));
    home.ok(&["schedule", "rm", "yearly050000"]);
    home.ok(&["schedule", "rm", "due"]);
    let said = home.fails(2, &["schedule", "rm", "yearly050000"]);
    assert!(said.contains("yearly050000"), "{said}");
    home.ok(&["schedule", "pause", "yearly050001"]);
    let id = home.ok(&["schedule", "run", "yearly050001"]);
    assert_eq!(home.wait(&id), 0);
}

#[test]
fn sixteen_polls_run_at_once_and_the_others_in_the_order_in_which_they_were_due() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let begun = home.scratch().join("begun");
    let begin =
        |name: &str| format!("echo {name} >>'{}'; {}; echo '[]'", begun.display(), gate.pass());
    let polls: Vec<String> = (0..40).map(|number| format!("poll{number:02}")).collect();
    for name in &polls {
        let command = begin(name);
        home.ok(&[
            "trigger",
            "add",
            name,
            "--poll",
            &command,
            "--every",
            "1h",
            "--poll-timeout",
            "10m",
            "--",
            "true",
        ]);
    }
    until("as many run as may", || (lines(&begun) >= 16).then_some(()));
    // What comes to another trigger is not held up by those that wait.
    let id = home.ok(&["trigger", "run", "poll39"]);
    assert_eq!(home.wait(&id), 0);
    for (next, name) in polls.iter().enumerate().skip(16) {
        assert_eq!(lines(&begun), next, "more than may run at once");
        gate.open();
        until("the next begins", || (lines(&begun) > next).then_some(()));
        let text = fs::read_to_string(&begun).expect("it was written");
        assert_eq!(text.lines().last(), Some(name.as_str()));
    }
    for _ in 0..16 {
        gate.open();
    }
}

#[test]
fn ten_thousand_sinks_are_listed_and_the_one_that_is_named_is_told() {
    let home = Home::new();
    let told = home.scratch().join("told");
    let sink = |number| {
        format!(
            "[sinks.s{number:05}]\nkind = \"cmd\"\ncommand = \"echo {number} >> '{}'\"\n",
            told.display()
        )
    };
    let config: String = (0..SINKS).map(sink).collect();
    fs::write(home.path().join("config.toml"), config).expect("the home is ours");
    let id = home.ok(&["run", "-d", "--notify", "s04711", "--", "true"]);
    assert_eq!(home.wait(&id), 0);
    until("the sink is told", || (lines(&told) > 0).then_some(()));
    let text = fs::read_to_string(&told).expect("it was written");
    assert!(text.lines().all(|line| line == "4711"), "{text}");
    // The sink is told before it is written down that it was.
    until("it is listed as told", || {
        let sinks = home.json(&["sink", "ls", "--json"]);
        let sinks = sinks.as_array().expect("a list");
        assert_eq!(sinks.len(), SINKS);
        let row = sinks.iter().find(|sink| sink["name"] == "s04711").expect("it is listed");
        (row["delivered"].as_u64() >= Some(1)).then_some(())
    });
    // A person who mistypes a name is told of a few, and how to see all.
    let said = home.fails(2, &["run", "-d", "--notify", "s10000", "--", "true"]);
    assert!(said.contains("s00000") && said.contains("9980 more") && said.len() < 1000, "{said}");
}

/// Makes the run's journal a million events long, as its daemon would have.
fn lengthen(home: &Home, id: &str) {
    let (store, epoch) = journal(home);
    let id = RunId(id.to_owned());
    let begin = store.events(&id, 0, usize::MAX).expect("it can be read");
    let mut run = Run::replay(&id, &begin).expect("it is a journal");
    let at = begin.last().expect("it has begun").at;
    while run.seq() < EVENTS {
        let expected_seq = run.seq();
        let last = (expected_seq + PAGE).min(EVENTS);
        let events: Vec<Event> =
            (expected_seq + 1..=last).map(|seq| Event { seq, at, fact: fact(seq, at) }).collect();
        run = events.iter().fold(run, |run, event| run.apply(event).expect("it is legal"));
        let (row, spent) = (run.row(), Entry::default());
        let outbox = Vec::new();
        let append = Append { run: id.clone(), expected_seq, epoch, events, row, outbox, spent };
        store.append_wait(append).expect("it can be written");
    }
}

fn fact(seq: u64, since: Time) -> Fact {
    match seq.is_multiple_of(2) {
        true => Fact::HealthDegraded {
            health: Health::Silent,
            since,
            why: "no output for 6 minutes".to_owned(),
        },
        false => Fact::HealthRecovered { from: Health::Silent },
    }
}

#[test]
fn slow_a_run_of_a_million_events_is_adopted_shown_followed_and_ended() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let id = home.start(&format!("{}; exit 7", gate.pass()));
    let pid = home.pid(&id);
    home.ok(&["daemon", "stop"]);
    lengthen(&home, &id);
    home.ok(&["daemon", "start"]);
    assert_eq!(home.pid(&id), pid, "it was adopted");
    assert_eq!(home.json(&["show", &id, "--turn", "1", "--json"])["turn"], 1);
    let after = (EVENTS - 5).to_string();
    let tail = || home.ok(&["events", &id, "--after", &after, "--json"]);
    let seqs: Vec<u64> = tail().lines().take(5).map(seq).collect();
    assert_eq!(seqs, [999_996, 999_997, 999_998, 999_999, 1_000_000]);
    gate.open();
    assert_eq!(home.wait(&id), 1);
    assert_eq!(home.show(&id)["exit"]["code"], 7);
    let kinds = tail();
    assert!(kinds.contains("RunEnded"), "{kinds}");
}

fn seq(line: &str) -> u64 {
    let event: Value = serde_json::from_str(line).expect("an event is JSON");
    event["seq"].as_u64().expect("it has a number")
}

/// A run that is asked for with everything at its longest.
fn longest(dir: &Path) -> Value {
    let labels: BTreeMap<String, String> = (0..64)
        .map(|number| (format!("{number:02}{}", "k".repeat(4094)), "v".repeat(4096)))
        .collect();
    json!({
        "name": "n".repeat(100),
        "key": "k".repeat(1024),
        "task": "t".repeat(256 << 10),
        "labels": labels,
        "command": ["true"],
        "dir": dir,
        "notify": [format!("cmd:cat >>'{}'", dir.join("told").display())],
    })
}

fn ask(home: &Home, run: &Value) -> (u16, Value) {
    let headers = [("Content-Type", "application/json")];
    post(home, "/v1/runs", &headers, run.to_string().as_bytes())
}

#[test]
fn texts_at_their_longest_go_everywhere_and_a_byte_more_is_refused() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let run = longest(&home.scratch());
    let (status, created) = ask(&home, &run);
    assert_eq!(status, 201, "{created}");
    let id = str_of(&created, "id").to_owned();
    assert_eq!(home.wait(&id), 0);
    let shown = home.show(&id);
    for key in ["name", "key", "task", "labels"] {
        assert!(shown[key] == run[key], "{key}");
    }
    let name = str_of(&run, "name");
    assert_eq!(str_of(&home.show(name), "id"), id, "it is found by its name");
    assert!(home.ok(&["show", &id]).contains(name));
    assert!(home.ok(&["ps", "-a"]).contains(&id));
    assert_eq!(home.json(&["ps", "-a", "--json"])[0]["labels"], run["labels"]);
    assert_eq!(home.kinds(&id).last().map(String::as_str), Some("RunEnded"));
    assert!(home.ok(&["tree", &id]).contains(&id[..8]));
    let told = until("it is told", || {
        let text = fs::read_to_string(home.scratch().join("told")).unwrap_or_default();
        text.contains("completed").then_some(text)
    });
    assert!(told.contains(name), "the notice names the run");
    // The next daemon reads it, too.
    home.crash_daemon();
    home.ok(&["daemon", "start"]);
    assert!(home.show(&id)["labels"] == run["labels"]);
    for (key, longer, said) in [
        ("name", json!("n".repeat(101)), "up to 100 bytes"),
        ("key", json!("k".repeat(1025)), "1 to 1024 bytes"),
        ("task", json!("t".repeat((256 << 10) + 1)), "longer than 262144"),
        ("labels", json!({ "k": "v".repeat(4097) }), "up to 4096"),
        ("labels", json!({ "k".repeat(4097): "v" }), "1 to 4096"),
    ] {
        let mut run = json!({ "command": ["true"], "dir": home.scratch() });
        run[key] = longer;
        let (status, refused) = ask(&home, &run);
        assert_eq!(status, 400, "{key}: {refused}");
        assert_eq!(refused["error"]["code"], "bad_request", "{key}");
        assert!(refused.to_string().contains(said), "{key}: {refused}");
    }
    assert_eq!(home.json(&["ps", "-a", "--json"]).as_array().map(Vec::len), Some(1));
}

#[test]
fn a_trigger_with_a_name_at_its_longest_makes_runs_and_a_byte_more_is_refused() {
    let home = Home::new();
    let name = "t".repeat(64);
    home.ok(&["schedule", "add", &name, "--every", "1h", "--", "true"]);
    let id = home.ok(&["schedule", "run", &name]);
    assert_eq!(home.wait(&id), 0);
    assert_eq!(str_of(&home.show(&id)["origin"], "trigger"), name);
    assert!(home.ok(&["schedule", "ls", "--json"]).contains(&name));
    let said = home.fails(2, &["schedule", "add", &"t".repeat(65), "--every", "1h", "--", "true"]);
    assert!(said.contains("up to 64"), "{said}");
    home.ok(&["schedule", "rm", &name]);
}
