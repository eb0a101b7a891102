//! Runs as clients see them.

use std::collections::BTreeMap;

use outlast_engine as engine;
use outlast_engine::{Row, Run, Time};
use outlast_wire::api::{AgentView, LimitView, Notices, Restarts, RunRow, RunView, Trouble, Usage};
use outlast_wire::shim;

/// What a view needs beyond the journal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beside {
    pub(crate) shim_pid: Option<u32>,
    pub(crate) output_bytes: u64,
    pub(crate) last_output_at: Option<Time>,
    pub(crate) trouble: Option<Trouble>,
}

pub(crate) fn rfc3339(time: Time) -> String {
    let ms = i64::try_from(time.0).unwrap_or(i64::MAX);
    jiff::Timestamp::from_millisecond(ms)
        .map_or_else(|_| "9999-12-31T23:59:59Z".to_owned(), |at| format!("{at:.3}"))
}

pub(crate) fn row(row: &Row, trouble: Option<Trouble>) -> RunRow {
    RunRow {
        id: row.id.0.clone(),
        name: row.name.clone(),
        state: row.state.word().to_owned(),
        reason_code: row.reason_code.clone(),
        health: health(row.health, trouble.as_ref()),
        what: row.what.clone(),
        turn: row.turn,
        attempt: row.attempt,
        created_at: rfc3339(row.created_at),
        started_at: row.started_at.map(rfc3339),
        ended_at: row.ended_at.map(rfc3339),
        exit: row.exit.map(exit),
        labels: row.labels.clone(),
        survivors: u32::try_from(row.survivors).unwrap_or(u32::MAX),
        trouble,
    }
}

pub(crate) fn run(run: &Run, beside: Beside, now: Time) -> RunView {
    let attempt = run.attempt.as_ref();
    let is_alive = |attempt: &&engine::Attempt| attempt.end.is_none();
    let is_settled = !matches!(
        run.state,
        engine::State::Queued | engine::State::Running | engine::State::Preparing
    );
    RunView {
        id: run.id.0.clone(),
        name: run.spec.name.clone(),
        key: run.spec.key.clone(),
        state: run.state.name().word().to_owned(),
        reason: is_settled.then(|| run.why.reason.clone()),
        reason_code: run.reason_code(),
        outcome: attempt
            .and_then(|last| last.end.as_ref())
            .map(|(outcome, _)| outcome.word().to_owned()),
        health: health(run.health().word(), beside.trouble.as_ref()),
        task: run.spec.task.clone(),
        agent: AgentView {
            kind: run.spec.agent.kind.clone(),
            command: run.spec.agent.command.clone(),
        },
        turn: attempt.map_or(0, |last| last.turn),
        attempt: attempt.map_or(0, |last| last.number),
        turns_committed: run.turns_committed,
        created_at: rfc3339(run.created_at),
        started_at: run.started_at.map(rfc3339),
        ended_at: run.ended_at.map(rfc3339),
        last_progress_at: beside.last_output_at.or(run.started_at).map(rfc3339),
        wake_at: run.wake_at().map(rfc3339),
        exit: run.exit().map(exit),
        usage: Usage { known: true, ..Usage::default() },
        limits: limits(run, now),
        workspace: run.spec.dir.clone(),
        tty: run.spec.tty.is_some(),
        parent: run.spec.parent.as_ref().map(|parent| parent.0.clone()),
        root: run.spec.parent.as_ref().unwrap_or(&run.id).0.clone(),
        children: Vec::new(),
        labels: run.spec.labels.clone(),
        pid: attempt.filter(is_alive).and_then(|live| live.process).map(|process| process.pid),
        shim_pid: beside.shim_pid,
        output_bytes: beside.output_bytes,
        restarts: Restarts {
            stall: 0,
            crash: attempt.map_or(0, |last| last.number.saturating_sub(1)),
        },
        notices: Notices::default(),
        summary: None,
        survivors: run.survivors().iter().map(survivor).collect(),
        containment: containment(run).to_owned(),
        trouble: beside.trouble,
        seq: run.seq(),
    }
}

/// A run the daemon cannot reach is not known to be healthy.
fn health(word: &str, trouble: Option<&Trouble>) -> String {
    match trouble {
        Some(_) => "unreachable".to_owned(),
        None => word.to_owned(),
    }
}

fn limits(run: &Run, now: Time) -> BTreeMap<String, LimitView> {
    let end = run.ended_at.unwrap_or(now);
    let since_start = |start: Option<Time>| start.map_or(0, |start| end.ms_since(start));
    let attempt_start =
        run.attempt.as_ref().and_then(|attempt| attempt.process).map(|process| process.at);
    let limits = run.spec.limits;
    let timed = [
        ("run_timeout_ms", limits.run_timeout_ms, since_start(Some(run.created_at))),
        ("turn_timeout_ms", limits.turn_timeout_ms, since_start(attempt_start)),
        ("stall_window_ms", limits.stall_window_ms, 0),
    ];
    let attempts = LimitView {
        used: u64::from(run.counted_attempts),
        max: u64::from(run.spec.retry.max_attempts),
    };
    timed
        .into_iter()
        .filter_map(|(name, max, used)| Some((name.to_owned(), LimitView { used, max: max? })))
        .chain([("max_attempts".to_owned(), attempts)])
        .collect()
}

fn containment(run: &Run) -> &'static str {
    let is_orphaned = run.attempt.as_ref().is_some_and(|attempt| attempt.is_orphaned);
    if is_orphaned || cfg!(not(target_os = "linux")) { "best_effort" } else { "subreaper" }
}

pub(crate) fn exit(exit: engine::Exit) -> shim::Exit {
    match exit {
        engine::Exit::Code(code) => shim::Exit::Code(code),
        engine::Exit::Signal(signal) => shim::Exit::Signal(signal),
    }
}

fn survivor(survivor: &engine::Survivor) -> shim::Survivor {
    shim::Survivor { pid: survivor.pid, start: survivor.start, command: survivor.command.clone() }
}
