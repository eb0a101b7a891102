//! The terminal as a screen of cells: entered and left cleanly, and written to only where something changed.

use std::fmt::Write;

use outlast_client::problem::Problem;
use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::{Position, Rect};
use ratatui_core::style::{Color, Modifier};

use super::view::Picture;
use crate::output::bytes::{Target, unwritable, write_all};
use crate::terminal::{self, Raw};

/// The alternate screen, empty, without a cursor; and pastes marked as such.
const ENTER: &str = "\x1b[?1049h\x1b[0m\x1b[2J\x1b[?25l\x1b[?2004h";

/// In raw mode for as long as it is shown. However we end, the terminal is put back by [`Raw`].
pub(crate) struct Screen {
    raw: Option<Raw>,
    shown: Buffer,
    cursor: Option<Position>,
}

impl Screen {
    pub(crate) fn enter() -> Result<Self, Problem> {
        let mut screen = Self { raw: None, shown: Buffer::default(), cursor: None };
        screen.come_back()?;
        Ok(screen)
    }

    /// Gives the terminal to another program.
    pub(crate) fn leave(&mut self) {
        self.raw = None;
    }

    pub(crate) fn come_back(&mut self) -> Result<(), Problem> {
        self.raw = Some(Raw::enter()?);
        terminal::about_to_show(ENTER.as_bytes());
        self.forget();
        write_all(Target::Stdout, ENTER.as_bytes()).map_err(|error| unwritable(&error))
    }

    /// What is on the screen is not to be relied upon.
    pub(crate) fn forget(&mut self) {
        self.shown = Buffer::empty(Rect::ZERO);
        self.cursor = None;
    }

    /// What has to be written so that this is shown. Nothing if it is.
    pub(crate) fn bytes_for(&mut self, picture: Picture) -> Vec<u8> {
        let Picture { cells, cursor } = picture;
        let mut out = String::new();
        if cells.area != self.shown.area {
            out.push_str("\x1b[0m\x1b[2J");
            self.shown = Buffer::empty(cells.area);
        }
        write_cells(&mut out, self.shown.diff(&cells));
        let is_moved = cursor != self.cursor;
        match cursor {
            // Wherever the cells have taken it.
            Some(Position { x, y }) if is_moved || !out.is_empty() => {
                push(&mut out, format_args!("\x1b[{};{}H\x1b[?25h", y + 1, x + 1));
            }
            None if is_moved => out.push_str("\x1b[?25l"),
            Some(_) | None => {}
        }
        (self.shown, self.cursor) = (cells, cursor);
        out.into_bytes()
    }
}

fn write_cells(out: &mut String, changed: Vec<(u16, u16, &Cell)>) {
    let mut style = None;
    let mut next = None;
    for (x, y, cell) in changed {
        // After a wide character too, since terminals do not agree on which are.
        if next != Some((x, y)) {
            push(out, format_args!("\x1b[{};{}H", y + 1, x + 1));
        }
        next = cell.symbol().is_ascii().then_some((x + 1, y));
        let look = (cell.fg, cell.modifier);
        if style != Some(look) {
            push_style(out, cell.fg, cell.modifier);
            style = Some(look);
        }
        out.push_str(cell.symbol());
    }
    if style.is_some() {
        out.push_str("\x1b[0m");
    }
}

fn push_style(out: &mut String, colour: Color, modifier: Modifier) {
    out.push_str("\x1b[0");
    for (one, code) in [(Modifier::BOLD, 1), (Modifier::DIM, 2), (Modifier::REVERSED, 7)] {
        if modifier.contains(one) {
            push(out, format_args!(";{code}"));
        }
    }
    let code = match colour {
        Color::Red => Some(31),
        Color::Green => Some(32),
        Color::Yellow => Some(33),
        Color::Cyan => Some(36),
        // The theme has no others.
        _ => None,
    };
    if let Some(code) = code {
        push(out, format_args!(";{code}"));
    }
    out.push('m');
}

fn push(out: &mut String, what: std::fmt::Arguments<'_>) {
    out.write_fmt(what).expect("a string takes any text");
}

#[cfg(test)]
mod tests {
    use ratatui_core::style::Style;

    use super::*;

    fn screen() -> Screen {
        Screen { raw: None, shown: Buffer::empty(Rect::ZERO), cursor: None }
    }

    fn picture(lines: &[&str], style: Style, cursor: Option<Position>) -> Picture {
        let mut cells = Buffer::empty(Rect::new(0, 0, 10, 2));
        for (y, line) in (0..).zip(lines) {
            cells.set_string(0, y, line, style);
        }
        Picture { cells, cursor }
    }

    fn bytes(screen: &mut Screen, picture: Picture) -> String {
        String::from_utf8(screen.bytes_for(picture)).expect("text")
    }

    #[test]
    fn only_what_changed_is_written() {
        let mut screen = screen();
        let plain = Style::new();
        assert_eq!(
            bytes(&mut screen, picture(&["ab", "cd"], plain, None)),
            "\x1b[0m\x1b[2J\x1b[1;1H\x1b[0mab\x1b[2;1Hcd\x1b[0m"
        );
        assert_eq!(bytes(&mut screen, picture(&["ab", "cd"], plain, None)), "");
        assert_eq!(
            bytes(&mut screen, picture(&["ab", "cx"], plain, None)),
            "\x1b[2;2H\x1b[0mx\x1b[0m"
        );
        let red = Style::new().fg(Color::Red).add_modifier(Modifier::REVERSED);
        assert_eq!(
            bytes(&mut screen, picture(&["ab", "日x"], red, None)),
            "\x1b[1;1H\x1b[0;7;31mab\x1b[2;1H日\x1b[2;3Hx\x1b[0m"
        );
    }

    #[test]
    fn the_cursor_is_there_while_something_is_typed() {
        let mut screen = screen();
        let at = |x| Some(Position { x, y: 1 });
        bytes(&mut screen, picture(&["ab"], Style::new(), None));
        let typing = bytes(&mut screen, picture(&["ab"], Style::new(), at(2)));
        assert_eq!(typing, "\x1b[2;3H\x1b[?25h");
        assert_eq!(bytes(&mut screen, picture(&["ab"], Style::new(), at(2))), "");
        assert_eq!(bytes(&mut screen, picture(&["ab"], Style::new(), None)), "\x1b[?25l");
    }
}
