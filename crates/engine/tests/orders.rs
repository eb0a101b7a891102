//! Orders: each counts once, each question has one answer, and nothing is released by an order whose giver
//! did not see it.

mod story;

use std::collections::{BTreeMap, BTreeSet};

use outlast_engine::{
    By, Decision, Fact, Input, Order, OutputPolicy, RunSpec, Slot, StateName, StopMode, TurnStatus,
};
use proptest::prelude::*;
use story::{Story, a_loop, says};

fn order(id: &str, seq: Option<u64>) -> Order {
    Order {
        id: Some(id.to_owned()),
        by: Some(By::User { uid: 7, via: None }),
        answers: seq,
        said: None,
    }
}

fn answer(decision: Decision, id: &str, seq: Option<u64>) -> Input {
    let message = Some((id.to_owned(), "so".to_owned()));
    Input::Answered { decision, message, order: order(id, seq) }
}

fn with_approval() -> RunSpec {
    let output = OutputPolicy { require_approval_before_emit: true, ..OutputPolicy::default() };
    RunSpec { output, ..a_loop() }
}

fn question(story: &Story) -> u64 {
    story.run().asks().expect("it asks").seq
}

#[test]
fn an_approval_that_comes_again_approves_nothing_else() {
    let mut story = Story::of(with_approval());
    story.answers(says(TurnStatus::Continue));
    let first = question(&story);
    story.tell(answer(Decision::Approve, "a", Some(first)));
    assert_eq!(story.is_at(), "running (released), turn 2 attempt 1");
    story.answers(says(TurnStatus::Continue));
    let events = story.events.len();
    story.tell(answer(Decision::Approve, "a", Some(first)));
    story.tell(answer(Decision::Approve, "a", None));
    story.tell(answer(Decision::Approve, "another", Some(first)));
    assert_eq!(story.events.len(), events, "{}", story.journal());
    assert_eq!(story.journal().matches("Emitted").count(), 1);
}

#[test]
fn of_two_answers_to_one_question_the_first_counts() {
    let mut story = Story::of(with_approval());
    story.answers(says(TurnStatus::Continue));
    let asked = question(&story);
    story.slot = Slot::Paced;
    story.tell(answer(Decision::Deny, "deny", Some(asked)));
    story.tell(answer(Decision::Approve, "approve", Some(asked)));
    story.slot = Slot::Free;
    story.tell(Input::Woke);
    let run = story.run();
    assert!(run.orders.get("approve").is_none());
    let taken = run.orders.answer_to(asked).expect("it was answered");
    assert_eq!(
        (taken.verb.done(), taken.order.by.clone()),
        ("denied", Some(By::User { uid: 7, via: None }))
    );
    assert_eq!(story.journal().matches("Emitted").count(), 0);
}

#[test]
fn a_resume_that_comes_again_does_not_release_a_later_block() {
    let mut story = Story::of(a_loop());
    story.answers(says(TurnStatus::Blocked));
    let seen = story.run().seq();
    story.tell(Input::ResumeAsked(order("r", Some(seen))));
    assert_eq!(story.is_at(), "running (released), turn 2 attempt 1");
    story.answers(says(TurnStatus::Blocked));
    story.tell(Input::ResumeAsked(order("r", Some(seen))));
    // Also not once its id is forgotten, or under another.
    story.tell(Input::ResumeAsked(order("s", Some(seen))));
    assert_eq!(story.is_at(), "blocked (agent_blocked), blocked");
}

#[test]
fn a_resume_of_a_pause_does_not_release_a_block_that_came_after_it() {
    let mut story = Story::of(a_loop());
    story.tell(Input::PauseAsked(order("p", None)));
    let seen = story.run().seq();
    story.answers(says(TurnStatus::Blocked));
    story.tell(Input::ResumeAsked(order("r", Some(seen))));
    assert!(!story.run().is_paused);
    assert_eq!(story.is_at(), "blocked (agent_blocked), blocked");
    story.tell(Input::ResumeAsked(order("s", Some(story.run().seq()))));
    assert_eq!(story.is_at(), "running (released), turn 2 attempt 1");
}

