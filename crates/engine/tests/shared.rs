//! What runs share: `pause --all`, and budgets.

mod story;

use outlast_engine::TurnStatus::{Blocked, Continue};
use outlast_engine::{
    Budget, Context, Exceeded, Fact, Input, Nearing, Order, PauseAll, Run, RunId, Time, create,
};
use story::{Story, a_loop, command, says};

fn spent(until: Option<Time>, then: Exceeded) -> Budget {
    Budget::Spent { name: "day".to_owned(), until, then }
}

#[test]
fn everything_rests_while_the_word_for_all_holds_and_goes_on_after_it() {
    let mut story = Story::of(a_loop());
    story.report(|_| {});
    story.pause_all = PauseAll::On;
    story.tell(Input::Woke).tell(Input::Woke);
    assert!(story.run().live().is_some(), "what runs goes on to its end");
    story.answers(says(Continue));
    assert_eq!(story.is_at(), "waiting (paused), paused");
    assert_eq!(story.run().why.reason, "paused with every other run");
    story.pause_all = PauseAll::Off;
    story.tell(Input::Woke);
    assert_eq!(story.is_at(), "running (resumed), turn 2 attempt 1");
    let said = |kind| story.events.iter().filter(|event| event.fact.kind() == kind).count();
    assert_eq!((said("PauseRequested"), said("ResumeRequested")), (1, 1));
}

#[test]
fn who_said_the_word_for_all_is_in_the_journal_of_each_run_that_follows_it() {
    let given = |id: &str| {
        let by = Some(outlast_engine::By::User { uid: 7, via: None });
        Order { id: Some(id.to_owned()), by, ..Order::default() }
    };
    let mut story = Story::of(a_loop());
    // Ids are the clients' own: an order to this run alone may have had the same one.
    story.report(|_| {}).tell(Input::PauseAsked(given("same")));
    story.tell(Input::ResumeAsked(given("back")));
    (story.pause_all, story.word) = (PauseAll::On, Some(given("same").into()));
    story.tell(Input::Woke);
    (story.pause_all, story.word) = (PauseAll::Off, Some(given("other").into()));
    story.tell(Input::Woke);
    let words: Vec<&Order> = story
        .events
        .iter()
        .filter_map(|event| match &event.fact {
            Fact::PauseRequested { all: true, order, .. }
            | Fact::ResumeRequested { all: true, order, .. } => Some(order),
            _ => None,
        })
        .collect();
    let nameless = Order { id: None, ..given("same") };
    assert_eq!(words, [&nameless, &given("other")]);
    // An order to this run under the id of a `pause --all` is an order of its own.
    story.tell(Input::PauseAsked(given("other")));
    assert!(story.run().is_paused);
}

#[test]
fn a_persons_own_pause_and_a_block_are_not_undone_by_the_word_for_all() {
    let mut paused = Story::of(a_loop());
    paused.report(|_| {}).tell(Input::PauseAsked(outlast_engine::Order::default()));
    paused.pause_all = PauseAll::On;
    paused.answers(says(Continue));
    paused.pause_all = PauseAll::Off;
    paused.tell(Input::Woke);
    assert_eq!(paused.is_at(), "waiting (paused), paused");
    paused.tell(Input::ResumeAsked(outlast_engine::Order::default()));
    assert_eq!(paused.is_at(), "running (resumed), turn 2 attempt 1");

    let mut blocked = Story::of(a_loop());
    blocked.answers(says(Blocked));
    blocked.pause_all = PauseAll::On;
    blocked.tell(Input::Woke);
    blocked.pause_all = PauseAll::Off;
    blocked.tell(Input::Woke);
    assert_eq!(blocked.is_at(), "blocked (agent_blocked), blocked");
}

#[test]
fn one_run_cannot_be_resumed_out_of_the_word_for_all() {
    let mut story = Story::of(a_loop());
    story.report(|_| {}).tell(Input::PauseAsked(outlast_engine::Order::default()));
    story.pause_all = PauseAll::On;
    story.answers(says(Continue)).tell(Input::ResumeAsked(outlast_engine::Order::default()));
    assert_eq!(story.is_at(), "waiting (paused), paused");
    story.pause_all = PauseAll::Off;
    story.tell(Input::Woke);
    assert_eq!(story.is_at(), "running (resumed), turn 2 attempt 1");
}

