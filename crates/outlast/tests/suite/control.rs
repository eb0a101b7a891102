//! What is said to a loop while it goes on: at any moment, durable before it is answered, safe to repeat.

use serde_json::{Value, json};

use crate::harness::{Gate, Home, str_of, text, until};
use crate::hosted::{
    RETRY, becomes, begin, file, left, of_kind, post, refused, request, start, until_left,
    until_state, until_waiting,
};

fn texts(request: &Value) -> Vec<&str> {
    let messages = request["messages"].as_array().expect("a list");
    messages.iter().map(|message| str_of(message, "text")).collect()
}

/// Waits for a message, takes it, and is done.
const LISTENER: &str = r#"
if [ "$OUTLAST_TURN" = 1 ]; then
  respond '{"status":"continue","summary":"tell me","wait":{"message":true}}'
else say done told; fi"#;

#[test]
fn a_message_wakes_a_loop_that_waits_for_one() {
    let home = Home::new();
    let id = begin(&home, LISTENER, "");
    until_waiting(&home, &id, "message");
    home.ok(&["send", &id, "use port 80"]);
    becomes(&home, &id, "completed", "done");
    assert_eq!(texts(&request(&home, &id, 1, 1)), Vec::<&str>::new());
    let second = request(&home, &id, 2, 1);
    assert_eq!(texts(&second), ["use port 80"]);
    assert_eq!(second["messages"][0]["from"], "user");
    assert!(str_of(&second, "prompt").contains("user says: use port 80"), "{second:#}");
    assert_eq!(home.show(&id)["inbox"]["unread"], 0);
}

#[test]
fn a_message_wakes_a_loop_that_waits_for_a_time() {
    let home = Home::new();
    let agent = LISTENER.replace(r#""message":true"#, r#""until":"2999-01-01T00:00:00Z""#);
    let id = begin(&home, &agent, "limits: {run_timeout_ms: 0}");
    let waiting = until_waiting(&home, &id, "timer");
    assert_eq!(str_of(&waiting, "wake_at"), "2999-01-01T00:00:00.000Z");
    home.ok(&["send", &id, "now"]);
    becomes(&home, &id, "completed", "done");
    assert_eq!(texts(&request(&home, &id, 2, 1)), ["now"]);
}

#[test]
fn a_time_that_has_come_ends_a_wait_however_quiet_the_loop_is() {
    let home = Home::new();
    let agent = LISTENER.replace(r#""message":true"#, r#""until":"2001-01-01T00:00:00Z""#);
    let id = begin(&home, &agent, "output: {silent_unless_blocked: true}");
    becomes(&home, &id, "completed", "done");
    assert_eq!(home.count(&id, "TurnCommitted"), 2);
}

#[test]
fn a_message_given_to_an_attempt_that_died_is_given_again_and_gone_after_the_commit() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let agent = format!(
        r#"case "$OUTLAST_TURN.$OUTLAST_ATTEMPT" in
1.1) touch "$HOME/begun"; {}; say continue one;;
2.1) exit 3;;
2.2) say continue two;;
*) say done three;;
esac"#,
        gate.pass()
    );
    let id = begin(&home, &agent, "limits: {no_progress_turns: 0}");
    until("the first turn is at it", || home.scratch().join("begun").exists().then_some(()));
    home.ok(&["send", &id, "one thing"]);
    assert_eq!(home.show(&id)["inbox"]["unread"], 1);
    home.crash_daemon();
    home.ok(&["send", &id, "another"]);
    gate.open();
    becomes(&home, &id, "completed", "done");
    let given = [(1, 1), (2, 1), (2, 2), (3, 1)]
        .map(|(turn, attempt)| texts(&request(&home, &id, turn, attempt)).join(", "));
    assert_eq!(given, ["", "one thing, another", "one thing, another", ""]);
    assert!(str_of(&request(&home, &id, 2, 2)["note"], "text").contains("given again"));
    assert_eq!(home.show(&id)["inbox"]["unread"], 0);
}

