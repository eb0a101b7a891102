//! Time and money: what was used stays used, whatever dies and whatever is done to the clock.
//!
//! Time passes on every clock. A wall clock that is set moves alone.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::harness::{Gate, Home, str_of, until};
use crate::hosted::{BEARS_ALL, configure};
use crate::stalls::{says, start};

const HOUR_MS: i64 = 3_600_000;

/// A home whose wall clock the test sets.
pub(crate) struct Clock {
    pub(crate) home: Home,
    file: PathBuf,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let home = Home::new();
        let file = home.scratch().join("clock");
        let clock = Self { home: home.env("OUTLAST_FAKE_CLOCK_FILE", &file), file };
        clock.set(0);
        clock
    }

    /// Has so much time passed since the test began, on every clock.
    pub(crate) fn set(&self, passed_ms: i64) {
        self.write(&passed_ms.to_string());
    }

    /// Sets the wall clock so far off, and nothing else.
    pub(crate) fn set_wall(&self, off_ms: i64) {
        self.write(&format!("0 {off_ms}"));
    }

    /// The same, and it has stood for as long as it takes to be believed.
    pub(crate) fn correct_wall(&self, off_ms: i64) {
        self.write(&format!("0 {off_ms} 0"));
    }

    fn write(&self, text: &str) {
        let part = self.file.with_extension("part");
        fs::write(&part, text).expect("the scratch directory is ours");
        fs::rename(part, &self.file).expect("the scratch directory is ours");
    }
}

/// A loop whose agent is this script, with these limits and this delay after a failure.
fn a_loop(script: &str, limits: &str, backoff_ms: u64) -> String {
    let script = script.replace('\n', "\n    ");
    format!(
        "---\nagent:\n  kind: exec\n  command: |\n    {script}\n  max_turns: 1000\n\
         limits: {{ {limits} }}\n\
         retry: {{ initial_backoff_ms: {backoff_ms}, max_backoff_ms: {backoff_ms} }}\n---\nDo it.\n"
    )
}

pub(crate) fn restart(home: &Home) {
    home.crash_daemon();
    home.ok(&["daemon", "start"]);
}

fn used_ms(run: &Value) -> u64 {
    run["limits"]["run_timeout_ms"]["used"].as_u64().unwrap_or_else(|| panic!("no time in {run}"))
}

fn waits(home: &Home, id: &str) -> Value {
    until("the run waits", || {
        let run = home.show(id);
        (run["state"] == "waiting").then_some(run)
    })
}

fn is_at_turn(home: &Home, id: &str, turn: u32) -> Value {
    until("the turn runs", || {
        let run = home.show(id);
        (run["turn"] == turn && run["pid"].is_u64()).then_some(run)
    })
}

#[test]
fn a_delay_is_kept_through_the_death_of_the_daemon() {
    let clock = Clock::new();
    let home = &clock.home;
    let script = format!("[ $OUTLAST_ATTEMPT -gt 1 ] || exit 1\n{}", says("done"));
    let id = start(home, &a_loop(&script, "run_timeout_ms: 0", 3_600_000));
    let before = waits(home, &id);
    let wake_at = str_of(&before, "wake_at").to_owned();
    assert_eq!(str_of(&before, "phase"), "backoff");
    restart(home);
    assert_eq!(str_of(&home.show(&id), "wake_at"), wake_at);
    // Ten per cent less is the shortest that a delay of an hour can be.
    clock.set(HOUR_MS * 8 / 10);
    restart(home);
    let still = home.show(&id);
    assert_eq!((str_of(&still, "state"), str_of(&still, "wake_at")), ("waiting", wake_at.as_str()));
    clock.set(HOUR_MS * 12 / 10);
    restart(home);
    assert_eq!(home.wait(&id), 0);
    let events = home.events(&id);
    let started: Vec<&Value> =
        events.iter().filter(|event| event["kind"] == "TurnStarted").collect();
    assert_eq!(started.len(), 2);
    assert!(
        str_of(started[1], "at") >= wake_at.as_str(),
        "started before {wake_at}: {}",
        started[1]
    );
}

