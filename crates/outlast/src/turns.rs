//! The turns of one run, folded from its events as they come.

use std::collections::BTreeMap;

use jiff::Timestamp;
use outlast_client::journal::Event;
use serde_json::Value;

use crate::output::figures::Spend;

use crate::output::state::spaced;

/// The newest are kept.
const MOST: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct Turns {
    all: BTreeMap<u64, Turn>,
    /// Checks of a claim of done that have not ended, by their number: the turn, and the command.
    checks: BTreeMap<u64, (u64, String)>,
    /// The number of the last event that is in here.
    pub(crate) seq: u64,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Turn {
    pub(crate) number: u64,
    pub(crate) attempts: u64,
    /// How it stands, in a word or two: `exited`, `stalled`, `continue`, `done`.
    pub(crate) end: Option<String>,
    pub(crate) outcome: Option<String>,
    pub(crate) summary: Option<String>,
    /// The check that refuted its claim of done, and what the check said last.
    pub(crate) refuted: Option<String>,
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) tokens: u64,
    pub(crate) cost_usd_micros: u64,
    /// How many of its attempts did not report all that they used, and what is held for them.
    pub(crate) unreported: u64,
    /// How many of those did not report their money, and how many not their tokens.
    unpaid: u64,
    uncounted: u64,
    /// Lines that it added to the workspace and removed, by its snapshot.
    pub(crate) lines: Option<(u64, u64)>,
    pub(crate) unreported_tokens: u64,
    pub(crate) unreported_usd_micros: u64,
}

impl Turn {
    /// Notes how much of an attempt's charge was not reported; a charge from before says only that some was not.
    fn hold(&mut self, ended: &Event) {
        let Some(charge) = ended.get("charge").filter(|charge| charge["known"] == false) else {
            return;
        };
        let of = |charge: &Value, key: &str| charge[key].as_u64().unwrap_or(0);
        let (tokens, cost) = match charge.get("reserved") {
            Some(reserved) => (of(reserved, "tokens"), of(reserved, "cost_usd_micros")),
            None => {
                let tokens = of(charge, "input_tokens").saturating_add(of(charge, "output_tokens"));
                (tokens, of(charge, "cost_usd_micros"))
            }
        };
        self.unreported += 1;
        let half = charge["half"].as_str();
        self.unpaid += u64::from(half != Some("money"));
        self.uncounted += u64::from(half != Some("tokens"));
        self.unreported_tokens = self.unreported_tokens.saturating_add(tokens);
        self.unreported_usd_micros = self.unreported_usd_micros.saturating_add(cost);
    }

    #[expect(clippy::cast_precision_loss, reason = "for people")]
    pub(crate) fn spend(&self) -> Spend {
        Spend {
            cost_usd: self.cost_usd_micros as f64 / 1e6,
            tokens: self.tokens,
            money_known: self.unpaid == 0,
            tokens_known: self.uncounted == 0,
            unreported_usd: self.unreported_usd_micros as f64 / 1e6,
            unreported_tokens: self.unreported_tokens,
            unreported_attempts: self.unreported,
        }
    }
}

impl Turns {
    pub(crate) fn take(&mut self, event: &Event) {
        if event.seq <= self.seq {
            return;
        }
        self.seq = event.seq;
        self.take_check(event);
        let Some(number) = event.number("turn").filter(|number| *number > 0) else { return };
        let at = event.text("at").and_then(|at| at.parse().ok());
        let turn = self.all.entry(number).or_insert_with(|| Turn { number, ..Turn::default() });
        match event.kind.as_str() {
            "TurnStarted" => {
                turn.attempts = event.number("attempt").unwrap_or(turn.attempts);
                turn.started_at = turn.started_at.or(at);
                (turn.ended_at, turn.end) = (None, None);
            }
            "AttemptEnded" => {
                turn.end = event.text("outcome").map(str::to_owned);
                turn.ended_at = at;
                let charge = |key| event.get("charge").and_then(|all| all.get(key)?.as_u64());
                for tokens in ["input_tokens", "output_tokens"].map(charge).into_iter().flatten() {
                    turn.tokens = turn.tokens.saturating_add(tokens);
                }
                let cost = charge("cost_usd_micros").unwrap_or(0);
                turn.cost_usd_micros = turn.cost_usd_micros.saturating_add(cost);
                turn.hold(event);
            }
            "SnapshotTaken" if event.text("cause") == Some("turn") => {
                turn.lines = event.number("added").zip(event.number("deleted"));
            }
            "TurnCommitted" => {
                turn.end = event.text("status").map(str::to_owned);
                turn.outcome = event.text("outcome").map(str::to_owned);
                turn.summary = event.text("summary").map(str::to_owned);
            }
            _ => {}
        }
        while self.all.len() > MOST {
            self.all.pop_first();
        }
    }

    fn take_check(&mut self, event: &Event) {
        let errand = event.number("errand").unwrap_or(0);
        match event.kind.as_str() {
            "ErrandStarted" if event.text("purpose") == Some("done") => {
                let turn = event.number("turn").unwrap_or(0);
                let command = event.text("command").unwrap_or("a check").to_owned();
                self.checks.insert(errand, (turn, command));
            }
            "ErrandEnded" => {
                let Some((turn, command)) = self.checks.remove(&errand) else { return };
                let is_well =
                    event.text("outcome") == Some("exited") && event.number("code") == Some(0);
                if let Some(turn) = self.all.get_mut(&turn).filter(|_| !is_well) {
                    let tail = event.text("tail").unwrap_or_default().lines();
                    let said = tail.map(str::trim).rfind(|line| !line.is_empty());
                    let said = said.map(|line| format!(": {line}")).unwrap_or_default();
                    turn.refuted = Some(format!("{command}{said}"));
                }
            }
            _ => {}
        }
    }

