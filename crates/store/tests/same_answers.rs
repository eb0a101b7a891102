//! Whatever is asked of them in whatever order, the store on disk and its twin in memory answer the same.

#![expect(clippy::unwrap_used, reason = "a test that is wrong panics")]

mod common;

use std::collections::BTreeMap;

use common::{Held, creation, id, spec};
use outlast_engine::{Input, RunId, RunSpec, StateName, StopMode};
use outlast_store::{Append, Error, Filter, Journal, Memory, Remove, Sqlite};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Op {
    Create {
        run: usize,
        name: Option<u8>,
        key: Option<u8>,
    },
    Tell {
        run: usize,
    },
    Stop {
        run: usize,
    },
    Complete {
        run: usize,
    },
    /// Writes as if `by` events had not been seen.
    TellBehind {
        run: usize,
        by: u64,
    },
    TellStale {
        run: usize,
    },
    TakeEpoch,
    Remove {
        run: usize,
        how: Remove,
    },
    Resolve {
        text: String,
    },
    List {
        filter: Filter,
    },
}

const RUNS: [&str; 5] =
    ["abc000000001", "abc000000002", "abd000000001", "xyz000000001", "xyz000000002"];

fn op() -> impl Strategy<Value = Op> {
    let run = || 0..RUNS.len();
    let small = || prop::option::of(0..2_u8);
    let how = prop_oneof![Just(Remove::Ended), Just(Remove::Any)];
    let state = prop::option::of(prop_oneof![Just(StateName::Running), Just(StateName::Completed)]);
    let filter = (any::<bool>(), state, small(), prop::option::of(0..4_usize)).prop_map(
        |(all, state, label, most)| {
            let labels =
                label.map(|label| ("label".to_owned(), label.to_string())).into_iter().collect();
            Filter { all, state, labels, most, ..Filter::default() }
        },
    );
    prop_oneof![
        6 => (run(), small(), small()).prop_map(|(run, name, key)| Op::Create { run, name, key }),
        6 => run().prop_map(|run| Op::Tell { run }),
        1 => run().prop_map(|run| Op::Stop { run }),
        3 => run().prop_map(|run| Op::Complete { run }),
        1 => (run(), 1..4_u64).prop_map(|(run, by)| Op::TellBehind { run, by }),
        1 => run().prop_map(|run| Op::TellStale { run }),
        1 => Just(Op::TakeEpoch),
        2 => (run(), how).prop_map(|(run, how)| Op::Remove { run, how }),
        2 => "n[01]|abc|ab|abd0|xyz|[a-z]{3}".prop_map(|text| Op::Resolve { text }),
        2 => filter.prop_map(|filter| Op::List { filter }),
    ]
}

struct Twins {
    disk: Sqlite,
    memory: Memory,
    epoch: u64,
    held: BTreeMap<usize, Held>,
}

impl Twins {
    fn apply(&mut self, op: &Op) {
        match op {
            Op::Create { run, name, key } => self.create(*run, *name, *key),
            Op::Tell { run } => self.tell(*run, Held::next_news),
            Op::Stop { run } => {
                self.tell(*run, |_| Input::StopAsked {
                    mode: StopMode::Gracefully,
                    order: outlast_engine::Order::default(),
                });
            }
            Op::Complete { run } => {
                self.tell(*run, |held| {
                    if held.run.live().is_some() { held.exited(0) } else { Input::Woke }
                });
                self.tell(*run, |_| Input::Finished);
            }
            Op::TellBehind { run, by } => self.tell_wrongly(*run, |append| {
                append.expected_seq = append.expected_seq.saturating_sub(*by);
                append.events.iter_mut().for_each(|event| event.seq -= by);
            }),
            Op::TellStale { run } => self.tell_wrongly(*run, |append| append.epoch -= 1),
            Op::TakeEpoch => self.take_epoch(),
            Op::Remove { run, how } => self.remove(*run, *how),
            Op::Resolve { text } => assert_eq!(self.disk.resolve(text), self.memory.resolve(text)),
            Op::List { filter } => assert_eq!(self.disk.rows(filter), self.memory.rows(filter)),
        }
    }

    fn create(&mut self, run: usize, name: Option<u8>, key: Option<u8>) {
        let labels = name.map(|n| ("label".to_owned(), n.to_string())).into_iter().collect();
        let (name, key) = (name.map(|n| format!("n{n}")), key.map(|k| format!("k{k}")));
        let (append, held) =
            creation(&run_id(run), RunSpec { name, key, labels, ..spec() }, self.epoch);
        if self.append(append).is_ok() {
            self.held.insert(run, held);
        }
    }

    fn tell(&mut self, run: usize, news: impl Fn(&Held) -> Input) {
        let mut held = self
            .held
            .get(&run)
            .cloned()
            .unwrap_or_else(|| creation(&run_id(run), spec(), self.epoch).1);
        held.epoch = self.epoch;
        let append = held.append_of(&news(&held));
        held.run = held.after(&append.events);
        if self.append(append).is_ok() {
            self.held.insert(run, held);
        }
    }

    fn tell_wrongly(&mut self, run: usize, spoil: impl Fn(&mut Append)) {
        let Some(held) = self.held.get(&run) else { return };
        let mut append = held.append_of(&held.next_news());
        spoil(&mut append);
        assert!(self.append(append).is_err());
    }

    fn append(&self, append: Append) -> Result<(), Error> {
        let answer = self.memory.append_wait(append.clone());
        assert_eq!(self.disk.append_wait(append), answer);
        answer
    }

    fn take_epoch(&mut self) {
        self.epoch = self.memory.take_epoch().unwrap();
        assert_eq!(self.disk.take_epoch(), Ok(self.epoch));
        self.held.values_mut().for_each(|held| held.epoch = self.epoch);
    }

    fn remove(&mut self, run: usize, how: Remove) {
        let answer = self.memory.remove(&run_id(run), self.epoch, how);
        assert_eq!(self.disk.remove(&run_id(run), self.epoch, how), answer);
        if answer.is_ok() {
            self.held.remove(&run);
        }
    }

    fn assert_same(&self) {
        assert_eq!(self.disk.open_runs(), self.memory.open_runs());
        assert_eq!(self.disk.counts(), self.memory.counts());
        let all = Filter { all: true, ..Filter::default() };
        assert_eq!(self.disk.rows(&all), self.memory.rows(&all));
        for run in RUNS.map(id) {
            assert_eq!(self.disk.row(&run), self.memory.row(&run));
            assert_eq!(self.disk.events(&run, 1, 7), self.memory.events(&run, 1, 7));
        }
    }
}

fn run_id(run: usize) -> RunId {
    id(RUNS[run])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn disk_and_memory_answer_the_same(ops in prop::collection::vec(op(), 1..60)) {
        let directory = tempfile::tempdir().unwrap();
        let disk = Sqlite::open(&directory.path().join("outlast.db")).unwrap();
        let mut twins = Twins { disk, memory: Memory::new(), epoch: 0, held: BTreeMap::new() };
        twins.take_epoch();
        for op in &ops {
            twins.apply(op);
            twins.assert_same();
        }
        assert_eq!(twins.disk.check(), Ok(Vec::new()));
        assert_eq!(twins.memory.check(), Ok(Vec::new()));
    }
}
