//! An attempt makes a call under a key, or has made it; or a person says what became of one.

use crate::handle::Draft;
use crate::{CallAsked, CallOutput, CallVerdict, Context, Exit, Fact, KeyedCall, Order};

/// How a call ended, as its caller says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallResultSaid {
    pub key: String,
    /// The number of the intent.
    pub begun: u64,
    /// `None` if nothing ran.
    pub exit: Option<Exit>,
    /// Why nothing ran; or why it was ended, if its caller did that.
    pub why: Option<String>,
    pub stdout: CallOutput,
    pub stderr: CallOutput,
}

pub(super) fn begin(
    draft: &mut Draft,
    (turn, attempt): (u32, u32),
    asked: &CallAsked,
    gone: Option<u64>,
    context: &Context,
) {
    if draft.run().weigh_call((turn, attempt), asked, gone) == CallVerdict::Make {
        let asked = Box::new(asked.clone());
        draft.push(context.now, Fact::CallBegun { turn, attempt, asked });
    }
}

pub(super) fn end(draft: &mut Draft, said: &CallResultSaid, context: &Context) {
    let CallResultSaid { key, begun, exit, why, stdout, stderr } = said.clone();
    let ended = Fact::CallEnded { key, begun, exit, why, stdout, stderr };
    if draft.run().call_objection(&ended).is_none() && !draft.run().has_ended() {
        draft.push(context.now, ended);
    }
}

/// Only for the doubt that its giver knows of, and only once.
pub(super) fn resolve(
    draft: &mut Draft,
    key: &str,
    was_made: bool,
    order: &Order,
    context: &Context,
) {
    let resolved = Fact::CallResolved { key: key.to_owned(), was_made, order: order.clone() };
    let run = draft.run();
    let is_meant = |call: &KeyedCall| call.is_unknown(run) && order.answers == Some(call.begun);
    let is_unknown = run.keyed.get(key).is_some_and(is_meant);
    let is_new = !run.orders.has(order) && !run.has_ended();
    if is_unknown && is_new && run.call_objection(&resolved).is_none() {
        draft.push(context.now, resolved);
    }
}
