//! The loop: a claim of done that a check refutes, a second turn in the same conversation, and the bill.

use anyhow::Result;

use super::lab::{Lab, Plan, Setup};
use super::model::{Step, Tokens, Tool};
use super::settle::Login;
use super::vendor::{Counts, Vendor};

const CHECK: &str =
    "test $(wc -l < work.txt) -eq 2 || { echo the-second-line-is-missing; exit 1; }";

const fn tokens(input: u64, output: u64, cached: u64) -> Tokens {
    Tokens { input, output, cached }
}

pub(super) fn run(setup: &Setup<'_>) -> Result<Lab> {
    let write = Tool::Write { path: "work.txt".to_owned(), content: "line one\n".to_owned() };
    let append = Tool::Shell("echo line two >> work.txt".to_owned());
    let first = vec![
        Step::uses("I write the first line.", write).costs(tokens(1000, 40, 0)),
        Step::says("The plum is written.").costs(tokens(200, 8, 1000)),
    ];
    let second = vec![
        Step::uses("I add the second line.", append).costs(tokens(300, 30, 1200)),
        Step::says("Both lines are there.").costs(tokens(50, 9, 1500)),
    ];
    let plan = Plan {
        name: "loop",
        login: Login::Key,
        turns: vec![first, second],
        approvals: "{mode: allow}",
        check: CHECK,
    };
    Ok(Lab::start(setup, plan)?.live(|lab| {
        let view = lab.rest(90)?;
        lab.expect_state(&view, "completed", None);
        let text = lab.file("work.txt");
        lab.expect(text == "line one\nline two\n", format!("the file has {text:?}"));
        second_turn(lab, setup.vendor);
        bill(lab, setup.vendor, &view["usage"]);
        Ok(())
    }))
}

/// The first request of the second turn has all that came before, and why there is a second turn.
fn second_turn(lab: &mut Lab, vendor: Vendor) {
    let asked = lab.asked();
    lab.expect(asked.len() == 4, format!("the model was asked {} times, not 4", asked.len()));
    let Some(first) = asked.get(2) else { return };
    lab.expect(
        first.last_user.contains("Turn 2 of the work"),
        "the second turn's prompt is not in its first request",
    );
    lab.expect(
        first.last_user.contains("the-second-line-is-missing"),
        "the refuted check is not in the second turn's prompt",
    );
    if vendor.resumes() {
        lab.expect(
            first.body.contains("The plum is written"),
            "the first turn's answer is not in the second turn's first request",
        );
    }
}

fn bill(lab: &mut Lab, vendor: Vendor, usage: &serde_json::Value) {
    let count = |name: &str| usage[name].as_u64().unwrap_or(u64::MAX);
    let told = Tokens {
        input: count("input_tokens"),
        output: count("output_tokens"),
        cached: count("cached_tokens"),
    };
    let mut sent = lab.model.finished();
    if !vendor.counts_cached() {
        sent = Tokens { input: sent.input + sent.cached, cached: 0, ..sent };
    }
    let is_all = vendor.counts() != Counts::LastCall;
    lab.expect(
        told == sent || !is_all,
        format!("usage is {told:?}, and the model has sent {sent:?}"),
    );
    let is_known = usage["known"] == true;
    lab.expect(
        is_known == vendor.reports_cost(),
        format!("usage.known is {is_known}, and cost is {}", usage["cost_usd"]),
    );
    let has_cost = usage["cost_usd"].as_f64().is_some_and(|cost| cost > 0.0);
    // One that counts its last call only says the session's cost beside the end of the turn: before it, or too late.
    lab.expect(
        has_cost == vendor.reports_cost() || !is_all,
        format!("usage.cost_usd is {}", usage["cost_usd"]),
    );
}
