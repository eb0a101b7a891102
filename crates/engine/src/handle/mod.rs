//! News in, events out. One file for each kind of news.
//!
//! Whatever news brings, the answer goes through a [`Draft`]: each event is applied as it is written, so
//! that what follows is decided on the state it will really meet, and so that nothing illegal can be
//! answered.

mod adopted;
mod answered;
mod child;
mod created;
mod finished;
mod matched;
mod paused;
pub(crate) mod recovered;
mod removal;
mod reported;
mod restored;
mod resumed;
mod sent;
mod stop;
mod usage;
mod workspace;

use std::sync::Arc;

use crate::{
    BootId, By, Decision, Event, Fact, Illegal, Matched, Notice, Order, Run, RunId, Seen, Step,
    StopMode, Time, Usage, advance, health, hold, line, rest,
};

pub use child::ChildEnd;
pub use created::{create, decide_new};
pub use recovered::{CannotRecover, Found, FoundAttempt, FoundEnd, recover};
pub use reported::{Custody, End, Report, Started, TreeNews};

/// When, on which boot and with what room something is decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moment {
    pub now: Time,
    pub boot: BootId,
    /// When this boot began, on the line of time that `now` is on; `None` where there is one line only.
    pub booted_at_ms: Option<i64>,
    pub slot: Slot,
    pub hold: Hold,
    /// The order that `hold` follows, as far as it is remembered: its id, and who gave it.
    pub word: Option<Arc<Order>>,
    pub budget: Budget,
    /// Budgets that this run brings near their end just now.
    pub nearing: Vec<Nearing>,
    pub seen: Seen,
}

/// A budget of which most is used up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nearing {
    pub name: String,
    pub used: u64,
    pub max: u64,
}

impl Moment {
    /// A moment with room for everybody.
    pub fn new(now: Time, boot: BootId) -> Self {
        let (slot, hold, budget) = (Slot::Free, Hold::Off, Budget::Room);
        let (nearing, seen) = (Vec::new(), Seen::default());
        Self { now, boot, booted_at_ms: None, slot, hold, word: None, budget, nearing, seen }
    }
}

/// Whether everything is to rest, by one word for all runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    Off,
    On,
}

/// Whether the budgets that a run shares with others have room for one more turn of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Budget {
    Room,
    Spent {
        name: String,
        /// When there will be room again, if that is known.
        until: Option<Time>,
        then: Exceeded,
    },
}

/// What becomes of a run whose budget is spent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exceeded {
    Wait,
    End,
}

/// Whether there is a place for one more run to go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    Free,
    Taken,
    /// It is not this run's turn to go on after a restart: it starts nothing, whatever place it has.
    Held,
}

/// News for a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// How a step looks from outside just now.
    Reported(Box<Report>),
    /// A daemon met a step alive that it had not launched itself.
    Adopted {
        step: Step,
        epoch: u64,
    },
    StopAsked {
        mode: StopMode,
        order: Order,
    },
    PauseAsked(Order),
    ResumeAsked(Order),
    /// Everything rests, and what is alive is not to go on to its end.
    HoldNow,
    /// A person answers a blocked run. The message goes to the agent, unless the question was whether its
    /// words may leave the run.
    Answered {
        decision: Decision,
        message: Option<(String, String)>,
        order: Order,
    },
    /// Somebody has something to say to the run.
    Sent {
        message: String,
        from: String,
        text: String,
        by: Option<By>,
    },
    /// A watch has found lines in the output of a live attempt.
    Matched {
        turn: u32,
        attempt: u32,
        matched: Matched,
    },
    /// A live attempt has written so much, and somebody wants to hear of it.
    HeartbeatDue {
        turn: u32,
        attempt: u32,
        output_bytes: u64,
    },
    /// Another run was made as this one's child.
    ChildMade {
        child: RunId,
        key: Option<String>,
    },
    ChildEnded(Box<ChildEnd>),
    WorkspaceMade {
        created: bool,
    },
    WorkspaceRefused {
        why: String,
    },
    WorkspaceDiscarded {
        problem: Option<String>,
    },
    /// The workspace of an ended run is to go.
    RemovalAsked,
    WorkspaceRemoved {
        bytes: u64,
    },
    WorkspaceKept {
        why: String,
    },
    /// What a live attempt has used up so far, all of it.
    UsageReported {
        turn: u32,
        attempt: u32,
        usage: Usage,
    },
    /// An older journal was put back, which was noticed at that time.
    JournalRestored {
        noticed_at: Time,
        /// Up to here the files of the run's live step prove what it did.
        known_until: Time,
    },
    /// Time has passed, or there may be room.
    Woke,
    /// What a finishing run had to tidy up is tidied up.
    Finished,
}

