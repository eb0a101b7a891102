//! What is between the agent and people: its questions and their answers, and messages for its turn.

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use outlast_agents::adapter::{Decision, Event, Orders, Question};
use outlast_wire::api::{AgentAsks, Answer, TurnAnswer, TurnMessage, TurnNews};

use super::{Conversation, now};
use crate::agent::Agent;
use crate::desk::Desk;
use crate::screen;

/// A question that waits for a person.
pub(super) struct Open {
    /// Under a name of ours: an agent may use its own again, or put a secret into it.
    pub(super) question: Question,
    /// The agent's own name.
    pub(super) own: String,
    pub(super) since: Instant,
}

const DENIED: &str = "A person has not allowed it. Go on without it, or say that you are blocked.";

pub(super) struct People {
    /// The questions that nothing but a person can answer, the first of them first.
    pub(super) questions: Vec<Open>,
    /// How often the agent has used each name for a question.
    pub(super) names: BTreeMap<String, u32>,
    /// What a person has allowed in words without secrets, as far as it was not used.
    pub(super) granted: Vec<String>,
    /// Messages that the agent could not be given yet.
    pub(super) waiting: Vec<TurnMessage>,
    /// Messages that it was given, by their numbers, and those of them that it has taken.
    pub(super) given: Vec<u64>,
    pub(super) taken: Vec<u64>,
    /// Where the daemon is told of the questions and answers them; `None` without a daemon.
    pub(super) desk: Option<Desk>,
}

impl People {
    pub(super) fn new(orders: &Orders) -> Self {
        Self {
            questions: Vec::new(),
            names: BTreeMap::new(),
            granted: orders.turn.approvals.granted.clone(),
            waiting: Vec::new(),
            given: Vec::new(),
            taken: Vec::new(),
            desk: None,
        }
    }

    pub(super) fn close(&mut self, id: &str) {
        self.questions.retain(|open| open.question.id != id);
    }
}

impl Conversation<'_> {
    /// The event in words that may be written: without secrets, and with names of questions that are used once.
    pub(super) fn ours(&mut self, event: Event) -> Event {
        match event {
            Event::Asked(Question { id: own, tool, text }) => {
                let uses = self.people.names.entry(own.clone()).or_default();
                *uses += 1;
                let id = self.record.hide(&own).into_owned();
                let id = if *uses > 1 { format!("{id}#{uses}") } else { id };
                let text = self.record.hide_cut(&text);
                let tool = tool.map(|tool| self.record.hide_cut(&tool));
                let question = Question { id, tool, text };
                self.people.questions.push(Open { question: question.clone(), own, since: now() });
                Event::Asked(question)
            }
            Event::Decided { id: own, decision } => {
                let open = self.people.questions.iter().find(|open| open.own == own);
                let allowed = open.filter(|_| decision == Decision::Allow);
                // The adapter has used it up, or a person has said so now.
                if let Some(at) = allowed.and_then(|open| {
                    self.people.granted.iter().position(|it| *it == open.question.text)
                }) {
                    self.people.granted.remove(at);
                }
                let id = open.map_or(own, |open| open.question.id.clone());
                Event::Decided { id, decision }
            }
            Event::Withdrawn { id: own } => {
                let open = self.people.questions.iter().find(|open| open.own == own);
                Event::Withdrawn { id: open.map_or(own, |open| open.question.id.clone()) }
            }
            Event::ToolStarted { id, name, about } => {
                let about = self.record.hide_cut(&about);
                Event::ToolStarted { id, name, about }
            }
            event => event,
        }
    }

    /// How long a question may wait for a person. Without a daemon no answer can come.
    pub(super) fn patience_with_people(&self) -> Duration {
        match self.people.desk {
            Some(_) => Duration::from_millis(self.orders.patience_ms),
            None => Duration::ZERO,
        }
    }

    /// Answers from people, and messages for the turn.
    pub(super) fn hear_daemon(&mut self, news: TurnNews, agent: &mut Agent) -> io::Result<()> {
        for TurnAnswer { question, answer } in news.answers {
            let decision = match answer {
                Answer::Approve => Decision::Allow,
                Answer::Deny => Decision::Deny { why: DENIED.to_owned() },
                Answer::Text(text) => Decision::Text { text },
            };
            self.decide(&question, &decision, agent)?;
        }
        for message in news.messages {
            let is_known = self.people.waiting.iter().any(|it| it.seq == message.seq)
                || self.people.given.contains(&message.seq);
            if !is_known {
                self.people.waiting.push(message);
            }
        }
        Ok(())
    }

    pub(super) fn decide(
        &mut self,
        id: &str,
        decision: &Decision,
        agent: &mut Agent,
    ) -> io::Result<()> {
        let Some(open) = self.people.questions.iter().find(|open| open.question.id == id) else {
            return Ok(());
        };
        let own = open.own.clone();
        let acts = self.adapter.decide(&own, decision);
        self.carry_out(acts, agent)?;
        // An agent that no longer waits for it is not asked about it again.
        self.people.close(id);
        Ok(())
    }

    /// A question with a secret in it was granted in the words that the journal has.
    fn keep_what_was_granted(&mut self, agent: &mut Agent) -> io::Result<()> {
        let open = self.people.questions.iter().map(|open| &open.question);
        let mut ids = Vec::new();
        for question in open.filter(|it| it.tool.is_some() && it.is_whole()) {
            if let Some(at) = self.people.granted.iter().position(|it| *it == question.text) {
                self.people.granted.remove(at);
                ids.push(question.id.clone());
            }
        }
        for id in ids {
            self.decide(&id, &Decision::Allow, agent)?;
        }
        Ok(())
    }

    /// Gives the agent the messages that it can take now, and tells the daemon what is open.
    pub(super) fn pass_on(&mut self, agent: &mut Agent) -> io::Result<()> {
        self.keep_what_was_granted(agent)?;
        if self.people.desk.is_none() {
            return Ok(());
        }
        let is_open = self.end.is_none() && self.cause.is_none();
        if is_open {
            for message in std::mem::take(&mut self.people.waiting) {
                let words = match message.from.as_str() {
                    "user" => message.text.clone(),
                    from => format!("Message from {from}:\n\n{}", message.text),
                };
                match self.adapter.steer(message.seq, &words) {
                    Some(acts) => {
                        let said = format!("[message from {}: {}]", message.from, message.text);
                        screen::say(&self.record.hide(&said));
                        self.people.given.push(message.seq);
                        self.carry_out(acts, agent)?;
                    }
                    None => self.people.waiting.push(message),
                }
            }
        }
        let asks = |open: &Open| AgentAsks {
            id: open.question.id.clone(),
            tool: open.question.tool.clone(),
            text: open.question.text.clone(),
        };
        // Once the turn is over nothing is asked and nothing is taken back: the end of the attempt settles what is open.
        let questions = is_open.then(|| self.people.questions.iter().map(asks).collect());
        let left = self.people.given.iter().filter(|seq| !self.people.taken.contains(seq)).copied();
        let left: Vec<u64> = left.chain(self.people.waiting.iter().map(|it| it.seq)).collect();
        let taken = self.people.taken.clone();
        let Some(desk) = &self.people.desk else { return Ok(()) };
        for asks in desk.tell(questions, taken, left) {
            let how = if asks.tool.is_some() { "--approve, or --deny" } else { "TEXT" };
            screen::say(&format!(
                "[outlast: it waits for a person: outlast answer {} {how}]",
                desk.run()
            ));
        }
        Ok(())
    }
}
