//! What a driver is told, and what is read of what it left: `drive.json` out, `session.json` and `agent-end.json` in.

use std::io;
use std::path::Path;

use outlast_agents::adapter::{
    self, Caps, End, Ended, Orders, Session, Spent, Trouble, TroubleKind, Turn, driven, last_spent,
};
use outlast_engine::{
    Answer, Approvals, Decision, Exit, Impediment, Outcome, Response, Run, RunSpec, Time,
    TurnStatus, Usage,
};
use outlast_home::layout::{AttemptDir, RunDir};

use crate::world::{files, host};

/// No file of a driver that is read whole is as large as this.
const LARGEST: usize = 4 << 20;

/// Of a long last word the start is the summary.
const LONGEST_SUMMARY: usize = 16 << 10;

pub(super) fn orders(
    run: &Run,
    prompt: &str,
    run_dir: &RunDir,
    dir: &AttemptDir,
) -> io::Result<Orders> {
    let spec = &run.spec;
    let driving = &spec.driving;
    let mode = match driving.approvals {
        Approvals::Park => adapter::ApprovalMode::Park,
        Approvals::Deny => adapter::ApprovalMode::Deny,
        Approvals::Allow => adapter::ApprovalMode::Allow,
    };
    let turn = Turn {
        prompt: prompt.to_owned(),
        session: session(&run_dir.session(), &spec.agent.kind)?,
        dir: spec.dir.clone(),
        command: spec.agent.command.clone(),
        args: driving.args.clone(),
        model: driving.model.clone(),
        effort: driving.effort.clone(),
        permission_mode: driving.permission_mode.clone(),
        approvals: adapter::Approvals { mode, allow: driving.allow.clone(), granted: granted(run) },
        prompt_file: dir.prompt().to_str().map(str::to_owned),
        ..Turn::default()
    };
    Ok(Orders {
        kind: spec.agent.kind.clone(),
        turn,
        session_file: run_dir.session(),
        heartbeat: Some(dir.heartbeat()),
        caps: caps(run),
        secrets: spec.secrets.clone(),
    })
}

/// The question that a person has allowed since the attempt before this one asked it.
fn granted(run: &Run) -> Vec<String> {
    let attempt = run.attempt.as_ref().filter(|it| it.decision == Some(Decision::Approve));
    match attempt.and_then(|attempt| attempt.after.as_ref()) {
        Some(Outcome::Impeded { by: Impediment::Approval, why, .. }) => vec![why.clone()],
        _ => Vec::new(),
    }
}

/// What is left of the run's ceilings.
fn caps(run: &Run) -> Caps {
    let limits = &run.spec.limits;
    Caps {
        tokens: limits.max_tokens.map(|most| most.saturating_sub(run.spend.tokens())),
        cost_usd_micros: limits
            .max_cost_usd_micros
            .map(|most| most.saturating_sub(run.spend.cost_usd_micros)),
    }
}

/// The conversation that the last attempt has left. One that cannot be read is not taken for none: the attempt is
/// launched later.
fn session(path: &Path, kind: &str) -> io::Result<Option<String>> {
    let bytes = match files::read_regular(path, LARGEST) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let session: Session = serde_json::from_slice(&bytes).map_err(io::Error::other)?;
    Ok(Some(session).filter(|it| it.kind == kind && it.is_sound()).map(|session| session.id))
}

/// What the driver heard of the end of its turn. Fails only for what the host lacks.
///
/// The file counts if the driver left as it does after that end. What a driver that was killed had not written, its
/// agent may have.
pub(super) fn answer(spec: &RunSpec, dir: &AttemptDir, exit: Exit) -> io::Result<Answer> {
    let Some(ended) = ended(dir)? else { return Ok(Answer::None) };
    let is_done = matches!(ended.end, End::Completed { .. });
    if !matches!(exit, Exit::Code(code) if (code == 0) == is_done) {
        return Ok(Answer::None);
    }
    let usage = ended.spent.map(|spent| usage(&spent));
    Ok(match (ended.question, ended.end) {
        (_, End::Completed { text }) => Answer::Given(Box::new(claim(&text, usage))),
        (Some(question), _) => {
            let by =
                if question.tool.is_some() { Impediment::Approval } else { Impediment::Question };
            Answer::Impeded { by, until: None, why: question.text }
        }
        (None, End::Failed { trouble }) => impeded(spec, &trouble),
        (None, End::Interrupted) => Answer::None,
    })
}

fn ended(dir: &AttemptDir) -> io::Result<Option<Ended>> {
    match files::read_regular(&dir.agent_end(), LARGEST) {
        Ok(bytes) => {
            Ok(Some(serde_json::from_slice(&bytes).unwrap_or_else(|error| unusable(&error))))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        // What is there is not the driver's, and does not get better by waiting.
        Err(error) if host::failure(&error).is_none() => Ok(Some(unusable(&error))),
        Err(error) => Err(error),
    }
}

/// An end that says nothing: the turn has failed.
fn unusable(error: &dyn std::error::Error) -> Ended {
    let trouble = Trouble::new(TroubleKind::Other, format!("agent-end.json: {error}"));
    Ended { end: End::Failed { trouble }, spent: None, question: None }
}

/// The end of an agent's turn is a claim of done.
fn claim(text: &str, usage: Option<Usage>) -> Response {
    let cut = text.floor_char_boundary(LONGEST_SUMMARY);
    Response {
        status: TurnStatus::Done,
        summary: text[..cut].trim().to_owned(),
        next_task: None,
        tool_calls: Vec::new(),
        usage,
        wait: None,
    }
}

fn impeded(spec: &RunSpec, trouble: &Trouble) -> Answer {
    let until = trouble.until_ms.map(Time);
    let why = trouble.text.clone();
    match trouble.kind {
        TroubleKind::Quota | TroubleKind::Throttle | TroubleKind::Overload => {
            Answer::Impeded { by: Impediment::Provider, until, why }
        }
        TroubleKind::Auth => {
            let login = driven(&spec.agent.kind).map_or("", |it| it.login);
            let why = format!("{} has to log in again (run: {login}): {why}", spec.agent.kind);
            Answer::Impeded { by: Impediment::Login, until: None, why }
        }
        TroubleKind::ContextFull
        | TroubleKind::Refusal
        | TroubleKind::NoModel
        | TroubleKind::Silent
        | TroubleKind::CannotResume
        | TroubleKind::SessionBusy
        | TroubleKind::OwnCap
        | TroubleKind::Cancelled
        | TroubleKind::Other => Answer::Bad { why },
    }
}

/// What the attempt has used up: by its driver's last word if that left by itself, or else by the last event that says
/// so, which is a floor.
pub(super) fn used(dir: &AttemptDir, has_left: bool) -> io::Result<Option<Usage>> {
    if let Some(spent) = ended(dir)?.filter(|_| has_left).and_then(|ended| ended.spent) {
        return Ok(Some(usage(&spent)));
    }
    match files::read_tail(&dir.agent_events(), LARGEST) {
        Ok(bytes) => Ok(last_spent(&bytes).map(|spent| usage(&Spent { is_floor: true, ..spent }))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// A floor is less than was used: what it leaves open is charged as unknown.
fn usage(spent: &Spent) -> Usage {
    Usage {
        input_tokens: spent.input_tokens,
        output_tokens: spent.output_tokens,
        cached_tokens: spent.cached_tokens,
        cost_usd_micros: spent.cost_usd_micros.filter(|_| !spent.is_floor),
    }
}
