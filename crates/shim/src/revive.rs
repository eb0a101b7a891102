//! Starts a daemon when ours has died, so that a loop heals its own supervision.
//!
//! Used by shims and by the waiter. Never competes: not while a person wants the daemon down, not while one
//! lives, and not while another shim or the waiter is at it. The new daemon is made a sibling of the shim: as a
//! descendant it would be ended together with the run, and every other run's shim with it.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use outlast_home::lock::{self, Lock};
use outlast_wire::shim::{EnvVar, Revive as Plan};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::command::{self, Failure};
use crate::spawn;

/// The first look is after one to three times this, so that many shims do not look at once.
const FIRST: Duration = Duration::from_millis(200);
/// Later looks are half to one and a half times a pause apart, which doubles up to this.
const PAUSE_MAX: Duration = Duration::from_secs(20);
/// How long a started daemon may take to get its lock before another try is allowed.
const START_WITHIN: Duration = Duration::from_secs(10);
/// How often a start in progress is looked at. Seldom: a look takes the lock for a moment.
const LOOK: Duration = Duration::from_millis(250);

/// More directories than any PATH has.
const PATH_MAX: usize = 256;

#[derive(Debug)]
pub(crate) struct Reviver {
    plan: Plan,
    state: State,
    /// The last pause, for a daemon that dies as soon as it has its lock.
    last: Duration,
}

#[derive(Debug)]
enum State {
    /// A daemon is connected.
    Content,
    Waiting {
        at: Instant,
        pause: Duration,
    },
    /// A daemon was started and the revive lock is held until it has its own or is gone.
    Starting {
        _turn: File,
        started: Option<OwnedFd>,
        next: Instant,
        until: Instant,
        pause: Duration,
    },
}

impl Reviver {
    pub(crate) fn new(plan: Plan) -> Self {
        Self { plan, state: State::Content, last: FIRST }
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Goes by another plan from here on.
    pub(crate) fn follow(&mut self, plan: Plan) {
        self.plan = plan;
    }

    pub(crate) fn daemon_came(&mut self) {
        self.state = State::Content;
    }

    pub(crate) fn daemon_gone(&mut self, now: Instant) {
        if matches!(self.state, State::Content) {
            self.state = State::Waiting { at: now + jittered(FIRST), pause: FIRST };
        }
    }

    /// The daemon is gone again, soon after it came: the pauses go on growing.
    pub(crate) fn daemon_gone_again(&mut self, now: Instant) {
        if matches!(self.state, State::Content) {
            self.wait(self.last, now);
        }
    }

    /// Brings the next look forward: the end of an attempt is worth a daemon's attention.
    pub(crate) fn look_soon(&mut self, now: Instant) {
        if let State::Waiting { .. } = self.state {
            self.state = State::Waiting { at: now + jittered(FIRST), pause: FIRST };
        }
    }

    /// No daemon has to be started: one lives, or a person asked for it to be down.
    pub(crate) fn is_cared_for(&self) -> bool {
        self.has_daemon() || self.plan.stopped_marker.exists()
    }

    pub(crate) fn has_daemon(&self) -> bool {
        is_held(&self.plan.daemon_lock)
    }

    pub(crate) fn wake_at(&self) -> Option<Instant> {
        match &self.state {
            State::Content => None,
            State::Waiting { at, .. } => Some(*at),
            State::Starting { next, .. } => Some(*next),
        }
    }

    pub(crate) fn tick(&mut self, now: Instant) {
        if self.wake_at().is_none_or(|at| now < at) {
            return;
        }
        match &mut self.state {
            State::Content => {}
            State::Waiting { pause, .. } => {
                let pause = *pause;
                self.look(pause, now);
            }
            State::Starting { started, next, until, pause, .. } => {
                let pause = *pause;
                let is_over = now >= *until || started.as_ref().is_some_and(is_gone);
                if is_over || is_held(&self.plan.daemon_lock) {
                    self.wait(pause, now);
                } else {
                    *next = now + LOOK;
                }
            }
        }
    }

    fn look(&mut self, pause: Duration, now: Instant) {
        match self.try_start() {
            Some((turn, started)) => {
                let (next, until) = (now + LOOK, now + START_WITHIN);
                self.state = State::Starting { _turn: turn, started, next, until, pause };
            }
            None => self.wait(pause, now),
        }
    }

    /// Starts a daemon if that is ours to do; answers with the revive lock and the process if it did.
    fn try_start(&self) -> Option<(File, Option<OwnedFd>)> {
        if self.plan.stopped_marker.exists() {
            return None;
        }
        // Only who holds this lock looks at the daemon's before starting one, so that two never do.
        let turn = lock::try_take_as_it_is(&self.plan.revive_lock).ok()??;
        if is_held(&self.plan.daemon_lock) {
            return None;
        }
        start(&self.plan).ok().map(|started| (turn, started))
    }

    fn wait(&mut self, pause: Duration, now: Instant) {
        let pause = (pause * 2).min(PAUSE_MAX);
        self.last = pause;
        self.state = State::Waiting { at: now + jittered(pause) / 2, pause };
    }
}

/// Between one and three times `pause`.
fn jittered(pause: Duration) -> Duration {
    let mut random = [0; 2];
    // Without randomness all wait the same, which is slower and not wrong.
    crate::tolerate(rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()));
    pause + pause * 2 * u32::from(u16::from_le_bytes(random)) / u32::from(u16::MAX)
}

