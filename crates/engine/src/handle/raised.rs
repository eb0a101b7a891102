//! A person gives a run more room: new limits for one that goes on, and another start for one that was exhausted.
//!
//! An exhausted run keeps its turns, its messages, its conversation and its workspace. Its time, tokens and money count
//! on from where they were.

use crate::handle::Draft;
use crate::run::{Removal, WorkspaceState};
use crate::{
    Actor, Channel, Context, Fact, Limit, Limits, Order, Reason, ReasonCode, Run, State, StateName,
    Verdict, line, reason,
};

/// What is asked for, limit by limit; `None` leaves a limit as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Raise {
    pub max_turns: Option<More>,
    pub max_tokens: Option<More>,
    pub max_cost_usd_micros: Option<More>,
    pub run_timeout_ms: Option<More>,
    pub turn_timeout_ms: Option<More>,
    /// The operator's: no limit goes beyond its own of these.
    pub ceilings: Limits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum More {
    To(u64),
    By(u64),
}

/// Why a run is not given more room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CannotRaise {
    /// It has ended, and not because a limit was reached.
    HasEnded(Verdict),
    IsEnding,
    /// Its workspace was removed, or is being removed.
    WorkspaceGone,
    /// It has no such limit.
    NoLimit(Limit),
    /// The run above it has reserved so much for it, and no more.
    Reserved(Limit),
    NotMore {
        limit: Limit,
        now: u64,
    },
    AboveCeiling {
        limit: Limit,
        ceiling: u64,
    },
    /// The limit would be larger than any that can be kept.
    TooMuch {
        limit: Limit,
        most: u64,
    },
    /// The run would be exhausted again at once.
    StillSpent {
        limit: Limit,
        used: u64,
        max: u64,
    },
    Nothing,
}

pub(super) fn handle(draft: &mut Draft, raise: &Raise, order: &Order, context: &Context) {
    if draft.run().orders.has(order) {
        return;
    }
    let Ok(limits) = draft.run().raised(raise) else { return };
    let (was_exhausted, before) = (draft.run().has_ended(), draft.run().spec.limits);
    let (actor, order) = (Actor::User, Order { answers: None, ..order.clone() });
    draft.push(context.now, Fact::LimitsRaised { actor, limits, order });
    if was_exhausted {
        let text = match limits == before {
            true => "a person let it go on after its budget was spent",
            false => "a person gave it more room",
        };
        let why = Reason { actor, ..reason::of(text, ReasonCode::Raised) };
        let again = reason::to_state(draft.run(), StateName::Queued, why);
        draft.push(context.now, again);
        // The clock may have been set since the run ended.
        line::follow(draft, context);
    }
}

impl Run {
    /// The limits that the run would have, or why it cannot have them.
    pub fn raised(&self, raise: &Raise) -> Result<Limits, CannotRaise> {
        self.refuse_raise()?;
        let asked = [
            (Limit::MaxTurns, raise.max_turns),
            (Limit::MaxTokens, raise.max_tokens),
            (Limit::MaxCost, raise.max_cost_usd_micros),
            (Limit::RunTimeout, raise.run_timeout_ms),
            (Limit::TurnTimeout, raise.turn_timeout_ms),
        ];
        let mut limits = self.spec.limits;
        for (limit, more) in asked {
            let Some(more) = more else { continue };
            if self.is_reserved(limit) {
                return Err(CannotRaise::Reserved(limit));
            }
            let now = limits.of(limit).ok_or(CannotRaise::NoLimit(limit))?;
            let to = match more {
                More::To(to) => Some(to),
                More::By(by) => now.checked_add(by),
            };
            let most = most_of(limit);
            let to = to.filter(|to| *to <= most).ok_or(CannotRaise::TooMuch { limit, most })?;
            if to <= now {
                return Err(CannotRaise::NotMore { limit, now });
            }
            if let Some(ceiling) = raise.ceilings.of(limit).filter(|ceiling| to > *ceiling) {
                return Err(CannotRaise::AboveCeiling { limit, ceiling });
            }
            limits.set(limit, to);
        }
        if limits == self.spec.limits {
            self.refuse_resume_after_budget()?;
        }
        self.refuse_spent(&limits)?;
        Ok(limits)
    }

