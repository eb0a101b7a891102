//! What ends a command early: the words for a person and the exit code for a script.

use std::fmt::Display;

use outlast_wire::api::ErrorInfo;
use outlast_wire::words::{Code, Word};

/// The caller asked for something that is not done.
pub const REFUSED: u8 = 2;
/// The daemon could not be reached, or could not do its work.
pub const UNREACHABLE: u8 = 7;
pub const TIMED_OUT: u8 = 124;
/// A signal ended the watching; the run goes on.
pub const DETACHED: u8 = 130;
/// What a shell says of a process that died of SIGPIPE. Never 0: the run's outcome was not seen.
const OUTPUT_CLOSED: u8 = 141;

/// The code of a client that reaches no daemon; no daemon says it.
const NO_DAEMON: &str = "daemon_unreachable";

#[derive(Debug, PartialEq, Eq)]
pub enum Problem {
    Told {
        info: Box<ErrorInfo>,
        exit: u8,
    },
    /// The reader of the program's output went away, so there is no reader to tell.
    OutputClosed,
}

impl Problem {
    pub fn new(exit: u8, code: &str, message: impl Display) -> Self {
        let (code, message) = (Word::of(code), message.to_string());
        let info = ErrorInfo { code, message, hint: None, run: None, problems: Vec::new() };
        Self::Told { info: Box::new(info), exit }
    }

    pub fn refusal(code: &str, message: impl Display) -> Self {
        Self::new(REFUSED, code, message)
    }

    /// A part of this machine did not work: a file, a terminal, a descriptor.
    pub fn failure(message: impl Display) -> Self {
        Self::new(1, "failed", message)
    }

    pub fn unreachable(why: impl Display) -> Self {
        Self::new(UNREACHABLE, NO_DAEMON, format_args!("daemon unreachable: {why}"))
    }

    /// An answer of the daemon's that is not 2xx.
    pub fn answered(status: u16, info: ErrorInfo) -> Self {
        // A newer daemon may have codes that this client does not know.
        let by_status = if status < 500 { REFUSED } else { UNREACHABLE };
        let exit = info.code.known().map_or(by_status, Code::exit);
        Self::Told { info: Box::new(info), exit }
    }

    pub fn hint(mut self, text: impl Display) -> Self {
        if let Self::Told { info, .. } = &mut self {
            info.hint = Some(text.to_string());
        }
        self
    }

    pub fn exit(&self) -> u8 {
        match self {
            Self::Told { exit, .. } => *exit,
            Self::OutputClosed => OUTPUT_CLOSED,
        }
    }

    /// The id of the run that a refusal is about, if the daemon said it.
    pub fn run(&self) -> Option<&str> {
        match self {
            Self::Told { info, .. } => info.run.as_deref(),
            Self::OutputClosed => None,
        }
    }

    /// True of an error that the daemon told with this code.
    pub fn is(&self, code: Code) -> bool {
        matches!(self, Self::Told { info, .. } if info.code == code)
    }

    /// True if no daemon was reached, or none answered.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Told { info, .. } if info.code.as_str() == NO_DAEMON)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_decides_the_exit_code_and_a_status_that_of_an_unknown_code() {
        let exit = |status: u16, code: &str| {
            let (code, message) = (Word::of(code), String::new());
            Problem::answered(
                status,
                ErrorInfo { code, message, hint: None, run: None, problems: Vec::new() },
            )
            .exit()
        };
        assert_eq!((exit(409, "has_ended"), exit(507, "disk_full")), (REFUSED, REFUSED));
        assert_eq!((exit(500, "bug"), exit(503, "timed_out")), (UNREACHABLE, REFUSED));
        assert_eq!((exit(418, "newer"), exit(500, "newer")), (REFUSED, UNREACHABLE));
    }

    #[test]
    fn the_table_has_no_other_exit_codes_but_that_of_a_merge() {
        let other = |code: &&Code| ![REFUSED, UNREACHABLE].contains(&code.exit());
        let others: Vec<&Code> = Code::ALL.iter().filter(other).collect();
        // As git says it.
        assert_eq!(others, [&Code::MergeConflict]);
    }
}
