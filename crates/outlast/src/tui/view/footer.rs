//! The last lines of every page: what can be pressed, what is being asked, what was said.

use outlast_wire::api::RunRow;
use outlast_wire::words::StateName;
use ratatui_core::layout::Position;

use super::canvas::{Canvas, width, wrapped};
use crate::output::printable;
use crate::tui::model::{Input, Link, Mode, Model, Page, Purpose};

/// So many lines of a question are shown.
const QUESTION: usize = 3;

/// Draws the last line, and says where the cursor belongs if something is being typed.
pub(super) fn draw(model: &Model, y: u16, canvas: &mut Canvas<'_>) -> Option<Position> {
    let (all, theme) = (canvas.area().width, canvas.theme);
    match &model.mode {
        Mode::Help => {
            canvas.put(0, y, all, "any key goes back", theme.dim());
            None
        }
        Mode::Commands => {
            match &model.notice {
                Some(notice) if notice.is_problem => {
                    canvas.put(0, y, all, &notice.text, theme.warning());
                }
                Some(notice) => drop(canvas.put(0, y, all, &notice.text, theme.bold())),
                None => match &model.link {
                    Link::Gone { why, .. } => drop(canvas.put(0, y, all, why, theme.warning())),
                    Link::Connecting | Link::Up { .. } => {
                        canvas.put(0, y, all, &hints(model, all), theme.dim());
                    }
                },
            }
            None
        }
        Mode::Confirm { question, .. } => {
            canvas.put(0, y, all, &format!("{question} y/n "), theme.alarm());
            None
        }
        Mode::Approve { run, question, .. } => {
            asked(canvas, y, &called(model, run), question);
            canvas.put(0, y, all, "y approve  n deny  t in words  esc later", theme.alarm());
            None
        }
        Mode::Type { purpose, input } => {
            let label = match purpose {
                Purpose::Filter => "/".to_owned(),
                Purpose::Message { run } => format!("message to {}: ", called(model, run)),
                Purpose::Answer { run, question, .. } => {
                    asked(canvas, y, &called(model, run), question);
                    "answer: ".to_owned()
                }
            };
            Some(typed(canvas, y, &label, input))
        }
    }
}

/// The run as its user calls it.
fn called(model: &Model, run: &str) -> String {
    let name = model.list.row(run).and_then(|row| row.name.as_deref());
    printable(name.unwrap_or(run))
}

/// What the run asks, above the last line.
fn asked(canvas: &mut Canvas<'_>, y: u16, run: &str, question: &str) {
    let all = canvas.area().width;
    let mut lines = wrapped(&format!("{run} asks: {question}"), all);
    if lines.len() > QUESTION {
        lines.truncate(QUESTION);
        lines[QUESTION - 1].push('…');
    }
    let style = canvas.theme.warning();
    for (line, above) in lines.iter().rev().zip(1..) {
        let Some(y) = y.checked_sub(above) else { return };
        canvas.wipe(y);
        canvas.put(0, y, all, line, style);
    }
}

/// As much of the line as has the cursor in it.
fn typed(canvas: &mut Canvas<'_>, y: u16, label: &str, input: &Input) -> Position {
    let (all, theme) = (canvas.area().width, canvas.theme);
    let x = canvas.put(0, y, all / 2, label, theme.bold());
    let room = all.saturating_sub(x).max(1);
    let before: Vec<char> = input.text.chars().take(input.cursor).collect();
    let shown_from = (0..=before.len())
        .find(|from| width(&before[*from..].iter().collect::<String>()) < room)
        .unwrap_or(before.len());
    let shown: String = input.text.chars().skip(shown_from).collect();
    canvas.put(x, y, room, &shown, theme.plain());
    let cursor = width(&before[shown_from..].iter().collect::<String>());
    Position { x: (x + cursor).min(all.saturating_sub(1)), y }
}

/// What can be pressed now, as much as fits: each key whole, and the way out always.
fn hints(model: &Model, columns: u16) -> String {
    let (first, more, last) = match &model.page {
        Page::List => ("? keys  enter open", &["/ filter", "a ended"][..], "q quit"),
        Page::Run(_) => ("? keys", &["←→ turn", "↑↓ scroll", "end live"][..], "esc back"),
    };
    let mut line = first.to_owned();
    let actions = model.subject().map(|row| actions(&row)).unwrap_or_default();
    for key in actions.iter().chain(more) {
        if width(&line) + width(key) + width(last) + 4 <= columns {
            line.push_str(&format!("  {key}"));
        }
    }
    if width(&line) + width(last) + 2 <= columns {
        line.push_str(&format!("  {last}"));
    }
    line
}

/// What can be done with a run; one that has ended is only looked at.
fn actions(row: &RunRow) -> Vec<&'static str> {
    if row.state.has_ended() {
        return if row.survivors > 0 { vec!["s stop"] } else { Vec::new() };
    }
    let asks = row.question.is_some() || row.state == StateName::Blocked;
    let first = match (asks, row.paused) {
        (true, _) => "A answer",
        (false, true) => "r resume",
        (false, false) => "p pause",
    };
    vec![first, "m message", "s stop", "t attach"]
}
