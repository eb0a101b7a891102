//! An Outlast of our own: a home in a scratch directory, and the commands that are given to it.
//!
//! Whatever it started is gone when it is dropped, however that comes about.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::process;

/// So often is looked for processes that are still there.
const SWEEPS: usize = 200;

pub(crate) struct Private {
    binary: PathBuf,
    home: PathBuf,
    env: Vec<(&'static str, PathBuf)>,
    inherits: Inherits,
}

/// What programs that are started here get of our own environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inherits {
    Everything,
    Nothing,
}

impl Private {
    /// `home` is made and belongs to this alone.
    pub(crate) fn new(binary: &Path, home: PathBuf) -> Result<Self> {
        fs::create_dir_all(&home).with_context(|| format!("making {}", home.display()))?;
        let (env, inherits) = (Vec::new(), Inherits::Everything);
        Ok(Self { binary: binary.to_owned(), home, env, inherits })
    }

    /// Programs that are started here get only what they are given by name: no key of ours reaches them.
    pub(crate) fn with_bare_env(mut self) -> Self {
        self.inherits = Inherits::Nothing;
        self
    }

    /// Sets a variable for every program that is started here.
    pub(crate) fn with_env(mut self, name: &'static str, value: &Path) -> Self {
        self.env.push((name, value.to_owned()));
        self
    }

    /// Sets a variable for every program that is started here from now on.
    pub(crate) fn set_env(&mut self, name: &'static str, value: &Path) {
        self.env.retain(|(known, _)| *known != name);
        self.env.push((name, value.to_owned()));
    }

    pub(crate) fn binary(&self) -> &Path {
        &self.binary
    }

    pub(crate) fn home(&self) -> &Path {
        &self.home
    }

    pub(crate) fn command<S: AsRef<std::ffi::OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(&self.binary);
        if self.inherits == Inherits::Nothing {
            command.env_clear();
        }
        command.args(args).current_dir(&self.home).env("OUTLAST_HOME", &self.home);
        for name in
            ["RUST_BACKTRACE", "OUTLAST_NO_AUTOSTART", "OUTLAST_CRASH_AT", "OUTLAST_CRASH_LOG"]
        {
            command.env_remove(name);
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn output(&self, args: &[&str]) -> Result<Output> {
        self.command(args).output().with_context(|| format!("starting outlast {}", args.join(" ")))
    }

    /// What it prints, if it succeeds.
    pub(crate) fn ask(&self, args: &[&str]) -> Result<String> {
        let output = self.output(args)?;
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "outlast {}: {}: {}",
            args.join(" "),
            output.status,
            told.trim()
        );
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    pub(crate) fn ask_json(&self, args: &[&str]) -> Result<Value> {
        let text = self.ask(args)?;
        serde_json::from_str(&text)
            .with_context(|| format!("outlast {}: not JSON: {text}", args.join(" ")))
    }

    /// Starts a command whose output is read as it comes.
    pub(crate) fn open(&self, args: &[&str]) -> Result<Child> {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        command.spawn().with_context(|| format!("starting outlast {}", args.join(" ")))
    }

    pub(crate) fn start_run(&self, command: &[&str]) -> Result<String> {
        self.ask(&[&["run", "-d", "--"], command].concat())
    }

    pub(crate) fn show(&self, run: &str) -> Result<Value> {
        self.ask_json(&["show", run, "--json"])
    }

    /// The events of a run, one object each.
    pub(crate) fn events(&self, run: &str) -> Result<Vec<Value>> {
        let text = self.ask(&["events", run, "--json"])?;
        text.lines()
            .map(|line| serde_json::from_str(line).with_context(|| format!("an event: {line}")))
            .collect()
    }

    pub(crate) fn start_daemon(&self) -> Result<u32> {
        self.ask(&["daemon", "start"])?;
        self.daemon_pid()?.context("the daemon has started and has no pid")
    }

    /// `None` if no daemon answers.
    pub(crate) fn daemon_pid(&self) -> Result<Option<u32>> {
        let output = self.output(&["daemon", "status", "--json"])?;
        let Ok(status) = serde_json::from_slice::<Value>(&output.stdout) else { return Ok(None) };
        Ok(status["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()))
    }

    /// Kills the daemon as a crash would, and does not wait until the kernel has taken it apart.
    pub(crate) fn strike_daemon(&self) -> Result<u32> {
        let pid = self.daemon_pid()?.context("there is no daemon to kill")?;
        process::kill(pid, &self.home)?;
        Ok(pid)
    }

    /// Kills the daemon as a crash would, and returns once it is gone.
    pub(crate) fn kill_daemon(&self) -> Result<()> {
        let pid = self.strike_daemon()?;
        for _ in 0..SWEEPS {
            if !process::is_alive(pid) {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        bail!("daemon {pid} was killed and is alive")
    }

    fn end(&self) -> Result<()> {
        // Asked to go, so that no shim starts the next one while we are at it.
        let asked = self.output(&["daemon", "stop"]);
        sweep(&self.home)?;
        asked.map(drop)
    }
}

impl Drop for Private {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("xtask: cleaning up {}: {error:#}", self.home.display());
        }
    }
}

/// Kills every process whose home lies in `scratch`, until none is left.
pub(crate) fn sweep(scratch: &Path) -> Result<()> {
    for _ in 0..SWEEPS {
        let left = process::ours(scratch);
        if left.iter().all(|pid| !process::is_alive(*pid)) {
            return Ok(());
        }
        for pid in left {
            process::kill(pid, scratch)?;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    bail!("processes {:?} would not go", process::ours(scratch))
}
