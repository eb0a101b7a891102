//! Who a daemon lets go on after its start: production's own plan, over what there is in this world.

use std::collections::{BTreeMap, BTreeSet};

use outlast_daemon::reconcile::{Backoff, Desired, Observed, Plan, Rules, reconcile};
use outlast_engine::{Effect, Run, RunId, Time};

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

#[derive(Default)]
pub(crate) struct Resumes {
    held: BTreeSet<RunId>,
    starting: BTreeMap<RunId, Time>,
    recent: Vec<Time>,
}

impl Resumes {
    pub(crate) fn hold(&mut self, run: &Run) {
        self.held.insert(run.id.clone());
    }

    pub(crate) fn is_settled(&self) -> bool {
        self.held.is_empty()
    }

    pub(crate) fn has_gone_on(&mut self, run: &Run) {
        self.starting.remove(&run.id);
    }

    /// What is to be done for these; whoever it lets go is held back no longer.
    pub(crate) fn plan(
        &mut self,
        world: &mut World,
        runs: &[(RunIndex, &Run)],
        seated: BTreeSet<RunId>,
    ) -> Plan {
        let boot = boot_id(world.boot);
        let desired: Vec<Desired> = runs.iter().map(|(_, run)| Desired::of(run, &boot)).collect();
        let alive: BTreeSet<RunId> = runs
            .iter()
            .filter(|(index, run)| is_alive(world, *index, run))
            .map(|(_, run)| run.id.clone())
            .collect();
        let is_blind = world.is_sabotaged(Sabotage::StartsTheLiving);
        let observed = Observed {
            seated,
            alive: if is_blind { BTreeSet::new() } else { alive.clone() },
            held: self.held.clone(),
            starting: self.starting.clone(),
            recent: self.recent.clone(),
        };
        let backoff = Backoff { rules: RULES, ..Backoff::default() };
        let plan = reconcile(&desired, &observed, &backoff, world.now());
        for run in &plan.start {
            if alive.contains(run) {
                world.broke(None, format!("run {run} is alive, and is to be started"));
            }
        }
        for run in plan.adopt.iter().chain(&plan.start) {
            self.held.remove(run);
        }
        if !plan.start.is_empty() {
            world.stats.resumes += 1;
            self.starting.extend(plan.start.iter().map(|run| (run.clone(), world.now())));
            self.recent.push(world.now());
        }
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
