//! Notices: their words, and the delivery to each kind of sink.
//!
//! The outbox in the store holds what has to be delivered, and to which sink. `dispatch` starts a sink worker for each
//! sink with notices; a `sink_worker` delivers one notice after the other and records the result; `send` has one way per
//! kind. Nothing here changes a run, except through a message to it ([`Inbox`]). The README of this folder has a
//! drawing.

mod backoff;
mod body;
mod command;
mod desktop;
mod discord;
mod dispatch;
mod email;
mod findings;
pub(crate) mod http;
mod links;
mod ntfy;
mod other_run;
mod send;
mod sink_worker;
mod sink_workers;
mod slack;
mod target;
mod text;
mod webhook;

use futures_util::future::BoxFuture;
use outlast_engine::RunId;

pub(crate) use body::Words;
pub(crate) use dispatch::Dispatch;
pub(crate) use findings::findings;
pub(crate) use target::{known, pinned, unreadable};

/// The way to a run's inbox. A sink reaches a run by this alone.
pub(crate) trait Inbox: Send + Sync {
    /// Puts a message into a run's journal, once for each id. Answers when the journal has it, or why it does not.
    fn put<'a>(&'a self, run: &'a RunId, message: Message) -> BoxFuture<'a, Put>;
}

/// What is put into an inbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    /// Known again by this.
    pub(crate) id: String,
    pub(crate) from: String,
    pub(crate) text: String,
}

/// What became of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    /// It is in the run's journal, now or since before.
    There,
    /// The run has ended, and did not get it.
    Ended,
    Unreadable,
    Full,
    NotTaken,
}

/// What became of one try to tell a sink something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// And what the sink said to it.
    Delivered { said: String },
    /// The sink is there, and will not have this.
    Refused { why: String, retry_after_ms: Option<u64> },
    /// The sink cannot be told anything just now.
    Failed { why: String, retry_after_ms: Option<u64> },
    /// The sink wants nothing more, ever.
    Gone { why: String },
    /// No sink can ever be told this.
    Hopeless { why: String },
}

impl Outcome {
    fn failed(why: impl Into<String>) -> Self {
        Self::Failed { why: why.into(), retry_after_ms: None }
    }
}
