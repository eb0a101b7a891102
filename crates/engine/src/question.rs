//! What a live agent asks of a person while it waits, and what was answered.
//!
//! A question outlives the process that asked it: the attempt that follows is told what was decided.

use crate::{Asked, Decision, Run, State};

/// So many questions of one attempt are known at a time.
const MOST_QUESTIONS: usize = 32;

/// Of a longer question the start is kept, in bytes.
pub const LONGEST_QUESTION: usize = 16 << 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentQuestion {
    /// The number of the event that brought it.
    pub seq: u64,
    /// The agent's own name of it, within its attempt.
    pub id: String,
    /// The tool that the agent wants to use; `None` for a question of the model.
    pub tool: Option<String>,
    /// What it would do, or what it asks.
    pub text: String,
    pub answer: Option<AgentAnswer>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentAnswer {
    pub decision: Decision,
    /// What the person said with it.
    pub text: Option<String>,
}

impl AgentQuestion {
    pub(crate) fn kind(&self) -> Asked {
        if self.tool.is_some() { Asked::Permission } else { Asked::Question }
    }
}

/// The questions of one attempt, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentQuestions(Vec<AgentQuestion>);

impl AgentQuestions {
    pub fn iter(&self) -> impl Iterator<Item = &AgentQuestion> {
        self.0.iter()
    }

    pub fn get(&self, id: &str) -> Option<&AgentQuestion> {
        self.0.iter().find(|question| question.id == id)
    }

    /// The oldest that is not answered.
    pub fn open(&self) -> Option<&AgentQuestion> {
        self.0.iter().find(|question| question.answer.is_none())
    }

    /// True if no further question can be asked before one of these is answered.
    pub(crate) fn is_full(&self) -> bool {
        self.0.iter().filter(|question| question.answer.is_none()).count() >= MOST_QUESTIONS
    }

    /// Forgets the oldest that is answered where there is no room for both.
    pub(crate) fn ask(&mut self, question: AgentQuestion) {
        if self.0.len() >= MOST_QUESTIONS
            && let Some(at) = self.0.iter().position(|known| known.answer.is_some())
        {
            self.0.remove(at);
        }
        self.0.push(question);
    }

    pub(crate) fn withdraw(&mut self, id: &str) {
        self.0.retain(|question| question.id != id);
    }

    /// True if there was such a question.
    pub(crate) fn answer(&mut self, seq: u64, answer: AgentAnswer) -> bool {
        match self.0.iter_mut().find(|question| question.seq == seq) {
            Some(question) => {
                question.answer = Some(answer);
                true
            }
            None => false,
        }
    }
}

impl Run {
    /// What the live agent asks, if it waits for a person.
    pub fn open_question(&self) -> Option<&AgentQuestion> {
        self.live()?.asked.open()
    }

    /// The question that the last attempt ended with: the run rests until it is answered.
    pub(crate) fn parked_question(&self) -> Option<&AgentQuestion> {
        let State::Blocked { .. } = self.state else { return None };
        self.question_at_end().filter(|question| question.answer.is_none())
    }

    /// The question that the last attempt ended with, answered or not.
    pub(crate) fn question_at_end(&self) -> Option<&AgentQuestion> {
        let attempt = self.attempt.as_ref()?;
        let (outcome, _) = attempt.state.end.as_ref()?;
        attempt.asked.get(outcome.question()?)
    }
}
