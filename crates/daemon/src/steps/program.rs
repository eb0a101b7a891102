//! Whether the program that a shell did not find is really not there.
//!
//! A shell says 127 of the agent's program, and of any command in a script of it; and a program may remove itself. Only
//! what was missing before the launch and is missing after it has never run.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use outlast_engine::{Answer, Exit, NeverStarted, RunSpec};
use outlast_home::layout::AttemptDir;
use outlast_home::regular;
use outlast_wire::shim::{EnvVar, Spec};
use outlast_workflow::{Absent, absent_program};

use crate::world::files;

/// That the command of a shell never ran, if its exit says so and its program was not where the shell looked for it.
pub(super) fn missing(spec: &RunSpec, dir: &AttemptDir, exit: Exit) -> Option<Answer> {
    if !matches!(exit, Exit::Code(126 | 127)) {
        return None;
    }
    let told = regular::read(&dir.spec()).ok()?;
    let told: Spec = serde_json::from_slice(&told).ok()?;
    if !told.lacks_program {
        return None;
    }
    let (absent, why) = absent(spec, &told.env, &told.env_file)?;
    let code = match absent {
        Absent::NotThere => NeverStarted::CommandNotFound,
        Absent::NotExecutable => NeverStarted::NotExecutable,
    };
    Some(Answer::NoProgram { code, why })
}

/// The program that the command's shell would not find now, in words; nothing if that cannot be known.
pub(super) fn absent(spec: &RunSpec, env: &[EnvVar], env_file: &Path) -> Option<(Absent, String)> {
    let is_shell = spec.agent.command.first().is_some_and(|it| it == "sh");
    let path = if is_shell { path_of(env, env_file).ok().flatten() } else { None };
    let here = Path::new(&spec.dir);
    absent_program(&spec.agent.command, here, path.as_deref(), &files::look)
}

/// The `PATH` that the attempt has.
fn path_of(env: &[EnvVar], env_file: &Path) -> io::Result<Option<String>> {
    let is_path = |var: &&EnvVar| var.name.as_os_str() == OsStr::new("PATH");
    let of = |vars: &[EnvVar]| vars.iter().find(is_path).cloned();
    let var = match of(env) {
        Some(var) => Some(var),
        None => of(&serde_json::from_slice::<Vec<EnvVar>>(&regular::read(env_file)?)?),
    };
    Ok(var.and_then(|var| var.value.as_os_str().to_str().map(str::to_owned)))
}
