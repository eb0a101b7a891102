//! `cargo xtask power`: no acknowledgement is lost when the power goes, wherever it goes.
//!
//! Real clients, daemons and shims do real work under strace, which records every write, name and sync of the
//! home and everything that clients were told. Then the power goes at each recorded point, many times over:
//! what was synced is there, of the rest a seed chooses. Each disk is opened and held against what clients had
//! been told by then; on some of them the real daemon is started, under another boot.
//! The model, and what it cannot show: decision 43.

mod cut;
mod disk;
mod record;
mod revive;
mod trace;
mod verdict;
pub(crate) mod work;

use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use self::cut::{Luck, Names, Replay, Syncs};
use self::disk::Disk;
use self::verdict::Told;
use crate::random::Random;
use crate::root::{self, Profile};
use crate::{interrupt, private, stamp};

/// At so many points the search itself is tried.
const CONTROLS: usize = 20;
/// So many problems are printed.
const SHOWN: usize = 20;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many disks to look at
    #[arg(long, default_value_t = 10_000)]
    cuts: usize,
    /// Repeats the choice of what survives; chosen and printed if absent
    #[arg(long)]
    seed: Option<u64>,
    /// How often the recorded work is done
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// On so many of the disks a daemon is started, too
    #[arg(long, default_value_t = 100)]
    daemons: usize,
    /// Let calls fail while the work is recorded
    #[arg(long)]
    fault: Option<Fault>,
    /// Record this program instead of building one; a debug build, which can be told of another boot
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

/// What goes wrong during the recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Fault {
    /// Every few syncs come back with an I/O error, having synced nothing
    Eio,
    /// Every few calls that may wait are interrupted
    Eintr,
}

/// One disk to look at.
#[derive(Debug, Clone, Copy)]
struct Cut {
    /// So many operations had ended.
    at: usize,
    names: Names,
    luck: Luck,
    seed: u64,
    with_daemon: bool,
}

struct Problem {
    what: String,
    cut: Cut,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    interrupt::listen()?;
    if !record::is_possible() {
        println!(
            "power: SKIPPED: there is no strace, so nothing can be recorded and nothing was shown"
        );
        return Ok(());
    }
    let seed = args.seed.unwrap_or_else(|| stamp::now_ns() % 1_000_000);
    let binary = match &args.binary {
        Some(binary) => std::path::absolute(binary)?,
        None => root::build(&["outlast"], Profile::Debug)?.join("outlast"),
    };
    let scratch = tempfile::Builder::new().prefix("power-").tempdir_in(root::target())?;
    let done = power(args, seed, &binary, &scratch.path().canonicalize()?);
    private::sweep(scratch.path())?;
    done.with_context(|| format!("power with seed {seed}"))
}

fn power(args: &Args, seed: u64, binary: &Path, scratch: &Path) -> Result<()> {
    let begin = Instant::now();
    println!("power: seed {seed}, recording {} rounds of work", args.rounds);
    let disk = record::record(binary, scratch, args)?;
    ensure!(args.fault != Some(Fault::Eio) || has_failed_syncs(&disk), "no sync was made to fail");
    let told = disk.ops.iter().filter(|op| matches!(op.what, disk::What::Told(_))).count();
    let syncs = disk.ops.iter().filter(|op| matches!(op.what, disk::What::Sync { .. })).count();
    let failed =
        disk.ops.iter().filter(|op| matches!(op.what, disk::What::SyncFailed { .. })).count();
    let logs = disk.ops.iter().filter(|op| disk::begins_log(&op.what)).count();
    println!(
        "power: {} operations recorded, among them {syncs} syncs ({failed} failed), {told} acknowledgements, \
         {logs} starts of the write-ahead log, in {:.0} s",
        disk.ops.len(),
        begin.elapsed().as_secs_f64()
    );
    let cuts = choose(args, seed, disk.ops.len());
    let points = cuts.iter().map(|cut| cut.at).collect::<std::collections::BTreeSet<_>>().len();
    control(&disk, scratch)?;
    let mut problems = look(&disk, &cuts, Syncs::Count, scratch)?;
    problems.extend(with_daemons(&disk, &cuts, binary, scratch)?);
    let daemons = cuts.iter().filter(|cut| cut.with_daemon).count();
    println!(
        "power: {} disks after cuts at {points} points, {daemons} of them with a daemon, in {:.0} s",
        cuts.len(),
        begin.elapsed().as_secs_f64()
    );
    if problems.is_empty() {
        println!("power: nothing that was acknowledged is missing");
        return Ok(());
    }
    for (what, cuts) in grouped(&problems).iter().take(SHOWN) {
        println!("power: {} × {what}, first at {:?}", cuts.len(), cuts[0]);
    }
    bail!("{} problems", problems.len())
}

