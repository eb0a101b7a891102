//! Orders to the daemon itself: `pause --all`, and changes of triggers. The same id is the same order, whatever
//! another client has ordered since, and 2xx says that the order is written down.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Barrier;

use serde_json::{Value, json};

use crate::bad_line::{interrupted, through_a_bad_line};
use crate::forgotten::lose_journal;
use crate::harness::{Gate, Home, str_of, text, until};
use crate::hosted::post;
use crate::triggered::{count, runs, trigger};

fn code(answer: &Value) -> &str {
    str_of(&answer["error"], "code")
}

fn message(answer: &Value) -> &str {
    str_of(&answer["error"], "message")
}

fn me() -> Value {
    json!({"kind": "user", "uid": rustix::process::geteuid().as_raw()})
}

fn held_since(home: &Home) -> Value {
    home.json(&["daemon", "status", "--json"])["held_since"].clone()
}

/// The orders that the daemon remembers, the oldest first.
fn remembered(home: &Home) -> Vec<Value> {
    let (status, orders) = ask(home, "GET", "/v1/orders");
    assert_eq!(status, 200, "{orders}");
    orders.as_array().expect("a list").clone()
}

fn is_remembered(home: &Home, id: &str) -> bool {
    remembered(home).iter().any(|order| order["id"] == id)
}

/// A request without a body.
fn ask(home: &Home, method: &str, path: &str) -> (u16, Value) {
    ask_with(home, method, path, "")
}

fn ask_with(home: &Home, method: &str, path: &str, body: &str) -> (u16, Value) {
    let mut stream =
        UnixStream::connect(home.path().join("run/daemon.sock")).expect("a daemon listens");
    let head = "HTTP/1.1\r\nHost: outlast\r\nConnection: close\r\nContent-Length:";
    write!(stream, "{method} {path} {head} {}\r\n\r\n{body}", body.len()).expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers with text");
    let status = answer.split_whitespace().nth(1).and_then(|word| word.parse().ok());
    let json = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status.expect("a status"), serde_json::from_str(json).unwrap_or(Value::Null))
}

/// A schedule that comes due once a day.
fn add_daily(home: &Home, name: &str) -> Value {
    home.json(&["schedule", "add", name, "--every", "24h", "--json", "--", "true"])["trigger"]
        .clone()
}

fn names(home: &Home) -> Vec<String> {
    let all = home.json(&["trigger", "ls", "--json"]);
    let all = all.as_array().expect("a list");
    all.iter().map(|it| str_of(it, "name").to_owned()).collect()
}

#[test]
fn a_pause_of_all_whose_answer_is_lost_does_not_undo_the_resume_of_another_client() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let said = interrupted(&home, "/pause", 1, &["pause", "--all"], &|| {
        assert!(held_since(&home).is_string(), "it was paused the first time");
        home.ok(&["resume", "--all"]);
    });
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    assert_eq!(held_since(&home), Value::Null, "the resume was given later");
    assert!(text(&said.stdout).contains("since"), "it says what holds now: {said:?}");
}

#[test]
fn a_resume_of_all_whose_answer_is_lost_does_not_undo_the_pause_of_another_client() {
    let home = Home::new();
    home.ok(&["pause", "--all"]);
    let said = interrupted(&home, "/resume", 2, &["resume", "--all"], &|| {
        home.ok(&["pause", "--all"]);
    });
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    assert!(held_since(&home).is_string(), "the pause was given later");
}

