//! Slots: how many runs may work at once, in all, per label, per loop file, per queue, and with how much free memory.
//!
//! A run holds a slot while it works and none while it rests. Waiting runs are asked in order of priority, then of
//! age. Without limits every run goes on, and nothing is counted.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use outlast_engine::{Run, RunId, RunSpec, Slot, Time};
use outlast_workflow::Concurrency;

#[derive(Default)]
pub struct Slots {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    rules: Concurrency,
    holders: BTreeMap<RunId, Kind>,
    waiting: BTreeMap<Rank, Kind>,
    /// The queues for which a run has named a number; the newest such run counts.
    queues: BTreeMap<String, Width>,
}

/// What the rules look at.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kind {
    labels: BTreeMap<String, String>,
    workflow: Option<(String, u32)>,
    /// The queue that it is in.
    queue: Option<String>,
}

/// How many slots a queue has, and when the run was made that said so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Width {
    slots: u32,
    since: Time,
}

/// The order of waiting runs: the smallest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    against_priority: i32,
    since: Time,
    run: RunId,
}

/// Whether a run that wants a place stands in line for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queueing {
    Joins,
    /// It is held back, and no run is to wait behind it.
    StaysOut,
}

/// What keeps a run from a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Full {
    InAll {
        most: u32,
    },
    Label {
        label: String,
        most: u32,
    },
    /// Runs of the same loop file.
    File {
        most: u32,
    },
    /// Runs of the same queue.
    Queue {
        name: String,
        most: u32,
    },
    Memory {
        least_mb: u64,
    },
    /// Runs that come first have not started yet.
    Behind,
}

impl Slots {
    /// Follows the rules of a config that has changed; says which run to ask if that made room.
    pub fn follow(&self, rules: &Concurrency) -> Option<RunId> {
        let mut table = self.lock();
        if table.rules == *rules {
            return None;
        }
        table.rules = rules.clone();
        table.next()
    }

    /// Takes a place for a run, unless others come first or there is none.
    pub fn take(&self, id: &RunId, spec: &RunSpec, since: Time, free_mb: impl Fn() -> u64) -> Slot {
        let mut table = self.lock();
        let kind = Kind::of(spec);
        table.heed(spec, since);
        if !table.is_limited(&kind) || table.holders.contains_key(id) {
            return Slot::Free;
        }
        let rank = Rank::of(id, spec, since);
        let comes_first = table.waiting.range(..&rank).any(|(_, other)| table.has_room(other));
        if comes_first || !table.has_room(&kind) || table.lacks_memory(&free_mb) {
            return Slot::Taken;
        }
        table.holders.insert(id.clone(), kind);
        Slot::Free
    }

    /// What keeps a run from a slot just now.
    pub fn full(&self, spec: &RunSpec, free_mb: impl Fn() -> u64) -> Full {
        let table = self.lock();
        let kind = Kind::of(spec);
        let rules = &table.rules;
        let used = |has: &dyn Fn(&Kind) -> bool| {
            u32::try_from(table.holders.values().filter(|other| has(other)).count())
                .unwrap_or(u32::MAX)
        };
        let of_label = rules.per_label.iter().find(|(label, most)| {
            kind.has(label) && used(&|other: &Kind| other.has(label)) >= **most
        });
        if let Some((label, most)) = of_label {
            return Full::Label { label: label.clone(), most: *most };
        }
        if let Some((path, most)) = &kind.workflow {
            let is_same =
                |other: &Kind| other.workflow.as_ref().is_some_and(|(its, _)| its == path);
            if used(&is_same) >= *most {
                return Full::File { most: *most };
            }
        }
        let width = |name: &String| Some((name.clone(), table.width(name)?));
        if let Some((name, most)) = kind.queue.as_ref().and_then(width) {
            let is_same = |other: &Kind| other.queue.as_ref() == Some(&name);
            if used(&is_same) >= most {
                return Full::Queue { name, most };
            }
        }
        match (rules.max_runs, rules.min_free_memory_mb) {
            (Some(most), _) if used(&|_| true) >= most => Full::InAll { most },
            (_, Some(least_mb)) if table.lacks_memory(&free_mb) => Full::Memory { least_mb },
            _ => Full::Behind,
        }
    }

    /// Notes what a run has come to; says which run to ask next if that left a place.
    pub fn note(&self, run: &Run, queueing: Queueing) -> Option<RunId> {
        let mut table = self.lock();
        let rank = Rank::of(&run.id, &run.spec, run.created_at);
        if !run.has_ended() {
            table.heed(&run.spec, run.created_at);
        }
        if run.wants_slot() && queueing == Queueing::Joins {
            table.waiting.insert(rank, Kind::of(&run.spec));
        } else {
            table.waiting.remove(&rank);
        }
        if run.holds_slot() {
            table.holders.entry(run.id.clone()).or_insert_with(|| Kind::of(&run.spec));
        } else {
            table.holders.remove(&run.id);
        }
        table.next()
    }

