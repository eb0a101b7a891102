//! What goes wrong, how often. Each seed draws its own mix, so that rare faults meet in some of them.

use outlast_engine::{Answer, Hold, Moment, Order, Seen};
use outlast_store::Fault;

use crate::rng::Rng;
use crate::shim::Stage;
use crate::tree::{Main, Other, Who};
use crate::world::{Key, ShimId, Surface, World};

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
    /// Of the word for all, given or taken back.
    pub(crate) hold: u64,
    /// Of a look at what is heard of an attempt.
    pub(crate) silence: u64,
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
            hold: up_to(8),
            silence: up_to(300),
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
            hold: 0,
            silence: 0,
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

impl World {
    /// Lets at most one thing go wrong.
    pub(crate) fn maybe_go_wrong(&mut self) {
        if self.rng.chance(self.faults.daemon_crash) {
            self.crash_daemon();
        } else if self.rng.chance(self.faults.shim_kill) {
            let shims: Vec<ShimId> = self.shims.keys().copied().collect();
            if let Some(shim) = self.rng.pick(&shims) {
                self.kill_shim(shim);
            }
        } else if self.rng.chance(self.faults.reboot) {
            self.reboot();
        } else if self.rng.chance(self.faults.vanish) {
            self.vanish();
        } else if self.rng.chance(self.faults.clock_jump) {
            self.jump_clock();
        } else if self.rng.chance(self.faults.hold) {
            self.is_held = !self.is_held;
            let is_held = self.is_held;
            self.note(|| format!("everything is to rest: {is_held}"));
        }
    }

    /// What the runs of a moment share, and what is heard of whoever is alive.
    pub(crate) fn draw_shared(&mut self, moment: &mut Moment) {
        moment.hold = if self.is_held { Hold::On } else { Hold::Off };
        // A client that counts its orders uses the same id for an order to all and to one run.
        let word = Order { id: Some("o1".to_owned()), by: None, answers: None };
        moment.word = Some(std::sync::Arc::new(word));
        if self.rng.chance(self.faults.silence) {
            moment.seen = Seen {
                quiet_ms: self.rng.below(1_000_000),
                has_spoken: self.rng.chance(500),
                unreachable: self.rng.chance(100).then_some(moment.now),
            };
        }
    }

    pub(crate) fn crash_daemon(&mut self) {
        let daemons: Vec<u64> = self.daemons.keys().copied().collect();
        let Some(id) = self.rng.pick(&daemons) else { return };
        self.stats.daemon_crashes += 1;
        self.note(|| format!("daemon {id} is killed"));
        let daemon = self.daemons.remove(&id).expect("it was listed");
        self.bury_daemon(daemon);
    }

    pub(crate) fn kill_shim(&mut self, id: ShimId) {
        let Some(shim) = self.shims.remove(&id) else { return };
        self.stats.shim_kills += 1;
        self.note(|| format!("shim {id} of {} is killed in {:?}", shim.key, shim.stage));
        if matches!(shim.stage, Stage::StartOrdered | Stage::Forked) && self.rng.chance(500) {
            // It died within its next write.
            self.stats.torn_records += 1;
            self.site(shim.key).is_torn = true;
        }
        self.bury_shim(&shim);
    }

    fn reboot(&mut self) {
        self.stats.reboots += 1;
        self.boot += 1;
        let boot = self.boot;
        self.note(|| format!("the machine starts again: boot {boot}"));
        self.shims.clear();
        self.conns.clear();
        for (_, daemon) in std::mem::take(&mut self.daemons) {
            self.bury_daemon(daemon);
        }
        let Self { sites, rng, .. } = self;
        for site in sites.values_mut() {
            site.tree.vanish();
            site.lock = None;
            let unsynced = site.records.len() - site.synced;
            site.records.truncate(site.synced + rng.index(unsynced + 1));
            // What an agent wrote is on disk once its shim has seen to that.
            if !site.is_response_synced && rng.chance(500) {
                site.response = Answer::None;
            }
        }
    }

