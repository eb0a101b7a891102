//! News of a run's children: one was made, one has ended. Brought again after every restart until the journal
//! has it, so both are safe to hear twice and in either order.

use crate::handle::Draft;
use crate::{
    Admission, Amounts, Context, Exit, Fact, ReasonCode, Room, RunId, Settlement, SpawnAsk,
    Verdict, Word, children,
};

/// The end of a child, and what it has to say to its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildEnd {
    pub child: RunId,
    pub key: Option<String>,
    pub state: Verdict,
    pub reason_code: Option<Word<ReasonCode>>,
    /// What it was given, in case its parent does not know of it.
    pub granted: Room,
    /// What it and those below it have used; `None` if it cannot be read.
    pub settlement: Option<Settlement>,
    pub exit: Option<Exit>,
    /// What it said last, cut.
    pub summary: String,
    /// In words: how it ended, what it said, the last lines that it wrote.
    pub text: String,
}

/// The child is asked for. Its room is reserved before it is made.
pub(super) fn asked(draft: &mut Draft, ask: &SpawnAsk, context: &Context) {
    let Ok(Admission::New { granted, try_number }) = draft.run().admit(ask) else { return };
    let spawned = Fact::ChildSpawned {
        child: ask.child.clone(),
        key: ask.key.clone(),
        digest: Some(ask.digest.clone()),
        try_number,
        granted,
    };
    draft.push(context.now, spawned);
}

/// A child exists that this run does not know of: its journal is from before room was reserved, or an older one was
/// put back. What the child was given counts as reserved, whether or not it is free.
pub(super) fn spawned(
    draft: &mut Draft,
    child: &RunId,
    key: Option<&String>,
    granted: &Room,
    context: &Context,
) {
    let run = draft.run();
    if run.has_ended() || run.children.contains_key(child) {
        return;
    }
    let before = key.and_then(|key| run.of_key(key)).map_or(0, |(_, last)| last.try_number);
    let (child, key, digest) = (child.clone(), key.cloned(), None);
    let (try_number, granted) = (before + 1, *granted);
    draft.push(context.now, Fact::ChildSpawned { child, key, digest, try_number, granted });
}

/// The end and the message are one append, so a reader that knows of the one has the other.
pub(super) fn settled(draft: &mut Draft, end: &ChildEnd, context: &Context) {
    // A child can be quicker than the word that it was made.
    spawned(draft, &end.child, end.key.as_ref(), &end.granted, context);
    let ChildEnd { child, state, reason_code, text, exit, summary, .. } = end.clone();
    let Some(reserved) = reserved(draft, &child) else { return };
    let (charged, known) = Settlement::charged(end.settlement.as_ref(), reserved);
    let from = children::sender(&child);
    let cursor = draft.run().held.settled + 1;
    let spend_unknown = !known;
    let settled = Fact::ChildSettled {
        child,
        state,
        reason_code,
        cursor,
        charged,
        spend_unknown,
        exit,
        summary,
    };
    draft.push(context.now, settled);
    if !draft.run().inbox.has_had(&from) {
        let (message, by) = (from.clone(), None);
        draft.push(context.now, Fact::MessageReceived { message, from, text, by });
    }
}

/// There is no such run, and there never will be: all that was reserved for it is free again, and no message says so.
pub(super) fn unmade(draft: &mut Draft, child: &RunId, context: &Context) {
    if reserved(draft, child).is_none() {
        return;
    }
    let settled = Fact::ChildSettled {
        child: child.clone(),
        state: Verdict::Failed,
        reason_code: Some(ReasonCode::NotMade.into()),
        cursor: draft.run().held.settled + 1,
        charged: Amounts::default(),
        spend_unknown: false,
        exit: None,
        summary: String::new(),
    };
    draft.push(context.now, settled);
}

/// What is reserved for a child that has not settled yet.
fn reserved(draft: &Draft, child: &RunId) -> Option<Amounts> {
    let run = draft.run();
    let known = run.children.get(child).filter(|_| !run.has_ended())?;
    known.end.is_none().then(|| known.granted.reserved())
}
