//! The store under a full disk, a constraint, and hands that take its files away.

use outlast_engine::{BootId, Context, Run, RunSpec, Time, create};
use serde_json::{from_value, json};

use super::*;
use crate::Entry;

fn creation(n: usize, task: &str) -> Append {
    let spec: RunSpec = from_value(json!({
        "task": task, "agent": { "kind": "exec", "command": ["true"] }, "dir": "/", "labels": {}, "limits": {},
        "retry": { "max_attempts": 1, "initial_backoff_ms": 0, "max_backoff_ms": 0 },
    }))
    .unwrap();
    let run = RunId(format!("aaaa{n:08}"));
    let events = create(&run, spec, &Context::new(Time(1), BootId("boot".to_owned())));
    let row = Run::replay(&run, &events).unwrap().row();
    Append {
        run,
        expected_seq: 0,
        epoch: 0,
        events,
        row,
        outbox: Vec::new(),
        spent: Entry::default(),
    }
}

#[test]
fn a_full_disk_refuses_and_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("outlast.db");
    drop(Sqlite::open(&path).unwrap());
    let connection = schema::open_checked(&path).unwrap();
    connection.query_row("PRAGMA max_page_count = 40", [], |_| Ok(())).unwrap();
    let store = Sqlite::start(&path, connection).unwrap();
    let task = "x".repeat(2000);
    let answers: Vec<_> = (0..100).map(|n| store.append_wait(creation(n, &task))).collect();
    let fitted = answers.iter().take_while(|answer| answer.is_ok()).count();
    assert!((1..100).contains(&fitted), "{fitted} fitted");
    assert!(
        answers[fitted..].iter().any(|answer| matches!(answer, Err(Error::Full(_)))),
        "{answers:?}"
    );
    assert_eq!(
        store.open_runs().unwrap().len(),
        answers.iter().filter(|answer| answer.is_ok()).count()
    );
    assert_eq!(store.check().unwrap(), []);
    store.remove(&RunId("aaaa00000000".to_owned()), 0, Remove::Any).unwrap();
    store.append_wait(creation(200, "small")).unwrap();
}

/// Appends these at once, so that they may be one group; the answers in the order of the runs.
fn append_all(store: &Sqlite, appends: Vec<Append>) -> Vec<Result<(), Error>> {
    let (answers, answered) = mpsc::channel();
    let count = appends.len();
    for (n, append) in appends.into_iter().enumerate() {
        let answers = answers.clone();
        store.append(append, Box::new(move |answer| answers.send((n, answer)).unwrap()));
    }
    let mut all: Vec<(usize, Result<(), Error>)> = answered.iter().take(count).collect();
    all.sort_by_key(|(n, _)| *n);
    all.into_iter().map(|(_, answer)| answer).collect()
}

fn refuse(path: &Path, when: &str) -> Connection {
    let outsider = Connection::open(path).unwrap();
    let trigger = format!(
        "CREATE TRIGGER no BEFORE INSERT ON runs WHEN {when} BEGIN SELECT RAISE(ABORT, 'no'); END"
    );
    outsider.execute_batch(&trigger).unwrap();
    outsider
}

#[test]
fn what_goes_wrong_with_every_job_of_a_group_is_told_to_each() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("outlast.db");
    let store = Sqlite::open(&path).unwrap();
    let outsider = refuse(&path, "1");
    let answers = append_all(&store, (0..10).map(|n| creation(n, "x")).collect());
    assert!(answers.iter().all(|answer| matches!(answer, Err(Error::Rejected(_)))), "{answers:?}");
    assert_eq!(store.open_runs().unwrap(), []);
    outsider.execute_batch("DROP TRIGGER no").unwrap();
    store.append_wait(creation(1, "x")).unwrap();
    assert_eq!(store.check().unwrap(), []);
}

/// Adversary's finding 21: one append that broke a constraint undid everything that was committed with it.
#[test]
fn one_bad_append_harms_only_its_own_run() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("outlast.db");
    let store = Sqlite::open(&path).unwrap();
    let _outsider = refuse(&path, "NEW.id = 'aaaa00000007'");
    let before = store.commits();
    let answers = append_all(&store, (0..200).map(|n| creation(n, "x")).collect());
    for (n, answer) in answers.iter().enumerate() {
        match n {
            7 => assert!(matches!(answer, Err(Error::Rejected(_))), "{answer:?}"),
            n => assert_eq!(*answer, Ok(()), "run {n} was harmed"),
        }
    }
    assert!(store.commits() - before < 200, "nothing was grouped, so nothing was tried");
    assert_eq!(store.open_runs().unwrap().len(), 199);
    assert_eq!(store.check().unwrap(), []);
}

fn known_to_the_next(store: Sqlite, path: &Path) -> usize {
    drop(store);
    Sqlite::open(path).unwrap().open_runs().unwrap().len()
}

