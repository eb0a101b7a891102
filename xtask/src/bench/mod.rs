//! `cargo xtask bench`: the figures of the design, each held against something measured beside it.
//!
//! Always the release build, on the disk that `target` is on, in a home of its own. Nothing here fails a
//! build: a figure out of reach is printed as such.

mod agent_alone;
mod agents;
mod bare;
mod beside;
mod calls;
mod context;
mod floor;
mod history;
mod journal;
mod latency;
mod lists;
mod live;
mod loops;
mod made;
mod peers;
mod row;
mod snapshots;
mod terminal;
mod triggers;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use self::context::Context;
use self::row::Row;
use crate::root::{self, Profile};
use crate::{interrupt, private};

#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// Fewer rounds, runs and bytes
    #[arg(long)]
    quick: bool,
    /// Only the rows whose name begins like this
    #[arg(long, value_name = "ROW")]
    only: Option<String>,
    /// Print a JSON array
    #[arg(long)]
    json: bool,
    /// Measure this program instead of building one
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Compare with the release builds of `outlast` and `xtask` in this directory, measured by turns
    #[arg(long, value_name = "DIR", conflicts_with_all = ["binary", "json"])]
    beside: Option<PathBuf>,
    /// How often each build is measured; more turns for a disk that changes its mind
    #[arg(long, value_name = "N", default_value_t = 3, requires = "beside")]
    turns: usize,
    /// Only the figures of the page, in Chromium: 10,000 runs, 1 GiB of output, bytes and memory
    #[arg(long, conflicts_with_all = ["quick", "only", "json", "beside"])]
    web: bool,
    /// Where to work; made and removed if absent
    #[arg(long, hide = true)]
    scratch: Option<PathBuf>,
}

/// Rows that are measured together, and their names.
type Group = (&'static [&'static str], fn(&Context) -> Result<Vec<Row>>);

const GROUPS: [Group; 12] = [
    (&["journal-one", "journal-many", "journal-bare"], journal::measure),
    (&["turn", "exec"], latency::measure),
    (
        &["call-one", "call-many", "call-memoised", "mcp-initialize", "mcp-memory", "call-shell"],
        calls::measure,
    ),
    (&["loop-turn", "loops-512", "loop-10k", "loop-10k-memory"], loops::measure),
    (&["add", "add-10k"], peers::measure),
    (&["ps-10k", "memory-10k"], lists::measure),
    (&["memory-idle", "idle", "memory-live", "memory-shim", "idle-live", "adopt"], live::measure),
    (&["idle-triggers", "memory-triggers"], triggers::measure),
    (&["output", "output-secrets", "output-memory", "attach", "attach-history"], history::measure),
    (&["tty"], terminal::measure),
    (&["snapshot", "snapshot-restore", "snapshot-growth"], snapshots::measure),
    (&["agent-turn", "agent-own", "agent-memory", "agents-50", "agents-50-idle"], agents::measure),
];

pub(crate) fn run(args: &Args) -> Result<()> {
    interrupt::listen()?;
    if args.web {
        return web(args);
    }
    if let Some(before) = &args.beside {
        return beside::run(args, before);
    }
    match (&args.scratch, &args.binary) {
        (Some(scratch), Some(binary)) => measure(args, scratch, binary),
        (None, Some(binary)) => in_scratch(|scratch| measure(args, scratch, binary)),
        (_, None) => in_scratch(|scratch| in_release(args, scratch)),
    }
}

/// The suite has the browser; it measures the release build.
fn web(args: &Args) -> Result<()> {
    let binary = match &args.binary {
        Some(binary) => binary.clone(),
        None => root::build(&["outlast"], Profile::Dist)?.join("outlast"),
    };
    let binary = binary.canonicalize().with_context(|| binary.display().to_string())?;
    let figures = ["web_figures::", "--ignored", "--nocapture", "--test-threads=1"];
    let mut suite = root::suite(&figures);
    let status = suite.env("OUTLAST_PROGRAM", binary).status().context("starting the suite")?;
    ensure!(status.success(), "the figures of the page ended with {status}");
    Ok(())
}

/// Whatever was started in the scratch directory is gone afterwards, even if the measuring process died.
fn in_scratch(body: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let scratch = tempfile::Builder::new()
        .prefix("bench-")
        .tempdir_in(root::target())
        .context("a scratch directory")?;
    let done = body(scratch.path());
    private::sweep(scratch.path())?;
    done
}

/// The journal is measured in this process, so this process has to be a release build too.
fn in_release(args: &Args, scratch: &Path) -> Result<()> {
    let programs = root::build(&["outlast", "xtask"], Profile::Dist)?;
    let mut command = Command::new(programs.join("xtask"));
    command
        .arg("bench")
        .arg("--scratch")
        .arg(scratch)
        .arg("--binary")
        .arg(programs.join("outlast"));
    command.args(args.quick.then_some("--quick")).args(args.json.then_some("--json"));
    command.args(args.only.iter().flat_map(|only| ["--only", only.as_str()]));
    let status = command
        .env_remove("RUST_BACKTRACE")
        .status()
        .context("starting the release build of xtask")?;
    ensure!(status.success(), "the bench ended with {status}");
    Ok(())
}

fn measure(args: &Args, scratch: &Path, binary: &Path) -> Result<()> {
    let context = Context::new(args.quick, scratch, binary)?;
    let is_wanted = |name: &str| args.only.as_deref().is_none_or(|only| name.starts_with(only));
    let mut told = Vec::new();
    for (names, group) in
        GROUPS.iter().filter(|(names, _)| names.iter().any(|name| is_wanted(name)))
    {
        interrupt::check()?;
        let rows = group(&context).with_context(|| names.join(", "))?;
        let rows: Vec<_> = rows.into_iter().filter(|row| is_wanted(row.name)).collect();
        if !args.json {
            rows.iter().for_each(|row| println!("{row}"));
        }
        told.extend(rows);
    }
    if args.json {
        println!("{}", serde_json::Value::Array(told.iter().map(Row::to_json).collect()));
    }
    ensure!(!told.is_empty(), "no row begins like that; there are {}", names());
    Ok(())
}

fn names() -> String {
    GROUPS.iter().flat_map(|(names, _)| *names).copied().collect::<Vec<_>>().join(", ")
}
