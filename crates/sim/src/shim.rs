//! A shim, one step at a time: the launch protocol, the orders, the end.
//!
//! The twin of `crates/shim` without pipes and terminals. It may be killed between any two steps.

use outlast_engine::{Exit, Step, Survivor};
use outlast_wire::shim;

use crate::options::Sabotage;
use crate::record::{self, EndCause, NeverStarted, Record};
use crate::tree::{Main, Signal, Who};
use crate::wire::{ConnId, News, Order};
use crate::world::{Durability, Key, ShimId, World, boot_id};

/// Steps between TERM and KILL, and rounds of KILL before survivors are admitted.
const GRACE: u8 = 3;
const KILLS: u8 = 3;

#[derive(Debug)]
pub(crate) struct Shim {
    pub(crate) id: ShimId,
    pub(crate) key: Key,
    pub(crate) stage: Stage,
    pub(crate) conns: Vec<ConnId>,
    /// Steps that it sleeps before it does anything.
    asleep: u64,
    /// The highest epoch that it has served.
    epoch: u64,
    ending: Ending,
    /// Steps without a daemon.
    alone: u32,
    /// What it has written, which it remembers also when the file is gone.
    records: Vec<Record>,
    /// Its directory is gone: what it writes is read by nobody, and no way leads to it.
    pub(crate) is_cut_off: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Spawned,
    Locked,
    Gate,
    Bygone,
    /// A daemon said Start; nothing is written yet.
    StartOrdered,
    StartingWritten,
    Forked,
    StartedWritten,
    Live,
    Over,
    /// Its socket is gone, its lock is not.
    Leaving,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    NotAsked,
    /// It is written down, and nobody was signalled.
    Asked {
        grace: u8,
    },
    Grace {
        left: u8,
    },
    Killing {
        left: u8,
    },
    Incomplete,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    GoesOn,
    Ends,
}

/// Lets a shim take one step.
pub(crate) fn step(world: &mut World, id: ShimId) {
    let Some(mut shim) = world.shims.remove(&id) else { return };
    match shim.step(world) {
        Life::GoesOn => drop(world.shims.insert(id, shim)),
        Life::Ends => world.bury_shim(&shim),
    }
}

impl Shim {
    pub(crate) fn new(id: ShimId, key: Key, conn: ConnId, asleep: u64) -> Self {
        let (stage, ending) = (Stage::Spawned, Ending::NotAsked);
        let (conns, records) = (vec![conn], Vec::new());
        let (epoch, alone, is_cut_off) = (0, 0, false);
        Self { id, key, stage, conns, asleep, epoch, ending, alone, records, is_cut_off }
    }

