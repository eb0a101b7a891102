//! The night: one run that meets all that can happen to it, one hazard per turn, in an order that a seed says.
//!
//! Each turn's work is a turn of the model with a text that no other turn has, so that the log shows which conversation a
//! request belongs to. A check refutes every claim of done until the last turn has left its file.

mod audit;
mod bill;
mod hazard;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use self::audit::Night;
use self::hazard::{Hazard, Victim, While, asked_file, hazards, message, steps};
use super::lab::{Lab, Plan, Setup, rests, waits_for_provider};
use super::model::{Step, Tokens, Tool};
use super::settle::Login;
use super::vendor::Vendor;
use crate::{interrupt, process};

/// How long the process of an agent waits for a person.
const PROCESS_WAITS_MS: u64 = 6000;
/// How long a turn may take.
const PATIENCE_S: u64 = 120;
/// How late a person answers.
const LATE: Duration = Duration::from_secs(2);

/// What of the night an agent cannot do, for the table.
pub(super) fn left_out(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Claude | Vendor::Codex | Vendor::Opencode => "",
        Vendor::Gemini => "without reset time and spend of a cut turn",
        Vendor::AcpGemini => "without context after a restart, reset time and spend of a cut turn",
        Vendor::Pi => "without a question",
        Vendor::AcpClaude | Vendor::AcpCodex => "without reset time and spend of a cut turn",
        Vendor::AcpOpencode => {
            "without a limit that is seen, and spend but that of the last call of each turn"
        }
    }
}

pub(super) fn run(setup: &Setup<'_>, seed: u64) -> Result<Lab> {
    let order = hazards(setup.vendor, seed);
    let mut turns: Vec<Vec<Step>> =
        order.iter().zip(1..).map(|(hazard, turn)| steps(setup.vendor, *hazard, turn)).collect();
    turns.push(vec![
        Step::uses("The last.", Tool::Shell("touch finished".to_owned())).costs(Tokens {
            input: 10,
            output: 5,
            cached: 0,
        }),
        Step::says("The night is over.").costs(Tokens { input: 10, output: 5, cached: 0 }),
    ]);
    let shell = setup.vendor.shell();
    let park = format!("{{mode: park, allow: [{shell}], patience_ms: {PROCESS_WAITS_MS}}}");
    let approvals = if setup.vendor.asks() { &park } else { "{mode: allow}" };
    let plan = Plan {
        name: "night",
        login: Login::Subscriber,
        turns,
        approvals,
        check: "test -e finished",
    };
    let lab = Lab::start(setup, plan)?;
    let name = setup.vendor.name();
    println!("agents: {name}: night of run {} with seed {seed}: {order:?}", lab.run);
    let night = Night { vendor: setup.vendor, order };
    Ok(lab.live(|lab| {
        live_through(lab, setup.vendor, &night.order)?;
        night.audit(lab)
    }))
}

fn live_through(lab: &mut Lab, vendor: Vendor, order: &[Hazard]) -> Result<()> {
    for (hazard, turn) in order.iter().zip(1..) {
        meet(lab, vendor, *hazard, turn).with_context(|| format!("turn {turn}, {hazard:?}"))?;
        committed(lab, turn).with_context(|| format!("turn {turn}, {hazard:?}"))?;
    }
    let view = lab.rest(PATIENCE_S)?;
    lab.expect_state(&view, "completed", None);
    Ok(())
}

fn committed(lab: &Lab, turn: usize) -> Result<()> {
    let wanted = turn as u64;
    let view = lab.until("the turn is committed", PATIENCE_S, |view| {
        let is_so = view["turns_committed"].as_u64() >= Some(wanted);
        (is_so || rests(view)).then(|| view.clone())
    })?;
    ensure!(
        view["turns_committed"].as_u64() >= Some(wanted),
        "the run is {} ({}): {}",
        view["state"],
        view["reason_code"],
        view["reason"]
    );
    Ok(())
}

fn meet(lab: &mut Lab, vendor: Vendor, hazard: Hazard, turn: usize) -> Result<()> {
    match hazard {
        Hazard::Tool | Hazard::ServerError | Hazard::CutStream => Ok(()),
        Hazard::Quota if !vendor.reports_quota() => Ok(()),
        Hazard::Quota => waits(lab),
        Hazard::Question => answer(lab, vendor, turn),
        Hazard::LiveQuestion => answer_at_once(lab, vendor, turn),
        Hazard::Steer => {
            tool_runs(lab, turn)?;
            lab.outlast.ask(&["send", &lab.run, &message(turn)]).map(drop)
        }
        Hazard::Kill(victim) => {
            tool_runs(lab, turn)?;
            kill(lab, vendor, victim)
        }
        Hazard::Reboot(While::ToolRuns) => {
            tool_runs(lab, turn)?;
            lab.reboot()
        }
        Hazard::Reboot(While::Waiting) => {
            waits(lab)?;
            lab.reboot()
        }
    }
}

