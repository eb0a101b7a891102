//! Runs that start later, in queues or with an input: `--after`, `--delay`, `--at`, `--queue`, `-i`.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::json;

use crate::harness::{Gate, Home, text, until};
use crate::hosted::until_state;

#[test]
fn a_run_starts_after_another_also_if_the_daemon_died_in_between() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    home.ok(&["run", "-d", "--name", "first", "--", "sh", "-c", &gate.pass()]);
    let second = home.ok(&["run", "-d", "--after", "first", "--", "echo", "second"]);
    let run = until_state(&home, &second, "waiting");
    assert_eq!(
        (&run["reason_code"], &run["reason"]),
        (&json!("after"), &json!("starts after run first"))
    );
    home.crash_daemon();
    gate.open();
    assert_eq!(home.wait(&second), 0);
    assert_eq!(home.ok(&["logs", &second]), "second");
    assert_eq!(home.count(&second, "PredecessorEnded"), 1);
}

#[test]
fn a_run_after_one_that_failed_fails_unless_any_end_will_do() {
    let home = Home::new();
    let first = home.start("exit 3");
    assert_eq!(home.wait(&first), 1);
    // The first has ended before these are made.
    let strict = home.ok(&["run", "-d", "--after", &first, "--", "true"]);
    let any = home.ok(&["run", "-d", "--after-any", &first, "--", "true"]);
    assert_eq!((home.wait(&strict), home.wait(&any)), (1, 0));
    let run = home.show(&strict);
    assert_eq!(run["reason_code"], "after_failed");
    assert_eq!(run["turn"], 0, "nothing of it ran");
    let said = home.fails(2, &["run", "-d", "--after", "no-run", "--", "true"]);
    assert!(said.contains("there is no run no-run"), "{said}");
}

#[test]
fn a_delayed_run_says_until_when_it_waits_and_starts_although_the_daemon_died() {
    let home = Home::new();
    let id = home.ok(&["run", "-d", "--delay", "2s", "--", "echo", "late"]);
    let run = home.show(&id);
    assert_eq!((&run["state"], &run["reason_code"]), (&json!("waiting"), &json!("timer")));
    assert!(run["wake_at"].is_string(), "{run}");
    home.crash_daemon();
    assert_eq!(home.wait(&id), 0);
    let far = home.ok(&["run", "-d", "--at", "23:59", "--", "true"]);
    assert!(home.show(&far)["wake_at"].is_string());
    home.ok(&["stop", &far]);
    let said = home.fails(2, &["run", "-d", "--at", "2020-01-01T00:00", "--", "true"]);
    assert!(said.contains("has passed"), "{said}");
    let said = home.fails(2, &["run", "-d", "--at", "soon", "--", "true"]);
    assert!(said.contains("is not a time") && said.contains("hint: write 03:00"), "{said}");
}

#[test]
fn a_queue_that_is_named_on_the_command_line_runs_one_at_a_time() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let [one, two] = ["1", "2"]
        .map(|_| home.ok(&["run", "-d", "--queue", "gpu", "--", "sh", "-c", &gate.pass()]));
    home.pid(&one);
    let other = home.ok(&["run", "-d", "--queue", "cpu", "--", "true"]);
    assert_eq!(home.wait(&other), 0, "another queue is not held up");
    assert_eq!(home.show(&two)["state"], "queued");
    assert_eq!(
        home.json(&["ps", "--json", "--label", "queue=gpu"]).as_array().map(Vec::len),
        Some(2)
    );
    let third = home.ok(&["run", "-d", "--queue", "gpu:2", "--", "true"]);
    home.pid(&two);
    assert_eq!(home.show(&third)["state"], "queued", "it widens the queue and overtakes no run");
    gate.open();
    gate.open();
    assert_eq!([one, two, third].map(|id| home.wait(&id)), [0, 0, 0]);
    let said = home.fails(2, &["run", "-d", "--queue", "gpu:0", "--", "true"]);
    assert!(said.contains("NAME:2"), "{said}");
}

/// What the command prints that is given this on its standard input.
fn fed(home: &Home, args: &[&str], input: &[u8]) -> (Option<i32>, Vec<u8>, String) {
    let mut command = home.outlast(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    // A command that does not read it all closes the pipe.
    let _unread = child.stdin.take().expect("it is a pipe").write_all(input);
    let output = child.wait_with_output().expect("it ends");
    (output.status.code(), output.stdout, text(&output.stderr))
}

#[test]
fn standard_input_was_thrown_away_without_a_word() {
    let home = Home::new();
    let (code, out, said) = fed(&home, &["run", "-i", "--", "cat"], b"hello\n\xff\0");
    assert_eq!((code, out.as_slice()), (Some(0), &b"hello\n\xff\0"[..]), "{said}");
    let file = home.scratch().join("input");
    std::fs::write(&file, "hello\n").expect("ours");
    let mut command = home.outlast(&["run", "--", "cat"]);
    let output =
        command.stdin(std::fs::File::open(&file).expect("ours")).output().expect("it runs");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), String::new()));
    assert!(text(&output.stderr).contains("warning: standard input is not read; outlast run -i"));
    let (_, _, said) = fed(&home, &["run", "--", "true"], b"");
    assert!(!said.contains("warning"), "an empty pipe says nothing: {said}");
}

