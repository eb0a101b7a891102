//! The engine told as stories: calls of the host's tools.

mod story;

use outlast_engine::{
    By, CallAsked, CallOutput, CallResultSaid, End, EndCause, Exit, Fact, Input, Order, RunSpec,
    Tool, ToolCall, ToolClass, ToolCost, TreeNews, TurnStatus,
};
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
    harm.tell(Input::ResumeAsked(outlast_engine::Order::default()));
    assert_eq!(harm.is_at(), "running (released), turn 2 attempt 1");
}

#[test]
fn a_run_does_not_grow_with_what_its_calls_wrote() {
    let mut spec = tooled(ToolClass::Keyed);
    spec.limits.max_turns = None;
    let mut story = Story::of(spec);
    let output = "o".repeat(32 << 10);
    let call = |story: &mut Story, key: &str| {
        story.answers(calls(&[key]));
        let at = story.now.plus_ms(3);
        story.report(|report| {
            report.end = Some(End::Exited { at, exit: Exit::Code(0), cause: None });
            report.tree = TreeNews::Empty;
            report.tail.clone_from(&output);
        });
    };
    // All that a run holds, written out; the last errand has its own words with it.
    let size = |story: &Story| format!("{:?}", story.run()).len();
    call(&mut story, "first");
    let after_one = size(&story);
    for n in 0..40 {
        call(&mut story, &format!("key{n}"));
    }
    let each = (size(&story) - after_one) / 40;
    assert!(each < 300, "{each} bytes for each call of {} bytes", output.len());
    let run = story.run();
    assert_eq!(run.calls.len(), 41);
    // Where it is written is remembered, also for a call that is answered without being made.
    let first = run.calls["first"].made;
    story.answers(calls(&["first"]));
    let run = story.run();
    let result = run.previous.as_ref().and_then(|it| it.results[0].as_ref()).expect("a result");
    assert_eq!((result.name.as_str(), result.made), ("fetch", Some(first)));
    let said = &story.events[usize::try_from(first.seq - 1).expect("it is small")];
    assert_eq!(said.seq, first.seq);
    assert!(
        matches!(&said.fact, Fact::ErrandEnded { errand, tail, .. } if *errand == first.errand && *tail == output)
    );
}

#[test]
fn a_run_is_copied_without_the_messages_that_wait_for_it() {
    let mut story = Story::of(a_loop());
    story.tell(Input::Sent {
        message: "m".to_owned(),
        from: "user".to_owned(),
        text: "t".repeat(64 << 10),
        by: None,
    });
    let run = story.run();
    let copy = run.clone();
    assert!(std::sync::Arc::ptr_eq(&run.inbox.unread[0], &copy.inbox.unread[0]));
}

fn asks_for(key: &str, class: ToolClass, ticket: &str) -> Box<CallAsked> {
    Box::new(CallAsked {
        key: key.to_owned(),
        class,
        digest: "same".to_owned(),
        command: "pay".to_owned(),
        ticket: ticket.to_owned(),
        performer: None,
        retries_failed: false,
    })
}

/// A failed command would be run again by a person who does not know of the call.
#[test]
fn a_command_that_fails_with_a_call_in_doubt_is_blocked_also_without_a_retry() {
    let mut story = Story::of(story::command());
    story.report(|_| {});
    let asked = asks_for(&(story.run().key_base(1) + "pay"), ToolClass::Unsafe, "first");
    story.tell(Input::CallBegan { turn: 1, attempt: 1, asked, gone: None }).exits(137);
    assert_eq!(story.is_at(), "blocked (unknown_call_outcome), blocked");
    let mut lost = Story::of(story::command());
    lost.report(|_| {});
    let asked = asks_for(&(lost.run().key_base(1) + "pay"), ToolClass::Unsafe, "first");
    lost.tell(Input::CallBegan { turn: 1, attempt: 1, asked, gone: None }).is_lost();
    assert_eq!(lost.is_at(), "finishing (lost), finishing");
}

/// The second time never started, so the first is still in doubt, and a person may say what became of it.
#[test]
fn a_doubt_outlives_a_try_that_never_started() {
    let mut story = Story::of(a_loop());
    story.report(|_| {});
    let key = story.run().key_base(1) + "pay";
    let begin = |attempt, ticket| Input::CallBegan {
        turn: 1,
        attempt,
        asked: asks_for(&key, ToolClass::Idempotent, ticket),
        gone: None,
    };
    story.tell(begin(1, "first")).is_ended_for(EndCause::Stalled);
    story.wakes_after(600_000).report(|_| {});
    story.tell(begin(2, "second"));
    let begun = story.run().keyed.get(&key).expect("it was begun").begun;
    story.tell(Input::CallEnded(Box::new(CallResultSaid {
        key: key.clone(),
        begun,
        exit: None,
        why: Some("no such program".to_owned()),
        stdout: CallOutput::default(),
        stderr: CallOutput::default(),
    })));
    assert!(story.run().keyed.get(&key).is_some_and(|call| call.is_unknown(&story.run())));
    let order = Order { id: Some("o1".to_owned()), answers: Some(begun), ..Order::default() };
    story.tell(Input::CallResolved { key: key.clone(), was_made: false, order });
    assert!(matches!(story.events.last().expect("an event").fact, Fact::CallResolved { .. }));
    assert!(story.run().keyed.get(&key).is_none());
}

#[test]
fn what_resolved_a_call_before_such_orders_were_bound_is_still_read() {
    let old =
        r#"{"kind":"CallResolved","key":"r/t1/pay","was_made":true,"by":{"kind":"user","uid":7}}"#;
    let read: Fact = serde_json::from_str(old).expect("a journal from before is read");
    let Fact::CallResolved { was_made: true, order, .. } = &read else { panic!("{read:?}") };
    assert_eq!((&order.by, order.answers), (&Some(By::User { uid: 7, via: None }), None));
    assert_eq!(serde_json::to_string(&read).expect("it is written"), old);
    let old = r#"{"kind":"CallEnded","key":"k","begun":3,"exit":{"code":0},"stdout":{"bytes":9,"file":"3.stdout"},"stderr":{"bytes":0}}"#;
    let read: Fact = serde_json::from_str(old).expect("a journal from before is read");
    assert_eq!(serde_json::to_string(&read).expect("it is written"), old);
}
