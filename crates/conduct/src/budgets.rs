//! Budgets that runs share, and how much of each is left.
//!
//! The sums are those of the ledger, kept in memory so that starting a turn reads nothing. A live attempt reserves
//! its share of its run's own ceilings. So many runs that start at once do not each exceed what is left: together
//! they exceed it by one turn. A run without a ceiling of its own reserves nothing, and a plain command that reports
//! nothing is not held back by any budget.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use outlast_engine::{Budget, Exceeded, Nearing, Run, RunId, RunSpec, Time};
use outlast_store::{Account, Amount, Entry, Error, Ledger, Used, begin_of, slot};
use outlast_workflow::{Period, SharedBudget};

/// Says when days begin and end in a time zone; `None` is the zone of the machine.
pub trait Calendar: Send + Sync {
    fn day(&self, tz: Option<&str>, at: Time) -> Day;
}

/// One day of a time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Day {
    pub begins: Time,
    pub ends: Time,
    /// The zone, as it is named to people: `Europe/Berlin`, `UTC`.
    pub zone: String,
}

/// The days of UTC, whatever zone is asked for.
pub struct Utc;

impl Calendar for Utc {
    fn day(&self, _tz: Option<&str>, at: Time) -> Day {
        const MS_A_DAY: u64 = 24 * 60 * 60 * 1000;
        let begins = Time(at.0 / MS_A_DAY * MS_A_DAY);
        Day { begins, ends: begins.plus_ms(MS_A_DAY), zone: "UTC".to_owned() }
    }
}

pub struct Budgets {
    calendar: Arc<dyn Calendar>,
    table: Mutex<Table>,
}

impl Default for Budgets {
    fn default() -> Self {
        Self::by(Arc::new(Utc))
    }
}

#[derive(Default)]
struct Table {
    near_percent: u32,
    kept: Vec<Kept>,
    /// What live attempts may still use up, by run.
    reserved: BTreeMap<RunId, Reserve>,
    /// Runs that rest until there is room.
    waiting: BTreeMap<RunId, BTreeMap<String, String>>,
}

struct Kept {
    rule: SharedBudget,
    /// The day that the sum is of; `None` for a budget that is for good.
    day: Option<Day>,
    used: Used,
}

struct Reserve {
    labels: BTreeMap<String, String>,
    amount: Amount,
}

/// A budget as it stands.
pub struct BudgetStatus {
    pub rule: SharedBudget,
    pub used: Used,
    pub reserved: Amount,
    /// Of a budget that begins anew each day.
    pub day: Option<Day>,
    /// How many runs rest until there is room in it.
    pub waiting: usize,
}

impl BudgetStatus {
    /// What is left of it: 1 is all, 0 is nothing.
    pub fn left(&self) -> f64 {
        1.0 - self.share(self.used.amount)
    }

    /// How much of it is held for attempts that did not report: 1 is all.
    pub fn unreported(&self) -> f64 {
        self.share(self.used.reserved)
    }

    /// The larger part, of the tokens or of the money.
    #[expect(clippy::cast_precision_loss, reason = "a share that people look at")]
    fn share(&self, amount: Amount) -> f64 {
        let of = |used: u64, most: Option<u64>| {
            most.map_or(0.0, |most| (used as f64 / most.max(1) as f64).min(1.0))
        };
        let tokens = of(amount.tokens, self.rule.max_tokens);
        tokens.max(of(amount.cost_usd_micros, self.rule.max_cost_usd_micros))
    }

    /// True if what was used is as much as there is.
    pub fn is_spent(&self) -> bool {
        is_spent(&self.rule, self.used.amount)
    }

    /// True if nothing is left beside what running turns may still take.
    pub fn is_full(&self) -> bool {
        is_spent(&self.rule, self.used.amount.plus(self.reserved))
    }

    pub fn resets_at(&self) -> Option<Time> {
        self.day.as_ref().map(|day| day.ends)
    }
}

