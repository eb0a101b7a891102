//! `outlast recover`: runs rebuilt from their directories, as far as those prove, after their journal was lost.

use std::fs;

use serde_json::{Value, json};

use crate::forgotten::{lose_journal, row};
use crate::harness::{Gate, Home, is_alive, lines, str_of, text, until};
use crate::loops::{Loop, assert_sound, ran, rests, workspace};
use crate::restored::{back_up, restore};

fn recovered(home: &Home, args: &[&str]) -> Vec<Value> {
    let args: Vec<&str> = ["recover", "--json"].iter().chain(args).copied().collect();
    home.json(&args)["runs"].as_array().expect("a list").clone()
}

#[test]
fn an_ended_run_is_rebuilt_with_its_output_and_its_true_exit() {
    let home = Home::new();
    let well = home.start("echo well");
    let badly = home.start("echo badly; exit 3");
    assert_eq!((home.wait(&well), home.wait(&badly)), (0, 1));
    let ended_at = home.show(&badly)["ended_at"].clone();
    lose_journal(&home);
    let shown = recovered(&home, &["--dry-run"]);
    assert!(shown.iter().all(|item| item["result"] == "would_recover"), "{shown:?}");
    assert_eq!(str_of(&row(&home, &well)["trouble"], "code"), "not_in_journal");
    assert_eq!(recovered(&home, &[]).len(), 2);
    assert_eq!((home.wait(&well), home.wait(&badly)), (0, 1));
    let run = home.show(&badly);
    assert_eq!((str_of(&run, "state"), &run["exit"]), ("failed", &json!({"code": 3})));
    assert_eq!(run["ended_at"], ended_at, "not stamped with when it was");
    assert!(!run["recovered"].is_null(), "{run}");
    assert_eq!(home.ok(&["logs", &badly]), "badly");
    assert_eq!(home.kinds(&well)[..2], ["RunCreated", "RunRecovered"]);
    assert_eq!(home.count(&well, "RunEnded"), 1);
    assert!(home.ok(&["show", &well]).contains("recovered"));
    assert_eq!(home.ok(&["recover"]), "nothing to recover: the journal knows every run on disk");
    assert_sound(&home);
}

#[test]
fn a_live_run_is_adopted_with_its_attempt_its_output_and_its_exit() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let log = home.scratch().join("executions");
    let script =
        format!("echo x >>'{}'; echo before; {}; echo after; exit 7", log.display(), gate.pass());
    let id = home.start(&script);
    let pid = home.pid(&id);
    lose_journal(&home);
    let items = recovered(&home, &[&id]);
    assert_eq!((&items[0]["alive"], &items[0]["result"]), (&json!(true), &json!("recovered")));
    assert_eq!(home.pid(&id), pid);
    gate.open();
    assert_eq!(home.wait(&id), 1);
    assert_eq!(home.show(&id)["exit"], json!({"code": 7}));
    assert_eq!(home.ok(&["logs", &id]), "before\nafter");
    assert_eq!((home.count(&id, "TurnStarted"), home.count(&id, "AttemptAdopted")), (1, 1));
    assert_eq!(lines(&log), 1, "it was executed again");
    assert_sound(&home);
}

#[test]
fn two_clients_that_recover_a_live_run_at_once_adopt_it_once() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let live = home.start(&format!("{}; exit 7", gate.pass()));
    home.pid(&live);
    for _ in 0..6 {
        let ended = home.start("true");
        assert_eq!(home.wait(&ended), 0);
    }
    lose_journal(&home);
    let asked: Vec<_> = (0..4).map(|_| home.spawn(&["recover"])).collect();
    let codes: Vec<i32> = asked.into_iter().map(crate::harness::Background::code).collect();
    assert_eq!(codes, [0; 4]);
    assert_eq!((home.count(&live, "RunRecovered"), home.count(&live, "AttemptEnded")), (1, 0));
    gate.open();
    assert_eq!(home.wait(&live), 1);
    assert_eq!(home.show(&live)["exit"], json!({"code": 7}));
    assert_sound(&home);
}

