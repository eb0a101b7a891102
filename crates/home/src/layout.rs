//! Where everything is. Names only: nothing here looks at a disk.

use std::path::{Path, PathBuf};

/// In the marker of an order that is for every daemon of the home.
pub const FOR_ALL: &str = "all";
/// The same order, of a daemon that had died before it came.
pub const FOR_ALL_LATER: &str = "all, after it died";

/// The directories of one Outlast.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub config: PathBuf,
    pub state: PathBuf,
    pub runtime: PathBuf,
}

/// The directories that the environment names, each if it is set and not empty.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    pub outlast_home: Option<PathBuf>,
    pub home: Option<PathBuf>,
    pub xdg_config_home: Option<PathBuf>,
    pub xdg_state_home: Option<PathBuf>,
    pub xdg_runtime_dir: Option<PathBuf>,
}

impl Layout {
    /// Everything under one directory, as `OUTLAST_HOME` asks.
    pub fn under(home: &Path) -> Self {
        Self { config: home.to_owned(), state: home.join("state"), runtime: home.join("run") }
    }

    /// `None` if there is no home directory to put anything in.
    pub fn from_environment(environment: &Environment) -> Option<Self> {
        if let Some(home) = &environment.outlast_home {
            return Some(Self::under(home));
        }
        let home = environment.home.as_deref();
        let or_home =
            |xdg: &Option<PathBuf>, rest: &str| xdg.clone().or_else(|| Some(home?.join(rest)));
        let config = or_home(&environment.xdg_config_home, ".config")?.join("outlast");
        let state = or_home(&environment.xdg_state_home, ".local/state")?.join("outlast");
        let runtime = match &environment.xdg_runtime_dir {
            Some(runtime) => runtime.join("outlast"),
            None => state.join("run"),
        };
        Some(Self { config, state, runtime })
    }

    /// The directory that a person would call this Outlast's: `OUTLAST_HOME`, or else its state.
    pub fn home(&self) -> &Path {
        if self.state == self.config.join("state") { &self.config } else { &self.state }
    }

    /// Where a daemon listens if it can. Where it does listen, its lock says.
    pub fn socket(&self) -> PathBuf {
        self.runtime.join("daemon.sock")
    }

    /// Where a daemon listens if it has no runtime directory, or has lost it.
    pub fn state_socket(&self) -> PathBuf {
        self.state.join("daemon.sock")
    }

    pub fn database(&self) -> PathBuf {
        self.state.join("outlast.db")
    }

    /// Held with flock by the one daemon, for its life; never unlinked.
    pub fn daemon_lock(&self) -> PathBuf {
        self.state.join("daemon.lock")
    }

    /// Held by the one shim or waiter that is starting a daemon just now.
    pub fn revive_lock(&self) -> PathBuf {
        self.state.join("revive.lock")
    }

    /// Held with flock by the one waiter, for its life; says who the waiter is.
    pub fn waiter_lock(&self) -> PathBuf {
        self.state.join("waiter.lock")
    }

    /// What the waiter goes by: a [`outlast_wire::shim::Waiter`] as JSON.
    pub fn waiter_plan(&self) -> PathBuf {
        self.state.join("waiter.json")
    }

    /// One byte, kept by the daemon: `0` while no run needs a daemon.
    pub fn needed(&self) -> PathBuf {
        self.state.join("daemon.needed")
    }

    /// Exists while the daemon is down because a person asked for that. Holds [`FOR_ALL`] if the order was
    /// `daemon stop`, which also means a daemon that waits for the lock, or [`FOR_ALL_LATER`] if the daemon was dead by
    /// then.
    pub fn stopped_marker(&self) -> PathBuf {
        self.state.join("daemon.stopped")
    }

    /// Held with flock by the one `outlast web`, for its life.
    pub fn web_lock(&self) -> PathBuf {
        self.state.join("web.lock")
    }

    /// Where `outlast web` is asked for another link.
    pub fn web_socket(&self) -> PathBuf {
        self.state.join("web.sock")
    }

    /// Leads a browser to the page, for `outlast web --open`.
    pub fn web_opener(&self) -> PathBuf {
        self.state.join("web-open.html")
    }

