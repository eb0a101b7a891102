//! What cannot be read is refused, never treated as empty, and never touched.

#![expect(clippy::unwrap_used, reason = "a test that is wrong panics")]

mod common;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

use common::{create_run, id, spec};
use outlast_store::{Error, Filter, Journal, Sqlite};
use rusqlite::Connection;
use tempfile::TempDir;

const PAGE: u64 = 4096;

/// A journal with a few runs in it, closed.
struct Scene {
    directory: TempDir,
}

impl Scene {
    fn new() -> Self {
        let scene = Self { directory: tempfile::tempdir().unwrap() };
        let store = Sqlite::open(&scene.db()).unwrap();
        let epoch = store.take_epoch().unwrap();
        for n in 0..40 {
            let mut held = create_run(&store, &format!("aaaa{n:08}"), spec(), epoch).unwrap();
            (0..4).for_each(|_| held.tell(&store, &held.next_news()).unwrap());
        }
        scene
    }

    fn db(&self) -> PathBuf {
        self.directory.path().join("outlast.db")
    }

    fn file(&self) -> File {
        OpenOptions::new().write(true).read(true).open(self.db()).unwrap()
    }

    fn length(&self) -> u64 {
        fs::metadata(self.db()).unwrap().len()
    }

    /// The error that opening it gives, once it is sure that nothing in the directory has changed.
    fn refusal(&self) -> Error {
        let before = contents(self.directory.path());
        let Err(error) = Sqlite::open(&self.db()) else { panic!("it was opened") };
        assert!(before == contents(self.directory.path()), "something was changed");
        error
    }

    fn is_corrupt_because(&self) -> String {
        match self.refusal() {
            Error::Corrupt { what, .. } => what,
            other => panic!("{other}"),
        }
    }
}

fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    #[expect(clippy::disallowed_methods, reason = "a test that is interrupted is run again")]
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// The numbers of the pages in a log: a header of 32 bytes, then frames of 24 bytes and a page.
fn logged_pages(log: &Path) -> Vec<u64> {
    let bytes = fs::read(log).unwrap();
    let frames = bytes[32..].chunks(24 + 4096);
    frames.map(|frame| u32::from_be_bytes(frame[..4].try_into().unwrap()).into()).collect()
}

#[test]
fn a_closed_journal_is_one_private_file() {
    let scene = Scene::new();
    assert_eq!(contents(scene.directory.path()).into_keys().collect::<Vec<_>>(), [scene.db()]);
    assert_eq!(fs::metadata(scene.db()).unwrap().permissions().mode() & 0o777, 0o600);
    let _store = Sqlite::open(&scene.db()).unwrap();
    for path in contents(scene.directory.path()).into_keys() {
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600,
            "{}",
            path.display()
        );
    }
}

#[test]
fn a_newer_schema() {
    let scene = Scene::new();
    let connection = Connection::open(scene.db()).unwrap();
    connection.pragma_update(None, "user_version", 99).unwrap();
    drop(connection);
    assert_eq!(scene.refusal(), Error::Newer { path: scene.db(), found: 99, known: 6 });
}

#[test]
fn an_empty_file() {
    let scene = Scene::new();
    scene.file().set_len(0).unwrap();
    assert_eq!(scene.is_corrupt_because(), "it is empty");
}

#[test]
fn a_truncated_file() {
    let scene = Scene::new();
    let length = scene.length();
    assert!(length > 4 * PAGE);
    for shorter in [length - 1, length - 100, length - PAGE, length / PAGE / 2 * PAGE, PAGE, 100] {
        scene.file().set_len(shorter).unwrap();
        assert_eq!(scene.is_corrupt_because(), "its end is missing", "{shorter} of {length} bytes");
    }
    for shorter in [99, 50, 3] {
        scene.file().set_len(shorter).unwrap();
        scene.is_corrupt_because();
    }
}

#[test]
fn flipped_bytes_in_any_page() {
    let scene = Scene::new();
    for page in 1..scene.length() / PAGE {
        let mut byte = [0];
        scene.file().read_exact_at(&mut byte, page * PAGE).unwrap();
        scene.file().write_all_at(&[!byte[0]], page * PAGE).unwrap();
        scene.is_corrupt_because();
        scene.file().write_all_at(&byte, page * PAGE).unwrap();
    }
    Sqlite::open(&scene.db()).unwrap();
}

#[test]
fn a_file_of_something_else() {
    let scene = Scene::new();
    scene.file().write_all_at(b"#!/bin/sh\necho hello\n", 0).unwrap();
    assert_eq!(scene.is_corrupt_because(), "it is not a SQLite database");
}

#[test]
fn a_database_of_something_else() {
    let scene = Scene { directory: tempfile::tempdir().unwrap() };
    Connection::open(scene.db()).unwrap().execute_batch("CREATE TABLE runs (id)").unwrap();
    assert_eq!(scene.is_corrupt_because(), "it is a database of something else");
}