    /// True if a parent has put this much aside for the run. The parent was told what an ended child has used, and would
    /// not hear of more.
    fn is_reserved(&self, limit: Limit) -> bool {
        self.spec.parent.is_some()
            && (self.has_ended() || self.spec.tree.room.holds(limit))
            && self.spec.tree.room.is_reserved()
    }

    /// How far a limit can be raised so that the run has room again: by the usual amount, or to the operator's ceiling
    /// if that is less. `None` if the run has no such limit, or has used up what the operator allows.
    pub fn more_room(&self, limit: Limit, ceilings: &Limits) -> Option<More> {
        if matches!(self.state, State::Ended { .. }) && self.has_lost_workspace() {
            return None;
        }
        if self.is_reserved(limit) {
            return None;
        }
        let by = limit.room()?.by;
        let now = self.spec.limits.of(limit)?;
        let least = now.max(self.taken(limit));
        let to = least.saturating_add(by);
        // What an agent reports has millionths; an offer is in cents.
        let to = match limit {
            Limit::MaxCost => to.checked_next_multiple_of(CENT).unwrap_or(to),
            _ => to,
        };
        match ceilings.of(limit).filter(|ceiling| to > *ceiling) {
            Some(ceiling) => (ceiling > least).then_some(More::To(ceiling)),
            None if least == now => Some(More::By(by)),
            None => Some(More::To(to)),
        }
    }

    /// The limits that have to be raised together before an exhausted run can go on: the one that ended it, and each of
    /// which nothing is left.
    pub fn spent_limits(&self, ended_by: Limit) -> Vec<Limit> {
        let others = self.spent(&self.spec.limits).into_iter().map(|(limit, ..)| limit);
        std::iter::once(ended_by).chain(others.filter(|it| *it != ended_by)).collect()
    }

    /// What is used of a limit, or held for what was not reported.
    fn taken(&self, limit: Limit) -> u64 {
        match limit {
            Limit::MaxTurns => u64::from(self.own_turns()),
            Limit::MaxTokens => self.pot(Channel::Tokens).taken(),
            Limit::MaxCost => self.pot(Channel::Money).taken(),
            Limit::RunTimeout => self.clock.used_ms,
            Limit::TurnTimeout | Limit::StallWindow | Limit::Budget => 0,
        }
    }

    /// Those of these limits that leave no room for one more attempt, with what is used of each and how much it allows.
    fn spent(&self, limits: &Limits) -> Vec<(Limit, u64, u64)> {
        let is_new_turn =
            self.attempt.as_ref().is_none_or(|last| last.turn <= self.turns_committed);
        let turns = is_new_turn.then_some(Limit::MaxTurns);
        let all = [turns, Some(Limit::MaxTokens), Some(Limit::MaxCost), Some(Limit::RunTimeout)];
        let of = |limit| {
            let used = self.taken(limit);
            limits.of(limit).filter(|max| used >= *max).map(|max| (limit, used, max))
        };
        all.into_iter().flatten().filter_map(of).collect()
    }

    fn refuse_raise(&self) -> Result<(), CannotRaise> {
        match &self.state {
            State::Ended { verdict } if *verdict != Verdict::Exhausted => {
                Err(CannotRaise::HasEnded(*verdict))
            }
            State::Ended { .. } if self.has_lost_workspace() => Err(CannotRaise::WorkspaceGone),
            _ if self.may_be_raised() => Ok(()),
            _ => Err(CannotRaise::IsEnding),
        }
    }

    /// A run that a shared budget has ended needs no higher limits of its own: it goes on once the budget has room.
    fn refuse_resume_after_budget(&self) -> Result<(), CannotRaise> {
        if !self.was_ended_by_budget() {
            return Err(CannotRaise::Nothing);
        }
        if self.is_reserved(Limit::Budget) {
            Err(CannotRaise::Reserved(Limit::Budget))
        } else {
            Ok(())
        }
    }

