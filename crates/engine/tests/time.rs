//! The engine told as stories: slots, clocks and reboots.

mod story;

use outlast_engine::{
    Custody, Decision, Effect, End, Exit, Input, Limits, MOST_MESSAGES, OutputPolicy, RunSpec,
    Slot, Time, TreeNews, TurnStatus,
};
use story::{Story, a_loop, says};

use TurnStatus::{Blocked, Continue, Done};

#[test]
fn a_run_without_a_slot_waits_and_no_counter_rises() {
    let mut story = Story::of(a_loop());
    story.slot = Slot::Taken;
    story.exits(1);
    let before = story.run().counters;
    story.wakes_after(400_000);
    assert_eq!(story.is_at(), "waiting (slot), slot");
    story.wakes_after(400_000);
    assert_eq!((story.run().counters, story.run().holds_slot()), (before, false));
    story.slot = Slot::Free;
    story.tell(Input::Woke);
    assert_eq!(story.is_at(), "running (slot_free), turn 1 attempt 2");
}

#[test]
fn a_loop_that_is_held_back_commits_its_turn_and_starts_no_other() {
    let mut story = Story::of(a_loop());
    story.report(|_| {});
    story.slot = Slot::Paced;
    story.answers(says(Continue));
    assert_eq!(story.is_at(), "waiting (resume_held), slot");
    assert_eq!((story.run().turns_committed, story.run().live()), (1, None));
    story.tell(Input::Woke);
    assert_eq!(story.is_at(), "waiting (resume_held), slot");
    story.slot = Slot::Free;
    story.tell(Input::Woke);
    assert_eq!(story.is_at(), "running (slot_free), turn 2 attempt 1");
}

#[test]
fn a_run_that_is_held_back_can_end() {
    let mut story = Story::of(a_loop());
    story.report(|_| {});
    story.slot = Slot::Paced;
    story.answers(says(Done));
    assert_eq!(story.is_at(), "finishing (done), finishing");
}

#[test]
fn time_at_rest_is_not_the_runs_time() {
    let limits = Limits { run_timeout_ms: Some(10_000), ..a_loop().limits };
    let mut story = Story::of(RunSpec { limits, ..a_loop() });
    story.now = story.now.plus_ms(4_000);
    story
        .answers(says(Blocked))
        .wakes_after(1_000_000)
        .tell(Input::ResumeAsked(outlast_engine::Order::default()));
    assert_eq!(story.is_at(), "running (released), turn 2 attempt 1");
    let used = story.run().clock.used_ms(story.now);
    assert!((4_000..5_000).contains(&used), "{used}");
    let deadline = story.run().due_at().expect("it has a limit");
    assert_eq!(deadline, story.now.plus_ms(10_000 - used));
}

#[test]
fn a_reboot_during_a_turn_starts_the_next_attempt_of_it() {
    let mut story = Story::of(a_loop());
    story.report(|_| {}).report(|report| report.custody = Custody::Rebooted);
    story.wakes_after(400_000);
    assert_eq!(story.is_at(), "running (backoff_over), turn 1 attempt 2");
}

/// The shim reads the wall clock, the daemon's never goes back.
#[test]
fn an_end_stamped_by_a_clock_that_was_set_uses_up_no_time_and_gives_none_back() {
    for wrong in [Time(0), Time(u64::MAX / 2)] {
        let mut story = Story::of(a_loop());
        story.report(|_| {});
        let began = story.now;
        story.report(|report| {
            report.end = Some(End::Exited { at: wrong, exit: Exit::Code(1), cause: None });
            report.tree = TreeNews::Empty;
        });
        let used = story.run().clock.used_ms(story.now);
        assert!(
            (20..60).contains(&used),
            "{used} ms of {} by {wrong:?}",
            story.now.ms_since(began)
        );
        let since = story.events.last().expect("it waits").at;
        assert!(since <= story.now && story.run().wake_at() > Some(story.now), "{wrong:?}");
    }
}

#[test]
fn the_clock_stands_while_a_run_is_paused_also_in_a_delay() {
    let limits = Limits { run_timeout_ms: Some(60_000), ..a_loop().limits };
    let mut story = Story::of(RunSpec { limits, ..a_loop() });
    story.exits(1).tell(Input::PauseAsked(outlast_engine::Order::default()));
    story.wakes_after(10_000_000);
    assert_eq!(story.is_at(), "waiting (paused), paused", "its delay is over and it rests");
    story.tell(Input::ResumeAsked(outlast_engine::Order::default()));
    assert_eq!(story.is_at(), "running (resumed), turn 1 attempt 2");
    assert!(story.run().clock.used_ms(story.now) < 1_000);
}

#[test]
fn a_run_that_waited_for_a_word_ends_after_it() {
    let output = OutputPolicy { require_approval_before_emit: true, ..OutputPolicy::default() };
    let mut story = Story::of(RunSpec { output, ..a_loop() });
    story.answers(says(Done));
    story.now = story.now.plus_ms(3_600_000);
    story.tell(Input::Answered {
        decision: Decision::Approve,
        message: None,
        order: outlast_engine::Order::default(),
    });
    story.tell(Input::Finished);
    let times: Vec<_> = story.events.iter().map(|event| event.at).collect();
    assert!(times.is_sorted(), "{times:?}");
}

