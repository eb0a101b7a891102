//! What a journal says as spans. Pure: events in, spans out, the same from every daemon.
//!
//! A run is a workflow, an attempt at a turn an invocation of its agent, a tool call of the host the execution of
//! a tool. The names are those of OpenTelemetry's GenAI conventions, which still move: they are ours to keep.

use outlast_engine::{Charge, Event, Fact, Outcome, Purpose, RunId, RunSpec, Time, Verdict, Word};

use crate::trace;

const OPERATION: &str = "gen_ai.operation.name";
const AGENT: &str = "gen_ai.agent.name";
const CONVERSATION: &str = "gen_ai.conversation.id";
const WORKFLOW: &str = "gen_ai.workflow.name";
const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
const CACHED_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
const TOOL: &str = "gen_ai.tool.name";
const CALL: &str = "gen_ai.tool.call.id";
const ERROR: &str = "error.type";

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Span {
    pub(super) trace_id: String,
    pub(super) span_id: String,
    pub(super) parent: Option<String>,
    pub(super) name: String,
    pub(super) start: Time,
    pub(super) end: Time,
    pub(super) attributes: Vec<(&'static str, Value)>,
    /// In one word, if it did not go well.
    pub(super) error: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Text(String),
    Whole(u64),
    Dollars { micros: u64 },
    Flag(bool),
}

/// The spans that end with the events of these numbers. `events` begin with the run's first and hold those
/// that lead up to each end; a span whose beginning is not among them is left out.
pub(super) fn spans(run: &RunId, events: &[Event], ends: &[u64]) -> Vec<Span> {
    let Some(Event { at: created, fact: Fact::RunCreated { spec, .. }, .. }) = events.first()
    else {
        return Vec::new();
    };
    let story = Story { run: run.as_str(), spec, created: *created, events };
    let ending = events.iter().filter(|event| ends.contains(&event.seq));
    ending.filter_map(|end| story.span(end)).collect()
}

struct Story<'a> {
    run: &'a str,
    spec: &'a RunSpec,
    created: Time,
    events: &'a [Event],
}

impl Story<'_> {
    fn span(&self, end: &Event) -> Option<Span> {
        match &end.fact {
            Fact::RunEnded { state, reason_code } => {
                Some(self.of_run(end.at, *state, reason_code.as_ref().map(Word::as_str)))
            }
            Fact::AttemptEnded { turn, attempt, outcome, charge, .. } => {
                self.of_attempt(end, (*turn, *attempt), outcome, charge.as_ref())
            }
            Fact::ErrandEnded { errand, outcome, .. } => self.of_tool(end, *errand, outcome),
            _ => None,
        }
    }

    fn of_run(&self, end: Time, state: Verdict, reason_code: Option<&str>) -> Span {
        let name = self.spec.name.as_deref().unwrap_or(self.run);
        let error = match state {
            Verdict::Completed | Verdict::Stopped => None,
            Verdict::Failed | Verdict::Exhausted => Some(state.name().word()),
        };
        let mut attributes = vec![
            (OPERATION, text("invoke_workflow")),
            (WORKFLOW, text(name)),
            ("outlast.run.state", text(state.name().word())),
        ];
        attributes.extend(reason_code.map(|code| ("outlast.run.reason_code", text(code))));
        let span_id = trace::run_span(self.run);
        self.made(
            span_id,
            None,
            format!("invoke_workflow {name}"),
            (self.created, end),
            attributes,
            error,
        )
    }

    fn of_attempt(
        &self,
        end: &Event,
        (turn, number): (u32, u32),
        outcome: &Outcome,
        charge: Option<&Charge>,
    ) -> Option<Span> {
        let is_its = |event: &&Event| {
            matches!(&event.fact, Fact::AttemptStarted { turn: t, attempt: a, .. }
                | Fact::TurnStarted { turn: t, attempt: a, .. } if (*t, *a) == (turn, number))
        };
        // Its process if there was one, else the intent.
        let start = self.before(end).find(is_its)?.at;
        let agent = &self.spec.agent.kind;
        let mut attributes = vec![
            (OPERATION, text("invoke_agent")),
            (AGENT, text(agent)),
            ("outlast.turn", Value::Whole(turn.into())),
            ("outlast.attempt", Value::Whole(number.into())),
            ("outlast.attempt.outcome", text(outcome.word())),
        ];
        if let Some(charge) = charge {
            attributes.extend([
                (INPUT_TOKENS, Value::Whole(charge.input_tokens)),
                (OUTPUT_TOKENS, Value::Whole(charge.output_tokens)),
                (CACHED_TOKENS, Value::Whole(charge.cached_tokens)),
                ("outlast.cost_usd", Value::Dollars { micros: charge.cost_usd_micros }),
                ("outlast.usage.known", Value::Flag(charge.known)),
            ]);
        }
        let span_id = trace::attempt_span(self.run, turn, number);
        let parent = Some(trace::run_span(self.run));
        let name = format!("invoke_agent {agent}");
        Some(self.made(span_id, parent, name, (start, end.at), attributes, failure(outcome)))
    }

    fn of_tool(&self, end: &Event, number: u32, outcome: &Outcome) -> Option<Span> {
        let (start, turn, name, key) = self.before(end).find_map(|event| match &event.fact {
            Fact::ErrandStarted {
                errand, purpose: Purpose::Tool { name, key, .. }, turn, ..
            } if *errand == number => Some((event.at, *turn, name, key)),
            _ => None,
        })?;
        // The attempt that asked for it is the one that the turn was committed from.
        let asked = self.before(end).find_map(|event| match &event.fact {
            Fact::TurnCommitted { turn: committed, attempt, .. } if *committed == turn => {
                Some(trace::attempt_span(self.run, turn, *attempt))
            }
            _ => None,
        });
        let parent = asked.unwrap_or_else(|| trace::run_span(self.run));
        let mut attributes = vec![
            (OPERATION, text("execute_tool")),
            (TOOL, text(name)),
            ("outlast.turn", Value::Whole(turn.into())),
        ];
        if !key.is_empty() {
            attributes.push((CALL, text(key)));
        }
        let span_id = trace::errand_span(self.run, number);
        let title = format!("execute_tool {name}");
        Some(self.made(span_id, Some(parent), title, (start, end.at), attributes, failure(outcome)))
    }

    /// The events before one, the latest first.
    fn before(&self, end: &Event) -> impl Iterator<Item = &Event> {
        self.events.iter().rev().skip_while(move |event| event.seq >= end.seq)
    }

    fn made(
        &self,
        span_id: String,
        parent: Option<String>,
        name: String,
        (start, end): (Time, Time),
        mut attributes: Vec<(&'static str, Value)>,
        error: Option<&'static str>,
    ) -> Span {
        attributes.push((CONVERSATION, text(self.run)));
        attributes.extend(error.map(|error| (ERROR, text(error))));
        let trace_id = trace::trace_id(self.run);
        Span { trace_id, span_id, parent, name, start, end: end.max(start), attributes, error }
    }
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

/// How it went wrong, in a word; stopping is no error.
fn failure(outcome: &Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Exited { code: 0 } | Outcome::Stopped { .. } => None,
        Outcome::Exited { .. }
        | Outcome::Signaled { .. }
        | Outcome::NeverStarted { .. }
        | Outcome::Stalled { .. }
        | Outcome::TimedOut { .. }
        | Outcome::BadResponse { .. }
        | Outcome::Impeded { .. }
        | Outcome::Interrupted { .. }
        | Outcome::Lost => Some(outcome.word()),
    }
}

