//! Calls that an attempt makes under a key: the intent is in the journal before the effect, the result after it.
//!
//! A call that has ended is answered from the journal. A call whose end was not observed is made again only if its class
//! says that this does no harm. What a call wrote is no part of a run's state.

use crate::shared_map::SharedMap;
use crate::{Event, Exit, Fact, Run, ToolClass};

/// A turn makes at most so many calls under keys: their states are a part of the run.
pub const MOST_CALLS: usize = 4096;

/// No key is longer, in bytes, with the run and the turn before it.
pub const LONGEST_KEY: usize = 512;

/// So much of a command is kept for people, in bytes.
pub const LONGEST_CALL_TEXT: usize = 200;

/// The kind of agent that reads no note: it is run again as it was.
const SCRIPT: &str = "exec";

/// What an attempt wants to call, before it does.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CallAsked {
    /// With the run and the turn before it.
    pub key: String,
    pub class: ToolClass,
    /// Of what is called, so that another call under the same key is known.
    pub digest: String,
    /// What is called, for people.
    pub command: String,
    /// Chosen by the caller for this one time, so that asking again after a lost answer is harmless.
    pub ticket: String,
    /// The process that makes the call, if the kernel says which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub performer: Option<Performer>,
    /// Make the call again if it ended with another status than 0.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retries_failed: bool,
}

/// What a call wrote to one of its streams, as far as it is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CallOutput {
    /// All that it wrote.
    pub bytes: u64,
    /// What is kept, if it is text and short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The file beside the run's that has what is kept, if it is not here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Of the bytes in that file. Journals from before it was kept have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// How many bytes at the end are not kept.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// Nothing is kept, because it was not known what in it is secret.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_withheld: bool,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A process by its identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Performer {
    pub pid: u32,
    pub start: u64,
}

/// What became of a call under its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyedCall {
    pub class: ToolClass,
    pub digest: String,
    pub command: String,
    pub turn: u32,
    pub attempt: u32,
    /// The number of the event that says that it was about to be made; of the last time, if there were several.
    pub begun: u64,
    pub ticket: String,
    pub performer: Option<Performer>,
    /// How often it was about to be made.
    pub tries: u32,
    /// True if an earlier time is in doubt and the last one never started.
    pub(crate) is_doubted: bool,
    pub end: Option<CallEnd>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallEnd {
    /// The number of the event that has the result.
    pub seq: u64,
    pub exit: Exit,
}

/// The calls of a run under keys. Shared: a run is copied with every step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyedCalls(SharedMap<KeyedCall>);

/// What is to be done about a call that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallVerdict {
    /// Make it.
    Make,
    /// It was made; this is its result.
    Stored(CallEnd),
    /// This very request has its intent in the journal already.
    Begun(u64),
    /// The key belongs to a call of something else.
    Conflict,
    /// Another process of the same attempt is making it.
    Open,
    /// Its end was not observed, and making it twice may do harm.
    Doubtful,
    /// The turn has made too many.
    Full,
    /// No attempt that could make it is alive.
    NotLive,
}

impl KeyedCalls {
    pub fn get(&self, key: &str) -> Option<&KeyedCall> {
        self.0.get(key)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &KeyedCall)> {
        self.0.iter()
    }

    /// What the next turn has no use for: results of calls under keys of turns that are over, and what that turn was
    /// told.
    pub(crate) fn turn_is_over(&mut self, prefix: impl Fn(u32) -> String, turn: u32) {
        self.0.retain(|key, call| {
            !key.starts_with(&prefix(call.turn)) || (call.turn == turn && call.end.is_none())
        });
    }

    pub(crate) fn fold(&mut self, event: &Event) {
        match &event.fact {
            Fact::CallBegun { turn, attempt, asked } => {
                // A call that failed and is made again has nothing in doubt.
                let open = self.get(&asked.key).filter(|call| call.end.is_none());
                let tries = open.map_or(0, |call| call.tries) + 1;
                let call = KeyedCall {
                    class: asked.class,
                    digest: asked.digest.clone(),
                    command: asked.command.clone(),
                    turn: *turn,
                    attempt: *attempt,
                    begun: event.seq,
                    ticket: asked.ticket.clone(),
                    performer: asked.performer,
                    tries,
                    is_doubted: false,
                    end: None,
                };
                self.0.insert(&asked.key, call);
            }
            Fact::CallEnded { key, exit: Some(exit), .. } => {
                let end = CallEnd { seq: event.seq, exit: *exit };
                self.0.change(key, |call| call.end = Some(end));
            }
            Fact::CallEnded { key, exit: None, .. } => self.never_started(key),
            Fact::CallResolved { key, was_made: true, .. } => {
                let end = CallEnd { seq: event.seq, exit: Exit::Code(0) };
                self.0.change(key, |call| call.end = Some(end));
            }
            Fact::CallResolved { key, was_made: false, .. } => {
                self.0.remove(key);
            }
            _ => {}
        }
    }

