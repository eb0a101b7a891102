//! The list of runs: a header with what all of them come to, and a line for each.

use jiff::Timestamp;
use outlast_wire::api::RunRow;
use outlast_wire::words::{Health, Word};
use outlast_workflow::duration;
use ratatui_core::style::Style;

use super::canvas::{Canvas, width};
use super::columns::{Column, fit};
use super::health::health;
use super::theme::Theme;
use super::{Frame, header};
use crate::attention::Group;
use crate::output::state::Condition;
use crate::output::{agent, figures, printable, time};
use crate::tui::model::{Line, Link, Model, group};

const COLUMNS: [Column; 9] = [
    Column { title: "ID", narrowest: 6, enough: 12, widest: 28, rank: 0 },
    Column { title: "NAME", narrowest: 6, enough: 9, widest: 20, rank: 2 },
    Column { title: "STATE", narrowest: 9, enough: 17, widest: 26, rank: 1 },
    Column { title: "HEALTH", narrowest: 7, enough: 9, widest: 13, rank: 3 },
    Column { title: "TURN", narrowest: 4, enough: 6, widest: 8, rank: 4 },
    Column { title: "AGE", narrowest: 3, enough: 3, widest: 5, rank: 5 },
    Column { title: "CTX", narrowest: 3, enough: 4, widest: 6, rank: 7 },
    Column { title: "SPEND", narrowest: 5, enough: 6, widest: 14, rank: 6 },
    Column { title: "LAST LINE", narrowest: 10, enough: 10, widest: u16::MAX, rank: 8 },
];

/// Deeper than this all look the same.
const DEEPEST: usize = 8;

pub(super) fn draw(model: &Model, frame: Frame, canvas: &mut Canvas<'_>) {
    if let Some(y) = frame.header {
        header::draw(model, y, canvas);
    }
    let lines = model.list.lines();
    let all: Vec<Vec<Shown>> =
        lines.iter().map(|line| cells(model, line, frame, canvas.theme)).collect();
    // The first column is for the mark of the chosen line.
    let widths = fit(&COLUMNS, &natural(&all), canvas.area().width.saturating_sub(2), frame.gap);
    if let Some(y) = frame.titles {
        let bold = canvas.theme.bold();
        let titles = COLUMNS.map(|column| Shown { text: column.title.to_owned(), style: bold });
        put_line(canvas, y, &titles, &widths, frame.gap);
    }
    let on_screen = all.iter().enumerate().skip(model.list.top()).take(frame.body.into());
    for (y, (index, cells)) in (frame.body_at..).zip(on_screen) {
        put_line(canvas, y, cells, &widths, frame.gap);
        if matches!(model.link, Link::Gone { .. }) {
            canvas.style(y, canvas.theme.dim());
        }
        if index == model.list.chosen_index() {
            canvas.put(0, y, 1, ">", canvas.theme.bold());
            canvas.style(y, canvas.theme.chosen());
        }
    }
    if lines.is_empty() {
        canvas.put(2, frame.body_at, u16::MAX, nothing(model), canvas.theme.dim());
    }
}

fn nothing(model: &Model) -> &'static str {
    match (&model.link, model.list.rows().next().is_some()) {
        (Link::Connecting, _) => "asking the daemon",
        (_, true) => "no run is like that; esc lifts the filter, a shows ended runs too",
        (_, false) => "no runs yet; outlast run starts one",
    }
}

struct Shown {
    text: String,
    style: Style,
}

fn natural(all: &[Vec<Shown>]) -> Vec<u16> {
    let widest =
        |index: usize| all.iter().map(|cells| width(&cells[index].text)).max().unwrap_or(0);
    let of_column = |(index, column): (usize, &Column)| match widest(index) {
        0 => 0,
        some => some.max(width(column.title)),
    };
    COLUMNS.iter().enumerate().map(of_column).collect()
}

fn put_line(canvas: &mut Canvas<'_>, y: u16, cells: &[Shown], widths: &[u16], gap: u16) {
    let mut x = 2;
    for (cell, width) in cells.iter().zip(widths).filter(|(_, width)| **width > 0) {
        canvas.put(x, y, *width, &cell.text, cell.style);
        x += width + gap;
    }
}

fn cells(model: &Model, line: &Line, frame: Frame, theme: Theme) -> Vec<Shown> {
    let Some(row) = model.list.row(&line.id) else { return Vec::new() };
    let plain = |text: String| Shown { text: printable(&text), style: theme.plain() };
    let has_ended = group(row) == Group::Ended;
    let quiet = if has_ended { theme.dim() } else { theme.plain() };
    let (word, loud) = health(row, theme);
    let age =
        time::ms_between(&row.created_at, model.now).map(duration::column).unwrap_or_default();
    let fill = row.agent.as_ref().and_then(|it| agent::fill(&it.activity));
    // What it asks is worth more than what it wrote.
    let line_text = row.question.as_deref().or(row.last_line.as_deref()).unwrap_or(&row.what);
    vec![
        Shown { text: format!("{}{}", indent(line.depth), row.id), style: quiet },
        plain(row.name.clone().unwrap_or_default()),
        Shown { text: state(row, model.now), style: theme.state(&row.state) },
        Shown { text: word, style: loud },
        plain(figures::turn(row.turn, row.attempt, row.max_turns)),
        plain(age),
        plain(fill.unwrap_or_default()),
        plain(spend(row, frame.is_narrow)),
        Shown { text: printable(line_text), style: quiet },
    ]
}

fn indent(depth: usize) -> String {
    match depth {
        0 => String::new(),
        depth => format!("{}└ ", "  ".repeat(depth.min(DEEPEST) - 1)),
    }
}

/// Health has a column of its own.
pub(super) fn state(row: &RunRow, now: Timestamp) -> String {
    let condition =
        Condition { health: &Word::Known(Health::Healthy), ..Condition::from(row).at(now) };
    condition.words_at(row.phase.as_deref(), row.agent.as_ref())
}

/// `$0.42 15k`; where there is little room the one that says more.
pub(super) fn spend(row: &RunRow, is_narrow: bool) -> String {
    let spend = figures::Spend::from(row);
    let most = if is_narrow { 1 } else { 2 };
    let figures: Vec<String> =
        [spend.money(), spend.count()].into_iter().flatten().take(most).collect();
    match figures.as_slice() {
        [] => spend.column().unwrap_or_default(),
        figures => figures.join(" "),
    }
}
