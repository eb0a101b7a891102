//! A journal of schema 3, from before rows had what lists show of turns, is brought up to date without a word lost.

#![expect(clippy::unwrap_used, reason = "a test that is wrong panics")]

mod common;

use std::path::Path;

use common::{Held, create_run, spec};
use outlast_engine::{Fact, RunSpec};
use outlast_store::{Journal, Sqlite};
use rusqlite::Connection;

const STEPS: [&str; 3] = [
    include_str!("../migrations/0001.sql"),
    include_str!("../migrations/0002.sql"),
    include_str!("../migrations/0003.sql"),
];

/// The same runs and events in a journal as schema 3 had it.
fn take_back(new: &Path, old: &Path) {
    let connection = Connection::open(old).unwrap();
    connection.pragma_update(None, "application_id", 0x4f75_746c).unwrap();
    STEPS.iter().for_each(|step| connection.execute_batch(step).unwrap());
    connection.execute("ATTACH ?1 AS newer", [new.to_str().unwrap()]).unwrap();
    connection.execute("DELETE FROM fence", []).unwrap();
    for table in ["runs", "events", "fence"] {
        let columns = format!("SELECT group_concat(name) FROM pragma_table_info('{table}')");
        let columns: String = connection.query_row(&columns, [], |row| row.get(0)).unwrap();
        let copy = format!("INSERT INTO {table} ({columns}) SELECT {columns} FROM newer.{table}");
        connection.execute(&copy, []).unwrap();
    }
    connection.pragma_update(None, "user_version", 3).unwrap();
    connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(())).unwrap();
}

fn complete_with(store: &Sqlite, held: &mut Held, said: &str) {
    let mut append = held.append_of(&held.exited(0));
    for event in &mut append.events {
        if let Fact::TurnCommitted { summary, .. } = &mut event.fact {
            said.clone_into(summary);
        }
    }
    held.run = held.after(&append.events);
    append.row = held.run.row();
    store.append_wait(append).unwrap();
}

#[test]
fn rows_from_before_get_the_summary_and_the_task_that_replaying_gives() {
    let dir = tempfile::tempdir().unwrap();
    let (new, old) = (dir.path().join("new.db"), dir.path().join("old.db"));
    let store = Sqlite::open(&new).unwrap();
    let epoch = store.take_epoch().unwrap();
    let with_task = |task: &str| RunSpec { task: Some(task.to_owned()), ..spec() };
    let mut runs = [
        create_run(&store, "aaaa00000001", with_task("mend it"), epoch).unwrap(),
        create_run(&store, "aaaa00000002", with_task(&"ö".repeat(300)), epoch).unwrap(),
        create_run(&store, "aaaa00000003", spec(), epoch).unwrap(),
    ];
    for (held, said) in runs.iter_mut().zip(["mended", &"é\n".repeat(300), ""]) {
        complete_with(&store, held, said);
    }
    drop(store);
    take_back(&new, &old);
    let store = Sqlite::open(&old).unwrap();
    for held in &runs {
        let (row, wanted) = (store.row(&held.id()).unwrap().unwrap(), held.run.row());
        assert_eq!((&row.summary, &row.task), (&wanted.summary, &wanted.task), "{}", held.id());
    }
    assert_eq!(store.check().unwrap(), []);
    assert_eq!(runs[1].run.row().summary.unwrap().chars().count(), 201, "cut, and so marked");
}
