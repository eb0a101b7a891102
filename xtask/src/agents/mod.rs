//! `cargo xtask agents`: real agent CLIs, driven by Outlast, against a scripted model on loopback.
//!
//! Each agent goes through a loop whose first claim is refuted, through a night in which everything is killed, and meets
//! a login that is not valid, the limits of its provider, and a fork. Nothing leaves the machine but the installation of the pinned packages by npm.

mod auth;
mod background;
mod fork;
mod install;
mod lab;
mod limits;
mod loops;
pub(crate) mod model;
mod night;
pub(crate) mod settle;
mod tools;
pub(crate) mod vendor;

use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use self::lab::{Lab, Setup};
use self::vendor::Vendor;
use crate::root::{self, Profile};
use crate::{interrupt, private, stamp};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these agents; each of them has to be there
    #[arg(long, value_delimiter = ',')]
    only: Vec<Vendor>,
    /// Repeats the order of a night's hazards; chosen and printed if absent
    #[arg(long)]
    seed: Option<u64>,
    /// The night with all its hazards; `--story false` leaves it out
    #[arg(long, default_value_t = true, num_args = 0..=1, default_missing_value = "true", action = clap::ArgAction::Set)]
    story: bool,
    /// Only these parts: night, loop, auth, windows, backoff, outage, empty, background, tools, fork
    #[arg(long, value_delimiter = ',')]
    part: Vec<String>,
    /// Where the CLIs are, or are installed: `agents` in the build directory if absent
    #[arg(long, value_name = "DIR")]
    install_dir: Option<PathBuf>,
    /// Drive with this program instead of building one
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Keep the scratch directory
    #[arg(long)]
    keep: bool,
}

/// One agent's line in the table.
struct Row {
    vendor: Vendor,
    cells: Vec<Cell>,
    seconds: f64,
}

enum Cell {
    Passed,
    Failed {
        problems: usize,
    },
    /// Not asked for, or the agent is not there.
    Skipped,
    /// The agent has no such thing.
    Absent,
}

