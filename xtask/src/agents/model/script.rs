//! What the model is to do, step by step: one step for each request that offers tools.

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
}

/// A tool that the model wants to use. How it is called depends on what the agent offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Tool {
    Shell(String),
    Write { path: String, content: String },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// Says something, and uses a tool or ends its turn with that.
    Answer { text: String, tool: Option<Tool>, tokens: Tokens, after: Duration },
    /// The connection is cut in the middle of the answer.
    Drop { text: String },
    /// An HTTP error, once.
    Fail { status: u16 },
    /// An HTTP error, from now on.
    FailAlways { status: u16 },
    /// The quota is used up. Every request until then is refused, and told when.
    Quota { for_s: u64 },
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

    /// Waits before it answers.
    pub(crate) fn after(mut self, pause: Duration) -> Self {
        if let Self::Answer { after, .. } = &mut self {
            *after = pause;
        }
        self
    }

    pub(crate) fn costs(mut self, input: u64, output: u64, cached: u64) -> Self {
        if let Self::Answer { tokens, .. } = &mut self {
            *tokens = Tokens { input, output, cached };
        }
        self
    }
}

/// What is left to do.
#[derive(Debug)]
pub(super) struct Script {
    steps: VecDeque<Step>,
    used: usize,
    /// When the quota of the first step is there again, once it was refused.
    reset: Option<Instant>,
}

/// What a request is answered with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    Step(Step),
    Refused {
        reset_in_s: u64,
    },
    /// More requests came than the script has steps.
    Over,
}

impl Script {
    pub(super) fn new(steps: Vec<Step>) -> Self {
        Self { steps: steps.into(), used: 0, reset: None }
    }

    /// The part for a request, and the number of its step.
    pub(super) fn take(&mut self, now: Instant) -> (Part, usize) {
        match self.steps.front() {
            None => (Part::Over, self.used),
            Some(Step::Quota { for_s }) => {
                let reset = *self.reset.get_or_insert(now + Duration::from_secs(*for_s));
                let left = reset.saturating_duration_since(now);
                if left.is_zero() {
                    self.next();
                    self.reset = None;
                    return self.take(now);
                }
                (Part::Refused { reset_in_s: left.as_secs() + 1 }, self.used)
            }
            Some(step @ Step::FailAlways { .. }) => (Part::Step(step.clone()), self.used),
            Some(step) => {
                let (step, number) = (step.clone(), self.used);
                self.next();
                (Part::Step(step), number)
            }
        }
    }

    fn next(&mut self) {
        self.steps.pop_front();
        self.used += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_refuses_until_its_reset_and_then_the_next_step_comes() {
        let mut script =
            Script::new(vec![Step::says("a"), Step::Quota { for_s: 8 }, Step::says("b")]);
        let start = Instant::now();
        assert_eq!(script.take(start), (Part::Step(Step::says("a")), 0));
        assert!(matches!(script.take(start), (Part::Refused { reset_in_s: 9 }, 1)));
        let later = start + Duration::from_secs(5);
        assert!(matches!(script.take(later), (Part::Refused { reset_in_s: 4 }, 1)));
        let over = start + Duration::from_secs(8);
        assert_eq!(script.take(over), (Part::Step(Step::says("b")), 2));
        assert_eq!(script.take(over), (Part::Over, 3));
    }
}
