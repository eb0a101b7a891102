//! The journal of a run of one command.

use outlast_engine::{
    Actor, Agent, BootId, Event, Exit, Fact, Limit, Limits, NeverStarted, Outcome, Reason, Retry,
    Run, RunId, RunSpec, StateName, StopMode, Survivor, Time, TurnOutcome, TurnStatus, Verdict,
    WaitWord, Window, Word, check,
};

use super::{as_lines, assert_takes_more, from_lines, golden, has_all};

fn run_spec() -> RunSpec {
    let agent =
        Agent { kind: "exec".to_owned(), command: ["make", "check"].map(str::to_owned).to_vec() };
    RunSpec {
        name: Some("nightly".to_owned()),
        key: Some("build-42".to_owned()),
        task: Some("make it pass".to_owned()),
        umask: Some(0o022),
        tty: Some(Window { rows: 24, cols: 80 }),
        labels: [("repo".to_owned(), "web".to_owned())].into(),
        parent: Some(RunId("0123456789ab".to_owned())),
        limits: Limits {
            turn_timeout_ms: Some(1),
            stall_window_ms: Some(2),
            run_timeout_ms: Some(3_600_000),
            ..Limits::default()
        },
        retry: Retry { max_attempts: 2, initial_backoff_ms: 10_000, max_backoff_ms: 300_000 },
        ..RunSpec::command(agent, "/srv/work".to_owned())
    }
}

/// Numbered and stamped as they come.
pub(super) fn numbered(facts: Vec<Fact>) -> Vec<Event> {
    let event = |(seq, fact): (u64, Fact)| Event { seq, at: Time(1_790_000_000_000 + seq), fact };
    (1..).zip(facts).map(event).collect()
}

pub(super) fn reason(reason_code: &str, actor: Actor) -> Reason {
    let evidence = vec!["exit code 1".to_owned()];
    Reason {
        reason: format!("because of {reason_code}"),
        reason_code: Word::of(reason_code),
        evidence,
        actor,
    }
}

pub(super) fn changed(from: StateName, to: StateName, reason_code: &str) -> Fact {
    let why = reason(reason_code, Actor::Engine);
    Fact::StateChanged { from, to, why, cause: None, until: None, verdict: None }
}

pub(super) fn survivors() -> Vec<Survivor> {
    vec![Survivor { pid: 99, start: 12, command: "sleep".to_owned() }]
}

/// A run through which everything went that can go through one, as a journal has to be to be legal.
fn story() -> Vec<Event> {
    let boot = || BootId("d9d22936-516e-4c66-91e1-97e9fcb7a695".to_owned());
    let turn_started =
        |turn, attempt| Fact::TurnStarted { turn, attempt, boot: boot(), messages: 0 };
    let started = |turn, attempt| Fact::AttemptStarted {
        turn,
        attempt,
        pid: 4243,
        start: 331_837,
        workspace: None,
    };
    let ended = |turn, attempt, outcome, survivors| Fact::AttemptEnded {
        turn,
        attempt,
        outcome,
        output_bytes: 6,
        survivors,
        charge: None,
    };
    let why = |code| reason(code, Actor::User);
    numbered(vec![
        Fact::RunCreated { spec: Box::new(run_spec()), line: None },
        changed(StateName::Queued, StateName::Running, "slot_free"),
        turn_started(1, 1),
        started(1, 1),
        Fact::AttemptAdopted { turn: 1, attempt: 1, epoch: 7 },
        ended(1, 1, Outcome::Signaled { signal: 11 }, survivors()),
        Fact::TreeEmptied { turn: 1, attempt: 1 },
        Fact::StateChanged {
            from: StateName::Running,
            to: StateName::Waiting,
            why: reason("signal", Actor::Engine),
            cause: Some(WaitWord::Backoff),
            until: Some(Time(1_790_000_010_000)),
            verdict: None,
        },
        changed(StateName::Waiting, StateName::Running, "backoff_over"),
        turn_started(1, 2),
        started(1, 2),
        ended(1, 2, Outcome::Exited { code: 0 }, Vec::new()),
        committed(2, TurnStatus::Continue, TurnOutcome::MeaningfulCompletion),
        turn_started(2, 1),
        started(2, 1),
        Fact::AttemptOrphaned { turn: 2, attempt: 1 },
        Fact::LimitReached { limit: Limit::RunTimeout },
        Fact::StopRequested {
            mode: StopMode::Gracefully,
            actor: Actor::User,
            tree: false,
            order: outlast_engine::Order::default(),
        },
        Fact::StopIncomplete { turn: 2, attempt: 1, survivors: survivors() },
        Fact::StopRequested {
            mode: StopMode::Now,
            actor: Actor::User,
            tree: false,
            order: outlast_engine::Order::default(),
        },
        ended(2, 1, Outcome::Stopped { exit: None }, Vec::new()),
        Fact::StateChanged {
            from: StateName::Running,
            to: StateName::Finishing,
            why: why("stopped"),
            cause: None,
            until: None,
            verdict: Some(Verdict::Stopped),
        },
        changed(StateName::Finishing, StateName::Stopped, "stopped"),
        Fact::RunEnded { state: Verdict::Stopped, reason_code: Some(Word::of("stopped")) },
    ])
}

/// A commit as release 0.1 knew it, without a word of what the agent said.
pub(super) fn committed(attempt: u32, status: TurnStatus, outcome: TurnOutcome) -> Fact {
    Fact::TurnCommitted {
        turn: 1,
        attempt,
        status,
        outcome,
        summary: String::new(),
        next_task: None,
        tool_calls: Vec::new(),
        refused: Vec::new(),
        wait: None,
        workspace: None,
        progress: None,
    }
}

