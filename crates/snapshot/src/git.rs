//! Running git with a git directory of our own: no settings but ours, no hook, no filter, no fetch.
//!
//! Each call ends the snapshot if it fails: no exit code is passed over. How long all of it may take is the step's bound.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Failure;

/// For every git that we start, whatever directory it is of.
const TOLD: [(&str, &str); 9] = [
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_LITERAL_PATHSPECS", "1"),
];

/// Settings by which a repository would have its own commands run, or by which what we write would not last.
const TAME: [&str; 10] = [
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "safe.directory=*",
    "-c",
    "core.fsync=reference",
    "-c",
    "gc.auto=0",
];

/// One way to call git: the directories that it is to use.
#[derive(Debug, Clone)]
pub struct Git {
    path: OsString,
    home: PathBuf,
    env: Vec<(&'static str, OsString)>,
    cwd: PathBuf,
}

/// The exit code, what was printed, and what was said of errors.
type Answered = (Option<i32>, Vec<u8>, Vec<u8>);

impl Git {
    /// A git that discovers the repository around `dir` by itself. For the first look only.
    pub(crate) fn around(path: &OsStr, home: &Path, dir: &Path) -> Self {
        Self { path: path.to_owned(), home: home.to_owned(), env: Vec::new(), cwd: dir.to_owned() }
    }

    pub fn new(path: &OsStr, git_dir: &Path) -> Self {
        let env = vec![("GIT_DIR", git_dir.as_os_str().to_owned())];
        let (path, home) = (path.to_owned(), git_dir.to_owned());
        Self { path, home, env, cwd: git_dir.to_owned() }
    }

    #[must_use]
    pub fn with(mut self, name: &'static str, value: impl AsRef<OsStr>) -> Self {
        self.env.retain(|(known, _)| *known != name);
        self.env.push((name, value.as_ref().to_owned()));
        self
    }

    #[must_use]
    pub(crate) fn within(self, work_tree: &Path) -> Self {
        // By where it stands and not by a name, which may lead elsewhere by then.
        Self { cwd: work_tree.to_owned(), ..self.with("GIT_WORK_TREE", ".") }
    }

    /// For the one verb that takes no literal paths.
    #[must_use]
    pub(crate) fn plainly(self) -> Self {
        self.with("GIT_LITERAL_PATHSPECS", "0")
    }

    /// The call itself, for a caller that runs it under bounds of its own.
    pub fn command<A: AsRef<OsStr>>(&self, args: &[A]) -> Command {
        #[expect(clippy::disallowed_methods, reason = "this is where snapshots start git")]
        let mut command = Command::new("git");
        command.args(TAME).args(args).current_dir(&self.cwd).env_clear();
        command.env("PATH", &self.path).env("HOME", &self.home).envs(TOLD);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// What it printed. Any failure is ours.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<Vec<u8>, Failure> {
        self.fed(args, &[])
    }

    /// One line of it.
    pub(crate) fn line<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<String, Failure> {
        let printed = self.run(args)?;
        Ok(String::from_utf8_lossy(&printed).trim_end_matches('\n').to_owned())
    }

    /// What it printed, or `None` if it said no without a complaint (exit code 1).
    pub(crate) fn maybe<A: AsRef<OsStr>>(&self, args: &[A]) -> Result<Option<Vec<u8>>, Failure> {
        self.maybe_fed(args, &[])
    }

    pub(crate) fn maybe_fed<A: AsRef<OsStr>>(
        &self,
        args: &[A],
        stdin: &[u8],
    ) -> Result<Option<Vec<u8>>, Failure> {
        match self.execute(args, stdin)? {
            (Some(0), stdout, _) => Ok(Some(stdout)),
            (Some(1), _, _) => Ok(None),
            (code, _, stderr) => Err(refused(args, code, &stderr)),
        }
    }

    pub fn fed<A: AsRef<OsStr>>(&self, args: &[A], stdin: &[u8]) -> Result<Vec<u8>, Failure> {
        match self.execute(args, stdin)? {
            (Some(0), stdout, _) => Ok(stdout),
            (code, _, stderr) => Err(refused(args, code, &stderr)),
        }
    }

    fn execute<A: AsRef<OsStr>>(&self, args: &[A], stdin: &[u8]) -> Result<Answered, Failure> {
        let mut command = self.command(args);
        command.stdin(if stdin.is_empty() { Stdio::null() } else { Stdio::piped() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if self.cwd.is_dir() => Failure::NoGit,
            _ => Failure::Io { what: "git could not be run".to_owned(), source: error },
        })?;
        let pipe = child.stdin.take();
        let output = std::thread::scope(|scope| {
            // Written beside: git may answer before it has read all of it.
            scope.spawn(move || {
                // A git that ends early says why by its exit code.
                let _is_told_by_its_end = pipe.map(|mut pipe| pipe.write_all(stdin));
            });
            child.wait_with_output()
        });
        let output = output.map_err(Failure::io("git could not be read"))?;
        Ok((output.status.code(), output.stdout, output.stderr))
    }
}

fn refused<A: AsRef<OsStr>>(args: &[A], code: Option<i32>, stderr: &[u8]) -> Failure {
    let verb = args.iter().map(|arg| arg.as_ref().to_string_lossy().into_owned());
    let what = verb.into_iter().find(|arg| !arg.starts_with('-')).unwrap_or_default();
    let text = String::from_utf8_lossy(stderr);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let reason = lines().find_map(|line| line.strip_prefix("fatal: "));
    let reason = reason.or_else(|| lines().find_map(|line| line.strip_prefix("error: ")));
    let how = || code.map_or("killed by a signal".to_owned(), |code| format!("exit code {code}"));
    let said = reason.or_else(|| lines().next()).map_or_else(how, str::to_owned);
    Failure::Git { what, said }
}
