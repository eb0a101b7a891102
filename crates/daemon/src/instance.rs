//! The lock that makes this daemon the only one of its home, and what a daemon leaves for the next.
//!
//! The lock file names the daemon and its socket. Its content counts while the lock is held. We never unlink the
//! file.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use outlast_engine::BootId;
use outlast_home::holder::{self, Holder};
use outlast_home::layout::{FOR_ALL, FOR_ALL_LATER, Layout};
use outlast_home::lock;
use outlast_wire::again;
use outlast_wire::codes::Code;
use outlast_wire::environment::not_inherited;
use outlast_wire::shim::EnvVar;
use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;
use crate::starts::Ended;
use crate::world::clock::Reading;
use crate::world::files::{self, Lasting};
use crate::world::limits;

/// A shim or a client that looks whether a daemon lives holds the lock for an instant itself. A daemon holds
/// it for longer than this.
const LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Held for the daemon's life; the kernel frees it on any death.
pub(crate) struct Instance {
    lock: File,
}

impl Instance {
    /// Takes the lock, or says which process has it.
    pub(crate) fn take(path: &Path) -> Result<Self, Refusal> {
        let lock = open(path)?;
        for _ in 0..LOOKS {
            match again::try_lock(&lock) {
                Ok(()) => return Ok(Self::holding(lock)),
                Err(TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_LOOKS),
                Err(TryLockError::Error(error)) => return Err(cannot(path, &error)),
            }
        }
        Err(already_running(path))
    }

    /// Takes the lock if no process has it.
    pub(crate) fn try_take(path: &Path) -> Result<Option<Self>, Refusal> {
        let lock = open(path)?;
        match again::try_lock(&lock) {
            Ok(()) => Ok(Some(Self::holding(lock))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(cannot(path, &error)),
        }
    }

    /// Waits until the lock is free. For a service manager, to which leaving would mean trying again.
    pub(crate) fn wait(path: &Path) -> Result<Self, Refusal> {
        let lock = open(path)?;
        again::lock(&lock).map_err(|error| cannot(path, &error))?;
        Ok(Self::holding(lock))
    }

    fn holding(lock: File) -> Self {
        Self { lock: limits::closed_first(lock) }
    }

    /// Writes into the lock which process holds it.
    pub(crate) fn say_who(&mut self, holder: &Holder) -> io::Result<()> {
        holder::write(&mut self.lock, holder)
    }

    /// True if the lock says exactly this.
    pub(crate) fn says(&self, holder: &Holder) -> io::Result<bool> {
        holder::is_written(&self.lock, holder)
    }

    /// True while `path` is the file whose lock this is; another process may have removed or replaced it.
    pub(crate) fn is_at(&self, path: &Path) -> io::Result<bool> {
        let ours = self.lock.metadata()?;
        match std::fs::metadata(path) {
            Ok(there) => Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn open(path: &Path) -> Result<File, Refusal> {
    match lock::open(path) {
        // No daemon holds a directory or a pipe.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::IsADirectory | io::ErrorKind::InvalidInput
            ) =>
        {
            files::set_aside(path).and_then(|_| lock::open(path))
        }
        opened => opened,
    }
    .map_err(|error| cannot(path, &error))
}

fn already_running(path: &Path) -> Refusal {
    let who = match holder::last(path) {
        Some(holder) => {
            format!("pid {}, version {}, since {}", holder.pid, holder.version, holder.started_at)
        }
        None => "it has not said who it is yet".to_owned(),
    };
    Refusal::new(Code::DaemonRunning, format!("a daemon already holds {} ({who})", path.display()))
        .hint("look at it, or stop it; its runs keep running:\noutlast daemon status\noutlast daemon stop")
}

fn cannot(path: &Path, error: &io::Error) -> Refusal {
    Refusal::new(Code::StateUnusable, format!("cannot lock {}: {error}", path.display()))
        .hint("the state directory must be writable by you")
}

/// How the daemon before this one ended. Asked before it is noted that this one runs.
pub(crate) fn last_end(layout: &Layout) -> Ended {
    let has_been_one = layout.daemon_env().exists();
    if layout.stopped_marker().exists() || !has_been_one { Ended::Asked } else { Ended::Unasked }
}

/// What the next daemon must find: that this one was not asked to be gone, and the environment to start with.
pub(crate) fn mark_running(
    layout: &Layout,
    env: &[(std::ffi::OsString, std::ffi::OsString)],
) -> io::Result<()> {
    let stopped = layout.stopped_marker();
    if files::remove(&stopped).is_err() {
        files::set_aside(&stopped)?;
    }
    let env: Vec<EnvVar> = env
        .iter()
        .filter(|(name, _)| !not_inherited().any(|ours| name == ours))
        .map(|(name, value)| EnvVar { name: name.clone().into(), value: value.clone().into() })
        .collect();
    let json = serde_json::to_vec(&env).map_err(io::Error::other)?;
    files::write_whole(&layout.daemon_env(), &json, Lasting::Process)
}

/// What one daemon read of the clocks, so that the next one on the same boot cannot be sent back in time.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct KeptClock {
    boot: String,
    wall_ms: u64,
    boot_ms: u64,
}

/// A clock that cannot be read is no clock: the wall's is believed then.
pub(crate) fn kept_clock(layout: &Layout) -> Option<(BootId, Reading)> {
    let bytes = files::read_regular(&layout.clock(), 4096).ok()?;
    let kept: KeptClock = serde_json::from_slice(&bytes).ok()?;
    Some((BootId(kept.boot), Reading { wall_ms: kept.wall_ms, boot_ms: kept.boot_ms }))
}

pub(crate) fn keep_clock(layout: &Layout, boot: &BootId, reading: Reading) -> io::Result<()> {
    let Reading { wall_ms, boot_ms } = reading;
    let kept = KeptClock { boot: boot.0.clone(), wall_ms, boot_ms };
    let json = serde_json::to_vec(&kept).map_err(io::Error::other)?;
    files::write_whole(&layout.clock(), &json, Lasting::Process)
}

/// True if `daemon stop` ended the daemon before this one: a daemon that waited for the lock leaves, too.
pub(crate) fn is_to_stay_down(layout: &Layout) -> bool {
    marker(layout).is_some_and(|it| it == FOR_ALL.as_bytes() || it == FOR_ALL_LATER.as_bytes())
}

/// True if the daemon before this one was dead when it was ordered to stay stopped.
pub(crate) fn was_dead_before_the_order(layout: &Layout) -> bool {
    marker(layout).is_some_and(|it| it == FOR_ALL_LATER.as_bytes())
}

/// What the marker of a stop holds. One that is longer is not ours.
fn marker(layout: &Layout) -> Option<Vec<u8>> {
    let most = FOR_ALL.len().max(FOR_ALL_LATER.len());
    files::read_regular(&layout.stopped_marker(), most).ok()
}

/// The same, for a daemon that waits for the lock as well.
pub(crate) fn mark_stopped_for_all(layout: &Layout) -> io::Result<()> {
    files::write_whole(&layout.stopped_marker(), FOR_ALL.as_bytes(), Lasting::Power)
}

/// Shims leave the daemon down from here on.
pub(crate) fn mark_stopped(layout: &Layout) -> io::Result<()> {
    files::write_whole(&layout.stopped_marker(), b"", Lasting::Power)
}
