//! What was answered is there: after closing, after a crash at any byte of the log, and when many write.

#![expect(clippy::unwrap_used, reason = "a test that is wrong panics")]

mod common;

use std::fs::{self, OpenOptions};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use common::{Held, create_run, creation, id, spec};
use outlast_engine::{Run, Time};
use outlast_store::{Journal, Ledger, Sqlite, slot};

fn db(directory: &Path) -> std::path::PathBuf {
    directory.join("outlast.db")
}

/// What the files hold just now, as a crash would leave it.
fn crash_copy(from: &Path) -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for name in ["outlast.db", "outlast.db-wal"] {
        fs::copy(from.join(name), copy.path().join(name)).unwrap();
    }
    copy
}

fn seq(store: &Sqlite, held: &Held) -> u64 {
    let events = store.events(&held.id(), 0, usize::MAX).unwrap();
    Run::replay(&held.id(), &events).unwrap().seq()
}

#[test]
fn everything_is_there_after_reopening() {
    let directory = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&db(directory.path())).unwrap();
    let epoch = store.take_epoch().unwrap();
    let mut held = create_run(&store, "aaaa00000001", spec(), epoch).unwrap();
    (0..10).for_each(|_| held.tell(&store, &held.next_news()).unwrap());
    drop(store);
    let store = Sqlite::open(&db(directory.path())).unwrap();
    assert_eq!(seq(&store, &held), held.run.seq());
    assert_eq!(store.row(&held.id()).unwrap(), Some(held.run.row()));
    assert_eq!(store.take_epoch().unwrap(), epoch + 1);
}

#[test]
fn closing_waits_for_what_was_ordered() {
    let directory = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&db(directory.path())).unwrap();
    let epoch = store.take_epoch().unwrap();
    let answered = Arc::new(AtomicU64::new(0));
    for n in 0..500 {
        let (append, _) = creation(&id(&format!("aaaa{n:08}")), spec(), epoch);
        let answered = Arc::clone(&answered);
        let done = move |answer: Result<(), _>| {
            answer.unwrap();
            answered.fetch_add(1, Ordering::SeqCst);
        };
        store.append(append, Box::new(done));
    }
    drop(store);
    assert_eq!(answered.load(Ordering::SeqCst), 500);
    assert_eq!(Sqlite::open(&db(directory.path())).unwrap().open_runs().unwrap().len(), 500);
}

#[test]
fn the_last_handle_may_go_on_the_writers_own_thread() {
    let directory = tempfile::tempdir().unwrap();
    let store = Arc::new(Sqlite::open(&db(directory.path())).unwrap());
    let (append, _) = creation(&id("aaaa00000001"), spec(), store.take_epoch().unwrap());
    let (dropped, was_dropped) = mpsc::channel();
    let (released, was_released) = mpsc::channel::<()>();
    let last = Arc::clone(&store);
    let done = move |_| {
        was_released.recv().unwrap();
        drop(last);
        dropped.send(()).unwrap();
    };
    store.append(append, Box::new(done));
    drop(store);
    released.send(()).unwrap();
    was_dropped.recv().unwrap();
}

#[test]
fn a_crash_while_writing_leaves_a_prefix_with_all_that_was_answered() {
    let directory = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&db(directory.path())).unwrap();
    let epoch = store.take_epoch().unwrap();
    let mut held = create_run(&store, "aaaa00000001", spec(), epoch).unwrap();
    let (answered, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    thread::scope(|scope| {
        scope.spawn(|| {
            // Few enough that no checkpoint falls between the copies of the two files.
            for _ in 0..250 {
                held.tell(&store, &held.next_news()).unwrap();
                answered.store(held.run.seq(), Ordering::SeqCst);
            }
            is_over.store(true, Ordering::SeqCst);
        });
        while !is_over.load(Ordering::SeqCst) {
            let at_least = answered.load(Ordering::SeqCst);
            let copy = crash_copy(directory.path());
            let reopened = Sqlite::open(&db(copy.path())).unwrap();
            assert_eq!(reopened.check().unwrap(), []);
            let events = reopened.events(&id("aaaa00000001"), 0, usize::MAX).unwrap();
            assert!(events.last().unwrap().seq >= at_least);
        }
    });
}

