//! The engine told as stories: what a key stands for, what a child is given, and builds that change.

mod story;

use outlast_engine::{
    Admission, Again, Amounts, CannotSpawn, Channel, ChildEnd, Fact, Input, Limits, Lost,
    ReasonCode, Response, Room, RoomWanted, RunId, RunSpec, Settlement, SpawnAsk, TreeRules,
    TurnStatus, Verdict, Want,
};
use story::{Story, a_loop, says};

fn id(name: &str) -> RunId {
    RunId(format!("{name:0>12}"))
}

fn ask(name: &str, key: &str, tokens: Want) -> SpawnAsk {
    let wants = RoomWanted { tokens, ..RoomWanted::default() };
    let (digest, again) = ("same".to_owned(), Again::default());
    SpawnAsk { child: id(name), key: Some(key.to_owned()), digest, wants, again }
}

/// A loop at its first turn, with so many tokens for itself and those below it.
fn parent(tokens: u64) -> Story {
    let limits = Limits { max_tokens: Some(tokens), ..Limits::default() };
    let tree =
        TreeRules { room: Room { runs: Some(9), ..Room::default() }, ..TreeRules::default() };
    let mut story = Story::of(RunSpec { limits, tree, ..a_loop() });
    story.report(|_| {});
    story
}

fn spawn(story: &mut Story, ask: SpawnAsk) {
    story.tell(Input::SpawnAsked(Box::new(ask)));
}

fn ended(name: &str, state: Verdict, code: ReasonCode, spent: u64, known: bool) -> Input {
    let spent = Amounts { tokens: spent, turns: 1, runs: 1, ..Amounts::default() };
    Input::ChildEnded(Box::new(ChildEnd {
        child: id(name),
        key: None,
        state,
        reason_code: Some(code.into()),
        granted: Room::default(),
        settlement: Some(Settlement { spent, known }),
        exit: None,
        summary: String::new(),
        text: "it has ended".to_owned(),
    }))
}

/// What is free, reserved, committed and over, of the tokens.
fn tokens(story: &Story) -> (u64, u64, u64, u64) {
    let pot = story.run().pot(Channel::Tokens);
    (pot.free().expect("there is a ceiling"), pot.reserved, pot.committed(), pot.over())
}

#[test]
fn a_reservation_is_taken_with_the_spawn_and_comes_back_once() {
    let mut story = parent(1000);
    spawn(&mut story, ask("a", "a", Want::AtMost(400)));
    assert_eq!(tokens(&story), (600, 400, 0, 0));
    spawn(&mut story, ask("b", "b", Want::AtMost(5000)));
    assert_eq!(tokens(&story), (0, 1000, 0, 0), "never more than is free");
    let refused = story.run().admit(&ask("c", "c", Want::Half));
    assert!(matches!(refused, Err(CannotSpawn::Spent { channel: Channel::Tokens, .. })));
    story.tell(ended("a", Verdict::Completed, ReasonCode::Done, 150, true));
    assert_eq!(tokens(&story), (250, 600, 150, 0), "the rest is free again");
    story.tell(ended("a", Verdict::Completed, ReasonCode::Done, 150, true));
    assert_eq!(tokens(&story), (250, 600, 150, 0), "once");
    story.tell(ended("b", Verdict::Failed, ReasonCode::Lost, 20, false));
    assert_eq!(tokens(&story), (250, 0, 750, 0), "what is not known is charged as reserved");
    assert_eq!(story.run().held.unknown, 1);
}

#[test]
fn what_a_child_used_beyond_its_ceiling_is_said_and_not_hidden() {
    let mut story = parent(100);
    spawn(&mut story, ask("a", "a", Want::AtMost(100)));
    story.tell(ended("a", Verdict::Completed, ReasonCode::Done, 130, true));
    assert_eq!(tokens(&story), (0, 0, 130, 30));
}

