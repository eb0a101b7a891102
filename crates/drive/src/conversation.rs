//! One process of the agent, from its start to its end: what comes goes to the adapter, and what that answers is done.

mod people;

use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, SyncSender};
use std::time::{Duration, Instant};

use outlast_agents::adapter::{
    Act, Adapter, Decision, End, Event, Heard, Orders, Question, Spent, Transport, Trouble,
    TroubleKind,
};

use self::people::People;
use crate::agent::{Agent, News, NotStarted};
use crate::daemon::Daemon;
use crate::desk::Desk;
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
    /// The agent's own name of the turn.
    pub(crate) turn_name: Option<String>,
}

impl Over {
    /// It ended so, and no more is known.
    pub(crate) fn with(end: End) -> Self {
        Self { end, spent: None, question: None, turn_name: None }
    }
}

/// What is around a conversation.
pub(crate) struct Around<'a> {
    /// What the adapter was made with.
    pub(crate) secret: String,
    pub(crate) meter: Option<&'a Meter>,
    pub(crate) daemon: Option<&'a Daemon>,
}

const TOO_LATE: &str =
    "No person has answered in time. Go on without it, or say that you are blocked.";

pub(crate) struct Conversation<'a> {
    adapter: Box<dyn Adapter>,
    orders: &'a Orders,
    record: &'a mut Record,
    tools: BTreeSet<String>,
    spent: Option<Spent>,
    people: People,
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
    around: Around<'a>,
    /// For what comes from its server.
    send: Option<SyncSender<News>>,
}

impl<'a> Conversation<'a> {
    pub(crate) fn new(
        adapter: Box<dyn Adapter>,
        orders: &'a Orders,
        record: &'a mut Record,
        around: Around<'a>,
    ) -> Self {
        let tools = BTreeSet::new();
        let (spent, end, cause, kill_at) = (None, None, None, None);
        let (is_server, server, send) = (false, None, None);
        Self {
            adapter,
            orders,
            record,
            tools,
            spent,
            people: People::new(orders),
            background: 0,
            end,
            cause,
            kill_at,
            terminate_at: None,
            is_server,
            server,
            around,
            send,
        }
    }

    pub(crate) fn run(mut self) -> io::Result<Over> {
        let mut launch = self.adapter.launch();
        launch.env.extend(self.orders.set_env().map(|(name, value)| (name.clone(), value.clone())));
        let (mut agent, send, news) = match Agent::start(&launch) {
            Ok(started) => started,
            Err(NotStarted::Program { code, why }) => {
                let end = End::NeverStarted { code, why };
                return Ok(Over::with(end));
            }
            Err(NotStarted::Threads(error)) => return Err(error),
        };
        self.people.desk = self.around.daemon.and_then(|it| Desk::open(it.clone(), send.clone()));
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
                Ok(News::FromDaemon(news)) => self.hear_daemon(news, &mut agent)?,
                Ok(News::Stop) => self
                    .stop(Trouble::new(TroubleKind::Cancelled, "it was told to end"), &mut agent)?,
                // Its output says why, or its end does.
                Ok(News::Deaf) => agent.close_input(),
                // What holds its output open then is a process that it has left behind.
                Err(RecvTimeoutError::Timeout) if agent.has_ended() => break,
                Err(RecvTimeoutError::Timeout) => self.tick(&mut agent)?,
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.pass_on(&mut agent)?;
        }
        let last = self.adapter.hear(Heard::End);
        self.carry_out(last, &mut agent)?;
        agent.close_input();
        let left = self.leave(&mut agent);
        if let Some(desk) = self.people.desk.take() {
            desk.flush();
        }
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
                    self.server =
                        send.map(|send| Server::new(&address, user, &self.around.secret, send));
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
        let event = self.ours(event);
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
                if let Some(meter) = self.around.meter {
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
            Event::Asked(_) => {}
            Event::Took { message } => self.people.taken.push(message),
            Event::Background { live } => self.background = live,
            Event::Decided { id, .. } => self.people.close(&id),
            // An agent that is cancelled takes its questions back; the person's answer is still wanted for the next attempt.
            Event::Withdrawn { id } if self.cause.is_none() => self.people.close(&id),
            Event::Withdrawn { .. } => {}
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
        if acts.is_empty() || self.people.questions.is_empty() {
            agent.terminate();
        } else {
            self.terminate_at = Some(now() + CANCEL_WITHIN);
        }
        self.carry_out(acts, agent)
    }

    fn tick(&mut self, agent: &mut Agent) -> io::Result<()> {
        if !self.tools.is_empty() || self.background > 0 || !self.people.questions.is_empty() {
            self.record.beat();
        }
        let is_late =
            |since: Instant| now().saturating_duration_since(since) >= self.patience_with_people();
        if let Some(open) = self.people.questions.first()
            && is_late(open.since)
            && self.end.is_none()
            && self.cause.is_none()
        {
            if self.orders.refuses {
                let (id, why) = (open.question.id.clone(), TOO_LATE.to_owned());
                // An answer in time that has not come this far yet counts.
                if let Some(news) = self.people.desk.as_ref().and_then(Desk::look) {
                    self.hear_daemon(news, agent)?;
                }
                self.decide(&id, &Decision::Deny { why }, agent)?;
            } else {
                self.stop(Trouble::new(TroubleKind::Cancelled, "it waits for a person"), agent)?;
            }
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
        let is_asking = self.end.is_none() && self.cause.is_none();
        let asked = self.people.questions.first().filter(|_| is_asking);
        let give_up_at = asked.map(|open| open.since + self.patience_with_people());
        let next = self.terminate_at.into_iter().chain(self.kill_at).chain(give_up_at).min();
        let until = next.map(|at| at.saturating_duration_since(now()));
        until.map_or(BEAT, |wait| wait.clamp(SHORTEST, BEAT))
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
            (Some(done @ End::Completed { .. }), None) => done,
            (Some(done @ End::Completed { .. }), Some(_)) if self.people.questions.is_empty() => {
                done
            }
            (_, Some(trouble)) => End::Failed { trouble },
            (Some(end), None) => end,
            (None, None) => End::Interrupted,
        };
        let turn_name = self.adapter.turn_name().map(str::to_owned);
        let question = self.people.questions.into_iter().next().map(|open| open.question);
        let question = question.filter(|_| !matches!(end, End::Completed { .. }));
        Over { end, spent: self.spent, question, turn_name }
    }
}

#[expect(clippy::disallowed_methods, reason = "patience is measured here")]
fn now() -> Instant {
    Instant::now()
}
