//! The pure core: events in, decisions out.
//!
//! No clock, file, socket, thread or randomness lives here; whatever of the world matters arrives as an
//! argument. Five functions are the whole of it:
//!
//! - [`Run::replay`] folds a journal into a [`Run`],
//! - [`Run::apply`] adds one event, or says why it is illegal,
//! - [`Run::handle`] turns one piece of news into the events that follow from it,
//! - [`Run::due`] says what has to be done, as a function of state, however that state was reached,
//! - [`Run::wake_at`] says when to ask again if nothing happens.
//!
//! There is no recovery code: after a restart the journal is replayed and `due` is asked, as always.

mod advance;
mod check;
mod due;
mod event;
mod handle;
mod health;
mod ids;
mod legal;
mod limits;
mod response;
mod retry;
mod row;
mod run;
mod spec;

pub use check::{Violation, check};
pub use due::Effect;
pub use event::{
    Actor, Event, Exit, Fact, Limit, NeverStarted, Outcome, Reason, StopMode, Survivor,
    TurnOutcome, TurnStatus,
};
pub use handle::{Custody, End, EndCause, Input, Moment, Report, Started, TreeNews, create};
pub use health::Health;
pub use ids::{BootId, RunId, Time};
pub use legal::Illegal;
pub use response::{Answer, Response, ToolCall, Usage, Wait};
pub use row::Row;
pub use run::{Attempt, Process, Run, State, StateName, Tree, Verdict, WaitCause};
pub use spec::{
    Agent, Checks, Hooks, Limits, ModelClass, OnInterrupt, OutputPolicy, Queue, Retain, Retry,
    RunSpec, Strategy, Tool, ToolClass, ToolCost, Window, Workflow, Workspace,
};
