//! Starts a daemon when ours has died, so that a loop heals its own supervision.
//!
//! Never competes: not while somebody asked the daemon to be down, not while one lives, and not while
//! another shim is at it. The new daemon is made a sibling of the shim: as a descendant it would be
//! ended together with the run, and every other run's shim with it.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use outlast_wire::shim::Revive as Plan;

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

#[derive(Debug)]
pub(crate) struct Reviver {
    plan: Plan,
    state: State,
}

#[derive(Debug)]
enum State {
    /// A daemon is connected.
    Content,
    Waiting {
        at: Instant,
        pause: Duration,
    },
    /// A daemon was started and the revive lock is held until it has its own.
    Starting {
        _turn: File,
        next: Instant,
        until: Instant,
        pause: Duration,
    },
}

impl Reviver {
    pub(crate) fn new(plan: Plan) -> Self {
        Self { plan, state: State::Content }
    }

    pub(crate) fn daemon_came(&mut self) {
        self.state = State::Content;
    }

    pub(crate) fn daemon_gone(&mut self, now: Instant) {
        if matches!(self.state, State::Content) {
            self.state = State::Waiting { at: now + jittered(FIRST), pause: FIRST };
        }
    }

    /// Brings the next look forward: the end of an attempt is worth a daemon's attention.
    pub(crate) fn look_soon(&mut self, now: Instant) {
        if let State::Waiting { .. } = self.state {
            self.state = State::Waiting { at: now + jittered(FIRST), pause: FIRST };
        }
    }

    /// Nobody has to start a daemon: one lives, or somebody asked for it to be down.
    pub(crate) fn is_cared_for(&self) -> bool {
        is_held(&self.plan.daemon_lock) || self.plan.stopped_marker.exists()
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
            State::Starting { next, until, pause, .. } => {
                let pause = *pause;
                if now >= *until || is_held(&self.plan.daemon_lock) {
                    self.wait(pause, now);
                } else {
                    *next = now + LOOK;
                }
            }
        }
    }

    fn look(&mut self, pause: Duration, now: Instant) {
        match self.try_start() {
            Some(turn) => {
                let (next, until) = (now + LOOK, now + START_WITHIN);
                self.state = State::Starting { _turn: turn, next, until, pause };
            }
            None => self.wait(pause, now),
        }
    }

    /// Starts a daemon if that is ours to do; answers with the revive lock if it did.
    fn try_start(&self) -> Option<File> {
        if self.plan.stopped_marker.exists() {
            return None;
        }
        // Only who holds this lock looks at the daemon's before starting one, so that two never do.
        let turn = take(&self.plan.revive_lock)?;
        if is_held(&self.plan.daemon_lock) {
            return None;
        }
        start(&self.plan).ok().map(|()| turn)
    }

    fn wait(&mut self, pause: Duration, now: Instant) {
        let pause = (pause * 2).min(PAUSE_MAX);
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

/// The lock, if nobody has it.
fn take(path: &Path) -> Option<File> {
    let options =
        OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
    let file = options.ok()?;
    file.try_lock().is_ok().then_some(file)
}

fn is_held(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

fn start(plan: &Plan) -> Result<(), Failure> {
    let env = command::assignments(&command::read_env(&plan.env_file)?)?;
    let program = command::c_string(plan.exe.as_os_str())?;
    let mut argv = vec![program.clone()];
    for arg in &plan.args {
        argv.push(command::c_string(arg.as_ref())?);
    }
    let (argv, env) = (spawn::pointers(&argv), spawn::pointers(&env));
    spawn::sibling(&program, &argv, &env).map_err(|error: io::Error| spawn::no_resources(error))
}
