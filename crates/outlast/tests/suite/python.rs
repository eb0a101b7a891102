//! Python with packages of others, for tests of what we promise to others. Fetched once into the target directory.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::harness::text;

/// A python that has these packages, under a name that no other set has. An error says why there is none: without the
/// package index there cannot be one. Its programs are to be run as modules, since the environment was moved.
pub(crate) fn with(name: &str, packages: &[&str]) -> Result<PathBuf, String> {
    let base = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let venv = base.join(name);
    let done = |venv: &PathBuf| venv.join("packages");
    let wanted = packages.join(" ");
    let has_them = || {
        fs::read_to_string(done(&venv))
            .is_ok_and(|there| there == wanted)
            .then(|| venv.join("bin/python"))
    };
    if let Some(python) = has_them() {
        return Ok(python);
    }
    // Made beside, so that one that is half made has another name; another test may be doing the same.
    let made = tempfile::TempDir::with_prefix_in("venv", &base).expect("the directory is ours");
    run(Command::new("python3").args(["-m", "venv"]).arg(made.path()))?;
    let mut pip = Command::new(made.path().join("bin/python"));
    run(pip
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"])
        .args(packages))?;
    fs::write(made.path().join("packages"), &wanted).expect("the directory is ours");
    let made = made.keep();
    if has_them().is_none() {
        // One of other versions, which no test uses while this one runs.
        let _not_there = fs::remove_dir_all(&venv);
    }
    match fs::rename(&made, &venv) {
        Ok(()) => Ok(venv.join("bin/python")),
        Err(_) => Ok(has_them().unwrap_or_else(|| made.join("bin/python"))),
    }
}

/// What the command prints, or says.
pub(crate) fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    if output.status.success() { Ok(said) } else { Err(format!("{command:?}: {said}")) }
}
