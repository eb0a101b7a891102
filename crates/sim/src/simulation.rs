//! A seed from its first step to its rest.

use std::panic::{self, AssertUnwindSafe};

use outlast_engine::{Event, Step};

use crate::daemon::Stage;
use crate::failure::Failure;
use crate::faults::Faults;
use crate::machine::{DaemonId, Machine};
use crate::options::Options;
use crate::rules::Rules;
use crate::stats::Stats;
use crate::world::{Key, RunIndex, ShimId};
use crate::{family, processes, shim, truth};

/// Rounds of peace after which people stop what nothing else would end, and how often they ask.
const STOP_AFTER: u32 = 60;
const STOP_EVERY: u32 = 40;
/// Rounds of peace after which the operator takes back every limit that runs share.
const ROOM_AFTER: u32 = 600;
/// Rounds of peace within which a stop that failed is said to have failed.
const SAID_WITHIN: u32 = 200;
/// Rounds between two looks of a person at what rests.
const LOOK_EVERY: u32 = 10;
/// Rounds of peace within which a run with ceilings has come to its end.
const LATE: u32 = 3_000;

/// Runs one seed. The same seed and options give the same answer.
pub fn run_seed(seed: u64, options: &Options) -> Result<Stats, Failure> {
    let mut machine = Machine::new(seed, options);
    // The engine asserts what it promises itself: that is a finding as any other.
    let lived = panic::catch_unwind(AssertUnwindSafe(|| live(&mut machine)));
    if let Err(panicked) = lived {
        let what = panicked.downcast_ref::<String>().cloned();
        let what = what.or_else(|| panicked.downcast_ref::<&str>().map(|it| (*it).to_owned()));
        machine.world.broke(None, format!("it panicked: {}", what.unwrap_or_default()));
    }
    match machine.world.broken {
        None => Ok(machine.world.stats),
        Some(_) => Err(failure(&machine, seed)),
    }
}

fn live(machine: &mut Machine) {
    for _ in 0..machine.world.options.steps {
        machine.step();
        if machine.world.broken.is_some() {
            return;
        }
    }
    machine.come_to_rest();
    if machine.world.broken.is_none() {
        truth::check_rest(&mut machine.world);
    }
}

/// Runs `count` seeds from `first` on, until one fails.
pub fn run_range(first: u64, count: u64, options: &Options) -> Result<Stats, Failure> {
    let mut sum = Stats::default();
    for seed in first..first + count {
        sum.add(&run_seed(seed, options)?);
    }
    Ok(sum)
}

fn failure(machine: &Machine, seed: u64) -> Failure {
    let world = &machine.world;
    let (reason, run) = world.broken.clone().unwrap_or_default();
    let events = run.map(|run| truth::journal(world, run)).unwrap_or_default();
    let journal = written(&events);
    let portrait = run.map(|run| machine.portrait(run)).unwrap_or_default();
    let others = world.existing().into_iter().filter(|other| run.is_some_and(|run| run != *other));
    let others = others.flat_map(|other| {
        let events = written(&truth::journal(world, other));
        events.into_iter().map(move |event| format!("run {other}: {event}"))
    });
    let trail = others.chain(world.trail.iter().cloned()).chain(portrait).collect();
    let reason = match run {
        Some(run) => format!("run {run}: {reason}"),
        None => reason,
    };
    Failure { seed, step: world.stats.steps, reason, journal, trail }
}

fn written(events: &[Event]) -> Vec<String> {
    let line = |event| serde_json::to_string(event).expect("an event is plain data");
    events.iter().map(line).collect()
}

impl Machine {
    fn step(&mut self) {
        self.world.stats.steps += 1;
        let ms = self.world.rng.below(40);
        self.world.pass(ms);
        self.maybe_go_wrong();
        let may_start = if self.daemons.is_empty() { 250 } else { self.world.faults.overlap };
        if self.world.rng.chance(may_start) {
            self.start_daemon();
        }
        match self.world.rng.below(10) {
            0 => self.step_user(),
            1..=4 => {
                let daemons: Vec<DaemonId> = self.daemons.keys().copied().collect();
                if let Some(id) = self.world.rng.pick(&daemons) {
                    self.step_daemon(id);
                }
            }
            5..=7 => {
                let shims: Vec<ShimId> = self.world.shims.keys().copied().collect();
                if let Some(id) = self.world.rng.pick(&shims) {
                    shim::step(&mut self.world, id);
                }
            }
            _ => {
                let alive: Vec<Key> = self
                    .world
                    .sites
                    .iter()
                    .filter(|(_, site)| !site.tree.is_empty())
                    .map(|(key, _)| *key)
                    .collect();
                if let Some(key) = self.world.rng.pick(&alive) {
                    processes::step(&mut self.world, key);
                    self.step_calls(key);
                }
            }
        }
    }

    /// Every daemon, shim and process steps once, and nothing goes wrong.
    fn quiet_round(&mut self, round: u32) {
        self.world.stats.steps += 1;
        let ms = self.world.rng.below(1_000);
        self.world.pass(ms);
        if round.is_multiple_of(20) {
            // Far enough to get over any jump of the clock.
            self.world.pass(600_000);
        }
        let newest = self.world.epoch;
        if !self
            .daemons
            .values()
            .any(|daemon| daemon.epoch == newest || daemon.stage == Stage::Started)
        {
            self.start_daemon();
        }
        if round == ROOM_AFTER {
            // The operator gives room to what waits for it.
            self.world.rules = Rules::default();
        }
        self.ask_again();
        let daemons: Vec<DaemonId> = self.daemons.keys().copied().collect();
        daemons.into_iter().for_each(|id| self.round_of_daemon(id));
        let shims: Vec<ShimId> = self.world.shims.keys().copied().collect();
        shims.into_iter().for_each(|id| shim::step(&mut self.world, id));
        let alive = self.world.sites.iter().filter(|(_, site)| !site.tree.is_empty());
        let alive: Vec<Key> = alive.map(|(key, _)| *key).collect();
        for key in alive {
            processes::step(&mut self.world, key);
            self.step_calls(key);
        }
        for run in self.world.existing() {
            if round.is_multiple_of(LOOK_EVERY) {
                self.look_after(run);
            }
            if round >= STOP_AFTER && round.is_multiple_of(STOP_EVERY) {
                self.stop_what_goes_on(run);
            }
            if round == LATE {
                self.end_what_is_late(run);
            }
            self.expect_to_hear_of_failed_stop(run);
        }
    }

