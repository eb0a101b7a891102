//! Children and their parents: the twin of the daemon's `children`, with the production question of what a
//! parent has yet to hear.

use outlast_engine::{ChildEnd, Input, Row, Run, State, Unheard, WaitCause};
use outlast_store::Journal;

use crate::truth;
use crate::world::{RunIndex, World};

/// The news of a child, for its parent.
pub(crate) fn news(row: &Row, unheard: Unheard) -> Input {
    let (child, key) = (row.id.clone(), row.key.clone());
    match unheard {
        Unheard::Made => Input::ChildMade { child, key },
        Unheard::Ended => Input::ChildEnded(Box::new(ChildEnd {
            child,
            key,
            state: row.state.verdict().expect("it has ended"),
            reason_code: row.reason_code.clone(),
            text: "simulated".to_owned(),
        })),
    }
}

/// What a run has yet to hear of its children.
pub(crate) fn unheard(world: &World, parent: &Run) -> Vec<Input> {
    let children = world.store.children(&parent.id).expect("memory can be read");
    children.iter().filter_map(|row| Some(news(row, parent.unheard(row)?))).collect()
}

/// True if a run waits for a child that goes on.
pub(crate) fn waits_for_a_child(world: &World, run: RunIndex) -> bool {
    !waited_for(world, run).is_empty()
}

/// True if a run waits for a child that no signal can end.
pub(crate) fn waits_for_the_unending(world: &World, run: RunIndex) -> bool {
    waited_for(world, run).into_iter().any(|child| truth::unrest(world, child).is_none())
}

/// The children that a run waits for and that really go on.
fn waited_for(world: &World, run: RunIndex) -> Vec<RunIndex> {
    let Some(known) = world.runs[run].known.run() else { return Vec::new() };
    if !matches!(known.state, State::Waiting { cause: WaitCause::Children, .. }) {
        return Vec::new();
    }
    let goes_on =
        |child: &RunIndex| world.runs[*child].known.run().is_some_and(|known| !known.has_ended());
    known.children.keys().map(|child| world.index_of(child)).filter(goes_on).collect()
}
