//! Messages to a run, until a committed turn has taken them.

use std::sync::Arc;

use crate::Time;

/// More than this wait for no run.
pub const MOST_MESSAGES: usize = 256;

/// No message is longer, in bytes.
pub const LONGEST_MESSAGE: usize = 64 << 10;

/// How many ids of messages are remembered, so that one that is sent again is known.
const REMEMBERED: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The number of the event that brought it.
    pub seq: u64,
    pub id: String,
    pub from: String,
    pub text: String,
    pub at: Time,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inbox {
    /// Not yet taken, the oldest first. Shared, as the ids are: a run is copied with every step.
    pub unread: Vec<Arc<Message>>,
    ids: Arc<Vec<(String, u64)>>,
}

/// A digest of a message's text, by which one that is sent again is told from another under the same id (FNV-1a).
pub(crate) fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |digest, byte| {
        (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl Inbox {
    pub fn has_had(&self, id: &str) -> bool {
        self.ids.iter().any(|(known, _)| known == id)
    }

    /// True if a message with this id has come, and had another text.
    pub fn has_had_another(&self, id: &str, text: &str) -> bool {
        self.ids.iter().any(|(known, said)| known == id && *said != digest(text))
    }

    pub fn is_full(&self) -> bool {
        self.unread.len() >= MOST_MESSAGES
    }

    /// True if this message waits to be taken.
    pub(crate) fn has(&self, seq: u64) -> bool {
        self.unread.iter().any(|message| message.seq == seq)
    }

    /// The number of the newest; 0 if there is none.
    pub(crate) fn last(&self) -> u64 {
        self.unread.last().map_or(0, |message| message.seq)
    }

    pub(crate) fn receive(&mut self, message: Message) {
        let ids = Arc::make_mut(&mut self.ids);
        if ids.len() >= REMEMBERED {
            ids.remove(0);
        }
        ids.push((message.id.clone(), digest(&message.text)));
        self.unread.push(Arc::new(message));
    }

    /// The turn that was given these has committed: all up to a number, and some of those after it.
    pub(crate) fn take(&mut self, up_to: u64, taken: &[u64]) {
        self.unread.retain(|message| message.seq > up_to && !taken.contains(&message.seq));
    }
}
