//! Why a run does not go on: a budget that is spent or a slot that is not free, until when, and what changes that.

use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use outlast_client::problem::Problem;
use outlast_wire::api::{RunView, WaitingView};
use outlast_wire::words::{ReasonCode, StateName};

use super::time::{both, relative};
use crate::world::World;

/// `today's budget is spent ($50.00 of $50.00); goes on at 00:00 UTC (in 17h 18m)`
pub(crate) fn words(waiting: &WaitingView, now: Timestamp) -> String {
    format!("{}; {}", waiting.reason, until(waiting, now))
}

/// Why a run waits, with the time at which it goes on where that is known; `None` of one whose reason says all of it.
pub(crate) fn why(view: &RunView, now: Timestamp) -> Option<String> {
    if view.paused {
        // It goes on at no time, whatever else it waits for.
        let reason = view.waiting.as_ref().map(|held| held.reason.as_str());
        let reason = reason.or(view.reason.as_deref()).map(str::trim);
        let is_rest = view.reason_code.as_ref().is_some_and(|it| *it == ReasonCode::Paused);
        let waits = matches!(view.state.known(), Some(StateName::Waiting)) && !is_rest;
        return reason.filter(|_| waits).map(|it| format!("{it}; paused, goes on once resumed"));
    }
    if let Some(held) = &view.waiting {
        return Some(words(held, now));
    }
    let is_timer = view.reason_code.as_ref().is_some_and(|it| *it == ReasonCode::Timer);
    let until = view.wake_at.as_deref()?;
    match (view.state.known(), is_timer) {
        (Some(StateName::Waiting), true) if view.started_at.is_none() => {
            Some(format!("starts {}", both(until, now)))
        }
        (Some(StateName::Waiting), true) => {
            let reason = view.reason.as_deref().unwrap_or("waits for its time").trim();
            Some(format!("{reason}; goes on {}", both(until, now)))
        }
        _ => None,
    }
}

fn until(waiting: &WaitingView, now: Timestamp) -> String {
    let at = waiting.until.as_deref().and_then(|at| at.parse::<Timestamp>().ok());
    match at {
        Some(at) => {
            let clock = in_zone(at, waiting.tz.as_deref());
            format!("goes on at {clock} ({})", relative(at, now))
        }
        None if !waiting.held_by.is_empty() => "goes on when one of them ends".to_owned(),
        None if is_for_slot(waiting) => "goes on when one of them ends".to_owned(),
        None => "goes on when it is raised".to_owned(),
    }
}

fn is_for_slot(waiting: &WaitingView) -> bool {
    waiting.cause.known() == Some(ReasonCode::Slot)
}

/// The time of day in a zone: `00:00 Europe/Berlin`.
pub(crate) fn in_zone(at: Timestamp, tz: Option<&str>) -> String {
    let known = tz.and_then(|name| Some((TimeZone::get(name).ok()?, name)));
    let (zone, name) = known.unwrap_or((TimeZone::UTC, "UTC"));
    format!("{} {name}", at.to_zoned(zone).strftime("%H:%M"))
}

/// What is told to the person who has just started the run: why it waits, and a command that can be pasted.
pub(crate) fn lines(waiting: &WaitingView, now: Timestamp, config: &Path) -> [String; 2] {
    let is_for_slot = is_for_slot(waiting);
    let what = if is_for_slot { "waiting for a slot" } else { "waiting" };
    let config = config.display();
    let hint = match (&waiting.setting, is_for_slot) {
        // Some limits are those of a loop file or of an option.
        (Some(setting), true) => {
            let place = if setting.contains('[') { format!(" in {config}") } else { String::new() };
            format!("the limit is {setting}{place}; to see the runs:\noutlast ps")
        }
        (None, true) => "outlast ps".to_owned(),
        (Some(setting), false) => {
            format!("raise {setting} in {config}, then look:\noutlast budgets")
        }
        (None, false) => match waiting.held_by.first() {
            Some(child) => {
                let how = "wait until one ends, or stop one to have back what it has not used";
                format!("{how}:\noutlast stop {child}")
            }
            None => format!("raise it in {config}, then look:\noutlast budgets"),
        },
    };
    [format!("outlast: {what}: {}", words(waiting, now)), super::lines::hint(&hint)]
}

