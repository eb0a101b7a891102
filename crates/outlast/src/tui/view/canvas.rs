//! Text on cells: clipped to its place, and without anything that a terminal would obey.

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::theme::Theme;
use crate::output::printable;
use crate::output::table::clipped;

pub(crate) struct Canvas<'b> {
    buffer: &'b mut Buffer,
    pub(crate) theme: Theme,
}

impl<'b> Canvas<'b> {
    pub(crate) fn new(buffer: &'b mut Buffer, theme: Theme) -> Self {
        Self { buffer, theme }
    }

    pub(crate) fn area(&self) -> Rect {
        self.buffer.area
    }

    /// Puts text on a line from `x` on, in at most `width` columns; gives the column after it.
    pub(crate) fn put(&mut self, x: u16, y: u16, width: u16, text: &str, style: Style) -> u16 {
        let area = self.area();
        if y >= area.bottom() || x >= area.right() {
            return x;
        }
        let width = width.min(area.right() - x);
        let text = printable(text);
        let (end, _) =
            self.buffer.set_stringn(x, y, clipped(&text, width.into()), width.into(), style);
        end
    }

    /// Puts pieces one after the other, as far as there is room.
    pub(crate) fn row(&mut self, y: u16, from: u16, width: u16, pieces: &[(String, Style)]) -> u16 {
        let to = from.saturating_add(width);
        pieces
            .iter()
            .fold(from, |x, (text, style)| self.put(x, y, to.saturating_sub(x), text, *style))
    }

    /// Gives a whole line a style, over what it has.
    pub(crate) fn style(&mut self, y: u16, style: Style) {
        let area = self.area();
        if y < area.bottom() {
            self.buffer.set_style(Rect { y, height: 1, ..area }, style);
        }
    }

    /// Makes a line empty.
    pub(crate) fn wipe(&mut self, y: u16) {
        let area = self.area();
        if y < area.bottom() {
            (area.left()..area.right()).for_each(|x| self.buffer[(x, y)].reset());
        }
    }
}

pub(crate) fn width(text: &str) -> u16 {
    u16::try_from(text.width()).unwrap_or(u16::MAX)
}

/// A line in pieces of at most so many columns.
pub(crate) fn wrapped(text: &str, columns: u16) -> Vec<String> {
    let columns = usize::from(columns.max(1));
    let mut pieces = vec![String::new()];
    let mut used = 0;
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide > columns && used > 0 {
            pieces.push(String::new());
            used = 0;
        }
        used += wide;
        pieces.last_mut().expect("there is always one").push(c);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_by_columns() {
        assert_eq!(wrapped("日本語", 4), ["日本", "語"]);
        assert_eq!(wrapped("abcdef", 3), ["abc", "def"]);
        assert_eq!(wrapped("", 3), [""]);
        assert_eq!(wrapped("日", 1), ["日"], "what is wider than the screen is not cut in half");
    }
}