    /// A stop that cannot succeed is called incomplete soon, and also the second time. Rounds in which the conductor still
    /// has words to read do not count: the monitor's own may be the last of them.
    fn expect_to_hear_of_failed_stop(&mut self, run: RunIndex) {
        if self.daemons.values().any(|daemon| daemon.waiting_for(run) > 0) {
            return;
        }
        let is_unsaid = truth::unrest(&self.world, run) == Some(truth::UNSTOPPABLE);
        let rounds = self.note_unsaid(run, is_unsaid);
        if rounds > SAID_WITHIN {
            let what = format!("for {rounds} rounds {}", truth::UNSTOPPABLE);
            self.world.broke(Some(run), what);
        }
    }

    /// Faults are over: everything comes to its end, with people who see to what waits for them.
    fn come_to_rest(&mut self) {
        self.world.faults = Faults::none();
        self.world.is_quiet = true;
        self.world.is_all_paused = false;
        // The operator who set the clock back sets it right again.
        self.world.now = self.world.now.max(self.world.latest);
        self.world.note(|| "peace".to_owned());
        for round in 0..self.world.options.quiet_rounds {
            self.quiet_round(round);
            if self.world.broken.is_some() || self.unrest().is_none() {
                return;
            }
        }
        if let Some((run, why)) = self.unrest() {
            let rounds = self.world.options.quiet_rounds;
            self.world.broke(Some(run), format!("not at rest after {rounds} rounds: {why}"));
        }
    }

    /// What has no end of its own, and what was asked to end and has not.
    fn stop_what_goes_on(&mut self, run: RunIndex) {
        let Some(known) = self.world.runs[run].known.run() else { return };
        let is_asked = known.has_ended() || known.stop.is_some() || known.is_stop_incomplete();
        let has_no_end = self.is_endless(run) || family::waits_for_the_unending(&self.world, run);
        if truth::unrest(&self.world, run).is_some() && (is_asked || has_no_end) {
            self.ask_stop(run);
        }
    }

    /// True if an attempt lives that neither ends by itself nor has a limit that ends it.
    fn is_endless(&self, run: RunIndex) -> bool {
        let limits = self.world.runs[run].spec.limits;
        let is_timed = limits.turn_timeout_ms.is_some() || limits.run_timeout_ms.is_some();
        self.world.sites.iter().any(|(key, site)| {
            let is_attempt = matches!(key.step, Step::Attempt { .. });
            // Only a shim hears whether its command is silent.
            let is_watched = limits.stall_window_ms.is_some()
                && site.lock.is_some_and(|shim| self.world.shims.contains_key(&shim));
            key.run == run
                && is_attempt
                && site.is_endless
                && site.tree.is_main_alive()
                && !is_timed
                && !is_watched
        })
    }

    /// A run with ceilings has ended by now; another one may take as many turns as it likes.
    fn end_what_is_late(&mut self, run: RunIndex) {
        let spec = &self.world.runs[run].spec;
        let is_bounded = spec.limits.max_turns.is_some() || spec.workflow.is_none();
        if truth::unrest(&self.world, run) != Some("it has not ended")
            || family::waits_for_a_child(&self.world, run)
        {
            return;
        }
        if is_bounded {
            self.world.broke(Some(run), "its ceilings are long reached, and it goes on".to_owned());
        } else {
            self.ask_stop(run);
        }
    }

    /// Everything there is of a run outside of its journal.
    fn portrait(&self, run: RunIndex) -> Vec<String> {
        let sites = self
            .world
            .sites
            .iter()
            .filter(|(key, _)| key.run == run)
            .map(|(key, site)| format!("{key}: {site:?}"));
        let shims = self
            .world
            .shims
            .values()
            .filter(|shim| shim.key.run == run)
            .map(|shim| format!("{shim:?}"));
        let daemons = self
            .daemons
            .iter()
            .map(|(id, daemon)| format!("daemon {id}: {}", daemon.portrait(run)));
        sites.chain(shims).chain(daemons).collect()
    }

    /// A run that is not at rest yet, and why.
    fn unrest(&self) -> Option<(RunIndex, &'static str)> {
        if !self.are_clients_answered() {
            return Some((0, "a client waits for its answer"));
        }
        self.world.existing().into_iter().find_map(|run| self.unrest_of(run).map(|why| (run, why)))
    }

    fn unrest_of(&self, run: RunIndex) -> Option<&'static str> {
        let to_go = self.is_to_be_removed(run).then_some("its workspace is to go");
        let unsent = truth::has_unsent(&self.world, run).then_some("a notice waits to be sent");
        let insisted = self.wants_to_insist(run).then_some("a person wants to stop it once more");
        let unrest = truth::unrest(&self.world, run).filter(|_| !family::is_held(&self.world, run));
        unrest.or(to_go).or(unsent).or(insisted)
    }
}