#[test]
fn a_word_for_all_is_remembered_with_its_id_and_giver_through_the_death_of_the_daemon() {
    let home = Home::new();
    let gate = Gate::new(&home, "gate");
    let run = home.start(&gate.pass());
    home.pid(&run);
    let word = |verb: &str, body: &Value| post(&home, &format!("/v1/daemon/{verb}"), body);
    let (status, first) = word("pause", &json!({"id": "p-1"}));
    assert_eq!((status, &first["order"], &first["existed"]), (202, &json!("p-1"), &json!(false)));
    let paused = home.events(&run).into_iter().find(|event| event["kind"] == "PauseRequested");
    let paused = paused.expect("the run has followed");
    assert_eq!(
        (&paused["all"], &paused["order"], &paused["by"]),
        (&json!(true), &json!("p-1"), &me())
    );
    assert_eq!(home.json(&["daemon", "status", "--json"])["held_by"], me());
    assert_eq!(word("resume", &json!({"id": "r-1"})).0, 202);
    home.crash_daemon();
    home.ok(&["ps"]);
    let (status, again) = word("pause", &json!({"id": "p-1"}));
    assert_eq!((status, &again["existed"]), (202, &json!(true)), "{again}");
    assert_eq!(str_of(&again["superseded"], "id"), "r-1", "{again}");
    assert_eq!((&again["held_since"], held_since(&home)), (&Value::Null, Value::Null));
    let (status, other) = word("resume", &json!({"id": "p-1"}));
    assert_eq!((status, code(&other)), (409, "id_conflict"), "{other}");
    let (status, bad) = word("pause", &json!({"id": ""}));
    assert_eq!((status, code(&bad)), (400, "bad_request"), "{bad}");
    // A client from before orders had ids is served, and its order is remembered too.
    assert_eq!(ask(&home, "POST", "/v1/daemon/resume").0, 202);
    let all = remembered(&home);
    let verbs: Vec<&str> = all.iter().map(|order| str_of(order, "verb")).collect();
    assert_eq!(verbs, ["pause_all", "resume_all", "resume_all"]);
    assert!(all.iter().all(|order| order["by"] == me() && order["at"].is_string()), "{all:?}");
}

#[test]
fn only_the_last_orders_are_remembered() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    for number in 0..260 {
        let (status, answer) =
            post(&home, "/v1/daemon/resume", &json!({"id": format!("r{number}")}));
        assert_eq!(status, 202, "{answer}");
    }
    let all = remembered(&home);
    assert_eq!((all.len(), str_of(&all[0], "id")), (256, "r4"));
}

#[test]
fn a_removal_of_a_trigger_whose_answer_is_lost_removes_no_other_of_that_name() {
    let home = Home::new();
    add_daily(&home, "nightly");
    let said = interrupted(&home, "DELETE", 1, &["schedule", "rm", "nightly"], &|| {
        add_daily(&home, "nightly");
    });
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    assert_eq!(names(&home), ["nightly"], "another client has made this one since");
    // And one that saw another trigger under the name removes nothing.
    let seen = str_of(&trigger(&home, "nightly"), "id").to_owned();
    home.ok(&["schedule", "rm", "nightly"]);
    let path = |id: &str| format!("/v1/triggers/nightly?id={id}&trigger_id={seen}");
    let (status, answer) = ask(&home, "DELETE", &path("late"));
    assert_eq!((status, code(&answer)), (409, "stale_order"), "{answer}");
    assert!(
        message(&answer).contains("removed") && message(&answer).contains("by user"),
        "{answer}"
    );
    add_daily(&home, "nightly");
    let (status, answer) = ask(&home, "DELETE", &path("later"));
    assert_eq!((status, code(&answer)), (409, "stale_order"), "{answer}");
    assert!(!is_remembered(&home, "late") && !is_remembered(&home, "later"));
    assert_eq!(names(&home), ["nightly"]);
    // A client that says neither means the one that is there.
    // A body would not be read, and the order in it not be bound to what its giver saw.
    let bound = r#"{"id":"d1","trigger_id":"another"}"#;
    assert_eq!(ask_with(&home, "DELETE", "/v1/triggers/nightly", bound).0, 400);
    assert_eq!(ask(&home, "DELETE", "/v1/triggers/nightly").0, 204);
    assert_eq!(ask(&home, "DELETE", "/v1/triggers/nightly").0, 404);
}

#[test]
fn an_addition_whose_answer_is_lost_adds_one_trigger_and_none_after_its_removal() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let add = ["trigger", "add", "hook", "--webhook", "--", "true"];
    let said = through_a_bad_line(&home, "/v1/triggers", 1, &add);
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    assert!(text(&said.stdout).contains("secret     whsec_"), "the secret is not lost: {said:?}");
    assert_eq!(names(&home), ["hook"]);
    home.ok(&["trigger", "rm", "hook"]);
    let said = interrupted(&home, "/v1/triggers", 1, &add, &|| {
        home.ok(&["trigger", "rm", "hook"]);
    });
    assert_eq!(said.status.code(), Some(2), "{said:?}");
    assert!(text(&said.stderr).contains("removed"), "{said:?}");
    assert!(names(&home).is_empty(), "another client has removed it since");
}

