//! Runs rebuilt from what their directories prove: nothing is invented, and nothing goes on by itself.

#![expect(clippy::unwrap_used, reason = "a test that is wrong panics")]

use outlast_engine::{
    Actor, Agent, Answer, BootId, Context, Custody, Decision, End, Event, Exit, Fact, Found,
    FoundAttempt, FoundEnd, Input, Limits, Order, Outcome, Reason, ReasonCode, Report, Response,
    Run, RunId, RunSpec, Started, State, Step, Time, TreeNews, TurnStatus, Verdict, Workflow,
    check, create, recover,
};

const HOUR_MS: u64 = 3_600_000;

fn id() -> RunId {
    RunId("k3v9d2m7q0xa".to_owned())
}

fn boot() -> BootId {
    BootId("boot".to_owned())
}

fn context() -> Context {
    Context::new(Time(100 * HOUR_MS), boot())
}

fn command() -> RunSpec {
    let agent = Agent { kind: "exec".to_owned(), command: vec!["true".to_owned()] };
    RunSpec::command(agent, "/".to_owned())
}

fn a_loop() -> RunSpec {
    let (path, sha256) = ("WORKFLOW.md".to_owned(), "00".to_owned());
    let workflow = Workflow { path, sha256, prompt: "Do it.".to_owned() };
    RunSpec { workflow: Some(workflow), ..command() }
}

fn exited(turn: u32, attempt: u32, code: i32, answer: Answer) -> FoundAttempt {
    let at = Time(u64::from(turn) * 1000 + u64::from(attempt));
    let started = Some(Started { at, pid: 41, start: 7 });
    let end = Some(End::Exited { at: at.plus_ms(10), exit: Exit::Code(code), cause: None });
    let step = Step::Attempt { turn, attempt };
    let report =
        Report { started, end, answer, tree: TreeNews::Empty, ..Report::of(step, Custody::Nobody) };
    FoundAttempt { turn, attempt, boot: boot(), at, is_over: true, report }
}

fn said(status: TurnStatus) -> Answer {
    Answer::Given(Box::new(Response {
        status,
        summary: "said".to_owned(),
        next_task: None,
        tool_calls: Vec::new(),
        usage: None,
        wait: None,
    }))
}

fn found(attempts: Vec<FoundAttempt>) -> Found {
    Found { attempts, ..Found::default() }
}

/// The run once it was rebuilt and has looked around, and its whole journal.
fn rebuilt(spec: RunSpec, found: &Found) -> (Run, Vec<Event>) {
    let mut events = recover(&id(), spec, Time(1), found, &context()).unwrap();
    let run = Run::replay(&id(), &events).unwrap();
    events.extend(run.handle(&Input::Woke, &context()));
    assert_eq!(check(&id(), &events), []);
    (Run::replay(&id(), &events).unwrap(), events)
}

fn count(events: &[Event], kind: &str) -> usize {
    events.iter().filter(|event| event.fact.kind() == kind).count()
}

#[test]
fn a_command_that_ended_long_ago_ends_as_it_did_whatever_its_time_was() {
    let spec = RunSpec {
        limits: Limits { run_timeout_ms: Some(HOUR_MS), ..Limits::default() },
        ..command()
    };
    let (run, _) = rebuilt(spec.clone(), &found(vec![exited(1, 1, 0, Answer::None)]));
    assert!(matches!(run.state, State::Finishing { verdict: Verdict::Completed, .. }), "{run:?}");
    assert_eq!(run.clock.used_ms(context().now), 10);
    let (run, _) = rebuilt(spec, &found(vec![exited(1, 1, 3, Answer::None)]));
    assert!(matches!(run.state, State::Finishing { verdict: Verdict::Failed, .. }), "{run:?}");
    assert_eq!(run.exit(), Some(Exit::Code(3)));
}

#[test]
fn a_loop_rests_until_a_person_lets_it_go_on() {
    let turns = vec![
        exited(1, 1, 0, said(TurnStatus::Continue)),
        exited(2, 1, 1, Answer::None),
        exited(2, 2, 0, said(TurnStatus::Continue)),
    ];
    let (run, events) = rebuilt(a_loop(), &found(turns));
    assert_eq!((run.state.is_blocked(), run.turns_committed), (true, 2));
    assert!(run.why.reason_code == ReasonCode::Recovered);
    assert_eq!((count(&events, "TurnStarted"), count(&events, "TurnCommitted")), (3, 2));
    let resumed = run.handle(&Input::ResumeAsked(Order::default()), &context());
    let next = resumed.iter().find_map(|event| match event.fact {
        Fact::TurnStarted { turn, attempt, .. } => Some((turn, attempt)),
        _ => None,
    });
    assert_eq!(next, Some((3, 1)));
}

