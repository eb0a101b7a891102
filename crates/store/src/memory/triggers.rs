//! Triggers and deliveries, in memory.

use std::collections::BTreeMap;
use std::ops::Bound;

use outlast_engine::{RunId, Time};

use super::{Memory, Shelf};
use crate::triggers::{Changed, Delivery, Settlement, Tally, Trigger, TriggerChange, Triggers};
use crate::{Error, rules};

/// A trigger, and what has come to it in the order in which it came.
#[derive(Debug)]
pub(super) struct Known {
    trigger: Trigger,
    deliveries: Vec<(Delivery, Option<Settlement>)>,
    /// When what was kept last left this mark.
    marks: BTreeMap<String, Time>,
}

pub(super) type Table = BTreeMap<String, Known>;

impl Triggers for Memory {
    fn change_trigger(&self, change: TriggerChange, epoch: u64, done: Changed) {
        let answer = self.shelf().change_trigger(change, epoch);
        done(answer);
    }

    fn triggers_page(&self, after: &str, most: usize) -> Result<Vec<(Trigger, u64)>, Error> {
        let shelf = self.shelf();
        let later = shelf.triggers.range::<str, _>((Bound::Excluded(after), Bound::Unbounded));
        let page =
            later.take(most).map(|(_, known)| (known.trigger.clone(), known.tally().waiting));
        Ok(page.collect())
    }

    fn trigger(&self, name: &str) -> Result<Option<Trigger>, Error> {
        Ok(self.shelf().triggers.get(name).map(|known| known.trigger.clone()))
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

    fn made_of(&self, trigger: &str, id: &str) -> Result<Option<RunId>, Error> {
        let shelf = self.shelf();
        let of = shelf.triggers.get(trigger).into_iter().flat_map(|known| &known.deliveries);
        let mut of = of.filter(|(delivery, _)| delivery.id == id);
        Ok(of.find_map(|(_, settled)| settled.as_ref()?.run().cloned()))
    }

    fn tallies(&self, first: &str, last: &str) -> Result<BTreeMap<String, Tally>, Error> {
        let shelf = self.shelf();
        let is_meant = |name: &str| (first..=last).contains(&name);
        let meant = shelf.triggers.iter().filter(|(name, _)| is_meant(name));
        let mut tallies: BTreeMap<String, Tally> =
            meant.map(|(name, known)| (name.clone(), known.tally())).collect();
        for row in shelf.rows().filter(|row| row.is_open) {
            if let Some(name) = row.trigger.as_deref().filter(|name| is_meant(name)) {
                tallies.entry(name.to_owned()).or_default().open += 1;
            }
        }
        Ok(tallies)
    }

    fn run_of_key(&self, key: &str) -> Result<Option<RunId>, Error> {
        Ok(self.shelf().holder(|row| row.key.as_deref() == Some(key)))
    }

    fn newest_run_of(&self, trigger: &str) -> Result<Option<(RunId, Option<String>)>, Error> {
        let shelf = self.shelf();
        let newest = shelf.rows().rfind(|row| row.trigger.as_deref() == Some(trigger));
        Ok(newest.map(|row| (row.id.clone(), row.name.clone())))
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
                self.triggers.insert(
                    name,
                    Known { trigger, deliveries: Vec::new(), marks: BTreeMap::new() },
                );
            }
            TriggerChange::Remove { .. } => drop(self.triggers.remove(&name)),
            TriggerChange::Noted { change, note, value } => {
                let new = self.change_trigger(*change, epoch)?;
                self.notes.insert(note, value);
                return Ok(new);
            }
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
            TriggerChange::Add(_) | TriggerChange::Remove { .. } | TriggerChange::Noted { .. } => 0,
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
            TriggerChange::KeepUnlessMarked { delivery, mark, within_ms, .. } => {
                let at = delivery.at;
                let is_marked =
                    self.marks.get(&mark).is_some_and(|last| at.ms_since(*last) < within_ms);
                if is_marked || self.find(&delivery.id).is_some() {
                    return 0;
                }
                self.deliveries.push((delivery, None));
                self.marks.insert(mark, at);
                1
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
                    tally.is_refusing = false;
                }
                Some(Settlement::Skipped { .. }) => tally.skipped += 1,
                Some(Settlement::Refused { why }) => {
                    tally.refused += 1;
                    tally.last_refused = Some((delivery.at, why.clone()));
                    tally.is_refusing = true;
                }
            }
        }
        tally
    }
}
