//! A rejected request: a stable code, a sentence and a hint. The API gives it a status.

use outlast_engine::RunId;
use outlast_store::Error;
use outlast_wire::api::{ErrorInfo, FileProblem};
use outlast_wire::codes::Code;
use outlast_workflow::{Problem, Refused};

use crate::world::host;

const FREE_SPACE: &str = "free some space; what runs goes on meanwhile";

/// What to do about a program that holds the journal.
pub(crate) const LOCKED: &str =
    "another program has the journal open, such as sqlite3 or a backup; close it and try again";

pub(crate) type Answer<T> = Result<T, Refusal>;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    pub(crate) code: Code,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// The id of the run that was meant, for a client that has only its name.
    pub(crate) run: Option<String>,
    /// Everything that is wrong with a file.
    pub(crate) problems: Vec<FileProblem>,
}

impl Refusal {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, run: None, problems: Vec::new() }
    }

    /// A file that cannot be used: everything that is wrong with it is the message, and the first hint its hint.
    pub(crate) fn of_file(refused: &Refused) -> Self {
        let code = refused.errors.first().map_or(Code::BadRequest, |problem| problem.code);
        let lines: Vec<String> = refused.errors.iter().map(ToString::to_string).collect();
        let errors = refused.errors.iter().map(|problem| file_problem(problem, "error"));
        let odd = refused.warnings.iter().map(|problem| file_problem(problem, level(problem)));
        Self {
            hint: refused.errors.iter().find_map(|problem| problem.hint.clone()),
            problems: errors.chain(odd).collect(),
            ..Self::new(code, lines.join("\n"))
        }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn run(mut self, id: &RunId) -> Self {
        self.run = Some(id.0.clone());
        self
    }

    /// The same with the run named as its user names it, in the message and in the command to paste.
    pub(crate) fn naming(self, id: &RunId, called: &str) -> Self {
        let named = |text: &str| text.replace(id.as_str(), called);
        Self {
            message: named(&self.message),
            hint: self.hint.as_deref().map(named),
            run: self.run.or_else(|| Some(id.0.clone())),
            ..self
        }
    }

    pub(crate) fn info(&self) -> ErrorInfo {
        ErrorInfo {
            code: self.code.into(),
            message: self.message.clone(),
            hint: self.hint.clone(),
            run: self.run.clone(),
            problems: self.problems.clone(),
        }
    }

    /// Says what was being done when it happened.
    pub(crate) fn about(mut self, doing: &str) -> Self {
        self.message = format!("{doing}: {}", self.message);
        self
    }

    pub(crate) fn unknown_run(message: String) -> Self {
        Self::new(Code::UnknownRun, message).hint("outlast ps -a")
    }

    pub(crate) fn unknown_trigger(message: String) -> Self {
        Self::new(Code::UnknownTrigger, message).hint("outlast trigger ls")
    }

    pub(crate) fn no_trigger(name: &str) -> Self {
        Self::unknown_trigger(format!("there is no trigger {name:?}"))
    }

    /// Why a daemon cannot use its journal.
    pub(crate) fn of_database(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Corrupt { .. } => Self::new(Code::DatabaseCorrupt, message).hint(
                "the file was left as it is; move it and its -wal away, then rebuild the runs from their directories:\noutlast recover",
            ),
            Error::Newer { .. } => Self::new(Code::DatabaseNewer, message)
                .hint("a newer outlast wrote it; use that one, the file was left as it is"),
            Error::ReadOnly(_) => {
                Self::new(Code::DatabaseReadOnly, message).hint("make it writable for you")
            }
            Error::Locked(_) => {
                Self::new(Code::DatabaseLocked, message).hint(LOCKED)
            }
            Error::Full(_) => Self::new(Code::DiskFull, message)
                .hint("free some space in the state directory's file system"),
            _ => Self::new(Code::DatabaseUnusable, message)
                .hint("outlast doctor"),
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Full(_) => Self::new(Code::DiskFull, message).hint(FREE_SPACE),
            Error::UnreadableRun { .. } => {
                Self::new(Code::UnreadableRun, message).hint("outlast doctor")
            }
            Error::UnknownRun { .. } => Self::unknown_run(message),
            Error::StillOpen { run } => Self::new(Code::RunIsLive, message)
                .hint(format!("outlast stop {run}\noutlast rm --force {run}")),
            Error::NameTaken { .. } => Self::new(Code::NameTaken, message)
                .hint("choose another name, or wait for that run to end"),
            Error::StaleEpoch { .. } | Error::Closed => {
                Self::new(Code::DaemonLeaving, message).hint("try again")
            }
            Error::TriggerTaken { .. } => {
                Self::new(Code::TriggerTaken, message).hint("choose another name, or use --replace")
            }
            Error::UnknownTrigger { .. } => Self::unknown_trigger(message),
            Error::IdInUse { .. } => {
                Self::new(Code::IdConflict, message).hint("leave the id out, or choose another")
            }
            Error::Locked(_) => Self::new(Code::JournalLocked, message).hint(LOCKED),
            Error::Unsaved { .. } => Self::new(Code::JournalGone, message).hint(
                "nothing was written; make room or give the state directory back, and try again",
            ),
            Error::Gone { .. } => Self::new(Code::JournalGone, message).hint(
                "nothing was written; the next daemon serves what is there now:\noutlast doctor",
            ),
            Error::Rejected(_)
            | Error::Conflict { .. }
            | Error::KeyTaken { .. }
            | Error::ReadOnly(_)
            | Error::Newer { .. }
            | Error::Corrupt { .. }
            | Error::Io(_) => Self::new(Code::JournalUnusable, message).hint("outlast doctor"),
        }
    }
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        let (code, hint) = match host::failure(&error) {
            Some(Code::DiskFull) => (Code::DiskFull, FREE_SPACE),
            Some(code) => (code, "try again; the host lacks descriptors, processes or memory"),
            None => (Code::Io, "outlast doctor"),
        };
        Self::new(code, error.to_string()).hint(hint)
    }
}

pub(crate) fn bad_request(message: impl Into<String>) -> Refusal {
    Refusal::new(Code::BadRequest, message)
}

/// How bad something is that does not stop anything.
fn level(problem: &Problem) -> &'static str {
    if problem.code == Code::NoEffect { "note" } else { "warning" }
}

fn file_problem(problem: &Problem, level: &str) -> FileProblem {
    FileProblem {
        level: level.to_owned(),
        code: problem.code.word().to_owned(),
        file: problem.file.to_string(),
        line: problem.line,
        key: problem.key.clone(),
        message: problem.message.clone(),
        hint: problem.hint.clone(),
    }
}

/// What is odd about a file, for the list of warnings of an answer: its hint is a second line.
pub(crate) fn warning(problem: &Problem) -> String {
    let note = if level(problem) == "note" { "note: " } else { "" };
    match &problem.hint {
        Some(hint) => format!("{note}{problem}\nhint: {hint}"),
        None => format!("{note}{problem}"),
    }
}
