//! A journal that was restored from a backup: it is recognised, and what lives is not locked out by its epoch.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::clocks::Clock;
use crate::forgotten::{database, lose_journal, row};
use crate::harness::{Gate, Home, is_alive, str_of, text, until};
use crate::loops::{Loop, rests};

/// Stops the daemon and copies the journal, as a careful person does.
pub(crate) fn back_up(home: &Home) -> PathBuf {
    home.ok(&["daemon", "stop"]);
    let backup = home.scratch().join("backup");
    fs::create_dir_all(&backup).expect("it is ours");
    for file in database(home).iter().filter(|file| file.exists()) {
        fs::copy(file, backup.join(file.file_name().expect("a file"))).expect("it is ours");
    }
    backup
}

pub(crate) fn restore(home: &Home, backup: &Path) {
    home.ok(&["daemon", "stop"]);
    for file in database(home) {
        let copy = backup.join(file.file_name().expect("a file"));
        if copy.exists() {
            fs::copy(copy, file).expect("it is ours");
        } else if file.exists() {
            fs::remove_file(file).expect("it is ours");
        }
    }
}

/// A journal comes back hours after it was copied: what its run did meanwhile is not known, and is not counted.
#[test]
fn hours_between_a_copy_and_its_return_do_not_end_a_run_by_its_time() {
    let clock = Clock::new();
    let home = &clock.home;
    let mut gate = Gate::new(home, "gate");
    let script = format!(
        "if [ $OUTLAST_TURN = 1 ]; then {}; say continue x; else say done y; fi",
        gate.pass()
    );
    let id = Loop::of(home, &script).with("limits: {run_timeout_ms: 3600000}").start();
    until("the first turn is held up", || home.show(&id)["pid"].as_u64());
    let backup = back_up(home);
    home.ok(&["daemon", "start"]);
    home.ok(&["daemon", "stop"]);
    gate.open();
    let records = home.attempt_dir(&id, 1, 1).join("events.jsonl");
    until("the turn has ended", || {
        fs::read_to_string(&records).ok().filter(|text| text.contains("tree_empty"))
    });
    clock.set(3 * 3_600_000);
    restore(home, &backup);
    home.ok(&["daemon", "start"]);
    // Until a person has seen to it, `doctor` says that the journal is older.
    home.ok(&["recover"]);
    rests(home, &id, "completed", "done");
    assert_eq!(home.count(&id, "JournalRestored"), 1);
}

fn epoch(home: &Home) -> u64 {
    home.json(&["daemon", "status", "--json"])["epoch"].as_u64().expect("a daemon has an epoch")
}

/// Adversary's finding 12: the epoch went back, and the shim refused its daemon for good.
#[test]
fn a_live_run_is_adopted_and_stopped_after_an_older_journal_was_restored() {
    let home = Home::new();
    let id = home.start("exec sleep 600");
    let pid = home.pid(&id);
    let backup = back_up(&home);
    for _ in 0..3 {
        home.ok(&["daemon", "start"]);
        home.shim_pid(&id);
        home.ok(&["daemon", "stop"]);
    }
    home.ok(&["daemon", "start"]);
    let served = epoch(&home);
    home.shim_pid(&id);
    restore(&home, &backup);
    home.ok(&["daemon", "start"]);
    assert!(epoch(&home) > served, "the epoch went back to {}", epoch(&home));
    home.shim_pid(&id);
    assert!(home.show(&id)["trouble"].is_null());
    home.ok(&["stop", "--now", &id]);
    assert!(!is_alive(pid));
}

/// Without the file beside the journal, too: a shim that knows a higher epoch raises ours.
#[test]
fn a_shim_that_has_met_a_higher_epoch_raises_the_daemons() {
    let home = Home::new();
    let id = home.start("exec sleep 600");
    let pid = home.pid(&id);
    let backup = back_up(&home);
    for _ in 0..4 {
        home.ok(&["daemon", "start"]);
        home.shim_pid(&id);
        home.ok(&["daemon", "stop"]);
    }
    restore(&home, &backup);
    fs::remove_file(home.state().join("journal.json")).expect("it was written");
    home.ok(&["daemon", "start"]);
    home.shim_pid(&id);
    home.ok(&["stop", "--now", &id]);
    assert!(!is_alive(pid));
}

#[test]
fn a_restored_journal_is_said_by_doctor_ps_and_status() {
    let home = Home::new();
    let first = home.start("true");
    assert_eq!(home.wait(&first), 0);
    let backup = back_up(&home);
    let later = home.start("exec sleep 600");
    let pid = home.pid(&later);
    restore(&home, &backup);
    home.ok(&["daemon", "start"]);
    let status = home.json(&["daemon", "status", "--json"]);
    assert!(str_of(&status["journal"], "problem").contains("older"), "{status}");
    assert_eq!(status["journal"]["not_in_journal"], serde_json::json!([later]));
    let doctor = text(&home.output(&["doctor"]).stdout);
    assert!(doctor.contains("this journal is older") && doctor.contains(&later), "{doctor}");
    assert!(text(&home.output(&["ps"]).stderr).contains("not in the journal"));
    assert_eq!(str_of(&row(&home, &later)["trouble"], "code"), "not_in_journal");
    assert!(is_alive(pid), "the command of a later run was ended");
    assert!(home.state().join("runs").join(&later).join("spec.json").exists());
}

#[test]
fn a_new_journal_where_another_was_served_is_said() {
    let home = Home::new();
    let id = home.start("true");
    assert_eq!(home.wait(&id), 0);
    let before = home.json(&["daemon", "status", "--json"])["journal"]["id"].clone();
    lose_journal(&home);
    home.ok(&["daemon", "start"]);
    let journal = until("the daemon answers", || {
        let status = home.json(&["daemon", "status", "--json"]);
        (!status["journal"].is_null()).then(|| status["journal"].clone())
    });
    assert_ne!(journal["id"], before);
    assert!(str_of(&journal, "problem").contains("new"), "{journal}");
    assert_ne!(journal["not_in_journal"], Value::Array(Vec::new()));
}
