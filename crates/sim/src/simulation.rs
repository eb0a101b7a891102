//! A seed from its first step to its rest.

use crate::daemon::{self, Stage};
use crate::faults::Faults;
use crate::truth;
use crate::world::{DaemonId, Key, RunIndex, ShimId, World};
use crate::{Failure, Options, Stats, shim};

/// Rounds of peace after which users stop what goes on, first without and then with limits of its own.
const STOP_AFTER: u32 = 60;
const STOP_LIMITED_AFTER: u32 = 400;
const STOP_EVERY: u32 = 40;

/// Runs one seed. The same seed and options give the same answer.
pub fn run_seed(seed: u64, options: &Options) -> Result<Stats, Failure> {
    let mut world = World::new(seed, options);
    for _ in 0..options.steps {
        world.step();
        whole(&world, seed)?;
    }
    world.faults = Faults::none();
    world.is_quiet = true;
    // Whoever sets a clock back sets it right again one day.
    world.now = world.now.max(world.latest);
    world.note(|| "peace".to_owned());
    let mut unrest = Some((0, "it has not begun"));
    for round in 0..options.quiet_rounds {
        world.quiet_round(round);
        whole(&world, seed)?;
        unrest = world.unrest();
        if unrest.is_none() {
            break;
        }
    }
    if let Some((run, why)) = unrest {
        world.broke(Some(run), format!("not at rest after {} rounds: {why}", options.quiet_rounds));
    }
    truth::check_rest(&mut world);
    whole(&world, seed)?;
    Ok(world.stats)
}

/// Runs `count` seeds from `first` on, until one fails.
pub fn run_range(first: u64, count: u64, options: &Options) -> Result<Stats, Failure> {
    let mut sum = Stats::default();
    for seed in first..first + count {
        sum.add(&run_seed(seed, options)?);
    }
    Ok(sum)
}

fn whole(world: &World, seed: u64) -> Result<(), Failure> {
    let Some((reason, run)) = &world.broken else { return Ok(()) };
    let events = run.map(|run| truth::journal(world, run)).unwrap_or_default();
    let journal = events
        .iter()
        .map(|event| serde_json::to_string(event).expect("an event is plain data"))
        .collect();
    let portrait = run.map(|run| world.portrait(run)).unwrap_or_default();
    let trail = world.trail.iter().cloned().chain(portrait).collect();
    let reason = match run {
        Some(run) => format!("run {run}: {reason}"),
        None => reason.clone(),
    };
    Err(Failure { seed, step: world.stats.steps, reason, journal, trail })
}

impl World {
    fn step(&mut self) {
        self.stats.steps += 1;
        self.now += self.rng.below(40);
        self.maybe_go_wrong();
        let may_start = if self.daemons.is_empty() { 250 } else { self.faults.overlap };
        if self.rng.chance(may_start) {
            self.start_daemon();
        }
        match self.rng.below(10) {
            0 => self.step_user(),
            1..=4 => {
                let daemons: Vec<DaemonId> = self.daemons.keys().copied().collect();
                if let Some(id) = self.rng.pick(&daemons) {
                    daemon::step(self, id);
                }
            }
            5..=7 => {
                let shims: Vec<ShimId> = self.shims.keys().copied().collect();
                if let Some(id) = self.rng.pick(&shims) {
                    shim::step(self, id);
                }
            }
            _ => {
                let alive: Vec<Key> = self
                    .attempts
                    .iter()
                    .filter(|(_, attempt)| !attempt.tree.is_empty())
                    .map(|(key, _)| *key)
                    .collect();
                if let Some(key) = self.rng.pick(&alive) {
                    self.step_processes(key);
                }
            }
        }
    }

    /// Everybody steps once, and nothing goes wrong.
    fn quiet_round(&mut self, round: u32) {
        self.stats.steps += 1;
        self.now += self.rng.below(1_000);
        if round.is_multiple_of(20) {
            // Far enough to get over any jump of the clock.
            self.now += 600_000;
        }
        let newest = self.epoch;
        if !self
            .daemons
            .values()
            .any(|daemon| daemon.epoch == newest || daemon.stage == Stage::Started)
        {
            self.start_daemon();
        }
        self.ask_again();
        let daemons: Vec<DaemonId> = self.daemons.keys().copied().collect();
        daemons.into_iter().for_each(|id| daemon::round(self, id));
        let shims: Vec<ShimId> = self.shims.keys().copied().collect();
        shims.into_iter().for_each(|id| shim::step(self, id));
        let attempts: Vec<Key> = self.attempts.keys().copied().collect();
        attempts.into_iter().for_each(|key| self.step_processes(key));
        if round >= STOP_AFTER && round.is_multiple_of(STOP_EVERY) {
            self.stop_what_goes_on(round);
        }
    }

    fn stop_what_goes_on(&mut self, round: u32) {
        for run in self.existing() {
            let limits = self.runs[run].spec.limits;
            let is_limited = limits.turn_timeout_ms.is_some() || limits.run_timeout_ms.is_some();
            if truth::unrest(self, run).is_none() || (is_limited && round < STOP_LIMITED_AFTER) {
                continue;
            }
            if is_limited {
                truth::check_limits(self, run);
            }
            self.ask_stop(run);
        }
    }

    /// Everything there is of a run outside of its journal.
    fn portrait(&self, run: RunIndex) -> Vec<String> {
        let attempts = self
            .attempts
            .iter()
            .filter(|(key, _)| key.run == run)
            .map(|(key, attempt)| format!("{key}: {attempt:?}"));
        let shims =
            self.shims.values().filter(|shim| shim.key.run == run).map(|shim| format!("{shim:?}"));
        let daemons = self
            .daemons
            .iter()
            .map(|(id, daemon)| format!("daemon {id}: {}", daemon.portrait(run)));
        attempts.chain(shims).chain(daemons).collect()
    }

    /// A run that is not at rest yet, and why.
    fn unrest(&self) -> Option<(RunIndex, &'static str)> {
        if !self.is_everybody_answered() {
            return Some((0, "a client waits for its answer"));
        }
        self.existing().into_iter().find_map(|run| truth::unrest(self, run).map(|why| (run, why)))
    }
}
