//! What happened around the runs: daemons, the machine, schedules, sinks. Each line says "nothing" where there was nothing.

use jiff::Timestamp;
use outlast_wire::api::{DaemonStart, Predecessor, SinkRow};
use outlast_workflow::duration;

use super::Groups;
use super::facts::Facts;
use super::when::When;
use crate::output::figures;
use crate::output::page::quoted;

/// One line of the night: what it is about, what is said, what can be typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) about: &'static str,
    pub(super) text: String,
    pub(super) commands: Vec<String>,
}

pub(super) fn lines(facts: &Facts, groups: &Groups, when: &When) -> Vec<Line> {
    let mut lines = vec![line("daemon", daemon(facts, groups, when))];
    lines.push(line("machine", machine(facts, when)));
    lines.extend(schedules(facts, when));
    lines.extend(sinks(facts, when));
    if let Some(since) = &facts.held_since {
        lines.push(Line {
            about: "paused",
            text: format!("everything, since {}", when.text(since)),
            commands: vec!["outlast resume --all".to_owned()],
        });
    }
    lines
}

fn line(about: &'static str, text: String) -> Line {
    Line { about, text, commands: Vec::new() }
}

fn daemon(facts: &Facts, groups: &Groups, when: &When) -> String {
    let unknown = unknown_before(facts).map(|from| {
        let why = facts.night.problem.as_ref().map(|why| format!(" ({why})"));
        format!("not known before {}{}; ", when.at(from), why.unwrap_or_default())
    });
    let unknown = unknown.unwrap_or_default();
    let starts = &facts.night.starts;
    let died: Vec<&DaemonStart> =
        starts.iter().filter(|start| start.before == Predecessor::Died).collect();
    let mut said = Vec::new();
    match died.as_slice() {
        [] => {}
        [once] => said.push(format!("died and was restarted: {}", gap(once, when))),
        [.., last] => {
            said.push(format!(
                "died and was restarted {} times, last: {}",
                died.len(),
                gap(last, when)
            ));
        }
    }
    for start in starts.iter().filter(|start| start.before == Predecessor::Stopped) {
        said.push(format!("was stopped by an order: {}", gap(start, when)));
    }
    for start in starts.iter().filter(|start| start.before == Predecessor::Replaced) {
        said.push(format!("was replaced by another one {}", when.text(&start.at)));
    }
    let lost = match groups.lost {
        0 => "no run was lost".to_owned(),
        lost => format!("{} lost: how they ended was not seen", figures::count(lost, "run")),
    };
    if said.is_empty() {
        let since = known_from(facts).map(|from| format!(" since {}", when.at(from)));
        return format!("{unknown}ran{} without a restart", since.unwrap_or_default());
    }
    format!("{unknown}{}; {lost}", said.join("; "))
}

/// Where the diary begins, if that is later than the report does.
fn known_from(facts: &Facts) -> Option<Timestamp> {
    let from: Timestamp = facts.night.known_from.as_deref()?.parse().ok()?;
    (from > facts.since).then_some(from)
}

/// Where what is known begins, if the report reaches back before that.
fn unknown_before(facts: &Facts) -> Option<Timestamp> {
    facts.night.unknown_before.as_deref()?.parse().ok()
}

/// What was seen of none since the start of the report, or since less is known of.
fn none_seen(facts: &Facts, when: &When, none: &str) -> String {
    match unknown_before(facts) {
        Some(from) => format!("{none} since {}, not known before", when.at(from)),
        None => none.to_owned(),
    }
}

/// `last sign of life 02:57, back 02:58 (at most 3s)`
fn gap(start: &DaemonStart, when: &When) -> String {
    let back = format!("back {}", when.text(&start.at));
    if let Some(ordered) = &start.stay_stopped_at {
        let sign = start.last_sign_at.as_ref().map(|at| format!("last seen {}, ", when.text(at)));
        let ordered = format!("ordered to stay stopped {}", when.text(ordered));
        return format!("{}{ordered}, {back}", sign.unwrap_or_default());
    }
    let times = start.last_sign_at.as_deref().and_then(|sign| {
        let (sign, at): (Timestamp, Timestamp) = (sign.parse().ok()?, start.at.parse().ok()?);
        Some((sign, u64::try_from(at.as_millisecond() - sign.as_millisecond()).ok()?))
    });
    match times {
        Some((_, ms)) if ms < 60_000 => {
            format!("{back}, within {}", duration::short(ms.max(1000)))
        }
        Some((sign, ms)) => {
            format!("last seen {}, {back}, up to {} later", when.at(sign), duration::short(ms))
        }
        None => back,
    }
}

