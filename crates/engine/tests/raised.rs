//! A run is given more room: one that goes on, and one that was exhausted.

mod story;

use outlast_engine::{
    By, CannotRaise, Checks, EndCause, Hooks, Input, Limit, Limits, More, Order, Raise, RunSpec,
    StopMode, Time, TurnStatus, Verdict,
};
use story::{Story, a_loop, command, says};

fn order(id: &str) -> Order {
    Order { id: Some(id.to_owned()), by: Some(By::User { uid: 7, via: None }), ..Order::default() }
}

fn turns(more: More) -> Raise {
    Raise { max_turns: Some(more), ..Raise::default() }
}

fn raise(raise: Raise, id: &str) -> Input {
    Input::RaiseAsked { raise: Box::new(raise), order: order(id) }
}

fn of_turns(max_turns: u32) -> RunSpec {
    let limits = Limits { max_turns: Some(max_turns), ..a_loop().limits };
    RunSpec { limits, ..a_loop() }
}

fn exhausted(spec: RunSpec) -> Story {
    let mut story = Story::of(spec);
    story.answers_in(says(TurnStatus::Continue), "one").tell(Input::Finished);
    assert_eq!(story.is_at(), "exhausted (max_turns), ended");
    story
}

#[test]
fn an_exhausted_run_goes_on_where_it_was_and_ends_a_second_time() {
    let mut story = exhausted(of_turns(1));
    let from = story.events.len();
    story.tell(raise(turns(More::By(1)), "r"));
    assert_eq!(story.is_at(), "running (slot_free), turn 2 attempt 1");
    assert_eq!(story.run().previous.map(|it| it.turn), Some(1), "it knows its last turn");
    story.answers_in(says(TurnStatus::Continue), "two").tell(Input::Finished);
    let told: String = story.journal().lines().skip(from).map(|line| format!("{line}\n")).collect();
    insta::assert_snapshot!(told, @r"
    12 LimitsRaised
    13 exhausted -> queued (raised)
    14 queued -> running (slot_free)
    15 TurnStarted t2.a1
    16 AttemptStarted
    17 AttemptEnded t2.a1 Exited { code: 0 }
    18 TurnCommitted
    19 Emitted
    20 LimitReached max_turns
    21 running -> finishing (max_turns)
    22 finishing -> exhausted (max_turns)
    23 RunEnded Exhausted max_turns
    ");
}

#[test]
fn an_order_that_comes_again_raises_nothing() {
    let mut story = exhausted(of_turns(1));
    story.tell(raise(turns(More::By(1)), "r"));
    let events = story.events.len();
    story.tell(raise(turns(More::By(1)), "r"));
    assert_eq!((story.events.len(), story.run().spec.limits.max_turns), (events, Some(2)));
    story.answers_in(says(TurnStatus::Continue), "two").tell(Input::Finished);
    let events = story.events.len();
    story.tell(raise(turns(More::By(1)), "r"));
    assert_eq!(story.events.len(), events, "it would open the run again");
}

#[test]
fn a_live_run_has_the_new_ceiling_and_is_warned_of_it_anew() {
    let mut story = Story::of(of_turns(2));
    story.answers_in(says(TurnStatus::Continue), "one");
    story.tell(raise(turns(More::To(3)), "r"));
    story.answers_in(says(TurnStatus::Continue), "two");
    assert_eq!(story.is_at(), "running (slot_free), turn 3 attempt 1");
}

#[test]
fn time_that_was_used_stays_used() {
    let limits = Limits { run_timeout_ms: Some(1_000), ..Limits::default() };
    let mut story = Story::of(RunSpec { limits, ..command() });
    story.report(|_| {}).wakes_after(2_000).is_ended_for(EndCause::Stopped).tell(Input::Finished);
    assert_eq!(story.is_at(), "exhausted (run_timeout), ended");
    let time = |more| Raise { run_timeout_ms: Some(more), ..Raise::default() };
    let spent = story.run().raised(&time(More::By(1_000)));
    let Err(CannotRaise::StillSpent { limit: Limit::RunTimeout, used, max: 2_000 }) = spent else {
        panic!("{spent:?}")
    };
    assert!(used > 2_000);
    story.wakes_after(1_000_000);
    story.tell(raise(time(More::By(9_000)), "r"));
    assert_eq!(story.is_at(), "running (slot_free), turn 1 attempt 2");
    let left = story.run().wake_at().expect("it has a deadline").ms_since(story.now);
    assert!(left < 8_000, "{left} ms are left of 10 s after more than 2");
}

#[test]
fn what_is_done_around_a_run_is_done_around_it_again() {
    let hooks = Hooks {
        before_run: Some("up".to_owned()),
        after_run: Some("down".to_owned()),
        ..Hooks::default()
    };
    let checks = Checks { before_run: vec!["true".to_owned()], ..Checks::default() };
    let mut story = Story::of(RunSpec { hooks, checks, ..of_turns(1) });
    story.tell(Input::WorkspaceMade { created: false });
    story.exits(0).exits(0).answers_in(says(TurnStatus::Continue), "one");
    story.exits(0).tell(Input::Finished);
    assert_eq!(story.is_at(), "exhausted (max_turns), ended");
    story.tell(raise(turns(More::By(1)), "r"));
    story.exits(0).exits(0).answers_in(says(TurnStatus::Done), "two");
    story.exits(0).tell(Input::Finished);
    assert_eq!(story.is_at(), "completed (done), ended");
    let starts: Vec<String> = story
        .journal()
        .lines()
        .filter_map(|line| line.split_once("ErrandStarted ").map(|(_, what)| what.to_owned()))
        .collect();
    assert_eq!(
        starts,
        [
            "e1 check before_run 1",
            "e2 hook before_run",
            "e3 hook after_run",
            "e4 check before_run 1",
            "e5 hook before_run",
            "e6 hook after_run"
        ]
    );
}

#[test]
fn a_run_that_has_used_its_tries_at_a_turn_has_them_again() {
    let limits = Limits { turn_timeout_ms: Some(1_000), ..Limits::default() };
    let mut story = Story::of(RunSpec { limits, ..command() });
    story.is_ended_for(EndCause::TimedOut).tell(Input::Finished);
    assert_eq!(story.is_at(), "exhausted (turn_timeout), ended");
    let longer = Raise { turn_timeout_ms: Some(More::To(5_000)), ..Raise::default() };
    story.tell(raise(longer, "r"));
    assert_eq!(story.is_at(), "running (slot_free), turn 1 attempt 2");
    story.exits(0).tell(Input::Finished);
    assert_eq!(story.is_at(), "completed (done), ended");
}

#[test]
fn only_more_is_given_and_never_beyond_the_ceilings() {
    let story = exhausted(of_turns(1));
    let run = story.run();
    let refused = |raise: Raise| run.raised(&raise).expect_err("it cannot be had");
    let not_more = CannotRaise::NotMore { limit: Limit::MaxTurns, now: 1 };
    assert_eq!(refused(turns(More::To(1))), not_more);
    assert_eq!(refused(turns(More::By(0))), not_more);
    assert_eq!(refused(Raise::default()), CannotRaise::Nothing);
    let tokens = Raise { max_tokens: Some(More::By(5)), ..Raise::default() };
    assert_eq!(refused(tokens), CannotRaise::NoLimit(Limit::MaxTokens));
    let ceilings = Limits { max_turns: Some(3), ..Limits::default() };
    let too_far = Raise { ceilings, ..turns(More::By(9)) };
    assert_eq!(refused(too_far), CannotRaise::AboveCeiling { limit: Limit::MaxTurns, ceiling: 3 });
    assert!(run.raised(&Raise { ceilings, ..turns(More::By(2)) }).is_ok());
}

#[test]
fn what_has_ended_otherwise_or_is_ending_stays_so() {
    let mut story = Story::of(of_turns(5));
    story.tell(Input::StopAsked { mode: StopMode::Gracefully, order: order("s") });
    let some = turns(More::By(1));
    assert_eq!(story.run().raised(&some), Err(CannotRaise::IsEnding));
    story.is_ended_for(EndCause::Stopped).tell(Input::Finished);
    assert_eq!(story.run().raised(&some), Err(CannotRaise::HasEnded(Verdict::Stopped)));
    let events = story.events.len();
    story.tell(raise(some, "r"));
    assert_eq!(story.events.len(), events);
}

#[test]
fn a_run_whose_workspace_is_gone_does_not_go_on() {
    let mut story = exhausted(of_turns(1));
    story.tell(Input::RemovalAsked);
    assert_eq!(story.run().raised(&turns(More::By(1))), Err(CannotRaise::WorkspaceGone));
}

#[test]
fn a_clock_that_was_set_after_the_end_is_followed() {
    let mut story = Story::on_a_line(of_turns(1));
    story.answers_in(says(TurnStatus::Continue), "one").tell(Input::Finished);
    story.now = Time(story.now.0 + 3_600_000);
    story.booted_at_ms = Some(3_600_000);
    story.tell(raise(turns(More::By(1)), "r"));
    assert!(story.journal().contains("ClockSet"), "{}", story.journal());
    assert_eq!(story.is_at(), "running (slot_free), turn 2 attempt 1");
}

#[test]
fn its_words_are_for_good() {
    let mut story = exhausted(of_turns(1));
    story.tell(raise(turns(More::By(1)), "r"));
    let event = story.events.iter().find(|event| event.fact.kind() == "LimitsRaised");
    let written = serde_json::to_string(&event.expect("it was raised").fact).expect("plain data");
    assert_eq!(
        written,
        r#"{"kind":"LimitsRaised","actor":"user","limits":{"turn_timeout_ms":null,"stall_window_ms":null,"run_timeout_ms":null,"max_turns":2,"max_stall_restarts":3,"no_progress_turns":3},"order":"r","by":{"kind":"user","uid":7}}"#
    );
}

#[test]
fn an_amount_that_cannot_be_kept_was_cut_down_and_is_refused() {
    let run = exhausted(of_turns(1)).run();
    for more in [More::By(u64::MAX), More::To(u64::MAX), More::To(u64::from(u32::MAX) + 1)] {
        let refused = run.raised(&turns(more));
        let most = u32::MAX.into();
        assert_eq!(refused, Err(CannotRaise::TooMuch { limit: Limit::MaxTurns, most }), "{more:?}");
    }
}

#[test]
fn the_room_that_is_offered_is_within_the_ceiling_and_is_taken() {
    let run = exhausted(of_turns(1)).run();
    let ceiling = |most: u32| Limits { max_turns: Some(most), ..Limits::default() };
    for (ceilings, offered) in [
        (Limits::default(), Some(More::By(10))),
        (ceiling(11), Some(More::By(10))),
        (ceiling(5), Some(More::To(5))),
        (ceiling(1), None),
    ] {
        assert_eq!(run.more_room(Limit::MaxTurns, &ceilings), offered);
        if let Some(more) = offered {
            assert!(run.raised(&Raise { ceilings, ..turns(more) }).is_ok(), "{more:?}");
        }
    }
    assert_eq!(run.more_room(Limit::Budget, &Limits::default()), None);
}
