//! The turns of one run, folded from its events as they come.

use std::collections::BTreeMap;

use jiff::Timestamp;
use outlast_client::journal::Event;

/// The newest are kept.
const MOST: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct Turns {
    all: BTreeMap<u64, Turn>,
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
    pub(crate) started_at: Option<Timestamp>,
    pub(crate) ended_at: Option<Timestamp>,
    pub(crate) tokens: u64,
    pub(crate) cost_usd_micros: u64,
}

impl Turns {
    pub(crate) fn take(&mut self, event: &Event) {
        if event.seq <= self.seq {
            return;
        }
        self.seq = event.seq;
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
}
