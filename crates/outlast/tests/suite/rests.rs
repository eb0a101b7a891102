//! How a loop rests: each reason to be blocked, which only a person ends, and each cause to wait.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Gate, Home, is_alive, kill, str_of, until};
use crate::loops::{Loop, assert_sound, outcomes, ran, request, rests, until_waiting, workspace};

#[test]
fn an_agent_that_asks_is_answered() {
    let home = Home::new();
    let script = "[ $OUTLAST_TURN = 1 ] && { say blocked 'left or right?'; exit; }; say done ok";
    let id = Loop::of(&home, script).start();
    let run = rests(&home, &id, "blocked", "agent_blocked");
    assert_eq!(str_of(&run["blocked"], "question"), "left or right?");
    assert_eq!(str_of(&run, "reason"), "left or right?");
    home.ok(&["answer", &id, "left"]);
    rests(&home, &id, "completed", "done");
    let messages = &request(&home, &id, 2, 1)["messages"];
    assert_eq!(messages[0]["text"], "left", "{messages}");
}

#[test]
fn what_needs_approval_is_not_said_before() {
    let home = Home::new();
    let id = Loop::of(&home, "say done 'the report'")
        .with("output: {require_approval_before_emit: true}")
        .start();
    let run = rests(&home, &id, "blocked", "needs_approval");
    assert_eq!(str_of(&run["blocked"], "question"), "the report");
    assert_eq!(home.count(&id, "Emitted"), 0);
    home.fails(2, &["resume", &id]);
    home.ok(&["answer", &id, "--approve"]);
    rests(&home, &id, "completed", "done");
    assert_eq!((home.count(&id, "Emitted"), ran(&home).len()), (1, 1));
}

#[test]
fn what_is_denied_is_never_said() {
    let home = Home::new();
    let id = Loop::of(&home, "say done 'the report'")
        .with("output: {require_approval_before_emit: true}")
        .start();
    rests(&home, &id, "blocked", "needs_approval");
    home.ok(&["answer", &id, "--deny"]);
    rests(&home, &id, "completed", "done");
    assert_eq!((home.count(&id, "Emitted"), home.count(&id, "EmissionDenied")), (0, 1));
}

#[test]
fn a_loop_that_is_not_ready_waits_for_a_person_to_make_it_so() {
    let home = Home::new();
    let id = Loop::of(&home, "say done ok")
        .with("checks: {before_run: ['true', 'test -e key || { echo no key; exit 1; }']}")
        .start();
    let run = rests(&home, &id, "blocked", "preflight_failed");
    assert!(str_of(&run, "reason").contains("no key"), "{run:#}");
    assert!(ran(&home).is_empty());
    // Asked again it says the same, until a person has done something.
    home.ok(&["resume", &id]);
    rests(&home, &id, "blocked", "preflight_failed");
    fs::write(workspace(&home).join("key"), "").expect("the workspace is ours");
    home.ok(&["resume", &id]);
    rests(&home, &id, "completed", "done");
    assert_eq!(ran(&home), ["1 1"]);
}

#[test]
fn done_in_vain_too_often_is_blocked() {
    let home = Home::new();
    let id = Loop::of(&home, "echo more >>file; say done 'now it is'")
        .with("checks: {done: ['true', 'echo 2 tests failed; test -e fixed']}")
        .with("limits: {no_progress_turns: 2}")
        .start();
    let run = rests(&home, &id, "blocked", "done_check_failed");
    assert_eq!(ran(&home), ["1 1", "2 1"]);
    assert!(str_of(&run, "reason").contains("test -e fixed"), "{run:#}");
    let failed = &request(&home, &id, 2, 1)["previous"]["failed_checks"][0];
    assert_eq!(str_of(failed, "output").trim(), "2 tests failed");
    fs::write(workspace(&home).join("fixed"), "").expect("the workspace is ours");
    home.ok(&["resume", &id]);
    rests(&home, &id, "completed", "done");
    assert_eq!(ran(&home), ["1 1", "2 1", "3 1"]);
}

