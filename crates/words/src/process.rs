//! What the shim, the daemon and a client say of a process tree and of its terminal.
//!
//! The shim's records, the events of the journal and the API have each of these in the same form.

use serde::{Deserialize, Serialize};

use crate::vocabulary::vocabulary;

/// How the main process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

/// A process of the tree that outlived its main process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Survivor {
    pub pid: u32,
    pub start: u64,
    pub command: String,
}

vocabulary! {
    /// Why the command of a step was never executed.
    NeverStarted {
        CommandNotFound "command_not_found"
        NotExecutable "not_executable"
        NoDirectory "no_directory"
        /// The system had no process, memory or descriptor to give.
        NoResources "no_resources"
        /// The step's own files could not be read or written.
        BadSpec "bad_spec"
        /// The command line or environment is longer than the kernel takes.
        TooLong "too_long"
        /// The shim died before the child had passed its barrier, or could not be started. The daemon alone says this.
        NoShim "no_shim"
        /// Stop came before Start did.
        Stopped "stopped"
    }
}

impl NeverStarted {
    /// True if the fault was not the command's, so that trying again can help and costs no attempt.
    pub fn is_ours(self) -> bool {
        match self {
            Self::NoShim | Self::NoResources => true,
            Self::CommandNotFound
            | Self::NotExecutable
            | Self::NoDirectory
            | Self::BadSpec
            | Self::TooLong
            | Self::Stopped => false,
        }
    }
}

vocabulary! {
    /// Why the shim ended the tree, if it did.
    EndCause {
        Stopped "stopped"
        TimedOut "timed_out"
        Stalled "stalled"
    }
}

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    pub rows: u16,
    pub cols: u16,
}
