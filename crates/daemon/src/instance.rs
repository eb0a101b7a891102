//! One daemon: whoever holds the lock. The file is never unlinked, and what it says is for people only.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use outlast_engine::BootId;
use outlast_wire::layout::Layout;
use outlast_wire::shim::{EnvVar, not_inherited};
use serde::{Deserialize, Serialize};

use crate::refusal::Refusal;
use crate::starts::Ended;
use crate::world::clock::Reading;
use crate::world::files::{self, Lasting};

/// A shim or a client that looks whether a daemon lives holds the lock for an instant itself. A daemon holds
/// it for longer than this.
const LOOKS: u32 = 20;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Held for the daemon's life; the kernel frees it on any death.
pub(crate) struct Instance {
    lock: File,
}

/// Who holds the lock, as far as the file says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Holder {
    pub(crate) pid: u32,
    pub(crate) version: String,
    pub(crate) epoch: Option<u64>,
    pub(crate) started_at: String,
}

impl Instance {
    /// Takes the lock, or says who has it.
    pub(crate) fn take(path: &Path) -> Result<Self, Refusal> {
        let mut lock = open(path)?;
        for _ in 0..LOOKS {
            match lock.try_lock() {
                Ok(()) => return Ok(Self { lock }),
                Err(TryLockError::WouldBlock) => std::thread::sleep(BETWEEN_LOOKS),
                Err(TryLockError::Error(error)) => return Err(cannot(path, &error)),
            }
        }
        Err(already_running(&mut lock, path))
    }

    /// Takes the lock if nobody has it.
    pub(crate) fn try_take(path: &Path) -> Result<Option<Self>, Refusal> {
        let lock = open(path)?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Self { lock })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(cannot(path, &error)),
        }
    }

    /// Waits until the lock is free. For a service manager, to which leaving would mean trying again.
    pub(crate) fn wait(path: &Path) -> Result<Self, Refusal> {
        let lock = open(path)?;
        lock.lock().map_err(|error| cannot(path, &error))?;
        Ok(Self { lock })
    }

    pub(crate) fn say_who(&mut self, holder: &Holder) -> io::Result<()> {
        let text = serde_json::to_vec(holder).map_err(io::Error::other)?;
        self.lock.set_len(0)?;
        self.lock.seek(SeekFrom::Start(0))?;
        self.lock.write_all(&text)
    }
}

fn open(path: &Path) -> Result<File, Refusal> {
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path);
    opened.map_err(|error| cannot(path, &error))
}

fn already_running(lock: &mut File, path: &Path) -> Refusal {
    let mut text = String::new();
    let holder = lock
        .read_to_string(&mut text)
        .ok()
        .and_then(|_| serde_json::from_str::<Holder>(&text).ok());
    let who = match holder {
        Some(holder) => {
            format!("pid {}, version {}, since {}", holder.pid, holder.version, holder.started_at)
        }
        None => "it has not said who it is yet".to_owned(),
    };
    Refusal::new("daemon_running", format!("a daemon already holds {} ({who})", path.display()))
        .hint("`outlast daemon status` shows it, `outlast daemon stop` ends it and leaves its runs alive")
}

fn cannot(path: &Path, error: &io::Error) -> Refusal {
    Refusal::new("state_unusable", format!("cannot lock {}: {error}", path.display()))
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
    files::remove(&layout.stopped_marker())?;
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
    let bytes = std::fs::read(layout.clock()).ok()?;
    let kept: KeptClock = serde_json::from_slice(&bytes).ok()?;
    Some((BootId(kept.boot), Reading { wall_ms: kept.wall_ms, boot_ms: kept.boot_ms }))
}

pub(crate) fn keep_clock(layout: &Layout, boot: &BootId, reading: Reading) -> io::Result<()> {
    let Reading { wall_ms, boot_ms } = reading;
    let kept = KeptClock { boot: boot.0.clone(), wall_ms, boot_ms };
    let json = serde_json::to_vec(&kept).map_err(io::Error::other)?;
    files::write_whole(&layout.clock(), &json, Lasting::Process)
}

/// Shims leave the daemon down from here on.
pub(crate) fn mark_stopped(layout: &Layout) -> io::Result<()> {
    files::write_whole(&layout.stopped_marker(), b"", Lasting::Power)
}
