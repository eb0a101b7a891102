//! Running git. The only place where the daemon does.
//!
//! Each call is bounded in time and in what it may print, and its process group dies whole (`outlast_program`).
//! Nothing here knows what a workspace is, and nothing here is asked of a terminal. A checkout can take
//! longer than any bound that would suit the rest, so it is a host command and not a call from here. No command
//! that a repository names is run: not by the environment, which is ours, and not by settings (see [`plain`]).

pub(crate) mod plain;

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::time::Duration;

use outlast_program::{Beyond, Bound, Ended, Limits};

const DEADLINE: Duration = Duration::from_secs(60);
const MOST_STDOUT: usize = 1024 * 1024;
const MOST_STDERR: usize = 64 * 1024;

/// Settings by which a repository, which an agent may have written to, would have its own commands run. None of our
/// questions runs one, so it does not matter to them who owns the repository.
const TAME: [&str; 6] =
    ["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "safe.directory=*"];

/// All of the environment that git gets of ours.
const PASSED_ON: [&str; 3] = ["PATH", "HOME", "GIT_CEILING_DIRECTORIES"];

/// What git is told beside that. A status must not write to the index that an agent may be using; what git
/// says is read by us; and nothing is fetched, by whatever command a repository names for it.
const TOLD: [(&str, &str); 7] = [
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", ""),
    ("LC_ALL", "C"),
];

/// Whose settings hold for a call.
#[derive(Debug, Clone, Copy)]
enum Settings<'a> {
    /// The repository's.
    OfRepository,
    /// The repository's, and the user's own. Only for questions about settings.
    OfUser,
    /// Those in a git directory of our own, with the objects and the index of a repository.
    Own { git_dir: &'a Path, objects: &'a Path, index: &'a Path },
}

/// What a git that succeeded has printed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) stdout: Vec<u8>,
}

impl Output {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum GitError {
    #[error("there is no git on this machine")]
    Missing,
    #[error("git could not be run: {0}")]
    Io(#[from] io::Error),
    #[error("git {what} took longer than {} s and was killed", .after.as_secs())]
    TooSlow { what: String, after: Duration },
    #[error("git {what} printed more than {MOST_STDOUT} bytes")]
    TooMuch { what: String },
    /// It ran, and said no.
    #[error("git {what}: {said}")]
    Refused { what: String, said: String },
}

impl GitError {
    pub(crate) fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Missing => Some("install git, or have the daemon started with it in PATH"),
            Self::TooSlow { .. } => Some("is the disk slow, or another git holding a lock?"),
            Self::Io(_) | Self::TooMuch { .. } | Self::Refused { .. } => None,
        }
    }
}

/// Runs `git -C dir args…` to its end.
pub(crate) fn git(dir: &Path, args: &[&str]) -> Result<Output, GitError> {
    run("git", dir, args, DEADLINE)
}

fn run(program: &str, dir: &Path, args: &[&str], after: Duration) -> Result<Output, GitError> {
    let args: Vec<OsString> = args.iter().map(OsString::from).collect();
    end(command(program, dir, &args, Settings::OfRepository), &args, after)
}

fn run_with(
    program: &str,
    dir: &Path,
    args: &[OsString],
    settings: Settings<'_>,
) -> Result<Output, GitError> {
    end(command(program, dir, args, settings), args, DEADLINE)
}

/// Runs a git to its end. Blocks.
fn end(command: Command, args: &[OsString], after: Duration) -> Result<Output, GitError> {
    let mut words = args.iter().map(|arg| arg.to_string_lossy());
    let verb = words.find(|arg| !arg.starts_with('-') && !arg.contains('='));
    let what = verb.unwrap_or_default().into_owned();
    let limits = Limits {
        within: after,
        most_stdout: MOST_STDOUT,
        most_stderr: MOST_STDERR,
        beyond: Beyond::Ended,
    };
    let ended = outlast_program::run_blocking(command, limits).map_err(|error| {
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        if is_missing { GitError::Missing } else { error.into() }
    })?;
    match ended {
        Ended::Exited { status, stdout, .. } if status.success() => {
            Ok(Output { stdout: stdout.bytes })
        }
        Ended::Exited { status, stderr, .. } => {
            Err(GitError::Refused { what, said: said(&stderr.text(), status) })
        }
        Ended::Stopped { bound, trouble } => {
            if let Some(error) = trouble {
                tracing::warn!(git = what, %error, "cannot end a git that passed its bounds");
            }
            Err(match bound {
                Bound::Time => GitError::TooSlow { what, after },
                Bound::Output => GitError::TooMuch { what },
            })
        }
    }
}

