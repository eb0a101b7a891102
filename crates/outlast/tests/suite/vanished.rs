//! Files of a step that go missing while it runs: what may have run is looked for, and never run again.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::harness::{Gate, Home, is_alive, kill, lines, str_of, until};
use crate::hosted::begin;

/// A single command that leaves its pid each time it is run, waits at a gate, and then exits with 7.
struct Story {
    home: Home,
    gate: Gate,
    id: String,
    pid: u32,
    shim: u32,
}

impl Story {
    fn begin() -> Self {
        Self::begin_with(&[])
    }

    fn begin_with(options: &[&str]) -> Self {
        let home = Home::new();
        let gate = Gate::new(&home, "gate");
        let script = format!("echo $$ >>'{}'; {}; exit 7", pids(&home).display(), gate.pass());
        let id = home.ok(&[&["run", "-d"], options, &["--", "sh", "-c", &script]].concat());
        let (pid, shim) = (home.pid(&id), home.shim_pid(&id));
        until("the command has left its pid", || (lines(&pids(&home)) == 1).then_some(()));
        Self { home, gate, id, pid, shim }
    }

    fn lose_directory(&self) {
        fs::remove_dir_all(self.home.attempt_dir(&self.id, 1, 1)).expect("it is ours");
    }

    fn lose_records(&self) {
        fs::remove_file(self.records()).expect("it is ours");
    }

    fn records(&self) -> PathBuf {
        self.home.attempt_dir(&self.id, 1, 1).join("events.jsonl")
    }

    /// Lets the command end; only its shim sees it.
    fn end_unseen(&mut self) {
        self.gate.open();
        until("command and shim are gone", || {
            (!is_alive(self.pid) && !is_alive(self.shim)).then_some(())
        });
    }

    fn until_orphaned(&self) {
        until("it is shown as an orphan", || {
            (str_of(&self.home.show(&self.id), "health") == "orphaned").then_some(())
        });
        assert!(is_alive(self.pid));
    }

    fn assert_lost(&self) {
        assert_eq!(self.home.wait(&self.id), 6);
        let run = self.home.show(&self.id);
        assert_eq!((str_of(&run, "state"), str_of(&run, "outcome")), ("failed", "lost"));
        assert_eq!(run["exit"], Value::Null, "an exit code was invented");
        self.assert_ran_once();
    }

    /// Stops it, and looks whether that was true.
    fn assert_stops(&self) {
        self.home.ok(&["stop", &self.id, "--now"]);
        assert!(!is_alive(self.pid), "called stopped while it lives");
        assert!(!is_alive(self.shim), "its shim outlived the stop");
        let run = self.home.show(&self.id);
        assert_eq!((str_of(&run, "state"), str_of(&run, "outcome")), ("stopped", "stopped"));
        self.assert_ran_once();
    }

    fn assert_ran_once(&self) {
        assert_eq!(lines(&pids(&self.home)), 1, "the same attempt was run again");
        assert_eq!(self.home.count(&self.id, "TurnStarted"), 1);
        assert_eq!(self.home.count(&self.id, "AttemptStarted"), 1);
    }
}

fn pids(home: &Home) -> PathBuf {
    home.scratch().join("pids")
}

#[test]
fn a_lost_directory_and_a_killed_shim_leave_an_orphan_and_no_second_launch() {
    let story = Story::begin();
    story.lose_directory();
    kill(story.shim, "KILL");
    story.until_orphaned();
    story.assert_stops();
}

#[test]
fn a_lost_directory_and_a_killed_daemon_leave_an_orphan_and_pause_and_resume_launch_nothing() {
    // A command that may be tried again is one that can be paused.
    let mut story = Story::begin_with(&["--retry", "1"]);
    story.lose_directory();
    story.home.crash_daemon();
    story.until_orphaned();
    story.home.ok(&["pause", &story.id]);
    story.home.ok(&["resume", &story.id]);
    story.until_orphaned();
    story.gate.open();
    story.assert_lost();
    assert!(!is_alive(story.shim));
}

#[test]
fn a_lost_directory_does_not_keep_a_stop_from_ending_the_tree_and_the_shim() {
    let story = Story::begin();
    story.lose_directory();
    story.home.crash_daemon();
    story.until_orphaned();
    story.assert_stops();
}

