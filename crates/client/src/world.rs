//! The world as the client library sees it: the environment, Outlast's directories, the program itself, and the one
//! process that the library starts, a daemon.
//!
//! Terminals and the wall clock belong to the program that uses this library.

use std::cell::OnceCell;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use outlast_home::layout::Layout;
use outlast_wire::environment::not_inherited;

use crate::environment::{directories, lookup};
use crate::problem::Problem;
use crate::program::{self, OWN, Program};

pub struct World {
    pub env: Vec<(OsString, OsString)>,
    layout: Option<Layout>,
    program: OnceCell<Program>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Autostart {
    Allowed,
    Forbidden,
}

impl World {
    pub fn new(env: Vec<(OsString, OsString)>) -> Self {
        let layout = Layout::from_environment(&directories(&env));
        Self { env, layout, program: OnceCell::new() }
    }

    /// The value of an environment variable; `None` if the variable is not set, or is empty.
    pub fn var(&self, name: &str) -> Option<&OsStr> {
        lookup(&self.env, name)
    }

    pub fn layout(&self) -> Result<&Layout, Problem> {
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