    /// True if a budget that it shares with other runs has ended it.
    pub fn was_ended_by_budget(&self) -> bool {
        matches!(self.state, State::Ended { verdict: Verdict::Exhausted })
            && self.why.reason_code == ReasonCode::Budget
    }

    /// An exhausted run has to have room for one more attempt.
    fn refuse_spent(&self, limits: &Limits) -> Result<(), CannotRaise> {
        if !self.has_ended() {
            return Ok(());
        }
        let spent = self.spent(limits).into_iter().next();
        spent.map_or(Ok(()), |(limit, used, max)| Err(CannotRaise::StillSpent { limit, used, max }))
    }

    /// True while its limits can be raised: it goes on, or was exhausted and can go on where it was.
    pub(crate) fn may_be_raised(&self) -> bool {
        match &self.state {
            State::Ended { verdict } => {
                *verdict == Verdict::Exhausted
                    && self.ended_at.is_some()
                    && !self.has_lost_workspace()
            }
            State::Finishing { .. } => false,
            State::Queued
            | State::Preparing
            | State::Running
            | State::Waiting { .. }
            | State::Verifying
            | State::Blocked { .. } => self.stop.is_none() && self.limit.is_none(),
        }
    }

    /// True between the order that opens an exhausted run again and its next state.
    pub(crate) fn is_reopened(&self) -> bool {
        matches!(self.state, State::Ended { verdict: Verdict::Exhausted })
            && self.ended_at.is_none()
            && self.limit.is_none()
    }

    fn has_lost_workspace(&self) -> bool {
        matches!(self.removal, Removal::Asked | Removal::Removed)
            || self.preparation.workspace == WorkspaceState::Discarded
    }
}

/// In millionths of a dollar.
const CENT: u64 = 10_000;

/// The largest value of a limit: nothing that is asked for is cut down to it.
fn most_of(limit: Limit) -> u64 {
    match limit {
        Limit::MaxTurns => u32::MAX.into(),
        Limit::RunTimeout
        | Limit::TurnTimeout
        | Limit::StallWindow
        | Limit::MaxTokens
        | Limit::MaxCost
        | Limit::Budget => i64::MAX.cast_unsigned(),
    }
}

impl Limits {
    /// One of the ceilings that a run has for itself, in its own unit.
    pub fn of(&self, limit: Limit) -> Option<u64> {
        match limit {
            Limit::RunTimeout => self.run_timeout_ms,
            Limit::TurnTimeout => self.turn_timeout_ms,
            Limit::StallWindow => self.stall_window_ms,
            Limit::MaxTurns => self.max_turns.map(u64::from),
            Limit::MaxTokens => self.max_tokens,
            Limit::MaxCost => self.max_cost_usd_micros,
            Limit::Budget => None,
        }
    }

    fn set(&mut self, limit: Limit, to: u64) {
        match limit {
            Limit::RunTimeout => self.run_timeout_ms = Some(to),
            Limit::TurnTimeout => self.turn_timeout_ms = Some(to),
            Limit::StallWindow => self.stall_window_ms = Some(to),
            Limit::MaxTurns => self.max_turns = Some(u32::try_from(to).unwrap_or(u32::MAX)),
            Limit::MaxTokens => self.max_tokens = Some(to),
            Limit::MaxCost => self.max_cost_usd_micros = Some(to),
            Limit::Budget => {}
        }
    }

    /// True if none of them is lower than the other's.
    pub(crate) fn cover(&self, other: &Self) -> bool {
        let limits = [
            Limit::RunTimeout,
            Limit::TurnTimeout,
            Limit::StallWindow,
            Limit::MaxTurns,
            Limit::MaxTokens,
            Limit::MaxCost,
        ];
        limits.into_iter().all(|limit| match (self.of(limit), other.of(limit)) {
            (Some(ours), Some(theirs)) => ours >= theirs,
            (None, _) => true,
            (Some(_), None) => false,
        })
    }
}