/// Says it on standard error: without a word, waiting looks like hanging.
pub(crate) fn tell(waiting: &WaitingView, world: &World) -> Result<(), Problem> {
    let config = world.client.layout()?.config_file();
    lines(waiting, world.now(), &config).iter().for_each(|line| super::tell(line));
    Ok(())
}

/// The same of a run that was told to go on, if it does not.
pub(crate) fn tell_if(view: &RunView, world: &World) -> Result<(), Problem> {
    view.waiting.as_ref().map_or(Ok(()), |held| tell(held, world))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::sample;

    #[test]
    fn a_run_that_waits_for_its_time_says_which() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().expect("a time");
        let mut view = sample::running_loop();
        view.state = StateName::Waiting.into();
        view.reason_code = Some(ReasonCode::Timer.into());
        view.reason = Some("the build takes a while".to_owned());
        view.wake_at = Some("2026-11-15T13:30:00Z".to_owned());
        let at = "goes on in 1h 30m (2026-11-15 13:30:00 UTC)";
        assert_eq!(why(&view, now), Some(format!("the build takes a while; {at}")));
        view.started_at = None;
        assert_eq!(why(&view, now).as_deref(), Some("starts in 1h 30m (2026-11-15 13:30:00 UTC)"));
        view.reason_code = Some(ReasonCode::After.into());
        assert_eq!(why(&view, now), None);
        // Paused, it goes on neither then nor by itself.
        view.paused = true;
        view.reason_code = Some(ReasonCode::Timer.into());
        let paused = "the build takes a while; paused, goes on once resumed";
        assert_eq!(why(&view, now).as_deref(), Some(paused));
        view.reason_code = Some(ReasonCode::Paused.into());
        assert_eq!(why(&view, now), None);
    }

    #[test]
    fn what_a_run_waits_for_is_told_with_the_time_and_the_way_out() {
        let now: Timestamp = "2026-11-15T06:42:00Z".parse().expect("a time");
        let told =
            |waiting: &WaitingView| lines(waiting, now, Path::new("/c/config.toml")).join("\n");
        let budget = WaitingView {
            cause: ReasonCode::Budget.into(),
            reason: "today's budget is spent ($50.00 of $50.00)".to_owned(),
            until: Some("2026-11-15T23:00:00.000Z".to_owned()),
            tz: Some("Europe/Berlin".to_owned()),
            held_by: Vec::new(),
            setting: Some("[budgets.day]".to_owned()),
        };
        insta::assert_snapshot!(told(&budget), @r"
        outlast: waiting: today's budget is spent ($50.00 of $50.00); goes on at 00:00 Europe/Berlin (in 16h 18m)
        hint: raise [budgets.day] in /c/config.toml, then look:
          outlast budgets
        ");
        let total = WaitingView { until: None, tz: None, ..budget.clone() };
        insta::assert_snapshot!(words(&total, now), @"today's budget is spent ($50.00 of $50.00); goes on when it is raised");
        let slot = WaitingView {
            cause: ReasonCode::Slot.into(),
            reason: "8 runs are running, which is the limit".to_owned(),
            setting: Some("max_runs in [concurrency]".to_owned()),
            ..total.clone()
        };
        insta::assert_snapshot!(told(&slot), @r"
        outlast: waiting for a slot: 8 runs are running, which is the limit; goes on when one of them ends
        hint: the limit is max_runs in [concurrency] in /c/config.toml; to see the runs:
          outlast ps
        ");
        let held = WaitingView {
            reason: "its children hold what is left of its money (tests holds $2.00)".to_owned(),
            held_by: vec!["tests".to_owned()],
            setting: None,
            ..total
        };
        insta::assert_snapshot!(told(&held), @r"
        outlast: waiting: its children hold what is left of its money (tests holds $2.00); goes on when one of them ends
        hint: wait until one ends, or stop one to have back what it has not used:
          outlast stop tests
        ");
        let queue =
            WaitingView { setting: Some("--queue q1:N of the newest run".to_owned()), ..slot };
        assert!(told(&queue).contains("the limit is --queue q1:N of the newest run; to see"));
    }
}