/// A short delay, waited for by one daemon and ended by another.
#[test]
fn the_next_attempt_is_not_made_before_its_time_by_a_new_daemon() {
    let home = Home::new();
    let script = format!("[ $OUTLAST_ATTEMPT -gt 1 ] || exit 1\n{}", says("done"));
    let id = start(&home, &a_loop(&script, "run_timeout_ms: 0", 1000));
    until("the attempt has failed", || (home.count(&id, "AttemptEnded") == 1).then_some(()));
    restart(&home);
    assert_eq!(home.wait(&id), 0);
    let events = home.events(&id);
    let of = |kind: &'static str| events.iter().filter(move |event| event["kind"] == kind);
    let waiting = of("StateChanged").find(|event| event["to"] == "waiting").expect("it waited");
    let again = of("TurnStarted").nth(1).expect("it was tried again");
    assert!(str_of(again, "at") >= str_of(waiting, "until"), "{waiting}\n{again}");
}

/// Turns that cost a cent each, every one with the death of a daemon in it.
#[test]
fn money_stays_spent_through_ten_deaths_of_the_daemon() {
    let home = Home::new();
    configure(&home, BEARS_ALL);
    let mut gate = Gate::new(&home, "gate");
    let script = format!(
        "{}\necho $OUTLAST_TURN > turn\n\
         echo '{{\"status\":\"continue\",\"usage\":{{\"input_tokens\":5,\"output_tokens\":5,\"cost_usd\":0.01}}}}' > \"$OUTLAST_RESPONSE_FILE\"",
        gate.pass()
    );
    let limits = "max_cost_usd: 0.1, max_tokens: 1000, run_timeout_ms: 7200000";
    let id = start(&home, &a_loop(&script, limits, 10));
    let (mut cost, mut used) = (0.0, 0);
    for turn in 1..=10 {
        is_at_turn(&home, &id, turn);
        restart(&home);
        let run = home.show(&id);
        let spent = run["usage"]["cost_usd"].as_f64().expect("money is a number");
        assert!(spent >= cost && used_ms(&run) >= used, "something was given back: {run}");
        (cost, used) = (spent, used_ms(&run));
        assert!((spent - f64::from(turn - 1) * 0.01).abs() < 1e-9, "turn {turn}: {run}");
        gate.open();
    }
    assert_eq!(home.wait(&id), 4);
    let run = home.show(&id);
    assert_eq!((str_of(&run, "state"), str_of(&run, "reason_code")), ("exhausted", "max_cost_usd"));
    assert_eq!(
        (&run["usage"]["cost_usd"], &run["usage"]["input_tokens"]),
        (&0.1.into(), &50.into())
    );
    assert_eq!((&run["turns_committed"], &run["usage"]["known"]), (&10.into(), &true.into()));
}

/// Half an hour passes in every turn, and a daemon dies in it.
#[test]
fn time_stays_used_through_ten_deaths_of_the_daemon() {
    let clock = Clock::new();
    let home = &clock.home;
    configure(home, BEARS_ALL);
    let mut gate = Gate::new(home, "gate");
    let script = format!("{}\necho $OUTLAST_TURN > turn\n{}", gate.pass(), says("continue"));
    // Ten half hours, less what a slow machine takes for them.
    let limits = "run_timeout_ms: 17700000";
    let id = start(home, &a_loop(&script, limits, 10));
    let mut used = 0;
    for turn in 1..=10 {
        is_at_turn(home, &id, turn);
        clock.set(HOUR_MS / 2 * i64::from(turn));
        restart(home);
        if turn == 10 {
            break;
        }
        let run = home.show(&id);
        let half_hours = u64::from(turn) * 1_800_000;
        assert!(used_ms(&run) >= used.max(half_hours), "turn {turn}: {run}");
        used = used_ms(&run);
        gate.open();
    }
    assert_eq!(home.wait(&id), 4);
    let run = home.show(&id);
    assert_eq!((str_of(&run, "state"), str_of(&run, "reason_code")), ("exhausted", "run_timeout"));
    assert_eq!(run["turns_committed"], 9);
}

