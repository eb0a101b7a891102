//! The world as the client library sees it: the environment, Outlast's directories, the program itself, and the one
//! process that the library starts, a daemon.
//!
//! Terminals and the wall clock belong to the program that uses this library.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use outlast_home::layout::Layout;
use outlast_wire::environment::not_inherited;

use crate::environment::{directories, lookup};
use crate::problem::Problem;
use crate::program::{self, OWN, Program};

pub struct World {
    pub env: Vec<(OsString, OsString)>,
    layout: Option<Layout>,
    program: OnceLock<Program>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Autostart {
    Allowed,
    Forbidden,
}

impl World {
    pub fn new(env: Vec<(OsString, OsString)>) -> Self {
        let layout = Layout::from_environment(&directories(&env));
        Self { env, layout, program: OnceLock::new() }
    }

    /// The value of an environment variable; `None` if the variable is not set, or is empty.
    pub fn var(&self, name: &str) -> Option<&OsStr> {
        lookup(&self.env, name)
    }

    pub fn layout(&self) -> Result<&Layout, Problem> {
        // The daemon works in another directory than its clients.
        if let Some(home) = self.var("OUTLAST_HOME").map(Path::new).filter(|it| !it.is_absolute()) {
            let home = home.display();
            let message = format!("OUTLAST_HOME is {home}, which is not an absolute path");
            // In quotes a shell leaves the tilde as it is.
            let home = home.to_string();
            let whole = match home.strip_prefix("~/") {
                Some(rest) => format!("$HOME/{rest}"),
                None => format!("$PWD/{home}"),
            };
            return Err(Problem::refusal("relative_home", message)
                .hint(format_args!("export OUTLAST_HOME=\"{whole}\"")));
        }
        self.layout.as_ref().ok_or_else(|| {
            Problem::refusal("no_home", "there is no directory to keep runs in")
                .hint("set OUTLAST_HOME, or HOME, to an absolute path")
        })
    }

    pub fn autostart(&self) -> Autostart {
        match self.var("OUTLAST_NO_AUTOSTART") {
            Some(value) if value == "1" => Autostart::Forbidden,
            _ => Autostart::Allowed,
        }
    }

    /// True if an attempt or errand of a run called this program. The shim of that step keeps a daemon alive.
    pub fn is_in_run(&self) -> bool {
        self.var("OUTLAST_RUN_ID").is_some()
    }

    /// True if that run is one of this home's: a daemon that this program starts would be a process of the run, and would
    /// be ended with it.
    pub fn is_in_run_of_home(&self) -> bool {
        let run = self.var("OUTLAST_RUN_ID").and_then(OsStr::to_str).filter(|id| !id.contains('/'));
        run.zip(self.layout.as_ref()).is_some_and(|(run, layout)| layout.run(run).0.is_dir())
    }

    /// What proves to the daemon which run called this program. A token that no header can carry counts as none.
    pub fn token(&self) -> Option<String> {
        let token = self.var("OUTLAST_TOKEN")?.to_str()?;
        token.bytes().all(|byte| byte.is_ascii_graphic()).then(|| token.to_owned())
    }

    /// Which program this is. A client that goes on for a while asks early, because an upgrade may move the name
    /// meanwhile; a client that asks a single question does without.
    pub fn find_program(&self) -> &Program {
        self.program.get_or_init(|| Program::find(&self.env, std::env::args_os().next()))
    }

    /// The name of this program that leads to the installed version also after an upgrade.
    pub fn program(&self) -> Result<PathBuf, Problem> {
        self.find_program()
            .lasting()
            .map(Path::to_owned)
            .ok_or_else(|| Problem::failure("cannot tell where the outlast binary is"))
    }

    /// A command that this client waits for: a call under a key.
    #[expect(clippy::disallowed_methods, reason = "world is where a client starts processes")]
    pub(crate) fn command(&self, program: &OsStr) -> Command {
        Command::new(program)
    }

    /// Starts a daemon that outlives this client, of the version that is installed. The daemon's standard output
    /// carries the line that says that the daemon is ready.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Vec<(OsString, OsString)> {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    #[test]
    fn a_relative_outlast_home_left_a_daemon_under_the_root() {
        let world = World::new(env(&[("OUTLAST_HOME", "here"), ("HOME", "/u")]));
        let Err(Problem::Told { info, exit: 2 }) = world.layout() else { panic!("it is refused") };
        assert_eq!(info.message, "OUTLAST_HOME is here, which is not an absolute path");
        assert_eq!(info.hint.as_deref(), Some("export OUTLAST_HOME=\"$PWD/here\""));
        let world = World::new(env(&[("OUTLAST_HOME", "~/x"), ("HOME", "/u")]));
        let Err(Problem::Told { info, .. }) = world.layout() else { panic!("it is refused") };
        assert_eq!(info.hint.as_deref(), Some("export OUTLAST_HOME=\"$HOME/x\""));
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
