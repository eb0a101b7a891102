//! Styles: the terminal's own sixteen colours, or none. What a colour says is also said in words.

use outlast_wire::words::{StateName, Word};
use ratatui_core::style::{Color, Modifier, Style};

use crate::output::colour::{self, Colour};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Theme {
    pub(crate) colours: bool,
}

impl Theme {
    pub(crate) fn plain(self) -> Style {
        Style::new()
    }

    pub(crate) fn bold(self) -> Style {
        self.of(Colour::Bold)
    }

    pub(crate) fn dim(self) -> Style {
        self.of(Colour::Dim)
    }

    pub(crate) fn chosen(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }

    /// What a person has to see.
    pub(crate) fn alarm(self) -> Style {
        self.of(Colour::Red).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn warning(self) -> Style {
        self.of(Colour::Yellow)
    }

    pub(crate) fn state(self, state: &Word<StateName>) -> Style {
        self.of(colour::of_state(state))
    }

    fn of(self, colour: Colour) -> Style {
        let painted = |colour| if self.colours { Style::new().fg(colour) } else { Style::new() };
        match colour {
            Colour::Plain => Style::new(),
            Colour::Bold => Style::new().add_modifier(Modifier::BOLD),
            Colour::Dim => Style::new().add_modifier(Modifier::DIM),
            Colour::Red => painted(Color::Red),
            Colour::Green => painted(Color::Green),
            Colour::Yellow => painted(Color::Yellow),
            Colour::Cyan => painted(Color::Cyan),
        }
    }
}
