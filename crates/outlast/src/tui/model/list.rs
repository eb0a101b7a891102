//! The runs on the screen: which, in which order, and which of them is chosen.
//!
//! A run that is chosen stays chosen wherever its row goes, so that a key never hits another run.

use std::collections::{BTreeMap, BTreeSet};

use outlast_wire::api::RunRow;

use super::filter;
use crate::attention::Group;
use crate::output::state::Condition;

#[derive(Debug, Default)]
pub(crate) struct List {
    rows: BTreeMap<String, RunRow>,
    /// The rows that have come since the daemon began to list; `None` once it has listed all.
    relisted: Option<BTreeSet<String>>,
    pub(crate) filter: String,
    pub(crate) sort: Sort,
    pub(crate) scope: Scope,
    pub(crate) shape: Shape,
    /// There are older ended runs than these.
    pub(crate) is_cut: bool,
    lines: Vec<Line>,
    chosen: usize,
    /// The first line on the screen.
    top: usize,
}

/// A run's place on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) id: String,
    /// How many of its ancestors stand above it.
    pub(crate) depth: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Sort {
    #[default]
    NeedsMe,
    Newest,
    Spend,
    Name,
}

impl Sort {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::NeedsMe => "needs me first",
            Self::Newest => "newest first",
            Self::Spend => "spend",
            Self::Name => "name",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Scope {
    /// Also runs that have ended, the newest of them.
    #[default]
    All,
    Open,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Shape {
    #[default]
    Flat,
    /// Children below their parents.
    Tree,
}

/// A move of the choice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Up(usize),
    Down(usize),
    First,
    Last,
}

impl List {
    /// A daemon is about to send the whole list. What it does not send is gone.
    pub(crate) fn relist(&mut self) {
        self.relisted = Some(BTreeSet::new());
    }

    pub(crate) fn listed(&mut self, is_cut: bool) {
        self.is_cut = is_cut;
        if let Some(kept) = self.relisted.take() {
            self.rows.retain(|id, _| kept.contains(id));
        }
        self.arrange();
    }

    pub(crate) fn put(&mut self, row: RunRow) {
        if let Some(kept) = &mut self.relisted {
            kept.insert(row.id.clone());
        }
        self.rows.insert(row.id.clone(), row);
    }

    pub(crate) fn remove(&mut self, id: &str) {
        self.rows.remove(id);
        if let Some(kept) = &mut self.relisted {
            kept.remove(id);
        }
    }

    pub(crate) fn row(&self, id: &str) -> Option<&RunRow> {
        self.rows.get(id)
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &RunRow> {
        self.rows.values()
    }

    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }

    pub(crate) fn top(&self) -> usize {
        self.top
    }

    pub(crate) fn chosen(&self) -> Option<&RunRow> {
        self.rows.get(&self.lines.get(self.chosen)?.id)
    }

    pub(crate) fn chosen_index(&self) -> usize {
        self.chosen
    }

    pub(crate) fn step(&mut self, step: Step) {
        let last = self.lines.len().saturating_sub(1);
        self.chosen = match step {
            Step::Up(count) => self.chosen.saturating_sub(count),
            Step::Down(count) => (self.chosen + count).min(last),
            Step::First => 0,
            Step::Last => last,
        };
    }

    /// Scrolls no further than it takes to show the chosen line among so many.
    pub(crate) fn scroll(&mut self, height: usize) {
        let height = height.max(1);
        self.top = self.top.clamp((self.chosen + 1).saturating_sub(height), self.chosen);
        self.top = self.top.min(self.lines.len().saturating_sub(height));
    }

    /// Puts every line where it belongs now.
    pub(crate) fn arrange(&mut self) {
        let chosen = self.lines.get(self.chosen).map(|line| line.id.clone());
        let mut shown: Vec<&RunRow> = self.rows.values().filter(|row| self.shows(row)).collect();
        match self.sort {
            Sort::NeedsMe => shown.sort_by_cached_key(|row| (group(row), newest(row))),
            Sort::Newest => shown.sort_by_key(|row| newest(row)),
            Sort::Spend => shown.sort_by(|a, b| {
                let by_cost = b.cost_usd.total_cmp(&a.cost_usd);
                by_cost.then(b.tokens.cmp(&a.tokens)).then_with(|| newest(a).cmp(&newest(b)))
            }),
            Sort::Name => {
                let name = |row: &RunRow| (row.name.is_none(), row.name.clone());
                shown.sort_by_cached_key(|row| (name(row), newest(row)));
            }
        }
        self.lines = match self.shape {
            Shape::Flat => {
                shown.into_iter().map(|row| Line { id: row.id.clone(), depth: 0 }).collect()
            }
            Shape::Tree => tree(&shown),
        };
        let again = chosen.and_then(|id| self.lines.iter().position(|line| line.id == id));
        self.chosen = again.unwrap_or(self.chosen).min(self.lines.len().saturating_sub(1));
    }

