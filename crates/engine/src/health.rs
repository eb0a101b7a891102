//! How a run is doing, computed here so that every screen says the same.
//!
//! A function of the run and of the little that only the world knows; the first rule that matches is the
//! word. A change of the word is an event, so what a list shows is what the journal says.

use crate::handle::Draft;
use crate::{
    Context, Fact, Health, Limit, Nearing, Outcome, Run, State, Time, WaitCause, Wants, duration,
    limits,
};

/// A word, since when it holds, and why, in a sentence; a healthy run needs no why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    pub health: Health,
    pub since: Time,
    pub why: String,
}

impl Condition {
    pub(crate) fn healthy(since: Time) -> Self {
        Self { health: Health::Healthy, since, why: String::new() }
    }

    /// The sentence as it reads now: silence grows while nothing happens.
    pub fn why_at(&self, now: Time) -> String {
        match self.health {
            Health::Silent => no_output(now.ms_since(self.since)),
            _ => self.why.clone(),
        }
    }
}

/// What only the world knows of the attempt that is alive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Seen {
    /// For how long nothing was heard of it. Time in which no daemon could listen is not counted.
    pub quiet_ms: u64,
    /// True once it has written anything.
    pub has_spoken: bool,
    /// Since when its shim lives and does not answer.
    pub unreachable: Option<Time>,
}

/// What holds if a rule matches.
type Rule = fn(&Run, Time, &Seen) -> Option<Condition>;

impl Run {
    /// How the run is doing at this moment; what the journal says of it is [`Run::condition`].
    pub fn health(&self, now: Time, seen: &Seen) -> Condition {
        if matches!(self.state, State::Finishing { .. } | State::Ended { .. }) {
            return Condition::healthy(self.condition.since);
        }
        let rules: [Rule; 8] = [
            unreachable,
            orphaned,
            waiting_human,
            rate_limited,
            stalled,
            thrashing,
            near_limit,
            silent,
        ];
        let found = rules.iter().find_map(|rule| rule(self, now, seen));
        found.unwrap_or_else(|| Condition::healthy(now))
    }

    /// The word for lists. A journal without words on health still names an orphan.
    pub fn known_health(&self) -> Health {
        if self.is_orphaned() { Health::Orphaned } else { self.condition.health }
    }

    /// True if a person has to answer what the agent said last.
    pub fn asks_in_words(&self) -> bool {
        let State::Blocked { reason } = &self.state else { return false };
        match reason.wants() {
            Wants::Answer | Wants::Decision => true,
            Wants::Look => false,
        }
    }

    pub fn is_orphaned(&self) -> bool {
        self.live().is_some_and(|attempt| attempt.state.is_orphaned)
    }

    /// How long the attempt that is alive may be quiet before it is called silent.
    pub fn silent_after_ms(&self) -> Option<u64> {
        let asked = Some(self.spec.health.silent_after_ms).filter(|ms| *ms > 0);
        let half_window = self.spec.limits.stall_window_ms.map(|window| window / 2);
        match (asked, half_window) {
            (Some(asked), Some(half)) => Some(asked.min(half)),
            (asked, _) => asked,
        }
        .filter(|_| self.live().is_some_and(|live| live.state.process.is_some()))
    }

    /// True if word of new output would change how the run is doing.
    pub fn wants_output(&self) -> bool {
        matches!(self.condition.health, Health::Silent | Health::Stalled) && self.live().is_some()
    }
}

/// Writes down which limits are near and how the run is doing, if either is news.
pub(crate) fn follow(draft: &mut Draft, context: &Context) {
    if !draft.run().has_ended() {
        for Nearing { name, used, max } in &context.nearing {
            let (limit, used, max, budget) = (Limit::Budget, *used, *max, Some(name.clone()));
            draft.push(context.now, Fact::LimitNeared { limit, used, max, budget });
        }
    }
    if matches!(draft.run().state, State::Finishing { .. } | State::Ended { .. }) {
        return;
    }
    for (limit, used, max) in limits::newly_near(draft.run(), context.now) {
        draft.push(context.now, Fact::LimitNeared { limit, used, max, budget: None });
    }
    let known = draft.run().condition.health;
    let now = draft.run().health(context.now, &context.seen);
    if now.health == known {
        return;
    }
    let fact = match now.health {
        Health::Healthy => Fact::HealthRecovered { from: known },
        health => Fact::HealthDegraded { health, since: now.since, why: now.why },
    };
    draft.push(context.now, fact);
}

fn condition(health: Health, since: Time, why: impl Into<String>) -> Option<Condition> {
    Some(Condition { health, since, why: why.into() })
}

fn unreachable(run: &Run, _now: Time, seen: &Seen) -> Option<Condition> {
    let since = seen.unreachable.filter(|_| run.is_busy())?;
    condition(Health::Unreachable, since, "its shim lives and does not answer")
}

fn orphaned(run: &Run, now: Time, _seen: &Seen) -> Option<Condition> {
    run.is_orphaned().then_some(())?;
    condition(Health::Orphaned, now, "its shim is gone: output and exit can no longer be seen")
}