#[test]
fn a_trigger_that_is_paused_or_resumed_again_stays_as_another_client_left_it() {
    let home = Home::new();
    let added = add_daily(&home, "nightly");
    for (verb, other) in [("pause", "resume"), ("resume", "pause")] {
        let said = interrupted(&home, verb, 1, &["schedule", verb, "nightly"], &|| {
            home.ok(&["schedule", other, "nightly"]);
        });
        assert_eq!(said.status.code(), Some(0), "{said:?}");
        assert_eq!(trigger(&home, "nightly")["paused"], other == "pause", "after {verb}");
    }
    let path = "/v1/triggers/nightly/resume";
    let (status, answer) = post(&home, path, &json!({"id": "x", "trigger_id": "another"}));
    assert_eq!((status, code(&answer)), (409, "stale_order"), "{answer}");
    let seen = json!({"id": "y", "trigger_id": added["id"]});
    let (status, answer) = post(&home, path, &seen);
    assert_eq!((status, &answer["paused"]), (200, &json!(false)), "{answer}");
    let (status, answer) = post(&home, "/v1/triggers/nightly/pause", &seen);
    assert_eq!((status, code(&answer)), (409, "id_conflict"), "{answer}");
    assert_eq!(ask(&home, "POST", "/v1/triggers/nightly/pause").0, 200, "as older clients ask");
    assert_eq!(trigger(&home, "nightly")["paused"], true);
    assert!(is_remembered(&home, "y") && !is_remembered(&home, "x"));
}

#[test]
fn a_trigger_that_is_run_by_hand_runs_once_also_when_its_run_or_itself_is_gone() {
    let home = Home::new();
    let added = add_daily(&home, "nightly");
    let said = interrupted(&home, "/run", 1, &["schedule", "run", "nightly"], &|| {
        let made = runs(&home, "nightly");
        let id = str_of(&made[0], "id");
        assert_eq!(home.wait(id), 0);
        home.ok(&["rm", id]);
    });
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    assert!(runs(&home, "nightly").is_empty(), "it was run once, and that run was removed");
    assert_eq!(count(&trigger(&home, "nightly"), "runs"), 1);
    // One that was made under the name since is not what the giver saw.
    home.ok(&["schedule", "rm", "nightly"]);
    add_daily(&home, "nightly");
    let order = json!({"occurrence": "o-1", "trigger_id": added["id"]});
    let (status, answer) = post(&home, "/v1/triggers/nightly/run", &order);
    assert_eq!((status, code(&answer)), (409, "stale_order"), "{answer}");
    assert!(runs(&home, "nightly").is_empty());
    let (status, first) = post(&home, "/v1/triggers/nightly/run", &json!({"occurrence": "o-2"}));
    let (again, second) = post(&home, "/v1/triggers/nightly/run", &json!({"occurrence": "o-2"}));
    assert_eq!((status, again, &first["run"]), (201, 201, &second["run"]));
}

