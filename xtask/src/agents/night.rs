//! The night: one run that meets all that can happen to it, one hazard per turn, in an order that a seed says.
//!
//! Each turn's work is a turn of the model with a text that no other turn has, so that the log shows which conversation a
//! request belongs to. A check refutes every claim of done until the last turn has left its file.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::lab::{Lab, Plan, Setup, rests};
use super::model::{Asked, Fate, Step, Tokens, Tool};
use super::vendor::{Login, Vendor};
use crate::random::Random;
use crate::{interrupt, process};

/// So long after a quota's end the agent has asked again.
const LATEST: Duration = Duration::from_secs(12);
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
    let mut lab = Lab::start(setup, plan)?;
    println!(
        "agents: {}: night of run {} with seed {seed}: {order:?}",
        setup.vendor.kind(),
        lab.run
    );
    if let Err(error) = live_through(&mut lab, setup.vendor, &order) {
        lab.problems.push(format!("{error:#}"));
        return Ok(lab);
    }
    let night = Night { vendor: setup.vendor, order };
    night.audit(&mut lab);
    Ok(lab)
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

struct Night {
    vendor: Vendor,
    order: Vec<Hazard>,
}

impl Night {
    fn audit(&self, lab: &mut Lab) {
        let asked = lab.asked();
        let tools = lab.file("tools.log");
        for (hazard, turn) in self.order.iter().zip(1..) {
            let of_turn: Vec<&Asked> =
                asked.iter().filter(|asked| asked.turn == Some(turn)).collect();
            self.conversation(lab, turn, &of_turn);
            match hazard {
                Hazard::Tool | Hazard::ServerError | Hazard::CutStream => {}
                Hazard::Quota => self.quota(lab, turn, &of_turn),
                Hazard::Question => {
                    let written = lab.file(&asked_file(turn));
                    let is_so = written == format!("asked in {turn}\n");
                    lab.expect(is_so, format!("turn {turn}: the allowed file has {written:?}"));
                    note(lab, turn, of_turn.get(1).copied());
                }
                Hazard::Kill(Victim::Daemon) => {
                    let is_so = tools.contains(&format!("end-{turn}."));
                    lab.expect(is_so, format!("turn {turn}: the tool did not outlive the daemon"));
                    let is_one = of_turn.iter().all(|asked| !asked.last_user.contains(NOTE));
                    lab.expect(is_one, format!("turn {turn}: a daemon's death cost an attempt"));
                }
                // The driver goes on without its shim, and what it ended with counts or is asked again.
                Hazard::Kill(Victim::Shim) => {}
                Hazard::Kill(victim) => {
                    let goes_on = tools.contains(&format!("end-{turn}."));
                    lab.expect(!goes_on, format!("turn {turn}: a tool outlived its {victim:?}"));
                    note(lab, turn, of_turn.get(1).copied());
                }
            }
        }
        order(lab, &asked);
        self.spend(lab);
        leftovers(lab);
    }

    /// Every request has the conversation before it.
    fn conversation(&self, lab: &mut Lab, turn: usize, of_turn: &[&Asked]) {
        if turn == 1 || self.vendor == Vendor::Gemini {
            return;
        }
        let before = closes(turn - 1);
        let forgotten = of_turn.iter().filter(|asked| !asked.body.contains(&before)).count();
        let all = of_turn.len();
        lab.expect(
            forgotten == 0 && all > 0,
            format!("turn {turn}: {forgotten} of {all} requests do not have the turn before it"),
        );
    }

    fn quota(&self, lab: &mut Lab, turn: usize, of_turn: &[&Asked]) {
        let refused: Vec<_> =
            of_turn.iter().filter(|it| it.fate == Fate::Refused { status: 429 }).collect();
        let after = of_turn.iter().find(|it| it.fate == Fate::Whole);
        let (Some(first), Some(after)) = (refused.first(), after) else {
            lab.problems.push(format!("turn {turn}: the quota was not met"));
            return;
        };
        let waited = after.at.duration_since(first.at);
        let quota = Duration::from_secs(self.vendor.quota_s());
        let is_told = self.vendor != Vendor::Gemini;
        lab.expect(
            waited < quota + LATEST || !is_told,
            format!("turn {turn}: went on {waited:.1?} after a limit of {quota:?} was met"),
        );
        lab.expect(
            refused.len() <= self.vendor.tries(),
            format!("turn {turn}: asked {} times while the quota was used up", refused.len()),
        );
        note(lab, turn, Some(after));
    }

    /// What calls have used that were cut off before the agent said it. Of the output, none says it in time.
    fn unsaid(&self) -> Tokens {
        let of = |(hazard, turn): (&Hazard, usize)| match hazard.cuts_a_tool() {
            true if self.vendor.counts_at_once() => Tokens { input: 0, cached: 0, ..of_tool(turn) },
            true => of_tool(turn),
            false => Tokens::default(),
        };
        self.order.iter().zip(1..).map(of).fold(Tokens::default(), Tokens::and)
    }

    fn spend(&self, lab: &mut Lab) {
        let usage = lab.view().unwrap_or_default()["usage"].clone();
        let sent = lab.model.finished();
        let told = |name: &str| usage[name].as_u64().unwrap_or(0);
        let unsaid = self.unsaid();
        let is_floor = told("input_tokens") + unsaid.input >= sent.input
            && told("output_tokens") + unsaid.output >= sent.output
            && told("cached_tokens") + unsaid.cached >= sent.cached;
        // Gemini counts at the end of a turn, and a cut turn has none.
        lab.expect(
            is_floor || self.vendor == Vendor::Gemini,
            format!("usage is {usage}, less than the model has sent: {sent:?}"),
        );
        lab.expect(usage["known"] == false, "turns were cut off, and usage is said to be known");
    }
}

const NOTE: &str = "This is the same run, turn";

fn note(lab: &mut Lab, turn: usize, resumed: Option<&Asked>) {
    let is_there = resumed.is_some_and(|asked| asked.last_user.contains(&format!("{NOTE} {turn}")));
    lab.expect(is_there, format!("turn {turn}: the resumed attempt has no note"));
}

/// No turn is asked again once a later one was.
fn order(lab: &mut Lab, asked: &[Asked]) {
    let turns: Vec<Option<usize>> = asked.iter().map(|asked| asked.turn).collect();
    lab.expect(turns.is_sorted(), format!("a committed turn was asked again: {turns:?}"));
    let too_many = asked.iter().filter(|asked| asked.fate == Fate::TooMany).count();
    lab.expect(too_many == 0, format!("{too_many} requests of turns that the night does not have"));
}

/// Nothing lives but the daemon, and the waiter that would start another one.
fn leftovers(lab: &mut Lab) {
    let home = lab.outlast.home().to_owned();
    let daemon = lab.outlast.daemon_pid().ok().flatten();
    let words = |pid: u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).replace('\0', " ")
    };
    let is_meant = |pid: &u32| Some(*pid) == daemon || words(*pid).contains(" __wait ");
    let alive = || -> Vec<u32> {
        let ours = process::ours(&home).into_iter();
        ours.filter(|pid| process::is_alive(*pid) && !is_meant(pid)).collect()
    };
    let gone = interrupt::wait_for("all processes have ended", Duration::from_secs(10), || {
        Ok(alive().is_empty().then_some(()))
    });
    if gone.is_err() {
        let named =
            |pid: u32| format!("{pid} {}", words(pid).chars().take(120).collect::<String>());
        let left: Vec<String> = alive().into_iter().map(named).collect();
        lab.problems.push(format!("processes were left behind: {left:?}"));
    }
}