/// The only way to the shim is the one that is open already.
#[test]
fn a_lost_directory_changes_nothing_for_a_daemon_that_is_connected() {
    let mut story = Story::begin();
    story.lose_directory();
    story.gate.open();
    assert_eq!(story.home.wait(&story.id), 1);
    assert_eq!(story.home.show(&story.id)["exit"], serde_json::json!({"code": 7}));
    story.assert_ran_once();
}

#[test]
fn a_lost_directory_of_a_command_that_ended_while_no_daemon_lived_is_lost() {
    let mut story = Story::begin();
    story.home.ok(&["daemon", "stop"]);
    story.lose_directory();
    story.end_unseen();
    story.home.ok(&["daemon", "start"]);
    story.assert_lost();
}

#[test]
fn lost_records_of_a_command_that_ended_while_no_daemon_lived_are_a_lost_end_and_no_second_run() {
    let mut story = Story::begin();
    story.home.ok(&["daemon", "stop"]);
    story.end_unseen();
    story.lose_records();
    story.home.ok(&["daemon", "start"]);
    story.assert_lost();
}

/// What is left of the records says that the command waited at its barrier; the journal knows better.
#[test]
fn records_that_were_cut_short_are_not_taken_for_the_whole_story() {
    let mut story = Story::begin();
    story.home.ok(&["daemon", "stop"]);
    story.end_unseen();
    let text = fs::read_to_string(story.records()).expect("the shim wrote it");
    let first = text.split_inclusive('\n').next().expect("it has a line");
    assert!(first.contains("starting"), "{first}");
    fs::write(story.records(), first).expect("it is ours");
    story.home.ok(&["daemon", "start"]);
    story.assert_lost();
}

#[test]
fn empty_records_of_a_command_that_lives_are_an_orphan() {
    let story = Story::begin();
    story.home.ok(&["daemon", "stop"]);
    kill(story.shim, "KILL");
    until("the shim is dead", || (!is_alive(story.shim)).then_some(()));
    fs::write(story.records(), "").expect("it is ours");
    story.until_orphaned();
    story.assert_stops();
}

/// The daemon has told the shim to start, and dies before the journal knows of the process. All that is left
/// is a note beside the directory, and the process.
#[test]
fn a_directory_that_is_lost_before_the_journal_knows_the_process_is_not_launched_again() {
    let home = Home::new();
    let gate = Gate::new(&home, "gate");
    let token = home.scratch().join("token");
    fs::write(&token, "").expect("the scratch directory is ours");
    let mut start = home.outlast(&["daemon", "start"]);
    start.env("OUTLAST_CRASH_AT", "daemon.shim-hello").env("OUTLAST_CRASH_TOKEN", &token);
    start.env("OUTLAST_CRASH_SIGNAL", "STOP");
    assert!(start.status().expect("it starts").success());
    let daemon = home.daemon_pid();
    let script = format!("echo $$ >>'{}'; {}", pids(&home).display(), gate.pass());
    // The daemon stands still before it can answer, or after.
    let client = home.spawn(&["run", "-d", "--name", "early", "--", "sh", "-c", &script]);
    until("the command runs", || (lines(&pids(&home)) == 1).then_some(()));
    until("the daemon stands still", || (!token.exists()).then_some(()));
    let pid: u32 =
        fs::read_to_string(pids(&home)).expect("it wrote").trim().parse().expect("a pid");
    let runs = fs::read_dir(home.state().join("runs")).expect("there is a run");
    for run in runs {
        let step = run.expect("it can be listed").path().join("t1.a1");
        fs::remove_dir_all(step).expect("it is ours");
    }
    kill(daemon, "KILL");
    drop(client);
    until("it is shown as an orphan", || {
        (str_of(&home.show("early"), "health") == "orphaned").then_some(())
    });
    assert_eq!(home.pid("early"), pid, "another process is taken for it");
    assert_eq!(lines(&pids(&home)), 1, "the same attempt was run again");
    home.ok(&["stop", "early", "--now"]);
    assert!(!is_alive(pid));
    assert_eq!(lines(&pids(&home)), 1);
}