#[test]
fn limits_left_has_both_sets_of_names_in_a_request() {
    let home = Home::new();
    let id = Loop::of(&home, "say done 'all of it'")
        .agent("max_turns: 9")
        .with("limits: {run_timeout: 1h, max_tokens: 1000, max_cost_usd: 2.5, max_attempts: 4}")
        .start();
    rests(&home, &id, "completed", "done");
    let left = &request(&home, &id, 1, 1)["limits_left"];
    for (name, alias, expected) in [
        ("turns", "max_turns", None),
        ("attempts", "max_attempts", Some(json!(4))),
        ("run_ms", "run_timeout_ms", None),
        ("tokens", "max_tokens", Some(json!(1000))),
        ("cost_usd", "max_cost_usd", Some(json!(2.5))),
    ] {
        assert!(left[name].is_number() && left[name] == left[alias], "{name}: {left}");
        assert!(expected.is_none_or(|expected| left[name] == expected), "{name}: {left}");
    }
}

#[test]
fn the_output_of_a_failed_check_has_no_terminal_sequences_in_the_next_prompt() {
    let home = Home::new();
    let link =
        r"printf '\033]8;;https://example.org\033\\ link\033]8;;\033\\ done\033Pq#0~~\033\\\n'";
    let id = Loop::of(&home, "echo more >>file; say done 'now it is'")
        .with(&format!("checks: {{done: [{}]}}", json!(format!("{link}; false"))))
        .with("limits: {no_progress_turns: 2}")
        .start();
    rests(&home, &id, "blocked", "done_check_failed");
    let failed = &request(&home, &id, 2, 1)["previous"]["failed_checks"][0];
    assert_eq!(str_of(failed, "output"), " link done\n");
    let prompt =
        fs::read_to_string(home.attempt_dir(&id, 2, 1).join("prompt.md")).expect("a prompt");
    assert!(prompt.contains("```\n link done\n```"), "{prompt}");
}

#[test]
fn a_loop_that_stalls_too_often_is_blocked() {
    let home = Home::new();
    let id = Loop::of(&home, "exec sleep 600")
        .with("limits: {stall_window_ms: 100, max_stall_restarts: 1, max_attempts: 1}")
        .start();
    let run = rests(&home, &id, "blocked", "stall_restarts_exhausted");
    assert_eq!(outcomes(&home, &id), ["stalled", "stalled"]);
    assert_eq!(run["restarts"], json!({"stall": 1, "crash": 0}));
    assert_eq!(str_of(&run, "checkpoint"), "created");
    assert_eq!(run["pid"], Value::Null);
    assert_eq!(request(&home, &id, 1, 2)["note"]["cause"], "stalled");
}

#[test]
fn turns_that_change_nothing_are_blocked() {
    let home = Home::new();
    let id = Loop::of(&home, "say continue \"thought about it, $OUTLAST_TURN\"")
        .with("limits: {no_progress_turns: 2}")
        .start();
    let run = rests(&home, &id, "blocked", "no_progress");
    assert_eq!(ran(&home), ["1 1", "2 1"]);
    assert_eq!(run["limits"]["no_progress_turns"], json!({"used": 2, "max": 2}));
    // A person's word is worth as many turns again.
    home.ok(&["resume", &id]);
    until("it has gone on", || (ran(&home).len() == 4).then_some(()));
    rests(&home, &id, "blocked", "no_progress");
    assert_eq!(ran(&home).len(), 4);
}

/// Pids that a script has left in a file, one a line.
fn pids(path: &std::path::Path, count: usize) -> Vec<u32> {
    until("the pids are there", || {
        let text = fs::read_to_string(path).ok().filter(|text| text.ends_with('\n'))?;
        let pids: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
        (pids.len() == count).then_some(pids)
    })
}

/// The shim dies, and what it held with it: how that ended is not observed.
fn kill_unseen(shim_and_command: &[u32]) {
    for pid in shim_and_command {
        kill(*pid, "KILL");
        until("it is dead", || (!is_alive(*pid)).then_some(()));
    }
}

