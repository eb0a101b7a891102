//! What goes wrong, how often. Each seed draws its own mix, so that rare faults meet in some of them.

use outlast_store::Fault;

use crate::rng::Rng;

/// Chances out of 1000, for each step unless it says otherwise.
#[derive(Debug, Clone)]
pub(crate) struct Faults {
    pub(crate) daemon_crash: u64,
    pub(crate) shim_kill: u64,
    pub(crate) reboot: u64,
    /// Of the files of a step going missing.
    pub(crate) vanish: u64,
    /// Of starting a daemon while another one lives.
    pub(crate) overlap: u64,
    /// Shims cannot look at the daemon's lock, as on systems without `/proc`: only epochs and records hold.
    pub(crate) hides_lock: bool,
    /// Of an append.
    pub(crate) append: u64,
    pub(crate) clock_jump: u64,
    /// Of a piece of news.
    pub(crate) news: u64,
    /// Of a shim.
    pub(crate) slow_shim: u64,
    /// Of a launch.
    pub(crate) launch: u64,
    /// Of a request.
    pub(crate) hang_up: u64,
    /// Of a step.
    pub(crate) exec_failure: u64,
    /// Of a look at the memory that is free.
    pub(crate) no_memory: u64,
    /// Of something done to a workspace.
    pub(crate) workspace: u64,
    /// Of an operator who puts every run on hold, or takes that back.
    pub(crate) pause_all: u64,
    /// Of a look at what is heard of an attempt.
    pub(crate) silence: u64,
    /// Of each step of a process that makes a call.
    pub(crate) caller_kill: u64,
}

impl Faults {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let vanish = if rng.chance(400) { rng.between(1, 6) } else { 0 };
        // A daemon that was replaced is kept from a step by what the step's records say, or by the lock. A world in
        // which the records vanish and the lock cannot be seen is promised nothing.
        let hides_lock = vanish == 0 && rng.chance(750);
        let mut up_to = |most: u64| if rng.chance(650) { rng.between(1, most) } else { 0 };
        Self {
            daemon_crash: up_to(10),
            shim_kill: up_to(25),
            reboot: up_to(2),
            vanish,
            overlap: up_to(12),
            hides_lock,
            append: up_to(250),
            clock_jump: up_to(10),
            news: up_to(400),
            slow_shim: up_to(500),
            launch: up_to(250),
            hang_up: up_to(200),
            exec_failure: up_to(30),
            no_memory: up_to(700),
            workspace: up_to(80),
            pause_all: up_to(8),
            silence: up_to(300),
            caller_kill: up_to(150),
        }
    }

    pub(crate) fn none() -> Self {
        Self {
            daemon_crash: 0,
            shim_kill: 0,
            reboot: 0,
            vanish: 0,
            overlap: 0,
            hides_lock: false,
            append: 0,
            clock_jump: 0,
            news: 0,
            slow_shim: 0,
            launch: 0,
            hang_up: 0,
            exec_failure: 0,
            no_memory: 0,
            workspace: 0,
            pause_all: 0,
            silence: 0,
            caller_kill: 0,
        }
    }

    pub(crate) fn of_append(&self, rng: &mut Rng) -> Option<(Fault, Surface)> {
        if !rng.chance(self.append) {
            return None;
        }
        let fault =
            rng.pick(&[Fault::RefuseFull, Fault::LoseBeforeCommit, Fault::LoseAfterCommit])?;
        let surface = rng.pick(&[Surface::AsClosed, Surface::AsIo])?;
        Some((fault, surface))
    }
}

/// How a lost append looks to the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    AsClosed,
    AsIo,
}
