//! `cargo xtask agents`: real agent CLIs, driven by Outlast, against a scripted model on loopback.
//!
//! Each agent goes through a loop whose first claim is refuted, through a night in which everything is killed, and meets
//! a login that is not valid. Nothing leaves the machine but the installation of the pinned packages by npm.

mod auth;
mod install;
mod lab;
mod loops;
mod model;
mod night;
mod vendor;

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
    cells: [Cell; 3],
    seconds: f64,
}

enum Cell {
    Passed { note: &'static str },
    Failed { problems: usize },
    Skipped { why: String },
}

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
                parts(&setup, args.story, seed)
            }
            Err(error) => {
                println!("agents: {} is skipped: {error:#}", vendor.kind());
                [(); 3].map(|()| Cell::Skipped { why: "not installed".to_owned() })
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

/// The parts of one agent side by side: they mostly wait.
fn parts(setup: &Setup<'_>, with_story: bool, seed: u64) -> [Cell; 3] {
    thread::scope(|scope| {
        let night = scope.spawn(|| match with_story {
            true => part(setup, "night", night::left_out(setup.vendor), || night::run(setup, seed)),
            false => Cell::Skipped { why: "not asked for".to_owned() },
        });
        let looped = part(setup, "loop", "", || loops::run(setup));
        let auth = part(setup, "auth", "", || auth::run(setup));
        [looped, night.join().expect("the night does not panic"), auth]
    })
}

fn part(
    setup: &Setup<'_>,
    name: &str,
    note: &'static str,
    run: impl FnOnce() -> Result<Lab>,
) -> Cell {
    let kind = setup.vendor.kind();
    let begin = Instant::now();
    match run() {
        Ok(lab) if lab.problems.is_empty() => {
            println!("agents: {kind}: {name} passed in {:.1} s", begin.elapsed().as_secs_f64());
            Cell::Passed { note }
        }
        Ok(lab) => {
            let problems: String = lab.problems.iter().map(|it| format!("  - {it}\n")).collect();
            println!("agents: {kind}: {name} failed:\n{problems}{}", lab.report());
            Cell::Failed { problems: lab.problems.len() }
        }
        Err(error) => {
            println!("agents: {kind}: {name} failed: {error:#}");
            Cell::Failed { problems: 1 }
        }
    }
}

fn table(rows: &[Row], seed: u64) {
    let cell = |cell: &Cell| match cell {
        Cell::Passed { .. } => "passed".to_owned(),
        Cell::Failed { problems } => format!("FAILED {problems}"),
        Cell::Skipped { why } => format!("skipped: {why}"),
    };
    println!("agents: seed {seed}");
    println!(
        "{:<10} {:<9} {:<24} {:<24} {:<24} {:>7}",
        "agent", "version", "loop", "night", "auth", "seconds"
    );
    for Row { vendor, cells: [looped, night, auth], seconds } in rows {
        let (kind, version) = (vendor.kind(), vendor.version());
        println!(
            "{kind:<10} {version:<9} {:<24} {:<24} {:<24} {seconds:>7.1}",
            cell(looped),
            cell(night),
            cell(auth)
        );
        if let Cell::Passed { note } = night
            && !note.is_empty()
        {
            println!("{:<20} night {note}", "");
        }
    }
}

fn verdict(rows: &[Row], is_named: bool) -> Result<()> {
    let all = || rows.iter().flat_map(|row| &row.cells);
    let failed = all().filter(|cell| matches!(cell, Cell::Failed { .. })).count();
    let is_missing = |row: &&Row| matches!(&row.cells[0], Cell::Skipped { .. });
    let skipped = rows.iter().filter(is_missing).count();
    println!("agents: {} agents, {failed} parts failed, {skipped} agents skipped", rows.len());
    if failed > 0 {
        bail!("{failed} parts failed");
    }
    if is_named && skipped > 0 {
        bail!("{skipped} agents that were named are not there");
    }
    Ok(())
}