#[test]
fn a_child_that_was_never_made_gives_all_of_it_back() {
    let mut story = parent(1000);
    spawn(&mut story, ask("a", "a", Want::AtMost(400)));
    story.tell(Input::ChildUnmade { child: id("a") });
    assert_eq!(tokens(&story), (1000, 0, 0, 0));
    let again = story.run().admit(&ask("b", "a", Want::AtMost(400)));
    assert!(matches!(again, Ok(Admission::New { try_number: 2, .. })), "{again:?}");
    assert!(story.run().given().next().is_none(), "and no message says so");
}

#[test]
fn a_key_is_answered_by_what_became_of_its_child() {
    let mut story = parent(1000);
    spawn(&mut story, ask("a", "k", Want::Usually(0)));
    let admits = |story: &Story, ask: SpawnAsk| story.run().admit(&ask);
    let again = || ask("b", "k", Want::Usually(0));
    assert_eq!(admits(&story, again()), Ok(Admission::Same(id("a"))), "it goes on");
    let other = SpawnAsk { digest: "other".to_owned(), ..again() };
    assert_eq!(admits(&story, other), Err(CannotSpawn::Conflict(id("a"))));
    story.tell(ended("a", Verdict::Failed, ReasonCode::Lost, 0, false));
    assert_eq!(admits(&story, again()), Err(CannotSpawn::InDoubt(id("a"))));
    let lost = |lost| SpawnAsk { again: Again { lost, ..Again::default() }, ..again() };
    assert_eq!(admits(&story, lost(Lost::Keep)), Ok(Admission::Same(id("a"))));
    spawn(&mut story, lost(Lost::Again));
    story.tell(ended("b", Verdict::Failed, ReasonCode::ExitCode, 0, true));
    let last =
        SpawnAsk { again: Again { tries: 2, ..Again::default() }, ..ask("c", "k", Want::Half) };
    assert_eq!(admits(&story, last), Ok(Admission::Same(id("b"))), "as often as declared");
    spawn(&mut story, ask("c", "k", Want::Usually(0)));
    story.tell(ended("c", Verdict::Completed, ReasonCode::Done, 0, true));
    assert_eq!(admits(&story, ask("d", "k", Want::Half)), Ok(Admission::Same(id("c"))));
}

#[test]
fn a_parent_whose_children_hold_all_waits_for_them_and_is_not_exhausted() {
    let mut story = parent(1000);
    spawn(&mut story, ask("a", "a", Want::AtMost(1000)));
    story.answers(says(TurnStatus::Continue));
    assert!(story.is_at().starts_with("waiting"), "{}", story.is_at());
    story.wakes_after(3_600_000);
    assert!(story.is_at().starts_with("waiting"), "{}", story.is_at());
    story.tell(ended("a", Verdict::Completed, ReasonCode::Done, 150, true));
    assert!(story.is_at().starts_with("running"), "{}", story.is_at());

    let mut story = parent(1000);
    spawn(&mut story, ask("a", "a", Want::AtMost(1000)));
    story.answers(says(TurnStatus::Continue));
    story.tell(ended("a", Verdict::Failed, ReasonCode::Lost, 0, false));
    let limit = |event: &outlast_engine::Event| matches!(event.fact, Fact::LimitReached { .. });
    assert!(story.events.iter().any(limit), "what is not known stays charged, and it is out");
}

#[test]
fn another_build_goes_on_at_the_border_of_a_turn_and_says_so_once() {
    let mut story = Story::of(RunSpec { build: Some("1.0.0".to_owned()), ..a_loop() });
    story.report(|_| {});
    story.build = Some("1.1.0");
    story.report(|_| {});
    let segments = |story: &Story| {
        let facts = story.events.iter().filter_map(|event| match &event.fact {
            Fact::Segment { turn, from, to, .. } => Some((*turn, from.clone(), to.clone())),
            _ => None,
        });
        facts.collect::<Vec<_>>()
    };
    assert_eq!(segments(&story), [], "not in the middle of a turn");
    let goes_on = || Response { ..says(TurnStatus::Continue) };
    story.answers(goes_on()).report(|_| {}).answers(goes_on());
    assert_eq!(segments(&story), [(2, Some("1.0.0".to_owned()), "1.1.0".to_owned())]);
    assert_eq!(story.run().build.as_deref(), Some("1.1.0"));
}