impl Budgets {
    /// Budgets whose days are those of this calendar.
    pub fn by(calendar: Arc<dyn Calendar>) -> Self {
        Self { calendar, table: Mutex::default() }
    }

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
        table.kept = self.load(rules, now, ledger)?;
        Ok(table.all())
    }

    /// Reads the sums again: an append was made whose answer got lost.
    pub fn reload(&self, now: Time, ledger: &(impl Ledger + ?Sized)) -> Result<(), Error> {
        let mut table = self.lock();
        let rules: Vec<SharedBudget> = table.kept.iter().map(|kept| kept.rule.clone()).collect();
        table.kept = self.load(&rules, now, ledger)?;
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
        let is_counted = match run {
            Some(run) => run.counts_in_budgets() || !more.is_nothing(),
            None => spec.unreported().is_reserved(),
        };
        let mut table = self.lock();
        if table.kept.is_empty() || !is_counted {
            return Budget::Room;
        }
        self.turn_page(&mut table, now);
        let mine = table.kept.iter().filter(|kept| kept.rule.covers(&spec.labels));
        let spent = mine
            .filter_map(|kept| kept.spent(more, table.reserved_for(&kept.rule, id)))
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
        let counts = mine.filter(|kept| kept.counts(spent));
        counts.filter_map(|kept| kept.nearing(spent.used.amount, table.near_percent)).collect()
    }

    /// Notes what a run has come to, and what it has used up by that; says who has to look again.
    pub fn note(&self, run: &Run, spent: Entry) -> Vec<RunId> {
        let mut table = self.lock();
        if table.kept.is_empty() {
            return Vec::new();
        }
        let (tokens, cost_usd_micros) = run.reserves();
        let labels = &run.spec.labels;
        let freed = match run.live().filter(|_| run.counts_in_budgets()) {
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
        let mut wake = self.charge(&mut table, labels, spent);
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
        self.turn_page(&mut table, now);
        let nobody = RunId(String::new());
        let of = |kept: &Kept| {
            let reserved = table.reserved_for(&kept.rule, &nobody);
            let is_full = is_spent(&kept.rule, kept.used.amount.plus(reserved));
            let rests = |labels: &&BTreeMap<String, String>| is_full && kept.rule.covers(labels);
            BudgetStatus {
                rule: kept.rule.clone(),
                used: kept.used,
                reserved,
                day: kept.day.clone(),
                waiting: table.waiting.values().filter(rests).count(),
            }
        };
        table.kept.iter().map(of).collect()
    }

    fn load(
        &self,
        rules: &[SharedBudget],
        now: Time,
        ledger: &(impl Ledger + ?Sized),
    ) -> Result<Vec<Kept>, Error> {
        // One question to the ledger for each time from which some budget counts.
        let mut accounts: BTreeMap<u64, Vec<Account>> = BTreeMap::new();
        let mut kept = Vec::new();
        for rule in rules {
            let day = self.day_of(rule, now);
            let since = day.as_ref().map_or(0, |day| slot(day.begins));
            if let std::collections::btree_map::Entry::Vacant(vacant) = accounts.entry(since) {
                vacant.insert(ledger.accounts(since)?);
            }
            let mine = accounts[&since].iter().filter(|account| rule.covers(&account.labels));
            let used = mine.fold(Used::default(), |sum, account| sum.plus(account.used));
            kept.push(Kept { rule: rule.clone(), day, used });
        }
        Ok(kept)
    }

    fn day_of(&self, rule: &SharedBudget, at: Time) -> Option<Day> {
        match rule.per {
            Period::Day => Some(self.calendar.day(rule.tz.as_deref(), at)),
            Period::Total => None,
        }
    }

    /// A new day begins with nothing used.
    fn turn_page(&self, table: &mut Table, now: Time) {
        for kept in &mut table.kept {
            if kept.day.as_ref().is_some_and(|day| now >= day.ends) {
                kept.day = self.day_of(&kept.rule, now);
                kept.used = Used::default();
            }
        }
    }

    /// Whom a budget that is spent by this concerns.
    fn charge(
        &self,
        table: &mut Table,
        labels: &BTreeMap<String, String>,
        spent: Entry,
    ) -> Vec<RunId> {
        if spent.used.is_nothing() {
            return Vec::new();
        }
        self.turn_page(table, begin_of(spent.slot));
        let mut is_newly_spent = false;
        for kept in table.kept.iter_mut().filter(|kept| kept.rule.covers(labels)) {
            if !kept.counts(spent) {
                continue;
            }
            let before = kept.used;
            kept.used = before.plus(spent.used);
            is_newly_spent |= kept.is_spent() && !is_spent(&kept.rule, before.amount);
        }
        if is_newly_spent { table.reserved.keys().cloned().collect() } else { Vec::new() }
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // Nothing panics while it holds this.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
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
                !is_spent(&kept.rule, kept.used.amount.plus(self.reserved_for(&kept.rule, id)))
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
        is_spent(&self.rule, self.used.amount)
    }

    /// True unless it was spent on a day that is over.
    fn counts(&self, spent: Entry) -> bool {
        self.day.as_ref().is_none_or(|day| spent.slot >= slot(day.begins))
    }

    /// What it says to a run, if there is nothing left for it. What is only reserved may come back.
    fn spent(&self, more: Amount, reserved: Amount) -> Option<(Exceeded, Budget)> {
        let used = self.used.amount.plus(more);
        let then = if is_spent(&self.rule, used) { self.rule.on_exceed } else { Exceeded::Wait };
        let is_full = is_spent(&self.rule, used.plus(reserved));
        let until = self.day.as_ref().map(|day| day.ends);
        let name = self.rule.name.clone();
        is_full.then_some((then, Budget::Spent { name, until, then }))
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
        let before = self.used.amount;
        let (used, max) = is_near(before.plus(more)).filter(|_| is_near(before).is_none())?;
        Some(Nearing { name: self.rule.name.clone(), used, max })
    }
}

fn is_spent(rule: &SharedBudget, used: Amount) -> bool {
    rule.max_tokens.is_some_and(|most| used.tokens >= most)
        || rule.max_cost_usd_micros.is_some_and(|most| used.cost_usd_micros >= most)
}

