//! What ends a command early: the words for the user and the exit code for the script.

use std::fmt::Display;

use outlast_wire::api::ErrorInfo;

/// The caller asked for something that is not done.
pub(crate) const REFUSED: u8 = 2;
/// The daemon could not be reached, or could not do its work.
pub(crate) const UNREACHABLE: u8 = 7;
/// What we were to print could not be written (`EX_IOERR`).
const UNWRITABLE: u8 = 74;
pub(crate) const TIMED_OUT: u8 = 124;
/// A signal ended the watching; the run goes on.
pub(crate) const DETACHED: u8 = 130;
/// What a shell says of a process that died of SIGPIPE. Never 0: the run's outcome was not seen.
const OUTPUT_CLOSED: u8 = 141;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    Told {
        info: ErrorInfo,
        exit: u8,
    },
    /// Whoever read our output went away; there is nobody to tell.
    OutputClosed,
}

impl Problem {
    pub(crate) fn new(exit: u8, code: &str, message: impl Display) -> Self {
        let (code, message) = (code.to_owned(), message.to_string());
        let info = ErrorInfo { code, message, hint: None, run: None };
        Self::Told { info, exit }
    }

    pub(crate) fn refusal(code: &str, message: impl Display) -> Self {
        Self::new(REFUSED, code, message)
    }

    /// Something of this machine's did not work: a file, a terminal, a descriptor.
    pub(crate) fn failure(message: impl Display) -> Self {
        Self::new(1, "failed", message)
    }

    pub(crate) fn unreachable(why: impl Display) -> Self {
        Self::new(UNREACHABLE, "daemon_unreachable", format_args!("daemon unreachable: {why}"))
    }

    pub(crate) fn unwritable(error: &std::io::Error) -> Self {
        match error.kind() {
            std::io::ErrorKind::BrokenPipe => Self::OutputClosed,
            _ => Self::new(
                UNWRITABLE,
                "output_failed",
                format_args!("cannot write the output: {error}"),
            ),
        }
    }

    /// An answer of the daemon's that is not 2xx.
    pub(crate) fn answered(status: u16, info: ErrorInfo) -> Self {
        let is_refusal =
            status < 500 || ["unreadable_run", "disk_full"].contains(&info.code.as_str());
        let exit = if is_refusal { REFUSED } else { UNREACHABLE };
        Self::Told { info, exit }
    }

    pub(crate) fn hint(mut self, text: impl Display) -> Self {
        if let Self::Told { info, .. } = &mut self {
            info.hint = Some(text.to_string());
        }
        self
    }

    pub(crate) fn exit(&self) -> u8 {
        match self {
            Self::Told { exit, .. } => *exit,
            Self::OutputClosed => OUTPUT_CLOSED,
        }
    }

    /// The id of the run that a refusal is about, if the daemon said it.
    pub(crate) fn run(&self) -> Option<&str> {
        match self {
            Self::Told { info, .. } => info.run.as_deref(),
            Self::OutputClosed => None,
        }
    }

    pub(crate) fn has_code(&self, code: &str) -> bool {
        matches!(self, Self::Told { info, .. } if info.code == code)
    }
}
