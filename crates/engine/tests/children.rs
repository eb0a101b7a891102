//! The engine told as stories: runs that belong to another, and the wait for them.

mod story;

use outlast_engine::{
    ChildEnd, Fact, Input, MOST_MESSAGES, ReasonCode, Response, Room, Run, RunId, Settlement,
    TurnStatus, Verdict, Wait,
};
use story::{Story, a_loop, says};

fn id(name: &str) -> RunId {
    RunId(format!("{name:0>12}"))
}

fn made(name: &str) -> Input {
    Input::ChildMade { child: id(name), key: Some(format!("key-{name}")), granted: Room::default() }
}

fn ended(name: &str, state: Verdict) -> Input {
    Input::ChildEnded(Box::new(ChildEnd {
        child: id(name),
        key: Some(format!("key-{name}")),
        state,
        reason_code: Some(ReasonCode::ExitCode.into()),
        granted: Room::default(),
        settlement: Some(Settlement { known: true, ..Settlement::default() }),
        exit: None,
        summary: String::new(),
        text: format!("child {name} has ended"),
    }))
}

fn send(text: &str) -> Input {
    let (from, by) = ("user".to_owned(), None);
    Input::Sent { message: text.to_owned(), from, text: text.to_owned(), by }
}

fn waits_for(wait: Wait) -> Response {
    Response { wait: Some(wait), ..says(TurnStatus::Continue) }
}

/// A loop whose first turn runs and has these children.
fn parent(names: &[&str]) -> Story {
    let mut story = Story::of(a_loop());
    story.report(|_| {});
    for name in names {
        story.tell(made(name));
    }
    story
}

fn given(run: &Run) -> Vec<(&str, &str)> {
    run.given().map(|it| (it.from.as_str(), it.text.as_str())).collect()
}

#[test]
fn a_parent_waits_until_its_child_has_ended_and_is_told_how() {
    let mut story = parent(&["a"]);
    story.answers(waits_for(Wait::Children));
    assert_eq!(story.is_at(), "waiting (children), children");
    assert_eq!(story.run().wake_at(), None);
    story.wakes_after(10_000_000);
    assert_eq!(story.is_at(), "waiting (children), children");
    story.tell(ended("a", Verdict::Failed));
    assert_eq!(story.is_at(), "running (children), turn 2 attempt 1");
    let run = story.run();
    assert_eq!(given(&run), [("child:00000000000a", "child a has ended")]);
    let end = run.children[&id("a")].end.as_ref().map(|end| (end.verdict, end.cursor));
    assert_eq!(end, Some((Verdict::Failed, 1)));
    insta::assert_snapshot!(story.journal(), @r"
     1 RunCreated
     2 queued -> running (slot_free)
     3 TurnStarted t1.a1
     4 AttemptStarted
     5 ChildSpawned
     6 AttemptEnded t1.a1 Exited { code: 0 }
     7 TurnCommitted
     8 Emitted
     9 running -> waiting (children)
    10 ChildSettled
    11 MessageReceived
    12 waiting -> running (children)
    13 TurnStarted t2.a1
    ");
}

#[test]
fn a_wait_for_the_children_is_a_wait_for_all_of_them() {
    let mut story = parent(&["a", "b"]);
    story.answers(waits_for(Wait::Children)).tell(ended("b", Verdict::Completed));
    assert_eq!(story.is_at(), "waiting (children), children");
    story.tell(ended("a", Verdict::Completed));
    assert_eq!(story.is_at(), "running (children), turn 2 attempt 1");
    let froms: Vec<String> = story.run().given().map(|it| it.from.clone()).collect();
    assert_eq!(froms, ["child:00000000000b", "child:00000000000a"]);
}

#[test]
fn the_end_of_one_child_is_a_message_to_whoever_waits_for_one() {
    let mut story = parent(&["a", "b"]);
    story.answers(waits_for(Wait::Message)).tell(ended("b", Verdict::Stopped));
    assert_eq!(story.is_at(), "running (message), turn 2 attempt 1");
    assert_eq!(story.run().live_children(), 1);
}

#[test]
fn a_word_from_somebody_else_ends_the_wait_for_children() {
    let mut story = parent(&["a"]);
    story.answers(waits_for(Wait::Children)).tell(send("never mind"));
    assert_eq!(story.is_at(), "running (message), turn 2 attempt 1");
}

#[test]
fn a_word_that_was_there_before_keeps_it_from_waiting() {
    let mut story = parent(&["a"]);
    story.tell(send("hurry")).answers(waits_for(Wait::Children));
    assert_eq!(story.is_at(), "running (slot_free), turn 2 attempt 1");
}

#[test]
fn nobody_waits_for_children_that_have_ended() {
    let mut story = parent(&["a"]);
    story.tell(ended("a", Verdict::Completed)).answers(waits_for(Wait::Children));
    assert_eq!(story.is_at(), "running (slot_free), turn 2 attempt 1");
    assert_eq!(given(&story.run()).len(), 1);
    let mut childless = parent(&[]);
    childless.answers(waits_for(Wait::Children));
    assert_eq!(childless.is_at(), "running (slot_free), turn 2 attempt 1");
}

#[test]
fn news_of_a_child_is_heard_once_and_in_any_order() {
    let mut story = parent(&[]);
    story.tell(ended("a", Verdict::Completed)).tell(made("a")).tell(made("a"));
    story.tell(ended("a", Verdict::Completed)).tell(ended("a", Verdict::Failed));
    let kinds: Vec<&str> = story.events.iter().skip(4).map(|event| event.fact.kind()).collect();
    assert_eq!(kinds, ["ChildSpawned", "ChildSettled", "MessageReceived"]);
    let spawned = story.events.iter().find_map(|event| match &event.fact {
        Fact::ChildSpawned { key, .. } => key.clone(),
        _ => None,
    });
    assert_eq!(spawned.as_deref(), Some("key-a"));
}

#[test]
fn a_full_inbox_has_room_for_the_end_of_a_child() {
    let mut story = parent(&["a"]);
    for number in 0..=MOST_MESSAGES {
        story.tell(send(&number.to_string()));
    }
    assert_eq!(story.run().inbox.unread.len(), MOST_MESSAGES);
    story.tell(ended("a", Verdict::Completed));
    assert_eq!(story.run().inbox.unread.len(), MOST_MESSAGES + 1);
}

#[test]
fn a_parent_that_has_ended_hears_no_more() {
    let mut story = parent(&["a"]);
    story.answers(says(TurnStatus::Done)).tell(Input::Finished);
    let before = story.events.len();
    story.tell(ended("a", Verdict::Completed)).tell(made("b"));
    assert_eq!(story.events.len(), before);
}