#[test]
fn a_log_torn_anywhere_leaves_a_prefix() {
    let directory = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&db(directory.path())).unwrap();
    let epoch = store.take_epoch().unwrap();
    let mut held = create_run(&store, "aaaa00000001", spec(), epoch).unwrap();
    (0..20).for_each(|_| held.tell(&store, &held.next_news()).unwrap());
    let length = fs::metadata(directory.path().join("outlast.db-wal")).unwrap().len();
    let mut last = 0;
    for kept in (0..=length).step_by(1511) {
        let copy = crash_copy(directory.path());
        let log = OpenOptions::new().write(true).open(copy.path().join("outlast.db-wal")).unwrap();
        log.set_len(kept).unwrap();
        let reopened = Sqlite::open(&db(copy.path())).unwrap();
        assert_eq!(reopened.check().unwrap(), []);
        let events = reopened.events(&held.id(), 0, usize::MAX).unwrap_or_default();
        let seq = events.last().map_or(0, |event| event.seq);
        assert!(seq >= last, "a longer log holds no less");
        last = seq;
    }
    assert!(last > 0);
}

#[test]
fn a_torn_end_of_the_database_is_mended_from_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&db(directory.path())).unwrap();
    let epoch = store.take_epoch().unwrap();
    let mut held = create_run(&store, "aaaa00000001", spec(), epoch).unwrap();
    (0..20).for_each(|_| held.tell(&store, &held.next_news()).unwrap());
    let copy = crash_copy(directory.path());
    // As if a checkpoint had died in the middle of a page that the file did not have before.
    let file = OpenOptions::new().write(true).open(db(copy.path())).unwrap();
    file.set_len(file.metadata().unwrap().len() + 1000).unwrap();
    let reopened = Sqlite::open(&db(copy.path())).unwrap();
    assert_eq!(seq(&reopened, &held), held.run.seq());
    assert_eq!(reopened.check().unwrap(), []);
}

#[test]
fn those_who_write_at_once_share_commits() {
    let directory = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&db(directory.path())).unwrap();
    let epoch = store.take_epoch().unwrap();
    let before = store.commits();
    let (answers, answered) = mpsc::channel();
    for n in 0..2000 {
        let (append, _) = creation(&id(&format!("aaaa{n:08}")), spec(), epoch);
        let answers = answers.clone();
        store.append(append, Box::new(move |answer| answers.send(answer).unwrap()));
    }
    drop(answers);
    assert_eq!(answered.iter().filter(Result::is_ok).count(), 2000);
    let commits = store.commits() - before;
    assert!(commits < 1000, "{commits} commits for 2000 appends");
}

#[test]
fn the_log_is_moved_while_writing_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&db(directory.path())).unwrap();
    let epoch = store.take_epoch().unwrap();
    let empty = fs::metadata(db(directory.path())).unwrap().len();
    let mut held = create_run(&store, "aaaa00000001", spec(), epoch).unwrap();
    let mut appends = 0;
    while fs::metadata(db(directory.path())).unwrap().len() == empty {
        held.tell(&store, &held.next_news()).unwrap();
        appends += 1;
        assert!(appends < 20_000, "nothing was moved");
    }
    assert_eq!(store.check().unwrap(), []);
}

/// What a database looked like before there were loops.
fn take_back_to_schema_1(path: &std::path::Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    let newer =
        "DROP INDEX runs_trigger; DROP INDEX runs_parent; DROP TABLE outbox; DROP TABLE sinks;
        DROP TABLE triggers; DROP TABLE deliveries; DROP TABLE ledger; DROP TABLE settings";
    connection.execute_batch(newer).unwrap();
    let columns = [
        "phase",
        "tokens",
        "cost_usd_micros",
        "max_turns",
        "trigger",
        "parent",
        "summary",
        "task",
        "known",
        "reserved_tokens",
        "reserved_cost_usd_micros",
        "worked_ms",
        "unreported",
    ];
    for column in columns {
        connection.execute_batch(&format!("ALTER TABLE runs DROP COLUMN {column}")).unwrap();
    }
    connection.execute_batch("ALTER TABLE fence DROP COLUMN last_event").unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
}