#[cfg(test)]
mod tests {
    use outlast_engine::{Agent, BootId, Context, create};
    use serde_json::json;

    use super::*;

    fn story() -> (RunId, Vec<Event>) {
        let agent = Agent { kind: "exec".to_owned(), command: vec!["true".to_owned()] };
        let id = RunId("aaaa00000001".to_owned());
        let spec =
            RunSpec { name: Some("nightly".to_owned()), ..RunSpec::command(agent, "/".to_owned()) };
        let mut events = create(&id, spec, &Context::new(Time(1000), BootId("b".to_owned())));
        let charge = json!({"input_tokens": 7, "output_tokens": 5, "cached_tokens": 1, "cost_usd_micros": 10, "known": true});
        let more = [
            (
                2000,
                json!({"kind": "AttemptStarted", "turn": 1, "attempt": 1, "pid": 1, "start": 1}),
            ),
            (
                5000,
                json!({"kind": "AttemptEnded", "turn": 1, "attempt": 1, "outcome": "exited", "code": 3, "output_bytes": 0, "charge": charge}),
            ),
            (
                5000,
                json!({"kind": "TurnCommitted", "turn": 1, "attempt": 1, "status": "continue", "outcome": "meaningful_completion"}),
            ),
            (
                5100,
                json!({"kind": "ErrandStarted", "errand": 1, "purpose": "tool", "call": 0, "name": "lint", "key": "k", "turn": 1, "boot": "b"}),
            ),
            (
                5200,
                json!({"kind": "ErrandEnded", "errand": 1, "outcome": "exited", "code": 0, "output_bytes": 0}),
            ),
            (6000, json!({"kind": "RunEnded", "state": "completed", "reason_code": null})),
        ];
        for (at, mut fact) in more {
            fact["seq"] = json!(events.len() + 1);
            fact["at"] = json!(at);
            events.push(serde_json::from_value(fact).expect("an event"));
        }
        (id, events)
    }

    #[test]
    fn a_run_its_attempt_and_its_tool_are_one_trace() {
        let (id, events) = story();
        let ends: Vec<u64> = events.iter().map(|event| event.seq).collect();
        let found = spans(&id, &events, &ends);
        let told: Vec<_> =
            found.iter().map(|it| (it.name.as_str(), it.start.0, it.end.0, it.error)).collect();
        assert_eq!(
            told,
            [
                ("invoke_agent exec", 2000, 5000, Some("exited")),
                ("execute_tool lint", 5100, 5200, None),
                ("invoke_workflow nightly", 1000, 6000, None),
            ]
        );
        let [attempt, tool, run] = &found[..] else { panic!("three spans") };
        assert_eq!(attempt.parent.as_ref(), Some(&run.span_id));
        assert_eq!(tool.parent.as_ref(), Some(&attempt.span_id));
        assert!(found.iter().all(|it| it.trace_id == run.trace_id));
        // What the attempt itself was told.
        let told = trace::parent(id.as_str(), 1, 1);
        assert_eq!(told, format!("00-{}-{}-01", attempt.trace_id, attempt.span_id));
        assert!(attempt.attributes.contains(&(INPUT_TOKENS, Value::Whole(7))));
    }

    #[test]
    fn a_span_whose_beginning_is_not_known_is_left_out() {
        let (id, mut events) = story();
        let last = events.split_off(events.len() - 2);
        events.truncate(1);
        let ends: Vec<u64> = last.iter().map(|event| event.seq).collect();
        events.extend(last);
        let found = spans(&id, &events, &ends);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(spans(&id, &events[1..], &ends), []);
    }
}
