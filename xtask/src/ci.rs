//! `cargo xtask ci`: everything a change must pass, stopping at the first thing that fails.

use std::process::Stdio;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::root::cargo;
use crate::{sim, tidy};

/// The same seeds each time: new ones are for `cargo xtask sim`.
const SIM_SEEDS: u64 = 1000;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only what reads the code: formatting, clippy and tidy
    #[arg(long)]
    lints: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let begin = Instant::now();
    step("format", || cargo_step(&["fmt", "--all", "--check"]))?;
    step("clippy", || {
        cargo_step(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
    })?;
    step("clippy of the features", || {
        let both = ["-p", "outlast", "-p", "outlast-daemon", "--features", "outlast/otlp"];
        cargo_step(&[&["clippy"][..], &both, &["--", "-D", "warnings"]].concat())
    })?;
    step("tidy", tidy::run)?;
    if !args.lints {
        step("tests", tests)?;
        step("doc tests", || cargo_step(&["test", "--workspace", "--doc"]))?;
        step("sim", || sim::run(&sim::Args::range(0, SIM_SEEDS)))?;
    }
    println!("ci: all passed in {:.1} s", begin.elapsed().as_secs_f64());
    Ok(())
}

fn tests() -> Result<()> {
    let version =
        cargo().args(["nextest", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if version.is_ok_and(|status| status.success()) {
        cargo_step(&["nextest", "run", "--workspace"])
    } else {
        cargo_step(&["test", "--workspace", "--all-targets"])
    }
}

fn step(name: &str, body: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("ci: {name}");
    let begin = Instant::now();
    body().with_context(|| name.to_owned())?;
    println!("ci: {name} passed in {:.1} s", begin.elapsed().as_secs_f64());
    Ok(())
}

fn cargo_step(args: &[&str]) -> Result<()> {
    let status =
        cargo().args(args).env_remove("RUST_BACKTRACE").status().context("starting cargo")?;
    ensure!(status.success(), "cargo {} ended with {status}", args.join(" "));
    Ok(())
}
