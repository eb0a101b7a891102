//! What an attempt has used up, by the tables of `usage`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::table::{Scope, Usage};
use crate::adapter::Turn;
use crate::adapter::event::Spent;
use crate::adapter::json::micros_of;

pub(super) struct Ledger {
    /// What the conversation had used up before; `None` if that is not known.
    base: Option<Spent>,
    /// By the place of its table: what each has counted.
    counted: BTreeMap<usize, Spent>,
    /// By the place of the table and the id of the message.
    messages: BTreeMap<(usize, String), Spent>,
}

impl Ledger {
    pub(super) fn new(turn: &Turn) -> Self {
        let fresh = turn.session.is_none().then(Spent::default);
        let base = turn.spent_before.or(fresh);
        Self { base, counted: BTreeMap::new(), messages: BTreeMap::new() }
    }

    /// Counts a line that the table at this place is about.
    pub(super) fn count(&mut self, at: usize, usage: &Usage, line: &Value) {
        let read = read(usage, line);
        match (usage.scope, usage.id.text(line)) {
            (Scope::Message, Some(id)) => {
                self.messages.insert((at, id), read);
            }
            (Scope::Message, None) => {
                let before = self.counted.get(&at).copied().unwrap_or_default();
                self.counted.insert(at, before.and(&read));
            }
            (Scope::Turn, _) => {
                self.counted.insert(at, read);
            }
            // Without a base nothing is known of this attempt.
            (Scope::Session, _) => {
                self.counted.extend(self.base.map(|base| (at, read.beyond(&base))));
            }
        }
    }

    /// What is known by now. A floor counts where nothing better was said.
    pub(super) fn total(&self, usage: &[Usage], is_all: bool) -> Spent {
        let sum = |is_floor: bool| {
            let is_of = |at: &usize| usage.get(*at).is_some_and(|it| it.floor == is_floor);
            let counted = self.counted.iter().filter(|(at, _)| is_of(at)).map(|(_, spent)| spent);
            let messages = self.messages.iter().filter(|((at, _), _)| is_of(at));
            let all = counted.chain(messages.map(|(_, spent)| spent));
            all.fold(Spent::default(), |sum, spent| sum.and(spent))
        };
        let (exact, floor) = (sum(false), sum(true));
        let total = Spent {
            input_tokens: exact.input_tokens.or(floor.input_tokens),
            output_tokens: exact.output_tokens.or(floor.output_tokens),
            cached_tokens: exact.cached_tokens.or(floor.cached_tokens),
            cost_usd_micros: exact.cost_usd_micros.or(floor.cost_usd_micros),
            is_floor: false,
        };
        Spent { is_floor: !is_all || total != exact, ..total }
    }
}

fn read(usage: &Usage, line: &Value) -> Spent {
    let add = |found: Vec<&Value>, of: fn(&Value) -> Option<u64>| {
        found.into_iter().filter_map(of).reduce(u64::saturating_add)
    };
    let input = add(usage.input.all(line), Value::as_u64);
    let cached = add(usage.cached.all(line), Value::as_u64);
    let within = cached.filter(|_| usage.input_includes_cached).unwrap_or(0);
    Spent {
        input_tokens: input.map(|input| input.saturating_sub(within)),
        output_tokens: add(usage.output.all(line), Value::as_u64),
        cached_tokens: cached,
        cost_usd_micros: add(usage.cost.all(line), micros_of),
        is_floor: false,
    }
}