#[test]
fn a_database_from_before_loops_is_brought_up_to_date() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("outlast.db");
    let store = Sqlite::open(&path).unwrap();
    let epoch = store.take_epoch().unwrap();
    let running = create_run(&store, "running", spec(), epoch).unwrap();
    let mut ended = create_run(&store, "ended", spec(), epoch).unwrap();
    ended.complete(&store);
    drop(store);
    take_back_to_schema_1(&path);
    let store = Sqlite::open(&path).unwrap();
    assert_eq!(store.check().unwrap(), []);
    let running_row = outlast_engine::Row { unreported: None, ..running.run.row() };
    assert_eq!(store.row(&running.id()).unwrap(), Some(running_row));
    let ended_row = outlast_engine::Row { worked_ms: None, unreported: None, ..ended.run.row() };
    assert_eq!(store.row(&ended.id()).unwrap(), Some(ended_row));
}

/// What a database looked like when days began at midnight UTC, and no row said what was not reported.
fn take_back_to_schema_4(path: &std::path::Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    let older = "DROP TABLE ledger;
        CREATE TABLE ledger (run TEXT NOT NULL, day INTEGER NOT NULL, labels TEXT NOT NULL, tokens INTEGER NOT NULL,
            cost_usd_micros INTEGER NOT NULL, PRIMARY KEY (run, day)) WITHOUT ROWID;
        CREATE INDEX ledger_day ON ledger (day);
        INSERT INTO ledger VALUES ('gone', 20000, '{\"team\":\"web\"}', 7, 5), ('gone', 20001, '{\"team\":\"web\"}', 1, 2)";
    connection.execute_batch(older).unwrap();
    for column in
        ["known", "reserved_tokens", "reserved_cost_usd_micros", "worked_ms", "unreported"]
    {
        connection.execute_batch(&format!("ALTER TABLE runs DROP COLUMN {column}")).unwrap();
    }
    connection.pragma_update(None, "user_version", 4).unwrap();
}

#[test]
fn what_was_spent_on_a_day_of_before_counts_on_that_date_in_any_time_zone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("outlast.db");
    let store = Sqlite::open(&path).unwrap();
    let epoch = store.take_epoch().unwrap();
    let running = create_run(&store, "running", spec(), epoch).unwrap();
    let mut ended = create_run(&store, "ended", spec(), epoch).unwrap();
    ended.complete(&store);
    assert!(!ended.run.row().known.is_all(), "it reported nothing");
    drop(store);
    take_back_to_schema_4(&path);
    let store = Sqlite::open(&path).unwrap();
    assert_eq!(store.check().unwrap(), []);
    let running_row = outlast_engine::Row { unreported: None, ..running.run.row() };
    assert_eq!(store.row(&running.id()).unwrap(), Some(running_row));
    let ended_row = outlast_engine::Row { worked_ms: None, unreported: None, ..ended.run.row() };
    assert_eq!(store.row(&ended.id()).unwrap(), Some(ended_row));
    let tokens_since = |ms: u64| {
        let accounts = store.accounts(slot(Time(ms))).unwrap();
        accounts.iter().map(|account| account.used.amount.tokens).sum::<u64>()
    };
    let (day_ms, hour_ms) = (86_400_000, 3_600_000);
    let midnight_utc = 20_001 * day_ms;
    for offset_hours in [0, 1, 5, 11] {
        assert_eq!(
            tokens_since(midnight_utc - offset_hours * hour_ms),
            1,
            "east by {offset_hours}"
        );
        assert_eq!(
            tokens_since(midnight_utc + offset_hours * hour_ms),
            1,
            "west by {offset_hours}"
        );
    }
    assert_eq!(tokens_since(20_000 * day_ms), 8);
}
