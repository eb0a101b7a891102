//! A journal that is lost, moved away or restored from a backup: what lies in the run directories is kept, shown,
//! and can be removed only by its name.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::harness::{Home, is_alive, str_of, text};

/// The files of the database, as a person moves them away.
pub(crate) fn database(home: &Home) -> Vec<PathBuf> {
    ["outlast.db", "outlast.db-wal", "outlast.db-shm"].map(|name| home.state().join(name)).to_vec()
}

/// Stops the daemon and moves the journal away, as the hint for a damaged one says.
pub(crate) fn lose_journal(home: &Home) {
    home.ok(&["daemon", "stop"]);
    for (number, file) in database(home).into_iter().enumerate() {
        let aside = home.scratch().join(format!("moved-away-{number}"));
        if file.exists() {
            fs::rename(file, aside).expect("the state directory is ours");
        }
    }
}

pub(crate) fn row(home: &Home, id: &str) -> Value {
    let rows = home.json(&["ps", "-a", "--json"]);
    let rows = rows.as_array().expect("ps prints an array");
    rows.iter().find(|row| row["id"] == id).cloned().unwrap_or(Value::Null)
}

fn directory(home: &Home, id: &str) -> PathBuf {
    home.state().join("runs").join(id)
}

/// Adversary's finding 1: the hint was followed, and every run directory was erased, live ones among them.
#[test]
fn following_the_hint_for_a_damaged_journal_keeps_every_run_directory() {
    let home = Home::new();
    let ended = home.start("echo kept");
    assert_eq!(home.wait(&ended), 0);
    let live = home.start("echo alive; exec sleep 600");
    let pid = home.pid(&live);
    home.ok(&["daemon", "stop"]);
    let [file, ..] = &database(&home)[..] else { panic!("there is a database") };
    let mut bytes = fs::read(file).expect("it can be read");
    bytes[0..64].fill(0xff);
    fs::write(file, bytes).expect("it is ours");
    let said = home.fails(2, &["daemon", "start"]);
    assert!(said.contains("move it") && said.contains("outlast recover"), "{said}");
    for (number, file) in database(&home).into_iter().enumerate() {
        if file.exists() {
            fs::rename(file, home.scratch().join(number.to_string())).expect("it is ours");
        }
    }
    home.ok(&["daemon", "start"]);
    assert!(is_alive(pid), "the command was ended");
    for id in [&ended, &live] {
        assert!(directory(&home, id).join("spec.json").exists(), "{id} is gone");
        let row = row(&home, id);
        assert_eq!(str_of(&row["trouble"], "code"), "not_in_journal", "{row}");
        assert!(home.attempt_dir(id, 1, 1).join("output.log").exists());
    }
    let listed = home.output(&["ps"]);
    assert!(text(&listed.stderr).contains("outlast recover"), "{}", text(&listed.stderr));
    let doctor = home.output(&["doctor"]);
    assert_eq!(doctor.status.code(), Some(1));
    assert!(text(&doctor.stdout).contains(&format!("outlast recover {live}")));
}

#[test]
fn what_the_journal_does_not_know_is_never_offered_by_gc_and_goes_only_by_its_name() {
    let home = Home::new();
    let ended = home.start("true");
    assert_eq!(home.wait(&ended), 0);
    let live = home.start("exec sleep 600");
    let pid = home.pid(&live);
    lose_journal(&home);
    for args in [&["gc", "--dry-run", "--json"][..], &["gc", "--json"]] {
        let report = home.json(args);
        assert_eq!(report["removed"].as_array().map(Vec::len), Some(0), "{report}");
    }
    assert!(directory(&home, &ended).exists() && directory(&home, &live).exists());
    let said = home.fails(2, &["rm", &live]);
    assert!(said.contains(&pid.to_string()) && said.contains("outlast stop"), "{said}");
    assert!(directory(&home, &live).exists() && is_alive(pid));
    home.ok(&["rm", &ended]);
    assert!(!directory(&home, &ended).exists());
    assert_eq!(row(&home, &ended), Value::Null);
}

/// Only with proof: nothing of it was ever launched, and its spec says that no client was told.
#[test]
fn only_a_creation_that_did_not_finish_is_swept() {
    let home = Home::new();
    let id = home.start("true");
    assert_eq!(home.wait(&id), 0);
    home.ok(&["daemon", "stop"]);
    let make = |id: &str, names: &[&str]| {
        fs::create_dir(directory(&home, id)).expect("it is ours");
        for name in names {
            fs::write(directory(&home, id).join(name), "{}").expect("it is ours");
        }
    };
    make("aaaa00000001", &["spec.new", "env.json"]);
    make("aaaa00000002", &["spec.json", "env.json"]);
    make("aaaa00000003", &["spec.new", "thesis.tex"]);
    make("aaaa00000004", &["spec.json", "removing"]);
    home.ok(&["daemon", "start"]);
    let report = home.json(&["gc", "--json"]);
    assert!(!directory(&home, "aaaa00000001").exists(), "{report}");
    assert!(!directory(&home, "aaaa00000004").exists(), "{report}");
    assert!(directory(&home, "aaaa00000002").join("env.json").exists());
    assert!(directory(&home, "aaaa00000003").join("thesis.tex").exists());
    assert!(directory(&home, &id).exists());
}

/// A queued run has nothing but its files, and still was acknowledged.
#[test]
fn a_queued_run_is_kept_when_the_journal_is_lost() {
    let home = Home::new();
    fs::write(home.path().join("config.toml"), "[concurrency]\nmax_runs = 1\n").expect("ours");
    let first = home.start("exec sleep 600");
    home.pid(&first);
    let queued = home.start("true");
    assert_eq!(str_of(&home.show(&queued), "state"), "queued");
    lose_journal(&home);
    home.ok(&["daemon", "start"]);
    assert_eq!(str_of(&row(&home, &queued)["trouble"], "code"), "not_in_journal");
    assert!(directory(&home, &queued).join("env.json").exists());
}

/// The key of a run that the journal has forgotten is still that run's.
#[test]
fn a_key_of_a_forgotten_run_makes_no_second_run() {
    let home = Home::new();
    let id = home.ok(&["run", "-d", "--key", "build-42", "--", "sleep", "600"]);
    home.pid(&id);
    lose_journal(&home);
    let said = home.fails(2, &["run", "-d", "--key", "build-42", "--", "sleep", "600"]);
    assert!(said.contains(&format!("outlast recover {id}")), "{said}");
    assert_eq!(fs::read_dir(home.state().join("runs")).expect("it is there").count(), 1);
}
