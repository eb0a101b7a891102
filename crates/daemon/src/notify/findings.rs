//! What a person should know of sinks that notices are not delivered to.

use outlast_engine::Time;
use outlast_store::SinkState;
use outlast_wire::api::{Finding, Level};
use outlast_workflow::notify::shown;

use crate::ground::Ground;
use crate::view;

/// How long it is worth a word that something was given up.
const RECENT_MS: u64 = 7 * 24 * 60 * 60 * 1000;

/// Sinks that are disabled, fail, or have missed something for good. Blocks.
pub(crate) fn findings(ground: &Ground) -> Vec<Finding> {
    match ground.store.sink_states() {
        Ok(states) => {
            let now = ground.world.now();
            states.iter().flat_map(|state| of_sink(state, now)).collect()
        }
        Err(error) => {
            vec![finding(Level::Problem, format!("cannot read the outbox: {error}"), "")]
        }
    }
}

fn of_sink(state: &SinkState, now: Time) -> Vec<Finding> {
    let (name, pending) = (quoted(&shown(&state.sink)), state.pending);
    let mut found = Vec::new();
    if let Some(health) = &state.health {
        let problem = quoted(health.problem.as_deref().unwrap_or("the reason is not known"));
        match health.disabled_at {
            Some(at) => found.push(finding(
                Level::Problem,
                format!(
                    "{name} is disabled since {}, {pending} waiting: {problem}",
                    view::rfc3339(at)
                ),
                &order("enable", &state.sink),
            )),
            None => found.push(finding(
                Level::Warning,
                format!(
                    "{name} is failing since {}, {pending} waiting: {problem}",
                    view::rfc3339(health.since)
                ),
                &order("test", &state.sink),
            )),
        }
    }
    if let Some(since) = state.refused_since {
        let problem = quoted(state.refusal.as_deref().unwrap_or("the reason is not known"));
        found.push(finding(
            Level::Warning,
            format!("{name} refuses {} since {}: {problem}", state.refused, view::rfc3339(since)),
            &order("test", &state.sink),
        ));
    }
    // A run that ended before the notice reached its inbox is no fault of a sink; the run that sent the notice shows it.
    let is_recent = state.given_up_at.is_some_and(|at| now.ms_since(at) < RECENT_MS);
    if is_recent && !state.sink.starts_with("run:") {
        found.push(finding(
            Level::Warning,
            match state.given_up {
                1 => format!("1 notice to {name} was given up and never delivered"),
                many => format!("{many} notices to {name} were given up and never delivered"),
            },
            "outlast sink ls",
        ));
    }
    found
}

/// What to type; an address is not shown whole, so it cannot be typed again from here.
fn order(verb: &str, sink: &str) -> String {
    match shown(sink) == sink {
        true => format!("outlast sink {verb} {}", quoted(sink)),
        false => "outlast sink ls".to_owned(),
    }
}

/// What is not ours stands in quotes, so that a report can leave it out.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "'"))
}

fn finding(level: Level, message: String, hint: &str) -> Finding {
    let hint = Some(hint.to_owned()).filter(|hint| !hint.is_empty());
    Finding { level, subject: "sink".to_owned(), message, hint }
}