#[cfg(test)]
mod tests {
    use outlast_engine::{Agent, BootId, Context, Limits, Unreported, create};
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
            tz: None,
        }
    }

    /// When a day of UTC begins.
    fn midnight(day: u64) -> Time {
        Time(day * 86_400_000)
    }

    /// A run whose turns reserve a hundred tokens each, and whose first is alive.
    fn run(id: &str) -> Run {
        let agent = Agent { kind: "exec".to_owned(), command: vec!["true".to_owned()] };
        let limits = Limits { max_turns: Some(10), max_tokens: Some(1000), ..Limits::default() };
        let unreported = Some(Unreported::Reserved);
        let spec = RunSpec { limits, unreported, ..RunSpec::command(agent, "/".to_owned()) };
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
        let amount = Amount { tokens, cost_usd_micros: 0 };
        Entry { slot: slot(midnight(day)), used: Used { amount, ..Used::default() } }
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
        let until = Some(midnight(1));
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
        assert_eq!(room(&budgets, &run, midnight(1)), Budget::Room);
        assert_eq!(budgets.note(&run, tokens(100, 0)), [], "of the day before");
        assert_eq!(room(&budgets, &run, midnight(1)), Budget::Room);
    }

    #[test]
    fn a_total_is_spent_for_good_until_the_rule_is_another() {
        let (budgets, ledger) = (budgets(rule(100, Period::Total, Exceeded::End)), Memory::new());
        let run = run("aaaa");
        let _noted = budgets.note(&run, tokens(100, 0));
        let spent = room(&budgets, &run, midnight(400));
        assert!(matches!(spent, Budget::Spent { then: Exceeded::End, until: None, .. }));
        let raised = [rule(1000, Period::Total, Exceeded::End)];
        let woken = budgets.follow(&raised, 80, NOON, &ledger).expect("memory can be read");
        assert_eq!(woken, std::slice::from_ref(&run.id));
        assert_eq!(budgets.status(NOON)[0].used, Used::default(), "read from the ledger");
    }

    /// A zone whose days begin three hours before those of UTC.
    struct East;

    impl Calendar for East {
        fn day(&self, tz: Option<&str>, at: Time) -> Day {
            let three_hours_ms = 3 * 3_600_000;
            let ahead = Utc.day(None, at.plus_ms(three_hours_ms));
            let back = |at: Time| Time(at.0 - three_hours_ms);
            let zone = tz.unwrap_or("here").to_owned();
            Day { begins: back(ahead.begins), ends: back(ahead.ends), zone }
        }
    }

    #[test]
    fn a_day_ends_at_the_midnight_of_its_zone() {
        let budgets = Budgets::by(Arc::new(East));
        let day =
            SharedBudget { tz: Some("East".to_owned()), ..rule(100, Period::Day, Exceeded::Wait) };
        let noon = midnight(7).plus_ms(12 * 3_600_000);
        let ledger = Memory::new();
        assert_eq!(budgets.follow(&[day], 80, noon, &ledger).expect("memory can be read"), []);
        let run = run("aaaa");
        let at = |at: Time| Entry { slot: slot(at), ..tokens(100, 0) };
        assert_eq!(budgets.note(&run, at(midnight(7))), std::slice::from_ref(&run.id));
        let until = Time(midnight(8).0 - 3 * 3_600_000);
        let spent =
            Budget::Spent { name: "day".to_owned(), until: Some(until), then: Exceeded::Wait };
        assert_eq!(room(&budgets, &run, noon), spent);
        assert_eq!(
            room(&budgets, &run, until),
            Budget::Room,
            "while it is still the same day in UTC"
        );
        let status = &budgets.status(until)[0];
        assert_eq!(status.day.as_ref().map(|day| day.zone.as_str()), Some("East"));
    }

    #[test]
    fn a_plain_command_is_neither_held_back_nor_reserved_for_until_it_reports() {
        let budgets = budgets(rule(100, Period::Day, Exceeded::Wait));
        let spender = run("aaaa");
        let _woken = budgets.note(&spender, tokens(100, 0));
        let mut plain = run("bbbb");
        let spec = RunSpec { unreported: Some(Unreported::Nothing), ..(*plain.spec).clone() };
        plain.spec = Arc::new(spec);
        assert_eq!(room(&budgets, &plain, NOON), Budget::Room);
        let asked = |more| budgets.reserve(&plain.id, &plain.spec, Some(&plain), more, NOON);
        assert_eq!(asked(Amount::default()), Budget::Room);
        assert_eq!(budgets.status(NOON)[0].reserved, spender_reserve(&spender));
        let reported = Amount { tokens: 1, cost_usd_micros: 0 };
        assert!(matches!(asked(reported), Budget::Spent { .. }), "it counts once it reports");
    }

    fn spender_reserve(run: &Run) -> Amount {
        let (tokens, cost_usd_micros) = run.reserves();
        Amount { tokens, cost_usd_micros }
    }
}
