//! Children: none exists for which its parent has made no room, and none is said not to exist that does.

use outlast_engine::{Fact, ReasonCode, RunId, RunSpec};
use outlast_store::Journal;

use crate::world::{RunIndex, World};

/// A run was made. One that has a parent was meant to be, with what it has.
pub(super) fn on_made(world: &mut World, run: RunIndex, spec: &RunSpec) {
    let Some(parent) = &spec.parent else { return };
    let above = world.index_of(parent);
    let Some(known) = world.runs[above].known.run() else { return };
    let granted = known.children.get(&world.runs[run].id).map(|child| child.granted);
    if granted != Some(spec.tree.room) {
        let made = spec.tree.room;
        world.broke(
            Some(run),
            format!("was made with {made:?}, and its parent has reserved {granted:?}"),
        );
    }
}

/// A parent was told of an end.
pub(super) fn on_settled(world: &mut World, child: &RunId, settled: &Fact) {
    let Fact::ChildSettled { reason_code, spend_unknown, .. } = settled else { return };
    let is_unmade = reason_code.as_ref().is_some_and(|code| *code == ReasonCode::NotMade);
    world.stats.children_heard_of += u64::from(!is_unmade);
    world.stats.children_unmade += u64::from(is_unmade);
    world.stats.spend_unknown += u64::from(*spend_unknown);
    let exists = world.store.row(child).expect("memory can be read").is_some();
    if exists == is_unmade {
        let run = world.index_of(child);
        world.broke(
            Some(run),
            format!("its parent was told {reason_code:?}, and it exists: {exists}"),
        );
    }
}
