//! Budgets that runs share, and how much of each is left.
//!
//! The sums are those of the ledger, kept in memory so that starting a turn reads nothing. A live attempt reserves
//! its share of its run's own ceilings. So many runs that start at once do not each exceed what is left: together
//! they exceed it by one turn. A run without a ceiling of its own reserves nothing.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use outlast_engine::{Budget, Exceeded, Nearing, Run, RunId, RunSpec, Time};
use outlast_store::{Account, Amount, Entry, Error, Ledger, begin_of, day};
use outlast_workflow::{Period, SharedBudget};

#[derive(Default)]
pub struct Budgets {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    near_percent: u32,
    /// The day that the sums of a day are of.
    day: u64,
    kept: Vec<Kept>,
    /// What live attempts may still use up, by run.
    reserved: BTreeMap<RunId, Reserve>,
    /// Runs that rest until there is room.
    waiting: BTreeMap<RunId, BTreeMap<String, String>>,
}

struct Kept {
    rule: SharedBudget,
    used: Amount,
}

struct Reserve {
    labels: BTreeMap<String, String>,
    amount: Amount,
}

/// A budget as it stands.
pub struct BudgetStatus {
    pub rule: SharedBudget,
    pub used: Amount,
    pub reserved: Amount,
    pub resets_at: Option<Time>,
}

impl BudgetStatus {
    /// What is left of it: 1 is all, 0 is nothing.
    #[expect(clippy::cast_precision_loss, reason = "a share that people look at")]
    pub fn left(&self) -> f64 {
        let share = |used: u64, most: Option<u64>| {
            most.map_or(1.0, |most| 1.0 - (used as f64 / most.max(1) as f64).min(1.0))
        };
        let tokens = share(self.used.tokens, self.rule.max_tokens);
        tokens.min(share(self.used.cost_usd_micros, self.rule.max_cost_usd_micros))
    }
}

impl Budgets {
    /// Follows the rules of a config; says which runs to ask if they have changed. The ledger is read only then.
    pub fn follow(
        &self,
        rules: &[SharedBudget],
        near_percent: u32,
        now: Time,
        ledger: &(impl Ledger + ?Sized),
    ) -> Result<Vec<RunId>, Error> {
        let mut table = self.lock();
        table.near_percent = near_percent;
        if table.kept.iter().map(|kept| &kept.rule).eq(rules) {
            return Ok(Vec::new());
        }
        table.kept = load(rules, now, ledger)?;
        table.day = day(now);
        Ok(table.all())
    }

    /// Reads the sums again: an append was made whose answer got lost.
    pub fn reload(&self, now: Time, ledger: &(impl Ledger + ?Sized)) -> Result<(), Error> {
        let mut table = self.lock();
        let rules: Vec<SharedBudget> = table.kept.iter().map(|kept| kept.rule.clone()).collect();
        table.kept = load(&rules, now, ledger)?;
        table.day = day(now);
        Ok(())
    }

    /// Whether there is room for one more turn of a run, once it has used up `more`. If there is, and nothing
    /// of it is alive, its share is reserved until it is noted what became of it.
    pub fn reserve(
        &self,
        id: &RunId,
        spec: &RunSpec,
        run: Option<&Run>,
        more: Amount,
        now: Time,
    ) -> Budget {
        let mut table = self.lock();
        if table.kept.is_empty() {
            return Budget::Room;
        }
        table.turn_page(now);
        let mine = table.kept.iter().filter(|kept| kept.rule.covers(&spec.labels));
        let spent = mine
            .filter_map(|kept| kept.spent(more, table.reserved_for(&kept.rule, id), now))
            .min_by_key(|(then, _)| *then == Exceeded::Wait);
        match spent {
            Some((_, budget)) => budget,
            None => {
                if run.is_none_or(|run| run.live().is_none()) {
                    let (tokens, cost_usd_micros) = spec.turn_share();
                    let amount = Amount { tokens, cost_usd_micros };
                    let labels = spec.labels.clone();
                    table.reserved.insert(id.clone(), Reserve { labels, amount });
                }
                Budget::Room
            }
        }
    }

