//! What a driven turn costs beside the agent's own turn, and what fifty of them at once cost.
//!
//! With Codex, the fastest of the CLIs, against a scripted model; and with a stand-in that does nothing, so that what is
//! left is ours.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::agent_alone::AgentAlone;
use super::context::Context;
use super::live::time_of;
use super::row::{Row, Target, median, ms, shown};
use crate::agents::model::{Model, Step};
use crate::agents::settle::{self, Login};
use crate::agents::vendor::Vendor;
use crate::private::Private;
use crate::process::{self, Memory, Sleeps};
use crate::{interrupt, root};

/// Of the turn of the fastest CLI, in percent.
const OWN_PERCENT: f64 = 3.0;
const DRIVER_MIB: f64 = 5.0;
/// Of the daemon without the pages of its program: when idle, and for each run.
const OWN_IDLE_MIB: f64 = 3.0;
const RUN_MIB: f64 = 0.048;
const AGENTS: usize = 50;

const WATCHED: Duration = Duration::from_secs(3);
/// Longer than a thread without work stays.
const SETTLED: Duration = Duration::from_secs(4);

pub(super) fn measure(context: &Context) -> Result<Vec<Row>> {
    let own = Lane::stand_in(context)?.race(context)?;
    let codex = match Vendor::Codex.find(&root::target().join("agents")) {
        Ok(command) => Some(Lane::codex(context, command)?.race(context)?),
        Err(_) => None,
    };
    let mut rows = turns(&own, codex.as_ref());
    rows.extend(fifty(context)?);
    Ok(rows)
}

fn turns(own: &Race, codex: Option<&Race>) -> Vec<Row> {
    let beside = |race: &Race| {
        format!(
            "{} driven, {} alone, {} rounds by turns; {} of processors for a driven turn with all of it",
            shown(race.driven),
            shown(race.alone),
            race.rounds,
            shown(race.processors)
        )
    };
    let Some(codex) = codex else {
        let why =
            format!("codex is not installed (cargo xtask agents); a stand-in: {}", beside(own));
        return ["agent-turn", "agent-own"].map(|name| Row::skipped(name, why.clone())).into();
    };
    let percent = |difference: f64| 100.0 * difference / ms(codex.alone);
    let how = format!("what a turn of codex costs more than alone: {}", beside(codex));
    let turn = Row::figure(
        "agent-turn",
        percent(codex.more_ms),
        "%",
        Target::AtMost(OWN_PERCENT),
        format!("{:.2} ms, {how}", codex.more_ms),
    );
    let how = format!(
        "{:.2} ms for a stand-in that does nothing, of a turn of codex alone ({}): {}",
        own.more_ms,
        shown(codex.alone),
        beside(own)
    );
    let own = Row::figure("agent-own", percent(own.more_ms), "%", Target::AtMost(OWN_PERCENT), how);
    vec![turn, own]
}

/// An agent, by Outlast and alone.
struct Lane {
    outlast: Private,
    file: PathBuf,
    project: PathBuf,
    argv: Vec<String>,
    env: Vec<(String, String)>,
    /// Answers as long as this lives.
    _model: Option<Model>,
}

struct Race {
    driven: Duration,
    alone: Duration,
    /// What a turn costs more when it is driven than in the same round alone.
    more_ms: f64,
    rounds: usize,
    /// What the processors did for a driven turn: the daemon, the shim, the driver and the agent.
    processors: Duration,
}

impl Lane {
    fn stand_in(context: &Context) -> Result<Self> {
        Self::new(context, "claude", &stand_in(&[])?, "", &[], None)
    }

    fn codex(context: &Context, command: Vec<String>) -> Result<Self> {
        let model = Model::start(vec![vec![Step::says("It is done.")]])?;
        let home = context.scratch.join("codex-home");
        let env = settle::settle(Vendor::Codex, &home, model.port(), Login::Key)?;
        let own = Vendor::Codex.settings();
        Self::new(context, "codex", &command, own, &env, Some(model))
    }

