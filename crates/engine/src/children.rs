//! Runs that belong to another: how many and how deep, and what a parent makes of their ends.

use serde::{Deserialize, Serialize};

use crate::{
    Amounts, Channel, Exit, ReasonCode, Room, Row, Run, RunId, Verdict, Word, limits, spawn,
};

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

/// What becomes of a run's children when the run ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnEnd {
    /// They go on.
    #[default]
    Leave,
    /// They are stopped, and the run ends after them.
    Stop,
    /// The run ends after them.
    Wait,
}

impl OnEnd {
    pub const ALL: [Self; 3] = [Self::Leave, Self::Stop, Self::Wait];
    pub const WORDS: [&'static str; 3] = [Self::Leave.word(), Self::Stop.word(), Self::Wait.word()];

    pub const fn word(self) -> &'static str {
        match self {
            Self::Leave => "leave",
            Self::Stop => "stop",
            Self::Wait => "wait",
        }
    }

    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.word() == word)
    }
}

/// What a parent knows of a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Child {
    /// Its place among the children, from 1.
    pub number: u32,
    pub key: Option<String>,
    /// Of what it was asked to do.
    pub digest: Option<String>,
    /// Which of the runs under its key it is, from 1.
    pub try_number: u32,
    /// The room that was reserved for it.
    pub granted: Room,
    pub end: Option<SettledChild>,
}

/// How a child has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettledChild {
    pub verdict: Verdict,
    pub reason_code: Option<Word<ReasonCode>>,
    /// Its place among the settlements, from 1: the order in which the parent was told.
    pub cursor: u64,
    /// What the parent's pots were charged with.
    pub charged: Amounts,
    /// False if what it used is not known, and was charged as it was reserved.
    pub known: bool,
    pub exit: Option<Exit>,
}

impl Child {
    /// How much of one pot was reserved for it.
    fn granted_of(&self, channel: Channel) -> u64 {
        self.granted.reserved().of(channel)
    }
}

impl SettledChild {
    /// True if nothing says what it did.
    pub fn is_in_doubt(&self) -> bool {
        spawn::is_unseen(self.reason_code.as_ref())
    }

    /// True if there never was such a run: the daemon died before it made it, or could not make it.
    pub fn is_unmade(&self) -> bool {
        self.reason_code.as_ref().is_some_and(|code| *code == ReasonCode::NotMade)
    }
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
        let known = self.children.get(&child.id).map(|known| known.end.is_some());
        match (child.has_ended(), known) {
            _ if self.has_ended() => None,
            (true, None | Some(false)) => Some(Unheard::Ended),
            (false, None) => Some(Unheard::Made),
            (false, Some(_)) | (true, Some(true)) => None,
        }
    }

    /// Its children that have not ended, as far as it knows.
    pub fn live_child_ids(&self) -> impl Iterator<Item = &RunId> {
        self.children.iter().filter(|(_, child)| child.end.is_none()).map(|(id, _)| id)
    }

    /// The live children that hold what this run lacks for its next attempt, and how much each holds, the most first;
    /// nothing if it lacks nothing, or not because of them.
    pub fn held_by(&self) -> Option<(Channel, Vec<(&RunId, u64)>)> {
        let channel = limits::held_by_children(self)?;
        let holds = |(id, child): (_, &Child)| {
            let amount = child.granted_of(channel);
            (amount > 0).then_some((id, amount))
        };
        let live = self.children.iter().filter(|(_, child)| child.end.is_none());
        let mut held: Vec<(&RunId, u64)> = live.filter_map(holds).collect();
        held.sort_by_key(|(_, amount)| std::cmp::Reverse(*amount));
        Some((channel, held))
    }

    /// How many of its children have not ended, as far as it knows.
    pub fn live_children(&self) -> usize {
        self.live_child_ids().count()
    }

    /// True if the run's end waits for its children.
    pub fn ends_after_children(&self) -> bool {
        let by_policy = match self.spec.tree.children {
            OnEnd::Leave => false,
            OnEnd::Stop => true,
            // A person who stops the run does not want it to wait.
            OnEnd::Wait => self.stop.is_none(),
        };
        (self.stops_tree || by_policy) && self.live_children() > 0
    }

    /// True if what is left of its children is to be stopped, because the run comes to its end.
    pub(crate) fn stops_children(&self) -> bool {
        let by_policy = self.spec.tree.children == OnEnd::Stop
            && matches!(self.state, crate::State::Finishing { .. });
        (by_policy || self.stops_tree) && !self.has_ended() && self.live_children() > 0
    }

    /// True if there is a message that ends a wait for the children before they have all ended. The end of one
    /// of them does not: an agent that wants to hear of each waits for a message.
    pub(crate) fn has_word_of_others(&self) -> bool {
        self.inbox.unread.iter().any(|message| !is_sender(&message.from))
    }
}
