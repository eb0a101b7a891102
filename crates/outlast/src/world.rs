//! The world as the client sees it: environment, time, chance, terminals, and the processes it starts.

use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use jiff::Timestamp;
use outlast_wire::environment::not_inherited;
use outlast_wire::layout::{Environment, Layout};
use outlast_wire::shim::Window;

use crate::problem::Problem;
use crate::program::{self, OWN, Program};
use crate::progress::StatusLine;

pub(crate) struct World {
    pub(crate) env: Vec<(OsString, OsString)>,
    layout: Option<Layout>,
    program: OnceCell<Program>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Autostart {
    Allowed,
    Forbidden,
}

impl World {
    pub(crate) fn new(env: Vec<(OsString, OsString)>) -> Self {
        let layout = Layout::from_environment(&directories(&env));
        Self { env, layout, program: OnceCell::new() }
    }

    /// Which program this is. A client that goes on for a while asks early, because an upgrade may move the name
    /// meanwhile; one that asks a single question does without.
    pub(crate) fn find_program(&self) -> &Program {
        self.program.get_or_init(|| Program::find(&self.env, std::env::args_os().next()))
    }

    pub(crate) fn layout(&self) -> Result<&Layout, Problem> {
        self.layout.as_ref().ok_or_else(|| {
            Problem::refusal("no_home", "there is no directory to keep runs in")
                .hint("set OUTLAST_HOME, or HOME, to an absolute path")
        })
    }

    pub(crate) fn autostart(&self) -> Autostart {
        match lookup(&self.env, "OUTLAST_NO_AUTOSTART") {
            Some(value) if value == "1" => Autostart::Forbidden,
            _ => Autostart::Allowed,
        }
    }

    /// True if we are called by an attempt or errand of a run, whose shim sees to it that there is a daemon.
    pub(crate) fn is_in_run(&self) -> bool {
        lookup(&self.env, "OUTLAST_RUN_ID").is_some()
    }

    /// What proves to the daemon which run we are called from. One that no header can carry is none.
    pub(crate) fn token(&self) -> Option<String> {
        let token = lookup(&self.env, "OUTLAST_TOKEN")?.to_str()?;
        token.bytes().all(|byte| byte.is_ascii_graphic()).then(|| token.to_owned())
    }

    /// True if whoever started us waits to be told that we are ready, as a service manager does. What we only
    /// inherited was meant for another process.
    pub(crate) fn has_service_manager(&self) -> bool {
        let pid = std::process::id().to_string();
        let is_ours =
            lookup(&self.env, "SYSTEMD_EXEC_PID").is_none_or(|meant| meant == pid.as_str());
        is_ours && lookup(&self.env, "NOTIFY_SOCKET").is_some()
    }

    /// Colours help on a terminal and are noise elsewhere; <https://no-color.org> switches them off.
    pub(crate) fn colours(&self) -> bool {
        std::io::stdout().is_terminal()
            && lookup(&self.env, "NO_COLOR").is_none()
            && !self.is_dumb()
    }

    /// True of a terminal on which nothing can be drawn over.
    pub(crate) fn is_dumb(&self) -> bool {
        lookup(&self.env, "TERM").is_some_and(|term| term == "dumb")
    }

    /// A line that is drawn over again and again needs a terminal that takes it, and one that is whole.
    pub(crate) fn status_line(&self) -> StatusLine {
        if self.colours() && std::io::stderr().is_terminal() {
            StatusLine::AtTheBottom
        } else {
            StatusLine::None
        }
    }

