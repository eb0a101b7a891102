//! Limits of a provider, and ends of a turn that look like success: what the run makes of each.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::lab::{Lab, Plan, Setup, rests, waits_for_provider};
use super::model::{Asked, Fate, Step, Tokens, Told};
use super::settle::Login;
use super::vendor::Vendor;

const COSTS: Tokens = Tokens { input: 100, output: 10, cached: 0 };
const PATIENCE_S: u64 = 120;

/// How long a quota with two windows lasts; the shorter one is over after a third of that.
const WINDOWS_S: u64 = 12;
/// How long a quota lasts of whose end nothing is said. The run tries again after 15 s.
const UNTOLD_S: u64 = 8;
/// Longer than the retries of the agents that this is tried with, and shorter than these and the run's wait.
const OUTAGE_S: u64 = 32;

/// The other agents report one window at most.
pub(super) fn reports_windows(vendor: Vendor) -> bool {
    matches!(vendor, Vendor::Claude | Vendor::Codex)
}

/// Two windows are used up, and the later one is waited for.
pub(super) fn windows(setup: &Setup<'_>) -> Result<Lab> {
    let steps = vec![Step::Quota { for_s: WINDOWS_S, told: Told::TwoWindows }, done()];
    Ok(start(setup, "windows", Login::Subscriber, steps)?.live(|lab| {
        let view = waits(lab)?;
        let is_said = view["wake_at"].is_string();
        lab.expect(is_said, "the run does not say when it goes on");
        let first = lab.asked().first().context("the model was not asked")?.clone();
        let view = lab.rest(PATIENCE_S)?;
        lab.expect_state(&view, "completed", None);
        let asked = lab.asked();
        let early = asked.iter().skip(1).filter(|it| it.fate != Fate::Whole).count();
        lab.expect(early == 0, format!("asked {early} times before the later window was over"));
        goes_on_after(lab, &first, &asked, WINDOWS_S);
        Ok(())
    }))
}

/// True if a quota of whose end nothing is said ends the turn of this agent. opencode asks again by itself.
pub(super) fn gives_up_at_quota(vendor: Vendor) -> bool {
    !matches!(vendor, Vendor::Opencode | Vendor::AcpOpencode)
}

/// A quota, and nothing is said about its end: the run tries again by itself.
pub(super) fn backoff(setup: &Setup<'_>) -> Result<Lab> {
    let told = match setup.vendor {
        // With a key, Claude is told and does not say it. Without a header it would try for minutes.
        Vendor::Claude | Vendor::AcpClaude => Told::AnHour,
        Vendor::Gemini | Vendor::AcpGemini => Told::OneWindow,
        Vendor::Codex | Vendor::Pi | Vendor::AcpCodex => Told::Nothing,
        Vendor::Opencode | Vendor::AcpOpencode => Told::Nothing,
    };
    // pi tries for 14 s before it gives up.
    let for_s = if setup.vendor == Vendor::Pi { 20 } else { UNTOLD_S };
    let steps = vec![Step::Quota { for_s, told }, done()];
    Ok(start(setup, "backoff", Login::Key, steps)?.live(|lab| {
        waits(lab)?;
        let ended = lab.outlast.events(&lab.run)?;
        let ended = ended.iter().find(|it| it["kind"] == "AttemptEnded");
        let ended = ended.context("no attempt has ended")?;
        let is_told = ended["outcome"] == "impeded" && ended["until"].is_null();
        lab.expect(is_told, format!("the attempt ended as {ended}"));
        let view = lab.rest(PATIENCE_S)?;
        lab.expect_state(&view, "completed", None);
        Ok(())
    }))
}

/// True if this agent gives up on a provider that is down within the time of a test.
pub(super) fn gives_up_at_outage(vendor: Vendor) -> bool {
    matches!(vendor, Vendor::Codex | Vendor::Pi | Vendor::AcpCodex)
}

/// A provider that is down: pi exits with 0 then, and codex-acp says that it is done. Both are limits.
pub(super) fn outage(setup: &Setup<'_>) -> Result<Lab> {
    let steps = vec![Step::Outage { for_s: OUTAGE_S, status: 500 }, done()];
    Ok(start(setup, "outage", Login::Key, steps)?.live(|lab| {
        waits(lab)?;
        let view = lab.rest(PATIENCE_S)?;
        lab.expect_state(&view, "completed", None);
        let committed = view["turns_committed"].as_u64();
        lab.expect(committed == Some(1), format!("{committed:?} turns were committed, not one"));
        Ok(())
    }))
}

/// True if this agent ends its turn when the model repeats itself.
pub(super) fn sees_loops(vendor: Vendor) -> bool {
    matches!(vendor, Vendor::Gemini | Vendor::AcpGemini)
}

/// Gemini takes an answer that repeats itself for a loop, ends its turn and says that it has used nothing. No turn is
/// committed by that. (Its one-shot mode calls that a success; by ACP it names a limit of its own.)
pub(super) fn empty(setup: &Setup<'_>) -> Result<Lab> {
    let again = "The same sentence comes again and again and again. ".repeat(60);
    let steps = vec![Step::says(again).costs(COSTS), done()];
    Ok(start(setup, "empty", Login::Key, steps)?.live(|lab| {
        let view = lab.rest(PATIENCE_S)?;
        lab.expect_state(&view, "completed", None);
        let events = lab.outlast.events(&lab.run)?;
        let first = events.iter().find(|it| it["kind"] == "AttemptEnded");
        let first = first.context("no attempt has ended")?;
        let is_none = first["outcome"] != "exited";
        lab.expect(is_none, format!("an answer that was cut off is a success: {first}"));
        Ok(())
    }))
}

fn done() -> Step {
    Step::says("It is done.").costs(COSTS)
}

fn start(setup: &Setup<'_>, name: &str, login: Login, steps: Vec<Step>) -> Result<Lab> {
    let (turns, approvals) = (vec![steps], "{mode: allow}");
    Lab::start(setup, Plan { name, login, turns, approvals, check: "true" })
}

fn waits(lab: &Lab) -> Result<Value> {
    let view = lab.until("the run waits for the provider", PATIENCE_S, |view| {
        (waits_for_provider(view) || rests(view)).then(|| view.clone())
    })?;
    ensure!(
        waits_for_provider(&view),
        "the run is {} ({}): {}",
        view["state"],
        view["reason_code"],
        view["reason"]
    );
    Ok(view)
}

fn goes_on_after(lab: &mut Lab, first: &Asked, asked: &[Asked], seconds: u64) {
    let Some(answered) = asked.iter().find(|it| it.fate == Fate::Whole) else {
        return lab.problems.push("the model has never answered".to_owned());
    };
    let waited = answered.at.duration_since(first.at);
    lab.expect(
        waited >= Duration::from_secs(seconds),
        format!("went on {waited:.1?} after a limit of {seconds} s was met"),
    );
}
