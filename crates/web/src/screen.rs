//! A terminal's screen as rows of text: what a browser is given instead of the program's bytes.
//!
//! Whatever else a program says to its terminal ends here: titles, clipboards, links, pictures, questions. Colours
//! and weights become numbers; the page makes text nodes of the rest.

use std::num::NonZeroU16;

use outlast_wire::shim::Window;
use serde_json::{Value, json};
use vt100::{Cell, Color, Parser};

pub(crate) struct Screen {
    parser: Parser,
    /// The rows as the page has them; empty if it has none.
    shown: Vec<Value>,
    cursor: Value,
    is_sized: bool,
}

impl Screen {
    pub(crate) fn new() -> Self {
        let parser = Parser::new(side(24), side(80), 0);
        Self { parser, shown: Vec::new(), cursor: Value::Null, is_sized: false }
    }

    /// The screen that is painted next has this size.
    pub(crate) fn resize(&mut self, window: Window) {
        self.parser = Parser::new(side(window.rows), side(window.cols), 0);
        self.shown.clear();
        self.is_sized = true;
    }

    pub(crate) fn take(&mut self, bytes: &[u8]) {
        self.parser.process(bytes);
    }

    pub(crate) fn wants_application_cursor(&self) -> bool {
        self.parser.screen().application_cursor()
    }

    pub(crate) fn wants_bracketed_paste(&self) -> bool {
        self.parser.screen().bracketed_paste()
    }

    /// What has changed since it was asked last.
    pub(crate) fn news(&mut self) -> Option<Value> {
        if !self.is_sized {
            return None;
        }
        let screen = self.parser.screen();
        let (rows, cols) = screen.size();
        let mut changed = serde_json::Map::new();
        for row in 0..rows.get() {
            let runs = runs((0..cols.get()).filter_map(|col| screen.cell(row, col)));
            let at = usize::from(row);
            if self.shown.get(at) != Some(&runs) {
                changed.insert(row.to_string(), runs.clone());
                self.shown.resize(self.shown.len().max(at + 1), Value::Null);
                self.shown[at] = runs;
            }
        }
        let (row, col) = screen.cursor_position();
        let cursor = if screen.hide_cursor() { Value::Null } else { json!([row, col]) };
        if changed.is_empty() && cursor == self.cursor {
            return None;
        }
        self.cursor = cursor.clone();
        Some(json!({ "size": [rows.get(), cols.get()], "rows": changed, "cursor": cursor }))
    }
}

fn side(cells: u16) -> NonZeroU16 {
    NonZeroU16::new(cells.min(1000)).unwrap_or(NonZeroU16::MIN)
}

/// The cells of a row as few pieces: text, colours, weights, and whether each is two cells wide.
fn runs<'a>(cells: impl Iterator<Item = &'a Cell>) -> Value {
    let mut pieces: Vec<(String, Look)> = Vec::new();
    for cell in cells.filter(|cell| !cell.is_wide_continuation()) {
        let look = Look::of(cell);
        let text = plain(cell.contents());
        match pieces.last_mut() {
            Some((so_far, last)) if *last == look && !look.is_wide => so_far.push_str(&text),
            _ => pieces.push((text, look)),
        }
    }
    // What is blank to the end of the row is not worth its bytes.
    while let Some((text, _)) = pieces.last_mut().filter(|(_, look)| look.is_plain()) {
        text.truncate(text.trim_end().len());
        if !text.is_empty() {
            break;
        }
        pieces.pop();
    }
    let pieces = pieces
        .into_iter()
        .map(|(text, look)| json!([text, color(look.fore), color(look.back), look.weights()]));
    Value::Array(pieces.collect())
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Look {
    fore: Color,
    back: Color,
    is_bold: bool,
    is_dim: bool,
    is_italic: bool,
    is_underlined: bool,
    is_wide: bool,
}

impl Look {
    fn of(cell: &Cell) -> Self {
        let (fore, back) = (cell.fgcolor(), cell.bgcolor());
        let (fore, back) = match cell.inverse() {
            true => (inverse(back, 0), inverse(fore, 7)),
            false => (fore, back),
        };
        Self {
            fore,
            back,
            is_bold: cell.bold(),
            is_dim: cell.dim(),
            is_italic: cell.italic(),
            is_underlined: cell.underline(),
            is_wide: cell.is_wide(),
        }
    }

    fn is_plain(self) -> bool {
        self.back == Color::Default && !self.is_underlined
    }

    /// Letters, as few as there are: `b`old, `d`im, `i`talic, `u`nderlined, `w`ide.
    fn weights(self) -> String {
        let weights = [
            (self.is_bold, 'b'),
            (self.is_dim, 'd'),
            (self.is_italic, 'i'),
            (self.is_underlined, 'u'),
            (self.is_wide, 'w'),
        ];
        weights.into_iter().filter_map(|(has, letter)| has.then_some(letter)).collect()
    }
}

fn inverse(color: Color, instead: u8) -> Color {
    if color == Color::Default { Color::Idx(instead) } else { color }
}

/// A number of the palette, three numbers, or nothing.
fn color(color: Color) -> Value {
    match color {
        Color::Default => Value::Null,
        Color::Idx(index) => json!(index),
        Color::Rgb(red, green, blue) => json!([red, green, blue]),
    }
}

/// What a cell shows. Marks of direction have no place in a grid, and would move what others wrote.
fn plain(contents: &str) -> String {
    if contents.is_empty() {
        return " ".to_owned();
    }
    let is_mark = |char: char| matches!(char, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    contents.chars().filter(|char| !char.is_control() && !is_mark(*char)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &str) -> Value {
        let mut screen = Screen::new();
        screen.resize(Window { rows: 2, cols: 20 });
        screen.take(bytes.as_bytes());
        screen.news().expect("something is new")
    }

    #[test]
    fn a_screen_is_text_with_colours_and_nothing_else() {
        let said =
            shown("\x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x07<b>x</b>\x1b[1;31mred\x1b[0m a\u{202e}b");
        assert_eq!(
            said["rows"]["0"],
            json!([["<b>x</b>", null, null, ""], ["red", 1, null, "b"], [" ab", null, null, ""]])
        );
        assert_eq!(said["size"], json!([2, 20]));
        assert_eq!(said["cursor"], json!([0, 14]));
    }

    #[test]
    fn wide_cells_stand_alone_and_inverse_is_two_colours() {
        let said = shown("漢字\x1b[7mx\x1b[0m\x1b[38;2;1;2;3my");
        let expected = json!([
            ["漢", null, null, "w"],
            ["字", null, null, "w"],
            ["x", 0, 7, ""],
            ["y", [1, 2, 3], null, ""]
        ]);
        assert_eq!(said["rows"]["0"], expected);
    }

    #[test]
    fn only_what_has_changed_is_said_again() {
        let mut screen = Screen::new();
        assert_eq!(screen.news(), None, "its size is not known yet");
        screen.resize(Window { rows: 3, cols: 10 });
        screen.take(b"one\r\ntwo");
        assert!(screen.news().is_some());
        assert_eq!(screen.news(), None);
        screen.take(b"\x1b[1;1HONE");
        let said = screen.news().expect("a row is new");
        assert_eq!(said["rows"].as_object().map(serde_json::Map::len), Some(1));
        screen.resize(Window { rows: 3, cols: 12 });
        let said = screen.news().expect("all of it is");
        assert_eq!(said["rows"].as_object().map(serde_json::Map::len), Some(3));
    }
}
