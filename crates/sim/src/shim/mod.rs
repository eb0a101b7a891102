//! A shim, one step at a time: the launch protocol, the orders, the end.
//!
//! The twin of `crates/shim` without pipes and terminals. It may be killed between any two steps.

mod ending;
mod orders;

use crate::options::Sabotage;
use crate::processes;
use crate::record::{self, NeverStarted, Record};
use crate::tree::{Main, Who};
use crate::wire::{ConnId, News};
use crate::world::{Durability, Key, Shim, ShimId, Stage, World, boot_id};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Life {
    GoesOn,
    Ends,
}

/// Lets a shim take one step.
pub(crate) fn step(world: &mut World, id: ShimId) {
    let Some(mut shim) = world.shims.remove(&id) else { return };
    match shim.step(world) {
        Life::GoesOn => drop(world.shims.insert(id, shim)),
        Life::Ends => bury(world, &shim),
    }
}

pub(crate) fn spawn(world: &mut World, key: Key, conn: ConnId) {
    let id = world.fresh();
    let is_slow = world.rng.chance(world.faults.slow_shim);
    let asleep = if is_slow { world.rng.between(10, 80) } else { 0 };
    world.stats.shims += 1;
    world.stats.slow_shims += u64::from(is_slow);
    world.shims.insert(id, Shim::new(id, key, conn, asleep));
}

pub(crate) fn kill(world: &mut World, id: ShimId) {
    let Some(shim) = world.shims.remove(&id) else { return };
    world.stats.shim_kills += 1;
    world.note(|| format!("shim {id} of {} is killed in {:?}", shim.key, shim.stage));
    if matches!(shim.stage, Stage::StartOrdered | Stage::Forked) && world.rng.chance(500) {
        // It died within its next write.
        world.stats.torn_records += 1;
        world.site(shim.key).is_torn = true;
    }
    bury(world, &shim);
}

/// What a shim's death leaves: its lock is free, its socket is dead, and what it had sent can be read.
fn bury(world: &mut World, shim: &Shim) {
    for conn in &shim.conns {
        if let Some(conn) = world.conns.get_mut(conn) {
            conn.shim_is_gone = true;
            conn.to_shim.clear();
        }
    }
    let site = world.site(shim.key);
    site.lock.take_if(|holder| *holder == shim.id);
}

impl Shim {
    fn step(&mut self, world: &mut World) -> Life {
        if self.asleep > 0 {
            self.asleep -= 1;
            return Life::GoesOn;
        }
        match self.stage {
            Stage::Spawned => return self.lock(world),
            Stage::Locked => return self.bind(world),
            Stage::StartOrdered => {
                let starting = record::starting(world.now, self.epoch);
                self.record(world, starting, Durability::Process);
                self.stage = Stage::StartingWritten;
            }
            Stage::StartingWritten => self.fork(world),
            Stage::Forked => self.write_started(world),
            Stage::StartedWritten => {
                processes::exec(world, self.key);
                self.stage = Stage::Live;
            }
            Stage::Gate | Stage::Bygone | Stage::Live | Stage::Over => return self.serve(world),
            Stage::Leaving => return Life::Ends,
        }
        Life::GoesOn
    }

    fn lock(&mut self, world: &mut World) -> Life {
        if !world.site(self.key).exists {
            return Life::Ends;
        }
        let is_free = world.is_sabotaged(Sabotage::NoLock);
        let lock = &mut world.site(self.key).lock;
        if lock.is_some() && !is_free {
            return Life::Ends;
        }
        *lock = Some(self.id);
        self.stage = Stage::Locked;
        Life::GoesOn
    }

    fn bind(&mut self, world: &mut World) -> Life {
        if self.is_cut_off {
            return Life::Ends;
        }
        self.records.clone_from(&world.site(self.key).records);
        // Output is there only of a command that was started, whatever became of the records.
        let is_settled = record::is_settled(&self.records) || world.site(self.key).has_output;
        if !world.site(self.key).has_spec {
            if !is_settled {
                self.never_start(world, NeverStarted::BadSpec);
            }
            return Life::Ends;
        }
        let site = world.site(self.key);
        site.is_torn = false;
        site.socket = Some(self.id);
        self.stage = if is_settled { Stage::Bygone } else { Stage::Gate };
        Life::GoesOn
    }

    fn fork(&mut self, world: &mut World) {
        let Who { pid, start } = processes::fresh(world);
        let site = world.site(self.key);
        site.has_output |= site.exists;
        site.tree.main = Main::AtBarrier(Who { pid, start });
        self.stage = Stage::Forked;
        if world.is_sabotaged(Sabotage::NoBarrier) {
            processes::exec(world, self.key);
        }
    }

    fn write_started(&mut self, world: &mut World) {
        let who = match world.site(self.key).tree.main {
            Main::AtBarrier(who) | Main::Running(who) => who,
            Main::Absent | Main::Dead(_) => Who { pid: 1, start: 1 },
        };
        let boot = boot_id(world.boot);
        let started = record::started(world.now, &boot.0, who);
        self.record(world, started, Durability::Machine);
        self.stage = Stage::StartedWritten;
    }

    fn never_start(&mut self, world: &mut World, code: NeverStarted) {
        let (at_ms, why) = (world.now, "simulated".to_owned());
        self.record(world, Record::NeverStarted { at_ms, code, why }, Durability::Machine);
        self.stage = Stage::Over;
    }

    fn tick(&mut self, world: &mut World) -> Life {
        match self.stage {
            Stage::Gate | Stage::Bygone if self.alone > 20 && world.rng.chance(100) => {
                self.leave(world);
            }
            Stage::Live => self.tick_live(world),
            Stage::Over if self.is_told(world) || world.rng.chance(50) => self.leave(world),
            _ => {}
        }
        Life::GoesOn
    }

    /// Writes a fact down and tells it, in this order.
    fn record(&mut self, world: &mut World, record: Record, durability: Durability) {
        self.records.push(record.clone());
        if self.is_cut_off {
            world.note(|| format!("  {}: record {record:?}, which no process can read", self.key));
        } else {
            world.record(self.key, record.clone(), durability);
        }
        for conn in &self.conns {
            if let Some(conn) = world.conns.get_mut(conn).filter(|conn| conn.epoch.is_some()) {
                conn.tell_daemon(News::Record(record.clone()));
            }
        }
    }

    fn is_told(&self, world: &World) -> bool {
        let is_flushed =
            |id: &ConnId| world.conns.get(id).is_none_or(|conn| conn.to_daemon.is_empty());
        !self.conns.is_empty() && self.conns.iter().all(is_flushed)
    }

    fn leave(&mut self, world: &mut World) {
        world.site(self.key).socket.take_if(|holder| *holder == self.id);
        self.stage = Stage::Leaving;
    }
}
