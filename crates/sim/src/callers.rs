//! What a process that makes a call hears: the twin of what `daemon/src/runs/calls.rs` answers, with the production
//! question of what is to be done about a call.

use outlast_engine::{CallVerdict, KeyedCall, Run, Step};

use crate::options::Sabotage;
use crate::tree::Main;
use crate::truth;
use crate::world::{Calling, World};

/// True while the process and the attempt that it belongs to are alive.
pub(crate) fn is_alive(world: &World, id: u64) -> bool {
    world.callers.get(&id).is_some_and(|caller| {
        let main = world.sites.get(&caller.at).map(|site| site.tree.main);
        main.is_some_and(|main| main == Main::Running(caller.main))
    })
}

/// The open intent under the caller's key, if the process that had it is gone.
pub(crate) fn performer_gone(world: &World, run: &Run, key: &str) -> Option<u64> {
    let known = run.keyed.get(key).filter(|known| known.end.is_none())?;
    let performer = known.performer?;
    let is_it = |id: &u64| world.callers[id].who.start == performer.start;
    let lives = world.callers.keys().filter(|id| is_alive(world, **id)).any(is_it);
    (!lives).then_some(known.begun)
}

/// What is to be done about what the caller asks, as this run says.
pub(crate) fn weigh(world: &World, id: u64, run: &Run) -> Option<CallVerdict> {
    let caller = world.callers.get(&id)?;
    let Step::Attempt { turn, attempt } = caller.at.step else { return None };
    Some(run.weigh_call((turn, attempt), &caller.asked, caller.gone))
}

/// An answer reaches the caller, if it is alive: the run is as the journal has it.
pub(crate) fn hear(world: &mut World, id: u64, run: &Run) {
    if !is_alive(world, id) {
        return;
    }
    match world.callers[&id].stage {
        Calling::Asks => hear_begun(world, id, run),
        Calling::Made(begun, exit) => hear_ended(world, id, run, (begun, exit.is_none())),
        Calling::Makes(_) | Calling::Over => {}
    }
}

fn hear_begun(world: &mut World, id: u64, run: &Run) {
    let Some(verdict) = weigh(world, id, run) else { return };
    let key = world.callers[&id].asked.key.clone();
    let stage = match verdict {
        CallVerdict::Begun(begun) => Calling::Makes(begun),
        CallVerdict::Stored(_) if world.is_sabotaged(Sabotage::ForgetsResults) => {
            Calling::Makes(run.keyed.get(&key).map_or(0, |known| known.begun))
        }
        CallVerdict::Doubtful if world.is_sabotaged(Sabotage::DoubtIsNone) => {
            Calling::Makes(run.keyed.get(&key).map_or(0, |known| known.begun))
        }
        CallVerdict::Stored(end) => {
            world.stats.results_given_again += 1;
            truth::on_result_told(world, id, end);
            Calling::Over
        }
        CallVerdict::Make
        | CallVerdict::Conflict
        | CallVerdict::Open
        | CallVerdict::Doubtful
        | CallVerdict::Full
        | CallVerdict::NotLive => {
            world.stats.calls_refused += 1;
            Calling::Over
        }
    };
    set(world, id, stage);
}

fn hear_ended(world: &mut World, id: u64, run: &Run, (begun, is_void): (u64, bool)) {
    let key = world.callers[&id].asked.key.clone();
    let known = run.keyed.get(&key);
    let is_taken = has_result(known, begun) || (is_void && known.is_none_or(|it| it.end.is_none()));
    world.stats.calls_refused += u64::from(!is_taken);
    set(world, id, Calling::Over);
}

/// True if the journal has the result of this intent.
pub(crate) fn has_result(known: Option<&KeyedCall>, begun: u64) -> bool {
    known.is_some_and(|known| known.begun == begun && known.end.is_some())
}

pub(crate) fn set(world: &mut World, id: u64, stage: Calling) {
    if let Some(caller) = world.callers.get_mut(&id) {
        caller.stage = stage;
    }
}
