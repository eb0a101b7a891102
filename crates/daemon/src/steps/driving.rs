//! What a driver is told, and what is read of what it left: `drive.json` out, `agent-end.json` and `agent.jsonl` in.

use std::io;

use outlast_agents::adapter::{
    self, Caps, End, Ended, Orders, Spent, Trouble, TroubleKind, Turn, decided_questions,
    last_spent,
};
use outlast_engine::{
    AgentQuestion, Answer, Approvals, Decision, Exit, Impediment, Outcome, Response, Run, RunSpec,
    Time, TurnStatus, Usage,
};
use outlast_home::layout::{AttemptDir, RunDir};

use crate::conversation::Past;
use crate::request::Request;
use crate::world::{files, host};

/// No file of a driver that is read whole is as large as this.
const LARGEST: usize = 4 << 20;

/// Of a long last word the start is the summary.
const LONGEST_SUMMARY: usize = 16 << 10;

pub(super) fn orders(
    run: &Run,
    request: &Request,
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
        prompt: request.prompt.clone(),
        session: request.conversation.session.clone(),
        fork: request.conversation.fork.clone(),
        dir: spec.dir.clone(),
        command: spec.agent.command.clone(),
        args: driving.args.clone(),
        model: driving.model.clone(),
        effort: driving.effort.clone(),
        permission_mode: driving.permission_mode.clone(),
        approvals: adapter::Approvals {
            mode,
            allow: driving.allow.clone(),
            granted: granted(run, run_dir)?,
        },
        prompt_file: dir.prompt().to_str().map(str::to_owned),
        ..Turn::default()
    };
    Ok(Orders {
        kind: spec.agent.kind.clone(),
        turn,
        session_file: run_dir.session(),
        turn_number: run.attempt.as_ref().map(|attempt| attempt.turn),
        begins: match &request.conversation.past {
            Past::Left { why } => Some(why.clone()),
            Past::Whole | Past::ThisTurn | Past::Copied { .. } => None,
        },
        heartbeat: Some(dir.heartbeat()),
        caps: caps(run),
        patience_ms: driving.timeout_ms.or(driving.patience_ms).unwrap_or(PATIENCE_MS),
        refuses: driving.timeout_ms.is_some(),
        // Trying again makes the same of it.
        declared: outlast_agents::declared(driving)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?,
        secrets: spec.secrets.clone(),
        prompt_afresh: request.prompt_afresh.clone(),
    })
}

/// How long a process waits for a person.
const PATIENCE_MS: u64 = 15 * 60_000;

/// The questions that a person has allowed since the attempt before this one asked them, as far as that attempt did not
/// hear it.
fn granted(run: &Run, run_dir: &RunDir) -> io::Result<Vec<String>> {
    let Some(attempt) = &run.attempt else { return Ok(Vec::new()) };
    let mut granted = Vec::new();
    if let (Some(Decision::Approve), Some(Outcome::Impeded { by: Impediment::Approval, why, .. })) =
        (attempt.decision, &attempt.after)
    {
        granted.push(why.clone());
    }
    let is_allowed = |it: &&AgentQuestion| {
        let is_yes = it.answer.as_ref().is_some_and(|it| it.decision == Decision::Approve);
        it.tool.is_some() && is_yes && !granted.contains(&it.text)
    };
    let allowed: Vec<_> = attempt.asked_before.iter().filter(is_allowed).collect();
    if !allowed.is_empty() {
        let before = run_dir.attempt(attempt.turn, attempt.number.saturating_sub(1));
        let heard = decided(&before)?;
        let unheard = allowed.into_iter().filter(|it| !heard.contains(&it.id));
        granted.extend(unheard.map(|it| it.text.clone()));
    }
    Ok(granted)
}

/// The questions of which this attempt has heard what was decided.
fn decided(dir: &AttemptDir) -> io::Result<Vec<String>> {
    match files::read_tail(&dir.agent_events(), LARGEST) {
        Ok(bytes) => Ok(decided_questions(&bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
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
            let (until, why, question) = (None, question.text, Some(question.id));
            Answer::Impeded { by, until, why, question }
        }
        (None, End::Failed { trouble }) => impeded(spec, &trouble),
        (None, End::NeverStarted { code, why }) => Answer::NoProgram { code, why },
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
    Ended { end: End::Failed { trouble }, spent: None, question: None, session: None }
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
            Answer::Impeded { by: Impediment::Provider, until, why, question: None }
        }
        TroubleKind::Auth => {
            let login = outlast_agents::login(spec);
            let how = login.map_or(String::new(), |command| format!(" (run: {command})"));
            let why = format!("{} has to log in again{how}: {why}", spec.agent.kind);
            Answer::Impeded { by: Impediment::Login, until: None, why, question: None }
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
/// so. True beside it if that is a floor.
pub(super) fn used(dir: &AttemptDir, has_left: bool) -> io::Result<Option<(Usage, bool)>> {
    let all = |spent: &Spent| usage(&Spent { is_floor: false, ..*spent });
    if let Some(spent) = ended(dir)?.filter(|_| has_left).and_then(|ended| ended.spent) {
        return Ok(Some((all(&spent), spent.is_floor)));
    }
    match files::read_tail(&dir.agent_events(), LARGEST) {
        Ok(bytes) => Ok(last_spent(&bytes).map(|spent| (all(&spent), true))),
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