fn has_failed_syncs(disk: &Disk) -> bool {
    disk.ops.iter().any(|op| matches!(op.what, disk::What::SyncFailed { .. }))
}

/// The same loss shows at many cuts: said once, with the first of them.
fn grouped(problems: &[Problem]) -> std::collections::BTreeMap<&str, Vec<Cut>> {
    let mut groups = std::collections::BTreeMap::<&str, Vec<Cut>>::new();
    for problem in problems {
        groups.entry(&problem.what).or_default().push(problem.cut);
    }
    groups
}

/// Every point in turn, again and again with other luck, until there are enough.
fn choose(args: &Args, seed: u64, operations: usize) -> Vec<Cut> {
    let mut random = Random::new(seed);
    let points = operations + 1;
    let daemon_each = args.cuts.checked_div(args.daemons).unwrap_or(usize::MAX).max(1);
    let mut cuts: Vec<Cut> = (0..args.cuts)
        .map(|number| {
            let (at, variant) = if args.cuts >= points {
                (number % points, number / points)
            } else {
                (number * points / args.cuts, usize::try_from(random.below(8)).unwrap_or(0))
            };
            let luck = match variant % 8 {
                0 => Luck::Nothing,
                1 => Luck::Sectors(50),
                2 => Luck::Everything,
                3 | 6 => Luck::Torn,
                4 => Luck::Sectors(10),
                _ => Luck::Sectors(90),
            };
            let names = if random.below(2) == 0 { Names::Journalled } else { Names::Posix };
            let with_daemon = number % daemon_each == daemon_each / 2;
            Cut { at, names, luck, seed: random.next(), with_daemon }
        })
        .collect();
    cuts.sort_by_key(|cut| cut.at);
    cuts
}

/// The same search on a disk whose syncs do nothing. It must find losses, or it would find none anywhere.
fn control(disk: &Disk, scratch: &Path) -> Result<()> {
    let cut = |number: usize| Cut {
        at: disk.ops.len() * number / CONTROLS,
        names: Names::Journalled,
        luck: Luck::Nothing,
        seed: number as u64,
        with_daemon: false,
    };
    let cuts: Vec<Cut> = (1..=CONTROLS).map(cut).collect();
    let found = look(disk, &cuts, Syncs::Lie, scratch)?.len();
    ensure!(
        found >= CONTROLS / 2,
        "a disk without syncs loses only {found} things: the search is blind"
    );
    println!("power: the search works: a disk that lies loses {found} things at {CONTROLS} points");
    Ok(())
}

/// Opens the journal of every disk; one thread for each half of the recording.
fn look(disk: &Disk, cuts: &[Cut], syncs: Syncs, scratch: &Path) -> Result<Vec<Problem>> {
    let threads = thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let parts: Vec<&[Cut]> = cuts.chunks(cuts.len().div_ceil(threads).max(1)).collect();
    thread::scope(|scope| {
        let parts: Vec<_> = parts
            .into_iter()
            .enumerate()
            .map(|(number, part)| {
                let at = scratch.join(format!("part{number}"));
                scope.spawn(move || look_at_part(disk, part, syncs, &at))
            })
            .collect();
        let mut problems = Vec::new();
        for part in parts {
            problems.extend(part.join().expect("looking does not panic")?);
        }
        Ok(problems)
    })
}

fn look_at_part(disk: &Disk, cuts: &[Cut], syncs: Syncs, scratch: &Path) -> Result<Vec<Problem>> {
    let mut replay = Replay::new(disk, syncs);
    let mut problems = Vec::new();
    for cut in cuts {
        interrupt::check()?;
        replay.advance(cut.at);
        let told = Told::new(&replay.told);
        let image = replay.cut(cut.names, cut.luck, cut.seed);
        if scratch.exists() {
            std::fs::remove_dir_all(scratch)?;
        }
        std::fs::create_dir(scratch)?;
        let found = verdict::judge(&image, &told, scratch, cut.seed)?;
        problems.extend(found.into_iter().map(|what| Problem { what, cut: *cut }));
    }
    Ok(problems)
}

fn with_daemons(disk: &Disk, cuts: &[Cut], binary: &Path, scratch: &Path) -> Result<Vec<Problem>> {
    let mut replay = Replay::new(disk, Syncs::Count);
    let mut problems = Vec::new();
    for cut in cuts.iter().filter(|cut| cut.with_daemon) {
        interrupt::check()?;
        replay.advance(cut.at);
        let told = Told::new(&replay.told);
        let image = replay.cut(cut.names, cut.luck, cut.seed);
        let found = revive::revive(&image, &told, binary, scratch)?;
        problems.extend(
            found
                .into_iter()
                .map(|what| Problem { what: format!("with a daemon: {what}"), cut: *cut }),
        );
    }
    Ok(problems)
}
