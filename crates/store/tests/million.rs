//! A run whose journal is very long: what is asked of it costs what is asked for.

#![expect(clippy::unwrap_used, reason = "a test that is wrong panics")]

mod common;

use common::{create_run, spec};
use outlast_engine::{Event, Fact, Health, Run, Time};
use outlast_store::{Append, Entry, Filter, Journal, Sqlite};

const EVENTS: u64 = 1_000_000;
const PAGE: usize = 10_000;

fn fact(seq: u64) -> Fact {
    match seq.is_multiple_of(2) {
        true => Fact::HealthDegraded {
            health: Health::Silent,
            since: Time(seq),
            why: "no output for 6 minutes".to_owned(),
        },
        false => Fact::HealthRecovered { from: Health::Silent },
    }
}

#[test]
fn slow_a_run_of_a_million_events_is_read_page_by_page() {
    let directory = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&directory.path().join("outlast.db")).unwrap();
    let epoch = store.take_epoch().unwrap();
    let mut run = create_run(&store, "aaaa00000001", spec(), epoch).unwrap().run;
    while run.seq() < EVENTS {
        let next = run.seq() + 1;
        let last = (run.seq() + PAGE as u64).min(EVENTS);
        let events: Vec<Event> =
            (next..=last).map(|seq| Event { seq, at: Time(seq), fact: fact(seq) }).collect();
        let expected_seq = run.seq();
        run = events.iter().fold(run, |run, event| run.apply(event).unwrap());
        let append = Append {
            run: run.id.clone(),
            expected_seq,
            epoch,
            events,
            row: run.row(),
            outbox: Vec::new(),
            spent: Entry::default(),
        };
        store.append_wait(append).unwrap();
    }
    // As a daemon replays it: a page at a time.
    let mut replayed = Run::replay(&run.id, &store.events(&run.id, 0, PAGE).unwrap()).unwrap();
    while replayed.seq() < EVENTS {
        let page = store.events(&run.id, replayed.seq(), PAGE).unwrap();
        assert!(!page.is_empty() && page.len() <= PAGE);
        replayed = page.iter().fold(replayed, |run, event| run.apply(event).unwrap());
    }
    assert_eq!(replayed, run);
    let tail = store.events(&run.id, EVENTS - 5, 100).unwrap();
    assert_eq!(
        tail.iter().map(|event| event.seq).collect::<Vec<_>>(),
        [999_996, 999_997, 999_998, 999_999, 1_000_000]
    );
    assert_eq!(store.rows(&Filter::default()).unwrap(), [run.row()]);
    assert_eq!(store.row(&run.id).unwrap(), Some(run.row()));
}
