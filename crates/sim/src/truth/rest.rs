//! Everything that must hold once the world is at rest, and whether it is.

use outlast_store::Journal;

use super::{check_promised, check_whole};
use crate::spec::SINKS;
use crate::world::{RunIndex, World};

pub(crate) fn check_rest(world: &mut World) {
    check_promised(world);
    for problem in world.store.check().expect("memory can be read") {
        world.broke(None, format!("the store says: {}", problem.message));
    }
    let existing = world.existing();
    for run in &existing {
        check_whole(world, *run);
        super::calls::check_over(world, *run);
    }
    let keys: Vec<String> =
        existing.iter().filter_map(|run| world.runs[*run].spec.key.clone()).collect();
    let mut once = keys.clone();
    once.sort();
    once.dedup();
    if once.len() != keys.len() {
        world.broke(None, "two runs have one key".to_owned());
    }
}

/// Why a run is not at rest that cannot be stopped.
pub(crate) const UNSTOPPABLE: &str = "it cannot be stopped, and the journal does not say so";

/// Why the run has not come to its end, if it should have.
pub(crate) fn unrest(world: &World, run: RunIndex) -> Option<&'static str> {
    let known = world.runs[run].known.run()?;
    let has_immortals = world.sites.iter().any(|(key, site)| {
        key.run == run
            && site.tree.others.iter().any(|other| other.kills.is_none() && !other.leaves_by_itself)
    });
    if has_immortals {
        // No signal can end it. It is enough to say so.
        let is_said = known.is_stop_incomplete();
        return (!is_said).then_some(UNSTOPPABLE);
    }
    if !known.has_ended() || known.ended_at.is_none() {
        return Some("it has not ended");
    }
    known.is_open().then_some("it has ended and one of its processes is left")
}

/// True if a notice is in the outbox that its sink has not sent.
pub(crate) fn has_unsent(world: &World, run: RunIndex) -> bool {
    let told = world.store.told(&world.runs[run].id);
    SINKS.into_iter().any(|sink| {
        let count = told.iter().filter(|(_, to)| to == sink).count();
        world.sent.get(&(run, sink.to_owned())).copied().unwrap_or(0) != count
    })
}
