//! A step whose shim is gone: its exit can no longer be seen, its processes still can.

use outlast_engine::{
    Custody, End, EndCause, Exit, Input, Report, Step, StopMode, Survivor, TreeNews,
};

use super::{At, Keeper};
use crate::options::Sabotage;
use crate::record::{self, Record};
use crate::tree::Signal;
use crate::world::{ShimId, World};

/// Rounds of KILL for a tree without a shim.
const ROUNDS: u8 = 4;

/// Whether the tree was tried to be ended, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    NotTried,
    ByOrder,
    For(EndCause),
}

impl Keeper {
    pub(super) fn orphan_report(
        &mut self,
        world: &mut World,
        records: Vec<Record>,
        left: Vec<Survivor>,
        ended: Ended,
        said: &mut Vec<Input>,
    ) -> At {
        let is_main_alive = world.site(self.key).tree.is_main_alive();
        said.push(self.report_left(world, &records, is_main_alive, &left, ended));
        if left.is_empty() && !is_main_alive {
            return At::Done;
        }
        if self.is_shim_alone(world) && world.rng.chance(20) {
            self.end_shims(world);
        }
        self.is_stop_news = false;
        match (self.stop, self.limit(world, &records)) {
            (Some(_), _) if ended != Ended::ByOrder => {
                At::OrphanEnd { records, ended: Ended::ByOrder, rounds: 0 }
            }
            (None, Some(Reached::Now(cause))) if ended == Ended::NotTried => {
                At::OrphanEnd { records, ended: Ended::For(cause), rounds: 0 }
            }
            _ => At::OrphanWait { records, left, ended },
        }
    }

    fn report_left(
        &mut self,
        world: &mut World,
        records: &[Record],
        is_main_alive: bool,
        left: &[Survivor],
        ended: Ended,
    ) -> Input {
        let is_shim_alone = self.is_shim_alone(world);
        let is_held = is_main_alive || is_shim_alone;
        let custody = if is_held { Custody::Orphan } else { Custody::Nobody };
        let stop_failed = ended != Ended::NotTried;
        let tree = match left {
            [] => TreeNews::Empty,
            _ if is_shim_alone && !stop_failed => TreeNews::Unknown,
            some => TreeNews::Left { survivors: some.to_vec(), stop_failed },
        };
        let ended_for = match ended {
            Ended::For(cause) => Some(cause),
            Ended::NotTried | Ended::ByOrder => None,
        };
        let mut report =
            Report { tree, ended_for, ..record::report(self.key.step, custody, records, 0) };
        if world.is_sabotaged(Sabotage::LostIsSuccess)
            && custody == Custody::Nobody
            && report.end.is_none()
        {
            report.end = Some(End::Exited { at: world.now(), exit: Exit::Code(0), cause: None });
        }
        if world.is_sabotaged(Sabotage::LostNeverRan) && custody == Custody::Nobody {
            report.custody = Custody::NeverHeld;
        }
        self.look_at_end(world, &mut report);
        Input::Reported(Box::new(report))
    }

    /// What the shim would have ended the tree for: what it was doing, or the step's own time.
    fn limit(&self, world: &World, records: &[Record]) -> Option<Reached> {
        let is_open = self.run.held(self.key.step).is_some_and(|held| held.end.is_none());
        if !is_open || world.is_sabotaged(Sabotage::LimitsDieWithShim) {
            return None;
        }
        let begun = record::ending(records).map(Reached::Now);
        let is_timed = match self.key.step {
            Step::Attempt { .. } => self.run.spec.limits.turn_timeout_ms.is_some(),
            Step::Errand { .. } => true,
        };
        begun.or(is_timed.then_some(Reached::OneDay(EndCause::TimedOut)))
    }

    /// TERM first unless there is no time, then KILL in rounds.
    pub(super) fn orphan_end(
        &mut self,
        world: &mut World,
        records: Vec<Record>,
        ended: Ended,
        rounds: u8,
    ) -> At {
        let is_first = rounds == 0 && self.stop != Some(StopMode::Now);
        world.signal(self.key, if is_first { Signal::Term } else { Signal::Kill });
        if !is_first && world.site(self.key).tree.is_empty() {
            self.end_shims(world);
        }
        let left = self.alive(world);
        if left.is_empty() || rounds == ROUNDS {
            return At::OrphanReport { records, left, ended };
        }
        At::OrphanEnd { records, ended, rounds: rounds + 1 }
    }

    /// Waits until one of these is gone, or somebody wants them to be, or their time is over.
    pub(super) fn orphan_wait(
        &mut self,
        world: &mut World,
        records: Vec<Record>,
        left: Vec<Survivor>,
        ended: Ended,
    ) -> At {
        let now_left = self.alive(world);
        let is_any_gone = self.is_shim_alone(world)
            || left.is_empty()
            || left.iter().any(|one| !now_left.contains(one));
        if self.is_stop_news {
            let ended = if ended == Ended::ByOrder { Ended::NotTried } else { ended };
            return At::OrphanLook { records, ended };
        }
        if is_any_gone {
            return At::OrphanLook { records, ended };
        }
        match self.limit(world, &records) {
            Some(Reached::OneDay(cause) | Reached::Now(cause))
                if self.stop.is_none() && ended == Ended::NotTried && world.rng.chance(50) =>
            {
                At::OrphanEnd { records, ended: Ended::For(cause), rounds: 0 }
            }
            _ => At::OrphanWait { records, left, ended },
        }
    }
}

impl Keeper {
    /// Everybody alive of the step: its tree, or the shim that is left of it.
    pub(super) fn alive(&self, world: &mut World) -> Vec<Survivor> {
        let tree = world.site(self.key).tree.members();
        if !tree.is_empty() {
            return tree;
        }
        let named = |id: ShimId| Survivor { pid: 1, start: id, command: "a shim".to_owned() };
        self.shims(world).into_iter().map(named).collect()
    }

    fn is_shim_alone(&self, world: &mut World) -> bool {
        world.site(self.key).tree.is_empty() && !self.shims(world).is_empty()
    }

    fn end_shims(&self, world: &mut World) {
        for shim in self.shims(world) {
            world.kill_shim(shim);
        }
    }

    fn shims(&self, world: &World) -> Vec<ShimId> {
        world.shims.values().filter(|shim| shim.key == self.key).map(|shim| shim.id).collect()
    }
}

/// When a limit is reached, and for which.
enum Reached {
    Now(EndCause),
    OneDay(EndCause),
}
