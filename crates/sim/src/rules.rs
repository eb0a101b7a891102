//! What the operator's config says in one seed: how many runs may work at once, and what they may use up together.

use outlast_engine::Exceeded;
use outlast_workflow::{Concurrency, Period, SharedBudget};

use crate::rng::Rng;

#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    pub(crate) slots: Concurrency,
    pub(crate) budgets: Vec<SharedBudget>,
}

impl Rules {
    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let max_runs = rng.chance(400).then(|| u32::try_from(rng.between(1, 3)).expect("small"));
        let min_free_memory_mb = rng.chance(300).then_some(1);
        let slots = Concurrency { max_runs, min_free_memory_mb, ..Concurrency::default() };
        let on_exceed = if rng.chance(300) { Exceeded::End } else { Exceeded::Wait };
        let budget = SharedBudget {
            name: "total".to_owned(),
            label: None,
            max_tokens: Some(rng.between(50, 800)),
            max_cost_usd_micros: None,
            per: Period::Total,
            on_exceed,
            tz: None,
        };
        let budgets = if rng.chance(300) { vec![budget] } else { Vec::new() };
        Self { slots, budgets }
    }
}
