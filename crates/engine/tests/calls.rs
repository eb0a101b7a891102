//! The engine told as stories: calls of the host's tools.

mod story;

use outlast_engine::{Input, RunSpec, Tool, ToolCall, ToolClass, ToolCost, TurnStatus};
use story::{Story, a_loop, says};

use TurnStatus::{Blocked, Continue};

fn tooled(class: ToolClass) -> RunSpec {
    let tool = |name: &str, cost| Tool {
        name: name.to_owned(),
        command: vec![name.to_owned()],
        input_schema: None,
        class,
        cost,
        timeout_ms: 1000,
        disabled: None,
    };
    RunSpec {
        tools: vec![tool("fetch", ToolCost::Light), tool("build", ToolCost::Heavy)],
        ..a_loop()
    }
}

fn calls(keys: &[&str]) -> outlast_engine::Response {
    let call = |key: &&str| ToolCall {
        name: "fetch".to_owned(),
        input: "{}".to_owned(),
        key: Some((*key).to_owned()),
    };
    outlast_engine::Response { tool_calls: keys.iter().map(call).collect(), ..says(Continue) }
}

#[test]
fn calls_are_made_after_the_turn_and_a_completed_key_is_never_made_again() {
    let mut story = Story::of(tooled(ToolClass::Keyed));
    story.answers(calls(&["a", "b"])).exits(0).exits(5);
    story.answers(calls(&["a", "c"])).exits(0);
    insta::assert_snapshot!(story.journal(), @r"
     1 RunCreated
     2 queued -> running (slot_free)
     3 TurnStarted t1.a1
     4 ToolsOffered
     5 AttemptStarted
     6 AttemptEnded t1.a1 Exited { code: 0 }
     7 TurnCommitted
     8 ErrandStarted e1 tool fetch
     9 ErrandEnded e1 Exited { code: 0 }
    10 ErrandStarted e2 tool fetch
    11 ErrandEnded e2 Exited { code: 5 }
    12 Emitted
    13 TurnStarted t2.a1
    14 ToolsOffered
    15 AttemptStarted
    16 AttemptEnded t2.a1 Exited { code: 0 }
    17 TurnCommitted
    18 CallAnswered
    19 ErrandStarted e3 tool fetch
    20 ErrandEnded e3 Exited { code: 0 }
    21 Emitted
    22 TurnStarted t3.a1
    23 ToolsOffered
    ");
}

#[test]
fn a_blocked_or_failed_turn_has_no_calls_made() {
    let mut story = Story::of(tooled(ToolClass::Read));
    story.answers(outlast_engine::Response { status: Blocked, ..calls(&["a"]) });
    assert_eq!(story.is_at(), "blocked (agent_blocked), blocked");
    assert_eq!(story.run().errands, 0);
}

#[test]
fn a_call_nobody_saw_the_end_of_is_made_again_unless_that_may_harm() {
    let mut harmless = Story::of(tooled(ToolClass::Keyed));
    harmless.answers(calls(&["a"])).is_lost();
    assert_eq!(harmless.is_at(), "running (slot_free), tool fetch");
    harmless.exits(0);
    assert_eq!(harmless.is_at(), "running (slot_free), turn 2 attempt 1");
    let mut harm = Story::of(tooled(ToolClass::Unsafe));
    harm.answers(calls(&["a"])).is_lost();
    assert_eq!(harm.is_at(), "blocked (unknown_call_outcome), blocked");
    harm.tell(Input::ResumeAsked);
    assert_eq!(harm.is_at(), "running (released), turn 2 attempt 1");
}
