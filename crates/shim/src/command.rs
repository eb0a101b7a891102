//! What to exec: the run's environment, the program that its PATH finds, all ready for `execve`.
//!
//! Everything that can go wrong before a process exists goes wrong here, with a message that a shell
//! would give. Starts nothing.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use outlast_secrets::Secrets;
use outlast_wire::shim::{EnvVar, NeverStarted, Spec};
use rustix::fs::Access;
use rustix::io::Errno;

/// Where commands are when the run's environment has no PATH, as in a shell.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Why a child never came to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: NeverStarted,
    pub(crate) why: String,
}

impl Failure {
    pub(crate) fn new(code: NeverStarted, why: impl Into<String>) -> Self {
        Self { code, why: why.into() }
    }

    /// The same without the secrets in it, which a name on the command line may be.
    pub(crate) fn without(self, secrets: &Secrets) -> Self {
        Self { why: secrets.hide(&self.why).into_owned(), ..self }
    }

    /// A file that cannot be used. What the host lacks now may be there for the next attempt.
    pub(crate) fn of_files(error: &io::Error, what: &str) -> Self {
        let is_short = is_shortage(error);
        let code = if is_short { NeverStarted::NoResources } else { NeverStarted::BadSpec };
        Self::new(code, format!("{what}: {error}"))
    }
}

/// True if the host lacked room, descriptors, processes or memory: the fault is not the command's.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let short = [Errno::AGAIN, Errno::NOMEM, Errno::NFILE, Errno::MFILE, Errno::NOBUFS];
    is_full || Errno::from_io_error(error).is_some_and(|errno| short.contains(&errno))
}

/// A command line that the kernel can take as it is.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) program: CString,
    pub(crate) argv: Vec<CString>,
    pub(crate) env: Vec<CString>,
    pub(crate) dir: CString,
}

impl Command {
    pub(crate) fn new(argv: &[String], dir: &Path, env: &[EnvVar]) -> Result<Self, Failure> {
        if !dir.is_dir() {
            let why = format!("{}: no such directory", dir.display());
            return Err(Failure::new(NeverStarted::NoDirectory, why));
        }
        let Some(name) = argv.first() else {
            return Err(Failure::new(NeverStarted::BadSpec, "the command is empty"));
        };
        let path =
            env.iter().find(|var| var.name.as_os_str() == "PATH").map(|var| var.value.as_os_str());
        let program = resolve(name, dir, path.unwrap_or(OsStr::new(DEFAULT_PATH)))?;
        Ok(Self {
            program: c_string(program.as_os_str())?,
            argv: argv.iter().map(|arg| c_string(OsStr::new(arg))).collect::<Result<_, _>>()?,
            env: assignments(env)?,
            dir: c_string(dir.as_os_str())?,
        })
    }
}

/// A file of environment variables, as the daemon leaves them for us.
pub(crate) fn read_env(path: &Path) -> Result<Vec<EnvVar>, Failure> {
    let shown = path.display().to_string();
    let bytes =
        outlast_home::regular::read(path).map_err(|error| Failure::of_files(&error, &shown))?;
    // What is wrong is said without the parser's words, which quote values.
    serde_json::from_slice(&bytes).map_err(|error| {
        let why = format!(
            "{shown}: no list of variables, at line {} column {}",
            error.line(),
            error.column()
        );
        Failure::new(NeverStarted::BadSpec, why)
    })
}

/// `NAME=value` strings for `execve`.
pub(crate) fn assignments(env: &[EnvVar]) -> Result<Vec<CString>, Failure> {
    env.iter().map(assignment).collect()
}

fn assignment(var: &EnvVar) -> Result<CString, Failure> {
    let mut text = OsString::with_capacity(var.name.0.len() + var.value.0.len() + 1);
    text.push(var.name.as_os_str());
    text.push("=");
    text.push(var.value.as_os_str());
    c_string(&text)
}

/// What the child finds in its environment.
pub(crate) fn environment(spec: &Spec) -> Result<Vec<EnvVar>, Failure> {
    let mut env = read_env(&spec.env_file)?;
    env.retain(|var| !spec.env.iter().any(|own| own.name == var.name));
    env.extend(spec.env.iter().cloned());
    Ok(env)
}

/// The secrets among it, which stay out of the output.
pub(crate) fn secrets(spec: &Spec, env: &[EnvVar]) -> Secrets {
    let env = env.iter().map(|var| (var.name.as_os_str(), var.value.as_os_str()));
    Secrets::of(&spec.secrets, env, &[])
}

/// Finds the program as `execvp` would, with the run's PATH instead of ours.
fn resolve(name: &str, dir: &Path, path: &OsStr) -> Result<PathBuf, Failure> {
    if name.contains('/') {
        return check(name, dir.join(name));
    }
    let mut not_executable = None;
    for folder in path.as_bytes().split(|byte| *byte == b':') {
        let candidate = dir.join(OsStr::from_bytes(folder)).join(name);
        match check(name, candidate) {
            Ok(found) => return Ok(found),
            Err(failure) if failure.code == NeverStarted::NotExecutable => {
                not_executable = Some(failure);
            }
            Err(_) => {}
        }
    }
    Err(not_executable.unwrap_or_else(|| not_found(name)))
}

fn check(name: &str, candidate: PathBuf) -> Result<PathBuf, Failure> {
    match std::fs::metadata(&candidate) {
        Err(_) => Err(not_found(name)),
        Ok(meta) if !meta.is_file() || rustix::fs::access(&candidate, Access::EXEC_OK).is_err() => {
            Err(Failure::new(NeverStarted::NotExecutable, format!("{name}: not executable")))
        }
        Ok(_) => Ok(candidate),
    }
}

fn not_found(name: &str) -> Failure {
    Failure::new(NeverStarted::CommandNotFound, format!("{name}: command not found"))
}

pub(crate) fn c_string(text: &OsStr) -> Result<CString, Failure> {
    let why = "a command line or variable holds a NUL byte";
    CString::new(text.to_owned().into_vec()).map_err(|_| Failure::new(NeverStarted::BadSpec, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(name: &str, path: &str) -> Result<PathBuf, NeverStarted> {
        resolve(name, Path::new("/"), OsStr::new(path)).map_err(|failure| failure.code)
    }

    #[test]
    fn the_runs_path_decides() {
        assert_eq!(find("sh", "/nowhere:/bin"), Ok(PathBuf::from("/bin/sh")));
        assert_eq!(
            find("sh", "bin"),
            Ok(PathBuf::from("/bin/sh")),
            "relative to the run's directory"
        );
        assert_eq!(find("sh", "/nowhere"), Err(NeverStarted::CommandNotFound));
        assert_eq!(find("passwd", "/etc"), Err(NeverStarted::NotExecutable));
        assert_eq!(find("/etc", ""), Err(NeverStarted::NotExecutable), "a directory is no program");
    }
}
