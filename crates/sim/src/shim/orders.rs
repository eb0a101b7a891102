//! The orders of daemons, and which daemon a shim obeys.

use super::Life;
use super::ending::GRACE;
use crate::options::Sabotage;
use crate::record::{EndCause, NeverStarted};
use crate::wire::{ConnId, News, Order};
use crate::world::{Shim, Stage, World};

impl Shim {
    pub(super) fn serve(&mut self, world: &mut World) -> Life {
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
}
