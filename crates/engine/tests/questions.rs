//! Agents that ask a person while they live, and that take messages in the middle of their turn.

mod story;

use outlast_engine::{
    Answer, AsksPerson, Decision, End, Exit, Fact, Health, Impediment, Input, NoticeKind, Order,
    RunSpec, State, StateName, TreeNews, TurnStatus,
};
use proptest::prelude::*;
use story::{Story, a_loop, says};

fn asks(story: &mut Story, id: &str, tool: Option<&str>) {
    let (turn, attempt) = current(story);
    let (id, tool) = (id.to_owned(), tool.map(str::to_owned));
    let asks = AsksPerson { text: format!("{id}: make"), id, tool };
    story.tell(Input::Asked { turn, attempt, asks });
}

fn answers(story: &mut Story, decision: Decision, id: &str, seq: Option<u64>) {
    let message = Some((id.to_owned(), "the left one".to_owned()));
    let order = Order { id: Some(id.to_owned()), by: None, answers: seq, said: None };
    story.tell(Input::Answered { decision, message, order });
}

/// The process was ended with this question.
fn gives_up(story: &mut Story, question: &str, by: Impediment) {
    let at = story.now.plus_ms(3);
    let (why, question) = (format!("{question}: make"), Some(question.to_owned()));
    story.report(|report| {
        report.end = Some(End::Exited { at, exit: Exit::Code(1), cause: None });
        report.tree = TreeNews::Empty;
        report.answer = Answer::Impeded { by, until: None, why, question };
    });
}

fn current(story: &Story) -> (u32, u32) {
    let run = story.run();
    run.attempt.as_ref().map_or((0, 0), |last| (last.turn, last.number))
}

fn open(story: &Story) -> Option<u64> {
    story.run().asks().map(|asked| asked.seq)
}

#[test]
fn a_question_is_answered_while_the_agent_waits() {
    let mut story = Story::of(RunSpec { notify: vec!["phone".to_owned()], ..a_loop() });
    story.report(|_| {});
    asks(&mut story, "q1", Some("Bash"));
    asks(&mut story, "q1", Some("Bash"));
    let run = story.run();
    assert_eq!(
        (run.state.name(), run.condition.health),
        (StateName::Running, Health::WaitingHuman)
    );
    let asked = story.events.iter().filter(|it| it.fact.kind() == "QuestionAsked");
    assert_eq!(asked.count(), 1, "the driver says it again and again");
    let notices: Vec<_> = run.notices(&story.events).into_iter().map(|it| it.kind).collect();
    assert_eq!(notices, [NoticeKind::Asked]);
    let seq = open(&story);
    answers(&mut story, Decision::Approve, "o1", seq);
    answers(&mut story, Decision::Deny, "o2", seq);
    let run = story.run();
    let live = run.live().expect("it goes on");
    let answer = live.asked.get("q1").and_then(|it| it.answer.as_ref()).expect("it is answered");
    assert_eq!((answer.decision, &answer.text), (Decision::Approve, &None));
    assert_eq!((run.asks(), run.condition.health), (None, Health::Healthy));
    assert!(run.inbox.unread.is_empty(), "the agent has it, and no prompt says it again");
    story.answers(says(TurnStatus::Done));
    assert_eq!(story.run().turns_committed, 1);
}

#[test]
fn a_question_keeps_its_number_when_its_process_is_ended_and_the_next_attempt_knows_the_answer() {
    let rests = [
        (Some("Bash"), Impediment::Approval, "needs_approval"),
        (None, Impediment::Question, "needs_input"),
    ];
    for (tool, by, reason) in rests {
        let mut story = Story::of(a_loop());
        asks(&mut story, "q1", tool);
        let seq = open(&story);
        gives_up(&mut story, "q1", by);
        let run = story.run();
        assert_eq!(run.why.reason_code.as_str(), reason);
        assert_eq!(open(&story), seq, "who saw the question can still answer it");
        answers(&mut story, Decision::Reply, "o1", seq);
        assert_eq!(current(&story), (1, 2), "{}", story.journal());
        let run = story.run();
        let last = run.attempt.as_ref().expect("it has started");
        let answer = last.asked_before.get("q1").and_then(|it| it.answer.as_ref());
        assert_eq!(answer.map(|it| it.decision), Some(Decision::Reply));
        assert_eq!(run.counters.attempts, 0);
        // Its words are a message, which the next prompt has.
        assert_eq!(run.given().map(|it| it.text.as_str()).collect::<Vec<_>>(), ["the left one"]);
    }
}