/// What follows from an input: the events, and what they lead to. Nothing has to be folded again.
#[derive(Debug, Clone, PartialEq)]
pub struct Decided {
    /// None if the input was old news.
    pub events: Vec<Event>,
    /// The run as the last of the events left it.
    pub after: Run,
    /// What has to be told, each with the run as its own event left it.
    pub notices: Vec<(Notice, Run)>,
    /// The run would have started something, and rests because others are started first after a restart.
    pub is_held_back: bool,
}

impl Run {
    /// The events that follow from `input`; none if it is old news.
    pub fn handle(&self, input: &Input, moment: &Moment) -> Vec<Event> {
        self.decide(input, moment).events
    }

    /// What follows from `input`.
    pub fn decide(&self, input: &Input, moment: &Moment) -> Decided {
        let mut draft = Draft::new(self);
        line::follow(&mut draft, moment);
        match input {
            Input::Reported(report) => reported::handle(&mut draft, report, moment),
            Input::Adopted { step, epoch } => adopted::handle(&mut draft, *step, *epoch, moment),
            Input::StopAsked { mode, order } => stop::handle(&mut draft, *mode, order, moment),
            Input::PauseAsked(order) => paused::handle(&mut draft, order, moment),
            Input::ResumeAsked(order) => resumed::handle(&mut draft, order, moment),
            Input::HoldNow => hold::end_now(&mut draft, moment),
            Input::Answered { decision, message, order } => {
                answered::handle(&mut draft, *decision, message.as_ref(), order, moment);
            }
            Input::Sent { message, from, text, by } => {
                sent::handle(&mut draft, message, from, text, by.as_ref(), moment);
            }
            Input::Matched { turn, attempt, matched } => {
                matched::lines(&mut draft, (*turn, *attempt), matched, moment);
            }
            Input::HeartbeatDue { turn, attempt, output_bytes } => {
                matched::heartbeat(&mut draft, (*turn, *attempt), *output_bytes, moment);
            }
            Input::ChildMade { child, key } => {
                child::spawned(&mut draft, child, key.as_ref(), moment);
            }
            Input::ChildEnded(end) => child::settled(&mut draft, end, moment),
            Input::WorkspaceMade { created } => workspace::made(&mut draft, *created, moment),
            Input::WorkspaceRefused { why } => workspace::refused(&mut draft, why, moment),
            Input::WorkspaceDiscarded { problem } => {
                workspace::discarded(&mut draft, problem.as_ref(), moment);
            }
            Input::RemovalAsked => removal::asked(&mut draft, moment),
            Input::WorkspaceRemoved { bytes } => removal::removed(&mut draft, *bytes, moment),
            Input::WorkspaceKept { why } => removal::kept(&mut draft, why, moment),
            Input::UsageReported { turn, attempt, usage } => {
                usage::handle(&mut draft, (*turn, *attempt), usage, moment);
            }
            Input::JournalRestored { noticed_at, known_until } => {
                restored::handle(&mut draft, *noticed_at, *known_until, moment);
            }
            Input::Woke => {}
            Input::Finished => finished::handle(&mut draft),
        }
        hold::follow(&mut draft, moment);
        advance::advance(&mut draft, moment);
        health::follow(&mut draft, moment);
        draft.into_decided()
    }
}

/// Events being decided, and the run as they leave it.
pub(crate) struct Draft {
    run: Run,
    events: Vec<Event>,
    notices: Vec<(Notice, Run)>,
}

impl Draft {
    pub(crate) fn new(run: &Run) -> Self {
        Self { run: run.clone(), events: Vec::new(), notices: Vec::new() }
    }

    pub(crate) fn run(&self) -> &Run {
        &self.run
    }

    pub(crate) fn push(&mut self, at: Time, fact: Fact) {
        let event = Event { seq: self.run.seq() + 1, at, fact };
        self.run.apply_in_place(&event).expect("the engine answers legal events only");
        self.take(event);
    }

    /// Refuses what is illegal, for what the engine has not decided itself.
    fn try_push(&mut self, at: Time, fact: Fact) -> Result<(), Illegal> {
        let event = Event { seq: self.run.seq() + 1, at, fact };
        self.run.apply_in_place(&event)?;
        self.take(event);
        Ok(())
    }

    /// Notes what an event that was just applied has to tell.
    fn take(&mut self, event: Event) {
        if let Some(notice) = self.run.notice(&event) {
            self.notices.push((notice, self.run.clone()));
        }
        self.events.push(event);
    }

    fn into_events(self) -> Vec<Event> {
        self.events
    }

    fn into_decided(self) -> Decided {
        let Self { run: after, events, notices } = self;
        let is_held_back = rest::is_held_back(&events);
        Decided { events, after, notices, is_held_back }
    }
}