#[test]
fn a_loop_that_failed_for_good_is_not_over_while_somebody_of_it_is_left() {
    let retry = outlast_engine::Retry { max_attempts: 1, ..a_loop().retry };
    let mut story = Story::of(RunSpec { retry, ..a_loop() });
    let at = story.now;
    story.report(|report| {
        report.end = Some(End::Exited { at, exit: Exit::Code(1), cause: None });
        report.tree = TreeNews::Left { survivors: vec![story::survivor()], stop_failed: false };
    });
    assert_eq!(story.is_at(), "running (slot_free), turn 1 attempt 1");
    let orders_stop = |effect: &Effect| matches!(effect, Effect::Stop { .. });
    assert!(story.run().due().iter().any(orders_stop));
    story.report(|report| report.tree = TreeNews::Empty);
    assert_eq!(story.is_at(), "finishing (exit_code), finishing");
}

#[test]
fn an_answer_that_finds_the_inbox_full_or_comes_twice_does_no_harm() {
    let mut story = Story::of(a_loop());
    story.answers(says(Blocked));
    for n in 0..MOST_MESSAGES {
        let message = format!("m{n}");
        story.tell(Input::Sent {
            message,
            from: "user".to_owned(),
            text: "more".to_owned(),
            by: None,
        });
    }
    let reply = |id: &str| Input::Answered {
        decision: Decision::Reply,
        message: Some((id.to_owned(), "go".to_owned())),
        order: outlast_engine::Order::default(),
    };
    story.tell(reply("a"));
    assert_eq!(story.is_at(), "blocked (agent_blocked), blocked", "what was said is not lost");
    story.tell(Input::ResumeAsked(outlast_engine::Order::default()));
    assert_eq!(story.is_at(), "running (released), turn 2 attempt 1");
    let events = story.events.len();
    story.tell(reply("b")).tell(Input::ResumeAsked(outlast_engine::Order::default()));
    assert_eq!(story.events.len(), events);
}

const HOUR_MS: i64 = 3_600_000;

/// By both ways of being wrong, and by more than any limit.
#[test]
fn a_clock_that_is_set_ends_no_run_and_gives_no_time_back() {
    for by_ms in [3 * HOUR_MS, -3 * HOUR_MS] {
        let limits = Limits { run_timeout_ms: Some(60_000), ..a_loop().limits };
        let mut story = Story::on_a_line(RunSpec { limits, ..a_loop() });
        story.report(|_| {}).wakes_after(20_000);
        let used = story.run().clock.used_ms(story.now);
        story.clock_is_set(by_ms);
        assert_eq!(story.run().clock.used_ms(story.now), used + 10, "{by_ms}");
        assert_eq!(story.is_at(), "running (slot_free), turn 1 attempt 1", "{by_ms}");
        let left = story.run().due_at().expect("it has a limit").ms_since(story.now);
        assert_eq!(left, 60_000 - used - 10, "{by_ms}");
        // Stamped by the clock as it was set.
        assert_eq!(story.events.last().expect("it was told").at, story.now);
        story.wakes_after(60_000);
        assert_eq!(story.run().limit, Some(outlast_engine::Limit::RunTimeout), "{by_ms}");
    }
}

#[test]
fn a_clock_that_is_set_makes_a_delay_neither_longer_nor_shorter_and_leaves_a_time_of_day_alone() {
    for by_ms in [3 * HOUR_MS, -3 * HOUR_MS] {
        let mut story = Story::on_a_line(a_loop());
        story.exits(1);
        let left = story.run().due_at().expect("it tries again").ms_since(story.now);
        story.clock_is_set(by_ms);
        let after = story.run().due_at().expect("it tries again").ms_since(story.now);
        assert_eq!(after, left - 10, "{by_ms}");
        assert_eq!(story.is_at(), "waiting (exit_code), backoff", "{by_ms}");
    }
    let mut story = Story::on_a_line(a_loop());
    let until = story.now.plus_ms(10 * HOUR_MS.cast_unsigned());
    let wait = Some(outlast_engine::Wait::Until(until));
    story.answers(outlast_engine::Response { wait, ..says(Continue) });
    story.clock_is_set(3 * HOUR_MS);
    assert_eq!(story.run().due_at(), Some(until));
}

#[test]
fn a_line_of_another_boot_is_noted_and_moves_nothing() {
    let mut story = Story::on_a_line(a_loop());
    story.exits(1);
    let due = story.run().due_at();
    story.boot = outlast_engine::BootId("boot-2".to_owned());
    story.clock_is_set(50);
    assert_eq!(story.run().due_at(), due);
    let told = story.events.len();
    story.tell(Input::Woke);
    assert_eq!(story.events.len(), told, "it is said once");
}
