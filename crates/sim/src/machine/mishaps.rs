//! What goes wrong with a whole machine: daemons and shims die, the machine starts again, files vanish, clocks jump.

use outlast_engine::Answer;

use super::{DaemonId, Machine};
use crate::shim;
use crate::world::{Key, ShimId, Stage, World};

impl Machine {
    /// Lets at most one thing go wrong.
    pub(crate) fn maybe_go_wrong(&mut self) {
        if self.world.rng.chance(self.world.faults.daemon_crash) {
            self.crash_daemon();
        } else if self.world.rng.chance(self.world.faults.shim_kill) {
            let shims: Vec<ShimId> = self.world.shims.keys().copied().collect();
            if let Some(shim) = self.world.rng.pick(&shims) {
                shim::kill(&mut self.world, shim);
            }
        } else if self.world.rng.chance(self.world.faults.reboot) {
            self.reboot();
        } else if self.world.rng.chance(self.world.faults.vanish) {
            self.vanish();
        } else if self.world.rng.chance(self.world.faults.clock_jump) {
            self.jump_clock();
        } else if self.world.rng.chance(self.world.faults.pause_all) {
            self.world.is_all_paused = !self.world.is_all_paused;
            let is_all_paused = self.world.is_all_paused;
            self.world.note(|| format!("everything is to rest: {is_all_paused}"));
        }
    }

    fn crash_daemon(&mut self) {
        let daemons: Vec<DaemonId> = self.daemons.keys().copied().collect();
        let Some(id) = self.world.rng.pick(&daemons) else { return };
        self.world.stats.daemon_crashes += 1;
        self.world.note(|| format!("daemon {id} is killed"));
        let daemon = self.daemons.remove(&id).expect("it was listed");
        self.bury(daemon);
    }

    fn reboot(&mut self) {
        self.world.stats.reboots += 1;
        self.world.boot += 1;
        let boot = self.world.boot;
        self.world.note(|| format!("the machine starts again: boot {boot}"));
        self.world.shims.clear();
        self.world.conns.clear();
        for (_, daemon) in std::mem::take(&mut self.daemons) {
            self.bury(daemon);
        }
        let World { sites, rng, .. } = &mut self.world;
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

    /// A step loses its directory with all that is in it, or only what its shim wrote of it. A process that has the
    /// files open goes on, and writes to files that no path leads to.
    fn vanish(&mut self) {
        let keys: Vec<Key> = self.world.sites.keys().copied().collect();
        let begun = keys.into_iter().filter(|key| self.world.sites[key].exists);
        let begun: Vec<Key> = begun.filter(|key| !self.world.sites[key].has_ended).collect();
        let Some(key) = self.world.rng.pick(&begun) else { return };
        self.world.stats.vanished += 1;
        let is_whole = self.world.rng.chance(600);
        let what = if is_whole { "directory" } else { "records" };
        self.world.note(|| format!("the {what} of {key} vanish"));
        let site = self.world.site(key);
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
        let of_it = self.world.shims.values_mut().filter(|shim| shim.key == key);
        for shim in of_it.filter(|shim| shim.stage != Stage::Spawned) {
            // A file that was replaced is another file.
            shim.is_cut_off = true;
        }
    }

    fn jump_clock(&mut self) {
        self.world.stats.clock_jumps += 1;
        let by = self.world.rng.pick(&[500, 20_000, 3_600_000]).expect("it is a list");
        let by = self.world.rng.below(by);
        self.world.latest = self.world.latest.max(self.world.now);
        self.world.now =
            if self.world.rng.chance(500) { self.world.now + by } else { self.world.now - by };
    }
}
