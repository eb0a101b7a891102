//! Attempts that something keeps from their turn: a provider, a login, a question to a person.

mod story;

use outlast_engine::{
    Answer, Decision, End, Exit, Impediment, Input, Order, Outcome, Response, State, Time,
    TreeNews, TurnStatus, Usage, WaitCause,
};
use story::{Story, a_loop, says};

/// The live attempt is kept from its turn, and ends.
fn impeded(story: &mut Story, by: Impediment, until: Option<Time>) {
    let at = story.now.plus_ms(3);
    story.report(|report| {
        report.end = Some(End::Exited { at, exit: Exit::Code(1), cause: None });
        report.tree = TreeNews::Empty;
        report.answer = Answer::Impeded { by, until, why: "sent away".to_owned(), question: None };
    });
}

fn attempt(story: &Story) -> (u32, u32) {
    let run = story.run();
    let last = run.attempt.as_ref().expect("a turn has started");
    (last.turn, last.number)
}

#[test]
fn a_provider_that_says_until_when_is_waited_for_and_the_same_turn_goes_on() {
    let mut story = Story::of(a_loop());
    for round in 1..=30_u64 {
        let until = story.now.plus_ms(15_000);
        impeded(&mut story, Impediment::Provider, Some(until));
        let run = story.run();
        let waits = matches!(run.state, State::Waiting { cause: WaitCause::RateLimit, until: Some(at), .. } if at == until);
        assert!(waits, "{:?}", run.state);
        assert_eq!((run.counters.attempts, run.counters.impeded), (0, 0), "no try is used up");
        story.now = until;
        story.tell(Input::Woke);
        assert_eq!(attempt(&story), (1, u32::try_from(round).unwrap() + 1));
    }
    story.answers(says(TurnStatus::Done));
    assert_eq!(story.run().turns_committed, 1);
}

#[test]
fn a_provider_that_says_nothing_is_asked_again_ever_more_seldom_and_then_a_person_is() {
    let mut story = Story::of(a_loop());
    let mut waits = Vec::new();
    while !story.run().state.is_blocked() {
        impeded(&mut story, Impediment::Provider, None);
        if let State::Waiting { cause: WaitCause::RateLimit, until: Some(until), .. } =
            story.run().state
        {
            waits.push(until.ms_since(story.now));
            story.now = until;
            story.tell(Input::Woke);
        }
    }
    assert_eq!(waits.len(), 20);
    assert!(waits[0] < 17_000 && waits[19] > 800_000, "{waits:?}");
    assert_eq!(story.run().counters.attempts, 0);
}

#[test]
fn a_time_that_is_over_or_absurd_is_taken_for_none() {
    for until in [Time(0), Time(253_402_300_799_000)] {
        let mut story = Story::of(a_loop());
        impeded(&mut story, Impediment::Provider, Some(until));
        let run = story.run();
        let waits = matches!(run.state, State::Waiting { until: Some(at), .. } if at.ms_since(story.now) < 20_000 && at > story.now);
        assert!(waits && run.counters.impeded == 1, "{:?}", run.state);
    }
}

#[test]
fn a_login_and_a_question_rest_until_a_person_acts() {
    for (by, reason) in [
        (Impediment::Login, "auth_expired"),
        (Impediment::Approval, "needs_approval"),
        (Impediment::Question, "needs_input"),
    ] {
        let mut story = Story::of(a_loop());
        impeded(&mut story, by, None);
        let run = story.run();
        assert_eq!(run.why.reason_code.as_str(), reason);
        let order = Order { id: Some("o1".to_owned()), ..Order::default() };
        let message = Some(("o1".to_owned(), "approved".to_owned()));
        story.tell(Input::Answered { decision: Decision::Approve, message, order });
        assert_eq!(attempt(&story), (1, 2), "the same turn goes on");
        let run = story.run();
        let last = run.attempt.as_ref().unwrap();
        assert_eq!(last.decision, Some(Decision::Approve));
        assert!(matches!(last.after, Some(Outcome::Impeded { .. })));
        assert_eq!(run.counters.attempts, 0);
    }
}

#[test]
fn what_a_killed_attempt_was_heard_to_use_is_charged_and_marked() {
    let mut story = Story::of(a_loop());
    let used = Usage { input_tokens: Some(100), output_tokens: Some(4), ..Usage::default() };
    story.report(|report| {
        report.custody = outlast_engine::Custody::Nobody;
        report.tree = TreeNews::Empty;
        report.used = Some(used);
    });
    let spend = story.run().spend;
    assert_eq!((spend.input_tokens, spend.output_tokens, spend.known.is_all()), (100, 4, false));
}

#[test]
fn a_turn_that_ends_well_after_its_agent_told_a_part_of_its_spend_is_not_all_known() {
    let used = Usage {
        input_tokens: Some(200),
        output_tokens: Some(8),
        cached_tokens: Some(0),
        cost_usd_micros: Some(4620),
    };
    let spend = |is_floor: bool, said: Option<Usage>| {
        let mut story = Story::of(a_loop());
        let at = story.now.plus_ms(3);
        story.report(|report| {
            report.end = Some(End::Exited { at, exit: Exit::Code(0), cause: None });
            report.tree = TreeNews::Empty;
            let response = Response { usage: said, ..says(TurnStatus::Continue) };
            report.answer = Answer::Given(Box::new(response));
            report.used = Some(used);
            report.used_is_floor = is_floor;
        });
        story.run().spend
    };
    assert!(spend(false, None).known.is_all() && spend(true, Some(used)).known.is_all());
    let without_cost = Usage { cost_usd_micros: None, ..used };
    assert!(!spend(true, Some(without_cost)).known.is_all());
    let part = spend(true, None);
    assert_eq!((part.known.is_all(), part.input_tokens, part.cost_usd_micros), (false, 200, 4620));
}
