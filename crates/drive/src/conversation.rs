//! One process of the agent, from its start to its end: what comes goes to the adapter, and what that answers is done.

use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use outlast_agents::adapter::{
    Act, Adapter, End, Event, Heard, Orders, Question, Spent, Transport, Trouble, TroubleKind,
};

use crate::agent::{Agent, News};
use crate::http::Server;
use crate::meter::Meter;
use crate::record::{Record, Way};
use crate::screen;

/// While a tool runs the agent is not silent: so often that is said.
const BEAT: Duration = Duration::from_secs(20);
/// A process that has ended its turn and was told so has this long to leave; what it saves then, it can resume from.
const LEAVE_WITHIN: Duration = Duration::from_secs(10);
/// One that was told to end. The shim's own patience is a little longer.
const STOP_WITHIN: Duration = Duration::from_secs(3);
/// One that was asked by its protocol to end its turn.
const CANCEL_WITHIN: Duration = Duration::from_millis(1500);

/// Between two looks at a process that was killed, or at a question that a policy may answer.
const SHORTEST: Duration = Duration::from_millis(50);

/// What came of it.
#[derive(Debug)]
pub(crate) struct Over {
    pub(crate) end: End,
    pub(crate) spent: Option<Spent>,
    pub(crate) question: Option<Question>,
}

pub(crate) struct Conversation<'a> {
    adapter: Box<dyn Adapter>,
    orders: &'a Orders,
    record: &'a mut Record,
    tools: BTreeSet<String>,
    spent: Option<Spent>,
    /// The questions that nothing but a person can answer, the first of them first.
    questions: Vec<Question>,
    /// How much of the agent's work goes on beside the turn.
    background: u32,
    end: Option<End>,
    /// Why the driver has ended it, before the agent could say anything itself.
    cause: Option<Trouble>,
    /// When the process is killed if it still lives.
    kill_at: Option<Instant>,
    /// When a process is asked to end that was asked to end its turn.
    terminate_at: Option<Instant>,
    is_server: bool,
    server: Option<Server>,
    secret: String,
    meter: Option<&'a Meter>,
    /// For what comes from its server.
    send: Option<SyncSender<News>>,
}

impl<'a> Conversation<'a> {
    /// `secret` is what the adapter was made with.
    pub(crate) fn new(
        adapter: Box<dyn Adapter>,
        orders: &'a Orders,
        record: &'a mut Record,
        secret: String,
        meter: Option<&'a Meter>,
    ) -> Self {
        let tools = BTreeSet::new();
        let (spent, end, cause, kill_at) = (None, None, None, None);
        let (questions, background) = (Vec::new(), 0);
        let (is_server, server, send) = (false, None, None);
        Self {
            adapter,
            orders,
            record,
            tools,
            spent,
            questions,
            background,
            end,
            cause,
            kill_at,
            terminate_at: None,
            is_server,
            server,
            secret,
            meter,
            send,
        }
    }