#[test]
fn a_message_that_is_sent_again_under_its_id_is_there_once() {
    let home = Home::new();
    let id = begin(&home, LISTENER, "");
    until_waiting(&home, &id, "message");
    home.ok(&["pause", &id]);
    let (path, body) = (format!("/v1/runs/{id}/messages"), json!({"id": "m-1", "text": "once"}));
    assert_eq!(post(&home, &path, &body), (202, json!({"message": "m-1", "existed": false})));
    assert_eq!(post(&home, &path, &body), (202, json!({"message": "m-1", "existed": true})));
    home.crash_daemon();
    home.daemon_if_up().unwrap_or_else(|| {
        home.ok(&["ps"]);
        home.daemon_pid()
    });
    assert_eq!(post(&home, &path, &body).1["existed"], true);
    home.ok(&["resume", &id]);
    becomes(&home, &id, "completed", "done");
    assert_eq!(texts(&request(&home, &id, 2, 1)), ["once"]);
    let (status, answer) = post(&home, &path, &body);
    assert_eq!((status, &answer["existed"]), (202, &true.into()), "it was said in time: {answer}");
    assert_eq!(of_kind(&home, &id, "MessageReceived").len(), 1);
}

/// Asks a person, and is done once it is told.
const ASKER: &str = r#"
if [ "$OUTLAST_TURN" = 1 ]; then say blocked 'which port?'; else say done thanks; fi"#;

#[test]
fn a_message_alone_does_not_release_a_blocked_loop_and_an_answer_does() {
    let home = Home::new();
    let id = begin(&home, ASKER, "");
    let run = becomes(&home, &id, "blocked", "agent_blocked");
    assert_eq!(str_of(&run["blocked"], "question"), "which port?");
    home.ok(&["send", &id, "by the way"]);
    home.crash_daemon();
    home.ok(&["ps"]);
    let run = home.show(&id);
    assert_eq!((&run["state"], &run["inbox"]["unread"]), (&"blocked".into(), &1.into()));
    home.ok(&["answer", &id, "port 80"]);
    becomes(&home, &id, "completed", "done");
    assert_eq!(texts(&request(&home, &id, 2, 1)), ["by the way", "port 80"]);
    let answered = of_kind(&home, &id, "Answered");
    assert_eq!(
        (str_of(&answered[0], "decision"), str_of(&answered[0], "actor")),
        ("reply", "user")
    );
}

#[test]
fn a_loop_that_is_blocked_without_a_word_is_released_too() {
    let home = Home::new();
    let id = begin(&home, &ASKER.replace("'which port?'", "''"), "");
    becomes(&home, &id, "blocked", "agent_blocked");
    home.ok(&["answer", &id, "go on"]);
    becomes(&home, &id, "completed", "done");
    assert_eq!(home.count(&id, "TurnCommitted"), 2);
}

#[test]
fn an_agent_that_asked_hears_a_yes_and_a_no() {
    let home = Home::new();
    for (flag, heard) in [("--approve", "approved"), ("--deny", "denied")] {
        let id = begin(&home, ASKER, "");
        becomes(&home, &id, "blocked", "agent_blocked");
        home.ok(&["answer", &id, flag]);
        becomes(&home, &id, "completed", "done");
        assert_eq!(texts(&request(&home, &id, 2, 1)), [heard]);
    }
}

#[test]
fn an_answer_that_is_given_twice_counts_once() {
    let home = Home::new();
    let agent =
        r#"if [ "$OUTLAST_TURN" -lt 3 ]; then say blocked "$OUTLAST_TURN?"; else say done x; fi"#;
    let id = begin(&home, agent, "");
    becomes(&home, &id, "blocked", "agent_blocked");
    let (path, body) =
        (format!("/v1/runs/{id}/answer"), json!({"id": "a-1", "answer": {"text": "yes"}}));
    assert_eq!(post(&home, &path, &body).0, 202);
    until("it asks again", || {
        let run = home.show(&id);
        (run["turns_committed"] == 2 && run["state"] == "blocked").then_some(())
    });
    assert_eq!(post(&home, &path, &body).0, 202);
    assert_eq!(str_of(&home.show(&id), "state"), "blocked", "that was the answer before");
    assert_eq!(of_kind(&home, &id, "Answered").len(), 1);
}

#[test]
fn a_pause_during_a_turn_rests_after_it_and_outlasts_the_daemon() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let agent = format!(
        "echo \"$OUTLAST_TURN\" >>\"$HOME/turns\"\nif [ \"$OUTLAST_TURN\" = 1 ]; then {}; say continue x; else say done y; fi",
        gate.pass()
    );
    let id = begin(&home, &agent, "");
    until_left(&home, "turns");
    home.ok(&["pause", &id]);
    home.ok(&["pause", &id]);
    let run = home.show(&id);
    assert_eq!((&run["state"], &run["paused"]), (&"running".into(), &true.into()), "it goes on");
    gate.open();
    let run = until_waiting(&home, &id, "paused");
    assert_eq!((&run["turns_committed"], &run["paused"]), (&1.into(), &true.into()));
    home.crash_daemon();
    home.ok(&["ps"]);
    until_waiting(&home, &id, "paused");
    assert_eq!(left(&home, "turns"), ["1"]);
    home.ok(&["resume", &id]);
    becomes(&home, &id, "completed", "done");
    assert_eq!((left(&home, "turns").len(), of_kind(&home, &id, "PauseRequested").len()), (2, 2));
}

