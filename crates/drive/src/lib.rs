//! The driver: the small process that a shim starts for an agent that speaks a protocol.
//!
//! The driver starts the agent's CLI as its child and speaks to it. What it hears, it writes to the attempt's directory:
//! `agent.jsonl` (events in our words), `transcript.jsonl` (every line as it was), `session.json` of the run (as soon as
//! the agent has named its conversation) and `agent-end.json` (how the turn ended). What people read goes to standard
//! output. No daemon is needed for any of that, so a daemon's death stops no turn.
//!
//! The driver knows no vendor: an adapter of `outlast_agents` says what each line means and what to answer. It keeps no
//! database and no runtime. Threads bring what comes, and one loop decides.
//!
//! In reading order: `conversation` is one process of the agent from start to end, `agent` is that process, `http` is for one
//! that is a server, `fork` is for one that goes on with a copy of another, `desk` and `meter` talk to the `daemon` where there is one, `record` writes the files, `lines` cuts the output into lines, and `screen` says it for people.

mod conversation;

mod agent;
mod daemon;
mod desk;
mod fork;
mod http;
mod lines;
mod mcp;
mod meter;
mod minute;
mod record;
mod screen;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use outlast_agents::adapter::{
    End, Ended, Event, McpServer, Orders, SessionMark, Trouble, TroubleKind, Turn,
};
use outlast_home::layout::AttemptDir;
use outlast_secrets::Secrets;

use crate::conversation::{Around, Conversation, Over};
use crate::daemon::Daemon;
use crate::fork::Place;
use crate::meter::Meter;
use crate::minute::Waited;
use crate::record::Record;

/// The attempt's own files could not be read or made; nothing was started.
const EXIT_BAD_FILES: u8 = 65;
/// The turn did not end well; `agent-end.json` says how.
const EXIT_NOT_DONE: u8 = 1;

/// Drives the agent of the attempt in `dir` through one turn.
pub fn main(dir: &Path, env: &[(OsString, OsString)]) -> ExitCode {
    let dir = AttemptDir(dir.to_owned());
    let orders = match read(&dir) {
        Ok(orders) => orders,
        Err(why) => return refuse(&why),
    };
    let mut turn = orders.turn.clone();
    turn.mcp = mcp::server(env);
    if turn.mcp.is_some() {
        turn.approvals.allow.extend(McpServer::harmless());
    }
    turn.own_dir = dir.0.to_str().map(str::to_owned);
    turn.secret = match secret() {
        Ok(secret) => secret,
        Err(error) => return refuse(&format!("no random bytes: {error}")),
    };
    let set_env = orders.set_env().map(|(name, value)| (OsStr::new(name), OsStr::new(value)));
    let vars = env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
    let vars = vars.chain(set_env);
    let secrets = Secrets::of(&orders.secrets, vars, &[&turn.secret]);
    let mut record = match Record::open(&dir, &orders, secrets) {
        Ok(record) => record,
        Err(error) => return refuse(&format!("the attempt's files cannot be written: {error}")),
    };
    let daemon = Daemon::of(env);
    let meter = daemon.clone().and_then(Meter::start);
    if let Some(why) = &orders.begins
        && let Err(error) = announce(&mut record, why)
    {
        return refuse(&format!("the attempt's files cannot be written: {error}"));
    }
    if turn.session.is_some() && orders.resumes_next_minute() {
        match minute::wait(&record, &orders.kind) {
            Ok(Waited::Through) => {}
            Ok(Waited::Stopped) => return conclude(&mut record, &Over::stopped(), None),
            Err(error) => return refuse(&format!("cannot wait for a signal: {error}")),
        }
    }
    let var = |name: &str| {
        let set = orders.set_env().find(|(it, _)| *it == name).map(|(_, value)| value.clone());
        let own = || env.iter().rfind(|(it, _)| it == name).map(|(_, value)| value);
        set.or_else(|| Some(own()?.to_str()?.to_owned()))
    };
    let place = Place { forks: orders.forks(), var: &var, dir: &orders.turn.dir };
    let mut copy = None;
    if let Some(mark) = turn.fork.clone() {
        let random = secret().map_err(|error| format!("no random bytes: {error}"));
        match random.and_then(|random| fork::prepare(&place, &mark, uuid(&random))) {
            Ok(cut) => {
                turn.session = Some(cut.as_ref().map_or(mark.id, |cut| cut.id.clone()));
                copy = cut;
            }
            Err(why) => {
                if let Err(error) = begin_afresh(&mut record, &mut turn, &orders, &why) {
                    return refuse(&format!("the attempt's files cannot be written: {error}"));
                }
            }
        }
    }
    let over = loop {
        turn.spent_before = record.spent_before(turn.session.as_deref());
        turn.session_cost_usd_micros = turn.spent_before.and_then(|spent| spent.cost_usd_micros);
        let adapter = match orders.adapter(turn.clone()) {
            Ok(adapter) => adapter,
            Err(why) => return refuse(&format!("agents.{}: {why}", orders.kind)),
        };
        let around =
            Around { secret: turn.secret.clone(), meter: meter.as_ref(), daemon: daemon.as_ref() };
        match Conversation::new(adapter, &orders, &mut record, around).run() {
            Ok(over) if turn.fork.is_some() && over.refuses_fork(record.is_in_conversation()) => {
                let why = over.words().unwrap_or("the agent has not taken the copy").to_owned();
                if let Err(error) = begin_afresh(&mut record, &mut turn, &orders, &why) {
                    return refuse(&format!("the attempt's files cannot be written: {error}"));
                }
            }
            // Once: a new conversation, which has the prompt and the note in it.
            Ok(over) if over.cannot_resume() && turn.session.is_some() => {
                screen::say(&format!(
                    "[outlast: {} cannot go on with its conversation; a new one begins]",
                    orders.kind
                ));
                turn.session = None;
                record.leave_conversation();
            }
            Ok(over) => break over,
            Err(error) => {
                let trouble = Trouble::new(
                    TroubleKind::Other,
                    format!("cannot run {}: {error}", orders.kind),
                );
                break Over::with(End::Failed { trouble });
            }
        }
    };
    drop(copy);
    let mark =
        record.conversation().and_then(|it| fork::mark(&place, it, over.turn_name.as_deref()));
    conclude(&mut record, &over, mark)
}

