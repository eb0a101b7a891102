//! The journal of a loop: all that a run of many turns adds to it.

use outlast_engine::{
    Actor, Agent, BootId, Charge, Checks, Decision, Event, Exit, Fact, Hook, Hooks, Limit, Limits,
    ModelClass, OfferedTool, OnInterrupt, Outcome, OutputPolicy, Purpose, Queue, RefusedCall,
    Removal, Retain, Retry, Run, RunId, RunSpec, StateName, Strategy, Time, Tool, ToolCall,
    ToolClass, ToolCost, TurnOutcome, TurnStatus, UnavailableTool, Verdict, Wait, WaitWord,
    Workflow, Workspace, check,
};

use super::journal::{changed, committed, numbered, reason, survivors};
use super::{as_lines, assert_takes_more, from_lines, golden, has_all};

fn text(text: &str) -> String {
    text.to_owned()
}

fn tool(name: &str, class: ToolClass, cost: ToolCost) -> Tool {
    Tool {
        name: text(name),
        command: vec![text("./tools/call"), text(name)],
        input_schema: Some(text(r#"{"type":"object"}"#)),
        class,
        cost,
        timeout_ms: 60_000,
        disabled: (class == ToolClass::Unsafe).then(|| text("denied_by_operator")),
    }
}

fn loop_spec() -> RunSpec {
    let hook = |name: &str| Some(format!("./hooks/{name}"));
    let agent = Agent { kind: text("file"), command: vec![text("./agent")] };
    RunSpec {
        name: Some(text("port")),
        task: Some(text("port the parser")),
        limits: Limits {
            turn_timeout_ms: Some(3_600_000),
            stall_window_ms: Some(300_000),
            run_timeout_ms: Some(7_200_000),
            max_turns: Some(20),
            max_stall_restarts: Some(3),
            max_tokens: Some(1_000_000),
            max_cost_usd_micros: Some(5_000_000),
            no_progress_turns: Some(3),
        },
        retry: Retry { max_attempts: 5, initial_backoff_ms: 10_000, max_backoff_ms: 300_000 },
        workflow: Some(Workflow {
            path: text("/src/WORKFLOW.md"),
            sha256: "5e".repeat(32),
            prompt: text("{{ task }}\n"),
        }),
        workspace: Workspace {
            strategy: Strategy::Worktree,
            root: Some(text("/h/workspaces")),
            repository: Some(text("/src")),
            retain: Retain {
                completed_ms: Some(604_800_000),
                failed_ms: Some(1),
                stopped_ms: None,
                exhausted_ms: Some(2),
            },
            base: None,
            snapshot: None,
        },
        hooks: Hooks {
            after_create: hook("after_create"),
            before_run: hook("before_run"),
            after_turn: hook("after_turn"),
            after_run: hook("after_run"),
            before_remove: hook("before_remove"),
            timeout_ms: Some(60_000),
        },
        checks: Checks {
            before_run: vec![text("test -e Cargo.toml")],
            done: vec![text("cargo test")],
            timeout_ms: Some(600_000),
        },
        output: OutputPolicy {
            emit_to: vec![text("log"), text("phone")],
            silent_unless_blocked: false,
            require_approval_before_emit: true,
        },
        tools: vec![
            tool("look", ToolClass::Read, ToolCost::Light),
            tool("fetch", ToolClass::Idempotent, ToolCost::Light),
            tool("build", ToolClass::Idempotent, ToolCost::Heavy),
            tool("order", ToolClass::Keyed, ToolCost::Light),
            tool("deploy", ToolClass::Unsafe, ToolCost::Light),
        ],
        model_class: ModelClass::SmallLocal,
        on_interrupt: OnInterrupt::Resume,
        queue: Queue { priority: -3, most_of_workflow: Some(2), ..Queue::default() },
        ..RunSpec::command(agent, text("/h/workspaces/port"))
    }
}

fn boot() -> BootId {
    BootId(text("d9d22936-516e-4c66-91e1-97e9fcb7a695"))
}

/// A command of the host, from its start to its end.
fn errand(errand: u32, purpose: Purpose, turn: u32, code: i32) -> [Fact; 2] {
    let outcome = Outcome::Exited { code };
    [
        Fact::ErrandStarted {
            errand,
            purpose,
            command: "make it so".to_owned(),
            turn,
            boot: boot(),
        },
        Fact::ErrandEnded {
            errand,
            outcome,
            output_bytes: 8,
            tail: text("it says\n"),
            survivors: Vec::new(),
        },
    ]
}

fn hook(hook: Hook) -> Purpose {
    Purpose::Hook { hook }
}

fn begun(turn: u32, attempt: u32, messages: u64, workspace: Option<&str>) -> [Fact; 3] {
    [
        Fact::TurnStarted { turn, attempt, boot: boot(), messages },
        Fact::ToolsOffered {
            turn,
            attempt,
            model_class: ModelClass::SmallLocal,
            allowed: vec![OfferedTool { name: text("look"), cost: ToolCost::Light }],
            unavailable: vec![UnavailableTool {
                name: text("build"),
                reason_code: text("heavy_for_small_local"),
            }],
        },
        Fact::AttemptStarted {
            turn,
            attempt,
            pid: 4243,
            start: 331_837,
            workspace: workspace.map(text),
        },
    ]
}

fn ended(turn: u32, attempt: u32, outcome: Outcome, known: bool) -> Fact {
    let charge = Some(Charge {
        input_tokens: 50_000,
        output_tokens: 12,
        cached_tokens: 7,
        cost_usd_micros: 250_000,
        known,
        reserved: None,
        half: None,
    });
    Fact::AttemptEnded { turn, attempt, outcome, output_bytes: 6, survivors: Vec::new(), charge }
}

fn waits(from: StateName, cause: WaitWord, until: Option<Time>) -> Fact {
    Fact::StateChanged {
        from,
        to: StateName::Waiting,
        why: reason(cause.word(), Actor::Engine),
        cause: Some(cause),
        until,
        verdict: None,
    }
}

fn call(name: &str, key: Option<&str>) -> ToolCall {
    ToolCall { name: text(name), input: text(r#"{"n":1}"#), key: key.map(text) }
}

fn message(message: &str) -> Fact {
    let (message, from) = (text(message), text("user"));
    Fact::MessageReceived { message, from, text: text("go on"), by: None }
}

/// The first turn, which says all that a turn can.
fn first_commit() -> Fact {
    Fact::TurnCommitted {
        turn: 1,
        attempt: 2,
        status: TurnStatus::Continue,
        outcome: TurnOutcome::MeaningfulCompletion,
        summary: text("the lexer is there"),
        next_task: Some(text("port the grammar")),
        tool_calls: vec![call("order", Some("k")), call("order", Some("k")), call("deploy", None)],
        refused: vec![RefusedCall {
            call: 2,
            reason_code: text("denied_by_operator"),
            why: text("the operator does not let it be used"),
        }],
        wait: Some(Wait::Message),
        workspace: Some(text("cbf29ce484222325cbf29ce484222325")),
        progress: None,
    }
}

fn second_commit() -> Fact {
    Fact::TurnCommitted {
        turn: 2,
        attempt: 1,
        status: TurnStatus::Done,
        outcome: TurnOutcome::NoOpSuccess,
        summary: text("all of it is there"),
        next_task: None,
        tool_calls: Vec::new(),
        refused: Vec::new(),
        wait: None,
        workspace: None,
        progress: None,
    }
}

/// From the queue to the first turn, with everything in between that can be in the way.
fn preparation() -> Vec<Fact> {
    use StateName::{Blocked, Preparing, Queued, Running};
    let left = || survivors();
    let [started, _] = errand(2, hook(Hook::AfterCreate), 0, 0);
    let after_create = Fact::ErrandEnded {
        errand: 2,
        outcome: Outcome::Exited { code: 0 },
        output_bytes: 0,
        tail: String::new(),
        survivors: left(),
    };
    let mut facts = vec![
        Fact::RunCreated { spec: Box::new(loop_spec()), line: None },
        changed(Queued, Preparing, "slot_free"),
        Fact::WorkspacePrepared { created: true },
    ];
    facts.extend(errand(1, Purpose::Checkout, 0, 0));
    facts.extend([
        started,
        after_create,
        Fact::ErrandIncomplete { errand: 2, survivors: left() },
        Fact::ErrandEmptied { errand: 2 },
    ]);
    facts.extend(errand(3, Purpose::Ready { check: 0 }, 0, 1));
    facts.extend([
        changed(Preparing, Blocked, "preflight_failed"),
        Fact::ResumeRequested {
            actor: Actor::User,
            all: false,
            order: outlast_engine::Order::default(),
        },
        changed(Blocked, Preparing, "released"),
    ]);
    facts.extend(errand(4, Purpose::Ready { check: 0 }, 0, 0));
    facts.extend(errand(5, hook(Hook::BeforeRun), 0, 0));
    facts.push(changed(Preparing, Running, "ready"));
    facts
}

/// Two turns, the first in two attempts.
fn turns() -> Vec<Fact> {
    use StateName::{Blocked, Running, Waiting};
    let bad = Outcome::BadResponse { exit: Some(Exit::Code(0)), why: text("status: is missing") };
    let order = Purpose::Tool { call: 0, name: text("order"), key: text("k") };
    let mut facts = vec![];
    facts.extend(begun(1, 1, 0, Some("00000000000000000000000000000000")));
    facts.extend([
        ended(1, 1, bad, false),
        waits(Running, WaitWord::Backoff, Some(Time(1_790_000_010_000))),
        Fact::PauseRequested {
            actor: Actor::User,
            all: false,
            now: false,
            order: outlast_engine::Order::default(),
        },
        waits(Waiting, WaitWord::Paused, None),
        Fact::ResumeRequested {
            actor: Actor::User,
            all: false,
            order: outlast_engine::Order::default(),
        },
        changed(Waiting, Running, "resumed"),
    ]);
    facts.extend(begun(1, 2, 0, None));
    facts.extend([ended(1, 2, Outcome::Exited { code: 0 }, true), first_commit()]);
    facts.extend(errand(6, order, 1, 0));
    facts.push(Fact::CallAnswered { turn: 1, call: 1, key: text("k") });
    facts.extend(errand(7, hook(Hook::AfterTurn), 1, 0));
    facts.extend([
        changed(Running, Blocked, "needs_approval"),
        Fact::EmissionDenied {
            turn: 1,
            actor: Actor::User,
            order: outlast_engine::Order::default(),
        },
        Fact::Answered {
            decision: Decision::Deny,
            text: None,
            actor: Actor::User,
            order: outlast_engine::Order::default(),
        },
        changed(Blocked, Running, "released"),
        waits(Running, WaitWord::Message, None),
        message("m1"),
        changed(Waiting, Running, "message"),
    ]);
    facts
}

/// The last turn, its checks, the end, and the end of the workspace.
fn ending(told: u64) -> Vec<Fact> {
    use StateName::{Blocked, Completed, Finishing, Running, Verifying};
    let mut facts: Vec<Fact> = begun(2, 1, told, None).into();
    facts.extend([ended(2, 1, Outcome::Exited { code: 0 }, true), second_commit()]);
    facts.extend(errand(8, hook(Hook::AfterTurn), 2, 0));
    facts.extend([
        changed(Running, Blocked, "needs_approval"),
        Fact::Answered {
            decision: Decision::Approve,
            text: None,
            actor: Actor::User,
            order: outlast_engine::Order::default(),
        },
        changed(Blocked, Running, "released"),
        Fact::Emitted {
            turn: 2,
            to: vec![text("log"), text("phone")],
            text: text("all of it is there"),
        },
        changed(Running, Verifying, "claimed_done"),
    ]);
    facts.extend(errand(9, Purpose::Done { check: 0 }, 2, 0));
    facts.push(Fact::StateChanged {
        from: Verifying,
        to: Finishing,
        why: reason("done", Actor::Engine),
        cause: None,
        until: None,
        verdict: Some(Verdict::Completed),
    });
    facts.extend(errand(10, hook(Hook::AfterRun), 2, 0));
    facts.extend([
        changed(Finishing, Completed, "done"),
        Fact::RunEnded {
            state: Verdict::Completed,
            reason_code: Some(outlast_engine::ReasonCode::Done.into()),
        },
        Fact::RemovalRequested { actor: Actor::User },
    ]);
    facts.extend(errand(11, hook(Hook::BeforeRemove), 2, 1));
    facts.extend([
        Fact::WorkspaceKept { why: text("it has changes that are nowhere else") },
        Fact::RemovalRequested { actor: Actor::User },
    ]);
    facts.extend(errand(12, hook(Hook::BeforeRemove), 2, 0));
    facts.push(Fact::WorkspaceRemoved { bytes: 1 << 40 });
    facts
}

fn story() -> Vec<Event> {
    let mut facts = preparation();
    facts.extend(turns());
    // The message is the last but one of what has happened so far.
    let told = facts.len() as u64 - 1;
    facts.extend(ending(told));
    numbered(facts)
}

#[test]
fn the_journal_of_a_loop() {
    let story = story();
    story.iter().for_each(assert_takes_more);
    let events = from_lines::<Event>(&golden("loop.jsonl", &as_lines(&story)));
    assert_eq!(events, story);
    // It means what it meant.
    let id = RunId(text("k3v9d2m7q0xa"));
    assert_eq!(check(&id, &events), []);
    let run = Run::replay(&id, &events).expect("it was legal then");
    let row = run.row();
    assert_eq!((row.state, row.turn, row.attempt), (StateName::Completed, 2, 1));
    assert_eq!((run.turns_committed, run.errands, row.is_open), (2, 12, false));
    assert_eq!(run.task.as_deref(), Some("port the grammar"));
    assert_eq!(
        (row.tokens, row.cost_usd_micros, run.spend.known.is_all()),
        (150_036, 750_000, false)
    );
    assert_eq!((run.inbox.unread.len(), &run.removal), (0, &Removal::Removed));
    assert_eq!((run.counters.crash_restarts, (*run.spec).clone()), (1, loop_spec()));
}

/// Facts that did not come up in the story, and every word that can stand in one.
fn words() -> Vec<Event> {
    let causes = [
        WaitWord::Backoff,
        WaitWord::Slot,
        WaitWord::RateLimit,
        WaitWord::Children,
        WaitWord::Timer,
        WaitWord::Message,
        WaitWord::Paused,
    ];
    let limits = [Limit::MaxTurns, Limit::MaxTokens, Limit::MaxCost];
    let decisions = [Decision::Approve, Decision::Deny, Decision::Reply];
    let waiting = [Wait::Until(Time(1_790_000_010_000)), Wait::Children, Wait::Message];
    let specs = [
        (Strategy::Inplace, OnInterrupt::Fail, ModelClass::Frontier),
        (Strategy::Dir, OnInterrupt::Resume, ModelClass::SmallLocal),
        (Strategy::Worktree, OnInterrupt::Block, ModelClass::Frontier),
    ];
    let mut facts = vec![
        Fact::WorkspaceRefused { why: text("/h/file is in the way") },
        Fact::WorkspaceDiscarded { problem: None },
        Fact::WorkspaceDiscarded { problem: Some(text("permission denied")) },
        Fact::WorkspacePrepared { created: false },
        ended(1, 1, Outcome::BadResponse { exit: None, why: text("a symlink") }, false),
    ];
    facts.extend(causes.map(|cause| waits(StateName::Running, cause, None)));
    facts.extend(limits.map(|limit| Fact::LimitReached { limit }));
    facts.extend(decisions.map(|decision| Fact::Answered {
        decision,
        text: None,
        actor: Actor::User,
        order: outlast_engine::Order::default(),
    }));
    facts.extend(waiting.map(waiting_commit));
    facts.extend(specs.map(|(strategy, on_interrupt, model_class)| {
        let spec = loop_spec();
        let workspace = Workspace { strategy, ..spec.workspace.clone() };
        let spec = RunSpec { workspace, on_interrupt, model_class, ..spec };
        Fact::RunCreated { spec: Box::new(spec), line: None }
    }));
    numbered(facts)
}

fn waiting_commit(wait: Wait) -> Fact {
    match committed(1, TurnStatus::Continue, TurnOutcome::MeaningfulCompletion) {
        Fact::TurnCommitted { turn, attempt, status, outcome, .. } => Fact::TurnCommitted {
            turn,
            attempt,
            status,
            outcome,
            summary: String::new(),
            next_task: None,
            tool_calls: Vec::new(),
            refused: Vec::new(),
            wait: Some(wait),
            workspace: None,
            progress: None,
        },
        other => panic!("not a commit: {other:?}"),
    }
}

/// What a loop adds to the facts of a run.
fn fact_number(event: &Event) -> usize {
    match &event.fact {
        Fact::ToolsOffered { .. } => 0,
        Fact::WorkspacePrepared { .. } => 1,
        Fact::WorkspaceRefused { .. } => 2,
        Fact::WorkspaceDiscarded { .. } => 3,
        Fact::ErrandStarted { purpose, .. } => purpose_number(purpose),
        Fact::ErrandEnded { .. } => 4,
        Fact::ErrandEmptied { .. } => 5,
        Fact::ErrandIncomplete { .. } => 6,
        Fact::CallAnswered { .. } => 7,
        Fact::Emitted { .. } => 8,
        Fact::EmissionDenied { .. } => 9,
        Fact::MessageReceived { .. } => 10,
        Fact::PauseRequested { .. } => 11,
        Fact::ResumeRequested { .. } => 12,
        Fact::Answered { decision, .. } => match decision {
            Decision::Approve => 13,
            Decision::Deny => 14,
            Decision::Reply => 15,
        },
        Fact::RemovalRequested { .. } => 16,
        Fact::WorkspaceRemoved { .. } => 17,
        Fact::WorkspaceKept { .. } => 18,
        Fact::StateChanged { cause, .. } => cause_number(*cause),
        Fact::LimitReached { limit } => limit_number(*limit),
        Fact::TurnCommitted { wait, .. } => match wait {
            // Supervision's.
            None | Some(Wait::RateLimit(_)) => 29,
            Some(Wait::Until(_)) => 30,
            Some(Wait::Children) => 31,
            Some(Wait::Message) => 32,
        },
        Fact::AttemptEnded { outcome: Outcome::BadResponse { .. }, .. } => 33,
        Fact::RunCreated { spec, .. } => strategy_number(spec),
        // A run of one command has these, and its own story.
        Fact::TurnStarted { .. }
        | Fact::AttemptStarted { .. }
        | Fact::AttemptAdopted { .. }
        | Fact::AttemptOrphaned { .. }
        | Fact::AttemptEnded { .. }
        | Fact::TreeEmptied { .. }
        | Fact::StopIncomplete { .. }
        | Fact::StopRequested { .. }
        | Fact::RunEnded { .. }
        // What supervision adds has a story of its own.
        | Fact::ChildSpawned { .. }
        | Fact::ChildSettled { .. }
        | Fact::HealthDegraded { .. }
        | Fact::HealthRecovered { .. }
        | Fact::LimitNeared { .. }
        | Fact::UsageReported { .. }
        | Fact::OutputMatched { .. }
        | Fact::WatchDisabled { .. }
        | Fact::RunRecovered { .. }
        | Fact::JournalRestored { .. }
        | Fact::Segment { .. }
        | Fact::HeartbeatTold { .. }
        // A driven agent's have their words in the engine's tests.
        | Fact::QuestionAsked { .. }
        | Fact::QuestionWithdrawn { .. }
        | Fact::MessagesGiven { .. }
        // So have a raised limit and a run that starts after another.
        | Fact::LimitsRaised { .. }
        | Fact::PredecessorEnded { .. }
        // And snapshots.
        | Fact::SnapshotTaken { .. }
        | Fact::SnapshotFailed { .. }
        | Fact::RestoreRequested { .. }
        | Fact::Forked { .. }
        | Fact::WorkspaceRestored { .. }
        // So have calls under keys.
        | Fact::CallBegun { .. }
        | Fact::NoteTaken { .. }
        | Fact::TerminalOpened { .. }
        | Fact::CallEnded { .. }
        | Fact::CallResolved { .. }
        | Fact::ClockSet { .. } => 29,
    }
}

fn cause_number(cause: Option<WaitWord>) -> usize {
    match cause {
        Some(WaitWord::Backoff) => 19,
        Some(WaitWord::Slot) => 20,
        Some(WaitWord::RateLimit) => 21,
        Some(WaitWord::Children) => 22,
        Some(WaitWord::Timer) => 23,
        Some(WaitWord::Message) => 24,
        Some(WaitWord::Paused) => 25,
        None => 29,
    }
}

fn limit_number(limit: Limit) -> usize {
    match limit {
        Limit::MaxTurns => 26,
        Limit::MaxTokens => 27,
        Limit::MaxCost => 28,
        Limit::RunTimeout | Limit::TurnTimeout | Limit::StallWindow | Limit::Budget => 29,
    }
}

fn strategy_number(spec: &RunSpec) -> usize {
    match (spec.workspace.strategy, spec.on_interrupt) {
        (_, OnInterrupt::Fail) => 34,
        (_, OnInterrupt::Block) => 35,
        // Later than this journal.
        (_, OnInterrupt::Restore) => 29,
        (Strategy::Inplace, OnInterrupt::Resume) => 34,
        (Strategy::Dir, OnInterrupt::Resume) => 36,
        (Strategy::Worktree, OnInterrupt::Resume) => 37,
    }
}

fn purpose_number(purpose: &Purpose) -> usize {
    match purpose {
        Purpose::Checkout => 38,
        // Later than this journal.
        Purpose::Snapshot { .. } | Purpose::Restore { .. } => 29,
        Purpose::Ready { .. } => 39,
        Purpose::Done { .. } => 40,
        Purpose::Tool { .. } => 41,
        Purpose::Hook { hook } => match hook {
            Hook::AfterCreate => 42,
            Hook::BeforeRun => 43,
            Hook::AfterTurn => 44,
            Hook::AfterRun => 45,
            Hook::BeforeRemove => 46,
        },
    }
}

fn tool_number(tool: &Tool) -> usize {
    let class = match tool.class {
        ToolClass::Read => 0,
        ToolClass::Idempotent => 1,
        ToolClass::Keyed => 2,
        ToolClass::Unsafe => 3,
    };
    match tool.cost {
        ToolCost::Light => class,
        ToolCost::Heavy => 4,
    }
}

#[test]
fn every_word_of_a_loop() {
    let words = words();
    let all: Vec<Event> = story().into_iter().chain(words.clone()).collect();
    assert!(has_all(&all, 47, fact_number));
    assert!(has_all(&loop_spec().tools, 5, tool_number));
    words.iter().for_each(assert_takes_more);
    assert_eq!(from_lines::<Event>(&golden("loop-words.jsonl", &as_lines(&words))), words);
}