    /// A step loses its directory with all that is in it, or only what its shim wrote of it. Whoever has the
    /// files open goes on, and writes where nobody reads.
    fn vanish(&mut self) {
        let keys: Vec<Key> = self.sites.keys().copied().collect();
        let begun = keys.into_iter().filter(|key| self.sites[key].exists);
        let begun: Vec<Key> = begun.filter(|key| !self.sites[key].has_ended).collect();
        let Some(key) = self.rng.pick(&begun) else { return };
        self.stats.vanished += 1;
        let is_whole = self.rng.chance(600);
        let what = if is_whole { "directory" } else { "records" };
        self.note(|| format!("the {what} of {key} vanish"));
        let site = self.site(key);
        site.has_vanished = true;
        site.records.clear();
        site.synced = 0;
        site.is_torn = false;
        if is_whole {
            site.exists = false;
            (site.has_spec, site.has_output) = (false, false);
            (site.lock, site.socket) = (None, None);
            site.response = Answer::None;
        }
        let of_it = self.shims.values_mut().filter(|shim| shim.key == key);
        for shim in of_it.filter(|shim| shim.stage != Stage::Spawned) {
            // A file that was replaced is another file.
            shim.is_cut_off = true;
        }
    }

    fn jump_clock(&mut self) {
        self.stats.clock_jumps += 1;
        let by = self.rng.pick(&[500, 20_000, 3_600_000]).expect("it is a list");
        let by = self.rng.below(by);
        self.latest = self.latest.max(self.now);
        self.now = if self.rng.chance(500) { self.now + by } else { self.now - by };
    }

    pub(crate) fn draw_exec_failure(&mut self, key: Key) -> bool {
        let fails = self.rng.chance(self.faults.exec_failure);
        if fails {
            self.note(|| format!("  {key}: exec fails"));
        }
        fails
    }

    /// The descendants that a command starts.
    pub(crate) fn draw_others(&mut self) -> Vec<Other> {
        let count = if self.rng.chance(250) { self.rng.between(1, 2) } else { 0 };
        (0..count)
            .map(|_| {
                let who = self.fresh_process();
                let kills = if self.rng.chance(120) {
                    None
                } else {
                    Some(u8::try_from(self.rng.below(6)).expect("small"))
                };
                Other { who, kills, leaves_by_itself: self.rng.chance(500), is_killed: false }
            })
            .collect()
    }

    pub(crate) fn fresh_process(&mut self) -> Who {
        let id = self.fresh();
        // Numbers come again, start times do not.
        Who { pid: 100 + u32::try_from(id % 7).expect("small"), start: id }
    }

    /// Time passes for the processes of one attempt.
    pub(crate) fn step_processes(&mut self, key: Key) {
        let has_shim = self.shims.values().any(|shim| shim.key == key && shim.has_command());
        let Some(site) = self.sites.get_mut(&key) else { return };
        match site.tree.main {
            Main::AtBarrier(_) if !has_shim => {
                site.tree.main = Main::Dead(None);
            }
            Main::Running(_) if !site.is_endless && self.rng.chance(300) => {
                self.end_by_itself(key);
            }
            Main::AtBarrier(_) | Main::Running(_) | Main::Absent | Main::Dead(_) => {}
        }
        let Self { sites, rng, .. } = self;
        if let Some(site) = sites.get_mut(&key) {
            site.tree.others.retain(|other| {
                let is_dying = other.is_killed && other.kills.is_some() && rng.chance(300);
                !(is_dying || other.leaves_by_itself && rng.chance(80))
            });
        }
        self.note_exit(key);
    }

    /// Keeps what the command returned for later comparison.
    pub(crate) fn note_exit(&mut self, key: Key) {
        let attempt = self.site(key);
        if let Main::Dead(Some(exit)) = attempt.tree.main
            && attempt.exit.is_none()
        {
            attempt.exit = Some(exit);
            self.note(|| format!("  {key}: the command is gone with {exit:?}"));
        }
    }

    /// Signals the real processes of an attempt.
    pub(crate) fn signal(&mut self, key: Key, signal: crate::tree::Signal) {
        let Self { sites, rng, .. } = self;
        if let Some(site) = sites.get_mut(&key) {
            site.tree.signal(signal, rng);
        }
        self.note_exit(key);
    }
}
