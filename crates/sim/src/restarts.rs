//! Which run a daemon lets go on after its start: production's own books and plan, over what there is in this world.

use std::collections::{BTreeMap, BTreeSet};

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
    /// Found by the daemon when it started.
    found: BTreeMap<RunId, Found>,
}

struct Found {
    index: RunIndex,
    /// Alive when the daemon looked. A run that a dying daemon launches after that is met by its monitor.
    was_alive: bool,
    /// The plan has let it go.
    is_let_go: bool,
}

impl Default for Restarts {
    fn default() -> Self {
        Self { queue: RestartQueue::with_rules(RULES), found: BTreeMap::new() }
    }
}

impl Restarts {
    /// A run that the daemon has found waits for its turn.
    pub(crate) fn push(&mut self, world: &World, index: RunIndex, run: &Run) {
        let is_blind = world.is_sabotaged(Sabotage::StartsTheLiving);
        let was_alive = is_alive(world, index, run);
        let found = Found { index, was_alive, is_let_go: false };
        self.found.insert(run.id.clone(), found);
        self.queue.push(Desired::of(run, &boot_id(world.boot)), was_alive && !is_blind);
    }

    pub(crate) fn has_pending(&self) -> bool {
        self.queue.has_pending()
    }

    pub(crate) fn is_pending(&self, run: &RunId) -> bool {
        self.queue.is_pending(run)
    }

    pub(crate) fn request_start(&mut self, run: &RunId) {
        self.queue.request_start(run);
    }

    /// A person's word: the run goes on whatever is planned.
    pub(crate) fn release(&mut self, run: &RunId) {
        self.queue.release(run);
        if let Some(found) = self.found.get_mut(run) {
            found.is_let_go = true;
        }
    }

    /// Only a broken daemon does this: it lets a run go that has to wait.
    pub(crate) fn forget_to_wait(&mut self, run: &RunId) {
        self.queue.release(run);
    }

    pub(crate) fn note(&mut self, world: &World, run: &Run) {
        self.queue.note(run, &boot_id(world.boot));
    }

    pub(crate) fn started(&mut self, run: &RunId) {
        self.queue.started(run);
    }

    /// The run is over here.
    pub(crate) fn forget(&mut self, run: &RunId) {
        self.queue.forget(run);
        self.found.remove(run);
    }

    /// True if the run was found at the start and nothing has let it go since.
    pub(crate) fn has_to_wait(&self, run: &RunId) -> bool {
        self.found.get(run).is_some_and(|found| !found.is_let_go)
    }

    /// What is to be done now.
    pub(crate) fn plan(&mut self, world: &mut World, conducted: &BTreeSet<RunId>) -> Plan {
        let plan = self.queue.plan(|run| conducted.contains(run), world.now());
        for id in plan.adopt.iter().chain(&plan.start) {
            let Some(found) = self.found.get_mut(id) else { continue };
            found.is_let_go = true;
            let run = world.runs[found.index].known.run().cloned();
            let is_alive = run.is_some_and(|run| is_alive(world, found.index, &run));
            if found.was_alive && is_alive && plan.start.contains(id) {
                world.broke(None, format!("run {id} is alive, and is to be started"));
            }
        }
        world.stats.resumes += u64::from(!plan.start.is_empty());
        world.stats.resumes_held += u64::from(!plan.delays.is_empty());
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
