//! A run is asked for.

use crate::handle::Draft;
use crate::{Event, Fact, Line, Moment, Run, RunId, RunSpec, advance, hold};

/// The first events of a run: it exists, and its first turn is meant to start.
pub fn create(id: &RunId, spec: RunSpec, moment: &Moment) -> Vec<Event> {
    let fact = Fact::RunCreated { spec: Box::new(spec), line: Line::of(moment) };
    let first = Event { seq: 1, at: moment.now, fact };
    let run = Run::created(id, &first).expect("RunCreated numbered 1 creates a run");
    let mut draft = Draft::new(&run);
    hold::follow(&mut draft, moment);
    advance::advance(&mut draft, moment);
    std::iter::once(first).chain(draft.into_events()).collect()
}
