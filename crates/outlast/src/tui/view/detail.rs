//! One run: where it stands, its turns, and its output.

use jiff::Timestamp;
use outlast_wire::api::RunRow;
use outlast_wire::words::Health;
use outlast_workflow::duration;
use ratatui_core::style::Style;

use super::canvas::{Canvas, width, wrapped};
use super::health::health;
use super::{Frame, header, list};
use crate::output::state::spaced;
use crate::output::{self, figures, one_line, pots, printable, rest, time};
use crate::tui::model::{Detail, Model, Reading, Turn};

/// Lines that a table of budgets leaves: a remark, some turns, the rule and output.
const LEFT_BELOW_BUDGET: usize = 7;

pub(super) fn draw(model: &Model, detail: &Detail, frame: Frame, canvas: &mut Canvas<'_>) {
    let area = canvas.area();
    let bottom = frame.footer.unwrap_or(area.height);
    let mut y = 0;
    if let Some(at) = frame.header {
        standing(model, detail, at, canvas);
        y = at + 1;
    }
    if let Some(text) = about(detail).filter(|_| bottom.saturating_sub(y) >= 3) {
        canvas.put(0, y, area.width, &text, canvas.theme.warning());
        y += 1;
    }
    if let Some(text) = agent_line(model, detail).filter(|_| bottom.saturating_sub(y) >= 3) {
        canvas.put(0, y, area.width, &text, canvas.theme.plain());
        y += 1;
    }
    for (line, is_head) in budget_lines(detail, bottom.saturating_sub(y)) {
        let style = if is_head { canvas.theme.dim() } else { canvas.theme.plain() };
        canvas.put(0, y, area.width, &line, style);
        y += 1;
    }
    let room = bottom.saturating_sub(y);
    let turns = if room < 6 { 0 } else { (room / 3).min(8) };
    let turns = shown_turns(detail, turns.into());
    for (turn, line) in turns.iter().zip(turn_lines(&turns, model.now)) {
        let is_shown = detail.turn.is_none_or(|shown| shown == turn.number);
        let style = if is_shown { canvas.theme.plain() } else { canvas.theme.dim() };
        canvas.put(0, y, area.width, &line, style);
        y += 1;
    }
    if bottom.saturating_sub(y) >= 3 {
        let rule = rule(detail);
        let fill = "─".repeat(area.width.saturating_sub(width(&rule) + 4).into());
        canvas.put(0, y, area.width, &format!("── {rule} {fill}"), canvas.theme.dim());
        y += 1;
    }
    output(detail, y, bottom, canvas);
}

/// Its id, name, state and figures, and at the right whether the daemon is there.
fn standing(model: &Model, detail: &Detail, y: u16, canvas: &mut Canvas<'_>) {
    let all = canvas.area().width;
    let theme = canvas.theme;
    let mut pieces: Vec<(String, Style)> = vec![(detail.run.clone(), theme.bold())];
    match model.list.row(&detail.run) {
        Some(row) => pieces.extend(figures_of(model, row, canvas)),
        None => pieces.push(("  it was removed".to_owned(), theme.alarm())),
    }
    let (daemon, style) = header::daemon(model, canvas);
    let taken = width(&daemon).min(all / 2);
    canvas.put(all - taken, y, taken, &daemon, style);
    canvas.row(y, 0, all.saturating_sub(taken + 1), &pieces);
}

fn figures_of(model: &Model, row: &RunRow, canvas: &Canvas<'_>) -> Vec<(String, Style)> {
    let theme = canvas.theme;
    let age =
        time::ms_between(&row.created_at, model.now).map(duration::column).unwrap_or_default();
    let all = [
        (row.name.as_deref().map(printable).unwrap_or_default(), theme.plain()),
        (list::state(row, model.now), theme.state(&row.state)),
        health(row, theme),
        (format!("turn {}", figures::turn(row.turn, row.attempt, row.max_turns)), theme.plain()),
        (age, theme.plain()),
        (list::spend(row, false), theme.plain()),
    ];
    let told = all.into_iter().filter(|(text, _)| !text.is_empty());
    told.map(|(text, style)| (format!("  {text}"), style)).collect()
}

/// What it asks, or why it rests, or what it was given to do.
fn about(detail: &Detail) -> Option<String> {
    let view = detail.view.as_ref()?;
    if let Some(question) = rest::question(view) {
        return Some(format!("asks: {}", one_line(question)));
    }
    let reason = view.reason.as_deref().filter(|reason| !reason.is_empty());
    let why = reason.map(|reason| format!("{}: {}", view.state, one_line(reason)));
    let unwell = view.health_why.as_deref().filter(|_| view.health != Health::Healthy);
    let unwell =
        unwell.map(|unwell| format!("{}: {}", spaced(view.health.as_str()), one_line(unwell)));
    let why = unwell.or(why);
    why.or_else(|| view.task.as_deref().map(one_line))
}

