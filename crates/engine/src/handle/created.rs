//! A run is asked for.

use crate::handle::{Decided, Draft};
use crate::{Event, Fact, Line, Moment, Run, RunId, RunSpec, advance, hold};

/// The first events of a run: it exists, and its first turn is meant to start.
pub fn create(id: &RunId, spec: RunSpec, moment: &Moment) -> Vec<Event> {
    decide_new(id, spec, moment).events
}

/// The same, with the run that these events lead to.
pub fn decide_new(id: &RunId, spec: RunSpec, moment: &Moment) -> Decided {
    let fact = Fact::RunCreated { spec: Box::new(spec), line: Line::of(moment) };
    let first = Event { seq: 1, at: moment.now, fact };
    let run = Run::created(id, &first).expect("RunCreated numbered 1 creates a run");
    let mut draft = Draft::new(&run);
    hold::follow(&mut draft, moment);
    advance::advance(&mut draft, moment);
    let decided = draft.into_decided();
    let events = std::iter::once(first).chain(decided.events).collect();
    Decided { events, ..decided }
}