#[test]
fn pipes_in_the_place_of_an_attempts_files_hold_no_other_run_up() {
    let home = Home::new();
    let id = home.start("exec sleep 600");
    home.pid(&id);
    let dir = home.attempt_dir(&id, 1, 1);
    for name in ["output.log", "output.idx", "shim.lock"] {
        let path = dir.join(name);
        std::fs::remove_file(&path).expect("it was there");
        let made = home.command("mkfifo").arg(&path).status().expect("there is a mkfifo");
        assert!(made.success());
    }
    let shown: Vec<_> = (0..8).map(|_| home.spawn(&["show", &id])).collect();
    let other = home.start("exit 3");
    assert_eq!(home.wait(&other), 1);
    for it in shown {
        it.code();
    }
    home.crash_daemon();
    let other = home.start("exit 4");
    assert_eq!(home.wait(&other), 1);
    home.output(&["stop", "--now", &id]);
}

/// Adversary's finding 1: nothing could end what the journal had forgotten.
#[test]
fn a_live_run_that_the_journal_has_forgotten_can_be_shown_and_stopped() {
    let home = Home::new();
    let id = home.start("sleep 600 & exec sleep 601");
    let pid = home.pid(&id);
    lose_journal(&home);
    let shown = home.show(&id);
    assert_eq!(str_of(&shown["trouble"], "code"), "not_in_journal");
    assert!(shown["agent"]["command"].to_string().contains("sleep 600"), "{shown}");
    let said = home.fails(2, &["logs", &id]);
    assert!(said.contains(&format!("outlast recover {id}")), "{said}");
    assert_eq!(home.ok(&["stop", "--now", &id]), format!("stopped {id}"));
    assert!(!is_alive(pid));
    assert_eq!(str_of(&home.show(&id), "state"), "stopped");
    assert_sound(&home);
}

const FOUR_TURNS: &str = r#"
echo "$OUTLAST_TURN" >>progress
if [ "$OUTLAST_TURN" = "$HOLD_AT" ]; then echo waiting; read -r _ <"$GATE"; fi
if [ "$OUTLAST_TURN" -lt 4 ]; then say continue "turn $OUTLAST_TURN"; else say done finished; fi
"#;

/// A loop that is held up in this turn.
fn held_at(home: &Home, gate: &Gate, turn: u32) -> String {
    let held = format!("HOLD_AT={turn}; GATE='{}'\n{FOUR_TURNS}", gate.path().display());
    let id = Loop::of(home, &held).start();
    until("the loop is held up", || {
        let log = home.attempt_dir(&id, turn, 1).join("output.log");
        fs::read_to_string(log).ok().filter(|text| text.contains("waiting"))
    });
    id
}

#[test]
fn a_loop_is_adopted_in_its_turn_and_rests_before_it_goes_on() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let id = held_at(&home, &gate, 3);
    lose_journal(&home);
    let items = recovered(&home, &[]);
    assert_eq!((&items[0]["turns_committed"], &items[0]["alive"]), (&json!(2), &json!(true)));
    gate.open();
    let run = rests(&home, &id, "blocked", "recovered");
    assert_eq!(run["turns_committed"], 3);
    assert!(home.ok(&["show", &id]).contains("outlast resume"));
    home.ok(&["resume", &id]);
    rests(&home, &id, "completed", "done");
    assert_eq!(ran(&home), ["1 1", "2 1", "3 1", "4 1"]);
    assert_eq!(home.count(&id, "TurnCommitted"), 4);
}

/// An older journal stands at a turn that has been over for long, while a later one lives.
#[test]
fn a_restored_journal_runs_no_turn_again_and_catches_up_with_the_directory() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let id = held_at(&home, &gate, 1);
    let backup = back_up(&home);
    home.ok(&["daemon", "start"]);
    gate.open();
    until("the loop has ended", || (home.show(&id)["state"] == "completed").then_some(()));
    restore(&home, &backup);
    home.ok(&["daemon", "start"]);
    let behind = row(&home, &id);
    assert_eq!(str_of(&behind["trouble"], "code"), "journal_behind", "{behind}");
    assert!(text(&home.output(&["ps"]).stderr).contains("not in the journal"));
    assert_eq!(recovered(&home, &[&id])[0]["turns_committed"], 4);
    rests(&home, &id, "completed", "done");
    assert_eq!(ran(&home), ["1 1", "2 1", "3 1", "4 1"], "a turn was run again");
    assert_eq!(home.count(&id, "TurnCommitted"), 4);
}