/// `claude opus  Bash: cargo test, 12s  context 90k of 200k tokens (45%)  this turn $0.10`
fn agent_line(model: &Model, detail: &Detail) -> Option<String> {
    let agent = model.list.row(&detail.run)?.agent.as_ref()?;
    let activity = &agent.activity;
    let name = activity.model.iter().fold(agent.kind.clone(), |kind, it| format!("{kind} {it}"));
    let asks = activity.asks.as_ref().map(|asks| format!("asks: {}", asks.text));
    let retry = activity.retrying.as_ref().map(|it| output::agent::retry(it, model.now));
    let tool = output::agent::tool(activity, model.now);
    let context = output::agent::context(activity).map(|words| format!("context {words}"));
    // Of a turn that runs every figure is what it used so far.
    let so_far = |usage| {
        let spend = figures::Spend::from(usage);
        figures::Spend { money_known: true, tokens_known: true, ..spend }.column()
    };
    let spent = activity.turn_usage.as_ref().and_then(so_far);
    let spent = spent.map(|words| format!("this turn {words}"));
    let limit = activity.limit.as_ref().map(|limit| format!("limit: {}", limit.why));
    let unreadable = activity.unreadable.as_ref().map(|why| format!("unreadable: {why}"));
    let pieces = [Some(name), asks, retry, tool, context, spent, limit, unreadable];
    Some(printable(&pieces.into_iter().flatten().collect::<Vec<_>>().join("  ")))
}

/// What it and those below it may use together, with a heading; in one line where the screen has few, and not at all
/// where it would leave no room for output.
fn budget_lines(detail: &Detail, room: u16) -> Vec<(String, bool)> {
    let shared = detail.view.as_ref().and_then(|view| Some((view.tree.as_ref()?, &view.usage)));
    let Some((shared, own)) = shared else { return Vec::new() };
    let table = pots::table(shared, own);
    if usize::from(room) < table.len() + LEFT_BELOW_BUDGET {
        let line = pots::line(shared).filter(|_| room >= 3);
        return line.into_iter().map(|line| (line, false)).collect();
    }
    let widest = |at: usize| table.iter().map(|row| width(&row[at])).max().unwrap_or(0);
    let widths: Vec<u16> = (0..table.first().map_or(0, Vec::len)).map(widest).collect();
    let line = |row: &Vec<String>| {
        let mut line = String::new();
        for (at, (cell, wide)) in row.iter().zip(&widths).enumerate() {
            let pad = usize::from(wide.saturating_sub(width(cell)));
            // Words to the left, amounts to the right.
            line.push_str(&match at {
                0 => format!("{cell}{:pad$}", ""),
                _ => format!("  {:pad$}{cell}", ""),
            });
        }
        line
    };
    let remark = pots::remark(shared).filter(|_| !table.is_empty());
    let lines = table.iter().enumerate().map(|(at, row)| (line(row), at == 0));
    lines.chain(remark.map(|remark| (remark, false))).collect()
}

/// The newest turns, in order, and the one that is looked at among them.
fn shown_turns(detail: &Detail, most: usize) -> Vec<&Turn> {
    let skipped = match detail.turn {
        Some(shown) => {
            let newer = detail.turns.newest().take_while(|turn| turn.number > shown).count();
            (newer + 1).saturating_sub(most)
        }
        None => 0,
    };
    let mut turns: Vec<&Turn> = detail.turns.newest().skip(skipped).take(most).collect();
    turns.reverse();
    turns
}

/// `turn 2  continue, files changed, 3 attempts  1m 2s  $0.42  the lexer is there`, in columns. What no turn has is
/// left out.
fn turn_lines(turns: &[&Turn], now: Timestamp) -> Vec<String> {
    let rows: Vec<[String; 6]> = turns.iter().map(|turn| turn_cells(turn, now)).collect();
    let widest = |at: usize| rows.iter().map(|row| width(&row[at])).max().unwrap_or(0);
    let widths: Vec<u16> = (0..6).map(widest).collect();
    let line = |row: &[String; 6]| {
        let mut line = String::new();
        for (cell, wide) in row.iter().zip(&widths).filter(|(_, wide)| **wide > 0) {
            let pad = usize::from(wide.saturating_sub(width(cell)));
            line.push_str(&format!("{cell}{:pad$}  ", ""));
        }
        line.trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn turn_cells(turn: &Turn, now: Timestamp) -> [String; 6] {
    let attempts = (turn.attempts > 1).then(|| format!(", {} attempts", turn.attempts));
    let status = format!("{}{}", turn.words(), attempts.unwrap_or_default());
    let took = turn.took_ms(now).map(duration::short);
    let spend = turn.spend();
    let (cost, tokens) = (spend.money(), spend.count().map(|count| format!("{count} tokens")));
    let summary = turn.summary.as_deref().map(one_line);
    let [took, cost, tokens, summary] =
        [took, cost, tokens, summary].map(Option::unwrap_or_default);
    [format!("turn {}", turn.number), status, took, cost, tokens, summary]
}

/// What the output below is.
fn rule(detail: &Detail) -> String {
    let of = match detail.turn {
        Some(turn) => format!("output of turn {turn}"),
        None => "output".to_owned(),
    };
    let how = match &detail.reading {
        _ if !detail.output.is_at_end() => "scrolled back; end follows".to_owned(),
        Reading::Following => "live".to_owned(),
        Reading::Whole => "that is all".to_owned(),
        Reading::Broken { why } => format!("broke off: {}", printable(why)),
    };
    format!("{of}, {how}")
}

/// The last lines that fit, from the bottom up.
fn output(detail: &Detail, top: u16, bottom: u16, canvas: &mut Canvas<'_>) {
    let all = canvas.area().width;
    let room = usize::from(bottom.saturating_sub(top));
    let mut rows: Vec<String> = Vec::new();
    for line in detail.output.upwards() {
        if rows.len() >= room {
            break;
        }
        rows.extend(wrapped(line, all).into_iter().rev());
    }
    rows.truncate(room);
    let style = canvas.theme.plain();
    for (y, row) in (top..bottom).zip(rows.iter().rev()) {
        canvas.put(0, y, all, row, style);
    }
}
