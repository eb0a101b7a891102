//! One turn, as it can be looked into afterwards: from the journal, and from the files of its attempts.

use std::io;
use std::path::Path as FilePath;

use outlast_agents::is_driven;
use outlast_engine::{Cause, Charge, Event, Fact, Purpose, RunId, TurnOutcome};
use outlast_home::layout::{AttemptDir, RunDir};
use outlast_secrets::Secrets;
use outlast_wire::api::{
    AttemptView, CommittedView, ErrandView, RefusedCall, ToolsView, TurnSnapshot, TurnView,
    UnavailableTool, Usage,
};
use outlast_wire::codes::Code;
use serde_json::{Value, json};

use super::heard::Heard;
use super::transcript::{self, Room};
use crate::ground::Ground;
use crate::redaction::{self, Absent};
use crate::refusal::Answer;
use crate::refusal::Refusal;
use crate::supervisor::Supervisor;
use crate::{tail, view};

/// As much of each output as is shown.
const TAIL: usize = 4 << 10;

/// Nothing in an attempt's directory that is shown is larger.
const LARGEST_FILE: u64 = 2 << 20;

/// How many events are held at a time while a turn is looked for.
const PAGE: usize = 1000;

/// One turn of a run. Blocks.
pub(crate) fn look(supervisor: &Supervisor, id: &RunId, turn: u32) -> Answer<TurnView> {
    let dir = supervisor.ground.layout.run(id.as_str());
    let mut heard = Heard::default();
    let mut is_driven = false;
    let (secrets, ground) = (Ok(Secrets::default()), &supervisor.ground);
    let looking = Looking { turn, dir: &dir, view: empty(id, turn), ground, secrets };
    let mut view = looking.through(|after| {
        let page = supervisor.ground.store.events(id, after, PAGE)?;
        page.iter().for_each(|event| heard.hear(&event.fact));
        is_driven |= page.iter().any(|event| is_of_driven(&event.fact));
        Ok::<_, outlast_store::Error>(page)
    })?;
    for attempt in &mut view.attempts {
        let log = dir.attempt(turn, attempt.attempt).output();
        attempt.output_gone = heard.lost((turn, attempt.attempt), &log).is_some();
    }
    let mut room = Room::default();
    for attempt in view.attempts.iter_mut().rev().filter(|_| is_driven) {
        let dir = dir.attempt(turn, attempt.attempt);
        let is_over = attempt.ended_at.is_some();
        attempt.agent = Some(transcript::read(&dir, is_over, &mut room));
    }
    if view.attempts.is_empty() && view.errands.is_empty() {
        let refusal = Refusal::new(Code::UnknownTurn, format!("run {id} has no turn {turn}"));
        return Err(refusal.hint(format!("outlast show {id}")));
    }
    Ok(view)
}

fn is_of_driven(fact: &Fact) -> bool {
    matches!(fact, Fact::RunCreated { spec, .. } if is_driven(&spec.agent, &spec.driving))
}

fn empty(id: &RunId, turn: u32) -> TurnView {
    TurnView { run: id.0.clone(), turn, ..TurnView::default() }
}

struct Looking<'a> {
    turn: u32,
    dir: &'a RunDir,
    view: TurnView,
    ground: &'a Ground,
    /// What is not shown of a live attempt; the files of one that has ended have none.
    secrets: io::Result<Secrets>,
}