/// The deadline of a running turn, and what is used, whatever the wall clock is set to.
#[test]
fn a_clock_that_is_set_extends_and_shortens_no_run() {
    let clock = Clock::new();
    let home = &clock.home;
    let mut gate = Gate::new(home, "gate");
    let script = format!("{}\necho $OUTLAST_TURN > turn\n{}", gate.pass(), says("continue"));
    let id = start(home, &a_loop(&script, "run_timeout_ms: 10800000", 10));
    let before = is_at_turn(home, &id, 1);
    let deadline = str_of(&before, "wake_at").to_owned();
    let in_time = |when: &str, run: &Value| {
        assert_eq!(str_of(run, "wake_at"), deadline, "{when}");
        assert!((used_ms(&before)..1_800_000).contains(&used_ms(run)), "{when}: {run}");
    };
    clock.set_wall(-2 * HOUR_MS);
    in_time("set back", &home.show(&id));
    restart(home);
    in_time("set back, another daemon", &home.show(&id));
    gate.open();
    in_time("set back, another turn", &is_at_turn(home, &id, 2));
    clock.set_wall(5 * HOUR_MS);
    gate.open();
    in_time("set forward, another turn", &is_at_turn(home, &id, 3));
    restart(home);
    in_time("set forward, another daemon", &home.show(&id));
    clock.set_wall(0);
    gate.open();
    in_time("set right again, another turn", &is_at_turn(home, &id, 4));
    // Time that passes counts.
    clock.set(3 * HOUR_MS);
    restart(home);
    assert_eq!(home.wait(&id), 4);
    assert_eq!(str_of(&home.show(&id), "reason_code"), "run_timeout");
}

/// The time of an event, and of the test that looks at it, in hours since 1970.
fn hours_off(event: &Value) -> f64 {
    let at: jiff::Timestamp = str_of(event, "at").parse().expect("a time");
    (at.as_second() - jiff::Timestamp::now().as_second()) as f64 / 3600.0
}

#[test]
fn a_wall_clock_set_for_a_while_ends_no_run_and_stamps_no_event_wrongly() {
    for off_ms in [3 * HOUR_MS, -3 * HOUR_MS] {
        let clock = Clock::new();
        let home = &clock.home;
        let mut gate = Gate::new(home, "gate");
        let done = says("done");
        let script = format!(
            "{}\necho $OUTLAST_TURN\n[ $OUTLAST_TURN -lt 4 ] || {{ {done}; exit; }}\n{}",
            gate.pass(),
            says("continue")
        );
        let id = start(home, &a_loop(&script, "run_timeout_ms: 3600000, no_progress_turns: 0", 10));
        is_at_turn(home, &id, 1);
        clock.set_wall(off_ms);
        gate.open();
        is_at_turn(home, &id, 2);
        let other = home.start("true");
        assert_eq!(home.wait(&other), 0);
        restart(home);
        gate.open();
        is_at_turn(home, &id, 3);
        clock.set_wall(0);
        gate.open();
        is_at_turn(home, &id, 4);
        gate.open();
        assert_eq!(home.wait(&id), 0, "{off_ms}");
        let events = [home.events(&id), home.events(&other)].concat();
        for event in &events {
            assert!(hours_off(event).abs() < 0.5, "{off_ms}: {event}");
        }
        assert_eq!(home.count(&id, "ClockSet"), 0);
        let run = home.show(&id);
        assert!(used_ms(&run) < 1_800_000, "{run}");
        // What a shim writes down goes by the same clock.
        let stamped = home.ok(&["logs", &other, "--timestamps"]);
        assert_eq!(stamped, "");
        for line in home.ok(&["logs", &id, "--timestamps"]).lines() {
            let at: jiff::Timestamp =
                line.split_whitespace().next().and_then(|at| at.parse().ok()).expect("a time");
            let off_s = at.as_second() - jiff::Timestamp::now().as_second();
            assert!(off_s.abs() < 1800, "{line}");
        }
    }
}