    /// Nothing ran this time, so the key is free again, unless an earlier time is in doubt.
    fn never_started(&mut self, key: &str) {
        if self.get(key).is_some_and(|call| call.tries > 1) {
            self.0.change(key, |call| {
                call.is_doubted = true;
                call.tries -= 1;
            });
        } else {
            self.0.remove(key);
        }
    }
}

impl KeyedCall {
    /// True if its end was not observed and will not be: of an open call whose attempt is not this one.
    pub fn is_unknown(&self, run: &Run) -> bool {
        let is_live = run.live().is_some_and(|live| live.is(self.turn, self.attempt));
        self.end.is_none() && (self.is_doubted || !is_live)
    }
}

impl Run {
    /// What every key of a turn begins with: the same in each attempt at it.
    pub fn key_base(&self, turn: u32) -> String {
        format!("{}/t{turn}/", self.id)
    }

    /// What is to be done about a call that the attempt asks for. `gone` is the number of the intent whose process is
    /// known to have ended.
    pub fn weigh_call(
        &self,
        (turn, attempt): (u32, u32),
        asked: &CallAsked,
        gone: Option<u64>,
    ) -> CallVerdict {
        if self.live().is_none_or(|live| !live.is(turn, attempt)) {
            return CallVerdict::NotLive;
        }
        let Some(known) = self.keyed.get(&asked.key) else {
            let is_full = self.keyed.0.len() >= MOST_CALLS;
            return if is_full { CallVerdict::Full } else { CallVerdict::Make };
        };
        if known.digest != asked.digest || known.class != asked.class {
            return CallVerdict::Conflict;
        }
        match known.end {
            Some(end) if asked.retries_failed && end.exit != Exit::Code(0) => CallVerdict::Make,
            Some(end) => CallVerdict::Stored(end),
            None if known.ticket == asked.ticket && !known.is_doubted => {
                CallVerdict::Begun(known.begun)
            }
            None if !known.is_unknown(self) && gone != Some(known.begun) => CallVerdict::Open,
            None if known.class == ToolClass::Unsafe => CallVerdict::Doubtful,
            None => CallVerdict::Make,
        }
    }

    /// The key of a call that stands in the way of another attempt: a command is run again as it was and cannot be told
    /// that the call may have been made.
    pub(crate) fn call_in_doubt(&self) -> Option<&str> {
        let is_harmful = |call: &KeyedCall| call.class == ToolClass::Unsafe && call.end.is_none();
        let mut open = self.keyed.iter().filter(|(_, call)| is_harmful(call));
        open.next().map(|(key, _)| key).filter(|_| self.spec.agent.kind == SCRIPT)
    }

    /// Why this event about a call may not follow, if it may not.
    pub(crate) fn call_objection(&self, fact: &Fact) -> Option<&'static str> {
        match fact {
            Fact::CallBegun { turn, attempt, asked } => {
                let known = self.keyed.get(&asked.key);
                let is_live = self.live().is_some_and(|live| live.is(*turn, *attempt));
                match known {
                    _ if !is_live => Some("that attempt is not alive"),
                    Some(known) if known.digest != asked.digest => {
                        Some("the key belongs to another call")
                    }
                    Some(KeyedCall { end: Some(end), .. }) if end.exit == Exit::Code(0) => {
                        Some("that call has completed")
                    }
                    Some(KeyedCall { end: None, class: ToolClass::Unsafe, .. }) => {
                        Some("that call may have been made, and may do harm twice")
                    }
                    Some(_) | None => None,
                }
            }
            Fact::CallEnded { key, begun, .. } => {
                let is_open = |call: &KeyedCall| {
                    call.end.is_none() && call.begun == *begun && !call.is_doubted
                };
                let is_known = self.keyed.get(key).is_some_and(is_open);
                (!is_known).then_some("no such call is open")
            }
            Fact::CallResolved { key, order, .. } => {
                // A journal from before these orders were bound does not say which doubt they answer.
                let is_it = |call: &KeyedCall| order.answers.is_none_or(|seq| seq == call.begun);
                let is_open = |call: &KeyedCall| call.end.is_none() && is_it(call);
                let is_known = self.keyed.get(key).is_some_and(is_open);
                match is_known {
                    true if self.orders.has(order) => Some("that order has been taken already"),
                    true => None,
                    false => Some("no such call is open"),
                }
            }
            _ => None,
        }
    }
}
