//! Triggers and deliveries, in memory.

use std::collections::BTreeMap;

use outlast_engine::{RunId, Time};

use super::{Memory, Shelf};
use crate::triggers::{Changed, Delivery, Settlement, Tally, Trigger, TriggerChange, Triggers};
use crate::{Error, rules};

/// A trigger, and what has come to it in the order in which it came.
#[derive(Debug)]
pub(super) struct Known {
    trigger: Trigger,
    deliveries: Vec<(Delivery, Option<Settlement>)>,
}

pub(super) type Table = BTreeMap<String, Known>;

impl Triggers for Memory {
    fn change_trigger(&self, change: TriggerChange, epoch: u64, done: Changed) {
        let answer = self.shelf().change_trigger(change, epoch);
        done(answer);
    }

    fn triggers(&self) -> Result<Vec<Trigger>, Error> {
        Ok(self.shelf().triggers.values().map(|known| known.trigger.clone()).collect())
    }

    fn deliveries(&self, trigger: &str, most: usize) -> Result<Vec<Delivery>, Error> {
        let shelf = self.shelf();
        let all = shelf.triggers.get(trigger).into_iter().flat_map(|known| &known.deliveries);
        let waiting = all.filter(|(_, settled)| settled.is_none());
        Ok(waiting.take(most).map(|(delivery, _)| delivery.clone()).collect())
    }

    fn is_known(&self, trigger: &str, id: &str) -> Result<bool, Error> {
        let shelf = self.shelf();
        Ok(shelf.triggers.get(trigger).is_some_and(|known| known.find(id).is_some()))
    }

    fn tally(&self, trigger: &str) -> Result<Tally, Error> {
        Ok(self.shelf().triggers.get(trigger).map(Known::tally).unwrap_or_default())
    }

    fn run_of_key(&self, key: &str) -> Result<Option<RunId>, Error> {
        Ok(self.shelf().holder(|row| row.key.as_deref() == Some(key)))
    }

    fn open_runs_of(&self, trigger: &str) -> Result<u64, Error> {
        let shelf = self.shelf();
        let is_its =
            |row: &&outlast_engine::Row| row.is_open && row.trigger.as_deref() == Some(trigger);
        Ok(u64::try_from(shelf.rows().filter(is_its).count()).unwrap_or(u64::MAX))
    }
}

impl Shelf {
    fn change_trigger(&mut self, change: TriggerChange, epoch: u64) -> Result<u64, Error> {
        rules::check_epoch(epoch, self.epoch)?;
        rules::check_trigger(&change, self.triggers.contains_key(change.trigger()))?;
        let name = change.trigger().to_owned();
        match change {
            TriggerChange::Add(trigger) => {
                self.triggers.insert(name, Known { trigger, deliveries: Vec::new() });
            }
            TriggerChange::Remove { .. } => drop(self.triggers.remove(&name)),
            other => {
                let known = self.triggers.get_mut(&name).expect("the rules have looked");
                return Ok(known.change_trigger(other));
            }
        }
        Ok(0)
    }
}

impl Known {
    fn change_trigger(&mut self, change: TriggerChange) -> u64 {
        match change {
            TriggerChange::Add(_) | TriggerChange::Remove { .. } => 0,
            TriggerChange::Update { spec, state, paused, .. } => {
                let trigger = &mut self.trigger;
                trigger.spec = spec.unwrap_or_else(|| trigger.spec.clone());
                trigger.state = state.unwrap_or_else(|| trigger.state.clone());
                trigger.paused = paused.unwrap_or(trigger.paused);
                0
            }
            TriggerChange::Keep { deliveries, state, .. } => {
                self.trigger.state = state.unwrap_or_else(|| self.trigger.state.clone());
                let before = self.deliveries.len();
                for delivery in deliveries {
                    if self.find(&delivery.id).is_none() {
                        self.deliveries.push((delivery, None));
                    }
                }
                u64::try_from(self.deliveries.len() - before).unwrap_or(u64::MAX)
            }
            TriggerChange::Settle { id, settled, .. } => {
                let found = self.deliveries.iter_mut().find(|(delivery, _)| delivery.id == id);
                if let Some((_, state)) = found {
                    state.get_or_insert(settled);
                }
                0
            }
            TriggerChange::Forget { but, .. } => {
                let settled = self.deliveries.iter().filter(|(_, state)| state.is_some()).count();
                let mut over = settled.saturating_sub(usize::try_from(but).unwrap_or(usize::MAX));
                self.deliveries.retain(|(_, state)| {
                    let goes = state.is_some() && over > 0;
                    over -= usize::from(goes);
                    !goes
                });
                0
            }
        }
    }

    fn find(&self, id: &str) -> Option<&Delivery> {
        self.deliveries.iter().map(|(delivery, _)| delivery).find(|delivery| delivery.id == id)
    }

    fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for (delivery, settled) in &self.deliveries {
            match settled {
                None => tally.waiting += 1,
                Some(Settlement::Made { run }) => {
                    tally.made += 1;
                    let last: (Time, RunId) = (delivery.at, run.clone());
                    tally.last_made = Some(last);
                }
                Some(Settlement::Skipped { .. }) => tally.skipped += 1,
                Some(Settlement::Refused { why }) => {
                    tally.refused += 1;
                    tally.last_refused = Some(why.clone());
                }
            }
        }
        tally
    }
}
