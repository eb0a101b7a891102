//! What codex-acp says of its thread beside the protocol: calls of the model that it retries, and a thread that has failed.
//!
//! Its prompt ends with `end_turn` also when the last retry has failed. The error is then a message of the agent, and
//! there is no usage.

use serde_json::Value;

use super::errors;
use crate::adapter::event::{Event, Trouble, TroubleKind};
use crate::adapter::json::{at, text, yes};

const FAILED: &str = "the agent says that it is done, and its thread has failed";

#[derive(Debug, Default)]
pub(super) struct CodexThread {
    retries: u32,
    last: Option<Trouble>,
    has_failed: bool,
}

impl CodexThread {
    pub(super) fn learn(&mut self, update: &Value) -> Option<Event> {
        if let Some(status) = text(update, "_meta.codex.threadStatus.type") {
            self.has_failed = status == "systemError";
        }
        let error = at(update, "_meta.codex.error").filter(|it| it.is_object())?;
        let trouble = errors::of_thread(error);
        self.last = Some(trouble.clone());
        yes(error, "willRetry").then(|| {
            self.retries += 1;
            Event::Retries { attempt: self.retries, most: None, delay_ms: None, trouble }
        })
    }

    /// Why the thread has failed, if it has.
    pub(super) fn trouble(&self) -> Option<Trouble> {
        let unknown = || Trouble::new(TroubleKind::Overload, FAILED);
        self.has_failed.then(|| self.last.clone().unwrap_or_else(unknown))
    }
}
