//! How a run is doing: every word, since when and why, and that a run gets well again.

mod story;

use outlast_engine::TurnStatus::{Blocked, Continue};
use outlast_engine::{
    Custody, EndCause, Fact, Health, HealthRules, Input, Limits, Response, RunSpec, Seen, Time,
    Usage, Wait,
};
use story::{Story, a_loop, command, says};

const MINUTE_MS: u64 = 60_000;

fn word(story: &Story) -> &'static str {
    story.run().condition.health.word()
}

fn why(story: &Story) -> String {
    story.run().condition.why
}

/// Degradations and recoveries so far.
fn changes(story: &Story) -> Vec<String> {
    let of = |fact: &Fact| match fact {
        Fact::HealthDegraded { health, .. } => Some(health.word().to_owned()),
        Fact::HealthRecovered { from } => Some(format!("not {}", from.word())),
        _ => None,
    };
    story.events.iter().filter_map(|event| of(&event.fact)).collect()
}

fn neared(story: &Story) -> Vec<&'static str> {
    let of = |fact: &Fact| match fact {
        Fact::LimitNeared { limit, .. } => Some(limit.word()),
        _ => None,
    };
    story.events.iter().filter_map(|event| of(&event.fact)).collect()
}

fn quiet(ms: u64) -> Seen {
    Seen { quiet_ms: ms, ..Seen::default() }
}

#[test]
fn a_live_attempt_of_which_nothing_is_heard_is_silent_until_it_speaks() {
    let mut story = Story::of(command());
    story.report(|_| {});
    story.seen = quiet(4 * MINUTE_MS);
    story.wakes_after(4 * MINUTE_MS);
    assert_eq!(word(&story), "healthy");
    story.seen = quiet(6 * MINUTE_MS);
    story.wakes_after(2 * MINUTE_MS).tell(Input::Woke).tell(Input::Woke);
    assert_eq!((word(&story), why(&story).as_str()), ("silent", "no output for 6 minutes"));
    let since = story.run().condition.since;
    assert!(story.now.ms_since(since) >= 6 * MINUTE_MS);
    assert_eq!(story.run().condition.why_at(since.plus_ms(3 * 3_600_000)), "no output for 3 hours");
    story.seen = quiet(0);
    story.tell(Input::Woke).tell(Input::Woke);
    assert_eq!(changes(&story), ["silent", "not silent"]);
}

#[test]
fn half_of_a_short_stall_window_is_silent_and_an_attempt_that_is_not_there_is_not() {
    let limits = Limits { stall_window_ms: Some(60_000), ..a_loop().limits };
    let mut story = Story::of(RunSpec { limits, ..a_loop() });
    assert_eq!(story.run().silent_after_ms(), None, "its process does not exist yet");
    story.report(|_| {});
    assert_eq!(story.run().silent_after_ms(), Some(30_000));
    story.exits(1);
    assert_eq!(story.run().silent_after_ms(), None);
    let rules = HealthRules { silent_after_ms: 0, ..HealthRules::default() };
    let mut off = Story::of(RunSpec { health: rules, ..command() });
    off.report(|_| {});
    assert_eq!(off.run().silent_after_ms(), None);
}

#[test]
fn what_was_ended_for_its_silence_is_stalled_until_the_next_attempt_speaks() {
    let mut story = Story::of(a_loop());
    story.is_ended_for(EndCause::Stalled);
    assert_eq!(word(&story), "stalled");
    story.wakes_after(400_000).report(|_| {});
    assert_eq!(word(&story), "stalled", "nothing was heard of the next one");
    assert!(story.run().wants_output());
    story.seen = Seen { has_spoken: true, ..Seen::default() };
    story.tell(Input::Woke);
    assert_eq!(changes(&story), ["stalled", "not stalled"]);
    story.seen = Seen::default();
    story.is_ended_for(EndCause::Stalled).wakes_after(400_000).answers(says(Continue));
    assert_eq!(changes(&story), ["stalled", "not stalled", "stalled", "not stalled"]);
}

#[test]
fn three_failed_attempts_at_a_turn_are_thrashing_until_it_commits() {
    let mut story = Story::of(a_loop());
    story.exits(1).wakes_after(400_000).exits(1).wakes_after(400_000);
    assert_eq!(word(&story), "healthy");
    story.exits(1);
    assert_eq!(
        (word(&story), why(&story).as_str()),
        ("thrashing", "3 attempts at turn 1 have failed")
    );
    story.wakes_after(400_000).answers(says(Continue));
    assert_eq!(changes(&story), ["thrashing", "not thrashing"]);
}

#[test]
fn turns_that_change_nothing_are_thrashing_one_before_they_are_blocked_for_it() {
    let mut story = Story::of(a_loop());
    story.answers_in(says(Continue), "a").answers_in(says(Continue), "a");
    assert_eq!(word(&story), "healthy");
    story.answers_in(says(Continue), "a");
    assert_eq!(
        (word(&story), why(&story).as_str()),
        ("thrashing", "2 turns in a row changed nothing")
    );
    story.answers_in(says(Continue), "b");
    assert_eq!(word(&story), "healthy");
}

#[test]
fn a_blocked_run_waits_for_a_person_and_says_what_for() {
    let mut story = Story::of(a_loop());
    story.answers(says(Blocked));
    assert_eq!(
        (word(&story), why(&story).as_str()),
        ("waiting_human", "waits for an answer: agent_blocked")
    );
    assert_eq!(story.run().condition.since, story.run().since);
    story.tell(Input::ResumeAsked(outlast_engine::Order::default()));
    assert_eq!(changes(&story), ["waiting_human", "not waiting_human"]);
}

