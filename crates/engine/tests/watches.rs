//! The engine told as stories: watches that find something, and the heartbeat.

mod story;

use outlast_engine::{
    Answer, End, Exit, Fact, Input, Matched, RunSpec, STRIKES, TELLINGS, Time, TreeNews,
    TurnStatus, WINDOW_MS,
};
use story::{Story, a_loop, command, says};

fn watched() -> RunSpec {
    RunSpec {
        watches: vec!["error".to_owned(), "warn".to_owned()],
        notify: vec!["desk".to_owned()],
        ..command()
    }
}

/// A run whose attempt is alive.
fn live(spec: RunSpec) -> Story {
    let mut story = Story::of(spec);
    story.report(|_| {});
    story
}

/// So many lines, the last of which ends here.
fn found(watch: u32, count: u64, offset: u64) -> Matched {
    let mut matched = Matched::new(watch);
    for number in 1..=count {
        matched.add(&format!("error {number}"), offset - count + number);
    }
    matched
}

fn matches(story: &mut Story, matched: Matched) {
    story.tell(Input::Matched { turn: 1, attempt: 1, matched });
}

/// What was told: the watch, how many lines, how many were left out.
fn told(story: &Story) -> Vec<(u32, usize, u64)> {
    let told = |fact: &Fact| match fact {
        Fact::OutputMatched { watch, lines, suppressed, .. } => {
            Some((*watch, lines.len(), *suppressed))
        }
        _ => None,
    };
    story.events.iter().filter_map(|event| told(&event.fact)).collect()
}

fn disabled(story: &Story) -> Vec<(u32, String, u64)> {
    let disabled = |fact: &Fact| match fact {
        Fact::WatchDisabled { watch, why, suppressed } => Some((*watch, why.clone(), *suppressed)),
        _ => None,
    };
    story.events.iter().filter_map(|event| disabled(&event.fact)).collect()
}

fn pass(story: &mut Story, ms: u64) {
    story.now = story.now.plus_ms(ms);
}

#[test]
fn a_match_is_told_at_once_and_the_next_one_when_the_window_is_over() {
    let mut story = live(watched());
    matches(&mut story, found(0, 1, 100));
    matches(&mut story, found(0, 2, 300));
    assert_eq!(told(&story), [(0, 1, 0)]);
    let wait_ms = story.run().watches[0].wait_ms(story.now);
    assert!((1..WINDOW_MS).contains(&wait_ms), "{wait_ms}");
    pass(&mut story, wait_ms);
    matches(&mut story, found(0, 2, 300));
    assert_eq!(told(&story), [(0, 1, 0), (0, 2, 0)]);
}

#[test]
fn each_watch_has_a_window_of_its_own() {
    let mut story = live(watched());
    matches(&mut story, found(0, 1, 100));
    matches(&mut story, found(1, 1, 100));
    assert_eq!(told(&story), [(0, 1, 0), (1, 1, 0)]);
}

#[test]
fn what_was_told_is_not_told_again_also_after_a_restart() {
    let mut story = live(watched());
    matches(&mut story, found(0, 3, 100));
    pass(&mut story, WINDOW_MS);
    // A daemon that was sent the same news again, and one that has read it all anew.
    matches(&mut story, found(0, 3, 100));
    matches(&mut story, found(0, 1, 40));
    assert_eq!(told(&story), [(0, 3, 0)]);
    assert_eq!(story.run().watches[0].offset(), 100);
}

#[test]
fn three_windows_in_a_row_with_too_much_end_a_watch_with_one_summary() {
    let mut story = live(watched());
    for number in 1..=u64::from(STRIKES) + 2 {
        matches(&mut story, found(0, 30, number * 1000));
        pass(&mut story, WINDOW_MS);
    }
    assert_eq!(told(&story), [(0, 20, 10); STRIKES as usize]);
    let why = "the watch for \"error\" looks no more: 3 times in a row more lines matched than can be told; \
               30 lines that matched were not told";
    assert_eq!(disabled(&story), [(0, why.to_owned(), 30)]);
    // The other one goes on.
    matches(&mut story, found(1, 1, 9000));
    assert_eq!(told(&story).last(), Some(&(1, 1, 0)));
    let kinds: Vec<&str> =
        story.run().notices(&story.events).iter().map(|notice| notice.kind.word()).collect();
    assert_eq!(kinds, ["run.matched"; STRIKES as usize + 2]);
}

#[test]
fn a_window_without_too_much_in_between_ends_the_row() {
    let mut story = live(watched());
    for (number, count) in [30, 30, 1, 30, 30].into_iter().enumerate() {
        matches(&mut story, found(0, count, (number as u64 + 1) * 1000));
        pass(&mut story, WINDOW_MS);
    }
    assert_eq!((told(&story).len(), disabled(&story).len()), (5, 0));
}

