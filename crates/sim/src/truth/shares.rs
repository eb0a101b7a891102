//! What runs share: no more of them work at once than may, and no turn starts on a budget that is spent.

use outlast_engine::{Run, RunId, State};

use crate::world::World;

/// The journal has grown: so many runs may be at work.
pub(super) fn check_slots(world: &mut World) {
    let Some(most) = world.rules.slots.max_runs else { return };
    let known = world.runs.iter().filter_map(|truth| truth.known.run());
    // A run that comes to its end is not kept from that.
    let is_at_work =
        |run: &&Run| matches!(run.state, State::Preparing | State::Running | State::Verifying);
    let at_work = known.filter(is_at_work).count();
    if u32::try_from(at_work).is_ok_and(|at_work| at_work > most) {
        world.broke(None, format!("{at_work} runs are at work, and {most} may be"));
    }
}

/// A daemon has found room in the budget for this run. What others may still use up counts as used. A world in which
/// answers of the journal get lost is not held to this: a daemon hears only later what was written.
pub(crate) fn check_room(world: &mut World, run: &RunId) {
    let Some(most) = world.rules.budgets.first().and_then(|rule| rule.max_tokens) else { return };
    if world.stats.lost_acks > 0 {
        return;
    }
    let is_plain = |known: &Run| known.id == *run && !known.counts_in_budgets();
    if world.runs.iter().filter_map(|truth| truth.known.run()).any(is_plain) {
        return;
    }
    let runs: Vec<&Run> = world.runs.iter().filter_map(|truth| truth.known.run()).collect();
    let used: u64 = runs.iter().map(|run| run.spend.tokens()).sum();
    let others = runs.iter().filter(|other| other.id != *run && other.live().is_some());
    let reserved: u64 = others.map(|other| other.reserves().0).sum();
    if used + reserved >= most {
        let what =
            format!("run {run} has room with {used} tokens used and {reserved} reserved of {most}");
        world.broke(None, what);
    }
}