/// Runs a git that was put together elsewhere, with an environment and a directory of its own. What it prints beyond
/// `most` is dropped, and that is said.
pub(crate) fn bounded(command: Command, most: usize) -> Result<(Vec<u8>, bool), GitError> {
    let what = last_word(&command);
    match outlast_program::run_blocking(command, dropping_beyond(most))? {
        Ended::Exited { status, stdout, .. } if status.success() => {
            Ok((stdout.bytes, stdout.is_cut))
        }
        Ended::Exited { status, stderr, .. } => {
            Err(GitError::Refused { what, said: said(&stderr.text(), status) })
        }
        Ended::Stopped { .. } => Err(GitError::TooSlow { what, after: DEADLINE }),
    }
}

/// What a message names of a command.
fn last_word(command: &Command) -> String {
    let last = command.get_args().last();
    last.map(|arg| arg.to_string_lossy().into_owned()).unwrap_or_default()
}

fn dropping_beyond(most: usize) -> Limits {
    Limits {
        within: DEADLINE,
        most_stdout: most,
        most_stderr: MOST_STDERR,
        beyond: Beyond::Dropped,
    }
}

/// The same for a git that says no by its exit code 1, and prints also then.
pub(crate) fn answered(command: Command, most: usize) -> Result<(bool, Vec<u8>), GitError> {
    let what = last_word(&command);
    match outlast_program::run_blocking(command, dropping_beyond(most))? {
        Ended::Exited { status, stdout, stderr } => match status.code() {
            Some(0) => Ok((true, stdout.bytes)),
            Some(1) => Ok((false, stdout.bytes)),
            _ => Err(GitError::Refused { what, said: said(&stderr.text(), status) }),
        },
        Ended::Stopped { .. } => Err(GitError::TooSlow { what, after: DEADLINE }),
    }
}

/// This program, as it looks at a workspace for a client.
pub(crate) fn looking(exe: &Path, dir: &Path) -> Command {
    #[expect(clippy::disallowed_methods, reason = "world is where the daemon starts processes")]
    let mut command = Command::new(exe);
    command.arg(outlast_wire::snapshot::SNAPSHOT_VERB).arg(dir);
    command
}

/// Git puts its reason on one line, and advice around it.
fn said(text: &str, status: ExitStatus) -> String {
    let reason = text.lines().find_map(|line| {
        line.strip_prefix("fatal: ").or_else(|| line.strip_prefix("error: ")).map(str::trim)
    });
    let first = || text.lines().map(str::trim).find(|line| !line.is_empty());
    reason.or_else(first).map_or_else(|| status.to_string(), str::to_owned)
}

fn command(program: &str, dir: &Path, args: &[OsString], settings: Settings<'_>) -> Command {
    #[expect(clippy::disallowed_methods, reason = "world is where the daemon starts processes")]
    let mut command = Command::new(program);
    command.args(TAME).arg("-C").arg(dir).args(args);
    command.env_clear();
    for name in PASSED_ON {
        #[expect(clippy::disallowed_methods, reason = "world is where the daemon reads these")]
        let value = std::env::var_os(name);
        command.envs(value.map(|value| (name, value)));
    }
    command.envs(TOLD);
    match settings {
        Settings::OfRepository => drop(command.env("GIT_CONFIG_GLOBAL", "/dev/null")),
        Settings::OfUser => {}
        Settings::Own { git_dir, objects, index } => {
            // An older git does not know of the first.
            command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("HOME", git_dir);
            command.env("GIT_DIR", git_dir).env("GIT_WORK_TREE", dir);
            command.env("GIT_OBJECT_DIRECTORY", objects).env("GIT_INDEX_FILE", index);
        }
    }
    command
}