#[test]
fn a_call_that_may_have_done_harm_is_not_made_again() {
    let home = Home::new();
    let seen = home.scratch().join("deployed");
    let script = r#"
        [ $OUTLAST_TURN = 1 ] || { say done ok; exit; }
        answer '{"status":"continue","summary":"deploying","tool_calls":[{"name":"deploy","input":{}}]}'"#;
    let tool = format!("printf '%s\\\\n' $PPID $$ >>'{}'; exec sleep 600", seen.display());
    let id = Loop::of(&home, script)
        .with(&format!("tools: [{{name: deploy, class: unsafe, command: [sh, -c, \"{tool}\"]}}]"))
        .start();
    kill_unseen(&pids(&seen, 2));
    let run = rests(&home, &id, "blocked", "unknown_call_outcome");
    assert!(str_of(&run, "reason").contains("deploy"), "{run:#}");
    assert_eq!(ran(&home), ["1 1"]);
    home.ok(&["resume", &id]);
    rests(&home, &id, "completed", "done");
    assert_eq!(pids(&seen, 2).len(), 2, "it was made again");
    let result = &request(&home, &id, 2, 1)["previous"]["tool_results"][0];
    assert_eq!((str_of(result, "name"), str_of(result, "status")), ("deploy", "unknown"));
}

#[test]
fn an_end_that_nobody_saw_is_for_a_person_if_the_file_says_so() {
    let home = Home::new();
    let seen = home.scratch().join("running");
    let script = format!(
        "[ $OUTLAST_ATTEMPT = 1 ] || {{ say done ok; exit; }}\nprintf '%s\\n' $PPID $$ >'{}'; exec sleep 600",
        seen.display()
    );
    let id = Loop::of(&home, &script).with("on_interrupt: block").start();
    kill_unseen(&pids(&seen, 2));
    let run = rests(&home, &id, "blocked", "interrupted");
    assert_eq!((outcomes(&home, &id), &run["exit"]), (vec!["lost".to_owned()], &Value::Null));
    home.ok(&["resume", &id]);
    rests(&home, &id, "completed", "done");
    assert_eq!(ran(&home), ["1 1", "1 2"]);
    assert_eq!(request(&home, &id, 1, 2)["note"]["cause"], "lost");
}

fn assert_still_waiting(home: &Home, id: &str, phase: &str, checkpoint: &str) {
    assert_still(home, id, "waiting", phase, checkpoint);
    let run = home.show(id);
    assert_eq!((str_of(&run, "phase"), str_of(&run, "checkpoint")), (phase, checkpoint));
}

/// `wait` runs out of patience and says where the run stands.
fn assert_still(home: &Home, id: &str, state: &str, phase: &str, checkpoint: &str) {
    let said = home.fails(124, &["wait", id, "--timeout", "1ms"]);
    let expected = format!("is still {state}; phase: {phase}; checkpoint: {checkpoint};");
    assert!(said.contains(&expected), "{said}");
}

#[test]
fn a_loop_waits_for_a_time_and_a_message_ends_it() {
    let home = Home::new();
    let script = r#"
        [ $OUTLAST_TURN = 1 ] || { say done ok; exit; }
        answer '{"status":"continue","summary":"later","wait":{"until":"2099-01-01T00:00:00Z"}}'"#;
    let id = Loop::of(&home, script).start();
    let run = until_waiting(&home, &id, "timer");
    assert_eq!(str_of(&run, "reason_code"), "timer");
    assert!(run["wake_at"].is_string(), "{run:#}");
    assert_still_waiting(&home, &id, "timer", "turn 1 committed");
    home.ok(&["send", &id, "now"]);
    rests(&home, &id, "completed", "done");
    assert_eq!(request(&home, &id, 2, 1)["messages"][0]["text"], "now");
}

#[test]
fn a_time_that_has_passed_is_not_waited_for() {
    let home = Home::new();
    let script = r#"
        [ $OUTLAST_TURN = 1 ] || { say done ok; exit; }
        answer '{"status":"continue","summary":"later","wait":{"until":"2001-01-01T00:00:00Z"}}'"#;
    let id = Loop::of(&home, script).start();
    rests(&home, &id, "completed", "done");
    assert_eq!(ran(&home), ["1 1", "2 1"]);
}