    /// The key that tokens of steps are made with.
    pub fn token_key(&self) -> PathBuf {
        self.state.join("token.key")
    }

    /// The environment that a daemon started by a shim gets.
    pub fn daemon_env(&self) -> PathBuf {
        self.state.join("daemon.env.json")
    }

    /// What the last daemon read of the clocks.
    pub fn clock(&self) -> PathBuf {
        self.state.join("clock.json")
    }

    /// How often daemons have had to be started lately.
    pub fn starts(&self) -> PathBuf {
        self.state.join("starts.json")
    }

    /// What happened to daemons lately, for `outlast report`.
    pub fn diary(&self) -> PathBuf {
        self.state.join("diary.json")
    }

    /// When a person last looked at `outlast report`.
    pub fn looked_at(&self) -> PathBuf {
        self.state.join("report.json")
    }

    /// Files that a living daemon writes to: the newest of them dates its last sign of life.
    pub fn signs_of_life(&self) -> [PathBuf; 5] {
        let database = self.database();
        let mut beside = database.clone().into_os_string();
        beside.push("-wal");
        [self.daemon_log(), self.clock(), self.daemon_lock(), database, beside.into()]
    }

    /// Which journal was served here last, and the highest epoch: kept outside the journal itself.
    pub fn journal(&self) -> PathBuf {
        self.state.join("journal.json")
    }

    /// Where workspaces are made unless a loop file names another place.
    pub fn workspaces(&self) -> PathBuf {
        self.state.join("workspaces")
    }

    /// The operator's settings.
    pub fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// Room that is given up when the disk is full.
    pub fn reserve(&self) -> PathBuf {
        self.state.join("reserve")
    }

    pub fn daemon_log(&self) -> PathBuf {
        self.state.join("daemon.log")
    }

    pub fn runs(&self) -> PathBuf {
        self.state.join("runs")
    }

    pub fn run(&self, run: &str) -> RunDir {
        RunDir(self.runs().join(run))
    }
}

/// `runs/<run>/`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir(pub PathBuf);

impl RunDir {
    pub fn spec(&self) -> PathBuf {
        self.0.join("spec.json")
    }

    /// The run's spec while it is being made. It becomes [`RunDir::spec`] once the journal has the run and before
    /// a client is told of it, so a directory that has only this belongs to a run that was never acknowledged.
    pub fn unacknowledged_spec(&self) -> PathBuf {
        self.0.join("spec.new")
    }

    /// Exists from the moment that a removal of the run was asked for.
    pub fn removing(&self) -> PathBuf {
        self.0.join("removing")
    }

    /// The environment the run was started with, 0600, gone when the run has ended.
    pub fn env(&self) -> PathBuf {
        self.0.join("env.json")
    }

    /// What each attempt reads as its standard input, if the run was given that.
    pub fn stdin(&self) -> PathBuf {
        self.0.join("stdin")
    }

    /// The loop file as it was when the run was made, for people (docs/workflow.md) and for `rerun`. The journal has its
    /// hash and what follows from it.
    pub fn workflow(&self) -> PathBuf {
        self.0.join("workflow.md")
    }

    /// What made the run, if it was no person, and of what.
    pub fn trigger(&self) -> PathBuf {
        self.0.join("trigger.json")
    }

    /// Where the run works. For people (docs/workflow.md): no code reads it, the journal has it too.
    pub fn workspace(&self) -> PathBuf {
        self.0.join("workspace.json")
    }

    /// How the run ended, from before its journal says that it has.
    pub fn ended(&self) -> PathBuf {
        self.0.join("ended.json")
    }

    /// Which step a daemon has had launched last, outside of that step's own directory.
    pub fn launched(&self) -> PathBuf {
        self.0.join("launched")
    }

    /// The agent's own name of the conversation that the next attempt goes on with.
    pub fn session(&self) -> PathBuf {
        self.0.join("session.json")
    }

    /// The git directory of the run's snapshots: an index, and objects if they have no other place.
    pub fn snapshots(&self) -> PathBuf {
        self.0.join("snap.git")
    }

    /// What calls under keys wrote, if it is long.
    pub fn calls(&self) -> PathBuf {
        self.0.join("calls")
    }

