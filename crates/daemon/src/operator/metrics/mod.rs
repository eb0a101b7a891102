//! What `/metrics` says.
//!
//! Counters live as long as the daemon: a collector knows about restarts. No label names a run, so
//! that there are as many series after a year as after a day.

mod count;

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use outlast_engine::{Charge, Event, Reserved, Run};
use outlast_store::Census;
use outlast_wire::version;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use self::count::Count;
use crate::view;

/// What the text is, as its readers negotiate it.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Where a turn's seconds are told apart: from a command to a working day's loop.
const TURN_SECONDS: [f64; 11] =
    [0.1, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0];

/// The value of a label that is not known.
const UNKNOWN: &str = "unknown";

type Dollars = Counter<f64, AtomicU64>;
type Seconds = Counter<f64, AtomicU64>;
type Share = Gauge<f64, AtomicU64>;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfBudget {
    budget: String,
}

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
struct OfAgent {
    agent: String,
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
    unreported_tokens: Family<OfAgent, Counter>,
    cost_usd: Family<OfCost, Dollars>,
    unreported: Family<OfAgent, Counter>,
    limit_waits: Counter,
    limit_wait_seconds: Seconds,
    restarts: Family<OfRestart, Counter>,
    stalls: Counter,
}

/// What is not counted but looked at on request.
#[derive(Debug, Default)]
pub(crate) struct Sight {
    pub(crate) census: Vec<Census>,
    pub(crate) queue_depth: usize,
    pub(crate) notices_pending: u64,
    /// What is left of each, by its name, and how much of it is held for what was not reported: 1 is all of it.
    pub(crate) budgets: Vec<(String, f64, f64)>,
}

/// The gauges of a [`Sight`].
#[derive(Default)]
struct Now {
    runs: Family<OfState, Gauge>,
    queue_depth: Gauge,
    notices_pending: Gauge,
    budgets: Family<OfBudget, Share>,
    unreported: Family<OfBudget, Share>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("outlast");
        let now = Now::default();
        let turns = Family::default();
        let turn_seconds = Histogram::new(TURN_SECONDS);
        let (tokens, cost_usd) = (Family::default(), Family::default());
        let (unreported, unreported_tokens) = (Family::default(), Family::default());
        let (limit_waits, limit_wait_seconds) = (Counter::default(), Seconds::default());
        let (restarts, stalls) = (Family::default(), Counter::default());
        registry.register("build", "This build", Info::new([("version", version::BUILD)]));
        registry.register("runs", "Runs by state and kind of agent", now.runs.clone());
        registry.register("queue_depth", "Runs that wait for a place", now.queue_depth.clone());
        registry.register(
            "notices_pending",
            "Notices that a sink has yet to be told",
            now.notices_pending.clone(),
        );
        registry.register(
            "budget_remaining_ratio",
            "What is left of a budget that runs share",
            now.budgets.clone(),
        );
        registry.register(
            "budget_unreported_ratio",
            "How much of a budget is held for attempts that did not report",
            now.unreported.clone(),
        );
        registry.register("turns", "Turns committed", turns.clone());
        registry.register(
            "turn_duration_seconds",
            "How long the attempt ran that a turn was committed from",
            turn_seconds.clone(),
        );
        registry.register("tokens", "Tokens that were reported", tokens.clone());
        registry.register(
            "unreported_tokens",
            "Tokens that are held for attempts that did not report",
            unreported_tokens.clone(),
        );
        registry.register(
            "cost_usd",
            "US dollars charged; estimated are those that are held for attempts that did not report",
            cost_usd.clone(),
        );
        registry.register(
            "unreported_attempts",
            "Attempts that did not report all that they used",
            unreported.clone(),
        );
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
            unreported_tokens,
            cost_usd,
            unreported,
            limit_waits,
            limit_wait_seconds,
            restarts,
            stalls,
        }
    }
}

impl Metrics {
    pub(crate) fn observe(&self, before: &Run, events: &[Event]) {
        for count in count::counts(before, events) {
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
            Count::Unreported => {
                self.unreported.get_or_create(&OfAgent { agent: agent() }).inc();
            }
            Count::LimitWait => drop(self.limit_waits.inc()),
            Count::LimitWaited { ms } => drop(self.limit_wait_seconds.inc_by(seconds(*ms))),
            Count::Restart { reason } => {
                self.restarts.get_or_create(&OfRestart { reason }).inc();
            }
            Count::Stall => drop(self.stalls.inc()),
        }
    }