    pub(crate) fn run(mut self) -> io::Result<Over> {
        let mut launch = self.adapter.launch();
        launch.env.extend(self.orders.set_env().map(|(name, value)| (name.clone(), value.clone())));
        let (mut agent, send, news) = Agent::start(&launch)?;
        (self.is_server, self.send) = (launch.transport == Transport::Http, Some(send));
        let mut outputs = 2;
        // What only the start needed; the agent's own start takes far longer.
        outlast_home::trim::give_back();
        let first = self.adapter.begin();
        self.carry_out(first, &mut agent)?;
        loop {
            match news.recv_timeout(self.patience()) {
                Ok(News::Line(line)) => self.heard(&line, &mut agent)?,
                Ok(News::Complaint(line)) => {
                    let text = String::from_utf8_lossy(&line);
                    screen::complain_as(&self.record.hide(&text));
                    let acts = self.adapter.hear_stderr(&line);
                    self.carry_out(acts, &mut agent)?;
                }
                Ok(News::Answer { call, status, body }) => {
                    self.record.line(Way::FromAgent, &body)?;
                    let acts = self.adapter.hear(Heard::Answer { call, status, body: &body });
                    self.carry_out(acts, &mut agent)?;
                }
                Ok(News::Pushed(event)) => {
                    self.record.line(Way::FromAgent, &event)?;
                    let acts = self.adapter.hear(Heard::Pushed(&event));
                    self.carry_out(acts, &mut agent)?;
                }
                // A server that says nothing more has nothing to go on with.
                Ok(News::PushedAll) => {
                    let acts = self.adapter.hear(Heard::End);
                    self.carry_out(acts, &mut agent)?;
                }
                Ok(News::End) => {
                    outputs -= 1;
                    if outputs == 0 {
                        break;
                    }
                }
                Ok(News::Stop) => self
                    .stop(Trouble::new(TroubleKind::Cancelled, "it was told to end"), &mut agent)?,
                // Its output says why, or its end does.
                Ok(News::Deaf) => agent.close_input(),
                // What holds its output open then is a process that it has left behind.
                Err(RecvTimeoutError::Timeout) if agent.has_ended() => break,
                Err(RecvTimeoutError::Timeout) => self.tick(&mut agent)?,
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let last = self.adapter.hear(Heard::End);
        self.carry_out(last, &mut agent)?;
        agent.close_input();
        let left = self.leave(&mut agent);
        let over = self.over();
        if over.end == End::Interrupted {
            let how = left.unwrap_or_else(|| "it is not known how".to_owned());
            screen::say(&format!("[outlast: the agent ended without a word on its turn ({how})]"));
        }
        Ok(over)
    }

    fn heard(&mut self, line: &[u8], agent: &mut Agent) -> io::Result<()> {
        self.record.line(Way::FromAgent, line)?;
        let acts = self.adapter.hear(Heard::Line(line));
        self.carry_out(acts, agent)
    }

    fn carry_out(&mut self, acts: Vec<Act>, agent: &mut Agent) -> io::Result<()> {
        for act in acts {
            match act {
                Act::Send(bytes) => {
                    self.record.line(Way::ToAgent, bytes.trim_ascii_end())?;
                    agent.send(bytes);
                }
                Act::CloseInput => agent.close_input(),
                Act::Tell(event) => self.told(event, agent)?,
                Act::Connect { address, user } => {
                    let send = self.send.clone();
                    self.server = send.map(|send| Server::new(&address, user, &self.secret, send));
                }
                Act::Call { call, method, path, body } => {
                    let said = format!("{method} {path} {}", body.as_deref().unwrap_or_default());
                    self.record.line(Way::ToAgent, said.trim_end().as_bytes())?;
                    self.server()?.call(call, method, &path, body);
                }
                Act::Listen { path } => self.server()?.listen(&path),
            }
        }
        Ok(())
    }

    fn told(&mut self, event: Event, agent: &mut Agent) -> io::Result<()> {
        // What comes after the end is of no turn that was asked for.
        if self.end.is_some() {
            return Ok(());
        }
        self.record.event(&event)?;
        screen::show(&event, |line| self.record.hide(line).into_owned());
        match event {
            Event::ToolStarted { id, .. } => {
                self.tools.insert(id);
            }
            Event::ToolEnded { id, .. } => {
                self.tools.remove(&id);
            }
            Event::Spent(spent) => {
                let spent = self.spent.map_or(spent, |before| spent.at_least(&before));
                self.spent = Some(spent);
                if let Some(meter) = self.meter {
                    meter.note(spent);
                }
                if let Some(why) = self.orders.caps.exceeded(&spent).filter(|_| self.end.is_none())
                {
                    self.stop(Trouble::new(TroubleKind::OwnCap, why), agent)?;
                }
            }
            // It would try for minutes, and a login does not mend itself.
            Event::Retries { trouble, .. } if trouble.kind == TroubleKind::Auth => {
                self.stop(trouble, agent)?;
            }
            Event::Asked(question) => self.questions.push(question),
            Event::Background { live } => self.background = live,
            Event::Decided { id, .. } => {
                self.questions.retain(|question| question.id != id);
            }
            Event::Ended(end) => {
                self.end.get_or_insert(end);
                self.tools.clear();
                self.kill_at.get_or_insert(now() + LEAVE_WITHIN);
                // A server does not leave by itself, nor does an agent whose turn was cut off.
                if self.is_server || self.cause.is_some() {
                    agent.terminate();
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn server(&self) -> io::Result<&Server> {
        self.server
            .as_ref()
            .ok_or_else(|| io::Error::other("the agent has not said where it listens"))
    }

    /// Ends the turn: by the protocol, then by a signal, and at last by force.
    fn stop(&mut self, trouble: Trouble, agent: &mut Agent) -> io::Result<()> {
        if self.cause.is_some() {
            return Ok(());
        }
        self.cause = Some(trouble);
        self.kill_at = Some(now() + STOP_WITHIN);
        let acts = self.adapter.cancel();
        // An agent that is asked to end its turn says what the turn has cost. One that waits for a person spends nothing
        // meanwhile; any other may.
        if acts.is_empty() || self.questions.is_empty() {
            agent.terminate();
        } else {
            self.terminate_at = Some(now() + CANCEL_WITHIN);
        }
        self.carry_out(acts, agent)
    }

    fn tick(&mut self, agent: &mut Agent) -> io::Result<()> {
        if !self.tools.is_empty() || self.background > 0 {
            self.record.beat();
        }
        // A policy would have answered by now: nothing but a person can, and no process waits for that.
        if !self.questions.is_empty() && self.end.is_none() && self.cause.is_none() {
            self.stop(Trouble::new(TroubleKind::Cancelled, "it waits for a person"), agent)?;
        }
        if self.terminate_at.take_if(|at| *at <= now()).is_some() {
            agent.terminate();
        }
        if self.kill_at.is_some_and(|at| at <= now()) {
            agent.kill();
        }
        Ok(())
    }

    /// How long nothing may come before [`Conversation::tick`].
    fn patience(&self) -> Duration {
        let next = self.terminate_at.into_iter().chain(self.kill_at).min();
        let until_kill = next.map(|at| at.saturating_duration_since(now()));
        match (until_kill, self.questions.first()) {
            (Some(wait), _) => wait.max(SHORTEST),
            // What a policy decides is answered in the same breath.
            (None, Some(_)) => SHORTEST,
            (None, None) => BEAT,
        }
    }

    /// Its output has ended; it may still be saving what it can be resumed from.
    fn leave(&self, agent: &mut Agent) -> Option<String> {
        if !agent.ends_within(LEAVE_WITHIN) {
            agent.kill();
        }
        agent.reap()
    }

    fn over(self) -> Over {
        let end = match (self.end, self.cause) {
            // What the driver ended it for is why it ended, unless it had finished by then.
            (Some(done @ End::Completed { .. }), _) => done,
            (_, Some(trouble)) => End::Failed { trouble },
            (Some(end), None) => end,
            (None, None) => End::Interrupted,
        };
        let question =
            self.questions.into_iter().next().filter(|_| !matches!(end, End::Completed { .. }));
        Over { end, spent: self.spent, question }
    }
}

#[expect(clippy::disallowed_methods, reason = "patience is measured here")]
fn now() -> Instant {
    Instant::now()
}
