//! The bill of the night: each attempt is charged what the model has sent to it, and one that was cut off is marked.

use serde_json::Value;

use super::super::lab::Lab;
use super::super::model::{Asked, Fate, Tokens};
use super::super::vendor::{Counts, Vendor};
use super::hazard::Hazard;

pub(super) fn audit(
    lab: &mut Lab,
    vendor: Vendor,
    order: &[Hazard],
    asked: &[Asked],
    events: &[Value],
) {
    let mut sum = Tokens::default();
    for ended in events.iter().filter(|it| it["kind"] == "AttemptEnded") {
        let (turn, attempt) = (ended["turn"].as_u64(), ended["attempt"].as_u64());
        let turn = turn.and_then(|turn| usize::try_from(turn).ok()).unwrap_or(0);
        let attempt = attempt.unwrap_or(0);
        let of_attempt =
            || asked.iter().filter(|it| it.turn == Some(turn) && it.attempt() == attempt);
        let calls: Vec<Tokens> = of_attempt()
            .filter(|it| it.fate == Fate::Whole)
            .map(|it| as_told(vendor, it.tokens))
            .collect();
        // An answer that was cut off had begun with the count of its first token, which some agents have seen by then.
        let begun = of_attempt().filter(|it| it.fate == Fate::Cut).count() as u64;
        let begun = Tokens { output: begun, ..Tokens::default() };
        let charged = tokens(&ended["charge"], ["input_tokens", "output_tokens", "cached_tokens"]);
        sum = sum.and(charged);
        let is_cut = ended["outcome"] != "exited" || ended["code"] != 0;
        let hazard = turn.checked_sub(1).and_then(|index| order.get(index));
        let told = format!(
            "turn {turn}, attempt {attempt} ({hazard:?}, {}): charged {}, and the model has sent {calls:?}",
            ended["outcome"], ended["charge"]
        );
        match is_cut {
            true => {
                lab.expect(
                    hazard.is_some_and(|it| it.cuts_off()) || calls.is_empty(),
                    told.clone(),
                );
                lab.expect(
                    at_least(vendor, &calls).is_within(charged),
                    format!("too little: {told}"),
                );
                lab.expect(charged.is_within(all(&calls)), format!("too much: {told}"));
                let is_marked = ended["charge"]["known"] != true;
                lab.expect(
                    is_marked || charged == all(&calls),
                    format!("said to be known: {told}"),
                );
            }
            false => {
                let sent = whole(vendor, &calls);
                let is_so = sent.is_within(charged) && charged.is_within(sent.and(begun));
                lab.expect(is_so, told);
            }
        }
    }
    let usage = lab.view().unwrap_or_default()["usage"].clone();
    let shown = tokens(&usage, ["input_tokens", "output_tokens", "cached_tokens"]);
    lab.expect(shown == sum, format!("usage is {usage}, and the attempts were charged {sum:?}"));
    lab.expect(usage["known"] == false, "turns were cut off, and usage is said to be known");
}

fn tokens(value: &Value, names: [&str; 3]) -> Tokens {
    let [input, output, cached] = names.map(|name| value[name].as_u64().unwrap_or(0));
    Tokens { input, output, cached }
}

/// What a call has cost, in the agent's way of counting.
fn as_told(vendor: Vendor, tokens: Tokens) -> Tokens {
    match vendor.counts_cached() {
        true => tokens,
        false => Tokens { input: tokens.input + tokens.cached, cached: 0, ..tokens },
    }
}

fn all(calls: &[Tokens]) -> Tokens {
    calls.iter().copied().fold(Tokens::default(), Tokens::and)
}

/// What an attempt that has ended its turn is charged.
fn whole(vendor: Vendor, calls: &[Tokens]) -> Tokens {
    match vendor.counts() {
        Counts::AtOnce | Counts::AfterTool | Counts::AtTheEnd => all(calls),
        Counts::LastCall => calls.last().copied().unwrap_or_default(),
    }
}

/// What an attempt that was cut off in its last call's tool is charged at least. No agent says its output in time.
fn at_least(vendor: Vendor, calls: &[Tokens]) -> Tokens {
    let Some((last, before)) = calls.split_last() else { return Tokens::default() };
    match vendor.counts() {
        Counts::AtOnce => all(before).and(Tokens { output: 0, ..*last }),
        Counts::AfterTool => all(before),
        Counts::AtTheEnd | Counts::LastCall => Tokens::default(),
    }
}
