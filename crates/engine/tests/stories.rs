//! The engine told as stories: single commands.

mod story;

use outlast_engine::{
    Custody, Effect, End, EndCause, Event, Exit, Health, Input, Limits, Outcome, ReasonCode,
    RunSpec, StopMode, Time, TreeNews,
};
use story::{Story, command, retried, survivor};

#[test]
fn a_command_that_exits_zero_completes() {
    let mut story = Story::of(command());
    story.exits(0).tell(Input::Finished);
    insta::assert_snapshot!(story.journal(), @r"
     1 RunCreated
     2 queued -> running (slot_free)
     3 TurnStarted t1.a1
     4 AttemptStarted
     5 AttemptEnded t1.a1 Exited { code: 0 }
     6 TurnCommitted
     7 running -> finishing (done)
     8 finishing -> completed (done)
     9 RunEnded Completed done
    ");
    assert!(!story.run().is_open());
}

#[test]
fn a_failing_command_is_tried_again_as_often_as_asked() {
    let mut story = Story::of(retried(2));
    story.exits(7).wakes_after(20_000).exits(7).tell(Input::Finished);
    insta::assert_snapshot!(story.journal(), @r"
     1 RunCreated
     2 queued -> running (slot_free)
     3 TurnStarted t1.a1
     4 AttemptStarted
     5 AttemptEnded t1.a1 Exited { code: 7 }
     6 running -> waiting (exit_code)
     7 waiting -> running (backoff_over)
     8 TurnStarted t1.a2
     9 AttemptStarted
    10 AttemptEnded t1.a2 Exited { code: 7 }
    11 running -> finishing (exit_code)
    12 finishing -> failed (exit_code)
    13 RunEnded Failed exit_code
    ");
}

#[test]
fn the_same_news_twice_is_one_event() {
    let mut story = Story::of(command());
    story.exits(3);
    let once = story.events.len();
    story.exits(3);
    assert_eq!(story.events.len(), once);
}

#[test]
fn the_end_is_stamped_with_when_it_happened() {
    let mut story = Story::of(command());
    let at = story.now.plus_ms(3);
    story.now = story.now.plus_ms(3_600_000);
    story.report(|report| {
        report.end = Some(End::Exited { at, exit: Exit::Code(7), cause: None });
        report.tree = TreeNews::Empty;
    });
    story.tell(Input::Finished);
    assert_eq!(story.run().ended_at, Some(at));
}

#[test]
fn stopped_is_said_only_when_the_tree_is_empty() {
    let mut story = Story::of(command());
    story.report(|_| {}).tell(Input::StopAsked {
        mode: StopMode::Gracefully,
        order: outlast_engine::Order::default(),
    });
    let at = story.now;
    let end = End::Exited { at, exit: Exit::Signal(15), cause: Some(EndCause::Stopped) };
    story.report(|report| {
        report.end = Some(end.clone());
        report.tree = TreeNews::Left { survivors: vec![survivor()], stop_failed: false };
    });
    assert!(story.run().live().is_some(), "a survivor keeps the attempt from having been stopped");
    story.report(|report| {
        report.end = Some(end.clone());
        report.tree = TreeNews::Left { survivors: vec![survivor()], stop_failed: true };
    });
    assert_eq!(story.run().reason_code(), Some(ReasonCode::StopIncomplete.into()));
    story.report(|report| {
        report.end = Some(end.clone());
        report.tree = TreeNews::Empty;
    });
    story.tell(Input::Finished);
    insta::assert_snapshot!(story.journal(), @r"
     1 RunCreated
     2 queued -> running (slot_free)
     3 TurnStarted t1.a1
     4 AttemptStarted
     5 StopRequested
     6 StopIncomplete
     7 AttemptEnded t1.a1 Stopped { exit: Some(Signal(15)) }
     8 running -> finishing (stopped)
     9 finishing -> stopped (stopped)
    10 RunEnded Stopped stopped
    ");
}

#[test]
fn a_shim_that_dies_leaves_an_orphan_and_then_a_lost_end() {
    let mut story = Story::of(retried(3));
    story.report(|report| report.custody = Custody::Orphan);
    assert_eq!(story.run().known_health(), Health::Orphaned);
    story.report(|report| {
        report.custody = Custody::Nobody;
        report.tree = TreeNews::Empty;
    });
    story.tell(Input::Finished);
    insta::assert_snapshot!(story.journal(), @r"
     1 RunCreated
     2 queued -> running (slot_free)
     3 TurnStarted t1.a1
     4 AttemptStarted
     5 AttemptOrphaned
     6 HealthDegraded orphaned
     7 AttemptEnded t1.a1 Lost
     8 running -> finishing (lost)
     9 finishing -> failed (lost)
    10 RunEnded Failed lost
    ");
    assert_eq!(story.run().exit(), None);
}

#[test]
fn what_never_ran_is_launched_again_for_free() {
    let mut story = Story::of(command());
    story.report(|report| {
        report.custody = Custody::NeverHeld;
        report.started = None;
    });
    story.wakes_after(1_000).exits(0);
    assert_eq!(story.run().turns_committed, 1);
    assert_eq!(story.run().attempt.as_ref().map(|last| last.number), Some(2));
}

#[test]
fn what_the_host_has_no_resources_for_is_tried_until_it_has() {
    let mut story = Story::of(command());
    for _ in 0..50 {
        story.finds_no_resources();
        assert_eq!(story.is_at().split(',').next(), Some("waiting (never_started)"));
        let wake_at = story.run().wake_at().expect("it is tried again");
        assert!(wake_at.ms_since(story.now) <= 33_003, "within half a minute, give or take");
        story.wakes_after(40_000);
    }
    story.exits(0);
    assert_eq!(story.run().turns_committed, 1);
    assert_eq!(story.run().counters.attempts, 1, "only the one that ran counts");

    let mut stopped = Story::of(command());
    stopped.finds_no_resources();
    let order = outlast_engine::Order::default();
    stopped.tell(Input::StopAsked { mode: StopMode::Gracefully, order }).tell(Input::Finished);
    assert_eq!(stopped.is_at(), "stopped (stopped), ended");
}

#[test]
fn a_reboot_interrupts_unless_the_end_was_seen_before_it() {
    let mut interrupted = Story::of(command());
    interrupted.report(|report| report.custody = Custody::Rebooted);
    let outcome =
        interrupted.run().attempt.and_then(|last| last.state.end).map(|(outcome, _)| outcome);
    assert_eq!(outcome, Some(Outcome::Interrupted { by: "reboot".to_owned() }));

    let mut seen = Story::of(command());
    let at = seen.now;
    seen.report(|report| {
        report.custody = Custody::Rebooted;
        report.end = Some(End::Exited { at, exit: Exit::Code(0), cause: None });
    });
    assert_eq!(seen.run().turns_committed, 1);
}

#[test]
fn survivors_of_a_finished_run_are_watched_and_stop_removes_them() {
    let mut story = Story::of(command());
    let at = story.now;
    let end = End::Exited { at, exit: Exit::Code(0), cause: None };
    story.report(|report| {
        report.end = Some(end.clone());
        report.tree = TreeNews::Left { survivors: vec![survivor()], stop_failed: false };
    });
    story.tell(Input::Finished);
    assert!(story.run().has_ended() && story.run().is_open());
    assert!(matches!(story.run().due()[..], [Effect::Ensure { .. }]));
    story.tell(Input::StopAsked {
        mode: StopMode::Gracefully,
        order: outlast_engine::Order::default(),
    });
    assert!(matches!(story.run().due()[..], [Effect::Ensure { .. }, Effect::Stop { .. }]));
    story.report(|report| {
        report.end = Some(end);
        report.tree = TreeNews::Empty;
    });
    assert!(!story.run().is_open());
    assert_eq!(story.run().state.name().word(), "completed");
}

#[test]
fn survivors_of_a_failed_attempt_go_before_the_next_one_starts() {
    let mut story = Story::of(retried(2));
    let at = story.now;
    let end = End::Exited { at, exit: Exit::Code(1), cause: None };
    story.report(|report| {
        report.end = Some(end.clone());
        report.tree = TreeNews::Left { survivors: vec![survivor()], stop_failed: false };
    });
    story.wakes_after(60_000);
    assert!(story.run().live().is_none(), "the second attempt waits for the survivor to go");
    story.report(|report| {
        report.end = Some(end);
        report.tree = TreeNews::Empty;
    });
    assert_eq!(story.run().live().map(|live| live.number), Some(2));
}

#[test]
fn a_clock_set_back_does_not_extend_a_delay() {
    let mut story = Story::of(retried(2));
    story.exits(1);
    story.now = Time(5);
    story.tell(Input::Woke);
    assert!(story.run().live().is_some());
}

#[test]
fn the_run_timeout_ends_the_attempt_and_exhausts_the_run() {
    let limits = Limits { run_timeout_ms: Some(5_000), ..Limits::default() };
    let mut story = Story::of(RunSpec { limits, ..command() });
    assert_eq!(story.run().due_at(), Some(Time(1_005_000)));
    story.report(|_| {}).wakes_after(6_000);
    assert!(matches!(story.run().due()[..], [_, Effect::Stop { mode: StopMode::Gracefully, .. }]));
    let at = story.now;
    story.report(|report| {
        report.end =
            Some(End::Exited { at, exit: Exit::Signal(15), cause: Some(EndCause::Stopped) });
        report.tree = TreeNews::Empty;
    });
    story.tell(Input::Finished);
    assert_eq!(story.run().row().reason_code, Some(ReasonCode::RunTimeout.into()));
    assert_eq!(story.run().state.name().word(), "exhausted");
}

#[test]
fn a_stop_before_anything_ran_is_a_stop() {
    let mut story = Story::of(retried(5));
    story
        .exits(1)
        .wakes_after(100)
        .tell(Input::StopAsked { mode: StopMode::Now, order: outlast_engine::Order::default() });
    let stopped_at = story.now;
    story.tell(Input::Finished);
    assert_eq!(story.run().state.name().word(), "stopped");
    assert_eq!(
        story.run().ended_at,
        Some(stopped_at),
        "it was stopped when it was, not when it had failed"
    );
    let count = story.events.len();
    story.tell(Input::StopAsked { mode: StopMode::Now, order: outlast_engine::Order::default() });
    assert_eq!(story.events.len(), count, "stopping what has ended is no event");
}

#[test]
fn a_journal_reads_back_from_its_json() {
    let mut story = Story::of(retried(2));
    story.exits(7).wakes_after(20_000).report(|report| report.custody = Custody::Orphan);
    story.tell(Input::StopAsked { mode: StopMode::Now, order: outlast_engine::Order::default() });
    for event in &story.events {
        let json = serde_json::to_string(event).expect("events serialize");
        assert_eq!(
            &serde_json::from_str::<Event>(&json).expect("events deserialize"),
            event,
            "{json}"
        );
    }
}

#[test]
fn survivors_do_not_survive_a_reboot() {
    let mut story = Story::of(retried(2));
    let at = story.now;
    story.report(|report| {
        report.custody = Custody::Rebooted;
        report.end = Some(End::Exited { at, exit: Exit::Code(1), cause: None });
        report.tree = TreeNews::Left { survivors: vec![survivor()], stop_failed: false };
    });
    assert!(!story.run().has_survivors());
    story.wakes_after(60_000);
    assert_eq!(story.run().live().map(|live| live.number), Some(2));
}

#[test]
fn a_failed_stop_is_noted_also_when_the_end_comes_with_it() {
    let mut story = Story::of(command());
    story
        .report(|_| {})
        .tell(Input::StopAsked { mode: StopMode::Now, order: outlast_engine::Order::default() });
    let at = story.now;
    story.report(|report| {
        report.end = Some(End::Exited { at, exit: Exit::Code(1), cause: None });
        report.tree = TreeNews::Left { survivors: vec![survivor()], stop_failed: true };
    });
    assert_eq!(story.run().reason_code(), Some(ReasonCode::StopIncomplete.into()));
    let count = story.events.len();
    story.tell(Input::StopAsked { mode: StopMode::Now, order: outlast_engine::Order::default() });
    assert_eq!(story.events.len(), count + 1, "asking again is another try");
}

#[test]
fn an_orphan_that_was_ended_for_a_limit_has_timed_out_and_no_exit() {
    let mut story = Story::of(command());
    story.report(|report| report.custody = Custody::Orphan);
    story.report(|report| {
        report.custody = Custody::Nobody;
        report.ended_for = Some(EndCause::TimedOut);
        report.tree = TreeNews::Empty;
    });
    story.tell(Input::Finished);
    assert_eq!(story.run().state.name().word(), "exhausted");
    assert_eq!(story.run().exit(), None);
}
