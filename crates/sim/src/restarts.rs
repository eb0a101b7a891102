//! Which run a daemon lets go on after its start: production's own books and plan, over what there is in this world.

use std::collections::BTreeSet;

use outlast_conduct::reconcile::{Desired, Plan, Rules};
use outlast_conduct::restart_queue::RestartQueue;
use outlast_engine::{Effect, Run, RunId};

use crate::options::Sabotage;
use crate::world::{Key, RunIndex, World, boot_id};

/// One at a time, since there are few runs in a seed.
const RULES: Rules = Rules {
    at_once: 1,
    gap_ms: 100,
    start_within_ms: 3_000,
    first_delay_ms: 100,
    longest_delay_ms: 1_000,
};

pub(crate) struct Restarts {
    queue: RestartQueue,
    /// Alive when the daemon looked. A run that a dying daemon launches after that is met by its keeper.
    found_alive: BTreeSet<RunId>,
}

impl Default for Restarts {
    fn default() -> Self {
        Self { queue: RestartQueue::with_rules(RULES), found_alive: BTreeSet::new() }
    }
}

impl Restarts {
    /// A run that the daemon has found waits for its turn.
    pub(crate) fn push(&mut self, world: &World, index: RunIndex, run: &Run) {
        let is_blind = world.is_sabotaged(Sabotage::StartsTheLiving);
        let is_alive = is_alive(world, index, run);
        if is_alive {
            self.found_alive.insert(run.id.clone());
        }
        self.queue.push(Desired::of(run, &boot_id(world.boot)), is_alive && !is_blind);
    }

    pub(crate) fn has_pending(&self) -> bool {
        self.queue.has_pending()
    }

    /// Notes what a run has come to, and whether its step was met.
    pub(crate) fn note(&mut self, world: &World, run: &Run, has_met: bool) {
        self.queue.note(run, &boot_id(world.boot));
        if has_met {
            self.queue.started(&run.id);
        }
    }

    /// The run is over here.
    pub(crate) fn forget(&mut self, run: &RunId) {
        self.queue.forget(run);
    }

    /// What is to be done now.
    pub(crate) fn plan(
        &mut self,
        world: &mut World,
        runs: &[(RunIndex, &Run)],
        conducted: &BTreeSet<RunId>,
    ) -> Plan {
        let plan = self.queue.plan(|run| conducted.contains(run), world.now());
        for (index, run) in runs {
            let was_alive = self.found_alive.contains(&run.id);
            if was_alive && plan.start.contains(&run.id) && is_alive(world, *index, run) {
                world.broke(None, format!("run {} is alive, and is to be started", run.id));
            }
        }
        world.stats.resumes += u64::from(!plan.start.is_empty());
        world.stats.resumes_held += u64::from(!plan.hold.is_empty());
        plan
    }
}

fn is_alive(world: &World, index: RunIndex, run: &Run) -> bool {
    run.due().into_iter().any(|effect| match effect {
        Effect::Ensure { step, boot } if boot == boot_id(world.boot) => {
            let site = world.sites.get(&Key { run: index, step });
            site.and_then(|site| site.lock).is_some_and(|shim| world.shims.contains_key(&shim))
        }
        _ => false,
    })
}