fn tool_runs(lab: &Lab, turn: usize) -> Result<()> {
    let started = format!("start-{turn}.");
    interrupt::wait_for("the tool runs", Duration::from_secs(PATIENCE_S), || {
        Ok(lab.file("tools.log").contains(&started).then_some(()))
    })
}

fn waits(lab: &Lab) -> Result<()> {
    let view = lab.until("the run waits for the provider", PATIENCE_S, |view| {
        (waits_for_provider(view) || rests(view)).then(|| view.clone())
    })?;
    ensure!(waits_for_provider(&view), "the run is {}: {}", view["state"], view["reason"]);
    Ok(())
}

/// The model repeats a call that a person has allowed, and the call is made.
fn answer(lab: &mut Lab, vendor: Vendor, turn: usize) -> Result<()> {
    let asks = |lab: &Lab| {
        lab.until("the run asks", PATIENCE_S, |view| {
            (view["state"] == "blocked").then(|| view.clone())
        })
    };
    let view = asks(lab)?;
    lab.expect_state(&view, "blocked", Some("needs_approval"));
    let question = view["blocked"]["question"].as_str().unwrap_or_default();
    let name = asked_file(vendor, turn);
    let names_it = question.contains(name.trim_start_matches("../"));
    lab.expect(names_it, format!("the question does not say what is asked: {question:?}"));
    let before = lab.asked().len();
    interrupt::pause(LATE);
    lab.expect(lab.asked().len() == before, "the agent went on while a person was asked");
    lab.outlast.ask(&["answer", &lab.run, "--approve"])?;
    let view = lab.until("the answer is taken", PATIENCE_S, |view: &Value| {
        let is_over = view["turns_committed"].as_u64() >= Some(turn as u64);
        let asks_again = view["state"] == "blocked" && lab.asked().len() > before;
        (is_over || asks_again).then(|| view.clone())
    })?;
    let asks_again = view["state"] == "blocked";
    lab.expect(!asks_again, "a call that a person had allowed was asked about again");
    if asks_again {
        lab.outlast.ask(&["answer", &lab.run, "--approve"])?;
    }
    Ok(())
}

/// The process that asks waits, and goes on with the answer.
fn answer_at_once(lab: &mut Lab, vendor: Vendor, turn: usize) -> Result<()> {
    let view = lab.until("the agent asks", PATIENCE_S, |view| {
        let asks = view["asks"]["text"].is_string();
        (asks || rests(view)).then(|| view.clone())
    })?;
    lab.expect_state(&view, "running", None);
    let question = view["asks"]["text"].as_str().unwrap_or_default();
    let name = asked_file(vendor, turn);
    let names_it = question.contains(name.trim_start_matches("../"));
    lab.expect(names_it, format!("the question does not say what is asked: {question:?}"));
    lab.outlast.ask(&["answer", &lab.run, "--approve"]).map(drop)
}

fn kill(lab: &Lab, vendor: Vendor, victim: Victim) -> Result<()> {
    let view = lab.view().context("a daemon answers")?;
    let of = |name: &str| {
        let pid = view[name].as_u64().and_then(|pid| u32::try_from(pid).ok());
        pid.with_context(|| format!("the run has no {name}"))
    };
    let home = lab.outlast.home();
    let (driver, shim) = (of("pid")?, of("shim_pid")?);
    let cli = || {
        let mut level = vec![driver];
        let mut found = Vec::new();
        for _ in 0..vendor.processes() {
            level = level.iter().flat_map(|pid| process::children(*pid, home)).collect();
            found.extend(level.iter().copied());
        }
        ensure!(!found.is_empty(), "the driver has no child");
        Ok(found)
    };
    let daemon = || lab.outlast.daemon_pid()?.context("there is no daemon");
    let pids = match victim {
        Victim::Cli => cli()?,
        Victim::Driver => vec![driver],
        Victim::Shim => vec![shim],
        Victim::Daemon => vec![daemon()?],
        Victim::All => {
            let cli = cli()?;
            [vec![daemon()?, shim, driver], cli].concat()
        }
    };
    for pid in pids {
        ensure!(process::kill(pid, home)?, "process {pid} was gone before it was killed");
    }
    Ok(())
}