    /// The budgets that a run brings near their end when it has used up so much more.
    pub fn nearing(&self, spec: &RunSpec, spent: Entry) -> Vec<Nearing> {
        let table = self.lock();
        let mine = table.kept.iter().filter(|kept| kept.rule.covers(&spec.labels));
        let counts = mine.filter(|kept| kept.rule.per == Period::Total || spent.day >= table.day);
        counts.filter_map(|kept| kept.nearing(spent.amount, table.near_percent)).collect()
    }

    /// Notes what a run has come to, and what it has used up by that; says who has to look again.
    pub fn note(&self, run: &Run, spent: Entry) -> Vec<RunId> {
        let mut table = self.lock();
        if table.kept.is_empty() {
            return Vec::new();
        }
        let (tokens, cost_usd_micros) = run.reserves();
        let labels = &run.spec.labels;
        let freed = match run.live() {
            Some(_) => {
                let amount = Amount { tokens, cost_usd_micros };
                let now = Reserve { labels: labels.clone(), amount };
                let before = table.reserved.insert(run.id.clone(), now);
                before.is_some_and(|before| before.amount != amount)
            }
            None => table.reserved.remove(&run.id).is_some(),
        };
        if run.waits_for_budget() {
            table.waiting.insert(run.id.clone(), labels.clone());
        } else {
            table.waiting.remove(&run.id);
        }
        let mut wake = table.charge(labels, spent);
        if freed {
            wake.extend(table.who_may_go_on());
        }
        // One that rests has just been told that it has to.
        wake.retain(|id| *id != run.id || run.live().is_some());
        wake
    }

    /// Whom to ask after a run that is gone.
    pub fn forget(&self, id: &RunId) -> Vec<RunId> {
        let mut table = self.lock();
        table.waiting.remove(id);
        match table.reserved.remove(id) {
            Some(_) => table.who_may_go_on(),
            None => Vec::new(),
        }
    }

