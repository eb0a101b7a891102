//! Children and their parents: the twin of the daemon's `children`, with the production question of what a
//! parent has yet to hear.

use outlast_engine::{
    Again, Child, ChildEnd, Input, Lost, Room, RoomWanted, Row, Run, RunId, RunSpec, SpawnAsk,
    State, Unheard, WaitCause, Want,
};
use outlast_store::Journal;

use crate::truth;
use crate::world::{RunIndex, World};

/// The news of a child, for its parent.
pub(crate) fn news(world: &World, row: &Row, unheard: Unheard) -> Input {
    let known = world.runs[world.index_of(&row.id)].known.run();
    let granted = known.map_or_else(Room::default, |run| run.spec.tree.room);
    let child = row.id.clone();
    match unheard {
        Unheard::Made => Input::ChildMade { child, key: own_key(row), granted },
        Unheard::Ended => Input::ChildEnded(Box::new(ChildEnd {
            child,
            key: own_key(row),
            state: row.state.verdict().expect("it has ended"),
            reason_code: row.reason_code.clone(),
            granted,
            settlement: known.map(Run::settlement),
            exit: row.exit,
            summary: String::new(),
            text: "simulated".to_owned(),
        })),
    }
}

/// The key as its client chose it.
fn own_key(row: &Row) -> Option<String> {
    let key = row.key.as_ref()?;
    let own = row.parent.as_ref().and_then(|it| key.strip_prefix(it.as_str())?.strip_prefix('/'));
    Some(own.unwrap_or(key).to_owned())
}

/// The question that a parent is asked for a child.
pub(crate) fn ask(child: &RunId, spec: &RunSpec) -> SpawnAsk {
    let want = |limit: Option<u64>| limit.map_or(Want::Half, Want::AtMost);
    let wants = RoomWanted {
        turns: Want::Usually(spec.limits.max_turns.map_or(1, u64::from)),
        tokens: want(spec.limits.max_tokens),
        cost_usd_micros: want(spec.limits.max_cost_usd_micros),
        runs: spec.tree.room.runs,
        ..RoomWanted::default()
    };
    SpawnAsk {
        child: child.clone(),
        key: spec.key.clone(),
        digest: spec.agent.kind.clone(),
        wants,
        again: Again { tries: 2, lost: Lost::Again },
    }
}

/// The spec of a child with what its parent has given it.
pub(crate) fn bounded(mut spec: RunSpec, child: &Child) -> RunSpec {
    let lower = |limit: Option<u64>, given: Option<u64>| match (limit, given) {
        (Some(limit), Some(given)) => Some(limit.min(given)),
        (limit, given) => limit.or(given),
    };
    let Room { tokens, cost_usd_micros, .. } = child.granted;
    spec.limits.max_tokens = lower(spec.limits.max_tokens, tokens);
    spec.limits.max_cost_usd_micros = lower(spec.limits.max_cost_usd_micros, cost_usd_micros);
    spec.tree.room = child.granted;
    let parent = spec.parent.as_ref();
    spec.key = child.key.as_ref().zip(parent).map(|(key, parent)| match child.try_number {
        1 => format!("{parent}/{key}"),
        tries => format!("{parent}/{key}#{tries}"),
    });
    spec
}

/// The children that a run has meant to make and that do not exist.
pub(crate) fn unmade(world: &World, parent: &Run) -> Vec<RunIndex> {
    let is_absent = |id: &&RunId| world.store.row(id).expect("memory can be read").is_none();
    parent.live_child_ids().filter(is_absent).map(|id| world.index_of(id)).collect()
}

/// What a run has yet to hear of its children.
pub(crate) fn unheard(world: &World, parent: &Run) -> Vec<Input> {
    let children = world.store.children(&parent.id).expect("memory can be read");
    children.iter().filter_map(|row| Some(news(world, row, parent.unheard(row)?))).collect()
}

/// True if a run waits for a child that goes on.
pub(crate) fn waits_for_a_child(world: &World, run: RunIndex) -> bool {
    !waited_for(world, run).is_empty()
}

/// True if a run waits for a child that no signal can end, or that itself cannot end before such a child.
pub(crate) fn waits_for_the_unending(world: &World, run: RunIndex) -> bool {
    let is_unending =
        |child: &RunIndex| truth::unrest(world, *child).is_none() || is_held(world, *child);
    waited_for(world, run).iter().any(is_unending)
}

/// True if a run cannot end before a child that no signal can end.
pub(crate) fn is_held(world: &World, run: RunIndex) -> bool {
    let is_last = world.runs[run].known.run().is_some_and(Run::ends_after_children);
    is_last && waits_for_the_unending(world, run)
}

/// The children that a run waits for and that really go on.
fn waited_for(world: &World, run: RunIndex) -> Vec<RunIndex> {
    let Some(known) = world.runs[run].known.run() else { return Vec::new() };
    let causes = |cause| matches!(cause, WaitCause::Children | WaitCause::Budget);
    let waits = matches!(known.state, State::Waiting { cause, .. } if causes(cause));
    if !waits && !known.ends_after_children() {
        return Vec::new();
    }
    let goes_on =
        |child: &RunIndex| world.runs[*child].known.run().is_some_and(|known| !known.has_ended());
    known.children.keys().map(|child| world.index_of(child)).filter(goes_on).collect()
}
