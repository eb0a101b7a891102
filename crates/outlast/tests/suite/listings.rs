//! Lists as scripts read them: every row has the same keys, errors stand where no row is looked for, pages follow one
//! another, and the events of all runs come in the order of writing.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};

use serde_json::Value;

use crate::harness::{Gate, Home, str_of, text, until};
use crate::hosted::{begin, configure};
use crate::metrics;

fn keys(row: &Value) -> BTreeSet<String> {
    row.as_object().expect("a row is an object").keys().cloned().collect()
}

/// The rows of a list, which must have the same keys, all of them `of`.
fn alike(home: &Home, args: &[&str], of: &[&str]) -> Vec<Value> {
    let rows = home.json(args).as_array().expect("a list").clone();
    let first = keys(rows.first().expect("a list with rows"));
    for row in &rows {
        assert_eq!(keys(row), first, "{args:?}: {row}");
    }
    for key in of {
        assert!(first.contains(*key), "{args:?} have no {key}: {first:?}");
    }
    rows
}

const ASKS: &str = r#"
echo "thinking about it"
printf '{"status":"blocked","summary":"left or right?"}' > "$OUTLAST_RESPONSE_FILE"
"#;

#[test]
fn every_row_of_a_list_has_the_same_keys() {
    let home = Home::new();
    configure(
        &home,
        "[sinks.one]\nkind = \"cmd\"\ncommand = \"true\"\n[budgets.day]\nmax_cost_usd = 50\n\
         [budgets.labels.\"team=web\"]\nmax_tokens = 5\n",
    );
    let gate = Gate::new(&home, "gate");
    home.ok(&["run", "--", "echo", "over"]);
    let live = home.start(&format!("echo alive; {}", gate.pass()));
    let asks = begin(&home, ASKS, "");
    assert_eq!(home.wait(&asks), 3, "it is blocked");
    until("it has printed", || home.show(&live)["last_line"].as_str().map(drop));
    home.ok(&["schedule", "add", "nightly", "--every", "24h", "--", "true"]);
    home.ok(&["trigger", "add", "hook", "--webhook", "--", "true"]);

    let of_rows = [
        "question",
        "summary",
        "last_line",
        "ended_at",
        "task",
        "what",
        "known",
        "unreported_attempts",
    ];
    let rows = alike(&home, &["ps", "-a", "--json"], &of_rows);
    let row = |id: &str| rows.iter().find(|row| row["id"] == id).expect("it is listed");
    assert_eq!(str_of(row(&asks), "question"), "left or right?");
    assert_eq!(str_of(row(&asks), "summary"), "left or right?");
    assert_eq!(str_of(row(&live), "last_line"), "alive");
    alike(&home, &["trigger", "ls", "--json"], &["next_at", "trouble"]);
    alike(&home, &["sink", "ls", "--json"], &["problem"]);
    let budgets = alike(&home, &["budgets", "--json"], &["used"]);
    let amounts: BTreeSet<_> = budgets.iter().map(|budget| keys(&budget["used"])).collect();
    assert_eq!(amounts.len(), 1, "{budgets:?}");
    alike(&home, &["agents", "--json"], &["kind"]);
}

#[test]
fn a_list_that_fails_prints_no_object_where_an_array_was_promised() {
    let home = Home::new();
    let output = home.output(&["ps", "--json", "--label", "nonsense"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(2), String::new()));
    let error: Value = serde_json::from_slice(&output.stderr).expect("an error is JSON");
    assert_eq!(keys(&error), BTreeSet::from(["error".to_owned()]));
}