fn machine(facts: &Facts, when: &When) -> String {
    let reboots: Vec<&DaemonStart> =
        facts.night.starts.iter().filter(|start| start.rebooted).collect();
    match reboots.as_slice() {
        [] => none_seen(facts, when, "no reboot seen"),
        [once] => format!("rebooted before {}", when.text(&once.at)),
        [.., last] => {
            format!("rebooted {} times, last before {}", reboots.len(), when.text(&last.at))
        }
    }
}

fn schedules(facts: &Facts, when: &When) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for missed in &facts.night.missed {
        let due = when.text(&missed.due_at);
        let text = match (missed.skipped, missed.late) {
            (0, 1) => format!(
                "{} was due {due} and came up late, at {}",
                missed.trigger,
                when.text(&missed.at)
            ),
            (0, late) => {
                let (trigger, at) = (&missed.trigger, when.text(&missed.at));
                format!("{trigger}: {late} of its times came up late, at {at}")
            }
            (1, 0) => format!("{} missed its time of {due}", missed.trigger),
            (skipped, late) => {
                let also = if late > 0 { ", and came up late once" } else { "" };
                format!("{} missed {skipped} times up to {due}{also}", missed.trigger)
            }
        };
        let command = format!("outlast schedule run {}", quoted(&missed.trigger));
        let commands = if missed.late == 0 { vec![command] } else { Vec::new() };
        lines.push(Line { about: "schedule", text, commands });
    }
    for trigger in &facts.triggers {
        if let Some(trouble) = &trigger.trouble {
            let text = format!(
                "{} makes no runs since {}: {}",
                trigger.name,
                when.text(&trouble.since),
                trouble.message
            );
            lines.push(Line {
                about: "trigger",
                text,
                commands: vec![format!("outlast trigger show {}", quoted(&trigger.name))],
            });
        }
    }
    if lines.is_empty() {
        lines.push(line("schedules", none_seen(facts, when, "none missed")));
    }
    lines
}

fn sinks(facts: &Facts, when: &When) -> Vec<Line> {
    let failing: Vec<Line> =
        facts.sinks.iter().filter_map(|sink| failing_sink(sink, when)).collect();
    if failing.is_empty() {
        let text = match facts.sinks.len() {
            0 => "none are set up".to_owned(),
            _ => "all notices delivered".to_owned(),
        };
        let waiting: u64 = facts.sinks.iter().map(|sink| sink.pending).sum();
        let text = if waiting > 0 { format!("{waiting} notices on their way") } else { text };
        return vec![line("sinks", text)];
    }
    failing
}

fn failing_sink(sink: &SinkRow, when: &When) -> Option<Line> {
    let problem = sink.problem.as_deref().unwrap_or("no reason given");
    let waiting = match sink.pending {
        0 => String::new(),
        1 => ", 1 notice waiting".to_owned(),
        many => format!(", {many} notices waiting"),
    };
    let text = match (&sink.disabled_at, &sink.failing_since) {
        (Some(at), _) => {
            format!("{} is switched off since {}: {problem}{waiting}", sink.name, when.text(at))
        }
        (None, Some(since)) => {
            format!("{} fails since {}: {problem}{waiting}", sink.name, when.text(since))
        }
        (None, None) if sink.given_up > 0 => {
            let many = usize::try_from(sink.given_up).unwrap_or(usize::MAX);
            format!("{}: {} given up so far", sink.name, figures::count(many, "notice"))
        }
        (None, None) => return None,
    };
    // A name that config.toml no longer has cannot be tested.
    let commands = match (&sink.kind, sink.is_address()) {
        (None, _) => vec!["outlast sink ls".to_owned()],
        (Some(_), true) => vec![test_of(sink)],
        (Some(_), false) => vec![test_of(sink), "outlast config edit".to_owned()],
    };
    let then = if commands.len() > 1 { "; test it, or take it out of config.toml" } else { "" };
    Some(Line { about: "sink", text: format!("{text}{then}"), commands })
}

fn test_of(sink: &SinkRow) -> String {
    format!("outlast sink test {}", quoted(&sink.name))
}
