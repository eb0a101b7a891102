//! A run is asked for.

use crate::handle::{Decided, Draft};
use crate::{Context, Event, Fact, Line, Run, RunId, RunSpec, advance, pause_all};

/// The first events of a run: it exists, and its first turn is meant to start.
pub fn create(id: &RunId, spec: RunSpec, context: &Context) -> Vec<Event> {
    decide_new(id, spec, context).events
}

/// The same, with the run that these events lead to.
pub fn decide_new(id: &RunId, spec: RunSpec, context: &Context) -> Decided {
    let fact = Fact::RunCreated { spec: Box::new(spec), line: Line::of(context) };
    let first = Event { seq: 1, at: context.now, fact };
    let run = Run::created(id, &first).expect("RunCreated numbered 1 creates a run");
    let mut draft = Draft::new(&run);
    pause_all::follow(&mut draft, context);
    advance::advance(&mut draft, context);
    let decided = draft.into_decided();
    let events = std::iter::once(first).chain(decided.events).collect();
    Decided { events, ..decided }
}
