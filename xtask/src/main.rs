//! The project's own commands, one file or folder each: `cargo xtask <command>`.
//!
//! Nothing here is shipped, and nothing shipped depends on it.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "these are commands for a person at a terminal"
)]
#![expect(clippy::disallowed_methods, reason = "a developer's tool meets the world directly")]

mod agents;
mod bench;
mod ci;
mod interrupt;
mod power;
mod private;
mod process;
mod random;
mod root;
mod sim;
mod soak;
mod stamp;
mod stand_in;
mod tidy;
mod web_shots;
mod web_types;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// The project's own commands
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", max_term_width = 100)]
enum Command {
    /// Everything that a change must pass, step by step
    Ci(ci::Args),
    /// The rules of the tree that no compiler checks
    Tidy,
    /// The daemon over a faulty world, seed by seed
    Sim(sim::Args),
    /// Real processes, killed at random for a while, then audited
    Soak(soak::Args),
    /// The power goes, wherever it can: nothing acknowledged is lost
    Power(power::Args),
    /// Real agents in loops and in bad nights, against a scripted model on loopback
    Agents(agents::Args),
    /// The figures of the design, each held against something measured beside it
    Bench(bench::Args),
    /// Pictures of every page of `outlast web`, at three widths, light and dark
    WebShots(web_shots::Args),
    /// The page's modules against the daemon's OpenAPI document, by TypeScript
    WebTypes(web_types::Args),
    /// Writes the monotonic clock to a file: the child whose start is measured
    #[command(name = "__stamp", hide = true)]
    Stamp { file: PathBuf },
    /// An agent that costs nothing, for the bench
    #[command(name = "__stand-in", hide = true)]
    StandIn(stand_in::Args),
    /// What is done while it is recorded
    #[command(name = "__power-work", hide = true)]
    PowerWork(power::work::Args),
}

fn main() -> ExitCode {
    let stamp = stamp::now_ns();
    let done = match Command::parse() {
        Command::Ci(args) => ci::run(&args),
        Command::Tidy => tidy::run(),
        Command::Sim(args) => sim::run(&args),
        Command::Soak(args) => soak::run(&args),
        Command::Power(args) => power::run(&args),
        Command::Agents(args) => agents::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::WebShots(args) => web_shots::run(&args),
        Command::WebTypes(args) => web_types::run(&args),
        Command::PowerWork(args) => power::work::run(&args),
        Command::StandIn(args) => stand_in::run(&args),
        Command::Stamp { file } => stamp::write(&file, stamp),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