/// Something that an agent is put through.
struct Part {
    name: &'static str,
    is_for: fn(Vendor) -> bool,
    run: fn(&Setup<'_>, u64) -> Result<Lab>,
}

const NIGHT: &str = "night";

/// What takes longest comes first, so that the rest runs beside it.
const PARTS: [Part; 10] = [
    Part { name: NIGHT, is_for: |_| true, run: night::run },
    Part { name: "loop", is_for: |_| true, run: |setup, _| loops::run(setup) },
    Part { name: "auth", is_for: |_| true, run: |setup, _| auth::run(setup) },
    Part {
        name: "windows",
        is_for: limits::reports_windows,
        run: |setup, _| limits::windows(setup),
    },
    Part {
        name: "backoff",
        is_for: limits::gives_up_at_quota,
        run: |setup, _| limits::backoff(setup),
    },
    Part {
        name: "outage",
        is_for: limits::gives_up_at_outage,
        run: |setup, _| limits::outage(setup),
    },
    Part { name: "empty", is_for: limits::sees_loops, run: |setup, _| limits::empty(setup) },
    Part {
        name: "background",
        is_for: |vendor| vendor == Vendor::Claude,
        run: |setup, _| background::run(setup),
    },
    Part { name: "tools", is_for: |_| true, run: |setup, _| tools::run(setup) },
    Part { name: "fork", is_for: fork::copies, run: |setup, _| fork::run(setup) },
];

pub(crate) fn run(args: &Args) -> Result<()> {
    interrupt::listen()?;
    let seed = args.seed.unwrap_or_else(|| stamp::now_ns() % 1_000_000);
    let binary = match &args.binary {
        Some(binary) => std::path::absolute(binary)?,
        None => root::build(&["outlast"], Profile::Debug)?.join("outlast"),
    };
    let installed = match &args.install_dir {
        Some(dir) => std::path::absolute(dir)?,
        None => root::target().join("agents"),
    };
    let mut scratch = tempfile::Builder::new()
        .prefix("agents-")
        .tempdir_in(root::target())
        .context("a scratch directory")?;
    scratch.disable_cleanup(args.keep);
    let vendors = if args.only.is_empty() { Vendor::ALL.to_vec() } else { args.only.clone() };
    let mut rows = Vec::new();
    for vendor in vendors {
        interrupt::check()?;
        let begin = Instant::now();
        let cells = match vendor.command(&installed) {
            Ok(command) => {
                let setup =
                    Setup { binary: &binary, scratch: scratch.path(), vendor, command: &command };
                parts(&setup, args, seed)
            }
            Err(error) => {
                println!("agents: {} is skipped: {error:#}", vendor.name());
                PARTS.iter().map(|_| Cell::Skipped).collect()
            }
        };
        rows.push(Row { vendor, cells, seconds: begin.elapsed().as_secs_f64() });
    }
    private::sweep(scratch.path())?;
    if args.keep {
        println!("agents: kept {}", scratch.path().display());
    }
    table(&rows, seed);
    verdict(&rows, !args.only.is_empty())
}

/// The night beside the other parts, which come one after the other: all of them mostly wait.
fn parts(setup: &Setup<'_>, args: &Args, seed: u64) -> Vec<Cell> {
    let [night, others @ ..] = &PARTS;
    let run = |it: &Part| {
        let is_asked_for = args.part.is_empty() || args.part.iter().any(|name| name == it.name);
        match (it.is_for)(setup.vendor) {
            false => Cell::Absent,
            true if !is_asked_for || (it.name == NIGHT && !args.story) => Cell::Skipped,
            true => part(setup, it, seed),
        }
    };
    thread::scope(|scope| {
        let night = scope.spawn(|| run(night));
        let others: Vec<Cell> = others.iter().map(run).collect();
        let night = night.join().expect("the night does not panic");
        [night].into_iter().chain(others).collect()
    })
}

fn part(setup: &Setup<'_>, part: &Part, seed: u64) -> Cell {
    let (agent, name) = (setup.vendor.name(), part.name);
    let begin = Instant::now();
    match (part.run)(setup, seed) {
        Ok(lab) if lab.problems.is_empty() => {
            println!("agents: {agent}: {name} passed in {:.1} s", begin.elapsed().as_secs_f64());
            Cell::Passed
        }
        Ok(lab) => {
            let problems: String = lab.problems.iter().map(|it| format!("  - {it}\n")).collect();
            println!("agents: {agent}: {name} failed:\n{problems}{}", lab.report());
            Cell::Failed { problems: lab.problems.len() }
        }
        Err(error) => {
            println!("agents: {agent}: {name} failed: {error:#}");
            Cell::Failed { problems: 1 }
        }
    }
}

fn table(rows: &[Row], seed: u64) {
    println!("agents: seed {seed}");
    let line = |first: [&str; 2], cells: Vec<String>, last: &str| {
        let cells: String = cells.iter().map(|cell| format!(" {cell:<10}")).collect();
        println!("{:<13} {:<9}{cells} {last:>7}", first[0], first[1]);
    };
    line(["agent", "version"], PARTS.iter().map(|it| it.name.to_owned()).collect(), "seconds");
    for Row { vendor, cells, seconds } in rows {
        let told = cells.iter().map(Cell::told).collect();
        line([vendor.name(), vendor.version()], told, &format!("{seconds:.1}"));
        let left_out = night::left_out(*vendor);
        if matches!(cells[0], Cell::Passed) && !left_out.is_empty() {
            println!("{:<23} night {left_out}", "");
        }
    }
    println!("agents: - is what an agent does not have; its page says so: docs/agents.md");
}

impl Cell {
    fn told(&self) -> String {
        match self {
            Self::Passed => "passed".to_owned(),
            Self::Failed { problems } => format!("FAILED {problems}"),
            Self::Skipped => "skipped".to_owned(),
            Self::Absent => "-".to_owned(),
        }
    }
}

fn verdict(rows: &[Row], is_named: bool) -> Result<()> {
    let all = || rows.iter().flat_map(|row| &row.cells);
    let failed = all().filter(|cell| matches!(cell, Cell::Failed { .. })).count();
    let passed = all().filter(|cell| matches!(cell, Cell::Passed)).count();
    let is_missing =
        |row: &&Row| !row.cells.iter().any(|it| matches!(it, Cell::Passed | Cell::Failed { .. }));
    let skipped = rows.iter().filter(is_missing).count();
    println!(
        "agents: {} agents, {passed} parts passed, {failed} failed, {skipped} agents skipped",
        rows.len()
    );
    if failed > 0 {
        bail!("{failed} parts failed");
    }
    if is_named && skipped > 0 {
        bail!("{skipped} agents that were named are not there");
    }
    Ok(())
}
