//! The doors to the world: the clock, chance, files that must last, and processes.
//!
//! Everything else in this crate gets what it needs of these as a value. Nothing here knows what a run is
//! good for.

pub(crate) mod files;
pub(crate) mod git;
pub(crate) mod orphans;
pub(crate) mod process;
pub(crate) mod spawn;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use outlast_engine::{BootId, Moment, Time};

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) boot: BootId,
}

impl World {
    pub(crate) fn look() -> std::io::Result<Self> {
        Ok(Self { boot: BootId(boot_id()?) })
    }

    pub(crate) fn now(&self) -> Time {
        #[expect(clippy::disallowed_methods, reason = "this is the daemon's clock")]
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Time(u64::try_from(since_epoch.as_millis()).unwrap_or(u64::MAX))
    }

    pub(crate) fn moment(&self) -> Moment {
        Moment { now: self.now(), boot: self.boot.clone() }
    }
}

/// Bytes nobody can guess.
pub(crate) fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        filled +=
            rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes)
}

/// Which boot this is. A debug build can be told another, so that a test can reboot the machine.
#[cfg(target_os = "linux")]
pub(crate) fn boot_id() -> std::io::Result<String> {
    if cfg!(debug_assertions) {
        #[expect(
            clippy::disallowed_methods,
            reason = "a test's pretended boot; not in a release build"
        )]
        let pretended = std::env::var("OUTLAST_FAKE_BOOT_ID");
        if let Ok(pretended) = pretended {
            return Ok(pretended);
        }
    }
    Ok(std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

/// Untested here: the boot session of macOS.
#[cfg(target_os = "macos")]
pub(crate) fn boot_id() -> std::io::Result<String> {
    #[expect(clippy::disallowed_methods, reason = "world is where the daemon starts processes")]
    let output =
        std::process::Command::new("sysctl").args(["-n", "kern.bootsessionuuid"]).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
