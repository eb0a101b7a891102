//! News in, events out. One file for each kind of news.
//!
//! Whatever news brings, the answer goes through a [`Draft`]: each event is applied as it is written, so
//! that what follows is decided on the state it will really meet, and so that nothing illegal can be
//! answered.

mod adopted;
mod answered;
mod asked;
mod called;
mod child;
mod created;
mod finished;
mod matched;
mod noted;
mod opened;
mod paused;
mod predecessor;
mod raised;
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
    AgentNote, BootId, By, CallAsked, Decision, Event, Fact, Illegal, Matched, Notice, Order,
    Point, Room, Run, RunId, Seen, SpawnAsk, Step, StopMode, Time, Usage, Verdict, advance, health,
    line, pause_all, rest, rewind,
};

use stop::Scope;

pub use asked::AsksPerson;
pub use called::CallResultSaid;
pub use child::ChildEnd;
pub use created::{create, decide_new};
pub use raised::{CannotRaise, More, Raise};
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
    /// The build that decides; `None` where there is one only.
    pub build: Option<&'static str>,
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
        let (booted_at_ms, word, build) = (None, None, None);
        Self { now, boot, booted_at_ms, slot, pause_all, word, budget, nearing, seen, build }
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
    /// With all of its children, and with theirs.
    StopTreeAsked {
        mode: StopMode,
        order: Order,
    },
    PauseAsked(Order),
    ResumeAsked(Order),
    /// A person gives the run more room; one that is exhausted goes on.
    RaiseAsked {
        raise: Box<Raise>,
        order: Order,
    },
    /// A person wants the workspace as the end of a turn left it.
    RestoreAsked {
        back_to: u32,
        point: Box<Point>,
        order: Order,
    },
    /// The run has ended after which this one is to start.
    PredecessorEnded {
        run: RunId,
        state: Verdict,
    },
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
    /// A live agent no longer waits for an answer to this.
    Withdrew {
        turn: u32,
        attempt: u32,
        question: String,
    },
    /// A live agent has taken these messages in the middle of its turn.
    Gave {
        turn: u32,
        attempt: u32,
        messages: Vec<u64>,
    },
    /// A live attempt is about to make a call under a key.
    CallBegan {
        turn: u32,
        attempt: u32,
        asked: Box<CallAsked>,
        /// The number of the intent under this key whose process has ended.
        gone: Option<u64>,
    },
    /// The caller says how its call ended.
    CallEnded(Box<CallResultSaid>),
    /// A live attempt leaves a note.
    Noted(Box<AgentNote>),
    /// A person wants to type into the terminal of a live attempt.
    TerminalAsked {
        turn: u32,
        attempt: u32,
        by: Option<By>,
    },
    /// A person says what became of a call whose end was not observed.
    CallResolved {
        key: String,
        was_made: bool,
        /// It answers the intent that is in doubt.
        order: Order,
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
    /// A client asks for a child of this run.
    SpawnAsked(Box<SpawnAsk>),
    /// Another run was made as this one's child.
    ChildMade {
        child: RunId,
        key: Option<String>,
        granted: Room,
    },
    /// A child that was meant to be made does not exist, and is not being made.
    ChildUnmade {
        child: RunId,
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
            Input::StopAsked { mode, order } => {
                stop::handle(&mut draft, *mode, Scope::Run, order, context);
            }
            Input::StopTreeAsked { mode, order } => {
                stop::handle(&mut draft, *mode, Scope::Tree, order, context);
            }
            Input::PauseAsked(order) => paused::handle(&mut draft, order, context),
            Input::ResumeAsked(order) => resumed::handle(&mut draft, order, context),
            Input::RaiseAsked { raise, order } => {
                raised::handle(&mut draft, raise, order, context);
            }
            Input::RestoreAsked { back_to, point, order } => {
                rewind::asked(&mut draft, *back_to, point, order, context);
            }
            Input::PredecessorEnded { run, state } => {
                predecessor::handle(&mut draft, run, *state, context);
            }
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
            Input::Withdrew { turn, attempt, question } => {
                asked::withdrew(&mut draft, (*turn, *attempt), question, context);
            }
            Input::Gave { turn, attempt, messages } => {
                asked::gave(&mut draft, (*turn, *attempt), messages, context);
            }
            Input::CallBegan { turn, attempt, asked, gone } => {
                called::begin(&mut draft, (*turn, *attempt), asked, *gone, context);
            }
            Input::TerminalAsked { turn, attempt, by } => {
                opened::handle(&mut draft, (*turn, *attempt), by.as_ref(), context);
            }
            Input::Noted(note) => noted::handle(&mut draft, note, context),
            Input::CallEnded(said) => called::end(&mut draft, said, context),
            Input::CallResolved { key, was_made, order } => {
                called::resolve(&mut draft, key, *was_made, order, context);
            }
            Input::Matched { turn, attempt, matched } => {
                matched::lines(&mut draft, (*turn, *attempt), matched, context);
            }
            Input::HeartbeatDue { turn, attempt, output_bytes } => {
                matched::heartbeat(&mut draft, (*turn, *attempt), *output_bytes, context);
            }
            Input::SpawnAsked(ask) => child::asked(&mut draft, ask, context),
            Input::ChildMade { child, key, granted } => {
                child::spawned(&mut draft, child, key.as_ref(), granted, context);
            }
            Input::ChildUnmade { child } => child::unmade(&mut draft, child, context),
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

    pub(crate) fn into_decided(self) -> Decided {
        let Self { run: after, events, notices } = self;
        let is_paced = rest::is_paced(&events);
        Decided { events, after, notices, is_paced }
    }
}
