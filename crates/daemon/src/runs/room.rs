//! More room for an exhausted run: which option of `outlast raise` lets it go on, and how far the operator lets it.
//!
//! The amounts are a table of `words`, whether one is enough is the engine's to say; here both become a line to paste.

use std::path::Path;

use outlast_engine::{Limit, Limits, More, Run, StateName, Word};
use outlast_wire::words::Unit;
use outlast_workflow::{Config, duration};

use crate::supervisor::Supervisor;

/// `--max-turns +10`; `None` for a run that no raise would let go on. Blocks.
pub(crate) fn of(supervisor: &Supervisor, run: &Run) -> Option<String> {
    if run.state.name() != StateName::Exhausted || !has_directory(run) {
        return None;
    }
    // A turn's time is a limit of its attempts, so only the reason names it.
    let code = run.reason_code().as_ref().and_then(Word::known);
    let limit = run.limit.or_else(|| Limit::of_code(code?))?;
    let config = supervisor.config().ok()?;
    options(run, limit, &ceilings(&config))
}

/// True unless the directory that the run worked in is gone: a raise would be refused. Blocks.
pub(super) fn has_directory(run: &Run) -> bool {
    run.started_at.is_none() || Path::new(&run.spec.dir).is_dir()
}

/// The options that together let an exhausted run go on: a raise of one limit is refused while another is spent.
pub(super) fn options(run: &Run, ended_by: Limit, ceilings: &Limits) -> Option<String> {
    let limits = run.spent_limits(ended_by).into_iter();
    let options: Option<Vec<String>> = limits.map(|limit| option(run, limit, ceilings)).collect();
    Some(options?.join(" "))
}

/// The option that gives the run more of one limit.
pub(super) fn option(run: &Run, limit: Limit, ceilings: &Limits) -> Option<String> {
    let room = limit.room()?;
    let amount = match run.more_room(limit, ceilings)? {
        More::By(by) => format!("+{}", typed(room.unit, by)),
        More::To(to) => typed(room.unit, to),
    };
    Some(format!("{} {amount}", room.option))
}

/// An amount as it is typed behind the option.
fn typed(unit: Unit, amount: u64) -> String {
    match unit {
        Unit::Count => amount.to_string(),
        Unit::Ms => duration::typed(amount),
        Unit::UsdMicros => {
            let text = format!("{}.{:06}", amount / 1_000_000, amount % 1_000_000);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    }
}

/// The most that the operator allows, limit by limit.
pub(super) fn ceilings(config: &Config) -> Limits {
    let ceiling = |name: &str| config.ceilings.get(name).map(|ceiling| ceiling.most);
    Limits {
        turn_timeout_ms: ceiling("turn_timeout_ms"),
        run_timeout_ms: ceiling("run_timeout_ms"),
        max_turns: ceiling("max_turns").map(|most| u32::try_from(most).unwrap_or(u32::MAX)),
        max_tokens: ceiling("max_tokens"),
        max_cost_usd_micros: ceiling("max_cost_usd"),
        ..Limits::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_typed_as_the_options_read_them() {
        assert_eq!(typed(Unit::UsdMicros, 5_000_000), "5");
        assert_eq!(typed(Unit::UsdMicros, 10_500_000), "10.5");
        assert_eq!(typed(Unit::UsdMicros, 1), "0.000001");
        assert_eq!(typed(Unit::Ms, 5_400_000), "1h30m");
        assert_eq!(typed(Unit::Count, 10), "10");
    }
}
