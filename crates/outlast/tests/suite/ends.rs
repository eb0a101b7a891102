//! How a loop ends: each of the four ends, for each reason, as `wait` and `show` tell it.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Home, is_alive, str_of};
use crate::loops::{Loop, outcomes, ran, request, rests, workspace};

fn max_of(run: &Value, limit: &str) -> (Option<u64>, Option<u64>) {
    (run["limits"][limit]["used"].as_u64(), run["limits"][limit]["max"].as_u64())
}

#[test]
fn a_loop_whose_checks_agree_is_completed() {
    let home = Home::new();
    let script = r#"
        [ "$OUTLAST_TURN" = 1 ] && { say continue begun; exit; }
        touch result
        answer '{"status":"done","summary":"there it is","usage":{"input_tokens":30,"output_tokens":12,"cost_usd":0.5}}'"#;
    let id = Loop::of(&home, script)
        .agent("max_turns: 5")
        .with("checks: {done: ['test -e result']}")
        .with("limits: {max_tokens: 1000, max_cost_usd: 10, run_timeout_ms: 600000, turn_timeout_ms: 60000}")
        .start();
    let run = rests(&home, &id, "completed", "done");
    assert_eq!(ran(&home), ["1 1", "2 1"]);
    assert_eq!(run["turns_committed"], 2);
    assert_eq!(str_of(&run, "checkpoint"), "turn 2 committed");
    assert_eq!(str_of(&run, "summary"), "there it is");
    assert_eq!(str_of(&run, "outcome"), "exited");
    assert_eq!(run["restarts"], json!({"stall": 0, "crash": 0}));
    // The first turn did not say what it used: its share of each ceiling is charged, and marked.
    assert_eq!(run["usage"]["input_tokens"], 230);
    assert_eq!(
        (&run["usage"]["output_tokens"], &run["usage"]["known"]),
        (&json!(12), &json!(false))
    );
    assert_eq!(run["usage"]["cost_usd"], 2.5);
    assert_eq!(max_of(&run, "max_turns"), (Some(2), Some(5)));
    assert_eq!(max_of(&run, "max_tokens"), (Some(242), Some(1000)));
    assert_eq!(max_of(&run, "max_cost_usd_micros"), (Some(2_500_000), Some(10_000_000)));
    assert_eq!(max_of(&run, "run_timeout_ms").1, Some(600_000));
    assert_eq!(max_of(&run, "turn_timeout_ms").1, Some(60_000));
    assert_eq!(max_of(&run, "max_attempts"), (Some(1), Some(5)));
}

#[test]
fn an_agent_that_gives_up_has_failed() {
    let home = Home::new();
    let id = Loop::of(&home, "say failed 'there is no such branch'").start();
    let run = rests(&home, &id, "failed", "agent_failed");
    assert_eq!(str_of(&run, "reason"), "there is no such branch");
    assert_eq!(ran(&home), ["1 1"], "what gives up is not tried again");
}

#[test]
fn an_agent_that_exits_badly_has_failed_after_all_its_attempts() {
    let home = Home::new();
    let id = Loop::of(&home, "exit 7").with("limits: {max_attempts: 3}").start();
    let run = rests(&home, &id, "failed", "exit_code");
    assert_eq!(ran(&home), ["1 1", "1 2", "1 3"]);
    assert_eq!(run["exit"], json!({"code": 7}));
    assert_eq!(run["restarts"], json!({"stall": 0, "crash": 2}));
    assert_eq!(max_of(&run, "max_attempts"), (Some(3), Some(3)));
    assert_eq!(str_of(&run, "checkpoint"), "created");
    assert!(str_of(&run, "reason").contains("3 attempts"), "{run:#}");
}

#[test]
fn an_agent_that_answers_badly_has_failed_after_all_its_attempts() {
    let home = Home::new();
    let id = Loop::of(&home, "answer 'all done!'").with("limits: {max_attempts: 2}").start();
    let run = rests(&home, &id, "failed", "bad_response");
    assert_eq!(outcomes(&home, &id), ["bad_response", "bad_response"]);
    assert_eq!(ran(&home), ["1 1", "1 2"]);
    assert!(str_of(&run, "reason").contains("not JSON"), "{run:#}");
    assert_eq!(run["turns_committed"], 0);
    let note = &request(&home, &id, 1, 2)["note"];
    assert_eq!(note["cause"], "bad_response", "{note}");
}

