//! What the live attempt of a run notes, and the tools that it may call.

use std::sync::Arc;

use outlast_engine::{AgentNote, Input, Noted, unavailable};
use outlast_wire::api::{NoteKind, Sent, TakeNote, ToolView};
use outlast_wire::codes::Code;

use super::callers::Caller;
use super::calls::{attempt_of, class_of};
use super::find::snapshot_of;
use super::tell::{order_id, refuse_ended, tell};
use crate::refusal::{Answer, Refusal};
use crate::supervisor::Supervisor;

pub(crate) async fn note(
    supervisor: &Arc<Supervisor>,
    caller: &Caller,
    run: &str,
    asked: TakeNote,
) -> Answer<Sent> {
    let at = attempt_of(supervisor, caller, run)?;
    let id = order_id(asked.id)?;
    let kind = match asked.kind {
        NoteKind::Note => Noted::Note,
        NoteKind::Checkpoint => Noted::Checkpoint,
        NoteKind::ToolsListed => Noted::ToolsListed,
    };
    let existed = snapshot_of(supervisor, &at.run).await?.run.notes.has(&id);
    let (turn, attempt, text) = (at.turn, at.attempt, asked.text);
    let note = AgentNote { id: id.clone(), turn, attempt, kind, text };
    let after = tell(supervisor, &at.run, Input::Noted(Box::new(note))).await?;
    if !after.notes.has(&id) {
        refuse_ended(&after)?;
        let message = format!("the attempt that leaves the note is not alive in run {run}");
        return Err(Refusal::new(Code::NotLive, message)
            .hint("notes are taken of the attempt that is at work"));
    }
    Ok(Sent { message: id, existed, reaches: None })
}

pub(crate) async fn tools(
    supervisor: &Arc<Supervisor>,
    caller: &Caller,
    run: &str,
) -> Answer<Vec<ToolView>> {
    let at = attempt_of(supervisor, caller, run)?;
    let run = snapshot_of(supervisor, &at.run).await?.run;
    let is_offered =
        |tool: &&outlast_engine::Tool| unavailable(tool, run.spec.model_class).is_none();
    let view = |tool: &outlast_engine::Tool| ToolView {
        name: tool.name.clone(),
        command: tool.command.clone(),
        input_schema: tool.input_schema.as_ref().and_then(|text| serde_json::from_str(text).ok()),
        class: class_of(tool.class),
        timeout_ms: tool.timeout_ms,
    };
    Ok(run.spec.tools.iter().filter(is_offered).map(view).collect())
}
