//! The pure core: events in, decisions out.
//!
//! The engine has no clock, file, socket, thread or randomness: the caller passes what a decision needs as an argument.
//! It consists of five functions:
//!
//! - [`Run::replay`] folds a journal into a [`Run`],
//! - [`Run::apply`] adds one event, or says why it is illegal,
//! - [`Run::handle`] turns one input into the events that follow from it,
//! - [`Run::due`] says what has to be done, as a function of state, however that state was reached,
//! - [`Run::wake_at`] says when to ask again if nothing happens.
//!
//! There is no recovery code: after a restart the daemon replays the journal and asks `due`, as always.
//!
//! In reading order: events and the table that says which are legal; the run and how each event changes it; `handle`
//! and `advance`, which decide; the rules that `advance` asks, then those that follow every input; what the rules ask in
//! turn; `due`; what is derived from a run; and last the values that all of this is made of. The README of this crate
//! says how to read the rules.

mod defaults;
mod event;

mod legal;

mod run;
mod state;

mod fold;
mod fork;

mod handle;

mod advance;

mod prepare;

mod emit;
mod rewind;
mod settle;
mod snapshot;
mod verify;

mod finish;
mod rest;

mod health;
mod line;
mod pause_all;

mod calls;
mod children;
mod inbox;
mod limits;
mod notes;
mod order;
mod pots;
mod question;
mod reason;
mod retry;
mod spawn;
mod spend;
mod tools;
mod watch;

mod due;

mod audit;
mod check;
mod notice;
mod phase;
mod row;

pub mod duration;
mod errand;
mod outcome;
mod response;
mod shared_map;
mod spec;
mod step;
mod words;

pub use calls::{
    CallAsked, CallEnd, CallOutput, CallVerdict, KeyedCall, KeyedCalls, LONGEST_CALL_TEXT,
    LONGEST_KEY, MOST_CALLS, Performer,
};
pub use check::{Violation, check};
pub use children::{Child, DEEPEST, MOST_CHILDREN, OnEnd, SettledChild, Unheard};
pub use due::Effect;
pub use errand::{Errand, Hook, Purpose};
pub use event::{Event, Fact};
#[cfg(debug_assertions)]
#[doc(hidden)]
pub use fold::folded;
pub use fork::{CannotFork, Fork, Planted, SessionMark, decide_fork, prefix, refuse_fork};
pub use handle::{
    AsksPerson, Budget, CallResultSaid, CannotRaise, CannotRecover, ChildEnd, Context, Custody,
    Decided, End, Exceeded, Found, FoundAttempt, FoundEnd, Input, More, Nearing, PauseAll, Raise,
    Report, Slot, Started, TreeNews, create, decide_new, recover,
};
pub use health::{Condition, Seen};
pub use inbox::{Inbox, LONGEST_MESSAGE, MOST_MESSAGES, Message};
pub use legal::Illegal;
pub use line::Line;
pub use notes::{AgentNote, AgentNotes, LONGEST_NOTE, Noted};
pub use notice::{Notice, NoticeKind};
pub use order::{Asked, By, LONGEST_ORDER_ID, Order, Orders, Question, Taken, Verb};
pub use outcome::Outcome;
pub use outlast_words::{
    BlockReason, BootId, Code, EndCause, Exit, Health, Impediment, Limit, NeverStarted, ReasonCode,
    RunId, SecretRules, StateName, Strategy, Survivor, Time, Verdict, WaitCause, WaitWord, Wants,
    Window, Word,
};
pub use pots::{Amounts, Channel, Held, Pot, Room, Settlement};
pub use question::{AgentAnswer, AgentQuestion, AgentQuestions, LONGEST_QUESTION};
pub use reason::{Actor, Reason};
pub use response::{Answer, Response, ToolCall, Usage, Wait};
pub use rewind::{AskedRestore, CannotRestore, WentBack};
pub use row::{Row, cut};
pub use run::{
    Attempt, CallMade, CallOutcome, CallResult, Claim, Clock, CompletedCall, Counters, FailedCheck,
    Preparation, Previous, Recovered, Removal, Run, Settling, WorkspaceState,
};
pub use snapshot::{Cause, LeftOut, Made, Point, Snapshot, SnapshotRules, Snapshots, Undo};
pub use spawn::{Admission, Again, CannotSpawn, Lost, RoomWanted, SpawnAsk, Want};
pub use spec::{
    After, Agent, Approvals, Checks, Driving, HealthRules, Hooks, KeptInput, Limits, ModelClass,
    OnInterrupt, Origin, OutputPolicy, Queue, Retain, Retry, RunSpec, SessionRules, Start, Tool,
    ToolClass, ToolCost, TreeRules, Unreported, Workflow, Workspace,
};
pub use spend::{Charge, Half, Known, Reserved, Spend};
pub use state::State;
pub use step::{Process, Step, StepState, Tree};
pub use tools::unavailable;
pub use watch::{
    Heartbeat, MOST_CHARS, MOST_LINES, Matched, SHORTEST_HEARTBEAT_MS, STRIKES, TELLINGS,
    WINDOW_MS, Watch,
};
pub use words::{
    Decision, OfferedTool, RefusedCall, StopMode, TurnOutcome, TurnStatus, UnavailableTool,
};