#[test]
fn an_answer_that_meets_a_process_on_its_way_out_lets_the_next_attempt_start_at_once() {
    let mut story = Story::of(a_loop());
    asks(&mut story, "q1", Some("Bash"));
    let seq = open(&story);
    answers(&mut story, Decision::Approve, "o1", seq);
    gives_up(&mut story, "q1", Impediment::Approval);
    assert_eq!((story.run().state, current(&story)), (State::Running, (1, 2)));
    let run = story.run();
    let before = &run.attempt.as_ref().expect("it has started").asked_before;
    assert!(before.get("q1").is_some_and(|it| it.answer.is_some()));
}

#[test]
fn a_resume_does_not_stand_for_a_decision_and_stands_for_an_answer() {
    let order = || Order { id: Some("o1".to_owned()), ..Order::default() };
    let mut story = Story::of(a_loop());
    asks(&mut story, "q1", Some("Bash"));
    story.tell(Input::ResumeAsked(order()));
    assert!(story.run().orders.get("o1").is_none(), "nothing rests");
    gives_up(&mut story, "q1", Impediment::Approval);
    story.tell(Input::ResumeAsked(order()));
    assert!(story.run().state.is_blocked());
    let mut story = Story::of(a_loop());
    asks(&mut story, "q1", None);
    gives_up(&mut story, "q1", Impediment::Question);
    story.tell(Input::ResumeAsked(order()));
    assert_eq!(current(&story), (1, 2));
}

#[test]
fn a_message_that_the_agent_took_is_given_once_unless_its_attempt_failed() {
    let sent = |story: &mut Story, id: &str| {
        let (message, from, text) = (id.to_owned(), "user".to_owned(), "stop at 5".to_owned());
        story.tell(Input::Sent { message, from, text, by: None });
        story.run().inbox.unread.last().expect("it is there").seq
    };
    let mut story = Story::of(a_loop());
    let first = sent(&mut story, "m1");
    let second = sent(&mut story, "m2");
    let (turn, attempt) = current(&story);
    story.tell(Input::Gave { turn, attempt, messages: vec![first, 7_777] });
    story.tell(Input::Gave { turn, attempt, messages: vec![first] });
    let run = story.run();
    assert!(run.live().is_some_and(|live| live.has_taken(first) && !live.has_taken(second)));
    // Whether a conversation that was cut off has it is not known, so it is said again.
    story.exits(1).wakes_after(400_000);
    let run = story.run();
    assert_eq!((current(&story), run.given().count()), ((1, 2), 2));
    story.answers(says(TurnStatus::Continue));
    let third = sent(&mut story, "m3");
    let (turn, attempt) = current(&story);
    story.tell(Input::Gave { turn, attempt, messages: vec![third] });
    story.answers(says(TurnStatus::Continue));
    assert!(story.run().inbox.unread.is_empty(), "{}", story.journal());
}

#[test]
fn a_question_that_is_taken_back_is_open_no_longer_and_an_answered_one_stays() {
    let mut story = Story::of(a_loop());
    asks(&mut story, "q1", Some("Bash"));
    asks(&mut story, "q2", Some("Bash"));
    let first = open(&story);
    answers(&mut story, Decision::Approve, "o1", first);
    let (turn, attempt) = current(&story);
    for question in ["q1", "q2", "q2", "q3"] {
        let question = question.to_owned();
        story.tell(Input::Withdrew { turn, attempt, question });
    }
    assert_eq!(open(&story), None);
    assert_eq!(story.journal().matches("QuestionWithdrawn").count(), 1, "{}", story.journal());
    let run = story.run();
    assert!(run.live().is_some_and(|live| live.asked.get("q1").is_some()));
}

