//! What clients were told.

use outlast_engine::{Input, Order, State, Verb};
use outlast_store::Journal;

use crate::world::{RunIndex, World};

/// A client is told that its run exists.
pub(crate) fn on_created(world: &mut World, run: RunIndex) {
    world.runs[run].is_promised = true;
    check_promised(world);
}

/// A client is told that what it asked for is durable.
pub(crate) fn on_answered(world: &mut World, run: RunIndex, asked: &Input) {
    match asked {
        Input::StopAsked { order, .. } => on_stop_answered(world, run, order),
        Input::Sent { message, .. } => on_sent(world, run, message),
        _ => {}
    }
}

fn on_stop_answered(world: &mut World, run: RunIndex, order: &Order) {
    world.stats.stops_acknowledged += 1;
    let Some(known) = world.runs[run].known.run() else { return };
    match known.state {
        State::Finishing { .. } | State::Ended { .. } => {}
        _ => match order.id.as_deref().and_then(|id| known.orders.get(id)).map(|it| it.verb) {
            Some(Verb::Stop(_)) => world.runs[run].is_stop_promised = true,
            // Refused: another order has that id.
            Some(
                Verb::Answer(_)
                | Verb::Resume
                | Verb::Pause
                | Verb::Raise
                | Verb::Restore
                | Verb::Resolve { .. },
            ) => {}
            None => world
                .broke(Some(run), "a stop was acknowledged that is not in the journal".to_owned()),
        },
    }
}

fn on_sent(world: &mut World, run: RunIndex, message: &str) {
    let Some(known) = world.runs[run].known.run() else { return };
    if !known.inbox.has_had(message) && !known.has_ended() {
        world.broke(Some(run), "a message was acknowledged that is not in the journal".to_owned());
    }
}

/// What clients were told to exist exists.
pub(crate) fn check_promised(world: &mut World) {
    for run in 0..world.runs.len() {
        let exists = world.store.row(&world.runs[run].id).expect("memory can be read").is_some();
        if world.runs[run].is_promised && !exists {
            world.broke(Some(run), "a run that was acknowledged does not exist".to_owned());
        }
    }
}