#[test]
fn a_resume_never_answers_what_wants_a_yes_or_a_no() {
    let mut story = Story::of(with_approval());
    story.answers(says(TurnStatus::Continue));
    let asked = question(&story);
    story.tell(Input::PauseAsked(order("p", None)));
    story.tell(Input::ResumeAsked(order("r", None)));
    assert!(!story.run().is_paused);
    assert_eq!(question(&story), asked, "it is the same question");
}

#[test]
fn a_pause_that_comes_again_does_not_undo_a_later_resume() {
    let mut story = Story::of(a_loop());
    let seen = story.run().seq();
    story.tell(Input::PauseAsked(order("p", Some(seen))));
    story.tell(Input::ResumeAsked(order("r", None)));
    story.tell(Input::PauseAsked(order("p", Some(seen))));
    story.tell(Input::PauseAsked(order("q", Some(seen))));
    assert!(!story.run().is_paused);
}

#[test]
fn a_resume_does_not_take_back_a_second_pause_that_its_giver_did_not_see() {
    let mut story = Story::of(a_loop());
    story.tell(Input::PauseAsked(order("p", None)));
    let seen = story.run().seq();
    story.tell(Input::PauseAsked(order("q", None)));
    story.tell(Input::ResumeAsked(order("r", Some(seen))));
    assert!(story.run().is_paused, "another client paused it, too");
}

#[test]
fn every_stop_is_in_the_journal_under_its_id_and_the_stronger_holds() {
    let mut story = Story::of(a_loop());
    let stop = |id: &str, mode| Input::StopAsked { mode, order: order(id, None) };
    story.report(|_| {}).tell(stop("a", StopMode::Now)).tell(stop("b", StopMode::Gracefully));
    story.tell(stop("a", StopMode::Now));
    assert_eq!(story.journal().matches("StopRequested").count(), 2);
    assert_eq!(story.run().stop, Some(StopMode::Now));
}

#[test]
fn an_order_older_than_what_is_remembered_is_refused_by_what_it_is_bound_to() {
    let mut story = Story::of(with_approval());
    story.answers(says(TurnStatus::Continue));
    let asked = question(&story);
    story.tell(answer(Decision::Approve, "old", Some(asked)));
    for n in 0..300 {
        story.tell(Input::PauseAsked(order(&format!("p{n}"), None)));
    }
    story.tell(Input::ResumeAsked(order("on", None))).answers(says(TurnStatus::Continue));
    assert!(story.run().orders.get("old").is_none(), "it is forgotten");
    story.tell(answer(Decision::Approve, "old", Some(asked)));
    assert_eq!(story.journal().matches("Emitted").count(), 1);
}

/// What happens to a run, or is wanted of it.
#[derive(Debug, Clone)]
enum Act {
    Turn(TurnStatus),
    Crash,
    Time,
    Slot(bool),
    /// An order under one of a few ids, by a giver who saw the run some events ago, or does not say.
    Give {
        verb: u8,
        id: u8,
        behind: Option<u64>,
    },
}

fn an_act() -> impl Strategy<Value = Act> {
    let status = prop_oneof![
        Just(TurnStatus::Continue),
        Just(TurnStatus::Continue),
        Just(TurnStatus::Blocked)
    ];
    prop_oneof![
        4 => status.prop_map(Act::Turn),
        1 => Just(Act::Crash),
        1 => Just(Act::Time),
        1 => any::<bool>().prop_map(Act::Slot),
        8 => (0u8..6, 0u8..40, proptest::option::of(0u64..25))
            .prop_map(|(verb, id, behind)| Act::Give { verb, id, behind }),
    ]
}

/// The question of a blocked run that a giver saw who had seen the events up to `seq`.
fn question_at(story: &Story, seq: u64) -> Option<u64> {
    let change = story
        .events
        .iter()
        .rev()
        .find(|event| event.seq <= seq && matches!(event.fact, Fact::StateChanged { .. }))?;
    let is_block = matches!(change.fact, Fact::StateChanged { to: StateName::Blocked, .. });
    is_block.then_some(change.seq)
}