#[test]
fn a_pause_during_a_delay_keeps_the_delay() {
    let home = Home::new();
    let slow = "retry: {initial_backoff_ms: 600000, max_backoff_ms: 600000}";
    let path = file(&home, "loop", "exit 1", "");
    let text = std::fs::read_to_string(&path).expect("it was written").replace(RETRY, slow);
    crate::hosted::put(path.as_ref(), &text);
    let id = start(&home, &path, &[]);
    let due = until_waiting(&home, &id, "backoff")["wake_at"].clone();
    assert!(due.is_string(), "{due}");
    home.ok(&["pause", &id]);
    let run = home.show(&id);
    assert_eq!((&run["state"], &run["paused"]), (&"waiting".into(), &true.into()));
    home.ok(&["resume", &id]);
    let run = home.show(&id);
    assert_eq!(
        (&run["phase"], &run["wake_at"]),
        (&"backoff".into(), &due),
        "neither less nor more"
    );
    home.ok(&["stop", &id]);
    becomes(&home, &id, "stopped", "stopped");
}

#[test]
fn a_loop_is_stopped_wherever_it_rests() {
    let home = Home::new();
    let asks = begin(&home, ASKER, "");
    becomes(&home, &asks, "blocked", "agent_blocked");
    let waits = begin(&home, LISTENER, "");
    until_waiting(&home, &waits, "message");
    home.ok(&["pause", &waits]);
    home.crash_daemon();
    for id in [&asks, &waits] {
        home.ok(&["stop", id]);
        let run = becomes(&home, id, "stopped", "stopped");
        assert_eq!(run["turns_committed"], 1);
        home.ok(&["stop", id]);
        assert_eq!(of_kind(&home, id, "StopRequested").len(), 1);
    }
}

#[test]
fn orders_that_make_no_sense_are_refused_with_a_hint() {
    let home = Home::new();
    let over = begin(&home, "say done x", "");
    becomes(&home, &over, "completed", "done");
    let waits = begin(&home, LISTENER, "");
    until_waiting(&home, &waits, "message");
    let asks = begin(&home, "say done x", "output: {require_approval_before_emit: true}");
    becomes(&home, &asks, "blocked", "needs_approval");
    for (code, hint, args) in [
        ("has_ended", "outlast rerun", vec!["send", &over, "x"]),
        ("has_ended", "outlast rerun", vec!["answer", &over, "x"]),
        ("has_ended", "outlast rerun", vec!["pause", &over]),
        ("has_ended", "outlast rerun", vec!["resume", &over]),
        ("not_blocked", "outlast send", vec!["answer", &waits, "x"]),
        ("not_blocked", "outlast send", vec!["answer", &waits, "--approve"]),
        ("not_paused", "nothing to resume", vec!["resume", &waits]),
        ("needs_decision", "--approve", vec!["answer", &asks, "x"]),
        ("needs_decision", "--approve", vec!["resume", &asks]),
    ] {
        let said = home.fails(2, &args);
        assert!(said.contains("\nhint: ") && said.contains(hint), "{args:?}: {said}");
        let error = refused(&home, &[&args[..], &["--json"]].concat());
        assert_eq!(str_of(&error, "code"), code, "{args:?}");
    }
    assert_eq!(home.count(&over, "MessageReceived"), 0);
    until_state(&home, &asks, "blocked");
}

#[test]
fn a_message_may_be_so_long_and_no_longer() {
    let home = Home::new();
    let id = begin(&home, LISTENER, "");
    until_waiting(&home, &id, "message");
    let long = "x".repeat((64 << 10) + 1);
    let error = refused(&home, &["send", &id, &long, "--json"]);
    assert!(str_of(&error, "message").contains("65537 bytes"), "{error}");
    assert!(error["hint"].is_string(), "{error}");
    for blank in ["", "  \n"] {
        refused(&home, &["send", &id, blank, "--json"]);
    }
    until_waiting(&home, &id, "message");
    home.ok(&["send", &id, &long[1..]]);
    becomes(&home, &id, "completed", "done");
    assert_eq!(texts(&request(&home, &id, 2, 1)), [&long[1..]]);
}

