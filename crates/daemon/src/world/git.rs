//! Running git. The only place where the daemon does.
//!
//! Each call is bounded: in time, in what it may print, and to its own process group, which dies whole.
//! Nothing here knows what a workspace is, and nothing here is asked of a terminal. A checkout can take
//! longer than any bound that would suit the rest, so it is a host command and not a call from here. No command
//! that a repository names is run: not by the environment, which is ours, and not by settings (see [`plain`]).

pub(crate) mod plain;

use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};

const DEADLINE: Duration = Duration::from_secs(60);
/// For a killed git to be gone.
const GRACE: Duration = Duration::from_secs(5);
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

/// Sees a git to its end.
fn end(command: Command, args: &[OsString], after: Duration) -> Result<Output, GitError> {
    let mut words = args.iter().map(|arg| arg.to_string_lossy());
    let verb = words.find(|arg| !arg.starts_with('-') && !arg.contains('='));
    let what = verb.unwrap_or_default().into_owned();
    let mut call = Call::start(command, after)?;
    match call.attend()? {
        End::Exited(status) if status.success() => {
            Ok(Output { stdout: std::mem::take(&mut call.stdout.bytes) })
        }
        End::Exited(status) => Err(GitError::Refused { what, said: said(&call.stderr, status) }),
        End::TooSlow => Err(GitError::TooSlow { what, after }),
        End::TooMuch => Err(GitError::TooMuch { what }),
    }
}

/// Git puts its reason on one line, and advice around it.
fn said(stderr: &Gathered<ChildStderr>, status: ExitStatus) -> String {
    let text = String::from_utf8_lossy(&stderr.bytes);
    let reason = text.lines().find_map(|line| {
        line.strip_prefix("fatal: ").or_else(|| line.strip_prefix("error: ")).map(str::trim)
    });
    let first = || text.lines().map(str::trim).find(|line| !line.is_empty());
    reason.or_else(first).map_or_else(|| status.to_string(), str::to_owned)
}

enum End {
    Exited(ExitStatus),
    TooSlow,
    TooMuch,
}

/// A git that runs. It does not outlive this.
struct Call {
    child: Child,
    exit: OwnedFd,
    stdout: Gathered<ChildStdout>,
    stderr: Gathered<ChildStderr>,
    deadline: Instant,
    is_over: bool,
}

impl Call {
    fn start(mut command: Command, after: Duration) -> Result<Self, GitError> {
        let deadline = now() + after;
        let mut child = match command.spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(GitError::Missing),
            Err(error) => return Err(error.into()),
        };
        let stdout = Gathered::new(child.stdout.take(), MOST_STDOUT);
        let stderr = Gathered::new(child.stderr.take(), MOST_STDERR);
        let exit = pidfd_open(Pid::from_child(&child), PidfdFlags::empty());
        let exit = exit.map_err(|error| {
            kill(&mut child, None);
            io::Error::from(error)
        })?;
        Ok(Self { child, exit, stdout, stderr, deadline, is_over: false })
    }

    fn attend(&mut self) -> Result<End, GitError> {
        loop {
            let left = if self.is_over { Some(Duration::ZERO) } else { self.left() };
            let Some(left) = left else { return Ok(End::TooSlow) };
            let was_over = self.is_over;
            let has_more = self.gather(left)?;
            if self.stdout.is_too_much {
                return Ok(End::TooMuch);
            }
            // Whoever it left behind may hold the pipes for ever; what was written by its end is in them by now.
            if was_over && !has_more {
                return Ok(End::Exited(self.child.wait()?));
            }
        }
    }

    fn left(&self) -> Option<Duration> {
        let left = self.deadline.saturating_duration_since(now());
        (!left.is_zero()).then_some(left)
    }

    /// Waits for news, takes what there is to read, and says whether there was anything.
    fn gather(&mut self, left: Duration) -> io::Result<bool> {
        let (out, err) = (self.stdout.fd(), self.stderr.fd());
        let mut fds = vec![PollFd::new(&self.exit, PollFlags::IN)];
        fds.extend(out.iter().chain(err.iter()).map(|fd| PollFd::new(fd, PollFlags::IN)));
        wait(&mut fds, left)?;
        let is_ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        let out_is_ready = out.is_some() && is_ready[1];
        let err_is_ready = err.is_some() && is_ready[is_ready.len() - 1];
        self.is_over |= is_ready[0];
        if out_is_ready {
            self.stdout.read()?;
        }
        if err_is_ready {
            self.stderr.read()?;
        }
        Ok(out_is_ready || err_is_ready)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            kill(&mut self.child, Some(&self.exit));
        }
    }
}

/// Kills the whole group and collects its leader, which is not reaped before: its number is not given away.
fn kill(child: &mut Child, exit: Option<&OwnedFd>) {
    if let Err(error) = kill_process_group(Pid::from_child(child), Signal::KILL) {
        tracing::debug!(pid = child.id(), %error, "git's process group was not killed");
    }
    let waited = match exit {
        Some(exit) => wait(&mut [PollFd::new(exit, PollFlags::IN)], GRACE),
        None => Ok(()),
    };
    match waited.and_then(|()| child.try_wait()) {
        Ok(Some(_)) => {}
        Ok(None) => tracing::warn!(pid = child.id(), "a killed git is still there"),
        Err(error) => tracing::warn!(pid = child.id(), %error, "a killed git was not collected"),
    }
}

fn wait(fds: &mut [PollFd<'_>], left: Duration) -> io::Result<()> {
    let left = Timespec::try_from(left).map_err(io::Error::other)?;
    match poll(fds, Some(&left)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// What one pipe has given, up to a bound; what is beyond it is read and dropped.
struct Gathered<R> {
    pipe: Option<R>,
    bytes: Vec<u8>,
    most: usize,
    is_too_much: bool,
}

impl<R: Read + AsFd> Gathered<R> {
    fn new(pipe: Option<R>, most: usize) -> Self {
        Self { pipe, bytes: Vec::new(), most, is_too_much: false }
    }

    fn fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        self.pipe.as_ref().map(AsFd::as_fd)
    }

    fn read(&mut self) -> io::Result<()> {
        let Some(pipe) = &mut self.pipe else { return Ok(()) };
        let mut piece = [0; 16 * 1024];
        let read = match pipe.read(&mut piece) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error),
        };
        if read == 0 {
            self.pipe = None;
        }
        let room = self.most - self.bytes.len();
        self.is_too_much |= read > room;
        self.bytes.extend_from_slice(&piece[..read.min(room)]);
        Ok(())
    }
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
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    command
}

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "world is where the daemon reads clocks")]
    Instant::now()
}

#[cfg(test)]
mod tests {
    use std::fs::{File, Permissions, read_to_string, set_permissions};
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// Something to be run in git's place: `$1` to `$8` are what every git gets, the rest is the call's own.
    struct Stand {
        dir: tempfile::TempDir,
    }

    impl Stand {
        fn new(script: &str) -> Self {
            let dir = tempfile::tempdir().expect("a scratch directory");
            let path = dir.path().join("git");
            let mut file = File::create(&path).expect("it is ours");
            writeln!(file, "#!/bin/sh\n{script}").expect("it is ours");
            set_permissions(&path, Permissions::from_mode(0o700)).expect("it is ours");
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
        wait(&mut fds, Duration::from_secs(30)).expect("poll works");
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
