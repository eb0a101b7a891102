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
//! that is a server, `desk` and `meter` talk to the `daemon` where there is one, `record` writes the files, `lines` cuts the output into lines, and `screen` says it for people.

mod conversation;

mod agent;
mod daemon;
mod desk;
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

use outlast_agents::adapter::{End, Ended, Event, McpServer, Orders, Trouble, TroubleKind};
use outlast_home::layout::AttemptDir;
use outlast_secrets::Secrets;

use crate::conversation::{Around, Conversation, Over};
use crate::daemon::Daemon;
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
            Ok(Waited::Stopped) => return conclude(&mut record, &Over::stopped()),
            Err(error) => return refuse(&format!("cannot wait for a signal: {error}")),
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
                break Over { end: End::Failed { trouble }, spent: None, question: None };
            }
        }
    };
    conclude(&mut record, &over)
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

fn conclude(record: &mut Record, over: &Over) -> ExitCode {
    let ended = Ended { end: over.end.clone(), spent: over.spent, question: over.question.clone() };
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
        Self { end: End::Failed { trouble }, spent: None, question: None }
    }

    fn cannot_resume(&self) -> bool {
        matches!(&self.end, End::Failed { trouble } if trouble.kind == TroubleKind::CannotResume)
    }
}
