//! What a person who watches a loop sees of it, and can say to it.

use std::io::Read;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{Background, Home, text};
use crate::stage::{RUN, Stage};
use crate::terminal::Terminal;

/// A home with a loop file in it.
fn home() -> Home {
    let home = Home::new();
    std::fs::write(home.scratch().join("WORKFLOW.md"), "Port it.\n").expect("it is ours");
    home
}

fn started(turn: u32, attempt: u32) -> Value {
    json!({"turn": turn, "attempt": attempt})
}

fn committed(turn: u32, status: &str, summary: &str) -> Value {
    json!({"turn": turn, "attempt": 1, "status": status, "summary": summary})
}

fn completes(stage: &Stage) {
    stage.happens("RunEnded", json!({"state": "completed"}));
    stage.is(json!({"state": "completed", "ended_at": "2026-11-15T12:00:00Z"}));
}

/// What a client has printed when it leaves, and its exit code.
fn left(mut client: Background) -> (String, String, i32) {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let (out, err) = (client.0.stdout.take(), client.0.stderr.take());
    out.expect("it is piped").read_to_end(&mut stdout).expect("it is open");
    err.expect("it is piped").read_to_end(&mut stderr).expect("it is open");
    (text(&stdout), text(&stderr), client.code())
}

fn watched(home: &Home, args: &[&str]) -> Background {
    let client = home.outlast(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    Background(client.expect("the program starts"))
}

#[test]
fn a_loop_in_a_pipe_is_told_line_by_line() {
    let home = home();
    let stage = Stage::new(&home);
    stage.warn("WORKFLOW.md:3: unknown key `agnet`");
    let client = watched(&home, &["run", "-f", "WORKFLOW.md", "--task", "port"]);
    stage.happens("TurnStarted", started(1, 1));
    stage.prints("the lexer\n");
    stage.happens("TurnCommitted", committed(1, "continue", "the lexer is there"));
    stage.happens("TurnStarted", started(2, 1));
    stage.happens("AttemptEnded", json!({"turn": 2, "attempt": 1, "outcome": "stalled"}));
    stage.happens(
        "StateChanged",
        json!({"from": "running", "to": "waiting", "cause": "backoff", "until": "2026-11-15T12:00:10Z",
            "reason": "silent for too long"}),
    );
    stage.happens("TurnStarted", started(2, 2));
    stage.happens("TurnCommitted", committed(2, "done", "so is the parser"));
    completes(&stage);
    let (stdout, stderr, code) = left(client);
    assert_eq!((stdout.as_str(), code), ("the lexer\n", 0), "{stderr}");
    let lines: Vec<&str> = stderr.lines().collect();
    let expected = [
        "warning: WORKFLOW.md:3: unknown key `agnet`",
        "turn 1 started",
        "turn 1 committed: the lexer is there",
        "turn 2 started",
        "turn 2 attempt 1 stalled, retry in 10s",
        "turn 2 attempt 2 started",
        "turn 2 committed: so is the parser",
    ];
    assert_eq!(lines, expected);
    let asked: Value = serde_json::from_str(&stage.asked("/v1/runs")[0]).expect("it is JSON");
    assert_eq!(asked["workflow"]["text"], "Port it.\n");
    assert_eq!(asked["command"], json!([]));
}

#[test]
fn a_single_command_is_watched_in_silence() {
    let home = home();
    let stage = Stage::new(&home);
    let client = watched(&home, &["run", "--retry", "1", "--", "true"]);
    stage.happens("TurnStarted", started(1, 1));
    stage.happens("AttemptEnded", json!({"turn": 1, "attempt": 1, "outcome": "lost"}));
    stage.happens("TurnStarted", started(1, 2));
    stage.prints("done\n");
    stage.happens("TurnCommitted", committed(1, "done", "all of it"));
    stage.until_asked("/events");
    completes(&stage);
    assert_eq!(left(client), ("done\n".to_owned(), String::new(), 0));
}

#[test]
fn a_command_that_turns_out_to_be_a_loop_is_told_from_there_on() {
    let home = home();
    let stage = Stage::new(&home);
    let client = watched(&home, &["run", "--", "true"]);
    stage.happens("TurnStarted", started(1, 1));
    stage.happens("TurnCommitted", committed(1, "continue", "half of it"));
    stage.happens("TurnStarted", started(2, 1));
    stage.is(json!({"turns_committed": 2}));
    completes(&stage);
    let (_, stderr, _) = left(client);
    let told = "turn 1 committed: half of it\nturn 2 started\n";
    assert_eq!(stderr, format!("{told}completed in 2m 30s · 2 turns\n"));
}

#[test]
fn a_loop_that_rests_says_why_and_how_to_go_on() {
    let home = home();
    let stage = Stage::new(&home);
    let client = watched(&home, &["run", "-f", "WORKFLOW.md"]);
    stage.happens("TurnStarted", started(1, 1));
    stage.is(json!({"state": "blocked", "reason": "the agent asks", "reason_code": "needs_input",
        "blocked": {"reason_code": "needs_input", "question": "which database?", "since": "2026-11-15T12:00:00Z"}}));
    let (_, stderr, code) = left(client);
    assert_eq!(code, 3, "{stderr}");
    for part in [
        "is blocked: the agent asks",
        "asks: which database?",
        "hint: outlast answer",
        "turn 1 started",
    ] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
}

#[test]
fn who_comes_later_is_told_where_the_loop_stands_and_not_what_was() {
    let home = home();
    let stage = Stage::new(&home);
    stage.happens("TurnStarted", started(1, 1));
    stage.happens("TurnCommitted", committed(1, "continue", "long ago"));
    stage.is(json!({"workflow": {"path": "/w", "sha256": "00"}, "phase": "turn 2 attempt 1",
        "checkpoint": "turn 1 committed", "turn": 2}));
    let client = watched(&home, &["attach", RUN]);
    stage.until_asked("/events");
    stage.happens("TurnCommitted", committed(2, "done", "now"));
    completes(&stage);
    let (_, stderr, code) = left(client);
    assert_eq!(code, 0, "{stderr}");
    let expected =
        "running: turn 2 attempt 1; last checkpoint: turn 1 committed\nturn 2 committed: now\n";
    let sum = stderr.strip_prefix(expected);
    assert_eq!(sum, Some("completed in 2m 30s · 0 turns\n"), "{stderr}");
}

/// The rows of a screen, without the blanks at their ends.
fn rows(screen: &vt100::Screen) -> Vec<String> {
    let (_, cols) = screen.size();
    screen.rows(0, cols.get()).map(|row| row.trim_end().to_owned()).collect()
}

/// The row below the one that shows `above`.
fn row_below(screen: &vt100::Screen, above: &str) -> String {
    let rows = rows(screen);
    let at = rows.iter().position(|row| row == above);
    at.and_then(|at| rows.get(at + 1).cloned()).unwrap_or_default()
}

#[test]
fn on_a_terminal_a_line_at_the_bottom_says_where_the_loop_stands() {
    let home = home();
    let stage = Stage::new(&home);
    let mut terminal = Terminal::new(12, 60);
    terminal.start(&home, &["run", "-f", "WORKFLOW.md"]);
    stage.is(json!({"phase": "turn 1 attempt 1"}));
    stage.happens("TurnStarted", started(1, 1));
    terminal.until("the line is below", |screen| {
        row_below(screen, "turn 1 started").starts_with("turn 1/20 · ")
    });
    stage.prints("building\n");
    terminal.until("it says what was said", |screen| {
        let line = row_below(screen, "building");
        line.starts_with("turn 1/20 · ") && line.ends_with(" · building")
    });
    let long = "x".repeat(200);
    stage.prints(&format!("{long}\n"));
    terminal.until("it is cut", |screen| {
        let rows = rows(screen);
        let line = rows.iter().rfind(|row| !row.is_empty());
        line.is_some_and(|line| line.starts_with("turn 1/20 · ") && line.ends_with("x…"))
    });
    stage.is(json!({"state": "verifying", "phase": "check done 1/2",
        "usage": {"input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "cost_usd": 0.25, "known": true}}));
    stage.happens("TurnCommitted", committed(1, "done", "built"));
    terminal.until("it says what it is at, and the cost", |screen| {
        let line = row_below(screen, "turn 1 committed: built");
        line.contains(" · check done 1/2 · ") && line.contains(" · $0.25 · ")
    });
    completes(&stage);
    assert_eq!(terminal.code(), 0);
    let rows = rows(terminal.screen());
    assert!(!rows.iter().any(|row| row.starts_with("turn 1/20 · ")), "it is gone: {rows:?}");
    assert!(
        rows[1].starts_with("run ") && rows[1].ends_with(r" · ctrl-\ leaves it running"),
        "{rows:?}"
    );
    assert_eq!(rows.iter().filter(|row| *row == "building").count(), 1, "{rows:?}");
}

#[test]
fn a_terminal_that_shall_be_plain_gets_plain_lines() {
    let home = home().env("NO_COLOR", "1");
    let stage = Stage::new(&home);
    let mut terminal = Terminal::new(12, 60);
    terminal.start(&home, &["run", "-f", "WORKFLOW.md"]);
    stage.happens("TurnStarted", started(1, 1));
    stage.prints("building\n");
    stage.happens("TurnCommitted", committed(1, "done", "built"));
    completes(&stage);
    assert_eq!(terminal.code(), 0);
    let rows = rows(terminal.screen());
    for line in ["turn 1 started", "building", "turn 1 committed: built"] {
        assert!(rows.iter().any(|row| row == line), "{line}: {rows:?}");
    }
    assert!(!rows.iter().any(|row| row.starts_with("turn 1/20")), "{rows:?}");
}

#[test]
fn a_message_whose_answer_is_lost_is_sent_again_as_the_same() {
    let home = home();
    let stage = Stage::new(&home);
    stage.lose_answers(1);
    assert_eq!(home.ok(&["send", RUN, "look at the tests"]), "m1");
    let sent = stage.asked("/messages");
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[0], sent[1]);
    let message: Value = serde_json::from_str(&sent[0]).expect("it is JSON");
    assert_eq!((&message["text"], message["id"].is_string()), (&"look at the tests".into(), true));
}

#[test]
fn what_is_said_to_a_run_reaches_it() {
    let home = home();
    let stage = Stage::new(&home);
    assert_eq!(home.ok(&["answer", RUN, "--approve"]), format!("answered {RUN}"));
    assert_eq!(home.ok(&["answer", RUN, "the second"]), format!("answered {RUN}"));
    assert_eq!(home.ok(&["pause", RUN]), format!("{RUN} pauses after its current turn"));
    assert_eq!(home.ok(&["resume", RUN, RUN]), format!("resumed {RUN}\nresumed {RUN}"));
    let answers = stage.asked("/answer").join(" ");
    assert!(answers.contains(r#""answer":"approve""#), "{answers}");
    assert!(answers.contains(r#""answer":{"text":"the second"}"#), "{answers}");
    assert_eq!((stage.asked("/pause").len(), stage.asked("/resume").len()), (1, 2));
}

#[test]
fn an_order_whose_answer_is_lost_is_given_again_as_the_same_order_and_a_refusal_of_it_is_said() {
    let home = home();
    let stage = Stage::new(&home);
    stage.is(json!({"seq": 9, "asks": {"seq": 7, "turn": 1, "kind": "approval"}}));
    for (verb, seq, args) in [
        ("/resume", 9, ["resume", RUN].as_slice()),
        ("/answer", 7, &["answer", RUN, "--deny"]),
        ("/answer", 5, &["answer", RUN, "--deny", "--seq", "5"]),
        ("/pause", 9, &["pause", RUN]),
    ] {
        let before = stage.asked(verb).len();
        stage.lose_answers(1);
        home.ok(args);
        let asked = stage.asked(verb);
        assert_eq!(asked.len(), before + 2, "{args:?}");
        assert_eq!(asked[before], asked[before + 1], "{args:?}");
        let order: Value = serde_json::from_str(&asked[before]).expect("it is JSON");
        assert_eq!((order["id"].is_string(), &order["seq"]), (true, &json!(seq)), "{args:?}");
    }
    // A daemon that knows the order by its id would not refuse it, so it was another's that was taken.
    for (code, args) in [
        ("not_paused", ["resume", RUN].as_slice()),
        ("already_answered", &["answer", RUN, "--deny"]),
    ] {
        stage.refuse_with(code);
        stage.lose_answers(1);
        home.fails(2, args);
    }
}

#[test]
fn who_waits_in_vain_learns_state_phase_and_checkpoint() {
    let home = home();
    let stage = Stage::new(&home);
    stage.is(
        json!({"state": "verifying", "phase": "check done 1/2", "checkpoint": "turn 4 committed"}),
    );
    let said = home.fails(124, &["wait", RUN, "--timeout", "10ms"]);
    for part in ["verifying", "check done 1/2", "turn 4 committed"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    stage.is(json!({"state": "blocked", "reason_code": "no_progress"}));
    home.fails(3, &["wait", RUN]);
}

#[test]
fn neither_a_command_nor_a_file_is_pointed_at_the_file_that_lies_there() {
    let home = home();
    let said = home.fails(2, &["run"]);
    assert!(said.contains("hint: outlast run -f WORKFLOW.md"), "{said}");
    let said = home.fails(2, &["run", "-f", "none.md"]);
    assert!(said.contains("no such file") && said.contains("none.md"), "{said}");
    assert!(!home.state().exists(), "a daemon was started for nothing");
}
