//! What a request says in place of the loop file.

use outlast_engine::{Approvals, Strategy};
use outlast_wire::api::CreateRun;
use outlast_wire::codes::Code;
use outlast_workflow::Overrides;

use super::spawn;
use crate::refusal::{Answer, Refusal};

pub(super) fn overrides(asked: &CreateRun) -> Answer<Overrides> {
    let limits = &asked.limits;
    Ok(Overrides {
        agent_kind: asked.agent.clone(),
        command: Some(asked.command.clone()).filter(|command| !command.is_empty()),
        workspace: asked.workspace.as_deref().map(strategy).transpose()?,
        turn_timeout_ms: limits.turn_timeout_ms,
        stall_window_ms: limits.stall_window_ms,
        run_timeout_ms: limits.run_timeout_ms,
        max_turns: limits.max_turns,
        max_attempts: asked.retry.map(|retry| retry.saturating_add(1)),
        max_tokens: limits.max_tokens,
        max_cost_usd_micros: limits.max_cost_usd_micros,
        priority: asked.priority,
        backoff_ms: asked.backoff_ms,
        approvals: asked.driving.approvals.as_deref().map(approvals).transpose()?,
        allow: Some(asked.driving.allow.clone()).filter(|allow| !allow.is_empty()),
        model: asked.driving.model.clone(),
        effort: asked.driving.effort.clone(),
        room: spawn::room(&asked.tree),
        children: spawn::on_end(&asked.tree)?,
    })
}

fn approvals(word: &str) -> Answer<Approvals> {
    Approvals::of(word).ok_or_else(|| {
        let words = Approvals::ALL.map(Approvals::word).join(", ");
        Refusal::new(Code::BadRequest, format!("{word:?} is no way to treat a question"))
            .hint(format!("one of {words}"))
    })
}

fn strategy(word: &str) -> Answer<Strategy> {
    Strategy::of(word).ok_or_else(|| {
        Refusal::new(Code::BadRequest, format!("{word:?} is not a workspace strategy"))
            .hint("one of inplace, dir, worktree")
    })
}
