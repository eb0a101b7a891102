//! Agents that do what they should not: each ends within its ceilings, and nothing of it is left.

use std::fs;
use std::os::unix::fs::MetadataExt;

use serde_json::json;

use crate::disk_full::SmallDisk;
use crate::harness::{Home, is_alive, str_of, until};
use crate::loops::{Loop, outcomes, ran, request, rests, workspace};

/// The pids that the agent's attempts have left in the scratch directory.
fn pids(home: &Home) -> Vec<u32> {
    let text = fs::read_to_string(home.scratch().join("pids")).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

fn assert_all_dead(home: &Home, count: usize) {
    let pids = pids(home);
    assert_eq!(pids.len(), count, "{pids:?}");
    assert!(pids.iter().all(|pid| !is_alive(*pid)), "{pids:?}");
}

/// A script that first leaves its pid.
fn marked(home: &Home, script: &str) -> String {
    format!("PIDS='{}'\necho $$ >>\"$PIDS\"\n{script}", home.scratch().join("pids").display())
}

#[test]
fn one_that_is_silent_for_ever() {
    let home = Home::new();
    let id = Loop::of(&home, &marked(&home, "echo hello; sleep 600 & wait"))
        .with("limits: {stall_window_ms: 100, max_stall_restarts: 2}")
        .start();
    let run = rests(&home, &id, "blocked", "stall_restarts_exhausted");
    assert_eq!(outcomes(&home, &id), ["stalled"; 3]);
    assert_eq!(run["restarts"]["stall"], 2);
    assert_all_dead(&home, 3);
}

#[test]
fn one_that_never_stops_talking() {
    let home = Home::new();
    let id = Loop::of(&home, &marked(&home, "exec yes 'and another thing'"))
        .with("limits: {turn_timeout_ms: 300, stall_window_ms: 60000, max_attempts: 2}")
        .start();
    let run = rests(&home, &id, "exhausted", "turn_timeout");
    assert!(run["output_bytes"].as_u64() > Some(0));
    for attempt in 1..=2 {
        let output = home.attempt_dir(&id, 1, attempt).join("output.log");
        let on_disk = fs::metadata(output).expect("it has written").blocks() * 512;
        // Head and tail, and what the spool lets gather before it gives the middle back.
        assert!(on_disk <= (16 + 48 + 4) << 20, "{on_disk} bytes are kept of attempt {attempt}");
    }
    assert_all_dead(&home, 2);
}

#[test]
fn one_that_always_wants_another_turn() {
    let home = Home::new();
    let id = Loop::of(&home, "echo more >>file; say continue 'nearly there'")
        .agent("max_turns: 4")
        .start();
    rests(&home, &id, "exhausted", "max_turns");
    assert_eq!(ran(&home).len(), 4);
}

#[test]
fn one_that_always_says_done_and_is_not() {
    let home = Home::new();
    let id = Loop::of(&home, "echo more >>file; say done \"for sure, $OUTLAST_TURN\"")
        .with("checks: {done: ['false']}")
        .start();
    rests(&home, &id, "blocked", "done_check_failed");
    assert_eq!(ran(&home), ["1 1", "2 1", "3 1"], "as many as the default allows");
}

#[test]
fn one_that_alternates_between_done_and_continue_to_dodge_the_count() {
    let home = Home::new();
    let script = r#"
        echo more >>file
        [ $((OUTLAST_TURN % 3)) = 0 ] && { say continue hm; exit; }
        say done sure"#;
    let id =
        Loop::of(&home, script).agent("max_turns: 7").with("checks: {done: ['false']}").start();
    rests(&home, &id, "exhausted", "max_turns");
    assert_eq!(ran(&home).len(), 7);
}

#[test]
fn one_that_reports_success_and_changes_nothing() {
    let home = Home::new();
    let id = Loop::of(&home, "say continue \"made great progress, part $OUTLAST_TURN\"").start();
    rests(&home, &id, "blocked", "no_progress");
    assert_eq!(ran(&home), ["1 1", "2 1", "3 1"]);
    let events = home.events(&id);
    let committed = events.iter().filter(|event| event["kind"] == "TurnCommitted");
    assert!(committed.into_iter().all(|event| event["outcome"] == "no_op_success"));
}

/// What it leaves where its response should be, by attempt, and what is said of that.
const BAD_RESPONSES: [(&str, &str); 9] = [
    ("printf 'all done!' >$R", "not JSON"),
    ("printf '{\"status\":\"do' >$R", "ends too early"),
    (": >$R", "empty"),
    ("printf '{\"status\":\"done\",\"summary\":\"ok\"}' >real; ln -s \"$PWD/real\" $R", "symlink"),
    ("ln -s /dev/zero $R", "symlink"),
    ("mkfifo $R", "no regular file"),
    ("mkdir $R", "no regular file"),
    ("truncate -s 1G $R", "larger than 1 MiB"),
    ("printf '{\"status\":\"victory\"}' >$R", "status"),
];

#[test]
fn one_whose_responses_are_anything_but() {
    let home = Home::new();
    let cases: Vec<String> = (1..)
        .zip(BAD_RESPONSES)
        .map(|(attempt, (script, _))| format!("{attempt}) {script} ;;"))
        .collect();
    let script = format!(
        "R=$OUTLAST_RESPONSE_FILE\ncase $OUTLAST_ATTEMPT in\n{}\n*) say done 'at last' ;;\nesac",
        cases.join("\n")
    );
    let id = Loop::of(&home, &script).with("limits: {max_attempts: 20}").start();
    let run = rests(&home, &id, "completed", "done");
    let events = home.events(&id);
    let whys: Vec<&str> = events
        .iter()
        .filter(|event| event["kind"] == "AttemptEnded" && event["outcome"] == "bad_response")
        .map(|event| str_of(event, "why"))
        .collect();
    assert_eq!(whys.len(), BAD_RESPONSES.len(), "{whys:?}");
    for (why, (_, expected)) in whys.iter().zip(BAD_RESPONSES) {
        assert!(why.contains(expected), "{why:?} does not say {expected:?}");
    }
    assert_eq!((&run["turns_committed"], str_of(&run, "summary")), (&json!(1), "at last"));
    let note = &request(&home, &id, 1, 9)["note"];
    assert!(str_of(note, "text").contains("larger than 1 MiB"), "{note}");
}

/// Leaves a process in a session of its own behind, and says whether the last one lives.
const FORKING: &str = r#"
    for pid in $(cat "$PIDS"); do kill -0 "$pid" 2>/dev/null && echo "$pid" >>"$PIDS.beside"; done
    [ "$OUTLAST_TURN" = 3 ] && { say done ok; exit; }
    setsid sh -c 'echo $$ >>"$0"; exec sleep 600' "$PIDS" >/dev/null 2>&1 &
    lines=$((OUTLAST_TURN))
    while [ "$(wc -l <"$PIDS")" -lt "$lines" ]; do sleep 0.01; done
    echo more >>file; say continue on"#;

#[test]
fn one_that_leaves_a_daemon_behind_has_it_ended_before_the_next_turn() {
    let home = Home::new();
    let pids = home.scratch().join("pids");
    let script = format!("PIDS='{0}'; touch '{0}'\n{FORKING}", pids.display());
    let id = Loop::of(&home, &script).start();
    rests(&home, &id, "completed", "done");
    assert_eq!(ran(&home), ["1 1", "2 1", "3 1"]);
    assert_all_dead(&home, 2);
    let beside = fs::read_to_string(home.scratch().join("pids.beside")).unwrap_or_default();
    assert_eq!(beside, "", "a turn met a process of the one before");
}

#[test]
fn one_whose_daemon_does_not_listen_is_stopped_with_it() {
    let home = Home::new();
    let script = r#"
        setsid sh -c 'trap "" TERM; echo $$ >>"$0"; while :; do sleep 600; done' "$PIDS" >/dev/null 2>&1 &
        while [ "$(wc -l <"$PIDS")" -lt 2 ]; do sleep 0.01; done
        say continue on"#;
    let id = Loop::of(&home, &marked(&home, script)).start();
    until("the turn has committed", || (home.show(&id)["turns_committed"] == 1).then_some(()));
    assert_eq!(ran(&home), ["1 1"], "the next turn runs beside what the last has left");
    assert_eq!(home.show(&id)["survivors"].as_array().map(Vec::is_empty), Some(false));
    home.ok(&["stop", "--now", &id]);
    rests(&home, &id, "stopped", "stopped");
    assert_eq!(ran(&home), ["1 1"]);
    assert_all_dead(&home, 2);
}

#[test]
fn one_that_fails_for_good_and_leaves_a_daemon_behind_has_it_ended() {
    let home = Home::new();
    let script = r#"
        setsid sh -c 'echo $$ >>"$0"; exec sleep 600' "$PIDS" >/dev/null 2>&1 &
        while [ "$(wc -l <"$PIDS")" -lt $((OUTLAST_ATTEMPT * 2)) ]; do sleep 0.01; done
        exit 1"#;
    let id = Loop::of(&home, &marked(&home, script)).with("limits: {max_attempts: 2}").start();
    let run = rests(&home, &id, "failed", "exit_code");
    assert_eq!(run["survivors"], json!([]));
    assert_all_dead(&home, 4);
}

#[test]
fn one_whose_checks_leave_a_daemon_behind_has_it_ended() {
    let home = Home::new();
    let pids = home.scratch().join("pids");
    fs::write(&pids, "").expect("the scratch directory is ours");
    let check = format!(
        r#"setsid sh -c 'echo $$ >>"$0"; exec sleep 600' '{0}' >/dev/null 2>&1 & until [ -s '{0}' ]; do sleep 0.01; done"#,
        pids.display()
    );
    let check = serde_json::to_string(&check).expect("plain data");
    let id = Loop::of(&home, "say done ok").with(&format!("checks: {{done: [{check}]}}")).start();
    rests(&home, &id, "completed", "done");
    assert_all_dead(&home, 1);
}

#[test]
fn one_that_kills_its_shim_every_time() {
    let home = Home::new();
    let id = Loop::of(&home, &marked(&home, "kill -KILL $PPID; say done 'for sure'; exit 0"))
        .with("limits: {max_attempts: 3}")
        .start();
    let run = rests(&home, &id, "failed", "lost");
    assert_eq!(outcomes(&home, &id), ["lost"; 3], "an unobserved end is no success");
    assert_eq!((&run["exit"], &run["turns_committed"]), (&json!(null), &json!(0)));
    assert_all_dead(&home, 3);
}

#[test]
fn one_that_removes_its_own_workspace() {
    let home = Home::new();
    let id = Loop::of(&home, "rm -rf \"$OUTLAST_WORKSPACE\"; say continue 'tidied up'").start();
    let run = rests(&home, &id, "failed", "never_started");
    assert!(str_of(&run, "reason").contains("workspace"), "{run:#}");
    assert_eq!((ran(&home), &run["turns_committed"]), (vec!["1 1".to_owned()], &json!(1)));
}

#[test]
fn one_that_says_nothing_although_its_kind_has_to() {
    let home = Home::new();
    let id = Loop::of(&home, "exit 0")
        .with("limits: {max_attempts: 2}")
        .start_with(&["--agent", "file"]);
    let run = rests(&home, &id, "failed", "bad_response");
    assert!(str_of(&run, "reason").contains("no response was written"), "{run:#}");
    assert_eq!(ran(&home).len(), 2);
}

#[test]
fn one_that_ignores_being_asked_to_end() {
    let home = Home::new();
    let id = Loop::of(&home, &marked(&home, "trap '' TERM INT HUP; while :; do sleep 600; done"))
        .start();
    until("it runs", || (!pids(&home).is_empty()).then_some(()));
    home.ok(&["stop", "--now", &id]);
    rests(&home, &id, "stopped", "stopped");
    assert_all_dead(&home, 1);
}

#[test]
fn one_that_dies_at_once_every_time() {
    let home = Home::new();
    let id = Loop::of(&home, "kill -KILL $$").start();
    let run = rests(&home, &id, "failed", "signaled");
    assert_eq!(outcomes(&home, &id), ["signaled"; 5], "as many as the default allows");
    assert_eq!((&run["exit"], &run["restarts"]["crash"]), (&json!({"signal": 9}), &json!(4)));
    assert_eq!(ran(&home).len(), 5);
}

#[test]
fn one_that_never_says_what_it_used_runs_out_of_tokens() {
    let home = Home::new();
    let id = Loop::of(&home, "echo more >>file; say continue more")
        .agent("max_turns: 0")
        .with("limits: {max_tokens: 1000}")
        .start();
    let run = rests(&home, &id, "exhausted", "max_tokens");
    assert_eq!(run["usage"]["known"], false);
    assert_eq!(ran(&home).len(), 20, "its share is a twentieth");
    assert_eq!(run["limits"]["max_tokens"], json!({"used": 1000, "max": 1000}));
}

#[test]
fn one_that_never_says_what_it_cost_runs_out_of_money() {
    let home = Home::new();
    // It fails rather than answers, so that not even a turn is counted.
    let id = Loop::of(&home, "exit 1")
        .agent("max_turns: 0")
        .with("limits: {max_cost_usd: 0.10, max_attempts: 0}")
        .start();
    let run = rests(&home, &id, "exhausted", "max_cost_usd");
    assert_eq!((&run["usage"]["known"], &run["turns_committed"]), (&json!(false), &json!(0)));
    assert_eq!(ran(&home).len(), 20);
    assert_eq!(run["limits"]["max_cost_usd_micros"], json!({"used": 100_000, "max": 100_000}));
}

#[test]
fn one_that_claims_to_have_used_less_than_nothing_or_more_than_there_is() {
    let home = Home::new();
    let script = r#"
        case $OUTLAST_ATTEMPT in
        1) answer '{"status":"continue","summary":"","usage":{"input_tokens":-5}}' ;;
        *) answer '{"status":"continue","summary":"","usage":{"input_tokens":4000000000,"cost_usd":0.01}}' ;;
        esac"#;
    let id = Loop::of(&home, script).with("limits: {max_tokens: 1000, max_cost_usd: 1}").start();
    let run = rests(&home, &id, "exhausted", "max_tokens");
    assert_eq!(outcomes(&home, &id), ["bad_response", "exited"]);
    assert_eq!(run["turns_committed"], 1);
}

#[test]
fn one_that_fills_the_disk_is_suspended_and_its_end_is_kept() {
    let home = Home::new();
    let Some(_disk) = SmallDisk::under(&home) else { return };
    let script = r#"
        [ $OUTLAST_ATTEMPT = 1 ] || { say done ok; exit; }
        cat /dev/zero >"$OUTLAST_HOME/filled" 2>/dev/null
        exit 1"#;
    let id = Loop::of(&home, script).start();
    until("the run is in trouble", || {
        (home.show(&id)["trouble"]["code"] == "disk_full").then_some(())
    });
    assert_eq!(ran(&home), ["1 1"]);
    fs::remove_file(home.path().join("filled")).expect("the agent has filled it");
    let run = rests(&home, &id, "completed", "done");
    assert_eq!(outcomes(&home, &id), ["exited", "exited"]);
    assert_eq!(
        (&run["trouble"], ran(&home)),
        (&json!(null), vec!["1 1".to_owned(), "1 2".to_owned()])
    );
    assert!(workspace(&home).exists());
}