#[test]
fn an_agent_that_is_not_there_never_started() {
    let home = Home::new();
    let id = Loop::running(&home, "command: [no-such-agent-anywhere]").start();
    let run = rests(&home, &id, "failed", "never_started");
    assert_eq!(outcomes(&home, &id), ["never_started"], "trying again cannot help");
    assert!(str_of(&run, "reason").contains("no-such-agent-anywhere"), "{run:#}");
    assert_eq!(run["exit"], Value::Null);
}

#[test]
fn a_hook_that_fails_before_the_run_ends_it() {
    let home = Home::new();
    let id = Loop::of(&home, "say done ok")
        .with("hooks: {before_run: 'echo no disk; exit 3', after_run: 'touch cleaned'}")
        .start();
    let run = rests(&home, &id, "failed", "before_run_failed");
    assert!(str_of(&run, "reason").contains("no disk"), "{run:#}");
    assert!(ran(&home).is_empty(), "an agent ran that was not to");
    assert!(!workspace(&home).join("cleaned").exists(), "there is nothing to clean up after");
}

#[test]
fn a_workspace_whose_hook_fails_is_discarded() {
    let home = Home::new();
    let id = Loop::of(&home, "say done ok")
        .with("workspace: {strategy: dir, root: made}\nhooks: {after_create: 'touch half; exit 1'}")
        .start();
    let run = rests(&home, &id, "failed", "after_create_failed");
    assert!(ran(&home).is_empty());
    assert!(!fs::exists(str_of(&run, "workspace")).expect("its parent is ours"), "{run:#}");
    assert_eq!(home.count(&id, "WorkspaceDiscarded"), 1);
}

#[test]
fn a_workspace_that_cannot_be_made_ends_the_run() {
    let home = Home::new();
    fs::write(home.scratch().join("file"), "in the way").expect("the scratch directory is ours");
    let id =
        Loop::of(&home, "say done ok").with("workspace: {strategy: dir, root: file/below}").start();
    let run = rests(&home, &id, "failed", "workspace_failed");
    assert!(str_of(&run, "reason").starts_with("no workspace: "), "{run:#}");
    assert!(ran(&home).is_empty());
}

#[test]
fn a_loop_that_is_stopped_is_stopped_and_nothing_of_it_is_left() {
    let home = Home::new();
    let id = Loop::of(&home, "[ $OUTLAST_TURN = 1 ] && { say continue on; exit; }; exec sleep 600")
        .start();
    let pid = crate::harness::until("the second turn runs", || {
        let run = home.show(&id);
        (run["turn"] == 2).then(|| run["pid"].as_u64()).flatten()
    });
    home.ok(&["stop", &id]);
    let run = rests(&home, &id, "stopped", "stopped");
    assert!(!is_alive(u32::try_from(pid).expect("a pid")));
    assert_eq!((&run["turns_committed"], str_of(&run, "outcome")), (&json!(1), "stopped"));
}

#[test]
fn a_blocked_loop_can_be_stopped_too() {
    let home = Home::new();
    let id = Loop::of(&home, "say blocked 'which one?'").start();
    rests(&home, &id, "blocked", "agent_blocked");
    home.ok(&["stop", &id]);
    rests(&home, &id, "stopped", "stopped");
    assert_eq!(ran(&home), ["1 1"]);
}

/// Changes something in every turn and never thinks that it is done.
const RESTLESS: &str = "echo more >>file; say continue more";

#[test]
fn a_loop_without_turns_left_is_exhausted() {
    let home = Home::new();
    let id = Loop::of(&home, RESTLESS).agent("max_turns: 2").start();
    let run = rests(&home, &id, "exhausted", "max_turns");
    assert_eq!(ran(&home), ["1 1", "2 1"]);
    assert_eq!(max_of(&run, "max_turns"), (Some(2), Some(2)));
}