impl Looking<'_> {
    /// Through the whole journal, which may be very long, page by page.
    fn through<E>(
        mut self,
        mut read: impl FnMut(u64) -> Result<Vec<Event>, E>,
    ) -> Result<TurnView, E> {
        // How the turn before had left the workspace.
        let mut workspace = None;
        let mut after = 0;
        loop {
            let page = read(after)?;
            page.iter().for_each(|event| self.see(event, &mut workspace));
            match page.last() {
                Some(last) if page.len() == PAGE => after = last.seq,
                _ => return Ok(self.view),
            }
        }
    }

    fn see(&mut self, event: &Event, workspace: &mut Option<String>) {
        let at = view::rfc3339(event.at);
        match &event.fact {
            Fact::RunCreated { spec, .. } => {
                self.secrets = redaction::secrets(self.ground, self.dir, spec, None, Absent::Gone);
            }
            Fact::TurnStarted { turn, attempt, .. } if *turn == self.turn => {
                let dir = self.dir.attempt(*turn, *attempt);
                self.view.attempts.push(attempt_view(*attempt, &dir, &self.secrets));
            }
            Fact::ToolsOffered { turn, model_class, allowed, unavailable, .. }
                if *turn == self.turn =>
            {
                let unavailable = unavailable.iter().map(|tool| UnavailableTool {
                    name: tool.name.clone(),
                    reason_code: tool.reason_code.clone(),
                });
                self.view.tools = Some(ToolsView {
                    model_class: word(&json!(model_class)),
                    allowed: allowed.iter().map(|tool| tool.name.clone()).collect(),
                    unavailable: unavailable.collect(),
                    refused: Vec::new(),
                });
            }
            Fact::AttemptStarted { turn, workspace: found, .. } => {
                if found.is_some() {
                    workspace.clone_from(found);
                }
                if let Some(attempt) = self.last_attempt(*turn) {
                    attempt.started_at = Some(at);
                }
            }
            Fact::AttemptEnded { turn, outcome, output_bytes, charge, .. } => {
                if let Some(attempt) = self.last_attempt(*turn) {
                    attempt.ended_at = Some(at);
                    attempt.outcome = Some(outcome.word().to_owned());
                    attempt.exit = outcome.exit();
                    attempt.output_bytes = *output_bytes;
                    attempt.usage = charge.as_ref().map(usage);
                }
            }
            Fact::TurnCommitted { turn, workspace: left, .. } => {
                if *turn == self.turn {
                    self.commit(&event.fact, at, workspace.as_ref());
                }
                workspace.clone_from(left);
            }
            Fact::ErrandStarted { errand, purpose, turn, .. } if *turn == self.turn => {
                self.view.errands.push(errand_view(*errand, purpose, at, self.dir));
            }
            Fact::SnapshotTaken { turn, snapshot }
                if *turn == self.turn && snapshot.cause == Cause::Turn =>
            {
                self.view.snapshot = Some(TurnSnapshot {
                    commit: snapshot.commit.clone(),
                    files: snapshot.files,
                    added: snapshot.added,
                    deleted: snapshot.deleted,
                    left_out: snapshot.left_out.names.clone(),
                });
            }
            Fact::ErrandEnded { errand, outcome, tail, .. } => {
                let known = self.view.errands.iter_mut().find(|known| known.number == *errand);
                if let Some(known) = known {
                    known.ended_at = Some(at);
                    known.outcome = Some(outcome.word().to_owned());
                    known.exit = outcome.exit();
                    known.output_tail.clone_from(tail);
                }
            }
            _ => {}
        }
    }

    fn last_attempt(&mut self, turn: u32) -> Option<&mut AttemptView> {
        self.view.attempts.last_mut().filter(|_| turn == self.turn)
    }

    fn commit(&mut self, fact: &Fact, at: String, before: Option<&String>) {
        let Fact::TurnCommitted {
            attempt,
            status,
            outcome,
            summary,
            next_task,
            tool_calls,
            refused,
            workspace,
            ..
        } = fact
        else {
            return;
        };
        let usage = self.view.attempts.last().and_then(|attempt| attempt.usage.clone());
        let call = |call: &outlast_engine::ToolCall| {
            let input = serde_json::from_str(&call.input).unwrap_or(Value::Null);
            json!({ "name": call.name, "input": input, "key": call.key })
        };
        self.view.committed = Some(CommittedView {
            attempt: *attempt,
            at,
            status: status.word().to_owned(),
            outcome: outcome_word(*outcome).to_owned(),
            summary: Some(summary.clone()).filter(|summary| !summary.is_empty()),
            next_task: next_task.clone(),
            tool_calls: tool_calls.iter().map(call).collect(),
            usage,
            workspace_changed: before.zip(workspace.as_ref()).map(|(one, other)| one != other),
        });
        let name = |call: u32| {
            let at = usize::try_from(call).unwrap_or(usize::MAX);
            tool_calls.get(at).map(|call| call.name.clone()).unwrap_or_default()
        };
        let refused = refused.iter().map(|it| RefusedCall {
            call: it.call,
            name: name(it.call),
            reason_code: it.reason_code.clone(),
            why: it.why.clone(),
        });
        let refused: Vec<RefusedCall> = refused.collect();
        if !refused.is_empty() {
            self.view.tools.get_or_insert_default().refused = refused;
        }
    }
}

fn attempt_view(attempt: u32, dir: &AttemptDir, secrets: &io::Result<Secrets>) -> AttemptView {
    let request = text(&dir.request()).and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let response = text(&dir.response()).map(|text| match secrets {
        Ok(secrets) => String::from_utf8_lossy(&secrets.hide_json(text.as_bytes())).into_owned(),
        Err(error) => format!("(not shown: what is secret in it cannot be read: {error})"),
    });
    let response = response.map(|text| serde_json::from_str(&text).unwrap_or(Value::String(text)));
    AttemptView {
        attempt,
        note: request.as_ref().map(|request| request["note"].clone()).filter(|it| !it.is_null()),
        prompt: text(&dir.prompt()),
        request,
        response,
        output_tail: tail::of_output(dir, TAIL),
        ..AttemptView::default()
    }
}

/// What a file of the attempt says, as far as it is a plain file of a size to show.
fn text(path: &FilePath) -> Option<String> {
    let metadata = std::fs::symlink_metadata(path).ok()?;
    if !metadata.is_file() || metadata.len() > LARGEST_FILE {
        return Some(format!("(not shown: {} bytes)", metadata.len()));
    }
    Some(String::from_utf8_lossy(&outlast_home::regular::read(path).ok()?).into_owned())
}

fn errand_view(number: u32, purpose: &Purpose, at: String, run: &RunDir) -> ErrandView {
    let spec = text(&run.errand(number).spec());
    let spec = spec.and_then(|text| serde_json::from_str::<Value>(&text).ok());
    let argv = spec.and_then(|spec| serde_json::from_value(spec["argv"].clone()).ok());
    ErrandView {
        number,
        purpose: purpose.label(),
        command: argv.unwrap_or_default(),
        started_at: Some(at),
        ..ErrandView::default()
    }
}

pub(super) fn usage(charge: &Charge) -> Usage {
    let reserved = charge.reserved();
    Usage {
        input_tokens: charge.input_tokens,
        output_tokens: charge.output_tokens,
        cached_tokens: charge.cached_tokens,
        cost_usd: view::usd(charge.cost_usd_micros),
        known: charge.known,
        money_known: charge.known().money,
        tokens_known: charge.known().tokens,
        unreported_usd: view::usd(reserved.cost_usd_micros),
        unreported_tokens: reserved.tokens,
        unreported_attempts: 0,
    }
}

pub(super) fn outcome_word(outcome: TurnOutcome) -> &'static str {
    match outcome {
        TurnOutcome::MeaningfulCompletion => "meaningful_completion",
        TurnOutcome::NoOpSuccess => "no_op_success",
        TurnOutcome::EscalationBlocker => "escalation_blocker",
    }
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