#[cfg(test)]
mod tests {
    use std::fs::read_to_string;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::io::retry_on_intr;
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open};

    use super::*;

    /// Something to be run in git's place: `$1` to `$8` are what every git gets, the rest is the call's own.
    struct Stand {
        dir: tempfile::TempDir,
    }

    impl Stand {
        #[expect(
            clippy::disallowed_methods,
            reason = "a test starts the shell that writes its script"
        )]
        fn new(script: &str) -> Self {
            let dir = tempfile::tempdir().expect("a scratch directory");
            let path = dir.path().join("git");
            // A child process writes it: a process that another test forks meanwhile must not inherit the open file,
            // because the kernel executes no file that is open for writing.
            let mut shell = Command::new("sh");
            shell.args(["-c", "printf %s \"$2\" >\"$1\" && chmod 700 \"$1\"", "sh"]);
            let written = shell.arg(&path).arg(format!("#!/bin/sh\n{script}\n")).status();
            assert!(written.expect("there is a sh").success());
            Self { dir }
        }

        fn run(&self, args: &[&str], after: Duration) -> Result<Output, GitError> {
            let program = self.dir.path().join("git");
            run(program.to_str().expect("a plain path"), self.dir.path(), args, after)
        }

        fn said(&self, args: &[&str]) -> String {
            match self.run(args, DEADLINE) {
                Ok(output) => output.text(),
                Err(error) => error.to_string(),
            }
        }
    }

    #[test]
    fn what_was_printed_is_given_and_what_was_refused_is_said() {
        let stand = Stand::new(
            "shift 8; echo \"got $*\"; [ \"$1\" != no ] || { echo advice >&2; echo 'fatal: so there' >&2; exit 3; }",
        );
        assert_eq!(stand.said(&["status", "-z"]), "got status -z\n");
        assert_eq!(stand.said(&["no"]), "git no: so there");
        assert_eq!(Stand::new("exit 3").said(&["x"]), "git x: exit status: 3");
    }

    #[test]
    fn no_git_is_said_with_a_hint() {
        let error = run("/nonexistent/git", Path::new("/"), &["status"], DEADLINE);
        let error = error.expect_err("there is no such program");
        assert!(matches!(error, GitError::Missing) && error.hint().is_some(), "{error}");
    }

    #[test]
    fn what_is_said_beside_the_output_may_be_long() {
        let stand = Stand::new(
            "i=0; while [ $i -lt 20000 ]; do echo 0123456789 >&2; i=$((i+1)); done; echo fine",
        );
        assert_eq!(stand.said(&["log"]), "fine\n");
    }

    #[test]
    fn a_git_that_prints_for_ever_is_killed_with_all_that_it_started() {
        let stand = Stand::new(
            "sleep 1000 & echo $! > \"$8/child\"; while :; do echo 0123456789012345678901234567890123456789; done",
        );
        assert_eq!(stand.said(&["log"]), "git log printed more than 1048576 bytes");
        let child = read_to_string(stand.dir.path().join("child")).expect("it was written first");
        assert!(is_dead(child.trim().parse().expect("a pid")), "the child was left behind");
    }

    #[test]
    fn a_git_that_hangs_is_killed() {
        let stand = Stand::new("exec sleep 1000");
        let error = stand.run(&["fetch"], Duration::from_millis(1)).expect_err("it never ends");
        assert_eq!(error.to_string(), "git fetch took longer than 0 s and was killed");
    }

    /// A dead process is one that is gone or waits to be collected.
    fn is_dead(pid: i32) -> bool {
        let pid = Pid::from_raw(pid).expect("a pid");
        let Ok(exit) = pidfd_open(pid, PidfdFlags::empty()) else { return true };
        let mut fds = [PollFd::new(&exit, PollFlags::IN)];
        let most = Timespec { tv_sec: 30, tv_nsec: 0 };
        retry_on_intr(|| poll(&mut fds, Some(&most))).expect("poll works");
        !fds[0].revents().is_empty()
    }

    #[test]
    fn a_process_left_behind_with_the_pipes_does_not_hold_up_the_answer() {
        let stand = Stand::new("sleep 1000 & echo $! > \"$8/child\"; echo done");
        assert_eq!(stand.said(&["gc"]), "done\n");
        let child = read_to_string(stand.dir.path().join("child")).expect("it was written");
        let child = Pid::from_raw(child.trim().parse().expect("a pid")).expect("a pid");
        rustix::process::kill_process(child, Signal::KILL).expect("it still sleeps");
    }

    #[test]
    fn git_gets_an_environment_of_ours_and_none_of_the_daemons() {
        let stand = Stand::new("env | sed 's/=.*//' | sort");
        let known: Vec<String> = stand.said(&["status"]).lines().map(str::to_owned).collect();
        // What a shell sets by itself.
        let known: Vec<&str> = known
            .iter()
            .map(String::as_str)
            .filter(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name))
            .collect();
        for name in &known {
            let is_told = TOLD.iter().any(|(told, _)| told == name) || *name == "GIT_CONFIG_GLOBAL";
            assert!(is_told || PASSED_ON.contains(name), "{name} of {known:?}");
        }
        assert!(known.contains(&"PATH") && !known.contains(&"CARGO_MANIFEST_DIR"), "{known:?}");
    }
}
