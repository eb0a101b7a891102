//! Another program has the journal open and does not let go of it.

#![expect(clippy::unwrap_used, reason = "a test that is wrong panics")]

mod common;

use common::{create_run, spec};
use outlast_store::{Error, Journal, Sqlite};
use rusqlite::Connection;

#[test]
fn a_journal_that_another_process_has_locked_is_said_to_be_and_nothing_hangs() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("outlast.db");
    let store = Sqlite::open(&path).unwrap();
    let epoch = store.take_epoch().unwrap();
    // A connection that writes and does not finish.
    let outsider = Connection::open(&path).unwrap();
    outsider.execute_batch("BEGIN IMMEDIATE; UPDATE fence SET epoch = epoch").unwrap();
    let refused = create_run(&store, "aaaa00000001", spec(), epoch).map(drop);
    assert_eq!(refused, Err(Error::Locked(path.clone())));
    assert!(refused.unwrap_err().is_transient());
    assert_eq!(store.open_runs().unwrap(), [], "reading goes on");
    outsider.execute_batch("ROLLBACK").unwrap();
    create_run(&store, "aaaa00000001", spec(), epoch).unwrap();
    drop((store, outsider));
    // A connection that wants the file for itself alone.
    let outsider = Connection::open(&path).unwrap();
    outsider.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; COMMIT").unwrap();
    assert_eq!(Sqlite::open(&path).err(), Some(Error::Locked(path.clone())));
    drop(outsider);
    let store = Sqlite::open(&path).unwrap();
    assert_eq!(store.open_runs().unwrap().len(), 1);
    assert_eq!(store.check().unwrap(), []);
}
