//! What `/metrics` counts, and how each event counts.
//!
//! Counters live as long as the daemon: whoever collects them knows about restarts. No label names a run, so
//! that there are as many series after a year as after a day.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use outlast_engine::{
    Charge, Event, Fact, Outcome, Run, State, StateName, Time, TurnOutcome, WaitCause,
};
use outlast_store::Census;
use outlast_wire::version;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::view;

/// What the text is, as its readers negotiate it.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Where a turn's seconds are told apart: from a command to a working day's loop.
const TURN_SECONDS: [f64; 11] =
    [0.1, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0];

/// Said of a label that nobody told us.
const UNKNOWN: &str = "unknown";

/// What one event adds up to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Count {
    Turn { outcome: &'static str },
    TurnTook { ms: u64 },
    Spent { charge: Charge },
    LimitWait,
    LimitWaited { ms: u64 },
    Restart { reason: &'static str },
    Stall,
}

/// What follows for the counters from events that the journal has taken of a run, which is as it was before.
pub(crate) fn counts(before: &Run, events: &[Event]) -> Vec<Count> {
    let mut tally = Tally::of(before);
    events.iter().flat_map(|event| tally.count(event)).collect()
}

/// The little of a run that a count needs beyond the event itself.
struct Tally {
    /// When the current attempt's process was there.
    started: Option<Time>,
    /// When and how the last attempt ended.
    ended: Option<(&'static str, Time)>,
    /// True while that attempt's turn is neither committed nor tried again.
    is_open: bool,
    limited_since: Option<Time>,
}

impl Tally {
    fn of(run: &Run) -> Self {
        let held = run.attempt.as_ref().map(|attempt| &attempt.held);
        Self {
            started: held.and_then(|held| held.process).map(|process| process.at),
            ended: held.and_then(|held| held.end.as_ref()).map(|(end, at)| (end.word(), *at)),
            is_open: run.attempt.as_ref().is_some_and(|attempt| {
                let committed = run.previous.as_ref().map(|previous| previous.turn);
                committed != Some(attempt.turn)
            }),
            limited_since: match run.state {
                State::Waiting { cause: WaitCause::RateLimit, since, .. } => Some(since),
                _ => None,
            },
        }
    }

    fn count(&mut self, event: &Event) -> Vec<Count> {
        match &event.fact {
            Fact::TurnStarted { attempt, .. } => {
                self.started = None;
                self.is_open = true;
                let reason = self.ended.take().map(|(reason, _)| reason);
                let reason = reason.filter(|_| *attempt > 1);
                reason.map(|reason| Count::Restart { reason }).into_iter().collect()
            }
            Fact::AttemptStarted { .. } => {
                self.started = Some(event.at);
                Vec::new()
            }
            Fact::AttemptEnded { outcome, charge, .. } => {
                self.ended = Some((outcome.word(), event.at));
                let stall = matches!(outcome, Outcome::Stalled { .. }).then_some(Count::Stall);
                let spent = charge.map(|charge| Count::Spent { charge });
                stall.into_iter().chain(spent).collect()
            }
            Fact::TurnCommitted { outcome, .. } => {
                self.is_open = false;
                let took = self.started.zip(self.ended).map(|(from, (_, to))| to.ms_since(from));
                let took = took.map(|ms| Count::TurnTook { ms });
                std::iter::once(Count::Turn { outcome: word(*outcome) }).chain(took).collect()
            }
            Fact::StateChanged { to, cause, verdict, .. } => {
                let waited = self.limited_since.take().map(|since| event.at.ms_since(since));
                let waited = waited.map(|ms| Count::LimitWaited { ms });
                let waits = *to == StateName::Waiting && *cause == Some(WaitCause::RateLimit);
                self.limited_since = waits.then_some(event.at);
                // A run that is over has given up the turn it was at.
                let given_up = verdict.filter(|_| std::mem::take(&mut self.is_open));
                let given_up = given_up.map(|it| Count::Turn { outcome: it.name().word() });
                let waits = waits.then_some(Count::LimitWait);
                waited.into_iter().chain(waits).chain(given_up).collect()
            }
            _ => Vec::new(),
        }
    }
}

fn word(outcome: TurnOutcome) -> &'static str {
    match outcome {
        TurnOutcome::MeaningfulCompletion => "meaningful_completion",
        TurnOutcome::NoOpSuccess => "no_op_success",
        TurnOutcome::EscalationBlocker => "escalation_blocker",
    }
}

type Dollars = Counter<f64, AtomicU64>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfState {
    state: &'static str,
    agent: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfTurn {
    agent: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfTokens {
    agent: String,
    model: &'static str,
    r#type: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfCost {
    agent: String,
    model: &'static str,
    estimated: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfRestart {
    reason: &'static str,
}

pub(crate) struct Metrics {
    registry: Registry,
    /// Held while they are set and read, so that two readers do not see each other's half.
    now: Mutex<Now>,
    turns: Family<OfTurn, Counter>,
    turn_seconds: Histogram,
    tokens: Family<OfTokens, Counter>,
    cost_usd: Family<OfCost, Dollars>,
    limit_waits: Counter,
    limit_wait_seconds: Dollars,
    restarts: Family<OfRestart, Counter>,
    stalls: Counter,
}

/// What is not counted but looked at when somebody asks.
#[derive(Default)]
struct Now {
    runs: Family<OfState, Gauge>,
    queue_depth: Gauge,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("outlast");
        let now = Now::default();
        let turns = Family::default();
        let turn_seconds = Histogram::new(TURN_SECONDS);
        let (tokens, cost_usd) = (Family::default(), Family::default());
        let (limit_waits, limit_wait_seconds) = (Counter::default(), Dollars::default());
        let (restarts, stalls) = (Family::default(), Counter::default());
        registry.register("build", "This build", Info::new([("version", version::BUILD)]));
        registry.register("runs", "Runs by state and kind of agent", now.runs.clone());
        registry.register("queue_depth", "Runs that wait for a place", now.queue_depth.clone());
        registry.register("turns", "Turns committed", turns.clone());
        registry.register(
            "turn_duration_seconds",
            "How long the attempt ran that a turn was committed from",
            turn_seconds.clone(),
        );
        registry.register("tokens", "Tokens charged, reservations among them", tokens.clone());
        registry.register("cost_usd", "US dollars charged", cost_usd.clone());
        registry.register("limit_waits", "Waits for a rate limit", limit_waits.clone());
        registry.register(
            "limit_wait_seconds",
            "Seconds waited for a rate limit",
            limit_wait_seconds.clone(),
        );
        registry.register(
            "restarts",
            "Further attempts at a turn, by what ended the one before",
            restarts.clone(),
        );
        registry.register("stalls", "Attempts ended for their silence", stalls.clone());
        let now = Mutex::new(now);
        Self {
            registry,
            now,
            turns,
            turn_seconds,
            tokens,
            cost_usd,
            limit_waits,
            limit_wait_seconds,
            restarts,
            stalls,
        }
    }
}

impl Metrics {
    pub(crate) fn observe(&self, before: &Run, events: &[Event]) {
        for count in counts(before, events) {
            self.add(&before.spec.agent.kind, &count);
        }
    }

    fn add(&self, agent: &str, count: &Count) {
        let agent = || agent.to_owned();
        match count {
            Count::Turn { outcome } => {
                self.turns.get_or_create(&OfTurn { agent: agent(), outcome }).inc();
            }
            Count::TurnTook { ms } => self.turn_seconds.observe(seconds(*ms)),
            Count::Spent { charge } => self.spend(&agent(), charge),
            Count::LimitWait => drop(self.limit_waits.inc()),
            Count::LimitWaited { ms } => drop(self.limit_wait_seconds.inc_by(seconds(*ms))),
            Count::Restart { reason } => {
                self.restarts.get_or_create(&OfRestart { reason }).inc();
            }
            Count::Stall => drop(self.stalls.inc()),
        }
    }

    fn spend(&self, agent: &str, charge: &Charge) {
        let kinds = [
            ("input", charge.input_tokens),
            ("output", charge.output_tokens),
            ("cached", charge.cached_tokens),
        ];
        for (r#type, count) in kinds.into_iter().filter(|(_, count)| *count > 0) {
            let labels = OfTokens { agent: agent.to_owned(), model: UNKNOWN, r#type };
            self.tokens.get_or_create(&labels).inc_by(count);
        }
        if charge.cost_usd_micros > 0 {
            let labels =
                OfCost { agent: agent.to_owned(), model: UNKNOWN, estimated: !charge.known };
            self.cost_usd.get_or_create(&labels).inc_by(view::usd(charge.cost_usd_micros));
        }
    }

    /// Everything as text. What is added from elsewhere (budgets, notices) is a gauge in [`Now`], set here.
    pub(crate) fn render(&self, census: &[Census], queue_depth: usize) -> String {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.runs.clear();
        for it in census {
            let agent = it.agent.clone().unwrap_or_else(|| UNKNOWN.to_owned());
            let runs = i64::try_from(it.runs).unwrap_or(i64::MAX);
            now.runs.get_or_create(&OfState { state: it.state.word(), agent }).set(runs);
        }
        now.queue_depth.set(i64::try_from(queue_depth).unwrap_or(i64::MAX));
        let mut page = String::new();
        text::encode(&mut page, &self.registry).expect("a string takes every text");
        page
    }
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds of a turn fit a float exactly")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use outlast_engine::{Agent, BootId, Moment, RunId, RunSpec, create};
    use serde_json::{Value, json};

    use super::*;

    /// A run of one command that has been started at 1000 ms.
    fn started() -> (Run, u64) {
        let agent = Agent { kind: "exec".to_owned(), command: vec!["true".to_owned()] };
        let id = RunId("aaaa00000001".to_owned());
        let spec = RunSpec::command(agent, "/".to_owned());
        let events = create(&id, spec, &Moment::new(Time(1000), BootId("b".to_owned())));
        let run = Run::replay(&id, &events).expect("the engine makes legal runs");
        let seq = run.seq();
        (run, seq)
    }

    fn event(seq: u64, at: u64, fact: Value) -> Event {
        let mut event = json!({ "seq": seq, "at": at });
        for (key, value) in fact.as_object().expect("a fact is an object") {
            event[key] = value.clone();
        }
        serde_json::from_value(event).expect("an event as it stands in journals")
    }

    fn changed(to: &str, cause: Option<&str>) -> Value {
        json!({"kind": "StateChanged", "from": "running", "to": to, "reason": "", "reason_code": "x",
            "evidence": [], "actor": "engine", "cause": cause})
    }

    #[test]
    fn a_turn_counts_once_with_its_time_and_its_spend() {
        let (run, seq) = started();
        let charge = json!({"input_tokens": 7, "output_tokens": 5, "cached_tokens": 0, "cost_usd_micros": 2_500_000, "known": false});
        let events = [
            event(
                seq + 1,
                2000,
                json!({"kind": "AttemptStarted", "turn": 1, "attempt": 1, "pid": 1, "start": 1}),
            ),
            event(
                seq + 2,
                5500,
                json!({"kind": "AttemptEnded", "turn": 1, "attempt": 1, "outcome": "exited", "code": 0, "output_bytes": 0, "charge": charge}),
            ),
            event(
                seq + 3,
                5600,
                json!({"kind": "TurnCommitted", "turn": 1, "attempt": 1, "status": "done", "outcome": "meaningful_completion"}),
            ),
        ];
        let found = counts(&run, &events);
        assert_eq!(found.len(), 3, "{found:?}");
        assert_eq!(
            found[1..],
            [Count::Turn { outcome: "meaningful_completion" }, Count::TurnTook { ms: 3500 }]
        );
        // Told in two appends, as after an adoption, it counts the same.
        let midway = run.clone().apply(&events[0]).expect("legal");
        assert_eq!(counts(&midway, &events[1..]), found);
        let metrics = Metrics::default();
        metrics.observe(&run, &events);
        let page = metrics.render(&[], 0);
        for line in [
            r#"outlast_turns_total{agent="exec",outcome="meaningful_completion"} 1"#,
            "outlast_turn_duration_seconds_sum 3.5",
            r#"outlast_tokens_total{agent="exec",model="unknown",type="input"} 7"#,
            r#"outlast_tokens_total{agent="exec",model="unknown",type="output"} 5"#,
            r#"outlast_cost_usd_total{agent="exec",model="unknown",estimated="true"} 2.5"#,
        ] {
            assert!(page.lines().any(|it| it == line), "no {line} in\n{page}");
        }
        assert!(!page.contains("aaaa00000001"), "{page}");
    }

    #[test]
    fn a_stall_and_the_attempt_after_it_are_counted() {
        let (run, seq) = started();
        let events = [
            event(
                seq + 1,
                2000,
                json!({"kind": "AttemptStarted", "turn": 1, "attempt": 1, "pid": 1, "start": 1}),
            ),
            event(
                seq + 2,
                3000,
                json!({"kind": "AttemptEnded", "turn": 1, "attempt": 1, "outcome": "stalled", "exit": null, "output_bytes": 0}),
            ),
            event(
                seq + 3,
                3000,
                json!({"kind": "TurnStarted", "turn": 1, "attempt": 2, "boot": "b"}),
            ),
        ];
        assert_eq!(counts(&run, &events), [Count::Stall, Count::Restart { reason: "stalled" }]);
        // The first attempt of the next turn is no restart.
        let next = event(
            seq + 3,
            3000,
            json!({"kind": "TurnStarted", "turn": 2, "attempt": 1, "boot": "b"}),
        );
        assert_eq!(counts(&run, &[events[1].clone(), next]), [Count::Stall]);
    }

    #[test]
    fn a_wait_for_a_rate_limit_is_counted_when_it_begins_and_when_it_is_over() {
        let (run, seq) = started();
        let waits = event(seq + 1, 4000, changed("waiting", Some("rate_limit")));
        let goes_on = event(seq + 2, 9000, changed("running", None));
        let both = [Count::LimitWait, Count::LimitWaited { ms: 5000 }];
        assert_eq!(counts(&run, &[waits.clone(), goes_on.clone()]), both);
        let other = event(seq + 1, 4000, changed("waiting", Some("backoff")));
        assert_eq!(counts(&run, &[other, goes_on]), []);
    }

    #[test]
    fn a_turn_that_is_given_up_counts_as_what_the_run_ended_as() {
        let (run, seq) = started();
        let mut over = changed("finishing", None);
        over["verdict"] = json!("failed");
        let ended = json!({"kind": "AttemptEnded", "turn": 1, "attempt": 1, "outcome": "exited", "code": 3, "output_bytes": 0});
        let given_up = [event(seq + 1, 2000, ended), event(seq + 2, 2000, over.clone())];
        assert_eq!(counts(&run, &given_up), [Count::Turn { outcome: "failed" }]);
        let committed = json!({"kind": "TurnCommitted", "turn": 1, "attempt": 1, "status": "done", "outcome": "no_op_success"});
        let committed = [event(seq + 1, 2000, committed), event(seq + 2, 2000, over)];
        assert_eq!(counts(&run, &committed), [Count::Turn { outcome: "no_op_success" }]);
    }

    #[test]
    fn states_that_nobody_is_in_any_more_are_not_shown() {
        let metrics = Metrics::default();
        let census = |state, agent: Option<&str>| {
            [Census { state, agent: agent.map(str::to_owned), runs: 2 }]
        };
        let page = metrics.render(&census(StateName::Running, Some("exec")), 3);
        assert!(page.contains("outlast_runs{state=\"running\",agent=\"exec\"} 2\n"), "{page}");
        assert!(page.contains("outlast_queue_depth 3\n"), "{page}");
        let page = metrics.render(&census(StateName::Blocked, None), 0);
        assert!(page.contains("outlast_runs{state=\"blocked\",agent=\"unknown\"} 2\n"), "{page}");
        assert!(!page.contains("running"), "{page}");
        assert!(page.contains("outlast_build_info{version="), "{page}");
    }
}
