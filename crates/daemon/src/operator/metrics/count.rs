//! How each event counts. Pure: what the journal has taken in, what to add out.

use outlast_engine::{
    Charge, Event, Fact, Outcome, Run, State, StateName, Time, TurnOutcome, Unreported, WaitCause,
    WaitWord,
};

/// What one event adds up to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Count {
    Turn {
        outcome: &'static str,
    },
    TurnTook {
        ms: u64,
    },
    Spent {
        charge: Charge,
    },
    /// An attempt did not report all that it used, and its agent could have.
    Unreported,
    LimitWait,
    LimitWaited {
        ms: u64,
    },
    Restart {
        reason: &'static str,
    },
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
    unreported: Unreported,
}

impl Tally {
    fn of(run: &Run) -> Self {
        let state = run.attempt.as_ref().map(|attempt| &attempt.state);
        Self {
            started: state.and_then(|state| state.process).map(|process| process.at),
            ended: state.and_then(|state| state.end.as_ref()).map(|(end, at)| (end.word(), *at)),
            is_open: run.attempt.as_ref().is_some_and(|attempt| {
                let committed = run.previous.as_ref().map(|previous| previous.turn);
                committed != Some(attempt.turn)
            }),
            limited_since: match run.state {
                State::Waiting { cause: WaitCause::RateLimit, since, .. } => Some(since),
                _ => None,
            },
            unreported: run.spec.unreported(),
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
                let is_unreported = charge.is_none_or(|charge| !charge.known)
                    && self.started.is_some()
                    && self.unreported.is_reserved();
                let unreported = is_unreported.then_some(Count::Unreported);
                stall.into_iter().chain(spent).chain(unreported).collect()
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
                let waits = *to == StateName::Waiting && *cause == Some(WaitWord::RateLimit);
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

#[cfg(test)]
mod tests {
    use outlast_engine::{Agent, BootId, Context, RunId, RunSpec, create};
    use serde_json::{Value, json};

    use super::*;

    /// A run of one command that has been started at 1000 ms.
    fn started() -> (Run, u64) {
        let agent = Agent { kind: "exec".to_owned(), command: vec!["true".to_owned()] };
        let id = RunId("aaaa00000001".to_owned());
        let spec = RunSpec::command(agent, "/".to_owned());
        let events = create(&id, spec, &Context::new(Time(1000), BootId("b".to_owned())));
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
}