#[test]
fn each_attempt_reads_the_same_input_and_it_goes_with_the_run() {
    let home = Home::new();
    let script = "cat; [ $OUTLAST_ATTEMPT = 2 ]";
    let args = ["run", "-d", "-i", "--retry", "2", "--backoff", "10ms", "--", "sh", "-c", script];
    let (_, id, _) = fed(&home, &args, b"same\n");
    let id = text(&id).trim_end().to_owned();
    assert_eq!(home.wait(&id), 0);
    assert_eq!(home.ok(&["logs", &id]), "same\nsame");
    let stdin = home.state().join("runs").join(&id).join("stdin");
    let mode = std::fs::metadata(&stdin).expect("it is kept").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let again = home.ok(&["rerun", "-d", &id]);
    assert_eq!(home.wait(&again), 0);
    assert!(home.ok(&["logs", &again]).contains("same"));
    home.ok(&["rm", &id]);
    assert!(!stdin.exists());
}

#[test]
fn input_that_is_too_much_or_meets_no_reader_is_refused() {
    let home = Home::new();
    let most = vec![b'x'; 16 << 20];
    let (code, _, said) = fed(&home, &["run", "-d", "-i", "--", "wc", "-c"], &most);
    assert_eq!(code, Some(0), "{said}");
    let (code, _, said) = fed(&home, &["run", "-d", "-i", "--", "cat"], &vec![0; (16 << 20) + 1]);
    assert_eq!(code, Some(2));
    assert!(said.contains("more than 16 MiB") && said.contains("< FILE"), "{said}");
    let task = ["run", "-d", "-i", "--agent", "claude", "--task", "x"];
    let (code, _, said) = fed(&home, &task, b"y");
    assert_eq!(code, Some(2));
    assert!(said.contains("reads no standard input"), "{said}");
}

#[test]
fn an_open_pipe_that_never_ends_holds_nothing_up() {
    let home = Home::new();
    let mut command = home.outlast(&["run", "--", "echo", "done"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let held = child.stdin.take();
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(text(&output.stdout), "done\n");
    drop(held);
}

#[test]
fn flags_and_verbs_without_effect_are_refused() {
    let home = Home::new();
    let id = home.ok(&["run", "-d", "--name", "serve", "--", "sleep", "600"]);
    home.pid(&id);
    let said = home.fails(2, &["pause", "--now", "serve"]);
    assert!(said.contains("--now has no effect without --all"), "{said}");
    assert!(said.contains("hint: outlast pause serve"), "{said}");
    let said = home.fails(2, &["pause", "serve"]);
    assert!(said.contains("serve is a command that runs once"), "{said}");
    let said = home.fails(2, &["send", "serve", "hi"]);
    assert!(said.contains("no next turn to read a message"), "{said}");
    for flags in [["--watch", "ERROR"], ["--heartbeat", "1m"]] {
        let said = home.fails(2, &["run", "-d", flags[0], flags[1], "--", "true"]);
        assert!(said.contains(&format!("{} has no effect: no sink", flags[0])), "{said}");
    }
    home.ok(&["stop", "serve"]);
}

#[test]
fn a_loop_without_a_file_rests_and_reads_messages() {
    let home = Home::new();
    let script = home.scratch().join("turn.sh");
    crate::programs::script(&script, "#!/bin/sh\nexec sleep 600\n");
    let script = script.to_str().expect("the path is text");
    let id = home.ok(&["run", "-d", "--name", "own", "--agent", "file", "--", script]);
    home.pid(&id);
    home.ok(&["send", "own", "hi"]);
    home.ok(&["pause", "own"]);
    home.ok(&["stop", "own"]);
}

#[test]
fn a_command_runs_in_the_workspace_of_a_run_and_its_exit_code_is_passed_on() {
    let home = Home::new();
    let dir = home.scratch().join("sub");
    std::fs::create_dir(&dir).expect("ours");
    let path = dir.display().to_string();
    let id = home.ok(&["run", "-d", "--dir", &path, "--", "true"]);
    assert_eq!(home.ok(&["path", &id]), path);
    assert_eq!(home.ok(&["exec", &id, "--", "pwd"]), path);
    assert_eq!(home.ok(&["exec", &id, "sh", "-c", "echo $OUTLAST_WORKSPACE"]), path);
    let output = home.output(&["exec", &id, "--", "sh", "-c", "exit 7"]);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(home.wait(&id), 0);
    std::fs::remove_dir(&dir).expect("it is empty");
    let said = home.fails(2, &["path", &id]);
    assert!(said.contains(&format!("the workspace of {id} is gone: {path}")), "{said}");
}

#[test]
fn runs_are_stopped_and_removed_by_label_and_state() {
    let home = Home::new();
    let web =
        ["1", "2"].map(|_| home.ok(&["run", "-d", "--label", "repo=web", "--", "sleep", "600"]));
    let api = home.ok(&["run", "-d", "--label", "repo=api", "--", "sleep", "600"]);
    let said = home.ok(&["stop", "--label", "repo=web"]);
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(web.iter().all(|id| home.show(id)["state"] == "stopped"));
    until("it still runs", || home.show(&api)["pid"].as_u64());
    let said = home.ok(&["rm", "--state", "stopped"]);
    assert_eq!(said.lines().count(), 2, "{said}");
    home.ok(&["rm", "--force", &api]);
    assert_eq!(home.json(&["ps", "-a", "--json"]), json!([]));
    let failed = home.start("exit 1");
    assert_eq!(home.wait(&failed), 1);
    let kept = home.ok(&["gc", "--older-than", "1h"]);
    assert!(kept.contains("kept 1"), "{kept}");
    let gone = home.ok(&["gc", "--older-than", "0s"]);
    assert!(gone.contains(&format!("removed {failed}")), "{gone}");
}
