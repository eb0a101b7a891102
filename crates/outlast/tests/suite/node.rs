//! Node with packages of others, for tests of what we promise to others. Fetched once into the target directory.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::python::run;

/// A directory whose `node_modules` has these packages, under a name that no other set has. An error says why there is
/// none: without the registry there cannot be one.
pub(crate) fn with(name: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let base = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let place = base.join(name);
    let wanted = packages.join(" ");
    let has_them = || fs::read_to_string(place.join("packages")).is_ok_and(|there| there == wanted);
    if has_them() {
        return Ok(place);
    }
    run(Command::new("node").arg("--version"))?;
    // Made beside, so that one that is half made has another name; another test may be doing the same.
    let made = tempfile::TempDir::with_prefix_in("node", &base).expect("the directory is ours");
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix"]);
    run(npm.arg(made.path()).args(packages))?;
    fs::write(made.path().join("packages"), &wanted).expect("the directory is ours");
    if !has_them() {
        // One of other versions, which no test uses while this one runs.
        let _not_there = fs::remove_dir_all(&place);
    }
    let made = made.keep();
    match fs::rename(&made, &place) {
        Ok(()) => Ok(place),
        Err(_) if has_them() => Ok(place),
        Err(_) => Ok(made),
    }
}