#[test]
fn what_is_ended_for_a_pause_of_all_is_made_again_and_costs_no_try() {
    let mut story = Story::of(a_loop());
    story.report(|_| {});
    story.pause_all = PauseAll::On;
    story.tell(Input::PauseAllNow).tell(Input::PauseAllNow);
    let stops = |story: &Story| {
        story.run().due().iter().any(|it| matches!(it, outlast_engine::Effect::Stop { .. }))
    };
    assert!(stops(&story));
    story.is_ended_for(outlast_engine::EndCause::Stopped);
    assert_eq!(story.is_at(), "waiting (paused), paused");
    assert_eq!((story.run().counters.attempts, story.run().counters.crash_restarts), (0, 0));
    story.pause_all = PauseAll::Off;
    story.tell(Input::Woke);
    assert_eq!(story.is_at(), "running (resumed), turn 1 attempt 2");
    assert_eq!(story.run().counters.crash_restarts, 0);
    assert!(!stops(&story));

    let mut once = Story::of(command());
    once.report(|_| {});
    once.pause_all = PauseAll::On;
    once.tell(Input::PauseAllNow);
    assert!(
        once.run().is_paused_with_all && !stops(&once),
        "a command that is not made again goes on"
    );

    let mut stopped = Story::of(a_loop());
    stopped.report(|_| {});
    stopped.pause_all = PauseAll::On;
    stopped.tell(Input::PauseAllNow);
    stopped.tell(Input::StopAsked {
        mode: outlast_engine::StopMode::Gracefully,
        order: outlast_engine::Order::default(),
    });
    stopped.is_ended_for(outlast_engine::EndCause::Stopped).tell(Input::Finished);
    assert_eq!(stopped.is_at(), "stopped (stopped), ended");
}

#[test]
fn a_run_that_is_made_while_the_word_holds_rests_and_one_that_is_stopped_then_ends() {
    let id = RunId("k3v9d2m7q0xa".to_owned());
    let context = Context {
        pause_all: PauseAll::On,
        ..Context::new(Time(1_000_000), outlast_engine::BootId("boot-1".to_owned()))
    };
    let events = create(&id, command(), &context);
    let run = Run::replay(&id, &events).expect("it is legal");
    assert_eq!((run.phase().as_str(), run.attempt.is_none()), ("paused", true));

    let mut story = Story::of(command());
    story.events = events;
    story.pause_all = PauseAll::On;
    story
        .tell(Input::StopAsked {
            mode: outlast_engine::StopMode::Gracefully,
            order: outlast_engine::Order::default(),
        })
        .tell(Input::Finished);
    assert_eq!(story.is_at(), "stopped (stopped), ended");
}

#[test]
fn a_spent_budget_lets_the_next_turn_wait_until_there_is_more_and_its_clock_stands() {
    let mut story = Story::of(a_loop());
    story.report(|_| {});
    let midnight = story.now.plus_ms(3_600_000);
    story.budget = spent(Some(midnight), Exceeded::Wait);
    story.tell(Input::Woke);
    assert!(story.run().live().is_some(), "the turn that has begun goes on");
    story.answers(says(Continue));
    assert_eq!(story.is_at(), "waiting (budget), timer");
    assert_eq!(
        (story.run().due_at(), story.run().condition.health.word()),
        (Some(midnight), "near_limit")
    );
    let used = story.run().clock.used_ms(story.now);
    story.wakes_after(1_800_000);
    assert_eq!(story.is_at(), "waiting (budget), timer");
    assert_eq!(story.run().clock.used_ms(story.now), used);
    story.budget = Budget::Room;
    story.tell(Input::Woke);
    assert_eq!(story.is_at(), "running (budget_free), turn 2 attempt 1");
    assert_eq!(story.run().condition.health.word(), "healthy");
}

#[test]
fn a_budget_whose_day_is_over_is_asked_again() {
    let mut story = Story::of(a_loop());
    let midnight = story.now.plus_ms(1_000);
    story.budget = spent(Some(midnight), Exceeded::Wait);
    story.answers(says(Continue));
    story.budget = spent(Some(midnight.plus_ms(86_400_000)), Exceeded::Wait);
    story.wakes_after(2_000);
    assert_eq!(story.is_at(), "waiting (budget), timer", "spent again by others");
    assert_eq!(story.run().due_at(), Some(midnight.plus_ms(86_400_000)));
}

#[test]
fn a_budget_that_ends_its_runs_ends_the_turn_that_is_alive_or_the_next() {
    let mut alive = Story::of(a_loop());
    alive.report(|_| {});
    alive.budget = spent(None, Exceeded::End);
    alive.tell(Input::Woke).is_ended_for(outlast_engine::EndCause::Stopped).tell(Input::Finished);
    assert_eq!(alive.is_at(), "exhausted (budget), ended");

    let mut between = Story::of(a_loop());
    between.report(|_| {});
    let at = between.now;
    between.budget = Budget::Room;
    between.report(|report| {
        report.end = Some(outlast_engine::End::Exited {
            at,
            exit: outlast_engine::Exit::Code(1),
            cause: None,
        });
        report.tree = outlast_engine::TreeNews::Empty;
    });
    between.budget = spent(None, Exceeded::End);
    between.wakes_after(400_000).tell(Input::Finished);
    assert_eq!(between.is_at(), "exhausted (budget), ended");
    assert_eq!(between.run().why.reason, "the budget day is spent");
}

#[test]
fn a_budget_that_is_near_its_end_is_said_each_time_and_changes_no_word() {
    let mut story = Story::of(a_loop());
    story.report(|_| {});
    story.nearing = vec![Nearing { name: "day".to_owned(), used: 80, max: 100 }];
    story.tell(Input::Woke).tell(Input::Woke);
    let said = story.events.iter().filter(|event| event.fact.kind() == "LimitNeared").count();
    assert_eq!((said, story.run().condition.health.word()), (2, "healthy"));
}