#[test]
fn what_needs_approval_leaves_only_with_it() {
    let home = Home::new();
    let policy = "output: {require_approval_before_emit: true}";
    for (flag, emitted) in [("--approve", 1), ("--deny", 0)] {
        let id = begin(&home, "say done 'the release is out'", policy);
        let run = becomes(&home, &id, "blocked", "needs_approval");
        assert_eq!(str_of(&run["blocked"], "question"), "the release is out");
        assert_eq!(of_kind(&home, &id, "Emitted").len(), 0);
        home.crash_daemon();
        home.ok(&["answer", &id, flag]);
        becomes(&home, &id, "completed", "done");
        let left = of_kind(&home, &id, "Emitted");
        assert_eq!(left.len(), emitted, "{flag}");
        assert_eq!(of_kind(&home, &id, "EmissionDenied").len(), 1 - emitted);
        for event in left {
            assert_eq!(
                (&event["to"], &event["text"]),
                (&json!(["log"]), &"the release is out".into())
            );
        }
    }
}

#[test]
fn a_loop_that_talks_to_another_is_known_by_its_id() {
    let home = Home::new();
    let ear = begin(&home, LISTENER, "");
    until_waiting(&home, &ear, "message");
    let outlast = env!("CARGO_BIN_EXE_outlast");
    let mouth = file(&home, "mouth", &format!("{outlast} send {ear} 'it is up' && say done x"), "");
    let mouth = start(&home, &mouth, &[]);
    becomes(&home, &mouth, "completed", "done");
    becomes(&home, &ear, "completed", "done");
    let message = &request(&home, &ear, 2, 1)["messages"][0];
    assert_eq!(str_of(message, "from"), format!("run {mouth}"));
    assert_eq!(text(str_of(message, "text").as_bytes()), "it is up");
}

/// A loop that is held up in one place of its life, which it names.
fn held_up(home: &Home, place: &str, gate: &Gate) -> String {
    let hold = format!("echo {place} >>\"$HOME/places\"; {}", gate.pass());
    let turn = if place == "turn" { hold.clone() } else { String::new() };
    let agent = format!("{turn}\nsay done x");
    let block = |key: &str| format!("{key}: |\n      {hold}");
    let settings = match place {
        "before_run" | "after_turn" | "after_run" => format!("hooks:\n    {}", block(place)),
        "check" => format!("checks:\n    done:\n      - |\n        {hold}"),
        "preflight" => format!("checks:\n    before_run:\n      - |\n        {hold}"),
        _ => String::new(),
    };
    begin(home, &agent, &settings)
}

#[test]
fn a_loop_hears_at_any_moment() {
    for place in ["preflight", "before_run", "turn", "after_turn", "check", "after_run"] {
        let home = Home::new();
        let mut gate = Gate::new(&home, "gate");
        let id = held_up(&home, place, &gate);
        until_left(&home, "places");
        home.ok(&["send", &id, "hello"]);
        home.ok(&["pause", &id]);
        home.crash_daemon();
        let run = home.show(&id);
        assert_eq!((&run["paused"], &run["inbox"]["unread"]), (&true.into(), &1.into()), "{place}");
        gate.open();
        // Nothing new is started; what has come to its end is over.
        match place {
            "preflight" | "before_run" => {
                until_waiting(&home, &id, "paused");
                assert_eq!(home.count(&id, "TurnStarted"), 0, "{place}");
                home.ok(&["resume", &id]);
            }
            _ => {}
        }
        becomes(&home, &id, "completed", "done");
        assert_eq!(home.count(&id, "TurnCommitted"), 1, "{place}");
        let heard =
            if ["preflight", "before_run"].contains(&place) { vec!["hello"] } else { vec![] };
        assert_eq!(texts(&request(&home, &id, 1, 1)), heard, "{place}");
    }
}

#[test]
fn a_loop_is_stopped_at_any_moment() {
    let home = Home::new();
    let gate = Gate::new(&home, "gate");
    for place in ["preflight", "before_run", "turn", "after_turn", "check"] {
        let id = held_up(&home, place, &gate);
        until("it is there", || (left(&home, "places").last()? == place).then_some(()));
        home.ok(&["stop", &id]);
        let run = becomes(&home, &id, "stopped", "stopped");
        assert_eq!(run["survivors"], json!([]), "{place}");
        assert_eq!(home.count(&id, "RunEnded"), 1, "{place}");
    }
}
