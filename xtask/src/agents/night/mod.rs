//! The night: one run that meets all that can happen to it, one hazard per turn, in an order that a seed says.
//!
//! Each turn's work is a turn of the model with a text that no other turn has, so that the log shows which conversation a
//! request belongs to. A check refutes every claim of done until the last turn has left its file.

mod audit;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use self::audit::Night;
use super::lab::{Lab, Plan, Setup, rests};
use super::model::{Step, Tokens, Tool};
use super::vendor::{Login, Vendor};
use crate::random::Random;
use crate::{interrupt, process};

/// How long a tool takes in which something is killed.
const TOOL_S: u64 = 3;
/// How long a turn may take.
const PATIENCE_S: u64 = 90;
/// How late a person answers.
const LATE: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hazard {
    Tool,
    Quota,
    ServerError,
    CutStream,
    Question,
    Kill(Victim),
}

impl Hazard {
    /// True if the call that uses the tool is cut off.
    fn cuts_a_tool(self) -> bool {
        match self {
            Self::Question | Self::Kill(Victim::Cli | Victim::Driver | Victim::All) => true,
            Self::Kill(Victim::Shim | Victim::Daemon) => false,
            Self::Tool | Self::Quota | Self::ServerError | Self::CutStream => false,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Cli,
    Driver,
    Shim,
    Daemon,
    All,
}

const VICTIMS: [Victim; 5] =
    [Victim::Cli, Victim::Driver, Victim::Shim, Victim::Daemon, Victim::All];

/// What of the night an agent cannot do, for the table.
pub(super) fn left_out(vendor: Vendor) -> &'static str {
    match vendor {
        Vendor::Claude | Vendor::Codex | Vendor::Opencode => "",
        Vendor::Gemini => "without context after a restart, reset time and spend of a cut turn",
        Vendor::Pi => "without a question",
    }
}

/// A first turn with a tool, so that there is a conversation; then the hazards in an order of their own.
fn hazards(vendor: Vendor, seed: u64) -> Vec<Hazard> {
    let mut left = vec![Hazard::Quota, Hazard::ServerError, Hazard::CutStream];
    if vendor != Vendor::Pi {
        left.push(Hazard::Question);
    }
    left.extend(VICTIMS.map(Hazard::Kill));
    let mut random = Random::new(seed);
    let mut order = vec![Hazard::Tool];
    while !left.is_empty() {
        let at = random.below(left.len() as u64);
        order.push(left.swap_remove(usize::try_from(at).expect("a short list")));
    }
    order
}

fn begins(turn: usize) -> String {
    format!("begin-{turn}.")
}

fn closes(turn: usize) -> String {
    format!("close-{turn}.")
}

/// What the call that uses a turn's tool costs.
fn of_tool(turn: usize) -> Tokens {
    Tokens { input: 100 * turn as u64, output: 12, cached: 30 }
}

fn asked_file(turn: usize) -> String {
    format!("asked-{turn}.txt")
}

fn steps(vendor: Vendor, hazard: Hazard, turn: usize) -> Vec<Step> {
    let text = begins(turn);
    let costs = of_tool(turn);
    let tool = |line: String| Step::uses(text.clone(), Tool::Shell(line)).costs(costs);
    let mut steps = match hazard {
        Hazard::Tool => vec![tool(format!("echo start-{turn}. end-{turn}. >> tools.log"))],
        Hazard::Quota => vec![Step::Quota { for_s: vendor.quota_s() }],
        Hazard::ServerError => vec![Step::Fail { status: 500 }],
        Hazard::CutStream => vec![Step::Drop { text: format!("{text} {}", "cut off. ".repeat(9)) }],
        Hazard::Question => {
            let write =
                Tool::Write { path: asked_file(turn), content: format!("asked in {turn}\n") };
            let step = Step::uses(text, write).costs(costs);
            vec![step.clone(), step]
        }
        Hazard::Kill(_) => {
            let line = format!(
                "echo start-{turn}. >> tools.log; sleep {TOOL_S}; echo end-{turn}. >> tools.log"
            );
            vec![tool(line)]
        }
    };
    steps.push(Step::says(closes(turn)).after(Duration::from_millis(100)).costs(Tokens {
        input: costs.input + 1,
        output: 7,
        cached: 60,
    }));
    steps
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
    let park = format!("{{mode: park, allow: [{shell}]}}");
    let approvals = if setup.vendor == Vendor::Pi { "{mode: allow}" } else { &park };
    let plan = Plan {
        name: "night",
        login: Login::Subscriber,
        turns,
        approvals,
        check: "test -e finished",
    };
    let lab = Lab::start(setup, plan)?;
    let kind = setup.vendor.kind();
    println!("agents: {kind}: night of run {} with seed {seed}: {order:?}", lab.run);
    let night = Night { vendor: setup.vendor, order };
    Ok(lab.live(|lab| {
        live_through(lab, setup.vendor, &night.order)?;
        night.audit(lab);
        Ok(())
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
        Hazard::Quota => {
            let view = lab.until("the run waits for the provider", PATIENCE_S, |view| {
                (waits_for_provider(view) || rests(view)).then(|| view.clone())
            })?;
            ensure!(waits_for_provider(&view), "the run is {}: {}", view["state"], view["reason"]);
            Ok(())
        }
        Hazard::Question => answer(lab, turn),
        Hazard::Kill(victim) => {
            let started = format!("start-{turn}.");
            interrupt::wait_for("the tool runs", Duration::from_secs(PATIENCE_S), || {
                Ok(lab.file("tools.log").contains(&started).then_some(()))
            })?;
            kill(lab, vendor, victim)
        }
    }
}

fn waits_for_provider(view: &Value) -> bool {
    view["state"] == "waiting" && view["reason_code"] == "rate_limit"
}

/// The model repeats a call that a person has allowed, and the call is made.
fn answer(lab: &mut Lab, turn: usize) -> Result<()> {
    let asks = |lab: &Lab| {
        lab.until("the run asks", PATIENCE_S, |view| {
            (view["state"] == "blocked").then(|| view.clone())
        })
    };
    let view = asks(lab)?;
    lab.expect_state(&view, "blocked", Some("needs_input"));
    let question = view["blocked"]["question"].as_str().unwrap_or_default();
    let names_it = question.contains(&asked_file(turn));
    lab.expect(names_it, format!("the question does not say what is asked: {question:?}"));
    let before = lab.asked().len();
    interrupt::pause(LATE);
    lab.expect(lab.asked().len() == before, "the agent went on while a person was asked");
    lab.outlast.ask(&["answer", &lab.run, "--approve"])?;
    let view = lab.until("the answer is taken", PATIENCE_S, |view| {
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

fn kill(lab: &Lab, vendor: Vendor, victim: Victim) -> Result<()> {
    let view = lab.view().context("a daemon answers")?;
    let of = |name: &str| {
        let pid = view[name].as_u64().and_then(|pid| u32::try_from(pid).ok());
        pid.with_context(|| format!("the run has no {name}"))
    };
    let home = lab.outlast.home();
    let (driver, shim) = (of("pid")?, of("shim_pid")?);
    let cli = || {
        let mut found = process::children(driver, home);
        ensure!(!found.is_empty(), "the driver has no child");
        // Gemini is two processes: one that starts the other and hands its output on.
        if vendor == Vendor::Gemini {
            let second: Vec<u32> =
                found.iter().flat_map(|pid| process::children(*pid, home)).collect();
            found.extend(second);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_says_the_order_and_every_hazard_comes_once() {
        let night = |seed| hazards(Vendor::Claude, seed);
        assert_eq!(night(7), night(7));
        assert_ne!(night(7), night(8));
        for hazard in [Hazard::Quota, Hazard::ServerError, Hazard::CutStream, Hazard::Question] {
            assert_eq!(night(7).iter().filter(|it| **it == hazard).count(), 1, "{hazard:?}");
        }
        assert_eq!(night(7).len(), 5 + VICTIMS.len());
        assert!(!hazards(Vendor::Pi, 7).contains(&Hazard::Question));
    }
}