/// A clock that was wrong and is set right: later events carry the right time, and no limit notices.
#[test]
fn a_wall_clock_that_is_set_for_good_is_believed_and_no_limit_moves() {
    for off_ms in [3 * HOUR_MS, -3 * HOUR_MS] {
        let clock = Clock::new();
        let home = &clock.home;
        let mut gate = Gate::new(home, "gate");
        let done = says("done");
        let script = format!(
            "{}\n[ $OUTLAST_TURN -lt 3 ] || {{ {done}; exit; }}\n{}",
            gate.pass(),
            says("continue")
        );
        let id = start(home, &a_loop(&script, "run_timeout_ms: 3600000, no_progress_turns: 0", 10));
        let before = is_at_turn(home, &id, 1);
        clock.correct_wall(off_ms);
        // The kernel says when a clock is set; of this one the daemon hears when it is asked for a time.
        until("the run is told", || {
            home.show(&id);
            (home.count(&id, "ClockSet") == 1).then_some(())
        });
        let run = home.show(&id);
        assert!((used_ms(&before)..1_800_000).contains(&used_ms(&run)), "{run}");
        gate.open();
        is_at_turn(home, &id, 2);
        restart(home);
        gate.open();
        is_at_turn(home, &id, 3);
        gate.open();
        assert_eq!(home.wait(&id), 0, "{off_ms}");
        assert_eq!(
            home.count(&id, "ClockSet"),
            1,
            "one setting is told once, also by another daemon"
        );
        let events = home.events(&id);
        let set = events.iter().position(|event| event["kind"] == "ClockSet").expect("it was set");
        let off_hours = off_ms as f64 / HOUR_MS as f64;
        for (index, event) in events.iter().enumerate() {
            let expected = if index < set { 0.0 } else { off_hours };
            assert!((hours_off(event) - expected).abs() < 0.5, "{off_ms}: {event}");
        }
        assert!(used_ms(&home.show(&id)) < 1_800_000);
    }
}

/// An attempt fails by a clock that was set back while it ran: its delay and its run's time are as ever.
#[test]
fn a_clock_set_back_extends_no_delay_and_uses_up_no_time() {
    let clock = Clock::new();
    let home = &clock.home;
    let mut gate = Gate::new(home, "gate");
    let script =
        format!("[ $OUTLAST_ATTEMPT -gt 1 ] || {{ {}; exit 1; }}\n{}", gate.pass(), says("done"));
    let id = start(home, &a_loop(&script, "run_timeout_ms: 36000000", 3_600_000));
    let before = is_at_turn(home, &id, 1);
    clock.set_wall(-2 * HOUR_MS);
    gate.open();
    let waiting = waits(home, &id);
    let wake_at = str_of(&waiting, "wake_at").to_owned();
    let is_sane = |run: &Value| {
        assert_eq!(str_of(run, "wake_at"), wake_at);
        let used = used_ms(run);
        assert!(used >= used_ms(&before) && used < 1_800_000, "the clock used up time: {run}");
    };
    is_sane(&waiting);
    restart(home);
    is_sane(&home.show(&id));
    clock.set_wall(-4 * HOUR_MS);
    restart(home);
    is_sane(&home.show(&id));
    // Its time comes by the clock that nothing moves.
    clock.set(2 * HOUR_MS);
    restart(home);
    assert_eq!(home.wait(&id), 0);
    let events = home.events(&id);
    let again = events.iter().filter(|event| event["kind"] == "TurnStarted").nth(1);
    assert!(str_of(again.expect("it was tried again"), "at") >= wake_at.as_str());
}
