//! The one line that says where a loop stands: its turn, what it is at, how long, at what cost, and what it
//! said last.

use jiff::Timestamp;
use outlast_wire::api::RunView;
use outlast_wire::words::StateName;
use outlast_workflow::duration::short;

use crate::output::state::{Condition, spaced};
use crate::output::table::clipped;
use crate::output::time::ms_between;
use crate::output::{figures, printable};

/// Fits into the window with a column to spare: some terminals wrap when the last one is used.
pub(super) fn line(view: &RunView, last_line: &str, now: Timestamp, columns: usize) -> String {
    let said = view.last_line.as_deref().unwrap_or(last_line);
    let parts = [
        turn(view),
        phase(view),
        elapsed(view, now),
        figures::spend(&view.usage),
        Some(printable(said.trim())).filter(|said| !said.is_empty()),
    ];
    let whole = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
    clipped(&whole, columns.saturating_sub(1)).into_owned()
}

fn turn(view: &RunView) -> Option<String> {
    let most = view.limits.get("max_turns").map(|limit| format!("/{}", limit.max));
    match (view.turn, view.attempt) {
        (0, _) => None,
        (turn, 0 | 1) => Some(format!("turn {turn}{}", most.unwrap_or_default())),
        (turn, attempt) => {
            Some(format!("turn {turn}{} attempt {attempt}", most.unwrap_or_default()))
        }
    }
}

/// Of a turn the number is enough.
fn phase(view: &RunView) -> Option<String> {
    match view.phase.as_deref() {
        Some(phase) if phase.starts_with("turn ") && view.state == StateName::Running => None,
        Some(phase) if !phase.starts_with("turn ") => Some(printable(&spaced(phase))),
        _ => Some(Condition::from(view).words()),
    }
}

fn elapsed(view: &RunView, now: Timestamp) -> Option<String> {
    let start = view.started_at.as_deref().unwrap_or(&view.created_at);
    // Whole seconds, as the line is drawn once in each.
    ms_between(start, now).map(|ms| short(ms.max(1000)))
}

#[cfg(test)]
mod tests {
    use outlast_wire::api::{LimitView, Usage};
    use outlast_wire::words::ReasonCode;

    use super::*;
    use crate::output::sample;

    fn shown(view: &RunView, columns: usize) -> String {
        let now = "2026-11-15T12:00:00Z".parse().expect("a time");
        line(view, "compiling\u{7} 3 of 9", now, columns)
    }

    #[test]
    fn the_line_says_where_the_loop_stands() {
        let mut view = sample::running_loop();
        insta::assert_snapshot!(shown(&view, 80), @"turn 3/20 · 2m 30s · $0.42 · compiling· 3 of 9");
        view.attempt = 2;
        view.phase = Some("check done 2/3".to_owned());
        view.state = StateName::Verifying.into();
        insta::assert_snapshot!(shown(&view, 80), @"turn 3/20 attempt 2 · check done 2/3 · 2m 30s · $0.42 · compiling· 3 of 9");
        view.phase = None;
        view.state = StateName::Waiting.into();
        view.reason_code = Some(ReasonCode::RateLimit.into());
        view.usage =
            Usage { input_tokens: 120_000, output_tokens: 3456, known: true, ..Usage::default() };
        view.limits.insert("max_turns".to_owned(), LimitView { used: 3, max: 5 });
        insta::assert_snapshot!(shown(&view, 80), @"turn 3/5 attempt 2 · waiting (rate limit) · 2m 30s · 123k tokens · compiling· …");
    }

    #[test]
    fn it_never_fills_the_window() {
        use unicode_width::UnicodeWidthStr;
        let mut view = sample::running_loop();
        view.last_line = Some("日本語の長い行がここにあります。".repeat(9));
        for columns in 0..120 {
            let width = shown(&view, columns).width();
            assert!(width <= columns.saturating_sub(1).max(1), "{width} of {columns}");
        }
    }
}
