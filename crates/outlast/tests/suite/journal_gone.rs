//! The journal's files are removed, replaced, cut short or moved away under a live daemon: nothing that was
//! acknowledged is lost, and nothing is acknowledged that would be.

use std::fs;
use std::path::{Path, PathBuf};

use crate::forgotten::{database, row};
use crate::harness::{Gate, Home, str_of, text, until};
use crate::loops::assert_sound;

fn file(home: &Home, name: &str) -> PathBuf {
    home.state().join(name)
}

/// An ended run, made before anything happens to the journal.
fn ended(home: &Home) -> String {
    let id = home.start("echo before");
    assert_eq!(home.wait(&id), 0);
    id
}

/// The copies of the journal that a daemon has saved.
fn rescued(home: &Home) -> Vec<PathBuf> {
    let names = fs::read_dir(home.state()).expect("it is there").map(|entry| {
        let entry = entry.expect("it can be read");
        entry.path()
    });
    names.filter(|path| path.to_string_lossy().contains("outlast.db.rescued-")).collect()
}

/// The daemon dies without a chance to write anything, and the next one knows these runs.
fn the_next_daemon_knows(home: &Home, ids: &[&str]) {
    home.crash_daemon();
    for id in ids {
        let row = row(home, id);
        assert!(row["trouble"].is_null() && row["id"] == **id, "{id} is lost: {row}");
    }
    let status = home.json(&["daemon", "status", "--json"]);
    assert!(status["journal"]["problem"].is_null(), "{status}");
    assert_sound(home);
}

/// Adversary: runs were acknowledged into a file that had no name any more, and were lost with the daemon.
#[test]
fn a_run_that_is_acknowledged_after_the_database_was_removed_is_not_lost() {
    for gone in [
        &["outlast.db"][..],
        &["outlast.db-wal"],
        &["outlast.db", "outlast.db-wal"],
        &["outlast.db", "outlast.db-wal", "outlast.db-shm"],
    ] {
        let home = Home::new();
        let before = ended(&home);
        let daemon = home.daemon_pid();
        for name in gone {
            fs::remove_file(file(&home, name)).expect("it is there");
        }
        let after = home.start("echo after");
        assert_eq!(home.wait(&after), 0);
        assert_eq!(home.daemon_pid(), daemon, "{gone:?}: the same daemon goes on");
        let doctor = text(&home.output(&["doctor"]).stdout);
        assert!(doctor.contains("put back"), "{gone:?}: {doctor}");
        the_next_daemon_knows(&home, &[&before, &after]);
        assert_eq!(rescued(&home), [] as [PathBuf; 0], "{gone:?}: the copy is the journal now");
    }
}

/// The same for a daemon that has nothing to write: the kernel says that the files are gone.
#[test]
fn an_idle_daemon_puts_its_journal_back() {
    for gone in [&["outlast.db", "outlast.db-wal"][..], &["outlast.db-wal"]] {
        let home = Home::new();
        let before = ended(&home);
        for name in gone {
            fs::remove_file(file(&home, name)).expect("it is there");
        }
        until("the journal is back", || {
            database(&home)[..2].iter().all(|file| file.exists()).then_some(())
        });
        the_next_daemon_knows(&home, &[&before]);
    }
}

#[test]
fn a_journal_that_was_moved_away_under_a_live_run_is_put_back_and_the_run_ends_with_its_exit() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let live = home.start(&format!("{}; exit 5", gate.pass()));
    home.pid(&live);
    let aside = home.scratch().join("aside.db");
    fs::rename(file(&home, "outlast.db"), &aside).expect("it is ours");
    gate.open();
    assert_eq!(home.wait(&live), 1);
    assert_eq!(home.show(&live)["exit"]["code"], 5);
    assert!(aside.exists(), "what was moved away is left where it is");
    the_next_daemon_knows(&home, &[&live]);
}

/// What was put there may be a person's backup, or nothing of ours at all.
#[test]
fn a_journal_that_was_replaced_is_left_alone_and_what_was_open_is_saved_beside_it() {
    let home = Home::new();
    let before = ended(&home);
    let foreign = home.scratch().join("foreign");
    fs::write(&foreign, "this is no journal").expect("it is ours");
    fs::rename(&foreign, file(&home, "outlast.db")).expect("it is ours");
    let said = text(&home.output(&["run", "-d", "--", "true"]).stderr);
    assert!(said.contains("outlast.db"), "{said}");
    let saved = until("the copy is there", || rescued(&home).pop());
    assert_eq!(fs::read(file(&home, "outlast.db")).expect("it is there"), b"this is no journal");
    // The next daemon refuses what lies there, and says where the rest is.
    let said = until("the next daemon has looked", || {
        let output = home.output(&["ps", "-a"]);
        let said = text(&output.stderr);
        (!output.status.success() && said.contains("rescued-1")).then_some(said)
    });
    assert!(said.contains("not a sound journal"), "{said}");
    put_in_place(&home, &saved);
    assert_eq!(str_of(&row(&home, &before), "state"), "completed");
    assert_sound(&home);
}

/// Follows the hint.
fn put_in_place(home: &Home, saved: &Path) {
    for file in database(home) {
        if file.exists() {
            fs::remove_file(file).expect("it is ours");
        }
    }
    fs::rename(saved, file(home, "outlast.db")).expect("it is ours");
}

/// A whole backup that is moved into place is served, and what was open before it is kept.
#[test]
fn a_backup_that_is_put_in_place_under_a_live_daemon_is_served_and_loses_nothing() {
    let home = Home::new();
    let first = ended(&home);
    home.ok(&["daemon", "stop"]);
    let backup = home.scratch().join("backup.db");
    fs::copy(file(&home, "outlast.db"), &backup).expect("it is ours");
    let later = ended(&home);
    fs::rename(&backup, file(&home, "outlast.db")).expect("it is ours");
    let status = until("another daemon serves the backup", || {
        let status: serde_json::Value =
            serde_json::from_slice(&home.output(&["ps", "-a", "--json"]).stdout).ok()?;
        let known = |id: &str| status.as_array()?.iter().find(|row| row["id"] == id).cloned();
        let is_served = known(&later).is_some_and(|row| !row["trouble"].is_null());
        (is_served && known(&first).is_some()).then_some(status)
    });
    assert!(status.to_string().contains("not_in_journal"), "{status}");
    assert_eq!(rescued(&home).len(), 1);
    let doctor = text(&home.output(&["doctor"]).stdout);
    assert!(doctor.contains("rescued-1"), "{doctor}");
}

/// What this daemon remembers of a small journal is all of it.
#[test]
fn a_journal_that_was_cut_short_is_put_back_and_what_is_left_of_it_is_kept() {
    let home = Home::new();
    let before = ended(&home);
    home.ok(&["daemon", "stop"]);
    home.ok(&["daemon", "start"]);
    fs::File::create(file(&home, "outlast.db")).expect("it is ours");
    let after = home.start("echo after");
    assert_eq!(home.wait(&after), 0);
    let doctor = text(&home.output(&["doctor"]).stdout);
    assert!(doctor.contains("cut short") && doctor.contains("put back"), "{doctor}");
    let damaged = fs::metadata(file(&home, "outlast.db.damaged-1")).expect("it is kept");
    assert_eq!(damaged.len(), 0);
    the_next_daemon_knows(&home, &[&before, &after]);
}