fn give(story: &mut Story, verb: u8, id: u8, behind: Option<u64>) {
    let run = story.run();
    let id = format!("o{id}");
    let seen = behind.map(|behind| run.seq().saturating_sub(behind).max(1));
    let bound = seen.map(|seen| question_at(story, seen).unwrap_or(seen));
    let was_taken = run.orders.get(&id).is_some();
    let open = run.asks().map(|it| it.seq);
    let is_answer = verb < 3;
    let input = match verb {
        0 => answer(Decision::Approve, &id, bound),
        1 => answer(Decision::Deny, &id, bound),
        2 => answer(Decision::Reply, &id, bound),
        3 => Input::ResumeAsked(order(&id, seen)),
        4 => Input::PauseAsked(order(&id, seen)),
        _ => Input::StopAsked { mode: StopMode::Gracefully, order: order(&id, None) },
    };
    story.tell(input);
    let after = story.run();
    let is_new = !was_taken && after.orders.get(&id).is_some();
    if is_answer && is_new {
        assert!(open.is_some() && bound.is_none_or(|bound| Some(bound) == open));
        let answers = after.orders.get(&id).expect("it is new").order.answers;
        assert_eq!(answers, open, "an answer is bound to what was open");
    }
    if let (true, Some(seen), 3) = (is_new, seen, verb) {
        let answers = after.orders.get(&id).expect("it is new").order.answers;
        assert!(answers.is_some_and(|seq| seq <= seen), "nothing unseen is released");
    }
}

fn play(story: &mut Story, act: &Act) {
    let is_live = story.run().live().is_some();
    match act {
        Act::Turn(status) if is_live => {
            story.answers(says(*status));
        }
        Act::Crash if is_live => {
            story.exits(1);
        }
        Act::Turn(_) | Act::Crash => {}
        Act::Time => {
            story.wakes_after(400_000);
        }
        Act::Slot(is_free) => {
            story.slot = if *is_free { Slot::Free } else { Slot::Paced };
            story.tell(Input::Woke);
        }
        Act::Give { verb, id, behind } => give(story, *verb, *id, *behind),
    }
}

/// By the journal alone, and not by what the engine remembers.
fn hold_to_it(story: &Story, asks: bool) {
    let mut ids = BTreeSet::new();
    let mut answers: BTreeMap<u64, u32> = BTreeMap::new();
    let mut blocks: BTreeMap<u64, u32> = BTreeMap::new();
    let mut approved = BTreeSet::new();
    let mut turn = 0;
    for event in &story.events {
        match &event.fact {
            Fact::TurnCommitted { turn: committed, .. } => turn = *committed,
            Fact::StateChanged { to: StateName::Blocked, .. } => {
                blocks.insert(event.seq, turn);
            }
            Fact::Answered { order, decision, .. } => {
                assert!(ids.insert(order.id.clone()), "an order counts once");
                let asked = order.answers.expect("it is bound");
                *answers.entry(asked).or_default() += 1;
                let of_turn = blocks.get(&asked).expect("it answers a block");
                if *decision == Decision::Approve {
                    approved.insert(*of_turn);
                }
            }
            Fact::ResumeRequested { order, .. } => {
                assert!(ids.insert(order.id.clone()), "an order counts once");
                let asked = order.answers.expect("it is bound");
                *answers.entry(asked).or_default() += u32::from(blocks.contains_key(&asked));
            }
            Fact::PauseRequested { order, .. } | Fact::StopRequested { order, .. } => {
                assert!(ids.insert(order.id.clone()), "an order counts once");
            }
            Fact::Emitted { turn, .. } => {
                assert!(!asks || approved.contains(turn), "turn {turn} was emitted unapproved");
            }
            _ => {}
        }
    }
    assert!(answers.values().all(|count| *count <= 1), "one answer to each question: {answers:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_ordered_in_whatever_sequence_each_order_counts_once_and_for_what_was_seen(
        acts in proptest::collection::vec(an_act(), 1..60),
        asks in any::<bool>(),
    ) {
        let mut story = Story::of(if asks { with_approval() } else { a_loop() });
        for act in &acts {
            play(&mut story, act);
        }
        hold_to_it(&story, asks);
    }
}
