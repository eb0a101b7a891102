//! What every store promises of notices on their way, asked of each of them.

#![expect(clippy::unwrap_used, reason = "a test that is wrong panics")]

mod common;

use common::{creation, id, spec};
use outlast_engine::{RunId, Time};
use outlast_store::{
    Backlog, Change, Error, Journal, Memory, NoticeCounts, Outbox, Outgoing, Remove, Settled,
    Sqlite, Waiting,
};

const SINK: &str = "phone";

macro_rules! each_store_promises {
    ($($case:ident),* $(,)?) => {
        mod sqlite { $(#[test] fn $case() {
            let directory = tempfile::tempdir().unwrap();
            super::$case(&outlast_store::Sqlite::open(&directory.path().join("outlast.db")).unwrap());
        })* }
        mod memory { $(#[test] fn $case() { super::$case(&outlast_store::Memory::new()); })* }
    };
}

each_store_promises! {
    what_is_appended_waits_for_each_sink_on_its_own,
    a_run_is_told_of_in_order_whatever_was_refused,
    a_sink_that_fails_keeps_its_count_until_something_is_delivered,
    what_is_disabled_stays_so_until_it_is_enabled,
    a_batch_is_the_same_when_it_is_asked_for_again,
    what_is_too_old_is_given_up_and_the_rest_waits_on,
    what_was_settled_stays_settled,
    settled_notices_are_forgotten_in_time_and_waiting_ones_never,
    a_removed_run_leaves_what_is_still_to_be_told,
    a_writer_with_an_old_epoch_changes_nothing,
    counts_are_by_run_and_by_sink,
}

/// Makes a run that tells each sink so many things.
fn tell(store: &impl Journal, run: &str, sinks: &[&str], notices: u64) -> Vec<String> {
    let epoch = epoch(store);
    let (mut append, _) = creation(&id(run), spec(), epoch);
    let ids: Vec<String> = (1..=notices).map(|n| format!("{run}/t1.a1/{n}")).collect();
    append.outbox = ids
        .iter()
        .zip(1..)
        .flat_map(|(id, n)| {
            sinks.iter().map(move |sink| Outgoing {
                id: id.clone(),
                sink: (*sink).to_owned(),
                kind: "run.completed".to_owned(),
                at: Time(n * 1000),
                body: format!("{{\"n\":{n}}}"),
            })
        })
        .collect();
    store.append_wait(append).unwrap();
    ids
}

/// The epoch that the store is at; the tests take none away from each other.
fn epoch(store: &impl Journal) -> u64 {
    match store.change_wait(u64::MAX, Change::Enable { sink: String::new() }) {
        Err(Error::StaleEpoch { current, .. }) => current,
        other => panic!("{other:?}"),
    }
}

fn change(store: &impl Journal, change: Change) {
    store.change_wait(epoch(store), change).unwrap();
}

fn ids(waiting: &[Waiting]) -> Vec<&str> {
    waiting.iter().map(|notice| notice.id.as_str()).collect()
}

fn settle(ids: &[&str], how: Settled, at: u64) -> Change {
    let ids = ids.iter().map(|id| (*id).to_owned()).collect();
    Change::Settle { sink: SINK.to_owned(), ids, how, at: Time(at), problem: None }
}

fn refused(id: &str, at: u64, next_at: u64) -> Change {
    let (sink, ids, problem) = (SINK.to_owned(), vec![id.to_owned()], "400".to_owned());
    Change::Refused { sink, ids, at: Time(at), next_at: Time(next_at), problem }
}

fn failed(id: &str, at: u64, next_at: u64) -> Change {
    let (sink, ids, problem) = (SINK.to_owned(), vec![id.to_owned()], "not there".to_owned());
    Change::Failed { sink, ids, at: Time(at), next_at: Time(next_at), problem }
}

fn what_is_appended_waits_for_each_sink_on_its_own(store: &impl Journal) {
    tell(store, "aaaa00000001", &["b", "a"], 2);
    assert_eq!(store.waiting_sinks().unwrap(), ["a", "b"]);
    let waiting = store.waiting("a", Time(0), 10).unwrap();
    assert_eq!(ids(&waiting), ["aaaa00000001/t1.a1/1", "aaaa00000001/t1.a1/2"]);
    assert_eq!((waiting[1].at, waiting[1].body.as_str()), (Time(2000), "{\"n\":2}"));
    assert_eq!(store.waiting("a", Time(0), 1).unwrap(), waiting[..1]);
    assert_eq!(store.waiting("c", Time(0), 10).unwrap(), []);
}

fn a_run_is_told_of_in_order_whatever_was_refused(store: &impl Journal) {
    let a = tell(store, "aaaa00000001", &[SINK], 2);
    let b = tell(store, "aaaa00000002", &[SINK], 2);
    change(store, refused(&a[0], 5, 100));
    let now = |at| store.waiting(SINK, Time(at), 10).unwrap();
    assert_eq!(ids(&now(99)), [&b[0], &b[1]], "the second of a run must not overtake the first");
    assert_eq!(ids(&now(100)), [&b[0], &b[1], &a[0], &a[1]], "who was refused waits for others");
    assert_eq!((now(100)[2].tries, now(100)[2].since), (1, Some(Time(5))));
    assert_eq!(
        store.backlog(SINK, Time(50)).unwrap(),
        Backlog { waiting: 4, next_at: Some(Time(100)) }
    );
    let state = &store.sink_states().unwrap()[0];
    assert_eq!((state.refused, state.refused_since), (1, Some(Time(5))));
    assert_eq!(state.refusal.as_deref(), Some("400"));
    change(store, refused(&a[0], 105, 300));
    assert_eq!(now(300)[2].since, Some(Time(5)));
    assert_eq!(store.sink_health(SINK).unwrap(), None);
}

fn a_sink_that_fails_keeps_its_count_until_something_is_delivered(store: &impl Journal) {
    let a = tell(store, "aaaa00000001", &[SINK, "other"], 2);
    change(store, failed(&a[0], 10, 20));
    change(store, failed(&a[0], 20, 40));
    let health = store.sink_health(SINK).unwrap().unwrap();
    assert_eq!((health.failures, health.since, health.next_at), (2, Time(10), Some(Time(40))));
    assert_eq!(health.problem.as_deref(), Some("not there"));
    assert_eq!(ids(&store.waiting(SINK, Time(30), 10).unwrap()), [&a[0], &a[1]]);
    assert_eq!(store.sink_health("other").unwrap(), None);
    change(store, settle(&[&a[0]], Settled::Delivered, 50));
    assert_eq!(store.sink_health(SINK).unwrap(), None);
}

fn what_is_disabled_stays_so_until_it_is_enabled(store: &impl Journal) {
    let a = tell(store, "aaaa00000001", &[SINK], 1);
    change(store, refused(&a[0], 5, 1_000_000));
    let problem = "gone".to_owned();
    change(store, Change::Disable { sink: SINK.to_owned(), at: Time(9), problem });
    change(store, failed(&a[0], 10, 20));
    let health = store.sink_health(SINK).unwrap().unwrap();
    assert_eq!((health.disabled_at, health.since), (Some(Time(9)), Time(9)));
    change(store, Change::Enable { sink: SINK.to_owned() });
    assert_eq!(store.sink_health(SINK).unwrap(), None);
    assert_eq!(ids(&store.waiting(SINK, Time(10), 10).unwrap()), [&a[0]]);
}

fn a_batch_is_the_same_when_it_is_asked_for_again(store: &impl Journal) {
    let a = tell(store, "aaaa00000001", &[SINK], 3);
    let both = a[..2].to_vec();
    let batch =
        |ids, name: &str| Change::Batch { sink: SINK.to_owned(), ids, batch: name.to_owned() };
    change(store, batch(both, "first"));
    change(store, batch(a.clone(), "second"));
    assert_eq!(ids(&store.batch(SINK, "first").unwrap()), [&a[0], &a[1]]);
    assert_eq!(ids(&store.batch(SINK, "second").unwrap()), [&a[2]]);
    change(store, settle(&[&a[0], &a[1]], Settled::Delivered, 50));
    assert_eq!(store.told_since(SINK, Time(49)).unwrap(), 1, "together is once");
    assert_eq!(store.told_since(SINK, Time(50)).unwrap(), 0);
    assert_eq!(store.batch(SINK, "first").unwrap(), []);
}

fn what_is_too_old_is_given_up_and_the_rest_waits_on(store: &impl Journal) {
    let a = tell(store, "aaaa00000001", &[SINK, "other"], 3);
    let (sink, problem) = (SINK.to_owned(), "too long".to_owned());
    let give_up = |before, keep, problem: &String| Change::GiveUp {
        sink: sink.clone(),
        before: Time(before),
        keep,
        at: Time(9000),
        problem: problem.clone(),
    };
    change(store, give_up(2500, 100, &problem));
    assert_eq!(ids(&store.waiting(SINK, Time(0), 10).unwrap()), [&a[2]]);
    assert_eq!(store.waiting("other", Time(0), 10).unwrap().len(), 3);
    let counts = store.notice_counts(&id("aaaa00000001")).unwrap();
    assert_eq!((counts.given_up, counts.problem.as_deref()), (2, Some("too long")));
    assert_eq!(store.sink_states().unwrap()[1].given_up_at, Some(Time(9000)));
    let b = tell(store, "aaaa00000002", &[SINK], 3);
    change(store, give_up(0, 2, &"too many".to_owned()));
    assert_eq!(ids(&store.waiting(SINK, Time(0), 10).unwrap()), [&b[1], &b[2]]);
}

fn what_was_settled_stays_settled(store: &impl Journal) {
    let a = tell(store, "aaaa00000001", &[SINK], 1);
    change(store, settle(&[&a[0]], Settled::Delivered, 10));
    change(store, settle(&[&a[0]], Settled::GivenUp, 20));
    change(store, refused(&a[0], 30, 40));
    let counts = store.notice_counts(&id("aaaa00000001")).unwrap();
    assert_eq!(counts, NoticeCounts { delivered: 1, ..NoticeCounts::default() });
    assert_eq!(store.backlog(SINK, Time(0)).unwrap(), Backlog::default());
    assert!(store.waiting_sinks().unwrap().is_empty());
}

fn settled_notices_are_forgotten_in_time_and_waiting_ones_never(store: &impl Journal) {
    let a = tell(store, "aaaa00000001", &[SINK], 5);
    for (id, at) in a[..4].iter().zip([10, 20, 30, 40]) {
        change(store, settle(&[id], Settled::Muted, at));
    }
    let muted = || store.notice_counts(&id("aaaa00000001")).unwrap().muted;
    change(store, Change::Prune { before: Time(20), keep: 100 });
    assert_eq!(muted(), 3);
    change(store, Change::Prune { before: Time(0), keep: 1 });
    assert_eq!(muted(), 1);
    change(store, Change::Prune { before: Time(u64::MAX >> 1), keep: 0 });
    assert_eq!(muted(), 0);
    assert_eq!(ids(&store.waiting(SINK, Time(0), 10).unwrap()), [&a[4]]);
}

fn a_removed_run_leaves_what_is_still_to_be_told(store: &impl Journal) {
    let a = tell(store, "aaaa00000001", &[SINK], 2);
    change(store, settle(&[&a[0]], Settled::Delivered, 10));
    store.remove(&id("aaaa00000001"), epoch(store), Remove::Any).unwrap();
    assert_eq!(ids(&store.waiting(SINK, Time(0), 10).unwrap()), [&a[1]]);
    let counts = store.notice_counts(&id("aaaa00000001")).unwrap();
    assert_eq!((counts.pending, counts.delivered), (1, 0));
    assert_eq!(store.check().unwrap(), []);
}

fn a_writer_with_an_old_epoch_changes_nothing(store: &impl Journal) {
    let a = tell(store, "aaaa00000001", &[SINK], 1);
    let old = epoch(store);
    let current = store.take_epoch().unwrap();
    let answer = store.change_wait(old, settle(&[&a[0]], Settled::Delivered, 10));
    assert_eq!(answer, Err(Error::StaleEpoch { held: old, current }));
    assert_eq!(store.backlog(SINK, Time(0)).unwrap().waiting, 1);
}

fn counts_are_by_run_and_by_sink(store: &impl Journal) {
    let a = tell(store, "aaaa00000001", &[SINK], 3);
    tell(store, "aaaa00000002", &[SINK, "b"], 1);
    change(store, settle(&[&a[0]], Settled::Delivered, 10));
    change(store, settle(&[&a[1]], Settled::Muted, 10));
    change(store, failed(&a[2], 10, 20));
    change(
        store,
        Change::Disable { sink: "z".to_owned(), at: Time(1), problem: "gone".to_owned() },
    );
    let counts = store.notice_counts(&id("aaaa00000001")).unwrap();
    let problem = Some("not there".to_owned());
    assert_eq!(counts, NoticeCounts { pending: 1, delivered: 1, muted: 1, given_up: 0, problem });
    assert_eq!(store.notice_counts(&RunId("none".to_owned())).unwrap(), NoticeCounts::default());
    let states = store.sink_states().unwrap();
    let seen: Vec<_> = states
        .iter()
        .map(|state| (state.sink.as_str(), state.pending, state.delivered, state.oldest_at))
        .collect();
    let expected =
        [("b", 1, 0, Some(Time(1000))), (SINK, 2, 1, Some(Time(1000))), ("z", 0, 0, None)];
    assert_eq!(seen, expected);
    let failing: Vec<bool> = states.iter().map(|state| state.health.is_some()).collect();
    assert_eq!(failing, [false, true, true]);
}

/// A backlog, its batches and how its sink fares are still there after the store was closed.
#[test]
fn nothing_of_the_outbox_is_lost_with_the_process() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("outlast.db");
    let store = Sqlite::open(&path).unwrap();
    let a = tell(&store, "aaaa00000001", &[SINK], 2);
    change(&store, Change::Batch { sink: SINK.to_owned(), ids: a.clone(), batch: "b".to_owned() });
    change(&store, failed(&a[0], 10, 20));
    change(&store, refused(&a[1], 10, 90));
    let (waiting, health) =
        (store.waiting(SINK, Time(99), 9).unwrap(), store.sink_health(SINK).unwrap());
    drop(store);
    let store = Sqlite::open(&path).unwrap();
    assert_eq!(store.waiting(SINK, Time(99), 9).unwrap(), waiting);
    assert_eq!((store.sink_health(SINK).unwrap(), health.is_some()), (health, true));
}

#[test]
fn the_simulator_sees_every_notice() {
    let store = Memory::new();
    tell(&store, "aaaa00000001", &[SINK], 1);
    let told = store.told(&id("aaaa00000001"));
    assert_eq!(told, [("run.completed".to_owned(), SINK.to_owned())]);
}
