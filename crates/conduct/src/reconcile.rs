//! The plan for all open runs: what their journals want, compared with what is there.
//!
//! Pure: it reads no clock and touches nothing, so the simulator asks exactly this code. It says which run gets a
//! conductor and which run may start something. The engine decides what that something is, and the shim's lock
//! decides whether it is alive after all.

use std::collections::{BTreeMap, BTreeSet};

use outlast_engine::{Effect, Run, RunId, Time};

#[cfg(test)]
mod tests;

/// A run, as its journal has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Desired {
    pub run: RunId,
    pub readiness: Readiness,
    pub priority: i32,
    /// Its age.
    pub since: Time,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readiness {
    /// It is over, and nothing of it is left to see to.
    Ended,
    /// It would start nothing now.
    Resting,
    /// It would start something now: its next step, or one that was meant and may never have been launched.
    Eager,
    /// It is not known. A run that may be at work is not given up because of that.
    Unreadable,
}

/// What is there, and how far every run is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// Runs that have a conductor.
    pub seated: BTreeSet<RunId>,
    /// Runs with a shim that holds its lock.
    pub alive: BTreeSet<RunId>,
    /// Runs that may start nothing yet: found at the start of this daemon, and not let go since.
    pub pending: BTreeSet<RunId>,
    /// Runs that were let go to start something and have not started it, and since when.
    pub starting: BTreeMap<RunId, Time>,
    /// When others were let go lately.
    pub recent: Vec<Time>,
}

/// What keeps things from being done at once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Backoff {
    pub rules: Rules,
    /// Daemons have died too fast: nothing is started before this.
    pub storm_until: Option<Time>,
    /// Runs that could not be read, or have lost their conductor.
    pub failures: BTreeMap<RunId, Failure>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    pub times: u32,
    pub last: Time,
}

impl Failure {
    pub const NONE: Self = Self { times: 0, last: Time(0) };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// So many are let go at once, and within a gap.
    pub at_once: usize,
    /// Before the next so many.
    pub gap_ms: u64,
    /// A run that was let go counts for so long, at most.
    pub start_within_ms: u64,
    /// After a failure; it doubles with each.
    pub first_delay_ms: u64,
    pub longest_delay_ms: u64,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            at_once: 4,
            gap_ms: 500,
            start_within_ms: 30_000,
            first_delay_ms: 5_000,
            longest_delay_ms: 600_000,
        }
    }
}

/// In the order in which it is to be done.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Who gets a conductor.
    pub seat: Vec<RunId>,
    /// Who is no longer held back, because it is at work: it is adopted, not started.
    pub adopt: Vec<RunId>,
    /// Who may start something now.
    pub start: Vec<RunId>,
    /// Who is read again.
    pub retry: Vec<RunId>,
    pub delays: Vec<Delay>,
    /// When this is asked again, if nothing happens before.
    pub look_again_at: Option<Time>,
}

/// Not yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delay {
    pub run: RunId,
    pub until: Time,
    pub why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Others are started first.
    Others,
    /// Daemons have died too fast.
    Storm,
    /// It failed a short while ago.
    Failed,
    Unreadable,
}

pub fn reconcile(desired: &[Desired], observed: &Observed, backoff: &Backoff, now: Time) -> Plan {
    let mut plan = Plan::default();
    let mut eager = Vec::new();
    for wanted in in_order(desired, observed) {
        let run = &wanted.run;
        let is_alive = observed.alive.contains(run);
        match wanted.readiness {
            Readiness::Ended => continue,
            Readiness::Unreadable => {
                match backoff.until(run, now) {
                    None => plan.retry.push(run.clone()),
                    Some(until) => plan.delay(run, until, Why::Unreadable),
                }
                continue;
            }
            Readiness::Resting | Readiness::Eager => {}
        }
        if !observed.seated.contains(run) {
            // A run that is at work is met again at once; but not for ever, if that is what fails.
            match backoff.until(run, now).filter(|_| !is_alive || backoff.has_repeated(run)) {
                None => plan.seat.push(run.clone()),
                Some(until) => {
                    plan.delay(run, until, Why::Failed);
                    continue;
                }
            }
        }
        let is_free = !observed.pending.contains(run);
        let storm = backoff.storm_until.filter(|until| *until > now);
        match (wanted.readiness, storm) {
            _ if is_free => {}
            (Readiness::Eager, Some(until)) => plan.delay(run, until, Why::Storm),
            (_, Some(until)) if is_alive => plan.delay(run, until, Why::Storm),
            (_, None) if is_alive => plan.adopt.push(run.clone()),
            (Readiness::Eager, None) => eager.push(run),
            (Readiness::Resting | Readiness::Ended | Readiness::Unreadable, _) => {}
        }
    }
    plan.let_go(&eager, observed, backoff.rules, now);
    plan.look_again_at = plan.delays.iter().map(|delay| delay.until).min();
    plan
}

