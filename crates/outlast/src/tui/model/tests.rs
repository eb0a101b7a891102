//! The screen, told as a story of keys and news.

use super::*;
use crate::output::sample as views;
use crate::tui::sample::{self, NOW};
use outlast_wire::words::ReasonCode;

fn model(rows: Vec<RunRow>) -> Model {
    let mut model = Model::new(NOW.parse().expect("a time"), Scope::All);
    model.update(Event::Hello { since: NOW.to_owned() });
    for row in rows {
        model.update(Event::Row(Box::new(row)));
    }
    model.update(Event::Listed { is_cut: false });
    model.settle(10);
    model
}

fn press(model: &mut Model, keys: &str) -> Vec<Effect> {
    let effects = keys.chars().flat_map(|key| {
        let key = match key {
            '\r' => Key::Enter,
            '\x1b' => Key::Escape,
            other => Key::Char(other),
        };
        model.update(Event::Key(key))
    });
    effects.collect()
}

fn order(run: &str, what: What) -> Effect {
    Effect::Order(Order { run: run.to_owned(), what })
}

#[test]
fn a_stop_is_asked_about_first() {
    let mut model = model(vec![sample::row("k3m", "running", 1)]);
    assert_eq!(press(&mut model, "sn"), []);
    assert_eq!(press(&mut model, "s\x1b"), []);
    assert_eq!(press(&mut model, "s\r"), [], "a key too many is not a yes");
    assert_eq!(press(&mut model, "sy"), [order("k3m", What::Stop)]);
    assert_eq!(press(&mut model, "Sy"), [order("k3m", What::StopNow)]);
}

#[test]
fn what_was_asked_about_is_what_is_stopped() {
    let mut model = model(vec![sample::row("old", "running", 9)]);
    press(&mut model, "s");
    model.update(Event::Row(Box::new(sample::row("new", "running", 0))));
    model.settle(10);
    assert_eq!(press(&mut model, "y"), [order("old", What::Stop)]);
}

#[test]
fn a_question_is_answered_in_a_line() {
    let mut model = model(vec![sample::row("k3mx7q9w2r5t", "blocked", 1)]);
    let look = Effect::LookToAnswer { run: "k3mx7q9w2r5t".to_owned() };
    assert_eq!(press(&mut model, "A"), [look]);
    let view = views::blocked("agent_blocked", Some("left\x1b[2J or right?\n"));
    model.update(Event::ToAnswer(Box::new(view)));
    let Mode::Type { purpose: Purpose::Answer { question, .. }, .. } = &model.mode else {
        panic!("{:?}", model.mode)
    };
    assert_eq!(question, "left·[2J or right?");
    assert_eq!(press(&mut model, "\r"), [], "nothing is no answer");
    let answer = What::Answer { answer: api::Answer::Text("sq".to_owned()), seq: Some(7) };
    assert_eq!(press(&mut model, "sq\r"), [order("k3mx7q9w2r5t", answer)]);
    assert_eq!(model.mode, Mode::Commands);
}

#[test]
fn an_approval_is_a_yes_or_a_no() {
    let mut model = model(vec![sample::row("k3mx7q9w2r5t", "blocked", 1)]);
    let approval = || views::blocked("needs_approval", Some("may I push?"));
    model.update(Event::ToAnswer(Box::new(approval())));
    let approve = What::Answer { answer: api::Answer::Approve, seq: Some(7) };
    assert_eq!(press(&mut model, "y"), [order("k3mx7q9w2r5t", approve)]);
    model.update(Event::ToAnswer(Box::new(approval())));
    let deny = What::Answer { answer: api::Answer::Deny, seq: Some(7) };
    assert_eq!(press(&mut model, "n"), [order("k3mx7q9w2r5t", deny)]);
    model.update(Event::ToAnswer(Box::new(views::running_loop())));
    assert!(model.notice.as_ref().is_some_and(|notice| notice.is_problem));
}

#[test]
fn pause_and_resume_are_one_key() {
    let paused = RunRow {
        reason_code: Some(ReasonCode::Paused.into()),
        asks_seq: Some(9),
        ..sample::row("a", "waiting", 1)
    };
    let mut model = model(vec![paused]);
    assert_eq!(press(&mut model, "p"), [order("a", What::Resume { seq: Some(9) })]);
    model.update(Event::Row(Box::new(sample::row("a", "running", 1))));
    assert_eq!(press(&mut model, "p"), [order("a", What::Pause)]);
    assert_eq!(press(&mut model, "mgo on\r"), [order("a", What::Send("go on".to_owned()))]);
}

