//! Why a call that an agent asks for is not made. Which tools it is offered is the engine's business.
//!
//! Makes no call, and does not know whether one was made before under the same key.

use outlast_engine::{ModelClass, Tool, ToolCall, ToolClass, unavailable};

use crate::quote::quote;
use crate::tool_input;

pub const UNKNOWN_TOOL: &str = "unknown_tool";
pub const POLICY_DISABLED: &str = "policy_disabled";
pub const HEAVY_FOR_SMALL_LOCAL: &str = "heavy_for_small_local";
pub const INVALID_INPUT: &str = "invalid_input";
pub const MISSING_KEY: &str = "missing_key";

/// The code of the reason for which a call is not made, and the reason in words.
pub fn refuse(
    tools: &[Tool],
    class: ModelClass,
    call: &ToolCall,
) -> Option<(&'static str, String)> {
    let Some(tool) = tools.iter().find(|tool| tool.name == call.name) else {
        return Some((UNKNOWN_TOOL, format!("there is no tool {}", quote(&call.name))));
    };
    withheld(tool, class).or_else(|| unkeyed(tool, call)).or_else(|| unfit(tool, call))
}

fn withheld(tool: &Tool, class: ModelClass) -> Option<(&'static str, String)> {
    let told = |code, why: &str| Some((code, why.to_owned()));
    match unavailable(tool, class)?.as_str() {
        HEAVY_FOR_SMALL_LOCAL => {
            told(HEAVY_FOR_SMALL_LOCAL, "it is too heavy for a small local model")
        }
        POLICY_DISABLED => told(POLICY_DISABLED, "the operator does not allow it"),
        why => told(POLICY_DISABLED, why),
    }
}

fn unkeyed(tool: &Tool, call: &ToolCall) -> Option<(&'static str, String)> {
    let is_keyed = call.key.as_ref().is_some_and(|key| !key.trim().is_empty());
    match tool.class {
        ToolClass::Keyed if !is_keyed => {
            Some((MISSING_KEY, "it is called with a key only".to_owned()))
        }
        ToolClass::Keyed | ToolClass::Read | ToolClass::Idempotent | ToolClass::Unsafe => None,
    }
}

fn unfit(tool: &Tool, call: &ToolCall) -> Option<(&'static str, String)> {
    let schema = tool.input_schema.as_deref().unwrap_or("{}");
    tool_input::check(schema, &call.input).err().map(|why| (INVALID_INPUT, why))
}

#[cfg(test)]
mod tests {
    use outlast_engine::ToolCost;

    use super::*;

    fn tool(name: &str, class: ToolClass, cost: ToolCost) -> Tool {
        Tool {
            name: name.to_owned(),
            command: vec!["true".to_owned()],
            input_schema: Some(r#"{"type":"object"}"#.to_owned()),
            class,
            cost,
            timeout_ms: 1000,
            disabled: None,
        }
    }

    fn tools() -> Vec<Tool> {
        let off = Tool {
            disabled: Some("not on fridays".to_owned()),
            ..tool("off", ToolClass::Read, ToolCost::Heavy)
        };
        let free = Tool { input_schema: None, ..tool("free", ToolClass::Unsafe, ToolCost::Light) };
        vec![
            tool("look", ToolClass::Read, ToolCost::Light),
            tool("build", ToolClass::Idempotent, ToolCost::Heavy),
            off,
            tool("pay", ToolClass::Keyed, ToolCost::Light),
            free,
        ]
    }

    fn call(name: &str, input: &str, key: Option<&str>) -> ToolCall {
        ToolCall { name: name.to_owned(), input: input.to_owned(), key: key.map(str::to_owned) }
    }

    fn refused(class: ModelClass, call: &ToolCall) -> Option<(&'static str, String)> {
        refuse(&tools(), class, call)
    }

    #[test]
    fn what_is_withheld_is_told_with_its_reason() {
        let names = |class| {
            let tools = tools();
            let withheld = |tool: &Tool| withheld(tool, class).map(|(code, _)| code);
            let allowed = tools.iter().filter(|tool| withheld(tool).is_none());
            let allowed: Vec<_> = allowed.map(|tool| tool.name.clone()).collect();
            let unavailable = tools.iter().filter_map(|tool| Some((tool, withheld(tool)?)));
            let unavailable: Vec<_> =
                unavailable.map(|(tool, code)| format!("{} {code}", tool.name)).collect();
            (allowed.join(" "), unavailable.join(", "))
        };
        let (allowed, unavailable) = names(ModelClass::Frontier);
        assert_eq!(
            (allowed.as_str(), unavailable.as_str()),
            ("look build pay free", "off policy_disabled")
        );
        let (allowed, unavailable) = names(ModelClass::SmallLocal);
        assert_eq!(allowed, "look pay free");
        assert_eq!(unavailable, "build heavy_for_small_local, off policy_disabled");
    }

    #[test]
    fn a_call_that_is_right_is_not_refused() {
        let frontier = |call: &ToolCall| refused(ModelClass::Frontier, call);
        assert_eq!(frontier(&call("look", "{}", None)), None);
        assert_eq!(frontier(&call("build", "{}", None)), None);
        assert_eq!(frontier(&call("pay", "{}", Some("k"))), None);
        assert_eq!(frontier(&call("free", "[1]", None)), None);
    }

    #[test]
    fn each_refusal_has_its_code() {
        let told = |class, call: &ToolCall| {
            let (code, why) = refused(class, call).expect("a refusal");
            format!("{code}: {why}")
        };
        let frontier = |call: &ToolCall| told(ModelClass::Frontier, call);
        assert_eq!(frontier(&call("Look\n", "{}", None)), r"unknown_tool: there is no tool Look\n");
        assert_eq!(frontier(&call("off", "1", None)), "policy_disabled: not on fridays");
        assert_eq!(
            told(ModelClass::SmallLocal, &call("build", "{}", None)),
            "heavy_for_small_local: it is too heavy for a small local model"
        );
        assert_eq!(frontier(&call("pay", "{}", None)), "missing_key: it is called with a key only");
        assert_eq!(
            frontier(&call("pay", "{}", Some(" "))),
            "missing_key: it is called with a key only"
        );
        assert_eq!(frontier(&call("look", "1", None)), "invalid_input: input: must be an object");
    }
}