    fn new(
        context: &Context,
        kind: &str,
        command: &[String],
        own: &str,
        env: &[(&'static str, String)],
        model: Option<Model>,
    ) -> Result<Self> {
        let outlast = context.outlast()?.with_bare_env();
        let home = outlast.home().join("user");
        let project = outlast.home().join("project");
        for dir in [&home, &project] {
            std::fs::create_dir_all(dir)?;
        }
        let path = "/usr/local/bin:/usr/bin:/bin".to_owned();
        let all = [("HOME", home.to_string_lossy().into_owned()), ("PATH", path)];
        let all: Vec<_> = all.into_iter().chain(env.iter().cloned()).collect();
        let mut outlast = outlast;
        for (name, value) in &all {
            outlast = outlast.with_env(name, value.as_ref());
        }
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        let file = outlast.home().join("WORKFLOW.md");
        let text = format!(
            "---\nagent:\n  kind: {kind}\n  command: {}\n{own}  env: [{}]\napprovals: {{mode: allow}}\n---\nTurn {{{{ turn }}}} of the work.\n",
            serde_json::to_string(command)?,
            names.join(", ")
        );
        std::fs::write(&file, text).context("a loop file")?;
        outlast.start_daemon()?;
        let env = all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(Self { outlast, file, project, argv: command.to_vec(), env, _model: model })
    }

    /// The two ways by turns, so that both meet the same machine.
    fn race(&self, context: &Context) -> Result<Race> {
        let (run, _) = self.driven()?;
        let attempt = self.outlast.home().join("state/runs").join(run).join("t1.a1");
        let argv = self.argv_of(&attempt)?;
        let alone = AgentAlone::like(&attempt, argv, self.env.clone(), &self.project)?;
        let (mut theirs, mut ours) = (Vec::new(), Vec::new());
        let rounds = context.rounds();
        alone.turn()?;
        let daemon = self.outlast.daemon_pid()?.context("the daemon was started")?;
        let before = process::processor_time(daemon)?;
        for round in 0..rounds {
            interrupt::check()?;
            if round % 2 == 0 {
                theirs.push(alone.turn()?);
            }
            ours.push(self.driven()?.1);
            if round % 2 == 1 {
                theirs.push(alone.turn()?);
            }
        }
        let more = ours.iter().zip(&theirs).map(|(ours, theirs)| ms(*ours) - ms(*theirs));
        let more_ms = median(more.collect());
        let used = process::processor_time(daemon)?.saturating_sub(before);
        let processors = used / u32::try_from(rounds)?;
        Ok(Race { driven: median(ours), alone: median(theirs), more_ms, rounds, processors })
    }

    /// One turn by Outlast, from the decision to start it to the decision to commit it: launch, driver, files, and the
    /// append of one of the two.
    fn driven(&self) -> Result<(String, Duration)> {
        let (file, project) = (self.file.to_string_lossy(), self.project.to_string_lossy());
        let start = ["run", "-d", "-f", &file, "--dir", &project, "--task", "work"];
        let run = self.outlast.ask(&start)?;
        let waited = self.outlast.output(&["wait", &run])?;
        ensure!(waited.status.success(), "run {run} ended with {}", waited.status);
        let events = self.outlast.events(&run)?;
        let at = |kind: &str| {
            let event = events.iter().find(|it| it["kind"] == kind);
            time_of(event.with_context(|| format!("run {run} has no {kind}"))?)
        };
        let took = at("TurnCommitted")?.saturating_sub(at("TurnStarted")?);
        Ok((run, took))
    }

    /// The command with the arguments that the adapter adds, as the driver has started it.
    fn argv_of(&self, attempt: &std::path::Path) -> Result<Vec<String>> {
        let orders = std::fs::read(attempt.join("drive.json"))?;
        let orders: Value = serde_json::from_slice(&orders)?;
        let more: &[&str] = match orders["kind"].as_str() {
            Some("codex") => &["app-server"],
            _ => &[],
        };
        Ok(self.argv.iter().cloned().chain(more.iter().map(|it| (*it).to_owned())).collect())
    }
}

/// This program, as an agent.
fn stand_in(args: &[&str]) -> Result<Vec<String>> {
    let this = std::env::current_exe()?.to_string_lossy().into_owned();
    let args = args.iter().map(|it| (*it).to_owned());
    Ok([this, "__stand-in".to_owned()].into_iter().chain(args).collect())
}

/// Fifty agents that say something each second.
fn fifty(context: &Context) -> Result<Vec<Row>> {
    let command = stand_in(&["--says", "600"])?;
    let lane = Lane::new(context, "claude", &command, "", &[], None)?;
    let daemon = lane.outlast.daemon_pid()?.context("the daemon was started")?;
    let (file, project) = (lane.file.to_string_lossy(), lane.project.to_string_lossy());
    let start = ["run", "-d", "-f", &file, "--dir", &project, "--task", "work"];
    let runs = (0..AGENTS)
        .map(|_| {
            interrupt::check()?;
            lane.outlast.ask(&start)
        })
        .collect::<Result<Vec<_>>>()?;
    let drivers = runs.iter().map(|run| driver(&lane.outlast, run)).collect::<Result<Vec<_>>>()?;
    interrupt::pause(SETTLED);
    let before = Sleeps::of(daemon)?;
    interrupt::pause(WATCHED);
    let woken = Sleeps::of(daemon)?.since(&before);
    let rss = process::memory_mib(daemon, Memory::Now)?;
    let own = process::memory_mib(daemon, Memory::Anonymous)?;
    let of = |measure: &dyn Fn(u32) -> Result<f64>| -> Result<f64> {
        Ok(median(drivers.iter().map(|pid| measure(*pid)).collect::<Result<Vec<_>>>()?))
    };
    let memory = of(&|pid| process::memory_mib(pid, Memory::Now))?;
    let peak = of(&|pid| process::memory_mib(pid, Memory::Peak))?;
    let share = of(&process::proportional_mib)?;
    let most = RUN_MIB.mul_add(AGENTS as f64, OWN_IDLE_MIB);
    let when = format!("with {AGENTS} agents that say a line each second");
    Ok(vec![
        Row::figure(
            "agent-memory",
            memory,
            "MiB",
            Target::AtMost(DRIVER_MIB),
            format!(
                "driver RSS, the median of {AGENTS}; at its most {peak:.2} MiB, {share:.2} MiB with shared pages divided (PSS)"
            ),
        ),
        Row::figure(
            "agents-50",
            own,
            "MiB",
            Target::AtMost(most),
            format!("the daemon's own memory {when}; {rss:.1} MiB with the pages of its program"),
        ),
        Row::figure(
            "agents-50-idle",
            woken as f64,
            "",
            Target::AtMost(0.0),
            format!("wakeups of the daemon's threads in {} s {when}", WATCHED.as_secs()),
        ),
    ])
}

fn driver(outlast: &Private, run: &str) -> Result<u32> {
    interrupt::wait_for("the driver runs", Duration::from_secs(30), || {
        let pid = outlast.show(run)?["pid"].as_u64();
        Ok(pid.and_then(|pid| u32::try_from(pid).ok()))
    })
}