    /// The newest first.
    pub(crate) fn newest(&self) -> impl Iterator<Item = &Turn> {
        self.all.values().rev()
    }

    /// The turn before or after this one, or the last there is.
    pub(crate) fn before(&self, number: Option<u64>) -> Option<u64> {
        match number {
            Some(number) => self.all.range(..number).next_back().map(|(number, _)| *number),
            None => self.all.keys().next_back().copied(),
        }
    }

    pub(crate) fn after(&self, number: u64) -> Option<u64> {
        self.all.range(number + 1..).next().map(|(number, _)| *number)
    }
}

impl Turn {
    /// How it stands: `running`, `continue, files changed`, `done ✗`, `stalled`.
    pub(crate) fn words(&self) -> String {
        let Some(end) = self.end.as_deref() else { return "running".to_owned() };
        match (end, self.outcome.as_deref()) {
            ("done", _) if self.refuted.is_some() => "done ✗".to_owned(),
            ("continue", Some("no_op_success")) => "continue, nothing changed".to_owned(),
            ("continue", Some("meaningful_completion")) => "continue, files changed".to_owned(),
            (end, _) => spaced(end),
        }
    }

    /// In milliseconds, until now if it has not ended.
    pub(crate) fn took_ms(&self, now: Timestamp) -> Option<u64> {
        let until = self.ended_at.unwrap_or(now).as_millisecond();
        u64::try_from(until - self.started_at?.as_millisecond()).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(events: &[&str]) -> Turns {
        let mut turns = Turns::default();
        for json in events {
            turns.take(&Event::read(json).expect("an event"));
        }
        turns
    }

    #[test]
    fn a_turn_is_told_by_its_events() {
        let turns = turns(&[
            r#"{"seq":1,"at":"2026-11-15T11:57:00Z","kind":"RunCreated"}"#,
            r#"{"seq":2,"at":"2026-11-15T11:57:00Z","kind":"TurnStarted","turn":1,"attempt":1}"#,
            r#"{"seq":3,"at":"2026-11-15T11:58:00Z","kind":"AttemptEnded","turn":1,"attempt":1,"outcome":"stalled","charge":{"input_tokens":5,"output_tokens":1,"cost_usd_micros":7}}"#,
            r#"{"seq":4,"at":"2026-11-15T11:58:10Z","kind":"TurnStarted","turn":1,"attempt":2}"#,
            r#"{"seq":5,"at":"2026-11-15T11:59:00Z","kind":"AttemptEnded","turn":1,"attempt":2,"outcome":"exited","charge":{"input_tokens":5,"output_tokens":1,"cost_usd_micros":7}}"#,
            r#"{"seq":6,"at":"2026-11-15T11:59:00Z","kind":"TurnCommitted","turn":1,"attempt":2,"status":"continue","outcome":"meaningful_completion","summary":"the lexer"}"#,
            r#"{"seq":7,"at":"2026-11-15T11:59:00Z","kind":"TurnStarted","turn":2,"attempt":1}"#,
        ]);
        let [second, first] = turns.newest().collect::<Vec<_>>()[..] else { panic!("two turns") };
        assert_eq!((second.number, second.attempts, &second.end), (2, 1, &None));
        assert_eq!((first.attempts, first.tokens, first.cost_usd_micros), (2, 12, 14));
        assert_eq!(first.end.as_deref(), Some("continue"));
        assert_eq!(first.summary.as_deref(), Some("the lexer"));
        let took = first.ended_at.zip(first.started_at);
        assert_eq!(took.map(|(end, start)| end.as_second() - start.as_second()), Some(120));
        assert_eq!(
            (turns.before(None), turns.before(Some(2)), turns.after(1)),
            (Some(2), Some(1), Some(2))
        );
        assert_eq!((turns.before(Some(1)), turns.after(2)), (None, None));
    }

    #[test]
    fn a_loop_without_end_does_not_fill_the_memory() {
        let mut turns = Turns::default();
        for turn in 1..=3000 {
            let json =
                format!(r#"{{"seq":{turn},"kind":"TurnStarted","turn":{turn},"attempt":1}}"#);
            turns.take(&Event::read(&json).expect("an event"));
        }
        assert_eq!(
            (turns.all.len(), turns.newest().next().map(|turn| turn.number)),
            (MOST, Some(3000))
        );
    }

    #[test]
    fn a_turn_whose_claim_a_check_refutes_says_which_check() {
        let turns = turns(&[
            r#"{"seq":1,"at":"2026-11-15T11:57:00Z","kind":"TurnStarted","turn":1,"attempt":1}"#,
            r#"{"seq":2,"at":"2026-11-15T11:57:09Z","kind":"TurnCommitted","turn":1,"status":"done","outcome":"meaningful_completion"}"#,
            r#"{"seq":3,"at":"2026-11-15T11:57:09Z","kind":"ErrandStarted","turn":1,"errand":4,"purpose":"done","command":"make test"}"#,
            r#"{"seq":4,"at":"2026-11-15T11:57:10Z","kind":"ErrandEnded","errand":4,"outcome":"exited","code":1,"tail":"running\n3 failed\n"}"#,
        ]);
        let turn = turns.newest().next().expect("a turn");
        assert_eq!(
            (turn.words(), turn.refuted.as_deref()),
            ("done ✗".to_owned(), Some("make test: 3 failed"))
        );
    }
}
