//! The world as the command line sees it: time, terminals, and the processes that a verb starts.
//!
//! The environment, Outlast's directories and the start of a daemon are in the client library's world.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use jiff::Timestamp;
use outlast_client::problem::Problem;
use outlast_client::program::OWN;
use outlast_wire::shim::Window;

pub(crate) struct World {
    /// What the client library needs of it.
    pub(crate) client: outlast_client::world::World,
}

impl World {
    pub(crate) fn new(env: Vec<(OsString, OsString)>) -> Self {
        Self { client: outlast_client::world::World::new(env) }
    }

    /// True if the process that started this one is a service manager, which waits to be told that this process is
    /// ready. A variable that this process only inherited was meant for another process.
    pub(crate) fn has_service_manager(&self) -> bool {
        let pid = std::process::id().to_string();
        let is_ours = self.client.var("SYSTEMD_EXEC_PID").is_none_or(|meant| meant == pid.as_str());
        is_ours && self.client.var("NOTIFY_SOCKET").is_some()
    }

    /// Colours help on a terminal and are noise elsewhere; <https://no-color.org> switches them off.
    pub(crate) fn colours(&self) -> bool {
        std::io::stdout().is_terminal() && self.client.var("NO_COLOR").is_none() && !self.is_dumb()
    }

    /// True of a terminal on which nothing can be drawn over.
    pub(crate) fn is_dumb(&self) -> bool {
        self.client.var("TERM").is_some_and(|term| term == "dumb")
    }

    /// The columns to fit a listing into; `None` if standard output is no terminal.
    pub(crate) fn columns(&self) -> Option<usize> {
        if !std::io::stdout().is_terminal() {
            return None;
        }
        Some(window().map_or(80, |window| usize::from(window.cols)))
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::now()
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
    pub(crate) fn tool(&self, program: &str) -> Command {
        Command::new(program)
    }

    /// The time here, in this machine's zone.
    pub(crate) fn now_here(&self) -> jiff::Zoned {
        let zone = jiff::tz::TimeZone::try_system().unwrap_or(jiff::tz::TimeZone::UTC);
        self.now().to_zoned(zone)
    }

    /// Where a file is put that lasts for a moment.
    pub(crate) fn temp_dir(&self) -> PathBuf {
        self.client.var("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
    }

    /// Has the person's editor change a file.
    #[expect(clippy::disallowed_methods, reason = "world is where a client starts processes")]
    pub(crate) fn edit(&self, file: &Path) -> Result<(), Problem> {
        let named = ["VISUAL", "EDITOR"].into_iter().find_map(|name| self.client.var(name));
        let is_seen = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let editor = match named.filter(|name| !name.is_empty()) {
            Some(editor) => editor.to_owned(),
            None if is_seen => "vi".into(),
            // Without a terminal, vi would wait for keys that no person can press.
            None => {
                let message = "there is no terminal to edit on, and EDITOR names no editor";
                return Err(Problem::refusal("no_editor", message)
                    .hint("set EDITOR to a program that edits the file it is given"));
            }
        };
        // It may have arguments, as in `code --wait`.
        let line = format!("{} \"$1\"", editor.display());
        let ended = Command::new("sh").args(["-c", &line, "sh"]).arg(file).status();
        match ended {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => {
                let message = format!("the editor {} ended with {status}", editor.display());
                Err(Problem::refusal("no_editor", message)
                    .hint("set EDITOR to one that works here; nothing was started"))
            }
            Err(error) => Err(Problem::failure(format_args!(
                "cannot start the editor {}: {error}",
                editor.display()
            ))),
        }
    }

    /// Becomes this command, in that directory; answers only if that cannot be.
    #[expect(clippy::disallowed_methods, reason = "world is where a client starts processes")]
    pub(crate) fn become_command(&self, command: &[OsString], dir: &Path) -> Problem {
        let (program, args) = command.split_first().expect("the parser asks for one");
        let error =
            Command::new(program).args(args).current_dir(dir).env("OUTLAST_WORKSPACE", dir).exec();
        let message = format!("cannot run {} in {}: {error}", program.display(), dir.display());
        Problem::refusal("bad_command", message)
    }

    /// A program of the user's, on this terminal: its exit code, or `None` if there is no such program. Git gets none
    /// of a repository's hooks.
    #[expect(
        clippy::disallowed_methods,
        reason = "a program that is run as the shell would run it"
    )]
    pub(crate) fn run_program(
        &self,
        program: &str,
        args: &[&str],
        dir: &Path,
        told: &[(&str, &str)],
    ) -> Result<Option<i32>, Problem> {
        let tame = ["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false"];
        let tame = tame.iter().filter(|_| program == "git");
        let status = Command::new(program)
            .args(tame)
            .args(args)
            .current_dir(dir)
            .envs(told.iter().copied())
            .status();
        match status {
            Ok(status) => Ok(Some(status.code().unwrap_or(1))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Problem::failure(format_args!("cannot run {program}: {error}"))),
        }
    }

    /// Another of our own verbs, on the terminal that we have just put back.
    #[expect(clippy::disallowed_methods, reason = "a verb that is run as the shell would run it")]
    pub(crate) fn run_verb(&self, args: &[&str]) -> Result<Child, Problem> {
        // The version that is on the screen, whatever was installed since.
        let name = self.client.program()?;
        Command::new(OWN)
            .arg0(&name)
            .args(args)
            .spawn()
            .or_else(|_no_proc| Command::new(&name).args(args).spawn())
            .map_err(|error| {
                Problem::failure(format_args!("cannot start {}: {error}", name.display()))
            })
    }

    /// Stops this process and the others of its group, until a shell continues them. Where there is no such shell, the
    /// kernel stops no process.
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