    fn shows(&self, row: &RunRow) -> bool {
        (self.scope == Scope::All || group(row) != Group::Ended)
            && filter::matches(row, &self.filter)
    }
}

pub(crate) fn group(row: &RunRow) -> Group {
    Group::of(&Condition::from(row))
}

/// Sorts the newest first; ids tell those apart that were made in the same millisecond.
fn newest(row: &RunRow) -> (std::cmp::Reverse<&str>, &str) {
    (std::cmp::Reverse(row.created_at.as_str()), row.id.as_str())
}

/// Children below their parents, siblings in the given order. A run whose parent is not shown stands by
/// itself.
fn tree(shown: &[&RunRow]) -> Vec<Line> {
    let ids: BTreeSet<&str> = shown.iter().map(|row| row.id.as_str()).collect();
    let mut children: BTreeMap<Option<&str>, Vec<&str>> = BTreeMap::new();
    for row in shown {
        let parent = row.parent.as_deref().filter(|parent| ids.contains(parent));
        children.entry(parent).or_default().push(&row.id);
    }
    let mut lines = Vec::with_capacity(shown.len());
    // Taken from the map as they are placed, so that even a circle would end.
    let mut open = vec![children.remove(&None).unwrap_or_default().into_iter()];
    while let Some(siblings) = open.last_mut() {
        let Some(id) = siblings.next() else {
            open.pop();
            continue;
        };
        lines.push(Line { id: id.to_owned(), depth: open.len() - 1 });
        if let Some(below) = children.remove(&Some(id)) {
            open.push(below.into_iter());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::sample;

    fn list(rows: Vec<RunRow>) -> List {
        let mut list = List::default();
        list.relist();
        rows.into_iter().for_each(|row| list.put(row));
        list.listed(false);
        list
    }

    fn ids(list: &List) -> Vec<String> {
        let shown = list.lines().iter();
        shown.map(|line| format!("{}{}", "-".repeat(line.depth), line.id)).collect()
    }

    fn five() -> List {
        list(vec![
            sample::row("ended", "completed", 5),
            sample::row("waits", "waiting", 4),
            sample::row("asks", "blocked", 9),
            sample::row("old", "running", 8),
            sample::row("new", "running", 1),
        ])
    }

    #[test]
    fn what_needs_a_person_comes_first() {
        let mut list = five();
        assert_eq!(ids(&list), ["asks", "new", "old", "waits", "ended"]);
        list.sort = Sort::Newest;
        list.arrange();
        assert_eq!(ids(&list), ["new", "waits", "ended", "old", "asks"]);
        list.scope = Scope::Open;
        list.arrange();
        assert_eq!(ids(&list), ["new", "waits", "old", "asks"]);
    }

    #[test]
    fn the_choice_stays_with_its_run() {
        let mut list = five();
        list.step(Step::Down(2));
        assert_eq!(list.chosen().map(|row| row.id.as_str()), Some("old"));
        list.put(sample::row("old", "completed", 8));
        list.put(sample::row("newer", "running", 0));
        list.arrange();
        assert_eq!(list.chosen().map(|row| row.id.as_str()), Some("old"));
        list.remove("old");
        list.arrange();
        assert_eq!(list.chosen_index(), 4, "its place is taken by a neighbour");
        assert_eq!(list.chosen().map(|row| row.id.as_str()), Some("ended"));
    }

    #[test]
    fn after_a_reconnect_only_what_was_listed_again_is_there() {
        let mut list = five();
        list.relist();
        list.put(sample::row("asks", "running", 9));
        assert_eq!(list.lines().len(), 5, "the old list stays until the new one is whole");
        list.listed(true);
        assert_eq!(ids(&list), ["asks"]);
        assert!(list.is_cut);
    }

    #[test]
    fn children_stand_below_their_parents() {
        let child = |id: &str, parent: &str, minutes| RunRow {
            parent: Some(parent.to_owned()),
            ..sample::row(id, "running", minutes)
        };
        let mut list = list(vec![
            sample::row("a", "running", 9),
            child("a1", "a", 8),
            child("a11", "a1", 7),
            child("a2", "a", 6),
            child("lost", "not listed", 5),
            child("x", "y", 4),
            child("y", "x", 3),
        ]);
        list.shape = Shape::Tree;
        list.arrange();
        // The last two name each other, which no daemon makes; nothing hangs and nothing crashes.
        assert_eq!(ids(&list), ["lost", "a", "-a2", "-a1", "--a11"]);
    }

    #[test]
    fn the_chosen_line_is_on_the_screen() {
        let rows = (0..200).map(|n| sample::row(&format!("r{n:03}"), "running", n)).collect();
        let mut list = list(rows);
        list.step(Step::Last);
        list.scroll(20);
        assert_eq!((list.top(), list.chosen_index()), (180, 199));
        list.step(Step::Up(5));
        list.scroll(20);
        assert_eq!(list.top(), 180);
        list.step(Step::First);
        list.scroll(20);
        assert_eq!(list.top(), 0);
        list.filter = "r19".to_owned();
        list.arrange();
        list.scroll(0);
        assert_eq!(list.lines().len(), 10);
    }
}