#[test]
fn a_list_of_runs_is_read_in_pages() {
    let home = Home::new();
    let ids: Vec<String> = (0..5).map(|_| home.ok(&["run", "-d", "--", "true"])).collect();
    for id in &ids {
        home.wait(id);
    }
    let page = |query: &str| -> Vec<String> {
        let (status, body) = metrics::get(&home, &format!("/v1/runs?all=true&{query}"));
        assert_eq!(status, 200, "{body}");
        // The one piece of an answer that came in pieces.
        let json = &body[body.find('[').expect("an array")..=body.rfind(']').expect("an array")];
        let rows: Vec<Value> = serde_json::from_str(json).expect("an array");
        rows.iter().map(|row| str_of(row, "id").to_owned()).collect()
    };
    let newest =
        |from: usize, to: usize| -> Vec<String> { ids[from..to].iter().rev().cloned().collect() };
    assert_eq!(page("limit=2"), newest(3, 5));
    assert_eq!(page(&format!("limit=2&before={}", ids[3])), newest(1, 3));
    assert_eq!(page(&format!("limit=2&before={}", ids[1])), newest(0, 1));
    assert_eq!(page(&format!("after={}", ids[2])), newest(3, 5));
    let (status, body) = metrics::get(&home, "/v1/runs?before=nosuchrun");
    assert_eq!(status, 404, "{body}");
}

#[test]
fn events_of_all_runs_come_in_the_order_of_writing() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let first = home.ok(&["run", "-d", "--name", "first", "--", "sh", "-c", &gate.pass()]);
    home.pid(&first);
    let second = home.ok(&["run", "-d", "--", "true"]);
    home.wait(&second);
    gate.open();
    home.wait(&first);
    let events = |args: &[&str]| -> Vec<Value> {
        let printed = home.ok(args);
        printed.lines().map(|line| serde_json::from_str(line).expect("an event")).collect()
    };
    let all = events(&["events", "--json"]);
    let cursors: Vec<u64> = all.iter().map(|it| it["cursor"].as_u64().expect("a cursor")).collect();
    assert!(cursors.is_sorted(), "{cursors:?}");
    let kinds = |id: &str| -> Vec<String> {
        let its = all.iter().filter(|event| event["run"] == id);
        its.map(|event| str_of(event, "kind").to_owned()).collect()
    };
    assert_eq!((kinds(&first), kinds(&second)), (home.kinds(&first), home.kinds(&second)));
    let ends: Vec<&str> = all
        .iter()
        .filter(|event| event["kind"] == "RunEnded")
        .map(|event| str_of(event, "run"))
        .collect();
    assert_eq!(ends, [&second, &first]);
    assert_eq!(events(&["events", "--json", "--tail", "2"]), all[all.len() - 2..]);
    let after = cursors[3].to_string();
    assert_eq!(events(&["events", "--json", "--after", &after]), all[4..]);
    assert!(home.ok(&["events"]).contains("first"));
}

#[test]
fn events_of_all_runs_are_followed_across_a_daemon_that_dies() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let mut following = home.spawn(&["events", "--json", "-f", "--after", "0"]);
    let stdout = following.0.stdout.take().expect("it is piped");
    let mut lines = BufReader::new(stdout).lines();
    let mut ended = || loop {
        let line = lines.next().expect("it goes on").expect("it is text");
        let event: Value = serde_json::from_str(&line).expect("an event");
        if event["kind"] == "RunEnded" {
            return str_of(&event, "run").to_owned();
        }
    };
    let before = home.ok(&["run", "-d", "--", "true"]);
    assert_eq!(ended(), before);
    home.crash_daemon();
    let after = home.ok(&["run", "-d", "--", "true"]);
    assert_eq!(ended(), after, "each once, and none is missed");
}

/// SQLite would give the numbers of removed events to others.
#[test]
fn no_event_is_missed_by_a_follower_because_a_run_was_removed() {
    let home = Home::new();
    let removed = home.ok(&["run", "-d", "--", "true"]);
    home.wait(&removed);
    let last = |home: &Home| {
        let all = home.ok(&["events", "--json"]);
        let last: Value =
            serde_json::from_str(all.lines().last().expect("an event")).expect("JSON");
        last["cursor"].as_u64().expect("a cursor")
    };
    let seen = last(&home);
    home.ok(&["rm", &removed]);
    let id = home.ok(&["run", "-d", "--", "true"]);
    home.wait(&id);
    let news = home.ok(&["events", "--json", "--after", &seen.to_string()]);
    assert_eq!(news.lines().count(), home.events(&id).len());
}
