//! What a person can type about a run that needs one. Each command is a line that can be pasted.

use outlast_wire::api::{RunRow, RunView};
use outlast_wire::words::{BlockReason, ReasonCode, StateName, Wants};

use crate::output::rest;

/// The likeliest first.
pub(super) fn for_run(row: &RunRow, view: Option<&RunView>, handle: &str) -> Vec<String> {
    if row.reason_code.as_ref().is_some_and(|code| *code == ReasonCode::StopIncomplete)
        || (row.state.has_ended() && row.survivors > 0)
    {
        return vec![format!("outlast stop {handle}")];
    }
    let Some(view) = view else { return vec![format!("outlast show {handle}")] };
    if view.trouble.is_some() {
        return vec![format!("outlast show {handle}")];
    }
    if let Some(blocked) = &view.blocked {
        return match blocked.reason_code.wants() {
            Wants::Decision => decide(handle),
            Wants::Answer => vec![format!("outlast answer {handle} 'TEXT'")],
            Wants::Look => after_a_look(blocked.reason_code.known(), view.turn, handle),
        };
    }
    match &view.asks {
        Some(asks) if asks.tool.is_some() => decide(handle),
        Some(_) => vec![format!("outlast answer {handle} 'TEXT'")],
        None if view.paused => vec![format!("outlast resume {handle}")],
        None if view.state == StateName::Queued => vec![format!("outlast show {handle}")],
        None => vec![format!("outlast logs {handle} --tail 20"), format!("outlast stop {handle}")],
    }
}

fn decide(handle: &str) -> Vec<String> {
    vec![format!("outlast answer {handle} --approve"), format!("outlast answer {handle} --deny")]
}

/// A look first, then what lets it go on.
fn after_a_look(reason: Option<BlockReason>, turn: u32, handle: &str) -> Vec<String> {
    let resume = format!("outlast resume {handle}");
    let look = match reason {
        Some(BlockReason::DoneCheckFailed | BlockReason::NoProgress) if turn > 0 => {
            format!("outlast show {handle} --turn {turn}")
        }
        Some(BlockReason::PreflightFailed) => format!("outlast show {handle}"),
        Some(BlockReason::UnknownCallOutcome) => {
            return vec![format!("outlast answer {handle} 'TEXT'"), resume];
        }
        _ => format!("outlast logs {handle} --tail 20"),
    };
    vec![look, resume]
}

/// Of a run that ended without being done.
pub(super) fn for_ended(row: &RunRow, view: Option<&RunView>, handle: &str) -> Vec<String> {
    match row.state.known() {
        Some(StateName::Exhausted) => view.map_or_else(
            || vec![format!("outlast show {handle}")],
            |view| rest::next_steps(view).iter().map(|step| bare(step)).collect(),
        ),
        Some(StateName::Stopped) => vec![format!("outlast show {handle}")],
        _ => vec![format!("outlast logs {handle} --tail 20")],
    }
}

/// A command without the words before it.
fn bare(step: &str) -> String {
    step.lines().last().unwrap_or_default().to_owned()
}