#[test]
fn a_store_whose_files_are_taken_away_between_appends_loses_none() {
    for gone in [&[""][..], &["-wal"], &["", "-wal"], &["", "-wal", "-shm"]] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("outlast.db");
        let store = Sqlite::open(&path).unwrap();
        for n in 0..10 {
            store.append_wait(creation(n, "x")).unwrap();
            for suffix in gone {
                std::fs::remove_file(file::beside(&path, suffix)).unwrap();
            }
            assert_eq!(store.open_runs().unwrap().len(), n + 1, "{gone:?}");
        }
        store.see_to_files(Depth::Names).unwrap();
        assert_eq!(store.mended().len(), 10, "{gone:?}");
        assert_eq!(store.check().unwrap(), []);
        assert_eq!(known_to_the_next(store, &path), 10, "{gone:?}");
    }
}

#[test]
fn what_cannot_be_saved_is_kept_open_and_nothing_is_acknowledged_meanwhile() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("outlast.db");
    let store = Sqlite::open(&path).unwrap();
    store.append_wait(creation(1, "x")).unwrap();
    let obstacle = file::beside(&path, ".rescued.new");
    std::fs::create_dir(&obstacle).unwrap();
    std::fs::remove_file(&path).unwrap();
    for _ in 0..2 {
        let refused = store.append_wait(creation(2, "x")).unwrap_err();
        assert!(matches!(refused, Error::Unsaved { .. }), "{refused:?}");
        assert!(matches!(store.open_runs(), Err(Error::Unsaved { .. })));
    }
    std::fs::remove_dir(&obstacle).unwrap();
    store.append_wait(creation(2, "x")).unwrap();
    assert_eq!(known_to_the_next(store, &path), 2);
}

#[test]
fn another_programs_files_at_our_paths_are_never_touched() {
    for suffix in ["", "-wal"] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("outlast.db");
        let store = Sqlite::open(&path).unwrap();
        store.append_wait(creation(1, "x")).unwrap();
        let foreign = file::beside(&path, suffix);
        let other = directory.path().join("other");
        let mut made = std::fs::File::create(&other).unwrap();
        std::io::Write::write_all(&mut made, b"a person's").unwrap();
        std::fs::rename(&other, &foreign).unwrap();
        let refused = store.append_wait(creation(2, "x")).unwrap_err();
        assert!(matches!(refused, Error::Gone { .. }), "{refused:?}");
        assert!(matches!(store.open_runs(), Err(Error::Gone { .. })));
        drop(store);
        assert_eq!(std::fs::read(&foreign).unwrap(), b"a person's", "{suffix:?}");
        let copy = Sqlite::open(&file::beside(&path, ".rescued-1")).unwrap();
        assert_eq!(copy.open_runs().unwrap().len(), 1);
    }
}

#[test]
fn a_database_that_is_cut_short_beyond_what_is_remembered_takes_nothing_and_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("outlast.db");
    let store = Sqlite::open(&path).unwrap();
    for n in 0..100 {
        store.append_wait(creation(n, &"x".repeat(60_000))).unwrap();
    }
    // All of it is in the database, and the next writer has it from there.
    drop(store);
    let store = Sqlite::open(&path).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(4096).unwrap();
    let refused = store.append_wait(creation(200, "x")).unwrap_err();
    assert!(matches!(refused, Error::Gone { .. }), "{refused:?}");
    drop(store);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 4096);
}

/// A vacuum and an emptied log, as by sqlite3, take nothing away.
#[test]
fn files_that_another_program_made_shorter_and_left_sound_are_served_on() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("outlast.db");
    let store = Sqlite::open(&path).unwrap();
    for n in 0..50 {
        store.append_wait(creation(n, &"x".repeat(5000))).unwrap();
    }
    let outsider = Connection::open(&path).unwrap();
    let empty = "PRAGMA wal_checkpoint(TRUNCATE)";
    outsider.query_row(empty, [], |row| row.get::<_, i64>(0)).unwrap();
    store.append_wait(creation(50, "x")).unwrap();
    assert_eq!(store.mended(), [] as [String; 0]);
    assert_eq!(store.open_runs().unwrap().len(), 51);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "another program writes as it likes")]
fn a_file_of_another_program_in_the_place_of_the_log_is_refused_and_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("outlast.db");
    drop(Sqlite::open(&path).unwrap());
    let log = file::beside(&path, "-wal");
    std::fs::write(&log, "the user's text").unwrap();
    let opened = Sqlite::open(&path).map(drop);
    assert!(matches!(opened, Err(Error::Corrupt { .. })), "{opened:?}");
    assert_eq!(std::fs::read_to_string(&log).unwrap(), "the user's text");
    // What a power loss may leave of a log is no reason to refuse the journal.
    for left in [&[][..], &[0; 4096], &[0x37, 0x7f]] {
        std::fs::write(&log, left).unwrap();
        drop(Sqlite::open(&path).unwrap());
    }
}

#[test]
fn a_journal_that_is_a_link_to_nothing_is_refused_and_the_link_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("outlast.db");
    std::os::unix::fs::symlink(directory.path().join("unmounted/outlast.db"), &path).unwrap();
    let opened = Sqlite::open(&path).map(drop);
    assert!(matches!(opened, Err(Error::Corrupt { .. })), "{opened:?}");
    assert!(path.is_symlink());
}
