//! Colours: a help to the eye, never the only carrier of a meaning.

use outlast_wire::words::{StateName, Word};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Colour {
    #[default]
    Plain,
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Colour {
    fn code(self) -> Option<&'static str> {
        Some(match self {
            Self::Plain => return None,
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
            Self::Cyan => "36",
        })
    }

    pub(crate) fn paint(self, text: &str, is_on: bool) -> String {
        match self.code() {
            Some(code) if is_on && !text.is_empty() => format!("\x1b[{code}m{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }
}

/// The colour of a run's state.
pub(crate) fn of_state(state: &Word<StateName>) -> Colour {
    match state.known() {
        Some(StateName::Completed) => Colour::Green,
        Some(StateName::Failed | StateName::Exhausted) => Colour::Red,
        Some(StateName::Blocked | StateName::Waiting) => Colour::Yellow,
        Some(StateName::Stopped) => Colour::Dim,
        Some(
            StateName::Running | StateName::Preparing | StateName::Verifying | StateName::Finishing,
        ) => Colour::Cyan,
        Some(StateName::Queued) | None => Colour::Plain,
    }
}