#[test]
fn the_last_of_all_tellings_is_told_and_then_the_summary() {
    let mut story = live(watched());
    for number in 1..=u64::from(TELLINGS) + 2 {
        matches(&mut story, found(0, 1, number * 1000));
        pass(&mut story, WINDOW_MS);
    }
    assert_eq!(told(&story), [(0, 1, 0); TELLINGS as usize]);
    let why = "the watch for \"error\" looks no more: it has told 8 times";
    assert_eq!(disabled(&story), [(0, why.to_owned(), 0)]);
    let last: Vec<&str> = story.events.iter().rev().take(2).map(|it| it.fact.kind()).collect();
    assert_eq!(last, ["WatchDisabled", "OutputMatched"]);
}

#[test]
fn what_was_held_back_is_told_with_the_end_and_nothing_after_it() {
    let mut story = live(watched());
    matches(&mut story, found(0, 1, 100));
    let at = story.now.plus_ms(3);
    story.report(|report| {
        report.end = Some(End::Exited { at, exit: Exit::Code(1), cause: None });
        report.tree = TreeNews::Empty;
        report.matched = vec![found(0, 2, 300), found(1, 0, 0)];
    });
    assert_eq!(told(&story), [(0, 1, 0), (0, 2, 0)]);
    pass(&mut story, WINDOW_MS);
    matches(&mut story, found(0, 1, 400));
    assert_eq!(told(&story).len(), 2);
    let kinds: Vec<&str> = story.events.iter().map(|event| event.fact.kind()).collect();
    let end = kinds.iter().position(|kind| *kind == "AttemptEnded");
    let last = kinds.iter().rposition(|kind| *kind == "OutputMatched");
    assert!(last < end, "{kinds:?}");
}

#[test]
fn the_output_of_the_next_attempt_begins_at_its_first_byte() {
    let mut story = live(RunSpec { watches: vec!["error".to_owned()], ..a_loop() });
    matches(&mut story, found(0, 1, 5000));
    story.answers(says(TurnStatus::Continue)).report(|_| {});
    pass(&mut story, WINDOW_MS);
    story.tell(Input::Matched { turn: 2, attempt: 1, matched: found(0, 1, 10) });
    assert_eq!(told(&story).len(), 2);
    // The tellings are counted over the whole run.
    assert_eq!(story.run().watches[0].wait_ms(story.now), WINDOW_MS);
}

#[test]
fn a_notice_is_about_the_attempt_that_wrote_the_line() {
    let mut story = live(RunSpec {
        watches: vec!["error".to_owned()],
        notify: vec!["desk".to_owned()],
        ..a_loop()
    });
    let at = story.now.plus_ms(3);
    let before = story.events.len();
    story.report(|report| {
        report.end = Some(End::Exited { at, exit: Exit::Code(0), cause: None });
        report.tree = TreeNews::Empty;
        report.answer = Answer::Given(Box::new(says(TurnStatus::Continue)));
        report.matched = vec![found(0, 1, 10)];
    });
    let notices = story.run().notices(&story.events[before..]);
    assert_eq!(story.is_at(), "running (slot_free), turn 2 attempt 1");
    assert_eq!((notices[0].turn, notices[0].attempt), (1, 1));
    assert!(notices[0].id.contains("/t1.a1/"), "{}", notices[0].id);
}

#[test]
fn news_of_an_attempt_that_is_over_or_of_no_watch_is_no_news() {
    let mut story = live(watched());
    story.tell(Input::Matched { turn: 1, attempt: 2, matched: found(0, 1, 10) });
    story.tell(Input::Matched { turn: 1, attempt: 1, matched: found(7, 1, 10) });
    story.tell(Input::Matched { turn: 1, attempt: 1, matched: Matched::new(0) });
    assert_eq!(told(&story), []);
}

fn beats(story: &mut Story, output_bytes: u64) {
    story.tell(Input::HeartbeatDue { turn: 1, attempt: 1, output_bytes });
}

fn beaten(story: &Story) -> Vec<u64> {
    let beaten = |fact: &Fact| match fact {
        Fact::HeartbeatTold { output_bytes, .. } => Some(*output_bytes),
        _ => None,
    };
    story.events.iter().filter_map(|event| beaten(&event.fact)).collect()
}

#[test]
fn a_heartbeat_is_told_in_its_time_and_only_of_new_output() {
    let mut story = live(RunSpec { heartbeat_ms: Some(60_000), ..watched() });
    beats(&mut story, 10);
    assert_eq!(beaten(&story), []);
    pass(&mut story, 60_000);
    beats(&mut story, 10);
    // Too early, and then nothing new.
    beats(&mut story, 20);
    pass(&mut story, 60_000);
    beats(&mut story, 10);
    assert_eq!(beaten(&story), [10]);
    assert_eq!(story.run().heartbeat_in_ms(10, story.now), None);
    assert_eq!(story.run().heartbeat_in_ms(11, story.now), Some(0));
    beats(&mut story, 20);
    assert_eq!(beaten(&story), [10, 20]);
}

#[test]
fn nobody_hears_of_output_who_does_not_want_to() {
    let mut story = live(watched());
    pass(&mut story, 10_000_000);
    assert_eq!(story.run().heartbeat_in_ms(10, story.now), None);
    beats(&mut story, 10);
    assert_eq!(beaten(&story), []);
    assert!(story.now > Time(10_000_000));
}
