//! A live agent asks a person and waits, or has taken messages in the middle of its turn.

use crate::handle::Draft;
use crate::question::LONGEST_QUESTION;
use crate::{Context, Fact};

/// What an agent asks, in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsksPerson {
    /// The agent's own name of the question.
    pub id: String,
    pub tool: Option<String>,
    pub text: String,
}

pub(super) fn handle(
    draft: &mut Draft,
    (turn, attempt): (u32, u32),
    asks: &AsksPerson,
    context: &Context,
) {
    let Some(live) = draft.run().live().filter(|live| live.is(turn, attempt)) else { return };
    if live.asked.get(&asks.id).is_some() || live.asked.is_full() {
        return;
    }
    let text = asks.text[..asks.text.floor_char_boundary(LONGEST_QUESTION)].to_owned();
    let (question, tool) = (asks.id.clone(), asks.tool.clone());
    draft.push(context.now, Fact::QuestionAsked { turn, attempt, question, tool, text });
}

/// The agent goes on without an answer: a policy refused it, or the agent has taken the question back.
pub(super) fn withdrew(
    draft: &mut Draft,
    (turn, attempt): (u32, u32),
    question: &str,
    context: &Context,
) {
    let live = draft.run().live().filter(|live| live.is(turn, attempt));
    let open = live.and_then(|live| live.asked.get(question)).filter(|it| it.answer.is_none());
    if open.is_some() {
        let question = question.to_owned();
        draft.push(context.now, Fact::QuestionWithdrawn { turn, attempt, question });
    }
}

pub(super) fn gave(
    draft: &mut Draft,
    (turn, attempt): (u32, u32),
    messages: &[u64],
    context: &Context,
) {
    let run = draft.run();
    let Some(live) = run.live().filter(|live| live.is(turn, attempt)) else { return };
    let is_news = |seq: &u64| live.may_take(*seq) && run.inbox.has(*seq);
    let messages: Vec<u64> = messages.iter().copied().filter(is_news).collect();
    if !messages.is_empty() {
        draft.push(context.now, Fact::MessagesGiven { turn, attempt, messages });
    }
}
