//! What runs are asked to be: single commands, and loops with everything that a loop file can say.

use outlast_engine::{
    Agent, Checks, Hooks, Limits, ModelClass, OnEnd, OnInterrupt, OutputPolicy, Retry, Room,
    RunSpec, SnapshotRules, Strategy, Tool, ToolClass, ToolCost, TreeRules, Workflow, Workspace,
};

use crate::rng::Rng;

/// Whom every run tells of itself.
pub(crate) const SINKS: [&str; 2] = ["person", "machine"];

pub(crate) fn draw(key: Option<String>, rng: &mut Rng) -> RunSpec {
    let spec = RunSpec { key, ..if rng.chance(300) { a_command(rng) } else { a_loop(rng) } };
    // Every run is told of, so that every run can be held to that; it takes no chance from the others.
    RunSpec { retry: retry(rng), notify: SINKS.map(str::to_owned).to_vec(), ..spec }
}

/// What a run says of those below it.
pub(crate) fn tree(rng: &mut Rng) -> TreeRules {
    let policies = [OnEnd::Leave, OnEnd::Leave, OnEnd::Stop, OnEnd::Wait];
    let room = Room {
        turns: rng.chance(200).then(|| rng.between(2, 20)),
        runs: rng.chance(200).then(|| rng.between(0, 4)),
        width: rng.chance(100).then(|| rng.between(1, 2)),
        ..Room::default()
    };
    TreeRules { room, children: rng.pick(&policies).expect("it is a list") }
}

fn a_command(rng: &mut Rng) -> RunSpec {
    let limits = Limits {
        turn_timeout_ms: rng.chance(250).then_some(5_000),
        stall_window_ms: rng.chance(150).then_some(2_000),
        run_timeout_ms: rng.chance(200).then(|| rng.between(50, 60_000)),
        ..Limits::default()
    };
    RunSpec { limits, ..RunSpec::command(agent("exec"), "/".to_owned()) }
}

fn a_loop(rng: &mut Rng) -> RunSpec {
    let kind = if rng.chance(500) { "exec" } else { "file" };
    let workflow = Workflow {
        path: "/simulated".to_owned(),
        sha256: String::new(),
        prompt: "simulated".to_owned(),
    };
    let interrupts =
        [OnInterrupt::Resume, OnInterrupt::Resume, OnInterrupt::Block, OnInterrupt::Fail];
    let workspace = workspace(rng);
    let on_interrupt = match rng.pick(&interrupts).expect("it is a list") {
        OnInterrupt::Resume if workspace.snapshot.is_some() && rng.chance(700) => {
            OnInterrupt::Restore
        }
        other => other,
    };
    RunSpec {
        task: Some("simulated".to_owned()),
        workflow: Some(workflow),
        limits: limits(rng),
        workspace,
        hooks: hooks(rng),
        checks: Checks {
            before_run: commands(rng, 300),
            done: commands(rng, 450),
            timeout_ms: None,
        },
        output: output(rng),
        tools: if rng.chance(500) { tools() } else { Vec::new() },
        model_class: if rng.chance(300) { ModelClass::SmallLocal } else { ModelClass::Frontier },
        on_interrupt,
        ..RunSpec::command(agent(kind), "/".to_owned())
    }
}

fn agent(kind: &str) -> Agent {
    Agent { kind: kind.to_owned(), command: vec!["simulated".to_owned()] }
}

fn retry(rng: &mut Rng) -> Retry {
    let max_attempts = u32::try_from(rng.between(1, 4)).expect("small");
    Retry { max_attempts, initial_backoff_ms: rng.between(0, 2_000), max_backoff_ms: 5_000 }
}

fn limits(rng: &mut Rng) -> Limits {
    let small = |rng: &mut Rng, chance, low, high| {
        rng.chance(chance).then(|| u32::try_from(rng.between(low, high)).expect("small"))
    };
    Limits {
        turn_timeout_ms: rng.chance(600).then_some(5_000),
        stall_window_ms: rng.chance(300).then_some(2_000),
        run_timeout_ms: rng.chance(200).then(|| rng.between(500, 600_000)),
        max_turns: small(rng, 850, 1, 8),
        max_stall_restarts: small(rng, 300, 0, 2),
        max_tokens: rng.chance(200).then(|| rng.between(100, 2_000)),
        max_cost_usd_micros: rng.chance(150).then(|| rng.between(500, 8_000)),
        no_progress_turns: small(rng, 350, 1, 3),
    }
}

fn workspace(rng: &mut Rng) -> Workspace {
    let strategies = [Strategy::Inplace, Strategy::Inplace, Strategy::Dir, Strategy::Dir];
    let strategy = rng.pick(&strategies).filter(|_| !rng.chance(200)).unwrap_or(Strategy::Worktree);
    let snapshot = rng.chance(400).then(|| {
        Box::new(SnapshotRules { undo_failed: rng.chance(300), ..SnapshotRules::default() })
    });
    Workspace { strategy, snapshot, ..Workspace::default() }
}

fn hooks(rng: &mut Rng) -> Hooks {
    let mut hook = || rng.chance(350).then(|| "simulated".to_owned());
    Hooks {
        after_create: hook(),
        before_run: hook(),
        after_turn: hook(),
        after_run: hook(),
        before_remove: hook(),
        timeout_ms: None,
    }
}

fn commands(rng: &mut Rng, chance: u64) -> Vec<String> {
    let count = if rng.chance(chance) { rng.between(1, 2) } else { 0 };
    (0..count).map(|number| format!("check {number}")).collect()
}

fn output(rng: &mut Rng) -> OutputPolicy {
    let emit_to = if rng.chance(100) { Vec::new() } else { vec!["log".to_owned()] };
    OutputPolicy {
        emit_to,
        silent_unless_blocked: rng.chance(150),
        require_approval_before_emit: rng.chance(150),
    }
}

fn tools() -> Vec<Tool> {
    let tool = |name: &str, class, cost| Tool {
        name: name.to_owned(),
        command: vec![name.to_owned()],
        input_schema: None,
        class,
        cost,
        timeout_ms: 1_000,
        disabled: None,
    };
    vec![
        tool("read", ToolClass::Read, ToolCost::Light),
        tool("idempotent", ToolClass::Idempotent, ToolCost::Heavy),
        tool("keyed", ToolClass::Keyed, ToolCost::Light),
        tool("unsafe", ToolClass::Unsafe, ToolCost::Light),
    ]
}