/// Found by the hostile soak: resumed, it failed for lack of its environment, after its hooks had run again.
#[test]
fn a_loop_that_ended_after_its_journal_was_copied_ends_as_it_did() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let held = format!("HOLD_AT=4; GATE='{}'\n{FOUR_TURNS}", gate.path().display());
    let hooks = "hooks: {after_turn: 'echo turn >>hooks', after_run: 'echo run >>hooks'}\n\
                 checks: {done: ['true']}";
    let id = Loop::of(&home, &held).with(hooks).start();
    until("the loop is held up", || {
        let log = home.attempt_dir(&id, 4, 1).join("output.log");
        fs::read_to_string(log).ok().filter(|text| text.contains("waiting"))
    });
    let backup = back_up(&home);
    home.ok(&["daemon", "start"]);
    gate.open();
    rests(&home, &id, "completed", "done");
    let (ended_at, ran_hooks) =
        (home.show(&id)["ended_at"].clone(), workspace(&home).join("hooks"));
    let before = fs::read_to_string(&ran_hooks).expect("hooks have run");
    restore(&home, &backup);
    home.ok(&["daemon", "start"]);
    let trouble = row(&home, &id)["trouble"].clone();
    assert_eq!(str_of(&trouble, "code"), "journal_behind");
    recovered(&home, &[]);
    let run = rests(&home, &id, "completed", "done");
    assert_eq!(run["ended_at"], ended_at);
    assert_eq!(fs::read_to_string(&ran_hooks).expect("hooks have run"), before, "they ran again");
    assert_eq!(ran(&home), ["1 1", "2 1", "3 1", "4 1"]);
    assert_sound(&home);
}

/// The answer is gone with the journal, its turn is in the directory: the run goes on from there.
#[test]
fn a_question_that_was_answered_in_a_lost_journal_is_not_asked_again() {
    let home = Home::new();
    let ask = r#"if [ "$OUTLAST_TURN" = 1 ]; then say blocked 'which?'; else say done that; fi"#;
    let id = Loop::of(&home, ask).start();
    rests(&home, &id, "blocked", "agent_blocked");
    let backup = back_up(&home);
    home.ok(&["daemon", "start"]);
    home.ok(&["answer", &id, "this one"]);
    rests(&home, &id, "completed", "done");
    restore(&home, &backup);
    home.ok(&["daemon", "start"]);
    for order in [&["answer", &id, "another"][..], &["resume", &id], &["send", &id, "more"]] {
        let output = home.output(order);
        assert_eq!(output.status.code(), Some(2), "{order:?}");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("takes no orders yet") && said.contains("outlast recover"), "{said}");
    }
    let missing = recovered(&home, &[&id])[0]["missing"].to_string();
    assert!(missing.contains("what was answered to the question of event"), "{missing}");
    rests(&home, &id, "completed", "done");
    assert_eq!(ran(&home), ["1 1", "2 1"]);
    assert_sound(&home);
}

#[test]
fn a_live_turn_beyond_a_restored_journal_is_adopted_and_can_be_stopped() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let mut later = Gate::new(&home, "later");
    let script = format!(
        "case $OUTLAST_TURN in 1) {} ;; 3) echo alive; {} ;; esac\nsay continue turn",
        gate.pass(),
        later.pass()
    );
    let id = Loop::of(&home, &script).start();
    home.pid(&id);
    let backup = back_up(&home);
    home.ok(&["daemon", "start"]);
    gate.open();
    until("turn 3 lives", || (home.show(&id)["turn"] == 3).then_some(()));
    let pid = home.pid(&id);
    restore(&home, &backup);
    home.ok(&["daemon", "start"]);
    assert_eq!(str_of(&row(&home, &id)["trouble"], "code"), "journal_behind");
    assert!(is_alive(pid));
    home.ok(&["stop", "--now", &id]);
    assert!(!is_alive(pid));
    assert_eq!(ran(&home), ["1 1", "2 1", "3 1"]);
    assert_eq!(home.count(&id, "TurnCommitted"), 2);
    later.open();
    assert_sound(&home);
}

