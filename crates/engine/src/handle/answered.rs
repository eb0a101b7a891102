//! A person answers a run that is blocked.

use crate::handle::Draft;
use crate::{Actor, Decision, Fact, Moment, State};

pub(super) fn handle(
    draft: &mut Draft,
    decision: Decision,
    message: Option<&(String, String)>,
    moment: &Moment,
) {
    // One word is enough, also while the run cannot go on yet.
    if draft.run().state != State::Blocked || draft.run().is_released {
        return;
    }
    let is_emission = draft.run().needs_decision();
    if is_emission && decision == Decision::Reply {
        return;
    }
    let inbox = &draft.run().inbox;
    if message.is_some_and(|(id, _)| !inbox.has_had(id)) && inbox.is_full() {
        return;
    }
    if let Some((id, text)) = message.filter(|(id, _)| !draft.run().inbox.has_had(id)) {
        let (message, from, text) = (id.clone(), "user".to_owned(), text.clone());
        draft.push(moment.now, Fact::MessageReceived { message, from, text });
    }
    if is_emission && decision == Decision::Deny {
        let turn = draft.run().settling.as_ref().map_or(0, |settling| settling.turn);
        draft.push(moment.now, Fact::EmissionDenied { turn, actor: Actor::User });
    }
    draft.push(moment.now, Fact::Answered { decision, actor: Actor::User });
}
