//! Silence: what is ended for it, what is not, and what the next attempt hears of it.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Gate, Home, kill, str_of, until};

/// Writes a loop file and starts it.
pub(crate) fn start(home: &Home, file: &str) -> String {
    let path = home.scratch().join("WORKFLOW.md");
    fs::write(&path, file).expect("the scratch directory is ours");
    home.ok(&["run", "-d", "-f", path.to_str().expect("the path is text")])
}

/// A loop whose `file` agent is this script, with this window of silence.
fn a_loop(script: &str, window_ms: u64, restarts: u32) -> String {
    let script = script.replace('\n', "\n    ");
    format!(
        "---\nagent:\n  kind: file\n  command: |\n    {script}\n\
         limits: {{ stall_window_ms: {window_ms}, max_stall_restarts: {restarts} }}\n\
         retry: {{ initial_backoff_ms: 10, max_backoff_ms: 20 }}\n---\nDo it.\n"
    )
}

/// What the agent says when it answers.
pub(crate) fn says(status: &str) -> String {
    format!(
        r#"echo '{{"status":"{status}","summary":"turn '$OUTLAST_TURN'"}}' > "$OUTLAST_RESPONSE_FILE""#
    )
}

fn outcomes(home: &Home, id: &str) -> Vec<String> {
    let ended = home.events(id).into_iter().filter(|event| event["kind"] == "AttemptEnded");
    ended.map(|event| outcome(&event)).collect()
}

fn outcome(event: &Value) -> String {
    format!("{}.{} {}", event["turn"], event["attempt"], str_of(event, "outcome"))
}

#[test]
fn a_silent_agent_is_ended_and_started_again_with_a_note_until_it_has_been_too_often() {
    let home = Home::new();
    let seen = home.scratch().join("seen");
    let script = format!(
        "cp \"$OUTLAST_REQUEST_FILE\" '{0}.request.'$OUTLAST_ATTEMPT\n\
         cp \"$OUTLAST_PROMPT_FILE\" '{0}.prompt.'$OUTLAST_ATTEMPT\n\
         echo \"here is attempt $OUTLAST_ATTEMPT\"\nsleep 600 & wait",
        seen.display()
    );
    let id = start(&home, &a_loop(&script, 800, 2));
    assert_eq!(home.wait(&id), 3);
    let run = home.show(&id);
    assert_eq!(
        (str_of(&run, "state"), str_of(&run, "reason_code")),
        ("blocked", "stall_restarts_exhausted")
    );
    assert_eq!(run["restarts"], json!({"stall": 2, "crash": 0}));
    assert_eq!(outcomes(&home, &id), ["1.1 stalled", "1.2 stalled", "1.3 stalled"]);
    let first: Value = serde_json::from_str(&read(&seen, "request.1")).expect("a request is JSON");
    assert_eq!(
        (&first["turn"], &first["attempt"], &first["note"]),
        (&json!(1), &json!(1), &Value::Null)
    );
    for attempt in 2..=3 {
        let request: Value = serde_json::from_str(&read(&seen, &format!("request.{attempt}")))
            .expect("a request is JSON");
        assert_eq!((&request["turn"], &request["attempt"]), (&json!(1), &json!(attempt)));
        assert_eq!(str_of(&request["note"], "cause"), "stalled");
        let told = [
            str_of(&request["note"], "text").to_owned(),
            read(&seen, &format!("prompt.{attempt}")),
        ];
        for text in told.map(|text| text.to_lowercase()) {
            assert!(text.contains("continue"), "{text}");
            assert!(text.contains(&format!("turn 1, attempt {attempt}")), "{text}");
        }
    }
    for attempt in 1..=3 {
        let logs = home.ok(&["logs", &id, "--turn", "1", "--attempt", &attempt.to_string()]);
        assert_eq!(logs, format!("here is attempt {attempt}"));
        assert!(home.attempt_dir(&id, 1, attempt).join("events.jsonl").exists());
    }
    let left: Vec<u32> = home.processes().into_iter().filter(|pid| is_a(*pid, "sleep")).collect();
    assert_eq!(left, Vec::<u32>::new(), "a silent attempt left a process behind");
}

