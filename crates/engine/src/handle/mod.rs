//! News in, events out. One file for each kind of news.
//!
//! Whatever news brings, the answer goes through a [`Draft`]: each event is applied as it is written, so
//! that what follows is decided on the state it will really meet, and so that nothing illegal can be
//! answered.

mod adopted;
mod created;
mod finished;
mod reported;
mod stop;

use crate::{BootId, Event, Fact, Run, StopMode, Time, advance};

pub use created::create;
pub use reported::{Custody, End, EndCause, Report, Started, TreeNews};

/// When and on which boot something is decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    pub now: Time,
    pub boot: BootId,
}

/// News for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// How an attempt looks from outside just now.
    Reported(Report),
    /// A daemon met an attempt alive that it had not launched itself.
    Adopted {
        turn: u32,
        attempt: u32,
        epoch: u64,
    },
    StopAsked {
        mode: StopMode,
    },
    /// Time has passed.
    Woke,
    /// What a finishing run had to tidy up is tidied up.
    Finished,
}

impl Run {
    /// The events that follow from `input`; none if it is old news.
    pub fn handle(&self, input: &Input, moment: &Moment) -> Vec<Event> {
        let mut draft = Draft::new(self);
        match input {
            Input::Reported(report) => reported::handle(&mut draft, report, moment),
            Input::Adopted { turn, attempt, epoch } => {
                adopted::handle(&mut draft, *turn, *attempt, *epoch, moment);
            }
            Input::StopAsked { mode } => stop::handle(&mut draft, *mode, moment),
            Input::Woke => {}
            Input::Finished => finished::handle(&mut draft),
        }
        advance::advance(&mut draft, moment);
        draft.into_events()
    }
}

/// Events being decided, and the run as they leave it.
pub(crate) struct Draft {
    run: Run,
    events: Vec<Event>,
}

impl Draft {
    pub(crate) fn new(run: &Run) -> Self {
        Self { run: run.clone(), events: Vec::new() }
    }

    pub(crate) fn run(&self) -> &Run {
        &self.run
    }

    pub(crate) fn push(&mut self, at: Time, fact: Fact) {
        let event = Event { seq: self.run.seq() + 1, at, fact };
        self.run = self.run.clone().apply(&event).expect("the engine answers legal events only");
        self.events.push(event);
    }

    fn into_events(self) -> Vec<Event> {
        self.events
    }
}
