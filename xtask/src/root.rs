//! Where the repository and its build are, and how its own programs are built.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

pub(crate) fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies in the repository").to_owned()
}

pub(crate) fn target() -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    repository().join(target)
}

/// Cargo as the caller uses it, in the repository.
pub(crate) fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(repository());
    command
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    Debug,
    Release,
    /// What is shipped and measured.
    Dist,
}

/// Builds packages and says where their programs are.
pub(crate) fn build(packages: &[&str], profile: Profile) -> Result<PathBuf> {
    let mut command = cargo();
    command.arg("build");
    for package in packages {
        command.args(["-p", package]);
    }
    let folder = match profile {
        Profile::Debug => "debug",
        Profile::Release => {
            command.arg("--release");
            "release"
        }
        Profile::Dist => {
            command.args(["--profile", "dist"]);
            "dist"
        }
    };
    let status = command.status().context("starting cargo")?;
    ensure!(status.success(), "cargo build of {} ended with {status}", packages.join(", "));
    Ok(target().join(folder))
}

/// The suite that drives the built program, with a name of tests and what else its binary takes.
pub(crate) fn suite(args: &[&str]) -> Command {
    let mut command = cargo();
    command.args(["test", "-p", "outlast", "--test", "suite", "--"]).args(args);
    command.env_remove("RUST_BACKTRACE");
    command
}
