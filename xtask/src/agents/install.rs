//! The pinned CLIs, installed by npm into a directory of the build.
//!
//! No script of a package is run: each native binary is a package of its own, and needs none.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// A package of npm, and the directory below the install directory that it is installed into.
#[derive(Debug, Clone, Copy)]
pub(super) struct Package {
    pub(super) dir: &'static str,
    pub(super) name: &'static str,
    pub(super) version: &'static str,
}

impl Package {
    fn is_installed(&self, root: &Path) -> bool {
        let manifest =
            root.join(self.dir).join("node_modules").join(self.name).join("package.json");
        let Ok(text) = fs::read(manifest) else { return false };
        let manifest: Value = serde_json::from_slice(&text).unwrap_or_default();
        manifest["version"] == self.version
    }
}

/// Makes sure that these packages are there.
pub(super) fn ensure(root: &Path, packages: &[Package]) -> Result<()> {
    for package in packages.iter().filter(|package| !package.is_installed(root)) {
        let prefix = root.join(package.dir);
        fs::create_dir_all(&prefix).with_context(|| format!("making {}", prefix.display()))?;
        let what = format!("{}@{}", package.name, package.version);
        println!("agents: installing {what} into {}", prefix.display());
        let mut npm = Command::new("npm");
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix"]);
        npm.arg(&prefix).arg(&what).stdin(Stdio::null());
        let output = npm.output().context("there is no npm")?;
        let told = String::from_utf8_lossy(&output.stderr);
        let told = told.trim().lines().last().unwrap_or_default().to_owned();
        ensure!(output.status.success(), "npm install {what}: {}: {told}", output.status);
        ensure!(package.is_installed(root), "npm has installed another version than {what}");
    }
    Ok(())
}