    /// Which run to ask next, after a run that is gone.
    pub fn forget(&self, id: &RunId) -> Option<RunId> {
        let mut table = self.lock();
        table.holders.remove(id);
        table.waiting.retain(|rank, _| rank.run != *id);
        let Table { holders, waiting, queues, .. } = &mut *table;
        let is_used = |name: &String| {
            let mut kinds = holders.values().chain(waiting.values());
            kinds.any(|kind| kind.queue.as_ref() == Some(name))
        };
        queues.retain(|name, _| is_used(name));
        table.next()
    }

    /// True if a run waits that may have to be asked again although no other has left.
    pub fn waits_for_memory(&self) -> bool {
        let table = self.lock();
        table.rules.min_free_memory_mb.is_some() && table.next().is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Nothing panics while it holds this.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn is_limited(&self, kind: &Kind) -> bool {
        self.rules.max_runs.is_some()
            || self.rules.min_free_memory_mb.is_some()
            || !self.rules.per_label.is_empty()
            || kind.workflow.is_some()
            || kind.queue.is_some()
    }

    fn has_room(&self, kind: &Kind) -> bool {
        let holders = || self.holders.values();
        let is_below = |most: u32, used: usize| u32::try_from(used).is_ok_and(|used| used < most);
        let in_all = self.rules.max_runs.is_none_or(|most| is_below(most, self.holders.len()));
        let of_labels = self.rules.per_label.iter().filter(|(label, _)| kind.has(label)).all(
            |(label, most)| is_below(*most, holders().filter(|other| other.has(label)).count()),
        );
        let of_file = kind.workflow.as_ref().is_none_or(|(path, most)| {
            let is_same =
                |other: &&Kind| other.workflow.as_ref().is_some_and(|(its, _)| its == path);
            is_below(*most, holders().filter(is_same).count())
        });
        let of_queue = kind.queue.as_ref().is_none_or(|name| {
            let is_same = |other: &&Kind| other.queue.as_ref() == Some(name);
            self.width(name).is_none_or(|most| is_below(most, holders().filter(is_same).count()))
        });
        in_all && of_labels && of_file && of_queue
    }

    /// How many runs of a queue may work at once: what was last asked for, or one. `None` where the config says it, by
    /// the label that runs of a queue have.
    fn width(&self, queue: &str) -> Option<u32> {
        let is_named = || self.rules.per_label.contains_key(&format!("queue={queue}"));
        match self.queues.get(queue) {
            Some(width) => Some(width.slots),
            None => (!is_named()).then_some(1),
        }
    }

    /// Notes how many slots a run says that its queue has.
    fn heed(&mut self, spec: &RunSpec, since: Time) {
        let (Some(name), Some(slots)) = (&spec.queue.name, spec.queue.most_of_queue) else {
            return;
        };
        let is_newer = self.queues.get(name).is_none_or(|known| known.since <= since);
        if is_newer {
            self.queues.insert(name.clone(), Width { slots, since });
        }
    }

    fn lacks_memory(&self, free_mb: impl Fn() -> u64) -> bool {
        // One run goes on whatever there is, or nothing ever would.
        !self.holders.is_empty()
            && self.rules.min_free_memory_mb.is_some_and(|least| free_mb() < least)
    }

    fn next(&self) -> Option<RunId> {
        self.waiting.iter().find(|(_, kind)| self.has_room(kind)).map(|(rank, _)| rank.run.clone())
    }
}

impl Kind {
    fn of(spec: &RunSpec) -> Self {
        let workflow = spec
            .workflow
            .as_ref()
            .zip(spec.queue.most_of_workflow)
            .map(|(workflow, most)| (workflow.path.clone(), most));
        Self { labels: spec.labels.clone(), workflow, queue: spec.queue.name.clone() }
    }

    /// True for a label of this kind: `k`, or `k=v`.
    fn has(&self, label: &str) -> bool {
        match label.split_once('=') {
            Some((key, value)) => self.labels.get(key).is_some_and(|its| its == value),
            None => self.labels.contains_key(label),
        }
    }
}

impl Rank {
    fn of(id: &RunId, spec: &RunSpec, since: Time) -> Self {
        let against_priority = spec.queue.priority.saturating_neg();
        Self { against_priority, since, run: id.clone() }
    }
}

#[cfg(test)]
mod tests {
    use outlast_engine::{Agent, Queue};

    use super::*;

    fn id(text: &str) -> RunId {
        RunId(text.to_owned())
    }