#[test]
fn what_is_missing_is_said_and_no_end_is_invented() {
    let home = Home::new();
    let no_records = home.start("echo one");
    let no_spec = home.start("echo two; exit 4");
    let only_end = home.start("echo three");
    assert_eq!((home.wait(&no_records), home.wait(&no_spec), home.wait(&only_end)), (0, 1, 0));
    fs::remove_file(home.attempt_dir(&no_records, 1, 1).join("events.jsonl")).expect("it is ours");
    // As after a disk that was full when it exited: its daemon had heard of the exit.
    let records = home.attempt_dir(&only_end, 1, 1).join("events.jsonl");
    let kept = fs::read_to_string(&records).expect("it is ours");
    let until_started = kept.lines().take_while(|line| !line.contains("exited"));
    let until_started: String = until_started.map(|line| format!("{line}\n")).collect();
    assert!(until_started.contains("started"), "{kept}");
    fs::write(&records, until_started).expect("it is ours");
    let runs = home.state().join("runs");
    fs::remove_file(runs.join(&no_records).join("ended.json")).expect("it is ours");
    fs::remove_file(runs.join(&no_spec).join("spec.json")).expect("it is ours");
    lose_journal(&home);
    let items = recovered(&home, &[]);
    assert!(items.iter().all(|item| item["missing"].as_array().is_some_and(|it| !it.is_empty())));
    assert_eq!(home.wait(&no_records), 6);
    let run = home.show(&no_records);
    assert_eq!((str_of(&run, "outcome"), &run["exit"]), ("lost", &Value::Null));
    assert_eq!(home.wait(&only_end), 0, "how the run ended is known, and of its attempt it is not");
    let run = home.show(&only_end);
    assert_eq!((str_of(&run, "outcome"), &run["exit"]), ("lost", &Value::Null));
    assert_eq!(home.wait(&no_spec), 1);
    assert_eq!(home.show(&no_spec)["exit"], json!({"code": 4}));
    assert_eq!(home.ok(&["logs", &no_records]), "one");
    assert_sound(&home);
}

/// Its environment is there, and nothing of it ever ran: it goes on only when a person says so.
#[test]
fn a_queued_run_is_rebuilt_and_waits_for_a_person() {
    let home = Home::new();
    fs::write(home.path().join("config.toml"), "[concurrency]\nmax_runs = 1\n").expect("ours");
    let first = home.start("exec sleep 600");
    home.pid(&first);
    let queued = home.ok(&["run", "-d", "--env", "WORD=kept", "--", "sh", "-c", "echo $WORD"]);
    lose_journal(&home);
    recovered(&home, &[]);
    rests(&home, &queued, "blocked", "recovered");
    home.ok(&["stop", "--now", &first]);
    home.ok(&["resume", &queued]);
    rests(&home, &queued, "completed", "done");
    assert_eq!(home.ok(&["logs", &queued]), "kept");
}

/// What only the lost journal could explain is ended, not guessed at.
#[test]
fn a_hook_that_is_alive_is_named_and_ended_by_stop() {
    let home = Home::new();
    let started = home.scratch().join("hook-pid");
    let hook = format!("hooks:\n  after_turn: echo $$ >'{}'; exec sleep 600", started.display());
    let id = Loop::of(&home, "say continue on").with(&hook).start();
    let pid: u32 =
        until("the hook runs", || fs::read_to_string(&started).ok()?.trim().parse().ok());
    lose_journal(&home);
    let report = home.output(&["recover", "--json"]);
    assert_eq!(report.status.code(), Some(1), "{}", text(&report.stderr));
    assert!(text(&report.stdout).contains("errand e1"), "{}", text(&report.stdout));
    assert!(is_alive(pid));
    home.ok(&["stop", "--now", &id]);
    assert!(!is_alive(pid));
    assert_eq!(ran(&home), ["1 1"]);
    assert_sound(&home);
}

/// A directory that is no run's is kept, and said to be.
#[test]
fn what_cannot_be_rebuilt_is_kept_as_it_is() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    home.ok(&["daemon", "stop"]);
    let dir = home.state().join("runs/aaaa00000001");
    fs::create_dir_all(&dir).expect("it is ours");
    fs::write(dir.join("thesis.tex"), "years of work").expect("it is ours");
    let report = home.output(&["recover", "--json"]);
    assert_eq!(report.status.code(), Some(1));
    let report: Value = serde_json::from_slice(&report.stdout).expect("it is JSON");
    assert_eq!(report["runs"][0]["result"], "kept", "{report}");
    assert_eq!(fs::read_to_string(dir.join("thesis.tex")).expect("it is there"), "years of work");
}
