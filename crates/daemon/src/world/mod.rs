//! The world: the clock, randomness, files that must last, and processes.
//!
//! Every other module of this crate gets these as a value. Nothing here knows what a run is.

pub(crate) mod alarm;
pub(crate) mod clock;
pub(crate) mod command;
pub(crate) mod file_watch;
pub(crate) mod files;
pub(crate) mod git;
pub(crate) mod host;
pub(crate) mod limits;
pub(crate) mod orphans;
pub(crate) mod peers;
pub(crate) mod process;
pub(crate) mod spawn;
pub(crate) mod zones;

use clock::{Clock, Reading};
use outlast_engine::{BootId, Context, Slot, Time};
use outlast_home::boot;
use outlast_wire::shim::EnvVar;

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) boot: BootId,
    clock: Clock,
}

impl World {
    /// The world, given what an earlier daemon read of its clocks, and on which boot.
    pub(crate) fn look(earlier: Option<(BootId, Reading)>) -> std::io::Result<Self> {
        let boot = BootId(boot::id()?);
        let earlier = earlier.filter(|(theirs, _)| *theirs == boot).map(|(_, reading)| reading);
        Ok(Self { boot, clock: Clock::start(earlier) })
    }

    pub(crate) fn now(&self) -> Time {
        self.clock.now()
    }

    /// Time that nothing moves while this daemon lives: for what is kept in memory only. Comes from the same line as
    /// [`World::now`] at the daemon's start.
    pub(crate) fn steady(&self) -> Time {
        self.clock.steady()
    }

    /// Time that passes only while the machine is awake.
    pub(crate) fn awake_ms(&self) -> u64 {
        clock::awake_ms()
    }

    /// What a file is dated by, as a time of ours.
    pub(crate) fn ours(&self, theirs: Time) -> Time {
        self.clock.ours(theirs)
    }

    /// A shim's time, as a time of ours. One that says on which line of time it is keeps its age.
    pub(crate) fn of_shim(&self, theirs: Time, booted_at_ms: Option<i64>) -> Time {
        match booted_at_ms {
            Some(booted_at_ms) => self.clock.on_our_line(theirs, booted_at_ms),
            None => self.ours(theirs),
        }
    }

    /// When the machine was started, as far as is believed.
    pub(crate) fn booted_at_ms(&self) -> i64 {
        self.clock.moment().1
    }

    /// What the next daemon goes on from.
    pub(crate) fn reading(&self) -> Reading {
        self.clock.reading()
    }

    /// The next daemon will find this reading.
    pub(crate) fn kept(&self, reading: Reading) {
        self.clock.kept(reading);
    }

    /// True if the next daemon would be on another line of time.
    pub(crate) fn is_news(&self) -> bool {
        self.clock.is_news()
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    pub(crate) fn context(&self, slot: Slot) -> Context {
        let (now, booted_at_ms) = self.clock.moment();
        let booted_at_ms = Some(booted_at_ms);
        let build = Some(outlast_wire::version::BUILD);
        Context { slot, booted_at_ms, build, ..Context::new(now, self.boot.clone()) }
    }
}

/// Lets a descriptor be waited for until it can be read.
#[cfg(target_os = "linux")]
pub(crate) fn readable(
    fd: std::os::fd::OwnedFd,
) -> std::io::Result<tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>> {
    #[expect(unsafe_code, reason = "tokio leaves it to its caller that the descriptor stays open")]
    // SAFETY: an `OwnedFd` is open, and stays so for as long as the `AsyncFd` that now owns it.
    let watched = unsafe {
        tokio::io::unix::AsyncFd::register_with_interest(fd, tokio::io::Interest::READABLE)
    };
    Ok(watched?)
}

/// How much memory could be had without swapping; all there can be if that cannot be told.
pub(crate) fn free_memory_mb() -> u64 {
    let Ok(text) = std::fs::read_to_string("/proc/meminfo") else { return u64::MAX };
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.map_or(u64::MAX, |kib| kib / 1024)
}

/// The few names of our own environment that any command needs.
pub(crate) fn plain_environment() -> Vec<EnvVar> {
    const NAMES: [&str; 7] = ["PATH", "HOME", "USER", "LANG", "TERM", "SHELL", "TMPDIR"];
    let value = |name: &&str| {
        #[expect(clippy::disallowed_methods, reason = "world is where the environment is read")]
        let value = std::env::var_os(name)?;
        Some(EnvVar { name: std::ffi::OsString::from(*name).into(), value: value.into() })
    };
    NAMES.iter().filter_map(value).collect()
}

/// A variable of our own environment, if it is there, is text and is not empty.
pub(crate) fn variable(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "world is where the environment is read")]
    let value = std::env::var(name).ok()?;
    Some(value).filter(|value| !value.is_empty())
}

/// Bytes that cannot be guessed.
pub(crate) fn random<const N: usize>() -> std::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        filled +=
            rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes)
}
