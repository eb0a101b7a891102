//! The faults that the simulator asks the journal in memory for.

#![expect(clippy::unwrap_used, reason = "a test that is wrong panics")]

mod common;

use common::{create_run, id, spec};
use outlast_store::{Error, Fault, Journal, Memory};

fn create_under(fault: Fault) -> (Memory, Result<(), Error>) {
    let store = Memory::new();
    let epoch = store.take_epoch().unwrap();
    store.fail_next(fault);
    let answer = create_run(&store, "aaaa00000001", spec(), epoch).map(drop);
    create_run(&store, "aaaa00000002", spec(), epoch).unwrap();
    (store, answer)
}

#[test]
fn a_full_store_writes_nothing_and_says_so() {
    let (store, answer) = create_under(Fault::RefuseFull);
    assert!(answer.unwrap_err().is_transient());
    assert_eq!(store.open_runs().unwrap(), [id("aaaa00000002")]);
}

#[test]
fn lost_before_the_commit_is_not_written() {
    let (store, answer) = create_under(Fault::LoseBeforeCommit);
    assert_eq!(answer, Err(Error::Closed));
    assert_eq!(store.open_runs().unwrap(), [id("aaaa00000002")]);
}

#[test]
fn lost_after_the_commit_is_written() {
    let (store, answer) = create_under(Fault::LoseAfterCommit);
    assert_eq!(answer, Err(Error::Closed));
    assert_eq!(store.open_runs().unwrap(), [id("aaaa00000001"), id("aaaa00000002")]);
}
