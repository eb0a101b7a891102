//! Polls: what a command prints becomes runs, one for each item, and nothing of what is not whole.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Home, str_of, until};
use crate::triggered::{count, made, occurrences, runs, trigger};

struct Tracker {
    home: Home,
}

impl Tracker {
    fn new(items: &Value) -> Self {
        let tracker = Self { home: Home::new() };
        tracker.say(&items.to_string());
        tracker
    }

    fn say(&self, text: &str) {
        let (part, file) = (self.home.scratch().join("part"), self.home.scratch().join("items"));
        fs::write(&part, text).expect("the scratch directory is ours");
        fs::rename(part, file).expect("the scratch directory is ours");
    }

    fn add(&self, args: &[&str]) {
        let start = ["trigger", "add", "tracker", "--poll", "cat items", "--every", "1s"];
        let args: Vec<&str> = start.iter().chain(args).copied().collect();
        self.home.ok(&args);
    }
}

#[test]
fn each_item_makes_one_run_however_often_it_is_printed() {
    let tracker =
        Tracker::new(&json!([{ "id": 1, "title": "one" }, { "id": "two", "title": "zwei" }]));
    tracker.add(&["--task", "do {{ item.title }}", "--", "true"]);
    made(&tracker.home, "tracker", 2);
    tracker.say("{\"id\":1,\"title\":\"one\"}\n{\"id\":3,\"title\":\"drei\"}\n");
    made(&tracker.home, "tracker", 3);
    tracker.home.crash_daemon();
    tracker.home.ok(&["daemon", "start"]);
    tracker.say("[{\"id\":4,\"title\":\"vier\"},{\"id\":1,\"title\":\"one\"}]");
    made(&tracker.home, "tracker", 4);
    assert_eq!(occurrences(&tracker.home, "tracker"), ["1", "two", "3", "4"]);
    let tasks: Vec<Value> =
        runs(&tracker.home, "tracker").iter().map(|run| run["task"].clone()).collect();
    assert_eq!(tasks, ["do one", "do zwei", "do drei", "do vier"]);
}

#[test]
fn nothing_is_taken_of_what_is_garbled_and_that_is_shown() {
    let tracker = Tracker::new(&json!([]));
    tracker.say("[{\"id\":1},{\"id\":");
    tracker.add(&["--", "true"]);
    let view = until("it is shown", || {
        Some(trigger(&tracker.home, "tracker"))
            .filter(|view| view["trouble"]["code"] == "poll_failed")
    });
    assert!(str_of(&view["trouble"], "message").contains("not JSON"), "{view}");
    assert_eq!((count(&view, "runs"), count(&view, "waiting")), (0, 0));
    let listed = tracker.home.output(&["trigger", "ls"]);
    assert!(String::from_utf8_lossy(&listed.stderr).contains("tracker: poll_failed: "));
    tracker.say("[{\"id\":1},{\"id\":2}]");
    // A person need not wait for the next try.
    tracker.home.ok(&["trigger", "pause", "tracker"]);
    tracker.home.ok(&["trigger", "resume", "tracker"]);
    let view = made(&tracker.home, "tracker", 2);
    assert_eq!(view["trouble"], Value::Null);
}

#[test]
fn a_prompt_speaks_of_the_item_and_of_an_issue() {
    let tracker = Tracker::new(&json!([
        { "id": 7, "title": "broken", "identifier": "WEB-7", "labels": [{ "name": "ui" }] }
    ]));
    let text = "---\nagent: { kind: exec, command: \"cp $OUTLAST_PROMPT_FILE prompt\" }\n---\n\
        {{ issue.identifier }}: {{ item.title }} ({{ issue.labels | join: \" \" }})\n";
    fs::write(tracker.home.scratch().join("WORKFLOW.md"), text)
        .expect("the scratch directory is ours");
    tracker.add(&["-f", "WORKFLOW.md"]);
    made(&tracker.home, "tracker", 1);
    let run = runs(&tracker.home, "tracker").remove(0);
    assert_eq!(tracker.home.wait(str_of(&run, "id")), 0);
    let prompt = fs::read_to_string(tracker.home.scratch().join("prompt")).expect("it was copied");
    assert!(prompt.starts_with("WEB-7: broken (ui)"), "{prompt}");
}

#[test]
fn an_item_of_which_no_run_can_be_made_is_shown_and_holds_up_no_other() {
    let tracker = Tracker::new(&json!([{ "id": 1 }, { "id": 2, "title": "good" }]));
    tracker.add(&["--task", "{{ item.title }}", "--", "true"]);
    let view = made(&tracker.home, "tracker", 1);
    assert_eq!((count(&view, "refused"), count(&view, "waiting")), (1, 0));
    assert_eq!(str_of(&view["refusal"], "code"), "refused");
    assert_eq!(view["trouble"], Value::Null, "a later item has started a run");
    assert_eq!(occurrences(&tracker.home, "tracker"), ["2"]);
    let id = tracker.home.ok(&["trigger", "run", "tracker", "--item", "{\"title\":\"by hand\"}"]);
    assert_eq!(str_of(&tracker.home.show(&id), "task"), "by hand");
    let said = tracker.home.fails(2, &["trigger", "run", "tracker"]);
    assert!(said.contains("the task cannot be rendered"), "{said}");
}