#[test]
fn what_is_missing_is_lost_and_what_comes_before_it_is_only_counted() {
    // Turn 1 and the first attempt of turn 3 are not there.
    let turns = vec![
        exited(2, 1, 0, said(TurnStatus::Continue)),
        exited(3, 2, 0, said(TurnStatus::Continue)),
    ];
    let (run, events) = rebuilt(a_loop(), &found(turns));
    assert_eq!(run.turns_committed, 3);
    assert_eq!(run.recovered.unwrap().missing, ["how turns 1 to 1 were answered"]);
    let lost = |event: &&Event| {
        matches!(event.fact, Fact::AttemptEnded { turn: 3, attempt: 1, outcome: Outcome::Lost, .. })
    };
    assert_eq!(events.iter().filter(lost).count(), 1);
}

#[test]
fn errands_that_were_made_are_counted_so_that_no_number_is_used_again() {
    let found = Found {
        attempts: vec![exited(1, 1, 0, said(TurnStatus::Continue))],
        errands: 7,
        ..Found::default()
    };
    let (run, _) = rebuilt(a_loop(), &found);
    assert_eq!(run.errands, 7);
}

/// A journal at turn 1, and a directory at turn 3.
#[test]
fn a_journal_that_stands_behind_catches_up() {
    let mut events = create(&id(), a_loop(), &context());
    let run = Run::replay(&id(), &events).unwrap();
    let turns = vec![
        exited(1, 1, 0, said(TurnStatus::Continue)),
        exited(2, 1, 0, said(TurnStatus::Continue)),
        exited(3, 1, 0, said(TurnStatus::Done)),
    ];
    assert!(!run.is_behind(&found(turns[..1].to_vec())), "the attempt that it knows is no news");
    assert!(run.is_behind(&found(turns.clone())));
    events.extend(run.catch_up(&found(turns), &context()).unwrap());
    assert_eq!(check(&id(), &events), []);
    let run = Run::replay(&id(), &events).unwrap();
    assert_eq!(run.turns_committed, 3);
    assert_eq!((count(&events, "TurnStarted"), count(&events, "RunRecovered")), (3, 1));
}

/// A journal whose run has taken its first turn, and what it said.
fn after_one_turn(spec: RunSpec, status: TurnStatus) -> (Run, Vec<Event>) {
    let began = Context { now: Time(500), ..context() };
    let mut events = create(&id(), spec, &began);
    let run = Run::replay(&id(), &events).unwrap();
    let report = exited(1, 1, 0, said(status)).report;
    let looked = Context { now: Time(2000), ..context() };
    events.extend(run.handle(&Input::Reported(Box::new(report)), &looked));
    (Run::replay(&id(), &events).unwrap(), events)
}

/// The answer was in the journal that was lost, and its turn is in the directory.
#[test]
fn a_question_that_an_older_journal_still_asks_is_passed_and_its_answer_said_to_be_missing() {
    let (run, mut events) = after_one_turn(a_loop(), TurnStatus::Blocked);
    let question = run.asks().unwrap().seq;
    let turns =
        vec![exited(1, 1, 0, said(TurnStatus::Blocked)), exited(2, 1, 0, said(TurnStatus::Done))];
    events.extend(run.catch_up(&found(turns), &context()).unwrap());
    assert_eq!(check(&id(), &events), []);
    let run = Run::replay(&id(), &events).unwrap();
    let missing = run.recovered.unwrap().missing;
    assert_eq!(missing, [format!("what was answered to the question of event {question}")]);
}

/// The directory is further by a hook alone, so the run asks as before, and one answer is taken.
#[test]
fn a_question_that_may_have_been_answered_is_asked_again_and_that_is_said() {
    let (run, mut events) = after_one_turn(a_loop(), TurnStatus::Blocked);
    let question = run.asks().unwrap().seq;
    let hook = Found { errands: run.errands + 1, ..found(vec![]) };
    events.extend(run.catch_up(&hook, &context()).unwrap());
    let run = Run::replay(&id(), &events).unwrap();
    assert_eq!(run.asks().map(|asked| asked.seq), Some(question));
    let missing = &run.recovered.as_ref().unwrap().missing;
    assert_eq!(*missing, [format!("whether the question of event {question} was answered")]);
    let order = Order { answers: Some(question), ..Order::default() };
    let answer = Input::Answered { decision: Decision::Reply, message: None, order };
    events.extend(run.handle(&answer, &context()));
    assert_eq!(check(&id(), &events), []);
}