fn read(seen: &std::path::Path, what: &str) -> String {
    let path = format!("{}.{what}", seen.display());
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn is_a(pid: u32, name: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.trim() == name)
}

/// The grandchild works for longer than two windows, says nothing, and beats.
#[test]
fn who_works_quietly_and_beats_is_left_alone() {
    let home = Home::new();
    let script = format!(
        "end=$(($(date +%s%N) + 2500000000))\n\
         while [ \"$(date +%s%N)\" -lt $end ]; do touch \"$OUTLAST_HEARTBEAT_FILE\"; sleep 0.1; done &\n\
         wait\n{}",
        says("done")
    );
    let id = start(&home, &a_loop(&script, 1200, 0));
    assert_eq!(home.wait(&id), 0, "{}", home.ok(&["events", &id]));
    assert_eq!(outcomes(&home, &id), ["1.1 exited"]);
    assert_eq!(home.show(&id)["restarts"], json!({"stall": 0, "crash": 0}));
}

/// What a suspended laptop looks like: every process stands still, and no silence grows.
#[test]
fn a_tree_that_stood_still_with_its_shim_and_daemon_was_not_silent() {
    let window = Duration::from_millis(1000);
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let reached = home.scratch().join("reached");
    let script = format!("touch '{}'\n{}\n{}", reached.display(), gate.pass(), says("done"));
    let id = start(&home, &a_loop(&script, 1000, 0));
    until("the agent works", || reached.exists().then_some(()));
    let everybody = home.processes();
    everybody.iter().for_each(|pid| kill(*pid, "STOP"));
    let stopped = Instant::now();
    until("the window has passed", || (stopped.elapsed() > window * 3 / 2).then_some(()));
    everybody.iter().for_each(|pid| kill(*pid, "CONT"));
    gate.open();
    assert_eq!(home.wait(&id), 0, "{}", home.ok(&["events", &id]));
    assert_eq!(outcomes(&home, &id), ["1.1 exited"]);
}

/// Each turn has to be started twice, and one restart is all that is allowed in a row.
#[test]
fn a_committed_turn_forgives_the_silence_before_it() {
    let home = Home::new();
    let script = format!(
        "touch \"t$OUTLAST_TURN\"\n[ $OUTLAST_ATTEMPT -gt 1 ] || exec sleep 600\n\
         if [ $OUTLAST_TURN -lt 3 ]; then {}; else {}; fi",
        says("continue"),
        says("done")
    );
    let id = start(&home, &a_loop(&script, 700, 1));
    assert_eq!(home.wait(&id), 0, "{}", home.ok(&["events", &id]));
    let expected =
        ["1.1 stalled", "1.2 exited", "2.1 stalled", "2.2 exited", "3.1 stalled", "3.2 exited"];
    assert_eq!(outcomes(&home, &id), expected);
    assert_eq!(home.show(&id)["restarts"], json!({"stall": 3, "crash": 0}));
}

/// The shim keeps the window by itself, and the next daemon learns why.
#[test]
fn silence_ends_an_attempt_while_no_daemon_lives() {
    let home = Home::new();
    let script = format!("[ $OUTLAST_ATTEMPT -gt 1 ] || exec sleep 600\n{}", says("done"));
    let id = start(&home, &a_loop(&script, 700, 1));
    let shim = home.shim_pid(&id);
    home.ok(&["daemon", "stop"]);
    until("the shim has gone", || (!crate::harness::is_alive(shim)).then_some(()));
    assert_eq!(home.wait(&id), 0);
    assert_eq!(outcomes(&home, &id), ["1.1 stalled", "1.2 exited"]);
}