    pub fn status(&self, now: Time) -> Vec<BudgetStatus> {
        let mut table = self.lock();
        table.turn_page(now);
        let of = |kept: &Kept| BudgetStatus {
            rule: kept.rule.clone(),
            used: kept.used,
            reserved: table.reserved_for(&kept.rule, &RunId(String::new())),
            resets_at: kept.resets_at(now),
        };
        table.kept.iter().map(of).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Nothing panics while it holds this.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn load(
    rules: &[SharedBudget],
    now: Time,
    ledger: &(impl Ledger + ?Sized),
) -> Result<Vec<Kept>, Error> {
    let is_any = |period: Period| rules.iter().any(|rule| rule.per == period);
    let accounts = |period: Period, since: u64| match is_any(period) {
        true => ledger.accounts(since),
        false => Ok(Vec::new()),
    };
    let (of_day, of_all) = (accounts(Period::Day, day(now))?, accounts(Period::Total, 0)?);
    let used = |rule: &SharedBudget| {
        let accounts: &[Account] = match rule.per {
            Period::Day => &of_day,
            Period::Total => &of_all,
        };
        let mine = accounts.iter().filter(|account| rule.covers(&account.labels));
        mine.fold(Amount::default(), |sum, account| sum.plus(account.amount))
    };
    Ok(rules.iter().map(|rule| Kept { rule: rule.clone(), used: used(rule) }).collect())
}

impl Table {
    /// A new day begins with nothing used.
    fn turn_page(&mut self, now: Time) {
        if day(now) <= self.day {
            return;
        }
        self.day = day(now);
        for kept in self.kept.iter_mut().filter(|kept| kept.rule.per == Period::Day) {
            kept.used = Amount::default();
        }
    }

    /// Whom a budget that is spent by this concerns.
    fn charge(
        &mut self,
        labels: &BTreeMap<String, String>,
        Entry { day, amount }: Entry,
    ) -> Vec<RunId> {
        if amount.is_nothing() {
            return Vec::new();
        }
        self.turn_page(begin_of(day));
        let today = self.day;
        let mut is_newly_spent = false;
        for kept in self.kept.iter_mut().filter(|kept| kept.rule.covers(labels)) {
            if kept.rule.per == Period::Day && day < today {
                continue;
            }
            let before = kept.used;
            kept.used = before.plus(amount);
            is_newly_spent |= kept.is_spent() && !is_spent(&kept.rule, before);
        }
        if is_newly_spent { self.reserved.keys().cloned().collect() } else { Vec::new() }
    }

    /// What live attempts other than this run's may still take of a budget.
    fn reserved_for(&self, rule: &SharedBudget, but: &RunId) -> Amount {
        self.reserved
            .iter()
            .filter(|(id, reserve)| *id != but && rule.covers(&reserve.labels))
            .fold(Amount::default(), |sum, (_, reserve)| sum.plus(reserve.amount))
    }

    fn who_may_go_on(&self) -> Vec<RunId> {
        let has_room = |id: &RunId, labels: &BTreeMap<String, String>| {
            self.kept.iter().filter(|kept| kept.rule.covers(labels)).all(|kept| {
                !is_spent(&kept.rule, kept.used.plus(self.reserved_for(&kept.rule, id)))
            })
        };
        let may = self.waiting.iter().filter(|(id, labels)| has_room(id, labels));
        may.map(|(id, _)| id.clone()).collect()
    }

    fn all(&self) -> Vec<RunId> {
        self.waiting.keys().chain(self.reserved.keys()).cloned().collect()
    }
}

impl Kept {
    fn is_spent(&self) -> bool {
        is_spent(&self.rule, self.used)
    }

    /// What it says to a run, if there is nothing left for it. What is only reserved may come back.
    fn spent(&self, more: Amount, reserved: Amount, now: Time) -> Option<(Exceeded, Budget)> {
        let used = self.used.plus(more);
        let then = if is_spent(&self.rule, used) { self.rule.on_exceed } else { Exceeded::Wait };
        let is_full = is_spent(&self.rule, used.plus(reserved));
        let (name, until) = (self.rule.name.clone(), self.resets_at(now));
        is_full.then_some((then, Budget::Spent { name, until, then }))
    }

    fn resets_at(&self, now: Time) -> Option<Time> {
        match self.rule.per {
            Period::Day => Some(begin_of(day(now) + 1)),
            Period::Total => None,
        }
    }

    /// News once in each period: from below the mark to it or beyond it.
    fn nearing(&self, more: Amount, near_percent: u32) -> Option<Nearing> {
        let near = |used: u64, max: Option<u64>| {
            let is_near = |max: &u64| {
                near_percent > 0
                    && u128::from(used) * 100 >= u128::from(*max) * u128::from(near_percent)
            };
            max.filter(is_near).map(|max| (used, max))
        };
        let (tokens, cost) = (self.rule.max_tokens, self.rule.max_cost_usd_micros);
        let is_near = |of: Amount| near(of.tokens, tokens).or(near(of.cost_usd_micros, cost));
        let (used, max) = is_near(self.used.plus(more)).filter(|_| is_near(self.used).is_none())?;
        Some(Nearing { name: self.rule.name.clone(), used, max })
    }
}

fn is_spent(rule: &SharedBudget, used: Amount) -> bool {
    rule.max_tokens.is_some_and(|most| used.tokens >= most)
        || rule.max_cost_usd_micros.is_some_and(|most| used.cost_usd_micros >= most)
}

#[cfg(test)]
mod tests {
    use outlast_engine::{Agent, BootId, Context, Limits, create};
    use outlast_store::Memory;

    use super::*;

    const NOON: Time = Time(43_200_000);

    fn rule(max_tokens: u64, per: Period, on_exceed: Exceeded) -> SharedBudget {
        let (name, label) = ("day".to_owned(), None);
        SharedBudget {
            name,
            label,
            max_tokens: Some(max_tokens),
            max_cost_usd_micros: None,
            per,
            on_exceed,
        }
    }

    /// A run whose turns reserve a hundred tokens each, and whose first is alive.
    fn run(id: &str) -> Run {
        let agent = Agent { kind: "exec".to_owned(), command: vec!["true".to_owned()] };
        let limits = Limits { max_turns: Some(10), max_tokens: Some(1000), ..Limits::default() };
        let spec = RunSpec { limits, ..RunSpec::command(agent, "/".to_owned()) };
        let id = RunId(id.to_owned());
        let events = create(&id, spec, &Context::new(NOON, BootId("boot".to_owned())));
        Run::replay(&id, &events).expect("it is legal")
    }

    fn budgets(rule: SharedBudget) -> Budgets {
        let budgets = Budgets::default();
        let woken = budgets.follow(&[rule], 80, NOON, &Memory::new()).expect("memory can be read");
        assert_eq!(woken, []);
        budgets
    }

    fn tokens(tokens: u64, day: u64) -> Entry {
        Entry { day, amount: Amount { tokens, cost_usd_micros: 0 } }
    }

    fn room(budgets: &Budgets, run: &Run, now: Time) -> Budget {
        budgets.reserve(&run.id, &run.spec, None, Amount::default(), now)
    }

    #[test]
    fn runs_that_start_at_once_share_what_is_left() {
        let budgets = budgets(rule(250, Period::Day, Exceeded::End));
        let runs: Vec<Run> = ["aaaa", "bbbb", "cccc", "dddd"].map(run).into();
        let rooms: Vec<bool> =
            runs.iter().map(|run| room(&budgets, run, NOON) == Budget::Room).collect();
        assert_eq!(rooms, [true, true, true, false], "beyond it by one turn at the most");
        let until = Some(begin_of(1));
        let expected = Budget::Spent { name: "day".to_owned(), until, then: Exceeded::Wait };
        assert_eq!(room(&budgets, &runs[3], NOON), expected, "what is reserved may come back");
        let _woken = budgets.forget(&runs[0].id);
        let _woken = budgets.forget(&runs[1].id);
        assert_eq!(room(&budgets, &runs[3], NOON), Budget::Room);
    }

    #[test]
    fn what_is_spent_is_told_once_and_a_new_day_begins_with_nothing() {
        let budgets = budgets(rule(100, Period::Day, Exceeded::Wait));
        let run = run("aaaa");
        let near = |more| budgets.nearing(&run.spec, tokens(more, 0));
        assert_eq!((near(79).len(), budgets.note(&run, tokens(79, 0))), (0, Vec::new()));
        assert_eq!(near(1), [Nearing { name: "day".to_owned(), used: 80, max: 100 }]);
        assert_eq!(budgets.note(&run, tokens(1, 0)), []);
        assert_eq!(near(20), [], "that was said");
        assert_eq!(budgets.note(&run, tokens(20, 0)), std::slice::from_ref(&run.id));
        assert!(matches!(room(&budgets, &run, NOON), Budget::Spent { then: Exceeded::Wait, .. }));
        assert_eq!(room(&budgets, &run, begin_of(1)), Budget::Room);
        assert_eq!(budgets.note(&run, tokens(100, 0)), [], "of the day before");
        assert_eq!(room(&budgets, &run, begin_of(1)), Budget::Room);
    }

    #[test]
    fn a_total_is_spent_for_good_until_the_rule_is_another() {
        let (budgets, ledger) = (budgets(rule(100, Period::Total, Exceeded::End)), Memory::new());
        let run = run("aaaa");
        let _noted = budgets.note(&run, tokens(100, 0));
        let spent = room(&budgets, &run, begin_of(400));
        assert!(matches!(spent, Budget::Spent { then: Exceeded::End, until: None, .. }));
        let raised = [rule(1000, Period::Total, Exceeded::End)];
        let woken = budgets.follow(&raised, 80, NOON, &ledger).expect("memory can be read");
        assert_eq!(woken, std::slice::from_ref(&run.id));
        assert_eq!(budgets.status(NOON)[0].used, Amount::default(), "read from the ledger");
    }
}