    /// True while it will see how the command ends.
    pub(crate) fn has_command(&self) -> bool {
        matches!(self.stage, Stage::Forked | Stage::StartedWritten | Stage::Live)
    }

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
                world.exec(self.key);
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
        let Who { pid, start } = world.fresh_process();
        let site = world.site(self.key);
        site.has_output |= site.exists;
        site.tree.main = Main::AtBarrier(Who { pid, start });
        self.stage = Stage::Forked;
        if world.is_sabotaged(Sabotage::NoBarrier) {
            world.exec(self.key);
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

    fn serve(&mut self, world: &mut World) -> Life {
        self.drop_closed(world);
        let pending: Vec<ConnId> = self
            .conns
            .iter()
            .copied()
            .filter(|conn| world.conns.get(conn).is_some_and(|conn| !conn.to_shim.is_empty()))
            .collect();
        if world.rng.chance(700)
            && let Some(conn) = world.rng.pick(&pending)
        {
            let order = world.conns.get_mut(&conn).and_then(|conn| conn.to_shim.pop_front());
            self.obey(world, conn, order.expect("it had one"));
            return Life::GoesOn;
        }
        self.tick(world)
    }

    fn drop_closed(&mut self, world: &mut World) {
        self.conns.retain(|id| {
            let is_over = world
                .conns
                .get(id)
                .is_none_or(|conn| conn.daemon_is_gone && conn.to_shim.is_empty());
            if is_over {
                world.conns.remove(id);
            }
            !is_over
        });
        self.alone = if self.conns.is_empty() { self.alone + 1 } else { 0 };
    }

    fn obey(&mut self, world: &mut World, conn: ConnId, order: Order) {
        match order {
            Order::Hello { epoch } => self.hello(world, conn, epoch),
            Order::Start { epoch } => self.start(world, conn, epoch),
            Order::Stop { is_graceful } => {
                if world.conns.get(&conn).is_some_and(|conn| conn.epoch.is_some()) {
                    self.stop(world, is_graceful);
                }
            }
        }
    }

    fn accepts(&mut self, epoch: u64) -> bool {
        self.epoch = self.epoch.max(epoch);
        epoch == self.epoch
    }

    fn hello(&mut self, world: &mut World, conn: ConnId, epoch: u64) {
        let serves_all = world.is_sabotaged(Sabotage::StaleEpochsStart);
        if !self.accepts(epoch) && !serves_all {
            return self.refuse(world, conn);
        }
        let records = self.records.clone();
        if let Some(conn) = world.conns.get_mut(&conn) {
            conn.epoch = Some(epoch);
            conn.tell_daemon(News::Hello { records });
        }
        let has_older = |world: &World, id: &ConnId| {
            world.conns.get(id).is_some_and(|conn| conn.epoch.is_some_and(|older| older < epoch))
        };
        let older: Vec<ConnId> =
            self.conns.iter().copied().filter(|id| has_older(world, id)).collect();
        older.into_iter().filter(|_| !serves_all).for_each(|conn| self.refuse(world, conn));
        if self.stage == Stage::Bygone {
            self.stage = Stage::Over;
        }
    }

    fn refuse(&mut self, world: &mut World, id: ConnId) {
        world.stats.stale_daemons_refused += 1;
        self.conns.retain(|conn| *conn != id);
        if let Some(conn) = world.conns.get_mut(&id) {
            conn.tell_daemon(News::Refused);
            conn.shim_is_gone = true;
            conn.to_shim.clear();
        }
    }

    fn start(&mut self, world: &mut World, conn: ConnId, epoch: u64) {
        let is_stale = !self.accepts(epoch);
        if is_stale && !world.is_sabotaged(Sabotage::StaleEpochsStart) {
            return self.refuse(world, conn);
        }
        if self.stage != Stage::Gate {
            return;
        }
        // The shim asks the kernel whether its peer holds the daemon's lock, which the last daemon has taken.
        let is_seen = !world.faults.hides_lock && !world.is_sabotaged(Sabotage::StaleEpochsStart);
        if is_seen && epoch != world.epoch {
            return self.refuse(world, conn);
        }
        if is_stale {
            let run = Some(self.key.run);
            world.broke(
                run,
                format!(
                    "{}: the Start of epoch {epoch} was obeyed after epoch {}",
                    self.key, self.epoch
                ),
            );
        }
        self.stage = Stage::StartOrdered;
    }

    fn stop(&mut self, world: &mut World, is_graceful: bool) {
        match self.stage {
            Stage::Gate => self.never_start(world, NeverStarted::Stopped),
            Stage::Live => self.end(world, EndCause::Stopped, if is_graceful { GRACE } else { 0 }),
            _ => {}
        }
    }

    fn never_start(&mut self, world: &mut World, code: NeverStarted) {
        let (at_ms, why) = (world.now, "simulated".to_owned());
        self.record(world, Record::NeverStarted { at_ms, code, why }, Durability::Machine);
        self.stage = Stage::Over;
    }

    /// Begins to end the tree, or hurries an end that has begun.
    fn end(&mut self, world: &mut World, cause: EndCause, grace: u8) {
        self.ending = match self.ending {
            Ending::NotAsked => {
                let at_ms = world.now;
                self.record(world, Record::Ending { at_ms, cause }, Durability::Machine);
                Ending::Asked { grace }
            }
            Ending::Asked { grace: asked } => Ending::Asked { grace: asked.min(grace) },
            Ending::Grace { left } => Ending::Grace { left: left.min(grace) },
            Ending::Killing { .. } | Ending::Incomplete => Ending::Killing { left: KILLS },
        };
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

    fn tick_live(&mut self, world: &mut World) {
        let tree = &world.site(self.key).tree;
        let (main, is_empty) = (tree.main, tree.is_empty());
        let has_exited = record::has_exited(&self.records);
        match main {
            Main::Dead(None) => self.never_start(world, NeverStarted::CommandNotFound),
            Main::Dead(Some(exit)) if !has_exited => {
                let (at_ms, exit) = (world.now, on_disk(exit));
                let survivors = listed(world.site(self.key).tree.survivors());
                let forgets = world.is_sabotaged(Sabotage::ForgetsResponse);
                world.site(self.key).is_response_synced |= !forgets;
                let exited = Record::Exited { at_ms, exit, output_bytes: 0, survivors };
                self.record(world, exited, Durability::Machine);
            }
            Main::Dead(Some(_)) if is_empty => {
                let at_ms = world.now;
                self.record(world, Record::TreeEmpty { at_ms }, Durability::Machine);
                self.stage = Stage::Over;
            }
            Main::Running(_) if self.ending == Ending::NotAsked => self.keep_limits(world),
            Main::Absent | Main::AtBarrier(_) | Main::Running(_) | Main::Dead(Some(_)) => {
                self.go_on_ending(world);
            }
        }
    }

    fn keep_limits(&mut self, world: &mut World) {
        let limits = world.runs[self.key.run].spec.limits;
        let is_endless = world.site(self.key).is_endless;
        let is_reached = world.rng.chance(match (is_endless, world.is_quiet) {
            (true, true) => 200,
            (true, false) => 60,
            (false, _) => 15,
        });
        let (is_timed, is_watched) = match self.key.step {
            Step::Attempt { .. } => {
                (limits.turn_timeout_ms.is_some(), limits.stall_window_ms.is_some())
            }
            Step::Errand { .. } => (true, false),
        };
        if !is_reached {
            return;
        }
        if is_watched && (!is_timed || world.rng.chance(500)) {
            self.end(world, EndCause::Stalled, GRACE);
        } else if is_timed {
            self.end(world, EndCause::TimedOut, GRACE);
        }
    }

    fn go_on_ending(&mut self, world: &mut World) {
        self.ending = match self.ending {
            Ending::NotAsked => return,
            Ending::Asked { grace } => {
                world.signal(self.key, Signal::Term);
                Ending::Grace { left: grace }
            }
            Ending::Grace { left: 0 } => {
                world.signal(self.key, Signal::Kill);
                Ending::Killing { left: KILLS }
            }
            Ending::Grace { left } => Ending::Grace { left: left - 1 },
            Ending::Killing { left: 0 } => {
                world.signal(self.key, Signal::Kill);
                self.admit(world);
                Ending::Incomplete
            }
            Ending::Killing { left } => {
                world.signal(self.key, Signal::Kill);
                Ending::Killing { left: left - 1 }
            }
            Ending::Incomplete => {
                world.signal(self.key, Signal::Kill);
                Ending::Incomplete
            }
        };
    }

    fn admit(&mut self, world: &mut World) {
        let survivors = listed(world.site(self.key).tree.members());
        let admitted = self.records.iter().rev().find_map(|record| match record {
            Record::StopIncomplete { survivors, .. } => Some(survivors.clone()),
            _ => None,
        });
        let is_news =
            admitted != Some(survivors.clone()) || !world.is_sabotaged(Sabotage::AdmitsOnce);
        if !survivors.is_empty() && is_news {
            let at_ms = world.now;
            self.record(world, Record::StopIncomplete { at_ms, survivors }, Durability::Machine);
        }
    }

    /// Writes a fact down and tells it, in this order.
    fn record(&mut self, world: &mut World, record: Record, durability: Durability) {
        self.records.push(record.clone());
        if self.is_cut_off {
            world.note(|| format!("  {}: record {record:?}, which nobody can read", self.key));
        } else {
            world.record(self.key, record.clone(), durability);
        }
        for conn in &self.conns {
            if let Some(conn) = world.conns.get_mut(conn).filter(|conn| conn.epoch.is_some()) {
                conn.tell_daemon(News::Record(record.clone()));
            }
        }
    }

    /// A signal lets it go on that was stopped by one.
    pub(crate) fn wake(&mut self) {
        self.asleep = 0;
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

fn on_disk(exit: Exit) -> shim::Exit {
    match exit {
        Exit::Code(code) => shim::Exit::Code(code),
        Exit::Signal(signal) => shim::Exit::Signal(signal),
    }
}

fn listed(survivors: Vec<Survivor>) -> Vec<shim::Survivor> {
    let listed = |Survivor { pid, start, command }| shim::Survivor { pid, start, command };
    survivors.into_iter().map(listed).collect()
}