#[test]
fn a_log_whose_database_is_gone() {
    let scene = Scene::new();
    let store = Sqlite::open(&scene.db()).unwrap();
    create_run(&store, "bbbb00000001", spec(), store.take_epoch().unwrap()).unwrap();
    let log = fs::read(scene.directory.path().join("outlast.db-wal")).unwrap();
    drop(store);
    fs::remove_file(scene.db()).unwrap();
    let file = File::create(scene.directory.path().join("outlast.db-wal")).unwrap();
    file.write_all_at(&log, 0).unwrap();
    assert_eq!(scene.is_corrupt_because(), "it is missing, and its write-ahead log is still there");
}

#[test]
fn damage_is_found_with_a_log_beside_it_and_the_log_is_kept() {
    let scene = Scene::new();
    let store = Sqlite::open(&scene.db()).unwrap();
    create_run(&store, "bbbb00000001", spec(), store.take_epoch().unwrap()).unwrap();
    let crashed = Scene { directory: tempfile::tempdir().unwrap() };
    for name in ["outlast.db", "outlast.db-wal"] {
        fs::copy(scene.directory.path().join(name), crashed.directory.path().join(name)).unwrap();
    }
    // A page that the log does not hold, so that the damage is not covered up by it.
    let logged = logged_pages(&crashed.directory.path().join("outlast.db-wal"));
    let page = (2..).find(|page| !logged.contains(page)).unwrap();
    crashed.file().write_all_at(&[0xee; 64], (page - 1) * PAGE).unwrap();
    let before = contents(crashed.directory.path());
    assert!(matches!(Sqlite::open(&crashed.db()), Err(Error::Corrupt { .. })));
    let mut after = contents(crashed.directory.path());
    after.remove(&crashed.directory.path().join("outlast.db-shm"));
    assert!(before == after);
}

#[test]
fn a_file_that_may_not_be_written_to() {
    let scene = Scene::new();
    fs::set_permissions(scene.db(), Permissions::from_mode(0o400)).unwrap();
    assert_eq!(scene.refusal(), Error::ReadOnly(scene.db()));
}

#[test]
fn a_directory_that_may_not_be_written_to() {
    let scene = Scene::new();
    let directory = scene.directory.path();
    fs::set_permissions(directory, Permissions::from_mode(0o500)).unwrap();
    let existing = scene.refusal();
    let missing = Sqlite::open(&directory.join("another.db")).err();
    fs::set_permissions(directory, Permissions::from_mode(0o700)).unwrap();
    assert_eq!(existing, Error::ReadOnly(directory.to_owned()));
    assert_eq!(missing, Some(Error::ReadOnly(directory.to_owned())));
}

#[test]
fn a_directory_that_is_not_there() {
    let scene = Scene { directory: tempfile::tempdir().unwrap() };
    assert!(matches!(
        Sqlite::open(&scene.directory.path().join("no/outlast.db")),
        Err(Error::Io(_))
    ));
}

#[test]
fn what_a_crash_left_of_making_a_journal_is_cleared_away() {
    let scene = Scene { directory: tempfile::tempdir().unwrap() };
    File::create(scene.directory.path().join("outlast.db.new")).unwrap();
    File::create(scene.directory.path().join("outlast.db.new-wal")).unwrap();
    let store = Sqlite::open(&scene.db()).unwrap();
    assert_eq!(store.check().unwrap(), []);
}

#[test]
fn one_damaged_run_does_not_stop_the_others() {
    let scene = Scene::new();
    let connection = Connection::open(scene.db()).unwrap();
    let spoil_event =
        "UPDATE events SET body = '{\"kind\":\"Nonsense\"}' WHERE run = 2 AND seq = 3";
    let spoil_row = "UPDATE runs SET state = 'dreaming' WHERE no = 5";
    connection.execute_batch(&format!("{spoil_event}; {spoil_row}")).unwrap();
    drop(connection);
    let store = Sqlite::open(&scene.db()).unwrap();
    let (torn, dreaming) = (id("aaaa00000001"), id("aaaa00000004"));
    let Err(Error::UnreadableRun { run, what }) = store.events(&torn, 0, 100) else {
        panic!("it was read")
    };
    assert_eq!(run, torn);
    assert!(what.starts_with("event 3: unknown variant `Nonsense`"), "{what}");
    assert_eq!(store.events(&torn, 0, 2).unwrap().len(), 2);
    assert!(matches!(store.row(&dreaming), Err(Error::UnreadableRun { .. })));
    assert_eq!(store.rows(&Filter::default()).unwrap().len(), 39);
    assert_eq!(store.open_runs().unwrap().len(), 40);
    assert!(store.events(&id("aaaa00000007"), 0, 100).unwrap().len() > 4);
    let problems: Vec<_> = store.check().unwrap().into_iter().map(|problem| problem.run).collect();
    assert_eq!(problems, [Some(torn), Some(dreaming)]);
}