fn is_held(path: &Path) -> bool {
    lock::probe(path) == Lock::Held
}

/// A process can be read from when it has ended.
fn is_gone(process: &OwnedFd) -> bool {
    let mut look = [PollFd::new(process, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    matches!(poll(&mut look, Some(&at_once)), Ok(1..))
}

/// Starts the first of these that can be executed: the name that the daemon was started by, which an upgrade leads
/// to the new version; a program of our name on the daemon's PATH; and the one that we run ourselves, which is
/// there whatever became of its file.
fn start(plan: &Plan) -> Result<Option<OwnedFd>, Failure> {
    // Ours is the daemon's too: it has started us.
    let env = command::read_env(&plan.env_file).unwrap_or_else(|_unreadable| own_environment());
    let programs = programs(&plan.exe, &env)
        .iter()
        .map(|program| command::c_string(program.as_os_str()))
        .collect::<Result<Vec<_>, _>>()?;
    let env = command::assignments(&env)?;
    let mut argv = vec![command::c_string(plan.exe.as_os_str())?];
    for arg in &plan.args {
        argv.push(command::c_string(arg.as_ref())?);
    }
    let (programs, argv, env) =
        (spawn::pointers(&programs), spawn::pointers(&argv), spawn::pointers(&env));
    spawn::sibling(&programs, &argv, &env).map_err(|error: io::Error| spawn::no_resources(error))
}

#[expect(
    clippy::disallowed_methods,
    reason = "what a started daemon gets, if its file cannot be read"
)]
fn own_environment() -> Vec<EnvVar> {
    std::env::vars_os()
        .map(|(name, value)| EnvVar { name: name.into(), value: value.into() })
        .collect()
}

fn programs(name: &Path, env: &[EnvVar]) -> Vec<PathBuf> {
    let path = env.iter().find(|var| var.name.as_os_str() == "PATH");
    let dirs = path.map(|var| std::env::split_paths(var.value.as_os_str())).into_iter().flatten();
    let on_path = dirs.filter(|dir| dir.is_absolute()).map(|dir| dir.join("outlast"));
    let mut programs = vec![name.to_owned()];
    programs.extend(on_path.take(PATH_MAX).filter(|program| program.is_file()).take(1));
    programs.push(PathBuf::from("/proc/self/exe"));
    programs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_comes_first_then_path_and_at_last_what_we_run() {
        let dir = tempfile::tempdir().expect("a directory");
        let var = |value: &std::ffi::OsStr| EnvVar {
            name: "PATH".into(),
            value: value.to_owned().into(),
        };
        let env = [var(dir.path().as_os_str())];
        let (name, own) = (Path::new("/v1/outlast"), PathBuf::from("/proc/self/exe"));
        assert_eq!(programs(name, &env), [name.to_owned(), own.clone()]);
        let found = dir.path().join("outlast");
        File::create(&found).expect("a file");
        assert_eq!(programs(name, &env), [name.to_owned(), found, own]);
    }

    fn reviver(dir: &Path) -> Reviver {
        Reviver::new(Plan {
            exe: dir.join("no-such-program"),
            args: Vec::new(),
            env_file: dir.join("env.json"),
            daemon_lock: dir.join("daemon.lock"),
            revive_lock: dir.join("revive.lock"),
            stopped_marker: dir.join("daemon.stopped"),
            soft_limits: outlast_wire::shim::SoftLimits::default(),
        })
    }

    #[test]
    fn daemons_that_die_as_soon_as_they_come_are_started_less_and_less_often() {
        let dir = tempfile::tempdir().unwrap();
        let mut reviver = reviver(dir.path());
        let now = crate::clock::now();
        let mut pauses = Vec::new();
        for _ in 0..10 {
            reviver.daemon_gone_again(now);
            let until = reviver.wake_at().expect("it looks again").duration_since(now);
            assert!(until >= reviver.last / 2 && until <= reviver.last * 3 / 2, "{until:?}");
            pauses.push(reviver.last);
            reviver.daemon_came();
        }
        assert_eq!(pauses[..3], [400, 800, 1600].map(Duration::from_millis));
        assert_eq!(pauses[9], PAUSE_MAX);
        reviver.daemon_gone(now);
        assert!(reviver.wake_at().is_some_and(|at| at <= now + FIRST * 3), "one that lived long");
    }
}
