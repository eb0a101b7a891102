//! The conserved budget over a whole journal: part of `check`.
//!
//! Counts reservations and charges again, from the events alone, and compares them with the run's pots after each event.

use std::collections::BTreeMap;

use crate::{Amounts, Channel, Event, Fact, Pot, Room, Run, RunId, Violation};

#[derive(Default)]
pub(crate) struct Audit {
    reserved: Amounts,
    charged: Amounts,
    /// What was given to the children that go on.
    granted: BTreeMap<RunId, Room>,
    /// The pots after the event before.
    before: BTreeMap<usize, Pot>,
}

impl Audit {
    /// What is wrong with the pots of a run after this event.
    pub(crate) fn next(&mut self, run: &Run, event: &Event) -> Vec<Violation> {
        if matches!(event.fact, Fact::Forked { .. }) {
            // What was used before is charged to the run that it comes from.
            *self = Self::default();
        }
        let mut wrong: Vec<&'static str> = self.count(&event.fact).into_iter().collect();
        for (at, channel) in Channel::ALL.into_iter().enumerate() {
            let pot = run.pot(channel);
            if (pot.reserved, pot.charged) != (self.reserved.of(channel), self.charged.of(channel))
            {
                wrong.push("holds another reservation for its children than its journal says");
            }
            wrong.extend(unbalanced(&pot));
            if let Some(before) = self.before.insert(at, pot) {
                wrong.extend(changed(&before, &pot, channel, &event.fact));
            }
        }
        wrong.into_iter().map(Violation::Run).collect()
    }

    fn count(&mut self, fact: &Fact) -> Option<&'static str> {
        match fact {
            Fact::ChildSpawned { child, granted, .. } => {
                self.reserved = self.reserved.each(granted.reserved(), u64::saturating_add);
                self.granted.insert(child.clone(), *granted);
                None
            }
            Fact::ChildSettled { child, charged, spend_unknown, .. } => {
                let reserved = self.granted.remove(child)?.reserved();
                self.reserved = self.reserved.each(reserved, u64::saturating_sub);
                self.charged = self.charged.each(*charged, u64::saturating_add);
                let is_less = charged.tokens < reserved.tokens
                    || charged.cost_usd_micros < reserved.cost_usd_micros;
                (*spend_unknown && is_less)
                    .then_some("charged less than was reserved for what is not known")
            }
            _ => None,
        }
    }
}

/// `total + over = free + reserved + committed`, and nothing is free in a pot that is overdrawn.
fn unbalanced(pot: &Pot) -> Option<&'static str> {
    let (total, free) = (u128::from(pot.total?), u128::from(pot.free()?));
    let taken = [pot.own, pot.reserved, pot.charged].map(u128::from).into_iter().sum::<u128>();
    let over = u128::from(pot.over());
    let is_sound = total + over == free + taken && (over == 0 || free == 0);
    (!is_sound).then_some("has a budget that does not add up")
}

fn changed(before: &Pot, after: &Pot, channel: Channel, fact: &Fact) -> Option<&'static str> {
    if before.total != after.total && !matches!(fact, Fact::LimitsRaised { .. }) {
        return Some("has another budget than before, and no person gave it one");
    }
    if after.committed() < before.committed() {
        return Some("took back what was used");
    }
    // A child that was found has what it was given, whether or not there was so much.
    if let Fact::ChildSpawned { granted, digest: Some(_), .. } = fact
        && let Some(free) = before.free()
    {
        let is_bounded = match channel {
            Channel::Turns => granted.turns.is_some(),
            Channel::Tokens => granted.tokens.is_some(),
            Channel::Money => granted.cost_usd_micros.is_some(),
            Channel::Runs => granted.runs.is_some(),
        };
        if !is_bounded || granted.reserved().of(channel) > free {
            return Some("gave a child more than it had");
        }
    }
    None
}
