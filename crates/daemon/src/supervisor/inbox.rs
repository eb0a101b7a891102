//! Messages to open runs, each put into the run's journal once.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use outlast_engine::{Input, RunId};

use super::Supervisor;
use crate::notify::{Inbox, Message, Put};

impl Inbox for Supervisor {
    fn put<'a>(&'a self, run: &'a RunId, message: Message) -> BoxFuture<'a, Put> {
        self.put_message(run, message).boxed()
    }
}

impl Supervisor {
    async fn put_message(&self, id: &RunId, message: Message) -> Put {
        if self.quarantined().contains_key(id) {
            return Put::Unreadable;
        }
        let Some(handle) = self.handle(id) else { return Put::Ended };
        let before = handle.snapshot.borrow().run.clone();
        if before.inbox.has_had(&message.id) {
            return Put::There;
        }
        if before.has_ended() {
            return Put::Ended;
        }
        if before.inbox.is_full() {
            return Put::Full;
        }
        let Message { id: message, from, text } = message;
        let sent = Input::Sent { message: message.clone(), from, text, by: None };
        let _gone = handle.tell(sent).await;
        let after = handle.snapshot.borrow().run.clone();
        match after.inbox.has_had(&message) {
            true => Put::There,
            false if after.has_ended() => Put::Ended,
            false => Put::NotTaken,
        }
    }
}