/// Two clients change the same triggers at the same moment, again and again.
#[test]
fn two_clients_at_once_every_change_of_a_trigger_that_is_acknowledged_is_written_down() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let body = |id: &str| {
        json!({"id": id, "name": "t", "source": {"kind": "schedule", "when": {"every_ms": 86_400_000}},
            "run": {"command": ["true"], "dir": "/", "env": []}})
    };
    let mut refused = 0;
    for round in 0..20 {
        let start = Barrier::new(2);
        let at_once = |act: &(dyn Fn(usize) -> (u16, Value) + Sync)| -> Vec<(u16, Value)> {
            std::thread::scope(|scope| {
                let start = &start;
                let go = |client| {
                    scope.spawn(move || {
                        start.wait();
                        act(client)
                    })
                };
                let both: Vec<_> = (0..2).map(go).collect();
                both.into_iter().map(|it| it.join().expect("it is answered")).collect()
            })
        };
        let added =
            at_once(&|client| post(&home, "/v1/triggers", &body(&format!("a{round}c{client}"))));
        let won: Vec<usize> = (0..2).filter(|client| added[*client].0 == 201).collect();
        assert_eq!(won.len(), 1, "{added:?}");
        let lost = &added[1 - won[0]];
        assert_eq!((lost.0, code(&lost.1)), (409, "trigger_taken"), "{lost:?}");
        assert!(message(&lost.1).contains("by user"), "it says what was taken: {lost:?}");
        let id = str_of(&added[won[0]].1["trigger"], "id").to_owned();
        assert_eq!(str_of(&trigger(&home, "t"), "id"), id);
        let gone = at_once(&|client| match client {
            0 => ask(&home, "DELETE", &format!("/v1/triggers/t?id=d{round}c0&trigger_id={id}")),
            _ if round % 2 == 0 => {
                ask(&home, "DELETE", &format!("/v1/triggers/t?id=d{round}c1&trigger_id={id}"))
            }
            _ => post(
                &home,
                "/v1/triggers/t/pause",
                &json!({"id": format!("d{round}c1"), "trigger_id": id}),
            ),
        });
        for (client, (status, answer)) in gone.iter().enumerate() {
            let is_written = is_remembered(&home, &format!("d{round}c{client}"));
            match status {
                200 | 204 => assert!(is_written, "{status} {answer}"),
                _ => {
                    refused += 1;
                    assert!(!is_written, "{status} {answer}");
                    assert_eq!((*status, code(answer)), (409, "stale_order"), "{answer}");
                    assert!(
                        message(answer).contains("by user"),
                        "it says what was taken: {answer}"
                    );
                }
            }
        }
        assert!(gone.iter().any(|(status, _)| *status == 204), "{gone:?}");
        assert!(names(&home).is_empty());
    }
    assert!(refused >= 10, "two removals at once: one of them is refused");
}

/// Who a message is from is its sender's own word; who brought it is not.
#[test]
fn a_message_says_who_brought_it_beside_who_it_says_it_is_from() {
    let home = Home::new();
    let gate = Gate::new(&home, "gate");
    // A command that may be tried again can still read a message.
    let target = home.ok(&["run", "-d", "--retry", "1", "--", "sh", "-c", &gate.pass()]);
    home.pid(&target);
    let honest = home.start("sleep 600");
    let outlast = env!("CARGO_BIN_EXE_outlast");
    let script = format!(
        "'{outlast}' send {target} mine && OUTLAST_RUN_ID={honest} '{outlast}' send {target} forged"
    );
    let liar = home.ok(&["run", "-d", "--", "sh", "-c", &script]);
    assert_eq!(home.wait(&liar), 0);
    home.ok(&["send", &target, "from a person"]);
    let messages = until("all have come", || {
        let all: Vec<Value> = home
            .events(&target)
            .into_iter()
            .filter(|event| event["kind"] == "MessageReceived")
            .collect();
        (all.len() == 3).then_some(all)
    });
    let run = |id: &str| json!({"kind": "run", "run": id});
    let said: Vec<(&str, &Value)> =
        messages.iter().map(|it| (str_of(it, "from"), &it["by"])).collect();
    let (mine, forged) = (format!("run {liar}"), format!("run {honest}"));
    assert_eq!(said, [(mine.as_str(), &run(&liar)), (&forged, &run(&liar)), ("user", &me())]);
    home.ok(&["stop", "--now", &honest]);
    home.ok(&["stop", "--now", &target]);
}

#[test]
fn a_recovery_whose_answer_is_lost_is_no_failure() {
    let home = Home::new();
    let id = home.start("true");
    assert_eq!(home.wait(&id), 0);
    lose_journal(&home);
    home.ok(&["ps"]);
    let said = through_a_bad_line(&home, "/recover", 1, &["recover", &id]);
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    assert!(text(&said.stdout).contains("recovered before"), "{said:?}");
    assert_eq!(home.count(&id, "RunRecovered"), 1);
}

#[test]
fn a_removal_by_name_of_a_run_that_the_journal_forgot_removes_no_other_of_that_name() {
    let home = Home::new();
    let forgotten = home.ok(&["run", "-d", "--name", "build", "--", "true"]);
    assert_eq!(home.wait(&forgotten), 0);
    lose_journal(&home);
    home.ok(&["ps"]);
    let said = interrupted(&home, "DELETE", 1, &["rm", "build"], &|| {
        let id = home.ok(&["run", "-d", "--name", "build", "--", "true"]);
        assert_eq!(home.wait(&id), 0);
    });
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    assert_eq!(home.show("build")["name"], "build", "another client has made this one since");
}
