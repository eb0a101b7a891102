//! A person answers a run that is blocked, or an agent that waits: one answer to each question, and to no other than
//! the one that the person saw.

use crate::handle::Draft;
use crate::{Actor, Asked, Context, Decision, Fact, Order};

pub(super) fn handle(
    draft: &mut Draft,
    decision: Decision,
    message: Option<&(String, String)>,
    order: &Order,
    context: &Context,
) {
    let run = draft.run();
    // An answered question is open no longer, also while the run cannot go on yet.
    let Some(question) = run.asks() else { return };
    if run.orders.has(order) || order.answers.is_some_and(|seq| seq != question.seq) {
        return;
    }
    let is_emission = question.kind == Asked::Approval;
    if is_emission && decision == Decision::Reply {
        return;
    }
    if run.open_question().is_some() {
        let said = message.filter(|_| decision == Decision::Reply);
        let text = said.map(|(_, text)| text.clone());
        let (actor, order) = (Actor::User, Order { answers: Some(question.seq), ..order.clone() });
        return draft.push(context.now, Fact::Answered { decision, text, actor, order });
    }
    let news = message.filter(|(id, _)| !is_emission && !run.inbox.has_had(id));
    if news.is_some() && run.inbox.is_full() {
        return;
    }
    if let Some((id, text)) = news {
        let (message, from, text) = (id.clone(), "user".to_owned(), text.clone());
        let by = order.by.clone();
        draft.push(context.now, Fact::MessageReceived { message, from, text, by });
    }
    let (actor, order) = (Actor::User, Order { answers: Some(question.seq), ..order.clone() });
    if is_emission && decision == Decision::Deny {
        let turn = draft.run().settling.as_ref().map_or(0, |settling| settling.turn);
        let order = order.clone();
        draft.push(context.now, Fact::EmissionDenied { turn, actor, order });
    }
    draft.push(context.now, Fact::Answered { decision, text: None, actor, order });
}
