//! Calls under keys: no effect without its intent, none again that has completed or does harm, and one result for each.

use outlast_engine::{CallEnd, Exit, Fact, KeyedCall, ToolClass};

use crate::world::{Effect, RunIndex, World};

/// A process makes the effect of its call, just now.
pub(crate) fn on_effect(world: &mut World, caller: u64, begun: u64, exit: Exit) {
    world.stats.call_effects += 1;
    let caller = &world.callers[&caller];
    let (run, key, class) = (caller.at.run, caller.asked.key.clone(), caller.asked.class);
    world.note(|| format!("  run {run}: the effect of {key} for #{begun}, {exit:?}"));
    let known = world.runs[run].known.run().and_then(|known| known.keyed.get(&key));
    let is_meant = known.is_some_and(|known| known.begun == begun && known.end.is_none());
    let before = world.effects.entry((run, key.clone())).or_default();
    let is_complete = before.iter().any(|it| it.is_accepted && it.exit == Exit::Code(0));
    let is_harmful = class == ToolClass::Unsafe && before.iter().any(|it| !it.is_accepted);
    before.push(Effect { begun, exit, is_accepted: false });
    if is_complete {
        world.broke(Some(run), format!("{key} was made again, and has completed"));
    }
    if !is_meant {
        world.broke(Some(run), format!("{key} was made without an intent in the journal"));
    }
    if is_harmful {
        world.broke(Some(run), format!("{key} is unsafe, and was made twice"));
    }
}

/// The journal has taken a result.
pub(super) fn on_call_ended(world: &mut World, run: RunIndex, ended: &Fact) {
    let Fact::CallEnded { key, begun, exit, .. } = ended else { return };
    world.stats.call_results += 1;
    let effects = world.effects.entry((run, key.clone())).or_default();
    let found = effects.iter_mut().find(|it| it.begun == *begun);
    let wrong = match (found, exit) {
        (Some(effect), Some(exit)) if effect.exit == *exit && !effect.is_accepted => {
            effect.is_accepted = true;
            None
        }
        (None, None) => None,
        (Some(effect), Some(_)) if effect.is_accepted => Some("a second result was taken"),
        (Some(_), _) => Some("another result was taken than there was"),
        (None, Some(_)) => Some("a result was taken of a call that was not made"),
    };
    if let Some(wrong) = wrong {
        world.broke(Some(run), format!("{key}: {wrong}"));
    }
}

/// A caller is given a result that is in the journal: the one that was taken, or what a person has said.
pub(crate) fn on_result_told(world: &mut World, caller: u64, end: CallEnd) {
    let caller = &world.callers[&caller];
    let (run, key) = (caller.at.run, caller.asked.key.clone());
    let effects = world.effects.get(&(run, key.clone())).map_or(&[][..], Vec::as_slice);
    let is_taken = effects.iter().any(|it| it.is_accepted && it.exit == end.exit);
    let is_resolved = end.exit == Exit::Code(0) && !effects.is_empty();
    if !is_taken && !is_resolved {
        world.broke(Some(run), format!("{key}: a caller was given a result that is none"));
    }
}

/// True if a call under this key was really made since the journal last had its end.
pub(crate) fn was_made(world: &World, run: RunIndex, key: &str) -> bool {
    let effects = world.effects.get(&(run, key.to_owned())).map_or(&[][..], Vec::as_slice);
    effects.iter().any(|it| !it.is_accepted)
}

/// A person has said that a call was not made, or that it may be made again.
pub(super) fn on_resolved(world: &mut World, run: RunIndex, resolved: &Fact) {
    let Fact::CallResolved { key, was_made, .. } = resolved else { return };
    world.stats.calls_resolved += 1;
    let effects = world.effects.entry((run, key.clone())).or_default();
    if *was_made {
        // From here on it counts as made, whatever its caller would have said.
        effects.iter_mut().for_each(|it| it.is_accepted = true);
    }
}

/// A call is still open in an ended run only if its process died with it.
pub(super) fn check_over(world: &mut World, run: RunIndex) {
    let Some(known) = world.runs[run].known.run() else { return };
    let is_live = |(_, call): &(&str, &KeyedCall)| call.end.is_none() && !call.is_unknown(known);
    if known.has_ended() && known.keyed.iter().any(|call| is_live(&call)) {
        world.broke(Some(run), "it has ended, and a call of it is open".to_owned());
    }
}