fn read(dir: &AttemptDir) -> Result<Orders, String> {
    let path = dir.drive();
    let bytes = outlast_home::regular::read(&path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    serde_json::from_slice(&bytes).map_err(|error| format!("{}: {error}", path.display()))
}

/// A password that no other process knows.
fn secret() -> std::io::Result<String> {
    let mut bytes = [0; 24];
    let got = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
    if got < bytes.len() {
        return Err(std::io::Error::other("too few"));
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The conversation that begins is not the run's first.
fn announce(record: &mut Record, why: &str) -> std::io::Result<()> {
    let event = Event::NewConversation { why: why.to_owned() };
    record.event(&event)?;
    screen::show(&event, str::to_owned);
    Ok(())
}

/// A copy of another conversation cannot be had: once, a new one, whose prompt says what the turns before have left.
fn begin_afresh(
    record: &mut Record,
    turn: &mut Turn,
    orders: &Orders,
    why: &str,
) -> std::io::Result<()> {
    let why = record.hide(why).into_owned();
    announce(record, &why)?;
    (turn.session, turn.fork) = (None, None);
    turn.prompt = orders.prompt_afresh.clone().unwrap_or_else(|| turn.prompt.clone());
    record.begin_afresh(&why);
    Ok(())
}

/// Random bytes in the form that some agents want the name of a conversation in.
fn uuid(random: &str) -> String {
    let part = |range: std::ops::Range<usize>| random.get(range).unwrap_or_default();
    format!("{}-{}-4{}-8{}-{}", part(0..8), part(8..12), part(12..15), part(15..18), part(18..30))
}

fn conclude(record: &mut Record, over: &Over, mark: Option<SessionMark>) -> ExitCode {
    let session = mark.filter(|_| matches!(over.end, End::Completed { .. }));
    let (spent, question) = (over.spent, over.question.clone());
    let ended = Ended { end: over.end.clone(), spent, question, session };
    if let Err(error) = record.end(&ended) {
        return refuse(&format!("how the turn ended cannot be written: {error}"));
    }
    match &over.end {
        End::Completed { .. } => ExitCode::SUCCESS,
        End::Failed { trouble } => {
            screen::say(&record.hide(&format!("[outlast: the turn failed: {}]", trouble.text)));
            ExitCode::from(EXIT_NOT_DONE)
        }
        End::NeverStarted { why, .. } => {
            screen::say(&record.hide(&format!("[outlast: the agent could not be started: {why}]")));
            ExitCode::from(EXIT_NOT_DONE)
        }
        End::Interrupted => ExitCode::from(EXIT_NOT_DONE),
    }
}

fn refuse(why: &str) -> ExitCode {
    screen::complain(why);
    ExitCode::from(EXIT_BAD_FILES)
}

impl Over {
    fn stopped() -> Self {
        let trouble = Trouble::new(TroubleKind::Cancelled, "it was told to end");
        Self::with(End::Failed { trouble })
    }

    /// True if the agent did not take the copy: it says so, or has ended without a name for a conversation.
    fn refuses_fork(&self, is_in_conversation: bool) -> bool {
        self.cannot_resume() || (self.end == End::Interrupted && !is_in_conversation)
    }

    fn words(&self) -> Option<&str> {
        let End::Failed { trouble } = &self.end else { return None };
        Some(trouble.text.as_str()).filter(|text| !text.is_empty())
    }

    fn cannot_resume(&self) -> bool {
        matches!(&self.end, End::Failed { trouble } if trouble.kind == TroubleKind::CannotResume)
    }
}