    fn spend(&self, agent: &str, charge: &Charge) {
        let Reserved { tokens, cost_usd_micros } = charge.reserved();
        let kinds = [
            // What is reserved stands with what was read.
            ("input", charge.input_tokens.saturating_sub(tokens)),
            (
                "output",
                charge.output_tokens.saturating_sub(tokens.saturating_sub(charge.input_tokens)),
            ),
            ("cached", charge.cached_tokens),
        ];
        for (r#type, count) in kinds.into_iter().filter(|(_, count)| *count > 0) {
            let labels = OfTokens { agent: agent.to_owned(), model: UNKNOWN, r#type };
            self.tokens.get_or_create(&labels).inc_by(count);
        }
        if tokens > 0 {
            let labels = OfAgent { agent: agent.to_owned() };
            self.unreported_tokens.get_or_create(&labels).inc_by(tokens);
        }
        let reported = charge.cost_usd_micros.saturating_sub(cost_usd_micros);
        for (micros, estimated) in [(reported, false), (cost_usd_micros, true)] {
            if micros > 0 {
                let labels = OfCost { agent: agent.to_owned(), model: UNKNOWN, estimated };
                self.cost_usd.get_or_create(&labels).inc_by(view::usd(micros));
            }
        }
    }

    /// Everything as text.
    pub(crate) fn render(&self, sight: &Sight) -> String {
        let now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        now.runs.clear();
        for it in &sight.census {
            let agent = it.agent.clone().unwrap_or_else(|| UNKNOWN.to_owned());
            let runs = i64::try_from(it.runs).unwrap_or(i64::MAX);
            now.runs.get_or_create(&OfState { state: it.state.word(), agent }).set(runs);
        }
        now.queue_depth.set(i64::try_from(sight.queue_depth).unwrap_or(i64::MAX));
        now.notices_pending.set(i64::try_from(sight.notices_pending).unwrap_or(i64::MAX));
        now.budgets.clear();
        now.unreported.clear();
        for (budget, left, unreported) in &sight.budgets {
            let labels = OfBudget { budget: budget.clone() };
            now.budgets.get_or_create(&labels).set(*left);
            now.unreported.get_or_create(&labels).set(*unreported);
        }
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
    use outlast_engine::StateName;

    use super::*;

    #[test]
    fn what_is_counted_is_told_by_its_names() {
        let charge = Charge {
            input_tokens: 7,
            output_tokens: 5,
            cost_usd_micros: 2_500_000,
            reserved: Some(Reserved { tokens: 4, cost_usd_micros: 2_000_000 }),
            ..Charge::default()
        };
        let metrics = Metrics::default();
        for count in [
            Count::Turn { outcome: "meaningful_completion" },
            Count::TurnTook { ms: 3500 },
            Count::Spent { charge },
            Count::Unreported,
        ] {
            metrics.add("exec", &count);
        }
        let page = metrics.render(&Sight::default());
        for line in [
            r#"outlast_turns_total{agent="exec",outcome="meaningful_completion"} 1"#,
            "outlast_turn_duration_seconds_sum 3.5",
            r#"outlast_tokens_total{agent="exec",model="unknown",type="input"} 3"#,
            r#"outlast_tokens_total{agent="exec",model="unknown",type="output"} 5"#,
            r#"outlast_unreported_tokens_total{agent="exec"} 4"#,
            r#"outlast_cost_usd_total{agent="exec",model="unknown",estimated="false"} 0.5"#,
            r#"outlast_cost_usd_total{agent="exec",model="unknown",estimated="true"} 2.0"#,
            r#"outlast_unreported_attempts_total{agent="exec"} 1"#,
        ] {
            assert!(page.lines().any(|it| it == line), "no {line} in\n{page}");
        }
    }

    #[test]
    fn states_that_nobody_is_in_any_more_are_not_shown() {
        let metrics = Metrics::default();
        let sight = |state, agent: Option<&str>, queue_depth| Sight {
            census: vec![Census { state, agent: agent.map(str::to_owned), runs: 2 }],
            queue_depth,
            notices_pending: 5,
            budgets: vec![("day".to_owned(), 0.25, 0.5)],
        };
        let page = metrics.render(&sight(StateName::Running, Some("exec"), 3));
        assert!(page.contains("outlast_runs{state=\"running\",agent=\"exec\"} 2\n"), "{page}");
        assert!(page.contains("outlast_queue_depth 3\n"), "{page}");
        assert!(page.contains("outlast_notices_pending 5\n"), "{page}");
        assert!(page.contains("outlast_budget_remaining_ratio{budget=\"day\"} 0.25\n"), "{page}");
        assert!(page.contains("outlast_budget_unreported_ratio{budget=\"day\"} 0.5\n"), "{page}");
        let page = metrics.render(&sight(StateName::Blocked, None, 0));
        assert!(page.contains("outlast_runs{state=\"blocked\",agent=\"unknown\"} 2\n"), "{page}");
        assert!(!page.contains("running"), "{page}");
        assert!(page.contains("outlast_build_info{version="), "{page}");
    }
}
