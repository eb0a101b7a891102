//! News in, events out. One file for each kind of news.
//!
//! Whatever news brings, the answer goes through a [`Draft`]: each event is applied as it is written, so
//! that what follows is decided on the state it will really meet, and so that nothing illegal can be
//! answered.

mod adopted;
mod answered;
mod asked;
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
    StopMode, Time, Usage, advance, health, line, pause_all, rest,
};

pub use asked::AsksPerson;
pub use child::ChildEnd;
pub use created::{create, decide_new};
pub use recovered::{CannotRecover, Found, FoundAttempt, FoundEnd, recover};
pub use reported::{Custody, End, Report, Started, TreeNews};

/// When, on which boot and with what room something is decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    pub now: Time,
    pub boot: BootId,
    /// When this boot began, on the line of time that `now` is on; `None` where there is one line only.
    pub booted_at_ms: Option<i64>,
    pub slot: Slot,
    pub pause_all: PauseAll,
    /// The order that `pause_all` follows, as far as it is remembered: its id, and who gave it.
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

impl Context {
    /// A context with room for every run.
    pub fn new(now: Time, boot: BootId) -> Self {
        let (slot, pause_all, budget) = (Slot::Free, PauseAll::Off, Budget::Room);
        let (nearing, seen) = (Vec::new(), Seen::default());
        Self { now, boot, booted_at_ms: None, slot, pause_all, word: None, budget, nearing, seen }
    }
}

/// Whether `pause --all` is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseAll {
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
    Paced,
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
    PauseAllNow,
    /// A person answers a blocked run. The message goes to the agent, unless the question was whether its
    /// words may leave the run.
    Answered {
        decision: Decision,
        message: Option<(String, String)>,
        order: Order,
    },
    /// A client or another run has something to say to the run.
    Sent {
        message: String,
        from: String,
        text: String,
        by: Option<By>,
    },
    /// A live agent asks a person, and waits.
    Asked {
        turn: u32,
        attempt: u32,
        asks: AsksPerson,
    },
    /// A live agent has taken these messages in the middle of its turn.
    Gave {
        turn: u32,
        attempt: u32,
        messages: Vec<u64>,
    },
    /// A watch has found lines in the output of a live attempt.
    Matched {
        turn: u32,
        attempt: u32,
        matched: Matched,
    },
    /// A live attempt has written so much, and a sink wants to hear of it.
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
    pub is_paced: bool,
}

impl Run {
    /// The events that follow from `input`; none if it is old news.
    pub fn handle(&self, input: &Input, context: &Context) -> Vec<Event> {
        self.decide(input, context).events
    }

    /// What follows from `input`.
    pub fn decide(&self, input: &Input, context: &Context) -> Decided {
        let mut draft = Draft::new(self);
        line::follow(&mut draft, context);
        match input {
            Input::Reported(report) => reported::handle(&mut draft, report, context),
            Input::Adopted { step, epoch } => adopted::handle(&mut draft, *step, *epoch, context),
            Input::StopAsked { mode, order } => stop::handle(&mut draft, *mode, order, context),
            Input::PauseAsked(order) => paused::handle(&mut draft, order, context),
            Input::ResumeAsked(order) => resumed::handle(&mut draft, order, context),
            Input::PauseAllNow => pause_all::end_now(&mut draft, context),
            Input::Answered { decision, message, order } => {
                answered::handle(&mut draft, *decision, message.as_ref(), order, context);
            }
            Input::Sent { message, from, text, by } => {
                sent::handle(&mut draft, message, from, text, by.as_ref(), context);
            }
            Input::Asked { turn, attempt, asks } => {
                asked::handle(&mut draft, (*turn, *attempt), asks, context);
            }
            Input::Gave { turn, attempt, messages } => {
                asked::gave(&mut draft, (*turn, *attempt), messages, context);
            }
            Input::Matched { turn, attempt, matched } => {
                matched::lines(&mut draft, (*turn, *attempt), matched, context);
            }
            Input::HeartbeatDue { turn, attempt, output_bytes } => {
                matched::heartbeat(&mut draft, (*turn, *attempt), *output_bytes, context);
            }
            Input::ChildMade { child, key } => {
                child::spawned(&mut draft, child, key.as_ref(), context);
            }
            Input::ChildEnded(end) => child::settled(&mut draft, end, context),
            Input::WorkspaceMade { created } => workspace::made(&mut draft, *created, context),
            Input::WorkspaceRefused { why } => workspace::refused(&mut draft, why, context),
            Input::WorkspaceDiscarded { problem } => {
                workspace::discarded(&mut draft, problem.as_ref(), context);
            }
            Input::RemovalAsked => removal::asked(&mut draft, context),
            Input::WorkspaceRemoved { bytes } => removal::removed(&mut draft, *bytes, context),
            Input::WorkspaceKept { why } => removal::kept(&mut draft, why, context),
            Input::UsageReported { turn, attempt, usage } => {
                usage::handle(&mut draft, (*turn, *attempt), usage, context);
            }
            Input::JournalRestored { noticed_at, known_until } => {
                restored::handle(&mut draft, *noticed_at, *known_until, context);
            }
            Input::Woke => {}
            Input::Finished => finished::handle(&mut draft),
        }
        pause_all::follow(&mut draft, context);
        advance::advance(&mut draft, context);
        health::follow(&mut draft, context);
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
        let is_paced = rest::is_paced(&events);
        Decided { events, after, notices, is_paced }
    }
}
