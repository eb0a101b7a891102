//! Which events are told, to whom, and under which ids.

mod story;

use outlast_engine::{
    Event, Input, Limits, Notice, OutputPolicy, Run, RunSpec, StopMode, TurnStatus,
};
use story::{Story, a_loop, command, retried, says};

fn told(spec: RunSpec) -> RunSpec {
    RunSpec { notify: vec!["phone".to_owned(), "cmd:cat".to_owned()], ..spec }
}

/// Every notice of a story, each about the run as its own event left it.
fn notices(events: &[Event]) -> Vec<Notice> {
    let (first, rest) = events.split_first().expect("a story has a beginning");
    let id = Story::of(command()).id;
    let mut run = Run::replay(&id, std::slice::from_ref(first)).expect("a story is legal");
    let mut notices = Vec::new();
    for event in rest {
        run = run.apply(event).expect("a story is legal");
        notices.extend(run.notices(std::slice::from_ref(event)));
    }
    notices
}

fn kinds(story: &Story) -> Vec<&'static str> {
    notices(&story.events).iter().map(|notice| notice.kind.word()).collect()
}

#[test]
fn an_end_is_told_once_whatever_came_before() {
    let mut story = Story::of(told(retried(3)));
    story.exits(1).wakes_after(60_000).exits(1).wakes_after(60_000).exits(1).tell(Input::Finished);
    assert_eq!(kinds(&story), ["run.failed"]);
    let notice = &notices(&story.events)[0];
    let last = story.events.last().expect("it has ended");
    assert_eq!(notice.id, format!("{}/t1.a3/{}", story.id, last.seq));
    assert_eq!(notice.to, ["phone", "cmd:cat"]);
    assert_eq!((notice.at, notice.turn, notice.attempt), (last.at, 1, 3));
}

#[test]
fn each_kind_of_end_has_its_word() {
    let mut done = Story::of(told(command()));
    done.exits(0).tell(Input::Finished);
    assert_eq!(kinds(&done), ["run.completed"]);
    let mut stopped = Story::of(told(command()));
    stopped
        .tell(Input::StopAsked { mode: StopMode::Now, order: outlast_engine::Order::default() })
        .exits(0)
        .tell(Input::Finished);
    assert_eq!(kinds(&stopped), ["run.stopped"]);
    let limits = Limits { max_turns: Some(1), ..Limits::default() };
    let mut spent = Story::of(told(RunSpec { limits, ..a_loop() }));
    spent.answers_in(says(TurnStatus::Continue), "one").tell(Input::Finished);
    assert_eq!(kinds(&spent), ["run.exhausted"]);
}

#[test]
fn a_run_that_needs_a_person_says_so_each_time() {
    let mut story = Story::of(told(a_loop()));
    story.answers(says(TurnStatus::Blocked));
    assert_eq!(kinds(&story), ["run.blocked"]);
    assert_eq!(notices(&story.events)[0].summary.as_deref(), Some("blocked it is"));
    story
        .tell(Input::ResumeAsked(outlast_engine::Order::default()))
        .answers(says(TurnStatus::Blocked));
    assert_eq!(kinds(&story), ["run.blocked", "run.blocked"]);
}

#[test]
fn nobody_is_told_when_nobody_asked() {
    let mut story = Story::of(a_loop());
    story
        .answers(says(TurnStatus::Blocked))
        .tell(Input::ResumeAsked(outlast_engine::Order::default()));
    story.answers(says(TurnStatus::Done)).tell(Input::Finished);
    assert_eq!(notices(&story.events), []);
}

#[test]
fn what_a_turn_says_belongs_to_that_turn_and_goes_where_it_should() {
    let emit_to = vec!["log".to_owned(), "phone".to_owned()];
    let output = OutputPolicy { emit_to, ..OutputPolicy::default() };
    let mut story = Story::of(RunSpec { output, ..a_loop() });
    // The next turn starts with what the first one says.
    story.answers_in(says(TurnStatus::Continue), "one");
    story.answers(says(TurnStatus::Done)).tell(Input::Finished);
    let told = notices(&story.events);
    let said: Vec<_> =
        told.iter().map(|it| (it.turn, it.to.join(" "), it.summary.as_deref())).collect();
    let expected = [
        (1, "phone".to_owned(), Some("continue it is")),
        (2, "phone".to_owned(), Some("done it is")),
    ];
    assert_eq!(said, expected);
}

#[test]
fn the_same_journal_makes_the_same_notices() {
    let mut story = Story::of(told(a_loop()));
    story
        .answers(says(TurnStatus::Blocked))
        .tell(Input::ResumeAsked(outlast_engine::Order::default()));
    story.answers(says(TurnStatus::Done)).tell(Input::Finished);
    let (once, again) = (notices(&story.events), notices(&story.events));
    assert_eq!(once, again);
    let ids: std::collections::BTreeSet<&String> = once.iter().map(|notice| &notice.id).collect();
    assert_eq!((ids.len(), once.len()), (2, 2));
}
