//! A process inside an attempt that makes a call under a key, and what the calls of a run really did.

use outlast_engine::{CallAsked, Exit};

use super::Key;
use crate::tree::Who;

#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The attempt that it belongs to, and that attempt's main process: it ends with both.
    pub(crate) at: Key,
    pub(crate) main: Who,
    pub(crate) who: Who,
    pub(crate) asked: CallAsked,
    /// The intent whose process was gone when it last asked.
    pub(crate) gone: Option<u64>,
    pub(crate) stage: Calling,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Calling {
    /// It has no answer yet.
    Asks,
    /// The daemon has said that this intent is in the journal, and the effect is next.
    Makes(u64),
    /// The effect is there, or `None` if nothing could be started; the daemon has yet to hear of it.
    Made(u64, Option<Exit>),
    /// It has its result, or was refused.
    Over,
}

/// One effect of a call in this world, under the intent that it was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Effect {
    pub(crate) begun: u64,
    pub(crate) exit: Exit,
    /// The journal has taken it as the result.
    pub(crate) is_accepted: bool,
}
