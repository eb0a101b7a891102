//! Tables: columns that line up and fit the terminal.
//!
//! On a terminal no row is wider than the window: the last column is cut first, then columns are left out in the order
//! that the table names, then the rest is cut. Without a terminal nothing is cut or left out.

use std::borrow::Cow;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::output::colour::Colour;
use crate::output::printable;

const GAP: usize = 2;

pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    /// The titles of columns that may be left out, the first to go first.
    droppable: &'static [&'static str],
}

/// A column and the width below which it is cut only when no column is left that may be left out.
#[derive(Debug, Clone, Copy)]
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
        Self { columns, rows: Vec::new(), droppable: &[] }
    }

    /// Names the columns that may be left out on a narrow terminal, the first to go first.
    pub(crate) fn dropping(self, droppable: &'static [&'static str]) -> Self {
        Self { droppable, ..self }
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

    pub(crate) fn titles(&self) -> Vec<&'static str> {
        self.columns.iter().map(|column| column.title).collect()
    }

    /// These columns alone, in this order. None of them is left out.
    pub(crate) fn only(self, titles: &[&str]) -> Self {
        let place = |title: &&str| self.columns.iter().position(|column| column.title == *title);
        let places: Vec<usize> = titles.iter().filter_map(place).collect();
        let pick = |row: &Vec<Cell>| places.iter().map(|place| row[*place].clone()).collect();
        let rows = self.rows.iter().map(pick).collect();
        let columns = places.iter().map(|place| self.columns[*place]).collect();
        Self { columns, rows, droppable: &[] }
    }

    pub(crate) fn render(&self, look: Look) -> String {
        let widths = self.fit(look.columns);
        let titles: Vec<Cell> =
            self.columns.iter().map(|column| Cell::coloured(column.title, Colour::Bold)).collect();
        let mut text = String::new();
        for row in std::iter::once(&titles).chain(&self.rows) {
            push_line(&mut text, row, &widths, look.colours);
        }
        text
    }

    /// The width of each column; `None` for one that is left out.
    fn fit(&self, limit: Option<usize>) -> Vec<Option<usize>> {
        let mut widths: Vec<Option<usize>> = self.natural_widths().into_iter().map(Some).collect();
        let Some(limit) = limit else { return widths };
        for title in std::iter::once(None).chain(self.droppable.iter().map(Some)) {
            let gone = self.columns.iter().position(|column| Some(&column.title) == title);
            if let Some(index) = gone {
                widths[index] = None;
            }
            if let Some(fitting) = self.narrowed(&widths, limit, |column| column.narrowest) {
                return fitting;
            }
        }
        // Nothing that may go is left, so the rest is cut; at the very end from the right.
        let mut last = widths.len();
        loop {
            if let Some(fitting) = self.narrowed(&widths, limit, |_| LEAST) {
                return fitting;
            }
            last = last.saturating_sub(1);
            match widths.iter().flatten().count() {
                0 | 1 => return widths.iter().map(|width| width.map(|it| it.min(limit))).collect(),
                _ => widths[last] = None,
            }
        }
    }

    /// Widths that fit: the last column gives way first, as far as it can, then the one before it, and so on.
    fn narrowed(
        &self,
        widths: &[Option<usize>],
        limit: usize,
        least: impl Fn(&Column) -> usize,
    ) -> Option<Vec<Option<usize>>> {
        let shown = widths.iter().flatten();
        let taken = shown.clone().sum::<usize>() + GAP * shown.count().saturating_sub(1);
        let mut too_much = taken.saturating_sub(limit);
        let mut widths = widths.to_vec();
        for (column, width) in self.columns.iter().zip(&mut widths).rev() {
            let Some(width) = width else { continue };
            let give = too_much.min(width.saturating_sub(least(column)));
            *width -= give;
            too_much -= give;
        }
        (too_much == 0).then_some(widths)
    }

    fn natural_widths(&self) -> Vec<usize> {
        let widest = |index: usize, column: &Column| {
            let cells = self.rows.iter().map(|row| row[index].width);
            cells.chain([width(column.title)]).max().unwrap_or(0)
        };
        self.columns.iter().enumerate().map(|(index, column)| widest(index, column)).collect()
    }
}

/// In columns of the terminal: less of a cell says nothing.
const LEAST: usize = 3;

fn push_line(text: &mut String, row: &[Cell], widths: &[Option<usize>], colours: bool) {
    let begin = text.len();
    for (cell, width) in row.iter().zip(widths) {
        let Some(width) = *width else { continue };
        let shown = cut(cell, width);
        match (cell.colour, colours) {
            (Colour::Plain, _) | (_, false) => text.push_str(&shown),
            (colour, true) => text.push_str(&colour.paint(&shown, colours)),
        }
        text.extend(std::iter::repeat_n(' ', width - cell.width.min(width) + GAP));
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
    if columns == 0 || width(text) <= columns {
        return Cow::Borrowed(if columns == 0 { "" } else { text });
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

/// The table on a terminal of this width; no line of it may be wider.
#[cfg(test)]
pub(crate) fn fitting(table: &Table, columns: usize) -> String {
    let text = table.render(Look { columns: Some(columns), colours: false });
    for line in text.lines() {
        assert!(width(line) <= columns, "{columns} columns: {line}");
    }
    text
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
        ID    NAME       CO…
        k3mx  größe-日…  sh…
        9zzz             sl…
        ");
    }

    #[test]
    fn columns_that_may_go_are_left_out_before_others_are_cut_further() {
        let table = table().dropping(&["NAME"]);
        let render = |columns| table.render(Look { columns: Some(columns), colours: false });
        insta::assert_snapshot!(render(23), @r"
        ID    COMMAND
        k3mx  sh -c 'make -j2 …
        9zzz  sleep 5
        ");
        assert!(render(24).contains("NAME"), "{}", render(24));
    }

    #[test]
    fn the_last_resort_is_to_cut_and_then_to_leave_out_from_the_right() {
        insta::assert_snapshot!(render(Some(15)), @r"
        ID    NAME  CO…
        k3mx  grö…  sh…
        9zzz        sl…
        ");
        insta::assert_snapshot!(render(Some(9)), @r"
        ID    NA…
        k3mx  gr…
        9zzz
        ");
        insta::assert_snapshot!(render(Some(2)), @r"
        ID
        k…
        9…
        ");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        for width in 1..60 {
            for table in [table(), table().dropping(&["COMMAND", "NAME"])] {
                let text = table.render(Look { columns: Some(width), colours: false });
                for line in text.lines() {
                    assert!(line.width() <= width, "{width}: {line}");
                }
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
