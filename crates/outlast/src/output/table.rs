//! Tables: columns that line up, cut to the width of the terminal.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::output::colour::Colour;
use crate::output::printable;

const GAP: usize = 2;

pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

/// A column and the width below which it is not cut.
pub(crate) struct Column {
    pub(crate) title: &'static str,
    pub(crate) narrowest: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    /// On a terminal.
    width: usize,
    colour: Colour,
}

/// How a table is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    /// `None`: nothing is cut.
    pub(crate) columns: Option<usize>,
    pub(crate) colours: bool,
}

impl Cell {
    pub(crate) fn new(text: &str) -> Self {
        let text = printable(text);
        Self { width: width(&text), text, colour: Colour::Plain }
    }

    pub(crate) fn coloured(text: &str, colour: Colour) -> Self {
        Self { colour, ..Self::new(text) }
    }
}

impl Table {
    pub(crate) fn new(columns: Vec<Column>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    pub(crate) fn push(&mut self, row: Vec<Cell>) {
        debug_assert_eq!(row.len(), self.columns.len(), "a cell for each column");
        self.rows.push(row);
    }

    /// Leaves a column out.
    pub(crate) fn without(mut self, title: &str) -> Self {
        if let Some(index) = self.columns.iter().position(|column| column.title == title) {
            self.columns.remove(index);
            for row in &mut self.rows {
                row.remove(index);
            }
        }
        self
    }

    pub(crate) fn render(&self, look: Look) -> String {
        let widths = fit(&self.columns, self.natural_widths(), look.columns);
        let titles: Vec<Cell> =
            self.columns.iter().map(|column| Cell::coloured(column.title, Colour::Bold)).collect();
        let mut text = String::new();
        for row in std::iter::once(&titles).chain(&self.rows) {
            push_line(&mut text, row, &widths, look.colours);
        }
        text
    }

    fn natural_widths(&self) -> Vec<usize> {
        let widest = |index: usize, column: &Column| {
            let cells = self.rows.iter().map(|row| row[index].width);
            cells.chain([width(column.title)]).max().unwrap_or(0)
        };
        self.columns.iter().enumerate().map(|(index, column)| widest(index, column)).collect()
    }
}

/// The last column gives way first, as far as it can, then the one before it, and so on.
fn fit(columns: &[Column], mut widths: Vec<usize>, limit: Option<usize>) -> Vec<usize> {
    let Some(limit) = limit else { return widths };
    let taken = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
    let mut too_much = taken.saturating_sub(limit);
    for (column, width) in columns.iter().zip(&mut widths).rev() {
        let give = too_much.min(width.saturating_sub(column.narrowest));
        *width -= give;
        too_much -= give;
    }
    widths
}

fn push_line(text: &mut String, row: &[Cell], widths: &[usize], colours: bool) {
    let begin = text.len();
    for (cell, width) in row.iter().zip(widths) {
        let shown = cut(cell, *width);
        match (cell.colour, colours) {
            (Colour::Plain, _) | (_, false) => text.push_str(&shown),
            (colour, true) => text.push_str(&colour.paint(&shown, colours)),
        }
        text.extend(std::iter::repeat_n(' ', width - cell.width.min(*width) + GAP));
    }
    let end = begin + text[begin..].trim_end().len();
    text.truncate(end);
    text.push('\n');
}

/// At most `width` columns of a cell; what is missing shows as `…`.
fn cut(cell: &Cell, width: usize) -> Cow<'_, str> {
    if cell.width <= width {
        return Cow::Borrowed(&cell.text);
    }
    let (mut kept, left) = shortened(&cell.text, width);
    kept.extend(std::iter::repeat_n(' ', left));
    Cow::Owned(kept)
}

/// At most `columns` of a line; what is missing shows as `…`.
pub(crate) fn clipped(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    Cow::Owned(shortened(text, columns).0)
}

/// What fits with a `…` behind it, and how many columns are left.
fn shortened(text: &str, columns: usize) -> (String, usize) {
    let mut kept = String::new();
    let mut left = columns.saturating_sub(1);
    for c in text.chars() {
        let Some(rest) = left.checked_sub(c.width().unwrap_or(0)) else { break };
        left = rest;
        kept.push(c);
    }
    kept.push('…');
    (kept, left)
}

/// Most of what is listed is plain, and then its width is its length.
fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.width() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let column = |title, narrowest| Column { title, narrowest };
        let mut table = Table::new(vec![column("ID", 4), column("NAME", 6), column("COMMAND", 10)]);
        table.push(vec![
            Cell::new("k3mx"),
            Cell::new("größe-日本"),
            Cell::new("sh -c 'make -j2 all'"),
        ]);
        table.push(vec![Cell::new("9zzz"), Cell::new(""), Cell::new("sleep 5")]);
        table
    }

    fn render(columns: Option<usize>) -> String {
        table().render(Look { columns, colours: false })
    }

    #[test]
    fn nothing_is_cut_where_nobody_looks() {
        insta::assert_snapshot!(render(None), @r"
        ID    NAME        COMMAND
        k3mx  größe-日本  sh -c 'make -j2 all'
        9zzz              sleep 5
        ");
        assert_eq!(render(Some(80)), render(None));
    }

    #[test]
    fn the_last_column_gives_way_first() {
        insta::assert_snapshot!(render(Some(32)), @r"
        ID    NAME        COMMAND
        k3mx  größe-日本  sh -c 'make -…
        9zzz              sleep 5
        ");
    }

    #[test]
    fn then_the_others_down_to_their_narrowest() {
        insta::assert_snapshot!(render(Some(20)), @r"
        ID    NAME    COMMAND
        k3mx  größe…  sh -c 'ma…
        9zzz          sleep 5
        ");
        assert_eq!(render(Some(1)), render(Some(20)));
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in 24..60 {
            for line in render(Some(width)).lines() {
                assert!(line.width() <= width, "{width}: {line}");
            }
        }
    }

    #[test]
    fn colours_do_not_move_columns() {
        let mut table = table();
        table.rows[0][0].colour = Colour::Red;
        let coloured = table.render(Look { columns: None, colours: true });
        assert!(coloured.contains("\x1b[31mk3mx\x1b[0m  größe"), "{coloured:?}");
    }
}