#[test]
fn a_loop_that_has_nothing_to_do_waits_until_it_is_told_something() {
    let home = Home::new();
    let script = r#"
        [ $OUTLAST_TURN = 3 ] && { say done ok; exit; }
        answer '{"status":"continue","summary":"idle","wait":{"message":true}}'"#;
    // Its time does not pass meanwhile.
    let id = Loop::of(&home, script).with("limits: {run_timeout_ms: 60000}").start();
    let run = until_waiting(&home, &id, "message");
    assert_eq!((str_of(&run, "reason_code"), &run["wake_at"]), ("message", &Value::Null));
    assert_still_waiting(&home, &id, "message", "turn 1 committed");
    home.ok(&["send", &id, "first"]);
    until("the second turn has committed", || {
        (home.show(&id)["turns_committed"] == 2).then_some(())
    });
    until_waiting(&home, &id, "message");
    home.ok(&["send", &id, "second"]);
    rests(&home, &id, "completed", "done");
    assert_eq!(request(&home, &id, 3, 1)["messages"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_paused_loop_ends_its_turn_and_starts_no_other() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script = format!(
        "[ $OUTLAST_TURN = 2 ] && {{ say done ok; exit; }}; {}; say continue on",
        gate.pass()
    );
    let id = Loop::of(&home, &script).start();
    until("the first turn runs", || (ran(&home).len() == 1).then_some(()));
    home.ok(&["pause", &id]);
    assert_eq!(str_of(&home.show(&id), "state"), "running");
    gate.open();
    let run = until_waiting(&home, &id, "paused");
    assert_eq!((str_of(&run, "reason_code"), &run["paused"]), ("paused", &json!(true)));
    assert_still_waiting(&home, &id, "paused", "turn 1 committed");
    assert_eq!(ran(&home), ["1 1"]);
    home.ok(&["resume", &id]);
    rests(&home, &id, "completed", "done");
    assert_eq!(ran(&home), ["1 1", "2 1"]);
}

#[test]
fn a_failed_attempt_waits_before_the_next() {
    let home = Home::new();
    let id = Loop::of(&home, "exit 1")
        .retry("retry: {initial_backoff_ms: 3600000, max_backoff_ms: 3600000}")
        .start();
    let run = until_waiting(&home, &id, "backoff");
    assert_eq!((str_of(&run, "reason_code"), &run["exit"]), ("exit_code", &json!({"code": 1})));
    assert!(run["wake_at"].is_string(), "{run:#}");
    assert_still_waiting(&home, &id, "backoff", "created");
    assert_eq!(ran(&home), ["1 1"]);
    home.ok(&["stop", &id]);
    rests(&home, &id, "stopped", "stopped");
    assert_eq!(ran(&home), ["1 1"]);
}

#[test]
fn a_loop_waits_while_others_have_all_the_places() {
    let home = Home::new();
    fs::write(home.path().join("config.toml"), "[concurrency]\nmax_runs = 1\n").expect("ours");
    let mut gate = Gate::new(&home, "gate");
    let script = r#"
        [ $OUTLAST_TURN = 2 ] && { say done ok; exit; }
        answer '{"status":"continue","summary":"idle","wait":{"message":true}}'"#;
    let resting = Loop::of(&home, script).start();
    until_waiting(&home, &resting, "message");
    let running = home.start(&gate.pass());
    home.pid(&running);
    // One that never ran is in the queue; one that rested waits for its place.
    let queued = home.start("true");
    assert_eq!(str_of(&home.show(&queued), "state"), "queued");
    home.ok(&["send", &resting, "go on"]);
    let run = until_waiting(&home, &resting, "slot");
    assert_eq!(str_of(&run, "reason_code"), "slot");
    assert_still_waiting(&home, &resting, "slot", "turn 1 committed");
    gate.open();
    assert_eq!((home.wait(&running), home.wait(&queued)), (0, 0));
    rests(&home, &resting, "completed", "done");
    assert_sound(&home);
}

#[test]
fn whoever_waits_in_vain_is_told_what_the_loop_is_at() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let at = home.scratch().join("at");
    let held = |what: &str| format!("echo {what} >{}; {}", at.display(), gate.pass());
    let quoted = |script: String| serde_json::to_string(&script).expect("plain data");
    let id = Loop::of(&home, &format!("{}; say done ok", held("turn")))
        .with(&format!("hooks: {{before_run: {}}}", quoted(held("hook"))))
        .with(&format!("checks: {{done: ['true', {}]}}", quoted(held("check"))))
        .start();
    let until_at = |what: &str| {
        until(what, || (fs::read_to_string(&at).ok()?.trim() == what).then_some(()));
    };
    until_at("hook");
    assert_still(&home, &id, "preparing", "hook before run", "created");
    gate.open();
    until_at("turn");
    assert_still(&home, &id, "running", "turn 1 attempt 1", "prepared");
    gate.open();
    until_at("check");
    assert_still(&home, &id, "verifying", "check done 2/2", "turn 1 committed");
    gate.open();
    rests(&home, &id, "completed", "done");
}