#[test]
fn a_hook_whose_directory_is_lost_is_not_run_a_second_time_beside_itself() {
    let home = Home::new();
    let file = pids(&home);
    let hook = format!("hooks:\n  before_run: echo $$ >>'{}'; exec sleep 600", file.display());
    let id = begin(&home, "say done x", &hook);
    until("the hook runs", || (lines(&file) == 1).then_some(()));
    let pid: u32 = fs::read_to_string(&file).expect("it wrote").trim().parse().expect("a pid");
    let shim = home.shim_pid(&id);
    home.ok(&["daemon", "stop"]);
    fs::remove_dir_all(home.state().join("runs").join(&id).join("e1")).expect("it is ours");
    home.ok(&["daemon", "start"]);
    home.ok(&["stop", &id, "--now"]);
    assert_eq!(lines(&file), 1, "the hook was run beside itself");
    assert!(!is_alive(pid) && !is_alive(shim));
    assert_eq!(str_of(&home.show(&id), "state"), "stopped");
}

/// What a turn answered is gone with its directory, and is not taken for nothing.
#[test]
fn a_turn_whose_directory_is_gone_at_its_end_has_answered_nothing_that_counts() {
    let home = Home::new();
    let script = r#"say continue more; rm -rf "$(dirname "$OUTLAST_RESPONSE_FILE")"; exit 0"#;
    let id = begin(&home, script, "limits: {max_attempts: 1}");
    assert_eq!(home.wait(&id), 1);
    let run = home.show(&id);
    assert_eq!((str_of(&run, "state"), str_of(&run, "outcome")), ("failed", "bad_response"));
    assert_eq!(home.count(&id, "TurnCommitted"), 0);
}

/// Adversary: `logs` of an attempt whose files were gone printed nothing and said that all was well.
#[test]
fn an_output_that_was_cut_short_is_said_and_is_no_success() {
    let home = Home::new();
    let id = home.start("echo hello; exit 0");
    assert_eq!(home.wait(&id), 0);
    assert_eq!(home.ok(&["logs", &id]), "hello");
    let log = home.attempt_dir(&id, 1, 1).join("output.log");
    for left in [3, 0] {
        let file = std::fs::OpenOptions::new().write(true).open(&log).expect("it is there");
        file.set_len(left).expect("it is ours");
        for args in [&["logs"][..], &["logs", "-f"], &["attach"], &["show", "--turn", "1"]] {
            let args: Vec<&str> = args.iter().copied().chain([id.as_str()]).collect();
            let said = home.fails(2, &args);
            assert!(said.contains("t1.a1"), "{left}: {args:?}: {said}");
        }
    }
}

#[test]
fn an_output_that_is_gone_is_said_and_is_no_success() {
    let home = Home::new();
    let loud = home.start("echo hello; exit 0");
    let quiet = home.start("exit 0");
    let never = home.start("true");
    for id in [&loud, &quiet, &never] {
        assert_eq!(home.wait(id), 0);
    }
    std::fs::remove_file(home.attempt_dir(&loud, 1, 1).join("output.log")).expect("it is there");
    for args in [&["logs"][..], &["logs", "-f"], &["attach"], &["show", "--turn", "1"]] {
        let args: Vec<&str> = args.iter().copied().chain([loud.as_str()]).collect();
        let said = home.fails(2, &args);
        assert!(said.contains("gone") && said.contains("t1.a1"), "{args:?}: {said}");
    }
    assert!(home.fails(2, &["logs", &loud]).contains("6 bytes"), "the journal knows how many");
    let shown = home.output(&["show", "--turn", "1", &loud, "--json"]);
    let view: serde_json::Value = serde_json::from_slice(&shown.stdout).expect("it is JSON");
    assert_eq!((shown.status.code(), &view["attempts"][0]["output_gone"]), (Some(2), &true.into()));
    // The whole directory; and one whose attempt is known to have printed nothing.
    std::fs::remove_dir_all(home.attempt_dir(&loud, 1, 1)).expect("it is there");
    assert!(home.fails(2, &["logs", &loud]).contains("t1.a1"));
    std::fs::remove_dir_all(home.attempt_dir(&quiet, 1, 1)).expect("it is there");
    assert_eq!(home.ok(&["logs", &quiet]), "");
    assert_eq!(home.ok(&["logs", &never]), "");
}
