//! Which of the host's tools an agent is offered, and why not the others.

use crate::{Fact, ModelClass, OfferedTool, RunSpec, Tool, ToolCost, UnavailableTool};

/// Why a tool cannot be used in this run, if it cannot.
pub fn unavailable(tool: &Tool, class: ModelClass) -> Option<String> {
    match (&tool.disabled, class, tool.cost) {
        (Some(reason), _, _) => Some(reason.clone()),
        (None, ModelClass::SmallLocal, ToolCost::Heavy) => Some("heavy_for_small_local".to_owned()),
        (None, ModelClass::Frontier | ModelClass::SmallLocal, _) => None,
    }
}

/// The record of what an attempt is offered; none if there is nothing to offer.
pub(crate) fn offered(spec: &RunSpec, turn: u32, attempt: u32) -> Option<Fact> {
    if spec.tools.is_empty() {
        return None;
    }
    let model_class = spec.model_class;
    let (mut allowed, mut out) = (Vec::new(), Vec::new());
    for tool in &spec.tools {
        let name = tool.name.clone();
        match unavailable(tool, model_class) {
            None => allowed.push(OfferedTool { name, cost: tool.cost }),
            Some(reason_code) => out.push(UnavailableTool { name, reason_code }),
        }
    }
    Some(Fact::ToolsOffered { turn, attempt, model_class, allowed, unavailable: out })
}
