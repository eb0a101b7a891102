//! What there is of a step on disk and among the processes, and what is true of a run outside of its journal.

use outlast_engine::{Answer, BootId, Exit, Purpose, RunId, RunSpec, Step};

use super::ShimId;
use super::known::Known;
use crate::record::Record;
use crate::tree::{Tree, Who};

/// A step's directory and its processes.
#[derive(Debug)]
pub(crate) struct Site {
    /// There is a directory.
    pub(crate) exists: bool,
    pub(crate) has_spec: bool,
    /// The files that output goes to were made.
    pub(crate) has_output: bool,
    /// Files of it have vanished.
    pub(crate) has_vanished: bool,
    pub(crate) lock: Option<ShimId>,
    pub(crate) socket: Option<ShimId>,
    pub(crate) records: Vec<Record>,
    /// So many records survive the machine's death.
    pub(crate) synced: usize,
    /// A half-written line at the end, which no reader counts.
    pub(crate) is_torn: bool,
    pub(crate) tree: Tree,
    /// How often the command was really exec'd.
    pub(crate) executions: u32,
    /// What the command really returned.
    pub(crate) exit: Option<Exit>,
    pub(crate) is_endless: bool,
    /// How many calls under keys its command has yet to make, and how many it has begun.
    pub(crate) calls: (u32, u32),
    /// What the agent really answered, and what is left of that on disk.
    pub(crate) said: Answer,
    pub(crate) response: Answer,
    pub(crate) is_response_synced: bool,
    /// The messages in the request.
    pub(crate) given: Vec<String>,
    /// The boot that the journal means this step for; `None` until it means it.
    pub(crate) boot: Option<BootId>,
    /// What an errand is for, and after which turn.
    pub(crate) purpose: Option<(Purpose, u32)>,
    /// The journal has said that this step has ended.
    pub(crate) has_ended: bool,
}

/// What is known of a run outside of its journal.
#[derive(Debug)]
pub(crate) struct RunTruth {
    pub(crate) id: RunId,
    /// As its client asked for it.
    pub(crate) asked: RunSpec,
    /// As it is made: a child has what its parent gave it.
    pub(crate) spec: RunSpec,
    /// A client was told that it exists.
    pub(crate) is_promised: bool,
    /// A client was told that it will be stopped.
    pub(crate) is_stop_promised: bool,
    pub(crate) known: Known,
    pub(crate) workspace: WorkspaceFiles,
    /// How often an agent has changed the workspace.
    pub(crate) version: u64,
    /// What was noted of the step that was launched last.
    pub(crate) launched: Option<LaunchNote>,
}

/// What there is of a run's workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkspaceFiles {
    Absent,
    /// Made, and not known to be whole.
    Half,
    Whole,
}

/// Which step was launched, by the daemon of which epoch, and its main process once a daemon has heard of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaunchNote {
    pub(crate) step: Step,
    pub(crate) epoch: u64,
    pub(crate) main: Option<Who>,
}

impl Site {
    pub(super) fn new() -> Self {
        Self {
            exists: false,
            has_spec: false,
            has_output: false,
            has_vanished: false,
            lock: None,
            socket: None,
            records: Vec::new(),
            synced: 0,
            is_torn: false,
            tree: Tree::default(),
            executions: 0,
            exit: None,
            is_endless: false,
            calls: (0, 0),
            said: Answer::None,
            response: Answer::None,
            is_response_synced: false,
            given: Vec::new(),
            boot: None,
            purpose: None,
            has_ended: false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    Process,
    Machine,
}
