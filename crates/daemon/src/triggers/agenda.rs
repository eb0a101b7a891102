//! When each trigger is looked at next, in the order of time.
//!
//! A change touches the trigger concerned and no other, so that a hundred thousand of them cost an idle daemon
//! nothing. Knows no clock and looks at nothing itself: the worker asks what is due.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use outlast_engine::Time;

#[derive(Debug, Default)]
pub(super) struct Agenda {
    order: BTreeSet<(Time, Arc<str>)>,
    times: HashMap<Arc<str>, Time>,
}

impl Agenda {
    /// Has the trigger looked at then, and not when it was to be looked at before; with `None` never.
    pub(super) fn put(&mut self, name: &Arc<str>, at: Option<Time>) {
        let before = match at {
            Some(at) => self.times.insert(name.clone(), at),
            None => self.times.remove(name),
        };
        if let Some(before) = before {
            self.order.remove(&(before, name.clone()));
        }
        if let Some(at) = at {
            self.order.insert((at, name.clone()));
        }
    }

    /// The trigger that has been due for longest. It leaves the agenda.
    pub(super) fn take_due(&mut self, now: Time) -> Option<Arc<str>> {
        let (at, _) = self.order.first()?;
        if *at > now {
            return None;
        }
        let (_, name) = self.order.pop_first()?;
        self.times.remove(&name);
        Some(name)
    }

    /// When something is due next.
    pub(super) fn next_at(&self) -> Option<Time> {
        self.order.first().map(|(at, _)| *at)
    }
}

/// Names in the order in which they came, each at most once: there are never more than there are triggers.
#[derive(Debug, Default)]
pub(super) struct Line {
    names: VecDeque<Arc<str>>,
    among: HashSet<Arc<str>>,
}

impl Line {
    pub(super) fn push(&mut self, name: &Arc<str>) {
        if self.among.insert(name.clone()) {
            self.names.push_back(name.clone());
        }
    }

    pub(super) fn pop(&mut self) -> Option<Arc<str>> {
        let name = self.names.pop_front()?;
        self.among.remove(&name);
        Some(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Arc<str> {
        Arc::from(text)
    }

    #[test]
    fn what_has_been_due_for_longest_comes_first_and_once() {
        let mut agenda = Agenda::default();
        agenda.put(&name("late"), Some(Time(30)));
        agenda.put(&name("b"), Some(Time(10)));
        agenda.put(&name("a"), Some(Time(20)));
        assert_eq!(agenda.next_at(), Some(Time(10)));
        assert_eq!(agenda.take_due(Time(9)), None);
        assert_eq!(agenda.take_due(Time(20)), Some(name("b")));
        assert_eq!(agenda.take_due(Time(20)), Some(name("a")));
        assert_eq!(agenda.take_due(Time(20)), None);
        assert_eq!(agenda.next_at(), Some(Time(30)));
    }

    #[test]
    fn a_trigger_has_one_time_and_may_have_none() {
        let mut agenda = Agenda::default();
        agenda.put(&name("a"), Some(Time(10)));
        agenda.put(&name("a"), Some(Time(5)));
        agenda.put(&name("a"), Some(Time(40)));
        agenda.put(&name("b"), Some(Time(20)));
        agenda.put(&name("b"), None);
        agenda.put(&name("never"), None);
        assert_eq!(agenda.next_at(), Some(Time(40)));
        assert_eq!(agenda.take_due(Time(40)), Some(name("a")));
        assert_eq!((agenda.next_at(), agenda.times.len()), (None, 0));
    }

    #[test]
    fn a_name_stands_in_line_once_and_may_come_again() {
        let mut line = Line::default();
        for text in ["b", "a", "b"] {
            line.push(&name(text));
        }
        assert_eq!((line.pop(), line.pop(), line.pop()), (Some(name("b")), Some(name("a")), None));
        line.push(&name("b"));
        assert_eq!(line.pop(), Some(name("b")));
    }
}