    /// The columns to fit a listing into; `None` when nobody looks at it on a terminal.
    pub(crate) fn columns(&self) -> Option<usize> {
        if !std::io::stdout().is_terminal() {
            return None;
        }
        Some(window().map_or(80, |window| usize::from(window.cols)))
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    /// The name of this program that leads to the installed version also after an upgrade.
    pub(crate) fn program(&self) -> Result<PathBuf, Problem> {
        self.find_program()
            .lasting()
            .map(Path::to_owned)
            .ok_or_else(|| Problem::failure("cannot tell where the outlast binary is"))
    }

    pub(crate) fn current_dir(&self) -> Result<PathBuf, Problem> {
        std::env::current_dir().map_err(|error| {
            Problem::refusal(
                "no_directory",
                format_args!("cannot tell the current directory: {error}"),
            )
            .hint("name a directory with --dir")
        })
    }

    /// A tool of the system's, which is asked something and does not outlive us.
    #[expect(clippy::disallowed_methods, reason = "world is where a client starts processes")]
    pub(crate) fn tool(&self, program: &str) -> tokio::process::Command {
        tokio::process::Command::new(program)
    }

    /// Another of our own verbs, on the terminal that we have just put back.
    #[expect(clippy::disallowed_methods, reason = "a verb that is run as the shell would run it")]
    pub(crate) fn run_verb(&self, args: &[&str]) -> Result<Child, Problem> {
        // The version that is on the screen, whatever was installed since.
        let name = self.program()?;
        Command::new(OWN)
            .arg0(&name)
            .args(args)
            .spawn()
            .or_else(|_no_proc| Command::new(&name).args(args).spawn())
            .map_err(|error| {
                Problem::failure(format_args!("cannot start {}: {error}", name.display()))
            })
    }

    /// Stops us and whoever was started with us, until a shell lets us go on. Where no shell could, nobody
    /// stops.
    pub(crate) fn stop_here(&self) {
        let _stopped = rustix::process::kill_current_process_group(rustix::process::Signal::TSTP);
    }

    /// Asks such a process to leave; one that has is of no more interest.
    pub(crate) fn terminate(&self, pid: u32) {
        let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            let _gone = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
    }

    /// Starts a daemon that outlives us, of the version that is installed. Its standard output carries the line that
    /// says it is ready.
    pub(crate) fn start_daemon(&self, more: &[&str]) -> Result<Child, Problem> {
        let mut failed = None;
        for program in self.find_program().candidates() {
            match self.spawn_daemon(&program, more) {
                Ok(child) => return Ok(child),
                Err(error) if program::is_missing(&error) => failed = Some((program, error)),
                Err(error) => {
                    failed = Some((program, error));
                    break;
                }
            }
        }
        let (program, error) = failed.expect("there is always a candidate");
        let program = program.display();
        Err(Problem::unreachable(format_args!("cannot start {program}: {error}")))
    }

    #[expect(clippy::disallowed_methods, reason = "the one process that outlives its client")]
    fn spawn_daemon(&self, program: &Path, more: &[&str]) -> io::Result<Child> {
        let mut command = Command::new(program);
        if let (true, Some(name)) = (program == Path::new(OWN), self.find_program().lasting()) {
            command.arg0(name);
        }
        for name in not_inherited() {
            command.env_remove(name);
        }
        command.args(["daemon", "run", "--detached"]).args(more).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()
    }
}

/// The size of the terminal that we print to.
pub(crate) fn window() -> Option<Window> {
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout()).ok()?;
    (size.ws_row > 0 && size.ws_col > 0).then_some(Window { rows: size.ws_row, cols: size.ws_col })
}

/// The mask that files are made with. There is no call that only reads it, so Linux's own account of
/// this process is read instead: setting it, even for a moment, would race with other threads.
#[cfg(target_os = "linux")]
pub(crate) fn umask() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"))?;
    u32::from_str_radix(mask.trim(), 8).ok()
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn umask() -> Option<u32> {
    let mask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    rustix::process::umask(mask);
    Some(u32::from(mask.as_raw_mode()))
}

pub(crate) fn lookup<'a>(env: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    let (_, value) = env.iter().find(|(key, _)| key == name)?;
    (!value.is_empty()).then_some(value)
}

fn directories(env: &[(OsString, OsString)]) -> Environment {
    let path = |name| lookup(env, name).map(PathBuf::from);
    // The XDG specification has relative paths ignored.
    let absolute = |name| path(name).filter(|path| path.is_absolute());
    Environment {
        outlast_home: path("OUTLAST_HOME").map(|home| std::path::absolute(&home).unwrap_or(home)),
        home: absolute("HOME"),
        xdg_config_home: absolute("XDG_CONFIG_HOME"),
        xdg_state_home: absolute("XDG_STATE_HOME"),
        xdg_runtime_dir: absolute("XDG_RUNTIME_DIR"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    #[test]
    fn a_relative_outlast_home_becomes_absolute() {
        let world = World::new(env(&[("OUTLAST_HOME", "here")]));
        let state = &world.layout().expect("a home is set").state;
        assert!(state.is_absolute() && state.ends_with("here/state"), "{}", state.display());
    }

    #[test]
    fn relative_xdg_paths_and_empty_ones_are_ignored() {
        let world = World::new(env(&[
            ("HOME", "/u"),
            ("XDG_STATE_HOME", "relative"),
            ("XDG_RUNTIME_DIR", ""),
            ("OUTLAST_HOME", ""),
        ]));
        let layout = world.layout().expect("a home is set");
        assert_eq!(layout.state, PathBuf::from("/u/.local/state/outlast"));
        assert_eq!(layout.runtime, PathBuf::from("/u/.local/state/outlast/run"));
    }

    #[test]
    fn without_any_home_there_is_a_refusal_with_a_hint() {
        let problem = World::new(Vec::new()).layout().expect_err("nothing is set");
        assert_eq!(problem.exit(), 2);
    }

    #[test]
    fn only_1_forbids_the_autostart() {
        let autostart = |value| World::new(env(&[("OUTLAST_NO_AUTOSTART", value)])).autostart();
        assert_eq!(autostart("1"), Autostart::Forbidden);
        assert_eq!(autostart("0"), Autostart::Allowed);
        assert_eq!(autostart(""), Autostart::Allowed);
    }
}