fn fact_number(event: &Event) -> usize {
    match event.fact {
        Fact::RunCreated { .. } => 0,
        Fact::StateChanged { .. } => 1,
        Fact::TurnStarted { .. } => 2,
        Fact::AttemptStarted { .. } => 3,
        Fact::AttemptAdopted { .. } => 4,
        Fact::AttemptOrphaned { .. } => 5,
        Fact::AttemptEnded { .. } => 6,
        Fact::TreeEmptied { .. } => 7,
        Fact::StopIncomplete { .. } => 8,
        Fact::TurnCommitted { .. } => 9,
        Fact::StopRequested { .. } => 10,
        Fact::LimitReached { .. } => 11,
        Fact::RunEnded { .. } => 12,
        // What a loop adds has its own story.
        _ => 13,
    }
}

#[test]
fn the_journal_of_a_run() {
    let story = story();
    assert!(has_all(&story, 13, fact_number));
    story.iter().for_each(assert_takes_more);
    let events = from_lines::<Event>(&golden("journal.jsonl", &as_lines(&story)));
    assert_eq!(events, story);
    // It means what it meant.
    let id = RunId("k3v9d2m7q0xa".to_owned());
    assert_eq!(check(&id, &events), []);
    let run = Run::replay(&id, &events).expect("it was legal then");
    let row = run.row();
    assert_eq!((row.state, row.exit, row.turn, row.attempt), (StateName::Stopped, None, 2, 1));
    assert_eq!(
        (row.name.as_deref(), row.key.as_deref(), row.is_open),
        (Some("nightly"), Some("build-42"), false)
    );
    assert_eq!((run.turns_committed, (*run.spec).clone()), (1, run_spec()));
}

/// Every word that can stand in an event and did not come up in the story.
fn words() -> Vec<Event> {
    use StateName::{
        Blocked, Completed, Exhausted, Failed, Finishing, Preparing, Queued, Running, Stopped,
        Verifying, Waiting,
    };
    let never = |code| Outcome::NeverStarted { code, why: "so it is".to_owned() };
    let outcomes = vec![
        Outcome::Exited { code: 255 },
        Outcome::Signaled { signal: 11 },
        never(NeverStarted::CommandNotFound),
        never(NeverStarted::NotExecutable),
        never(NeverStarted::NoDirectory),
        never(NeverStarted::NoResources),
        never(NeverStarted::BadSpec),
        never(NeverStarted::TooLong),
        never(NeverStarted::NoShim),
        never(NeverStarted::Stopped),
        Outcome::Stalled { exit: Some(Exit::Code(3)) },
        Outcome::TimedOut { exit: Some(Exit::Signal(15)) },
        Outcome::Stopped { exit: None },
        Outcome::Interrupted { by: "reboot".to_owned() },
        Outcome::Lost,
    ];
    let states = [
        Queued, Preparing, Running, Waiting, Verifying, Blocked, Finishing, Completed, Failed,
        Stopped, Exhausted,
    ];
    let verdicts = [Verdict::Completed, Verdict::Failed, Verdict::Stopped, Verdict::Exhausted];
    let committed = |status, outcome| committed(1, status, outcome);
    let ended = |outcome| Fact::AttemptEnded {
        turn: 1,
        attempt: 1,
        outcome,
        output_bytes: 0,
        survivors: Vec::new(),
        charge: None,
    };
    let mut facts: Vec<Fact> = outcomes.into_iter().map(ended).collect();
    facts.extend(states.map(|state| changed(state, state, "word")));
    facts.extend(verdicts.map(|state| Fact::RunEnded { state, reason_code: None }));
    facts.extend(
        [Limit::RunTimeout, Limit::TurnTimeout, Limit::StallWindow]
            .map(|limit| Fact::LimitReached { limit }),
    );
    facts.extend([
        committed(TurnStatus::Continue, TurnOutcome::MeaningfulCompletion),
        committed(TurnStatus::Done, TurnOutcome::NoOpSuccess),
        committed(TurnStatus::Blocked, TurnOutcome::EscalationBlocker),
        committed(TurnStatus::Failed, TurnOutcome::NoOpSuccess),
        Fact::StopRequested {
            mode: StopMode::Now,
            actor: Actor::Engine,
            tree: false,
            order: outlast_engine::Order::default(),
        },
    ]);
    numbered(facts)
}

fn outcome_number(outcome: &&Outcome) -> usize {
    match outcome {
        Outcome::Exited { .. } => 0,
        Outcome::Signaled { .. } => 1,
        Outcome::Stalled { .. } => 2,
        Outcome::TimedOut { .. } => 3,
        Outcome::Stopped { .. } => 4,
        Outcome::Interrupted { .. } => 5,
        Outcome::Lost => 6,
        // Agents that are driven came later.
        Outcome::BadResponse { .. } | Outcome::Impeded { .. } => 15,
        Outcome::NeverStarted { code, .. } => match code {
            NeverStarted::CommandNotFound => 7,
            NeverStarted::NotExecutable => 8,
            NeverStarted::NoDirectory => 9,
            NeverStarted::NoResources => 10,
            NeverStarted::BadSpec => 11,
            NeverStarted::TooLong => 12,
            NeverStarted::NoShim => 13,
            NeverStarted::Stopped => 14,
        },
    }
}

#[test]
fn every_word_of_a_journal() {
    let words = words();
    let outcomes: Vec<&Outcome> = words
        .iter()
        .filter_map(|event| match &event.fact {
            Fact::AttemptEnded { outcome, .. } => Some(outcome),
            _ => None,
        })
        .collect();
    assert!(has_all(&outcomes, 15, outcome_number));
    words.iter().for_each(assert_takes_more);
    assert_eq!(from_lines::<Event>(&golden("words.jsonl", &as_lines(&words))), words);
}
