//! What the agent says, piece by piece, put together to messages.

/// A message is over when one of another id begins, or when something else happens.
#[derive(Debug, Default)]
pub(super) struct Talk {
    id: Option<String>,
    message: String,
    last: String,
}

impl Talk {
    /// Adds a piece; returns the message before it if that is over.
    pub(super) fn add(&mut self, id: Option<&str>, words: &str) -> Option<String> {
        let finished = if self.id.as_deref() == id { None } else { self.finish() };
        self.id = id.map(str::to_owned);
        self.message.push_str(words);
        finished
    }

    pub(super) fn finish(&mut self) -> Option<String> {
        let message = std::mem::take(&mut self.message);
        if message.trim().is_empty() {
            return None;
        }
        self.last.clone_from(&message);
        Some(message)
    }

    pub(super) fn drop(&mut self) {
        self.message.clear();
    }

    /// True if there is a message, and these words have all of it.
    pub(super) fn is_in(&self, words: &str) -> bool {
        let message = self.message.trim();
        !message.is_empty() && words.contains(message)
    }

    /// The last message.
    pub(super) fn last(&self) -> &str {
        &self.last
    }
}