/// These are on disk for good.
#[test]
fn the_words_in_the_journal_stay() {
    let asked = Fact::QuestionAsked {
        turn: 1,
        attempt: 2,
        question: "q1".to_owned(),
        tool: Some("Bash".to_owned()),
        text: "make".to_owned(),
    };
    let withdrawn = Fact::QuestionWithdrawn { turn: 1, attempt: 2, question: "q1".to_owned() };
    let given = Fact::MessagesGiven { turn: 1, attempt: 2, messages: vec![7, 9] };
    let json = |fact: &Fact| serde_json::to_string(fact).expect("plain data");
    assert_eq!(
        json(&asked),
        r#"{"kind":"QuestionAsked","turn":1,"attempt":2,"question":"q1","tool":"Bash","text":"make"}"#
    );
    assert_eq!(
        json(&withdrawn),
        r#"{"kind":"QuestionWithdrawn","turn":1,"attempt":2,"question":"q1"}"#
    );
    assert_eq!(json(&given), r#"{"kind":"MessagesGiven","turn":1,"attempt":2,"messages":[7,9]}"#);
    let old = r#"{"kind":"Answered","decision":"approve","actor":"user"}"#;
    let read: Fact = serde_json::from_str(old).expect("a journal from before is read");
    assert_eq!(json(&read), old);
}

#[derive(Debug, Clone)]
enum Act {
    Asks(u8, bool),
    Answers { decision: u8, id: u8, is_stale: bool },
    GivesUp(u8),
    Turn,
    Crash,
    Sent(u8),
    Takes,
    Time,
}

fn an_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0u8..4, any::<bool>()).prop_map(|(id, is_tool)| Act::Asks(id, is_tool)),
        4 => (0u8..3, 0u8..40, any::<bool>())
            .prop_map(|(decision, id, is_stale)| Act::Answers { decision, id, is_stale }),
        2 => (0u8..4).prop_map(Act::GivesUp),
        2 => Just(Act::Turn),
        1 => Just(Act::Crash),
        2 => (0u8..40).prop_map(Act::Sent),
        2 => Just(Act::Takes),
        1 => Just(Act::Time),
    ]
}

/// [`Story::tell`] holds every journal to the invariants.
fn play(story: &mut Story, act: &Act) {
    let run = story.run();
    let (is_live, (turn, attempt)) = (run.live().is_some(), current(story));
    match act {
        Act::Asks(id, is_tool) if is_live => {
            asks(story, &format!("q{id}"), is_tool.then_some("Bash"));
        }
        Act::Answers { decision, id, is_stale } => {
            let decision = [Decision::Approve, Decision::Deny, Decision::Reply][*decision as usize];
            let seq = if *is_stale { Some(run.seq() / 2) } else { open(story) };
            answers(story, decision, &format!("o{id}"), seq);
        }
        Act::GivesUp(id) if is_live => {
            let question = format!("q{id}");
            let is_tool = run.live().and_then(|it| it.asked.get(&question)?.tool.clone()).is_some();
            let by = if is_tool { Impediment::Approval } else { Impediment::Question };
            gives_up(story, &question, by);
        }
        Act::Turn if is_live => {
            story.answers(says(TurnStatus::Continue));
        }
        Act::Crash if is_live => {
            story.exits(1);
        }
        Act::Sent(id) => {
            let (message, from, text) = (format!("m{id}"), "user".to_owned(), "so".to_owned());
            story.tell(Input::Sent { message, from, text, by: None });
        }
        Act::Takes => {
            let messages = run.inbox.unread.iter().map(|it| it.seq).collect();
            story.tell(Input::Gave { turn, attempt, messages });
        }
        Act::Time => {
            story.wakes_after(400_000);
        }
        Act::Asks(..) | Act::GivesUp(_) | Act::Turn | Act::Crash => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn each_question_has_at_most_one_answer_whatever_happens(
        acts in proptest::collection::vec(an_act(), 1..60),
    ) {
        let mut story = Story::of(a_loop());
        for act in &acts {
            play(&mut story, act);
        }
        let mut answered = std::collections::BTreeSet::new();
        for event in &story.events {
            if let Fact::Answered { order, .. } = &event.fact {
                prop_assert!(answered.insert(order.answers), "two answers to one question");
            }
        }
    }
}