#[test]
fn an_agent_that_was_sent_away_waits_out_its_rate_limit_whatever_it_is_told() {
    let mut story = Story::of(a_loop());
    let until = story.now.plus_ms(10 * MINUTE_MS);
    story.answers(Response { wait: Some(Wait::RateLimit(until)), ..says(Continue) });
    assert_eq!((word(&story), story.run().due_at()), ("rate_limited", Some(until)));
    let (message, from, text) = ("m1".to_owned(), "user".to_owned(), "hurry".to_owned());
    story.tell(Input::Sent { message, from, text, by: None });
    assert_eq!(story.is_at(), "waiting (rate_limit), rate_limit");
    story.wakes_after(10 * MINUTE_MS);
    assert_eq!(changes(&story), ["rate_limited", "not rate_limited"]);
    assert_eq!(story.is_at(), "running (rate_limit_over), turn 2 attempt 1");
}

#[test]
fn an_orphan_is_one_until_its_end_is_known() {
    let mut story = Story::of(a_loop());
    story.report(|_| {}).report(|report| report.custody = Custody::Orphan);
    assert_eq!(word(&story), "orphaned");
    story.is_lost();
    assert_eq!(changes(&story), ["orphaned", "not orphaned"]);
}

#[test]
fn a_shim_that_does_not_answer_comes_first() {
    let mut story = Story::of(a_loop());
    story.report(|_| {});
    story.seen = Seen { unreachable: Some(Time(5)), quiet_ms: u64::MAX, has_spoken: false };
    story.tell(Input::Woke);
    assert_eq!((word(&story), story.run().condition.since), ("unreachable", Time(5)));
    story.seen.unreachable = None;
    story.tell(Input::Woke);
    story.seen.quiet_ms = 0;
    story.tell(Input::Woke);
    assert_eq!(changes(&story), ["unreachable", "silent", "not silent"]);
}

fn usage(tokens: u64, cost_usd_micros: u64) -> Usage {
    let (input_tokens, output_tokens) = (Some(tokens), Some(0));
    let cost_usd_micros = Some(cost_usd_micros);
    Usage { input_tokens, output_tokens, cached_tokens: None, cost_usd_micros }
}

fn limited() -> RunSpec {
    let limits = Limits {
        max_turns: Some(10),
        max_tokens: Some(1000),
        max_cost_usd_micros: Some(1_000_000),
        run_timeout_ms: Some(100_000_000),
        ..a_loop().limits
    };
    RunSpec { limits, ..a_loop() }
}

#[test]
fn each_limit_is_near_once_and_the_run_says_which() {
    let mut story = Story::of(limited());
    let turn = |tokens, cost| Response { usage: Some(usage(tokens, cost)), ..says(Continue) };
    story.answers(turn(790, 1)).answers(turn(20, 1)).answers(turn(20, 850_000));
    assert_eq!(neared(&story), ["max_tokens", "max_cost_usd"]);
    assert_eq!(changes(&story), ["near_limit"]);
    assert_eq!(why(&story), "81 % of max_tokens is used");
    let at = story.run().wake_at().expect("its time passes");
    assert!(at < story.run().due_at().expect("it has a deadline"));
    story.now = at;
    story.tell(Input::Woke).tell(Input::Woke);
    assert_eq!(neared(&story), ["max_tokens", "max_cost_usd", "run_timeout"]);
    assert_eq!(story.run().wake_at(), story.run().due_at());
}

#[test]
fn usage_that_streams_in_counts_at_once_and_ends_the_attempt_at_the_ceiling() {
    let mut story = Story::of(limited());
    story.report(|_| {});
    let says =
        |tokens, cost| Input::UsageReported { turn: 1, attempt: 1, usage: usage(tokens, cost) };
    story.tell(says(100, 10)).tell(says(101, 11)).tell(says(100, 10));
    assert_eq!(story.run().spend.tokens(), 100, "too little to write down");
    story.tell(says(850, 10));
    assert_eq!((story.run().spend.tokens(), word(&story)), (850, "near_limit"));
    story.tell(says(1_001, 10));
    assert!(story.run().limit.is_some());
    assert!(
        story
            .run()
            .due()
            .iter()
            .any(|effect| matches!(effect, outlast_engine::Effect::Stop { .. }))
    );
    story.is_ended_for(EndCause::Stopped).tell(Input::Finished);
    let run = story.run();
    assert_eq!(
        (run.state.name().word(), run.why.reason_code.as_str()),
        ("exhausted", "max_tokens")
    );
    assert_eq!((run.spend.tokens(), run.spend.cost_usd_micros), (1_001, 10));
    let reports = story.events.iter().filter(|event| event.fact.kind() == "UsageReported").count();
    assert_eq!(reports, 3);
}

#[test]
fn what_was_streamed_is_not_charged_again_at_the_end() {
    let mut story = Story::of(limited());
    story.report(|_| {});
    let input = |attempt| Input::UsageReported { turn: 1, attempt, usage: usage(300, 20) };
    story.tell(input(1)).tell(input(2));
    story.answers(Response { usage: Some(usage(310, 15)), ..says(Continue) });
    let spend = story.run().spend;
    assert_eq!((spend.tokens(), spend.cost_usd_micros, spend.known.is_all()), (310, 20, true));
    assert_eq!(
        story.run().reserves(),
        (100, 100_000),
        "a tenth of each ceiling, for the next turn"
    );
}

#[test]
fn every_word_of_health_is_told_apart() {
    let words: std::collections::BTreeSet<_> = Health::ALL.map(Health::word).into();
    assert_eq!(words.len(), Health::ALL.len());
}