fn waiting_human(run: &Run, now: Time, _seen: &Seen) -> Option<Condition> {
    if let Some(open) = run.open_question() {
        let text: String = open.text.chars().take(200).collect();
        let since = match run.condition.health {
            Health::WaitingHuman => run.condition.since,
            _ => now,
        };
        return condition(
            Health::WaitingHuman,
            since,
            format!("its agent waits for an answer: {text}"),
        );
    }
    let State::Blocked { reason } = &run.state else { return None };
    (!run.is_released).then_some(())?;
    let what = if run.asks_in_words() { "an answer" } else { "a person" };
    condition(Health::WaitingHuman, run.since, format!("waits for {what}: {reason}"))
}

fn rate_limited(run: &Run, _now: Time, _seen: &Seen) -> Option<Condition> {
    let State::Waiting { cause: WaitCause::RateLimit, since, .. } = run.state else { return None };
    condition(Health::RateLimited, since, "waits until its provider lets it go on")
}

/// An attempt was ended for its silence, and nothing has been heard of the next one.
fn stalled(run: &Run, now: Time, seen: &Seen) -> Option<Condition> {
    let attempt = run.attempt.as_ref().filter(|it| it.turn > run.turns_committed)?;
    let since = match (&attempt.state.end, &attempt.after) {
        (Some((Outcome::Stalled { .. }, at)), _) => *at,
        (None, Some(Outcome::Stalled { .. })) if !seen.has_spoken => match run.condition.health {
            Health::Stalled => run.condition.since,
            _ => now,
        },
        _ => return None,
    };
    let times = run.counters.stalls.max(1);
    let often = if times > 1 { format!(", {times} times in a row") } else { String::new() };
    condition(Health::Stalled, since, format!("ended for its silence{often}, and started again"))
}

/// Tries that failed, or turns that changed nothing.
fn thrashing(run: &Run, now: Time, _seen: &Seen) -> Option<Condition> {
    let most = run.spec.health.thrash_attempts.max(2);
    let failed = run.failed_attempts();
    if run.spec.health.thrash_attempts > 0 && failed >= most {
        let turn = run.attempt.as_ref().map_or(0, |attempt| attempt.turn);
        return condition(
            Health::Thrashing,
            now,
            format!("{failed} attempts at turn {turn} have failed"),
        );
    }
    // One before the last that is let pass, and never the first.
    let is_close = |times: u32| {
        run.spec.limits.no_progress_turns.is_some_and(|most| times >= most.saturating_sub(1).max(2))
    };
    let counters = &run.counters;
    if is_close(counters.no_progress) {
        let why = format!("{} turns in a row changed nothing", counters.no_progress);
        return condition(Health::Thrashing, now, why);
    }
    is_close(counters.failed_claims).then_some(())?;
    let why =
        format!("{} turns in a row claimed done, and a check refuted it", counters.failed_claims);
    condition(Health::Thrashing, now, why)
}

fn near_limit(run: &Run, now: Time, _seen: &Seen) -> Option<Condition> {
    if let State::Waiting { cause: WaitCause::Budget, since, .. } = run.state {
        return condition(Health::NearLimit, since, run.why.reason.clone());
    }
    let (limit, percent) = run
        .neared
        .iter()
        .filter_map(|limit| Some((*limit, limits::percent(run, *limit, now)?)))
        .max_by_key(|(_, percent)| *percent)?;
    let reserved = run.spend.reserved;
    let is_reserved = match limit {
        Limit::MaxTokens => reserved.tokens > 0,
        Limit::MaxCost => reserved.cost_usd_micros > 0,
        _ => false,
    };
    let why = match is_reserved {
        true => format!("up to {percent} % of {} is used, not all of it reported", limit.word()),
        false => format!("{percent} % of {} is used", limit.word()),
    };
    condition(Health::NearLimit, now, why)
}

fn silent(run: &Run, now: Time, seen: &Seen) -> Option<Condition> {
    let after_ms = run.silent_after_ms()?;
    (seen.quiet_ms >= after_ms).then_some(())?;
    let since = Time(now.0.saturating_sub(seen.quiet_ms));
    condition(Health::Silent, since, no_output(seen.quiet_ms))
}

fn no_output(ms: u64) -> String {
    format!("no output for {}", duration::in_words(ms))
}

impl Run {
    /// Tries at the turn that is not committed yet which came to nothing.
    fn failed_attempts(&self) -> u32 {
        let is_uncommitted =
            self.attempt.as_ref().is_some_and(|attempt| attempt.turn > self.turns_committed);
        let counters = &self.counters;
        if is_uncommitted { counters.attempts + counters.stalls } else { 0 }
    }

    /// True while it rests because a budget that it shares is spent.
    pub fn waits_for_budget(&self) -> bool {
        matches!(self.state, State::Waiting { cause: WaitCause::Budget, .. })
    }
}