    fn spec(priority: i32, labels: &[(&str, &str)]) -> RunSpec {
        let agent = Agent { kind: "exec".to_owned(), command: vec!["true".to_owned()] };
        let labels =
            labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        RunSpec {
            labels,
            queue: Queue { priority, ..Queue::default() },
            ..RunSpec::command(agent, "/".to_owned())
        }
    }

    fn slots(rules: Concurrency) -> Slots {
        let slots = Slots::default();
        slots.follow(&rules);
        slots
    }

    fn take(slots: &Slots, run: &str, spec: &RunSpec) -> Slot {
        slots.take(&id(run), spec, Time(1), || 1 << 20)
    }

    #[test]
    fn so_many_run_at_once_and_a_place_that_is_left_is_taken() {
        let slots = slots(Concurrency { max_runs: Some(2), ..Concurrency::default() });
        let plain = spec(0, &[]);
        assert_eq!(take(&slots, "a", &plain), Slot::Free);
        assert_eq!(take(&slots, "b", &plain), Slot::Free);
        assert_eq!(take(&slots, "c", &plain), Slot::Taken);
        assert_eq!(take(&slots, "a", &plain), Slot::Free, "who has a place keeps it");
        slots.forget(&id("a"));
        assert_eq!(take(&slots, "c", &plain), Slot::Free);
    }

    #[test]
    fn labels_are_counted_by_key_or_by_value() {
        let per_label = [("gpu".to_owned(), 1), ("repo=web".to_owned(), 1)].into();
        let slots = slots(Concurrency { per_label, ..Concurrency::default() });
        assert_eq!(take(&slots, "a", &spec(0, &[("gpu", "0")])), Slot::Free);
        assert_eq!(take(&slots, "b", &spec(0, &[("gpu", "1")])), Slot::Taken);
        assert_eq!(take(&slots, "c", &spec(0, &[("repo", "web")])), Slot::Free);
        assert_eq!(take(&slots, "d", &spec(0, &[("repo", "web")])), Slot::Taken);
        assert_eq!(take(&slots, "e", &spec(0, &[("repo", "api")])), Slot::Free);
    }

    #[test]
    fn a_queue_has_one_slot_or_as_many_as_were_last_asked_for() {
        let slots = slots(Concurrency::default());
        let queued = |most_of_queue| {
            let name = Some("gpu".to_owned());
            RunSpec { queue: Queue { name, most_of_queue, ..Queue::default() }, ..spec(0, &[]) }
        };
        assert_eq!(take(&slots, "a", &queued(None)), Slot::Free);
        assert_eq!(take(&slots, "b", &queued(None)), Slot::Taken);
        assert_eq!(take(&slots, "d", &spec(0, &[])), Slot::Free, "it is in no queue");
        assert_eq!(take(&slots, "c", &queued(Some(2))), Slot::Free);
        assert_eq!(take(&slots, "b", &queued(None)), Slot::Taken, "two work");
        slots.forget(&id("a"));
        assert_eq!(take(&slots, "b", &queued(None)), Slot::Free, "the queue stays as wide");
    }

    #[test]
    fn a_queue_that_the_config_names_has_the_slots_of_the_config() {
        let per_label = [("queue=gpu".to_owned(), 2)].into();
        let slots = slots(Concurrency { per_label, ..Concurrency::default() });
        let name = Some("gpu".to_owned());
        let queue = Queue { name, ..Queue::default() };
        let queued = RunSpec { queue, ..spec(0, &[("queue", "gpu")]) };
        assert_eq!(["a", "b"].map(|run| take(&slots, run, &queued)), [Slot::Free, Slot::Free]);
        assert_eq!(take(&slots, "c", &queued), Slot::Taken);
    }

    #[test]
    fn little_memory_holds_all_but_the_first() {
        let rules = Concurrency { min_free_memory_mb: Some(512), ..Concurrency::default() };
        let slots = slots(rules);
        let plain = spec(0, &[]);
        assert_eq!(slots.take(&id("a"), &plain, Time(1), || 100), Slot::Free);
        assert_eq!(slots.take(&id("b"), &plain, Time(1), || 100), Slot::Taken);
        assert_eq!(slots.take(&id("b"), &plain, Time(1), || 600), Slot::Free);
    }

    #[test]
    fn who_waits_with_a_higher_priority_comes_first() {
        let slots = slots(Concurrency { max_runs: Some(1), ..Concurrency::default() });
        let (low, high) = (spec(0, &[]), spec(5, &[]));
        assert_eq!(take(&slots, "a", &low), Slot::Free);
        slots.lock().waiting.insert(Rank::of(&id("b"), &low, Time(2)), Kind::of(&low));
        slots.lock().waiting.insert(Rank::of(&id("c"), &high, Time(3)), Kind::of(&high));
        assert_eq!(slots.forget(&id("a")), Some(id("c")));
        assert_eq!(take(&slots, "d", &low), Slot::Taken, "the last to come does not overtake");
    }
}
