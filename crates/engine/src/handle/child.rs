//! News of a run's children: one was made, one has ended. Brought again after every restart until the journal
//! has it, so both are safe to hear twice and in either order.

use crate::handle::Draft;
use crate::{Context, Fact, ReasonCode, RunId, Verdict, Word, children};

/// The end of a child, and what it has to say to its parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildEnd {
    pub child: RunId,
    pub key: Option<String>,
    pub state: Verdict,
    pub reason_code: Option<Word<ReasonCode>>,
    /// In words: how it ended, what it said, the last lines that it wrote.
    pub text: String,
}

pub(super) fn spawned(draft: &mut Draft, child: &RunId, key: Option<&String>, context: &Context) {
    let run = draft.run();
    if run.has_ended() || run.children.contains_key(child) {
        return;
    }
    draft.push(context.now, Fact::ChildSpawned { child: child.clone(), key: key.cloned() });
}

/// The end and the message are one append, so a reader that knows of the one has the other.
pub(super) fn settled(draft: &mut Draft, end: &ChildEnd, context: &Context) {
    // A child can be quicker than the word that it was made.
    spawned(draft, &end.child, end.key.as_ref(), context);
    let run = draft.run();
    let is_news = run.children.get(&end.child).is_some_and(Option::is_none);
    if run.has_ended() || !is_news {
        return;
    }
    let ChildEnd { child, state, reason_code, text, .. } = end.clone();
    let from = children::sender(&child);
    draft.push(context.now, Fact::ChildSettled { child, state, reason_code });
    if !draft.run().inbox.has_had(&from) {
        let (message, by) = (from.clone(), None);
        draft.push(context.now, Fact::MessageReceived { message, from, text, by });
    }
}