/// What the older journal had counted is not given back, and what nothing proves is not counted.
#[test]
fn a_journal_that_catches_up_keeps_the_time_that_it_had_counted() {
    let (run, mut events) = after_one_turn(a_loop(), TurnStatus::Continue);
    assert_eq!(run.clock.used_ms(Time(2000)), 1500);
    let turns = vec![
        exited(1, 1, 0, said(TurnStatus::Continue)),
        exited(2, 1, 0, said(TurnStatus::Continue)),
        exited(3, 1, 0, said(TurnStatus::Done)),
    ];
    events.extend(run.catch_up(&found(turns), &context()).unwrap());
    assert_eq!(check(&id(), &events), []);
    let run = Run::replay(&id(), &events).unwrap();
    // Up to the end of turn 2, which the journal takes for alive; then turn 3 alone.
    assert_eq!(run.clock.used_ms(context().now), (2011 - 500) + 10);
}

fn used_ms(run: &Run) -> u64 {
    run.clock.used_ms(context().now)
}

/// The run is as the journal knows it, hours later: its clock goes on from what is proven.
#[test]
fn hours_between_a_journal_and_its_return_end_no_run() {
    let limits = Limits { run_timeout_ms: Some(HOUR_MS), ..Limits::default() };
    let spec = RunSpec { limits, ..a_loop() };
    let (run, mut events) = after_one_turn(spec, TurnStatus::Continue);
    let restored = |known_until| Input::JournalRestored { noticed_at: context().now, known_until };
    let was_ended = |events: &[Event]| count(events, "LimitReached") == 1;
    assert!(was_ended(&run.handle(&Input::Woke, &context())), "without it the hours would count");
    // Its turn has lived up to now: that is true time.
    assert!(was_ended(&run.handle(&restored(context().now), &context())));
    events.extend(run.handle(&restored(Time(2300)), &context()));
    assert!(!was_ended(&events), "{events:?}");
    let run = Run::replay(&id(), &events).unwrap();
    assert_eq!(used_ms(&run), 2300 - 500);
    // By a daemon that was killed before it could do more.
    let again = run.handle(&restored(Time(2300)), &context());
    assert_eq!(count(&again, "JournalRestored"), 0, "it is said once");
    let report = exited(2, 1, 0, said(TurnStatus::Done)).report;
    let later = Context { now: context().now.plus_ms(50), ..context() };
    events.extend(run.handle(&Input::Reported(Box::new(report)), &later));
    assert_eq!(check(&id(), &events), []);
    let run = Run::replay(&id(), &events).unwrap();
    assert!(matches!(run.state, State::Finishing { verdict: Verdict::Completed, .. }), "{run:?}");
}

/// It was started long ago, and nothing says when it ended.
#[test]
fn an_attempt_whose_end_was_not_seen_uses_up_no_time() {
    let mut lost = exited(1, 1, 0, Answer::None);
    lost.report.end = None;
    let turns = vec![lost.clone(), exited(1, 2, 0, said(TurnStatus::Continue))];
    let (run, events) = rebuilt(a_loop(), &found(turns));
    assert_eq!((run.turns_committed, used_ms(&run)), (1, 10));
    let is_lost =
        |event: &Event| matches!(event.fact, Fact::AttemptEnded { outcome: Outcome::Lost, .. });
    assert!(events.iter().any(is_lost), "{events:?}");
}

/// How the run had ended stands in its directory: nothing of it is done again.
#[test]
fn a_run_whose_directory_says_how_it_ended_ends_so() {
    let (run, events) = after_one_turn(a_loop(), TurnStatus::Continue);
    let why = Reason {
        reason: "stopped on request".to_owned(),
        reason_code: ReasonCode::Stopped.into(),
        evidence: Vec::new(),
        actor: Actor::User,
    };
    let end = Some(FoundEnd { verdict: Verdict::Stopped, why, at: Time(9000) });
    let ended = Found { end, ..found(vec![exited(2, 1, 0, said(TurnStatus::Continue))]) };
    assert!(run.is_behind(&ended));
    let caught_up = run.catch_up(&ended, &context()).unwrap();
    let (_, rebuilt) = rebuilt(a_loop(), &ended);
    for mut events in [[events, caught_up].concat(), rebuilt] {
        let run = Run::replay(&id(), &events).unwrap();
        assert!(!run.is_behind(&ended));
        events.extend(run.handle(&Input::Finished, &context()));
        assert_eq!(check(&id(), &events), []);
        let run = Run::replay(&id(), &events).unwrap();
        assert_eq!(run.state, State::Ended { verdict: Verdict::Stopped });
        assert_eq!((run.ended_at, run.why.reason_code.as_str()), (Some(Time(9000)), "stopped"));
    }
}

#[test]
fn an_endless_gap_is_refused() {
    let attempts = vec![exited(1, 4_000_000_000, 0, Answer::None)];
    assert!(recover(&id(), command(), Time(1), &found(attempts), &context()).is_err());
}