#[test]
fn without_a_run_nothing_is_ordered() {
    let mut model = model(Vec::new());
    assert_eq!(press(&mut model, "sySyprAmt\ro"), []);
}

#[test]
fn a_run_is_opened_and_left_again() {
    let mut model = model(vec![sample::row("a", "running", 1)]);
    let follow = Effect::Follow { following: 1, run: "a".to_owned(), after: 0, turn: None };
    assert_eq!(press(&mut model, "\r"), [follow, Effect::Look { run: "a".to_owned() }]);
    let wrote = |following, text: &str| Event::Followed {
        following,
        news: Followed::Wrote(Piece::Data {
            stream: outlast_wire::output::Stream::Stdout,
            at_ms: 0,
            bytes: text.as_bytes().to_vec(),
        }),
    };
    model.update(wrote(1, "hello\n"));
    model.update(wrote(0, "of another\n"));
    let Page::Run(detail) = &model.page else { panic!("it is open") };
    assert_eq!(detail.output.upwards().collect::<Vec<_>>(), ["hello"]);
    assert_eq!(press(&mut model, "\x1b"), [Effect::Unfollow]);
    assert!(matches!(model.page, Page::List));
}

#[test]
fn a_daemon_that_comes_back_is_asked_again_for_what_broke() {
    let mut model = model(vec![sample::row("a", "running", 1)]);
    press(&mut model, "o");
    model.update(Event::Lost { why: "gone".to_owned() });
    let since = model.now;
    assert_eq!(model.link, Link::Gone { since, why: "gone".to_owned() });
    assert_eq!(model.update(Event::Hello { since: NOW.to_owned() }), [], "it goes on by itself");
    let broke = Followed::Broke { why: "gone".to_owned() };
    model.update(Event::Followed { following: 1, news: broke });
    let effects = model.update(Event::Hello { since: NOW.to_owned() });
    let again = Effect::Follow { following: 2, run: "a".to_owned(), after: 0, turn: None };
    assert_eq!(effects.first(), Some(&again));
}

#[test]
fn a_filter_narrows_as_it_is_typed_and_escape_lifts_it() {
    let mut model = model(vec![sample::row("abc", "running", 1), sample::row("xyz", "running", 2)]);
    press(&mut model, "/xy");
    model.settle(10);
    assert_eq!(model.list.lines().len(), 1);
    press(&mut model, "\r");
    assert_eq!(press(&mut model, "sy"), [order("xyz", What::Stop)]);
    press(&mut model, "\x1b");
    model.settle(10);
    assert_eq!(model.list.lines().len(), 2);
}

#[test]
fn leaving_is_always_possible() {
    for before in ["", "?", "s", "/abc", "mabc", "\r"] {
        let mut model = model(vec![sample::row("a", "running", 1)]);
        press(&mut model, before);
        assert_eq!(model.update(Event::Key(Key::Ctrl('c'))), [Effect::Leave], "{before:?}");
    }
    assert_eq!(press(&mut model(Vec::new()), "q"), [Effect::Leave]);
}

#[test]
fn a_child_that_comes_or_ends_has_the_budgets_asked_for_once() {
    let mut model = model(vec![sample::row("k3mx7q9w2r5t", "running", 1)]);
    let look = [Effect::Look { run: "k3mx7q9w2r5t".to_owned() }];
    assert!(press(&mut model, "\r").contains(&look[0]));
    let happens = |model: &mut Model, seq: u64, kind: &str| {
        let json = format!(r#"{{"seq":{seq},"at":"2026-11-15T11:59:00Z","kind":"{kind}"}}"#);
        let event = Box::new(journal::Event::read(&json).expect("an event"));
        model.update(Event::Followed { following: 1, news: Followed::Happened(event) })
    };
    assert_eq!(happens(&mut model, 3, "ChildSpawned"), [], "it is being asked about");
    let seen = |seq: u64| Event::Looked(Box::new(RunView { seq, ..views::running_loop() }));
    assert_eq!(model.update(seen(19)), [], "the answer is newer than that");
    assert_eq!(happens(&mut model, 20, "NoteTaken"), []);
    assert_eq!(happens(&mut model, 21, "ChildSpawned"), look);
    assert_eq!(happens(&mut model, 22, "ChildSpawned"), [], "one question at a time");
    assert_eq!(model.update(seen(21)), look);
    assert_eq!(model.update(Event::Refused { text: "gone".to_owned() }), []);
    assert_eq!(happens(&mut model, 23, "ChildSettled"), look);
}
