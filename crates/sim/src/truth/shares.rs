//! What runs share: no more of them work at once than may, and no turn starts on a budget that is spent.

use outlast_engine::{Run, State};

use crate::world::{RunIndex, World};

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

/// A turn starts. What others may still use up counts as used. A world in which answers of the journal get lost is not
/// held to this: a daemon hears only later what was written.
pub(super) fn check_budget(world: &mut World, run: RunIndex) {
    let Some(most) = world.rules.budgets.first().and_then(|rule| rule.max_tokens) else { return };
    if world.stats.lost_acks > 0 {
        return;
    }
    let known = |truth: &crate::world::RunTruth| truth.known.run().cloned();
    let runs: Vec<Option<Run>> = world.runs.iter().map(known).collect();
    let used: u64 = runs.iter().flatten().map(|run| run.spend.tokens()).sum();
    let others = runs.iter().enumerate().filter(|(index, _)| *index != run);
    let others = others.filter_map(|(_, run)| run.as_ref()).filter(|run| run.live().is_some());
    let reserved: u64 = others.map(|run| run.reserves().0).sum();
    if used + reserved >= most {
        let what =
            format!("a turn starts with {used} tokens used and {reserved} reserved of {most}");
        world.broke(Some(run), what);
    }
}