    pub fn attempt(&self, turn: u32, attempt: u32) -> AttemptDir {
        AttemptDir(self.0.join(format!("t{turn}.a{attempt}")))
    }

    /// Of a host command, which a shim owns as it owns an attempt.
    pub fn errand(&self, number: u32) -> AttemptDir {
        AttemptDir(self.0.join(format!("e{number}")))
    }
}

/// `runs/<run>/t<turn>.a<attempt>/`, or `runs/<run>/e<number>/` of an errand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptDir(pub PathBuf);

impl AttemptDir {
    /// Turn and attempt of a directory with this name: `t3.a1` is turn 3, attempt 1.
    pub fn step_of(name: &str) -> Option<(u32, u32)> {
        let (turn, attempt) = name.strip_prefix('t')?.split_once(".a")?;
        Some((turn.parse().ok()?, attempt.parse().ok()?))
    }

    pub fn spec(&self) -> PathBuf {
        self.0.join("spec.json")
    }

    /// Held with flock by the shim, for its life.
    pub fn lock(&self) -> PathBuf {
        self.0.join("shim.lock")
    }

    pub fn events(&self) -> PathBuf {
        self.0.join("events.jsonl")
    }

    pub fn output(&self) -> PathBuf {
        self.0.join("output.log")
    }

    pub fn index(&self) -> PathBuf {
        self.0.join("output.idx")
    }

    pub fn socket(&self) -> PathBuf {
        self.0.join("ctl.sock")
    }

    /// What the agent is told in this turn.
    pub fn prompt(&self) -> PathBuf {
        self.0.join("prompt.md")
    }

    pub fn request(&self) -> PathBuf {
        self.0.join("request.json")
    }

    /// All messages of the turn in whole, one JSON object a line; there only if the prompt or the request had to
    /// cut one.
    pub fn messages(&self) -> PathBuf {
        self.0.join("messages.jsonl")
    }

    /// Written by the agent.
    pub fn response(&self) -> PathBuf {
        self.0.join("response.json")
    }

    /// Touched by an agent that is alive and has nothing to say.
    pub fn heartbeat(&self) -> PathBuf {
        self.0.join("heartbeat")
    }

    /// What the driver of an agent is to do in this attempt.
    pub fn drive(&self) -> PathBuf {
        self.0.join("drive.json")
    }

    /// What the agent did, one event a line, as its driver heard it.
    pub fn agent_events(&self) -> PathBuf {
        self.0.join("agent.jsonl")
    }

    /// Every line between the driver and the agent, as it was.
    pub fn transcript(&self) -> PathBuf {
        self.0.join("transcript.jsonl")
    }

    /// How the agent's turn ended, by its driver's word.
    pub fn agent_end(&self) -> PathBuf {
        self.0.join("agent-end.json")
    }

    /// What a host command reads.
    pub fn input(&self) -> PathBuf {
        self.0.join("input.json")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outlast_home_holds_everything() {
        let environment = Environment {
            outlast_home: Some("/h".into()),
            xdg_state_home: Some("/elsewhere".into()),
            ..Environment::default()
        };
        let layout = Layout::from_environment(&environment).expect("a home is set");
        assert_eq!(layout.database(), Path::new("/h/state/outlast.db"));
        assert_eq!(layout.socket(), Path::new("/h/run/daemon.sock"));
        assert_eq!(
            layout.run("r").attempt(2, 3).socket(),
            Path::new("/h/state/runs/r/t2.a3/ctl.sock")
        );
        assert_eq!(layout.run("r").errand(4).input(), Path::new("/h/state/runs/r/e4/input.json"));
    }

    #[test]
    fn without_it_xdg_decides_and_home_is_the_fallback() {
        let environment = Environment { home: Some("/u".into()), ..Environment::default() };
        let layout = Layout::from_environment(&environment).expect("a home is set");
        assert_eq!(layout.state, Path::new("/u/.local/state/outlast"));
        assert_eq!(layout.socket(), Path::new("/u/.local/state/outlast/run/daemon.sock"));
        assert_eq!(Layout::from_environment(&Environment::default()), None);
    }
}
