//! A step: one process tree that a run has had launched, and what is known of it.

use crate::{BootId, Outcome, StopMode, Survivor, Time};

/// Which process tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Attempt { turn: u32, attempt: u32 },
    Errand { errand: u32 },
}

/// What is known of a step's processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepState {
    /// The boot it was meant for. On another boot nothing of it can be alive.
    pub boot: BootId,
    pub process: Option<Process>,
    /// True once its shim is gone while its process lives.
    pub is_orphaned: bool,
    pub end: Option<(Outcome, Time)>,
    pub tree: Tree,
    /// How a person wants it ended, if one does.
    pub stop: Option<StopMode>,
    /// Set while a stop has been tried and has not emptied the tree.
    pub stop_incomplete: bool,
    pub output_bytes: u64,
}

/// The main process, by more than its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    pub pid: u32,
    pub start: u64,
    pub at: Time,
}

/// What is known of a step's process tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tree {
    /// Alive, or not looked at yet.
    Whole,
    /// The main process is gone; these were left.
    Survived(Vec<Survivor>),
    Empty,
}

impl StepState {
    pub(crate) fn new(boot: &BootId) -> Self {
        Self {
            boot: boot.clone(),
            process: None,
            is_orphaned: false,
            end: None,
            tree: Tree::Whole,
            stop: None,
            stop_incomplete: false,
            output_bytes: 0,
        }
    }

    pub(crate) fn is_live(&self) -> bool {
        self.end.is_none()
    }

    pub(crate) fn has_survivors(&self) -> bool {
        matches!(self.tree, Tree::Survived(_))
    }

    pub(crate) fn survivors(&self) -> &[Survivor] {
        match &self.tree {
            Tree::Survived(survivors) => survivors,
            Tree::Whole | Tree::Empty => &[],
        }
    }

    pub(crate) fn ended(
        &mut self,
        outcome: &Outcome,
        at: Time,
        output_bytes: u64,
        survivors: &[Survivor],
    ) {
        self.end = Some((outcome.clone(), at));
        self.output_bytes = output_bytes;
        self.stop_incomplete = false;
        self.tree = match survivors {
            [] => Tree::Empty,
            some => Tree::Survived(some.to_vec()),
        };
    }

    pub(crate) fn emptied(&mut self) {
        self.tree = Tree::Empty;
        self.stop_incomplete = false;
    }

    pub(crate) fn would_not_go(&mut self, survivors: &[Survivor]) {
        self.tree = Tree::Survived(survivors.to_vec());
        self.stop_incomplete = true;
    }

    /// Asked to end again, so what did not help is tried again.
    pub(crate) fn order_stop(&mut self, mode: StopMode) {
        self.stop = Some(self.stop.map_or(mode, |asked| asked.max(mode)));
        self.stop_incomplete = false;
    }
}
