//! What the model is to do in each turn, step by step: one step for each request that offers tools.
//!
//! A request belongs to the turn that its prompt names, so an attempt more or less at a turn moves no other turn's steps.
//! The last step of a turn is repeated for each further request.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// What one call costs. Tokens that were read from a cache are counted apart from the rest of the input.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) cached: u64,
}

impl Tokens {
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            input: self.input + other.input,
            output: self.output + other.output,
            cached: self.cached + other.cached,
        }
    }

    /// True if no count is above the other's.
    pub(crate) fn is_within(self, other: Self) -> bool {
        self.input <= other.input && self.output <= other.output && self.cached <= other.cached
    }
}

/// A tool that the model wants to use. How it is called depends on what the agent offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tool {
    Shell(String),
    /// A command that goes on while the model does; only Claude has that.
    Background(String),
    Write {
        path: String,
        content: String,
    },
    /// A tool of our MCP server, by its own name.
    Ours {
        name: &'static str,
        input: serde_json::Value,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Says something, and uses a tool or ends its turn with that.
    Answer { text: String, tool: Option<Tool>, tokens: Tokens, after: Duration },
    /// The connection is cut in the middle of the answer.
    Drop { text: String },
    /// An HTTP error.
    Fail { status: u16 },
    /// The quota is used up: every request until then is refused.
    Quota { for_s: u64, told: Told },
    /// The provider is down: every request until then gets this status.
    Outage { for_s: u64, status: u16 },
}

/// What a request is told of the end of a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Told {
    OneWindow,
    /// A shorter window is used up as well, ends earlier, and is the one that is named.
    TwoWindows,
    /// Much later than it is: an agent that would wait for a short time by itself gives up.
    AnHour,
    Nothing,
}

impl Step {
    pub(crate) fn says(text: impl Into<String>) -> Self {
        let (tool, after) = (None, Duration::ZERO);
        Self::Answer { text: text.into(), tool, tokens: Tokens::default(), after }
    }

    pub(crate) fn uses(text: impl Into<String>, tool: Tool) -> Self {
        let (tool, after) = (Some(tool), Duration::ZERO);
        Self::Answer { text: text.into(), tool, tokens: Tokens::default(), after }
    }

    /// A quota whose end is told.
    pub(crate) fn quota(for_s: u64) -> Self {
        Self::Quota { for_s, told: Told::OneWindow }
    }

    /// Waits before it answers.
    pub(crate) fn after(mut self, pause: Duration) -> Self {
        if let Self::Answer { after, .. } = &mut self {
            *after = pause;
        }
        self
    }

    pub(crate) fn costs(mut self, costs: Tokens) -> Self {
        if let Self::Answer { tokens, .. } = &mut self {
            *tokens = costs;
        }
        self
    }
}

/// What is left to do.
#[derive(Debug)]
pub(super) struct Script {
    turns: Vec<VecDeque<Step>>,
    /// The turn of the last request, from 1.
    turn: usize,
    /// When the quota or the outage of the step at hand is over, once a request has met it.
    reset: Option<Instant>,
}

/// What a request is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Step(Step),
    /// The quota is used up for so long.
    Refused {
        left: Duration,
        told: Told,
    },
    /// The provider is down.
    Down {
        status: u16,
    },
    /// There are more turns than the script has.
    Over,
}

impl Script {
    pub(super) fn new(turns: Vec<Vec<Step>>) -> Self {
        Self { turns: turns.into_iter().map(Into::into).collect(), turn: 1, reset: None }
    }

    /// The part for a request of a turn, and that turn. A request that names none belongs to the turn before.
    pub(super) fn take(&mut self, turn: Option<usize>, now: Instant) -> (Part, usize) {
        self.turn = turn.unwrap_or(self.turn);
        (self.part(now), self.turn)
    }

    /// An answer that its client did not wait for is the next one again: the model has said nothing.
    pub(super) fn give_back(&mut self, turn: usize, step: Step) {
        let steps = turn.checked_sub(1).and_then(|index| self.turns.get_mut(index));
        if let Some(steps) = steps.filter(|steps| steps.front() != Some(&step)) {
            steps.push_front(step);
        }
    }

    fn part(&mut self, now: Instant) -> Part {
        let steps = self.turn.checked_sub(1).and_then(|index| self.turns.get_mut(index));
        let Some(steps) = steps else { return Part::Over };
        if let Some(Step::Quota { for_s, .. } | Step::Outage { for_s, .. }) = steps.front() {
            let reset = *self.reset.get_or_insert(now + Duration::from_secs(*for_s));
            let left = reset.saturating_duration_since(now);
            match steps.front() {
                Some(Step::Quota { told, .. }) if !left.is_zero() => {
                    return Part::Refused { left, told: *told };
                }
                Some(Step::Outage { status, .. }) if !left.is_zero() => {
                    return Part::Down { status: *status };
                }
                _ => {}
            }
            self.reset = None;
            steps.pop_front();
        }
        let next = if steps.len() > 1 { steps.pop_front() } else { steps.front().cloned() };
        next.map_or(Part::Over, Part::Step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_refuses_until_its_reset_and_then_the_next_step_comes() {
        let turns = vec![vec![Step::says("a")], vec![Step::quota(8), Step::says("b")]];
        let mut script = Script::new(turns);
        let start = Instant::now();
        let refused =
            |seconds| Part::Refused { left: Duration::from_secs(seconds), told: Told::OneWindow };
        let mut ask = |turn, seconds| script.take(turn, start + Duration::from_secs(seconds));
        assert_eq!(ask(Some(1), 0), (Part::Step(Step::says("a")), 1));
        assert_eq!(ask(Some(2), 0), (refused(8), 2));
        assert_eq!(ask(None, 5), (refused(3), 2));
        assert_eq!(ask(Some(2), 8), (Part::Step(Step::says("b")), 2));
        assert_eq!(ask(Some(3), 9), (Part::Over, 3));
    }

    #[test]
    fn the_last_step_of_a_turn_is_repeated() {
        let mut script = Script::new(vec![vec![Step::Fail { status: 500 }, Step::says("b")]]);
        let now = Instant::now();
        assert_eq!(script.take(Some(1), now).0, Part::Step(Step::Fail { status: 500 }));
        for _ in 0..3 {
            assert_eq!(script.take(Some(1), now).0, Part::Step(Step::says("b")));
        }
        script.give_back(1, Step::says("a"));
        script.give_back(1, Step::says("a"));
        for text in ["a", "b", "b"] {
            assert_eq!(script.take(Some(1), now).0, Part::Step(Step::says(text)));
        }
    }
}