#[test]
fn a_loop_without_tokens_left_is_exhausted() {
    let home = Home::new();
    let script = r#"
        echo more >>file
        answer '{"status":"continue","summary":"more","usage":{"input_tokens":500,"output_tokens":20,"cost_usd":0}}'"#;
    let id = Loop::of(&home, script).with("limits: {max_tokens: 1000}").start();
    let run = rests(&home, &id, "exhausted", "max_tokens");
    assert_eq!(ran(&home), ["1 1", "2 1"]);
    assert_eq!(
        run["usage"],
        json!({"input_tokens": 1000, "output_tokens": 40, "cached_tokens": 0, "cost_usd": 0.0,
            "known": true, "money_known": true, "tokens_known": true})
    );
}

#[test]
fn a_loop_without_money_left_is_exhausted() {
    let home = Home::new();
    let script = r#"
        echo more >>file
        answer '{"status":"continue","summary":"more","usage":{"input_tokens":1,"output_tokens":1,"cost_usd":0.75}}'"#;
    let id = Loop::of(&home, script).with("limits: {max_cost_usd: 1.5}").start();
    let run = rests(&home, &id, "exhausted", "max_cost_usd");
    assert_eq!(ran(&home), ["1 1", "2 1"]);
    assert_eq!((&run["usage"]["cost_usd"], &run["usage"]["known"]), (&json!(1.5), &json!(true)));
}

#[test]
fn a_loop_without_time_left_is_exhausted() {
    let home = Home::new();
    let id = Loop::of(&home, "exec sleep 600").with("limits: {run_timeout_ms: 300}").start();
    let run = rests(&home, &id, "exhausted", "run_timeout");
    assert!(ran(&home).len() <= 1, "{:?}", ran(&home));
    assert_eq!(max_of(&run, "run_timeout_ms").1, Some(300));
    assert_eq!(home.count(&id, "LimitReached"), 1);
}

#[test]
fn a_turn_that_takes_too_long_each_time_exhausts_the_run() {
    let home = Home::new();
    let id = Loop::of(&home, "exec sleep 600")
        .with("limits: {turn_timeout_ms: 100, max_attempts: 2}")
        .start();
    let run = rests(&home, &id, "exhausted", "turn_timeout");
    assert_eq!(outcomes(&home, &id), ["timed_out", "timed_out"]);
    assert_eq!(run["exit"], json!({"signal": 15}));
    assert_eq!(run["restarts"], json!({"stall": 0, "crash": 0}));
}

#[test]
fn a_stall_is_a_failure_like_any_other_if_the_file_says_so() {
    let home = Home::new();
    let id = Loop::of(&home, "exec sleep 600")
        .with("limits: {stall_window_ms: 100, max_stall_restarts: 0, max_attempts: 2}")
        .start();
    rests(&home, &id, "exhausted", "stall_window");
    assert_eq!(outcomes(&home, &id), ["stalled", "stalled"]);
}

#[test]
fn the_time_of_a_run_passes_while_its_agent_waits_for_a_later_one() {
    let home = Home::new();
    let script = r#"answer '{"status":"continue","summary":"later","wait":{"until":"2099-01-01T00:00:00Z"}}'"#;
    let id = Loop::of(&home, script).with("limits: {run_timeout_ms: 1000}").start();
    let run = rests(&home, &id, "exhausted", "run_timeout");
    assert_eq!((ran(&home).len(), str_of(&run, "checkpoint")), (1, "turn 1 committed"));
}

#[test]
fn the_time_of_a_run_passes_while_its_checks_run() {
    let home = Home::new();
    let pid = home.scratch().join("pid");
    let check = format!("echo $$ >{}; exec sleep 600", pid.display());
    let id = Loop::of(&home, "say done ok")
        .with(&format!("checks: {{done: ['{check}']}}"))
        .with("limits: {run_timeout_ms: 1000}")
        .start();
    rests(&home, &id, "exhausted", "run_timeout");
    let pid = fs::read_to_string(pid).expect("the check has run");
    assert!(!is_alive(pid.trim().parse().expect("a pid")));
    assert_eq!(ran(&home), ["1 1"]);
}

#[test]
fn whoever_watches_a_loop_gets_the_code_of_its_rest() {
    for (script, code) in [
        ("say done ok", 0),
        ("say failed no", 1),
        ("say blocked 'which?'", 3),
        ("echo more >>file; say continue on", 4),
    ] {
        let home = Home::new();
        let watched = Loop::of(&home, script).agent("max_turns: 2").watch();
        let said = crate::harness::text(&watched.stderr);
        assert_eq!(watched.status.code(), Some(code), "{script}: {said}");
    }
}
