//! The turns of a loop as a table: how each ended, how long it took, what it spent and what it said.

use jiff::Timestamp;
use outlast_workflow::duration::short;

use crate::output::table::{Cell, Column, Table};
use crate::output::{figures, one_line};
use crate::turns::{Turn, Turns};

/// The newest are shown, so that the page fits a screen.
const MOST: usize = 8;

pub(super) fn table(turns: &Turns, now: Timestamp) -> Option<Table> {
    let mut shown: Vec<&Turn> = turns.newest().take(MOST).collect();
    shown.reverse();
    if shown.is_empty() {
        return None;
    }
    let column = |title, narrowest| Column { title, narrowest };
    let mut table = Table::new(vec![
        column("TURN", 5),
        column("STATUS", 25),
        column("TOOK", 8),
        column("SPEND", 12),
        column("LINES", 10),
        column("SUMMARY", 24),
    ])
    .dropping(&["TOOK", "SPEND", "LINES"]);
    let has_spend = shown.iter().any(|turn| !spend(turn).is_empty());
    let has_lines = shown.iter().any(|turn| turn.lines.is_some());
    for turn in shown {
        let words =
            [number(turn), turn.words(), took(turn, now), spend(turn), lines(turn), summary(turn)];
        table.push(words.iter().map(|word| Cell::new(word)).collect());
    }
    let table = if has_spend { table } else { table.without("SPEND") };
    Some(if has_lines { table } else { table.without("LINES") })
}

/// How many turns came before those that are shown.
pub(super) fn earlier(turns: &Turns) -> Option<String> {
    let count = turns.newest().count().saturating_sub(MOST);
    (count > 0).then(|| format!("{} before these", figures::count(count, "turn")))
}

fn number(turn: &Turn) -> String {
    let attempt = u32::try_from(turn.attempts).unwrap_or(u32::MAX);
    figures::turn(u32::try_from(turn.number).unwrap_or(u32::MAX), attempt, None)
}

fn took(turn: &Turn, now: Timestamp) -> String {
    turn.took_ms(now).map(short).unwrap_or_default()
}

fn spend(turn: &Turn) -> String {
    turn.spend().column().unwrap_or_default()
}

/// `+12 -3`
fn lines(turn: &Turn) -> String {
    turn.lines.map(|(added, deleted)| format!("+{added} -{deleted}")).unwrap_or_default()
}

/// `fixed add (check failed: make test: 3 failed)`
fn summary(turn: &Turn) -> String {
    let said = turn.summary.as_deref().map(one_line).unwrap_or_default();
    match &turn.refuted {
        Some(check) => format!("{said} (check failed: {})", one_line(check)).trim().to_owned(),
        None => said,
    }
}
