//! Runs that belong to another: how many and how deep, and what a parent makes of their ends.

use crate::{Row, Run, RunId};

/// A run has at most so many children in all: each end is a message, and none may be lost for want of room.
pub const MOST_CHILDREN: usize = 1024;

/// No run has more ancestors than this.
pub const DEEPEST: usize = 16;

/// What the sender of a child's end begins with; its id follows.
const SENDER: &str = "child:";

/// Who says that a child has ended.
pub(crate) fn sender(child: &RunId) -> String {
    format!("{SENDER}{child}")
}

pub(crate) fn is_sender(from: &str) -> bool {
    from.starts_with(SENDER)
}

/// What a parent has yet to hear of one of its children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unheard {
    Made,
    Ended,
}

impl Run {
    /// What this run has yet to hear of a child that looks like this; nothing once it has ended itself.
    pub fn unheard(&self, child: &Row) -> Option<Unheard> {
        let known = self.children.get(&child.id);
        match (child.has_ended(), known) {
            _ if self.has_ended() => None,
            (true, None | Some(None)) => Some(Unheard::Ended),
            (false, None) => Some(Unheard::Made),
            (false, Some(_)) | (true, Some(Some(_))) => None,
        }
    }

    /// How many of its children have not ended, as far as it knows.
    pub fn live_children(&self) -> usize {
        self.children.values().filter(|end| end.is_none()).count()
    }

    /// True if there is a message that ends a wait for the children before they have all ended. The end of one
    /// of them does not: an agent that wants to hear of each waits for a message.
    pub(crate) fn has_word_of_others(&self) -> bool {
        self.inbox.unread.iter().any(|message| !is_sender(&message.from))
    }
}
