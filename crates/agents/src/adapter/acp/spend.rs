//! What a turn has used up: tokens by the answers to its prompts, the cost by the session's own total.

use serde_json::Value;

use super::agent::Agent;
use crate::adapter::event::Spent;
use crate::adapter::json::{at, micros, text, whole};

#[derive(Debug, Default)]
pub(super) struct Spending {
    /// What the session had cost before this turn, if that is known.
    cost_before: Option<u64>,
    cost_now: Option<u64>,
    tokens: Option<Spent>,
    told: Option<Spent>,
}

impl Spending {
    pub(super) fn new(is_resumed: bool, cost_before: Option<u64>) -> Self {
        let cost_before = if is_resumed { cost_before } else { Some(0) };
        Self { cost_before, ..Self::default() }
    }

    /// A total of the session. One that comes before our prompt is what the session had cost by then.
    pub(super) fn add_cost(&mut self, update: &Value, is_before: bool) {
        let Some(total) = micros(update, "cost.amount")
            .filter(|_| text(update, "cost.currency").is_none_or(|it| it == "USD"))
        else {
            return;
        };
        if is_before {
            self.cost_before = Some(total);
        } else {
            self.cost_now = Some(total);
        }
    }

    pub(super) fn add_prompt(&mut self, result: &Value, agent: &Agent) {
        let Some(used) = of_prompt(result) else { return };
        let before = self.tokens.filter(|_| agent.adds_prompts()).unwrap_or_default();
        self.tokens = Some(before.and(&Spent { is_floor: !agent.counts_all(), ..used }));
    }

    /// What there is to tell, if it is news.
    pub(super) fn told(&mut self, is_floor: bool) -> Option<Spent> {
        let tokens = self.tokens.unwrap_or_default();
        // A total below what came before is of an agent that has begun to count anew.
        let cost = self.cost_now.zip(self.cost_before);
        let cost = cost.map(|(now, before)| now.checked_sub(before).unwrap_or(now));
        if self.tokens.is_none() && cost.is_none() {
            return None;
        }
        let spent =
            Spent { cost_usd_micros: cost, is_floor: is_floor || tokens.is_floor, ..tokens };
        (self.told.replace(spent) != Some(spent)).then_some(spent)
    }

    /// Whether a model was asked, as far as the agent says what it has used.
    pub(super) fn has_used(&self) -> Option<bool> {
        let some = |count: Option<u64>| count.is_some_and(|it| it > 0);
        self.tokens
            .map(|it| some(it.input_tokens) || some(it.output_tokens) || some(it.cached_tokens))
    }
}

fn of_prompt(result: &Value) -> Option<Spent> {
    match at(result, "usage").filter(|it| it.is_object()) {
        Some(usage) => Some(of_usage(usage)),
        None => of_quota(at(result, "_meta.quota.token_count").filter(|it| it.is_object())?),
    }
}

/// Agents differ in whether the input has the cached part, and the output the thoughts: the total tells.
fn of_usage(usage: &Value) -> Spent {
    let count = |name: &str| whole(usage, name).unwrap_or(0);
    let (input, output) = (count("inputTokens"), count("outputTokens"));
    let (read, written) = (count("cachedReadTokens"), count("cachedWriteTokens"));
    let thoughts = count("thoughtTokens");
    let sum = |cache_apart: bool, thoughts_apart: bool| {
        let cache = if cache_apart { read.saturating_add(written) } else { 0 };
        let thoughts = if thoughts_apart { thoughts } else { 0 };
        [output, cache, thoughts].iter().fold(input, |sum, it| sum.saturating_add(*it))
    };
    let total = whole(usage, "totalTokens");
    let ways = [(true, false), (true, true), (false, false), (false, true)];
    let way = ways.into_iter().find(|way| total == Some(sum(way.0, way.1)));
    let (cache_apart, thoughts_apart) = way.unwrap_or((true, false));
    let anew = if cache_apart { input.saturating_add(written) } else { input.saturating_sub(read) };
    let output = if thoughts_apart { output.saturating_add(thoughts) } else { output };
    Spent {
        input_tokens: whole(usage, "inputTokens").and(Some(anew)),
        output_tokens: whole(usage, "outputTokens").and(Some(output)),
        cached_tokens: whole(usage, "cachedReadTokens"),
        cost_usd_micros: None,
        is_floor: false,
    }
}

/// Gemini's own. Its input has the cached part, which it does not say.
fn of_quota(count: &Value) -> Option<Spent> {
    let (input, output) = (whole(count, "input_tokens"), whole(count, "output_tokens"));
    input.or(output)?;
    Some(Spent { input_tokens: input, output_tokens: output, ..Spent::default() })
}
