//! The kinds of agents: one row each, which loop files, checks, defaults and plans read.
//!
//! A kind that is known and not runnable yet is refused when a run is made, not when a file is read. `workflow`
//! depends on this crate for this table and for the schemas of tools.

use crate::adapter::DRIVEN_NAMES;
use crate::silence::{OF_A_TALKER_MS, OF_A_WORKER_MS};
use crate::{exec, file};

/// A kind of agent, by the name that `agent.kind` gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind {
    pub name: &'static str,
    /// What an attempt of this kind answers by; `None` for a kind that this version cannot run.
    pub answers_by: Option<AnswersBy>,
    /// How long an attempt may be silent if the loop file does not say; `None` is for ever.
    pub stall_window_ms: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswersBy {
    /// Its exit status, unless it wrote a response file.
    ExitStatus,
    /// Its response file alone.
    ResponseFile,
    /// What its driver heard of the end of its turn, unless it wrote a response file.
    Driver,
}

/// The kinds whose command is started as it is.
const COMMANDS: [Kind; 2] = [
    // Silence must not kill a command that says nothing of itself.
    Kind { name: exec::KIND, answers_by: Some(AnswersBy::ExitStatus), stall_window_ms: None },
    Kind {
        name: file::KIND,
        answers_by: Some(AnswersBy::ResponseFile),
        stall_window_ms: OF_A_WORKER_MS,
    },
];

/// The commands, then a kind for each row of `DRIVEN`.
pub const KINDS: [Kind; COMMANDS.len() + DRIVEN_NAMES.len()] = {
    let mut kinds = [COMMANDS[0]; COMMANDS.len() + DRIVEN_NAMES.len()];
    let mut at = 1;
    while at < kinds.len() {
        kinds[at] = if at < COMMANDS.len() {
            COMMANDS[at]
        } else {
            driven(DRIVEN_NAMES[at - COMMANDS.len()])
        };
        at += 1;
    }
    kinds
};

const fn driven(name: &'static str) -> Kind {
    Kind { name, answers_by: Some(AnswersBy::Driver), stall_window_ms: OF_A_TALKER_MS }
}

pub fn kind(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

impl Kind {
    pub const fn is_runnable(&self) -> bool {
        self.answers_by.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_are_the_commands_and_each_row_of_the_driven() {
        let names = KINDS.map(|kind| kind.name);
        assert_eq!(names[..2], [exec::KIND, file::KIND]);
        assert_eq!(names[2..], DRIVEN_NAMES);
        let is_driven = |kind: &Kind| kind.answers_by == Some(AnswersBy::Driver);
        assert!(KINDS[2..].iter().all(is_driven) && !KINDS[..2].iter().any(is_driven));
    }
}
