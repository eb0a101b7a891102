//! A run that starts later: at a time, or after another run.

mod story;

use outlast_engine::{
    After, By, Input, Order, PauseAll, RunId, RunSpec, Start, StopMode, Time, Verdict,
};
use story::{Story, command};

fn at(ms: u64) -> RunSpec {
    RunSpec { start: Start { at: Some(Time(ms)), after: None }, ..command() }
}

fn after(any: bool) -> RunSpec {
    let after = After { run: RunId("a".to_owned()), name: None, any };
    RunSpec { start: Start { at: None, after: Some(after) }, ..command() }
}

fn ended(run: &str, state: Verdict) -> Input {
    Input::PredecessorEnded { run: RunId(run.to_owned()), state }
}

#[test]
fn a_run_starts_at_its_time_and_no_message_starts_it_before() {
    let mut story = Story::of(at(1_100_000));
    assert_eq!(story.is_at(), "waiting (timer), timer");
    let message = Input::Sent {
        message: "m".to_owned(),
        from: "user".to_owned(),
        text: "go".to_owned(),
        by: None,
    };
    story.tell(message).wakes_after(50_000);
    assert_eq!(story.is_at(), "waiting (timer), timer");
    assert_eq!(story.run().wake_at(), Some(Time(1_100_000)));
    assert_eq!(story.run().clock.used_ms(story.now), 0, "it has not begun");
    story.wakes_after(50_000).exits(0).tell(Input::Finished);
    assert_eq!(story.is_at(), "completed (done), ended");
}

#[test]
fn a_time_that_has_passed_holds_nothing() {
    assert_eq!(Story::of(at(1)).is_at(), "running (slot_free), turn 1 attempt 1");
}

#[test]
fn a_run_that_was_paused_before_its_time_waits_for_it_all_the_same() {
    let mut story = Story::of(at(2_000_000));
    story.pause_all = PauseAll::On;
    story.tell(Input::Woke);
    story.pause_all = PauseAll::Off;
    story.tell(Input::Woke);
    assert_eq!(story.is_at(), "waiting (timer), timer");
}

#[test]
fn a_run_starts_once_the_one_before_it_has_completed() {
    let mut story = Story::of(after(false));
    assert_eq!(story.is_at(), "waiting (after), timer");
    story.wakes_after(1_000_000).tell(ended("b", Verdict::Completed));
    assert_eq!(story.is_at(), "waiting (after), timer");
    story.tell(ended("a", Verdict::Completed));
    let events = story.events.len();
    story.tell(ended("a", Verdict::Failed));
    assert_eq!(story.events.len(), events, "it was heard before");
    assert_eq!(story.is_at(), "running (after), turn 1 attempt 1");
}

#[test]
fn a_run_fails_if_the_one_before_it_does_unless_any_end_will_do() {
    let mut story = Story::of(after(false));
    story.tell(ended("a", Verdict::Failed)).tell(Input::Finished);
    assert_eq!(story.is_at(), "failed (after_failed), ended");
    assert_eq!(story.run().why.reason, "was to start after run a, which failed");
    let mut story = Story::of(after(true));
    story.tell(ended("a", Verdict::Failed));
    assert_eq!(story.is_at(), "running (after), turn 1 attempt 1");
}

#[test]
fn a_run_that_waits_for_its_start_can_be_stopped() {
    let mut story = Story::of(after(false));
    let order = Order {
        id: Some("s".to_owned()),
        by: Some(By::User { uid: 7, via: None }),
        ..Order::default()
    };
    story.tell(Input::StopAsked { mode: StopMode::Gracefully, order }).tell(Input::Finished);
    assert_eq!(story.is_at(), "stopped (stopped), ended");
}

#[test]
fn the_words_are_for_good() {
    let written = serde_json::to_value(after(true)).expect("plain data");
    assert_eq!(written["start"], serde_json::json!({"after": {"run": "a", "any": true}}));
    let plain = serde_json::to_value(command()).expect("plain data");
    assert!(plain.get("start").is_none() && plain.get("has_stdin").is_none());
    let mut story = Story::of(after(true));
    story.tell(ended("a", Verdict::Exhausted));
    let event = story.events.iter().find(|event| event.fact.kind() == "PredecessorEnded");
    assert_eq!(
        serde_json::to_string(&event.expect("it was heard").fact).expect("plain data"),
        r#"{"kind":"PredecessorEnded","run":"a","state":"exhausted"}"#
    );
}
