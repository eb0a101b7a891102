//! The one line that says where a loop stands: its turn, what it is at, how long, at what cost, and what it
//! said last.

use jiff::Timestamp;
use outlast_wire::api::RunView;
use outlast_wire::words::StateName;
use outlast_workflow::duration::short;

use crate::output::state::{Condition, spaced};
use crate::output::table::clipped;
use crate::output::time::ms_between;
use crate::output::{figures, printable, waiting};

/// A view, and when it was had.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) view: RunView,
    pub(super) at: Timestamp,
}

/// Fits into the window with a column to spare: some terminals wrap when the last one is used.
pub(super) fn line(seen: &Seen, last_line: &str, now: Timestamp, columns: usize) -> String {
    let view = &seen.view;
    let said = view.last_line.as_deref().unwrap_or(last_line);
    let parts = [
        turn(view),
        phase(view, now),
        elapsed(seen, now),
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
fn phase(view: &RunView, now: Timestamp) -> Option<String> {
    match view.phase.as_deref() {
        // The phase of a run that waits is the word of the mechanism, such as `timer` for a budget.
        _ if view.state == StateName::Waiting => Some(match &view.waiting {
            Some(held) if !view.paused => {
                format!("waiting: {}", printable(&waiting::words(held, now)))
            }
            _ => Condition::from(view).at(now).words(),
        }),
        Some(phase) if phase.starts_with("turn ") && view.state == StateName::Running => None,
        Some(phase) if !phase.starts_with("turn ") => Some(printable(&spaced(phase))),
        _ => Some(Condition::from(view).words()),
    }
}

/// How long it has worked: its rests do not count.
fn elapsed(seen: &Seen, now: Timestamp) -> Option<String> {
    let view = &seen.view;
    let is_at_work = matches!(
        view.state.known(),
        Some(StateName::Preparing | StateName::Running | StateName::Verifying)
    );
    let since = || u64::try_from(now.as_millisecond() - seen.at.as_millisecond()).unwrap_or(0);
    let worked = view.worked_ms.map(|ms| if is_at_work { ms.saturating_add(since()) } else { ms });
    let start = view.started_at.as_deref().unwrap_or(&view.created_at);
    // Whole seconds, as the line is drawn once in each.
    worked.or_else(|| ms_between(start, now)).map(|ms| short(ms.max(1000)))
}

#[cfg(test)]
mod tests {
    use outlast_wire::api::{LimitView, Usage};
    use outlast_wire::words::ReasonCode;

    use super::*;
    use crate::output::sample;

    fn shown(view: &RunView, columns: usize) -> String {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().expect("a time");
        let at = "2026-11-15T11:59:58Z".parse().expect("a time");
        line(&Seen { view: view.clone(), at }, "compiling\u{7} 3 of 9", now, columns)
    }

    /// A run that was exhausted for 20 minutes, and then raised, has worked for seconds.
    #[test]
    fn only_the_time_worked_is_counted() {
        let mut view = sample::running_loop();
        view.worked_ms = Some(3000);
        insta::assert_snapshot!(shown(&view, 80), @"turn 3/20 · 5s · $0.42 · compiling· 3 of 9");
        view.state = StateName::Waiting.into();
        view.reason_code = Some(ReasonCode::RateLimit.into());
        insta::assert_snapshot!(shown(&view, 80), @"turn 3/20 · waiting (rate limit) · 3s · $0.42 · compiling· 3 of 9");
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
    fn a_wait_is_told_by_what_it_is_for() {
        let mut view = sample::running_loop();
        view.state = StateName::Waiting.into();
        view.phase = Some("timer".to_owned());
        view.reason_code = Some(ReasonCode::Timer.into());
        view.wake_at = Some("2026-11-15T12:05:00Z".to_owned());
        insta::assert_snapshot!(shown(&view, 80), @"turn 3/20 · waiting (5m left) · 2m 30s · $0.42 · compiling· 3 of 9");
        view.reason_code = Some(ReasonCode::Budget.into());
        view.waiting = Some(outlast_wire::api::WaitingView {
            held_by: Vec::new(),
            cause: ReasonCode::Budget.into(),
            reason: "today's budget is spent".to_owned(),
            until: Some("2026-11-15T12:05:00Z".to_owned()),
            tz: None,
            setting: None,
        });
        insta::assert_snapshot!(shown(&view, 120), @"turn 3/20 · waiting: today's budget is spent; goes on at 12:05 UTC (in 5m) · 2m 30s · $0.42 · compiling· 3 of 9");
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
