//! Whether the program that a shell did not find is really not there.
//!
//! A shell says 127 of the agent's program, and of any command in a script of it. Only what is proven to be missing is
//! said to be: then another try would fail in the same way.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use outlast_engine::{Answer, Exit, NeverStarted, RunSpec};
use outlast_home::layout::AttemptDir;
use outlast_home::regular;
use outlast_wire::shim::{EnvVar, Spec};
use outlast_workflow::{Absent, absent_program};

use crate::world::files;

/// That the command of a shell never ran, if its exit says so and its program is not where the shell looked for it.
pub(super) fn missing(spec: &RunSpec, dir: &AttemptDir, exit: Exit) -> Option<Answer> {
    if !matches!(exit, Exit::Code(126 | 127)) {
        return None;
    }
    let path = path_of(dir).ok().flatten();
    let here = Path::new(&spec.dir);
    let (absent, why) = absent_program(&spec.agent.command, here, path.as_deref(), &files::look)?;
    let code = match absent {
        Absent::NotThere => NeverStarted::CommandNotFound,
        Absent::NotExecutable => NeverStarted::NotExecutable,
    };
    Some(Answer::NoProgram { code, why })
}

/// The `PATH` that the attempt had.
fn path_of(dir: &AttemptDir) -> io::Result<Option<String>> {
    let told: Spec = serde_json::from_slice(&regular::read(&dir.spec())?)?;
    let is_path = |var: &&EnvVar| var.name.as_os_str() == OsStr::new("PATH");
    let of = |vars: &[EnvVar]| vars.iter().find(is_path).cloned();
    let var = match of(&told.env) {
        Some(var) => Some(var),
        None => of(&serde_json::from_slice::<Vec<EnvVar>>(&regular::read(&told.env_file)?)?),
    };
    Ok(var.and_then(|var| var.value.as_os_str().to_str().map(str::to_owned)))
}