/// What is alive first, then by priority, then by age.
fn in_order<'a>(desired: &'a [Desired], observed: &Observed) -> Vec<&'a Desired> {
    let mut all: Vec<&Desired> = desired.iter().collect();
    all.sort_by_key(|wanted| {
        let is_idle = !observed.alive.contains(&wanted.run);
        (is_idle, wanted.priority.saturating_neg(), wanted.since, &wanted.run)
    });
    all
}

impl Plan {
    /// So many as there is room for; the others later.
    fn let_go(&mut self, eager: &[&RunId], observed: &Observed, rules: Rules, now: Time) {
        let lasting = |ms: u64, times: &mut dyn Iterator<Item = &Time>| -> Vec<Time> {
            times.filter_map(|since| lasts_until(*since, ms, now)).collect()
        };
        let mut recent = lasting(rules.gap_ms, &mut observed.recent.iter());
        let mut under_way = lasting(rules.start_within_ms, &mut observed.starting.values());
        let most = rules.at_once.max(1);
        let room = most.saturating_sub(recent.len().max(under_way.len()));
        let (go, stay) = eager.split_at(room.min(eager.len()));
        self.start = go.iter().map(|run| (*run).clone()).collect();
        recent.extend(go.iter().map(|_| now.plus_ms(rules.gap_ms)));
        under_way.extend(go.iter().map(|_| now.plus_ms(rules.start_within_ms)));
        // A run that is on the way is there before its time is over, and then this is asked again.
        let full = if recent.len() >= most { recent } else { under_way };
        let next = full.into_iter().min().unwrap_or(now);
        for run in stay {
            self.delay(run, next, Why::Others);
        }
    }

    fn delay(&mut self, run: &RunId, until: Time, why: Why) {
        self.delays.push(Delay { run: run.clone(), until, why });
    }
}

impl Backoff {
    fn has_repeated(&self, run: &RunId) -> bool {
        self.failures.get(run).is_some_and(|failure| failure.times > 1)
    }

    /// Until when a run has to wait after its last failure, if it has to.
    fn until(&self, run: &RunId, now: Time) -> Option<Time> {
        let Failure { times, last } = *self.failures.get(run)?;
        let doublings = times.saturating_sub(1).min(32);
        let delay_ms = self.rules.first_delay_ms.saturating_mul(1 << doublings);
        lasts_until(last, delay_ms.min(self.rules.longest_delay_ms), now)
    }
}

/// The end of what began then, unless it is over. A clock that was set back ends it.
fn lasts_until(since: Time, ms: u64, now: Time) -> Option<Time> {
    let end = since.plus_ms(ms);
    (since <= now && now < end).then_some(end)
}

impl Desired {
    pub fn of(run: &Run, boot: &outlast_engine::BootId) -> Self {
        Self {
            run: run.id.clone(),
            readiness: readiness(run, boot),
            priority: run.spec.queue.priority,
            since: run.created_at,
        }
    }
}

fn readiness(run: &Run, boot: &outlast_engine::BootId) -> Readiness {
    let is_unlaunched = |effect: Effect| match effect {
        // On another boot it is known to have ended, and launched no more.
        Effect::Ensure { step, boot: theirs } => {
            theirs == *boot
                && run
                    .step_state(step)
                    .is_some_and(|state| state.end.is_none() && state.process.is_none())
        }
        _ => false,
    };
    if !run.is_open() {
        Readiness::Ended
    } else if run.wants_slot() || run.due().into_iter().any(is_unlaunched) {
        Readiness::Eager
    } else {
        Readiness::Resting
    }
}
