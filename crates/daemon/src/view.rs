//! Runs as clients see them.

use std::collections::BTreeMap;

use outlast_engine as engine;
use outlast_engine::{Channel, Fork, Health, Room, Row, Run, Time, Word};
use outlast_store::NoticeCounts;
use outlast_wire::api::{
    Activity, AgentRow, AgentView, AsksView, BlockedView, ForkedFrom, InboxView, LimitView,
    Notices, OriginView, PotView, PotsView, RecoveredView, Restarts, RunRow, RunView,
    SnapshotsView, Trouble, Usage, WaitingView, WorkflowView,
};

use crate::sight::Sight;
use crate::workspace;

/// What a view needs beyond the journal.
#[derive(Debug, Clone, Default)]
pub(crate) struct Beside {
    pub(crate) shim_pid: Option<u32>,
    pub(crate) scope: Option<String>,
    pub(crate) output_bytes: u64,
    pub(crate) last_output_at: Option<Time>,
    pub(crate) last_line: Option<String>,
    pub(crate) trouble: Option<Trouble>,
    /// Why it waits for a budget or a slot.
    pub(crate) waiting: Option<WaitingView>,
    pub(crate) notices: Notices,
    /// What its agent is at.
    pub(crate) activity: Option<Activity>,
    /// The run above all others that it belongs to.
    pub(crate) root: String,
    /// How it can be named: by its name, or by its id.
    pub(crate) called: String,
    /// What gives an exhausted run room.
    pub(crate) more_room: Option<String>,
    /// Why the agent of a fork has begun a new conversation, although a copy was meant.
    pub(crate) afresh: Option<String>,
}

/// Written by hand, since a list of runs is mostly times.
pub(crate) fn rfc3339(time: Time) -> String {
    const MS_A_DAY: u64 = 24 * 60 * 60 * 1000;
    let (year, month, day) = date(time.0 / MS_A_DAY);
    let in_day = time.0 % MS_A_DAY;
    let (hour, minute) = (in_day / 3_600_000, in_day / 60_000 % 60);
    let (second, ms) = (in_day / 1000 % 60, in_day % 1000);
    let mut text = *b"0000-00-00T00:00:00.000Z";
    let fields = [
        (0, 4, year),
        (5, 2, month),
        (8, 2, day),
        (11, 2, hour),
        (14, 2, minute),
        (17, 2, second),
        (20, 3, ms),
    ];
    for (at, digits, value) in fields {
        put_digits(&mut text[at..at + digits], value);
    }
    str::from_utf8(&text).expect("digits are text").to_owned()
}

/// The last digits of `value`, as many as there is room for.
fn put_digits(room: &mut [u8], mut value: u64) {
    for digit in room.iter_mut().rev() {
        *digit = b"0123456789"[usize::try_from(value % 10).unwrap_or(0)];
        value /= 10;
    }
}

/// The date of a day counted from 1970-01-01, in years that begin in March, so that a leap day is the last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

pub(crate) fn row(row: Row, doing: Doing) -> RunRow {
    let Doing { trouble, since, why, asks_seq, question, last_line, agent, pace, sight } = doing;
    RunRow {
        id: row.id.0,
        name: row.name,
        state: row.state.into(),
        reason_code: row.reason_code,
        health: health(row.health, trouble.as_ref()),
        health_since: since,
        health_why: why,
        changed_at: pace.changed_at,
        wake_at: pace.wake_at,
        paused: pace.paused,
        worked_ms: pace.worked_ms.or(row.worked_ms),
        attempts_failed: pace.attempts_failed,
        max_attempts: pace.max_attempts,
        stalls: pace.stalls,
        what: row.what,
        task: row.task,
        turn: row.turn,
        attempt: row.attempt,
        created_at: rfc3339(row.created_at),
        started_at: row.started_at.map(rfc3339),
        ended_at: row.ended_at.map(rfc3339),
        exit: row.exit,
        labels: row.labels,
        survivors: u32::try_from(row.survivors).unwrap_or(u32::MAX),
        trouble,
        phase: match sight {
            Sight::Known => row.phase,
            Sight::Checking => Some(CHECKING.to_owned()),
        },
        question,
        summary: row.summary,
        last_line,
        max_turns: row.max_turns,
        cost_usd: usd(row.cost_usd_micros),
        tokens: row.tokens,
        known: row.known.is_all(),
        money_known: row.known.money,
        tokens_known: row.known.tokens,
        unreported_usd: usd(row.reserved_cost_usd_micros),
        unreported_tokens: row.reserved_tokens,
        unreported_attempts: row.unreported.unwrap_or(0),
        parent: row.parent.map(|parent| parent.0),
        trigger: row.trigger,
        asks_seq,
        agent,
    }
}

pub(crate) fn notices(counts: NoticeCounts) -> Notices {
    let shown = |count| u32::try_from(count).unwrap_or(u32::MAX);
    Notices {
        pending: shown(counts.pending),
        delivered: shown(counts.delivered),
        muted: shown(counts.muted),
        given_up: shown(counts.given_up),
        problem: counts.problem,
    }
}

pub(crate) fn run(run: &Run, beside: Beside, now: Time) -> RunView {
    let doing = Doing::of(run, beside.trouble.clone(), now);
    let attempt = run.attempt.as_ref();
    let live = run.live().and_then(|live| live.state.process);
    let is_settled = !matches!(
        run.state,
        engine::State::Queued | engine::State::Running | engine::State::Preparing
    );
    RunView {
        id: run.id.0.clone(),
        name: run.spec.name.clone(),
        called: Some(beside.called).filter(|called| !called.is_empty()),
        key: run.spec.key.clone(),
        state: run.state.name().into(),
        reason: is_settled.then(|| run.why.reason.clone()),
        reason_code: run.reason_code(),
        outcome: attempt
            .and_then(|last| last.state.end.as_ref())
            .map(|(outcome, _)| outcome.word().to_owned()),
        health: health(run.known_health(), beside.trouble.as_ref()),
        health_since: doing.since,
        health_why: doing.why,
        task: run.task.clone(),
        agent: AgentView {
            kind: run.spec.agent.kind.clone(),
            command: run.spec.agent.command.clone(),
            activity: beside.activity.unwrap_or_default(),
        },
        turn: attempt.map_or(0, |last| last.turn),
        attempt: attempt.map_or(0, |last| last.number),
        turns_committed: run.turns_committed,
        created_at: rfc3339(run.created_at),
        started_at: run.started_at.map(rfc3339),
        ended_at: run.ended_at.map(rfc3339),
        last_progress_at: beside.last_output_at.or(run.started_at).map(rfc3339),
        wake_at: run.due_at().map(rfc3339),
        waiting: beside.waiting,
        worked_ms: run.started_at.map(|_| run.clock.used_ms(run.ended_at.unwrap_or(now))),
        exit: run.exit(),
        usage: usage(run),
        limits: limits(run, now),
        workspace: run.spec.dir.clone(),
        tty: run.spec.tty.is_some(),
        parent: run.spec.parent.as_ref().map(|parent| parent.0.clone()),
        root: beside.root,
        children: run.children.keys().map(|child| child.0.clone()).collect(),
        tree: pots(run),
        labels: run.spec.labels.clone(),
        pid: live.map(|process| process.pid),
        shim_pid: beside.shim_pid,
        scope: beside.scope,
        output_bytes: beside.output_bytes,
        restarts: Restarts {
            stall: run.counters.stall_restarts,
            crash: run.counters.crash_restarts,
        },
        notices: beside.notices,
        summary: run.previous.as_ref().map(|it| it.summary.clone()).filter(|it| !it.is_empty()),
        survivors: run.survivors().to_vec(),
        containment: containment(run).to_owned(),
        trouble: beside.trouble,
        seq: run.seq(),
        phase: Some(run.phase()),
        checkpoint: Some(run.checkpoint()),
        blocked: blocked(run),
        asks: run.asks().map(|it| AsksView {
            seq: it.seq,
            turn: it.turn,
            kind: it.kind.word().to_owned(),
            tool: run.open_question().and_then(|it| it.tool.clone()),
            text: run.open_question().map(|it| it.text.clone()),
        }),
        inbox: InboxView { unread: u32::try_from(run.inbox.unread.len()).unwrap_or(u32::MAX) },
        workflow: run.spec.workflow.as_ref().map(|workflow| WorkflowView {
            path: workflow.path.clone(),
            sha256: workflow.sha256.clone(),
        }),
        priority: run.spec.queue.priority,
        strategy: run.spec.workspace.strategy.word().to_owned(),
        branch: workspace::branch(&run.spec),
        snapshots: run.spec.has_snapshots().then(|| snapshots(run)),
        forked_from: run.spec.fork.as_ref().map(|fork| forked_from(run, fork, beside.afresh)),
        paused: run.is_to_rest(),
        last_line: beside.last_line,
        recovered: run
            .recovered
            .as_ref()
            .map(|it| RecoveredView { at: rfc3339(it.at), missing: it.missing.clone() }),
        origin: run.spec.origin.as_ref().map(|origin| OriginView {
            trigger: origin.trigger.clone(),
            occurrence: origin.occurrence.clone(),
        }),
        more_room: beside.more_room,
    }
}

fn forked_from(run: &Run, fork: &Fork, afresh: Option<String>) -> ForkedFrom {
    let why_fresh = fork.fresh.clone().or(afresh);
    let is_copy = fork.session.is_some() && why_fresh.is_none();
    let session = if is_copy { "forked" } else { "fresh" };
    ForkedFrom {
        run: fork.run.0.clone(),
        turn: fork.turn,
        seq: fork.seq,
        session: session.to_owned(),
        why_fresh,
        tokens: run.inherited.tokens(),
        cost_usd: usd(run.inherited.cost_usd_micros),
    }
}

/// What its turns changed, by its snapshots.
fn snapshots(run: &Run) -> SnapshotsView {
    let known = &run.snapshots;
    let last = known.since.clone();
    let (code, why) = known.failed.clone().unzip();
    SnapshotsView {
        turn: known.turn,
        commit: last.as_ref().map(|last| last.commit.clone()),
        files: known.files,
        added: known.added,
        deleted: known.deleted,
        branch: last.as_ref().and_then(|last| last.branch.clone()),
        head: last.and_then(|last| last.head),
        left_out: known.left_out,
        failed_code: code,
        failed: why,
    }
}

/// What a run and those below it share; of a run that is alone there is nothing to say.
pub(crate) fn pots(run: &Run) -> Option<PotsView> {
    let is_alone = run.children.is_empty() && run.spec.tree.room == Room::default();
    let pot = |channel| {
        let pot = run.pot(channel);
        let (total, free, over) = (pot.total, pot.free(), pot.over());
        PotView { total, free, reserved: pot.reserved, committed: pot.committed(), over }
    };
    (!is_alone).then(|| PotsView {
        turns: pot(Channel::Turns),
        tokens: pot(Channel::Tokens),
        cost_usd_micros: pot(Channel::Money),
        runs: pot(Channel::Runs),
        unknown: run.held.unknown,
    })
}

/// A view from the journal alone, of an open run that this daemon has not looked at yet.
pub(crate) fn checking(view: RunView) -> RunView {
    let (phase, health_why) = (Some(CHECKING.to_owned()), Some(NOT_LOOKED_AT.to_owned()));
    RunView { phase, health_why, ..view }
}

/// How a run is doing, beyond the word: since when and why; of an ended one there is nothing to say.
#[derive(Debug, Clone, Default)]
pub(crate) struct Doing {
    pub(crate) trouble: Option<Trouble>,
    since: Option<String>,
    why: Option<String>,
    asks_seq: Option<u64>,
    question: Option<String>,
    last_line: Option<String>,
    agent: Option<AgentRow>,
    pace: Pace,
    sight: Sight,
}

/// The phase of an open run that this daemon has not looked at yet.
const CHECKING: &str = "checking";
/// Why.
const NOT_LOOKED_AT: &str =
    "checking: the daemon has just started and has not looked at this run yet";

/// How a run that has not ended gets on: since when it is where it is, and what it waits for.
#[derive(Debug, Clone, Default)]
struct Pace {
    changed_at: Option<String>,
    wake_at: Option<String>,
    paused: bool,
    worked_ms: Option<u64>,
    attempts_failed: u32,
    max_attempts: Option<u32>,
    stalls: u32,
}

impl Pace {
    fn of(run: &Run, now: Time) -> Self {
        if run.has_ended() {
            return Self::default();
        }
        Self {
            changed_at: Some(rfc3339(run.since)),
            wake_at: run.due_at().map(rfc3339),
            paused: run.is_to_rest(),
            worked_ms: Some(run.clock.used_ms(now)),
            attempts_failed: run.counters.attempts,
            max_attempts: Some(run.spec.retry.max_attempts),
            stalls: run.counters.stalls,
        }
    }
}

impl Doing {
    pub(crate) fn of(run: &Run, trouble: Option<Trouble>, now: Time) -> Self {
        let asks_seq = run.asks().map(|it| it.seq).max(run.releases(None));
        let question = question(run).as_deref().and_then(engine::cut);
        let pace = Pace::of(run, now);
        if let Some(trouble) = trouble {
            let (since, why) = (Some(trouble.since.clone()), Some(trouble.message.clone()));
            let trouble = Some(trouble);
            return Self { trouble, since, why, asks_seq, question, pace, ..Self::default() };
        }
        if run.has_ended() {
            return Self::default();
        }
        let why = Some(run.condition.why_at(now)).filter(|why| !why.is_empty());
        let since = Some(rfc3339(run.condition.since));
        Self { trouble, since, why, asks_seq, question, pace, ..Self::default() }
    }

    pub(crate) fn with_last_line(self, last_line: Option<String>) -> Self {
        Self { last_line, ..self }
    }

    pub(crate) fn with_agent(self, agent: Option<AgentRow>) -> Self {
        Self { agent, ..self }
    }

    /// Of an open run that this daemon has not looked at yet.
    pub(crate) fn checking() -> Self {
        let why = Some(NOT_LOOKED_AT.to_owned());
        Self { why, sight: Sight::Checking, ..Self::default() }
    }

    /// Of a run that cannot be read.
    pub(crate) fn unknown(trouble: Trouble) -> Self {
        let (since, why) = (Some(trouble.since.clone()), Some(trouble.message.clone()));
        Self { trouble: Some(trouble), since, why, ..Self::default() }
    }
}

/// What a person is asked: by an agent that waits, or by a run that is blocked.
fn question(run: &Run) -> Option<String> {
    let asked = run.open_question().map(|it| it.text.clone());
    asked.or_else(|| blocked(run).and_then(|it| it.question))
}

/// A run the daemon cannot reach is not known to be healthy.
fn health(health: Health, trouble: Option<&Trouble>) -> Word<Health> {
    match trouble {
        Some(_) => Health::Unreachable.into(),
        None => health.into(),
    }
}

/// For JSON, which knows no other numbers.
#[expect(
    clippy::cast_precision_loss,
    reason = "more micros than a float holds are more than a world's money"
)]
pub(crate) fn usd(micros: u64) -> f64 {
    micros as f64 / 1e6
}

pub(crate) fn usage(run: &Run) -> Usage {
    let spend = run.spend;
    Usage {
        input_tokens: spend.input_tokens,
        output_tokens: spend.output_tokens,
        cached_tokens: spend.cached_tokens,
        cost_usd: usd(spend.cost_usd_micros),
        known: spend.known.is_all(),
        money_known: spend.known.money,
        tokens_known: spend.known.tokens,
        unreported_usd: usd(spend.reserved.cost_usd_micros),
        unreported_tokens: spend.reserved.tokens,
        unreported_attempts: spend.unreported,
    }
}

pub(crate) fn blocked(run: &Run) -> Option<BlockedView> {
    let engine::State::Blocked { reason } = &run.state else { return None };
    // An attempt that ended with a question has committed nothing.
    let last = run.attempt.as_ref().and_then(|attempt| attempt.state.end.as_ref());
    let said = match last {
        Some((engine::Outcome::Impeded { .. }, _)) => Some(run.why.reason.clone()),
        _ => run.previous.as_ref().map(|it| it.summary.clone()),
    };
    Some(BlockedView {
        reason_code: reason.clone(),
        question: said.filter(|_| run.asks_in_words()),
        since: rfc3339(run.since),
    })
}

/// Each ceiling that there is, and what has been used of it.
fn limits(run: &Run, now: Time) -> BTreeMap<String, LimitView> {
    let end = run.ended_at.unwrap_or(now);
    let limits = &run.spec.limits;
    // Of a turn that is over no time passes any more.
    let live = run.live().and_then(|attempt| attempt.state.process);
    let in_turn_ms = live.map_or(0, |process| end.ms_since(process.at));
    let counters = &run.counters;
    let all = [
        ("run_timeout_ms", limits.run_timeout_ms, run.clock.used_ms(end)),
        ("turn_timeout_ms", limits.turn_timeout_ms, in_turn_ms),
        ("stall_window_ms", limits.stall_window_ms, 0),
        ("max_turns", limits.max_turns.map(u64::from), run.own_turns().into()),
        ("max_attempts", Some(run.spec.retry.max_attempts.into()), counters.attempts.into()),
        ("max_stall_restarts", limits.max_stall_restarts.map(u64::from), counters.stalls.into()),
        ("max_tokens", limits.max_tokens, run.spend.tokens()),
        ("max_cost_usd_micros", limits.max_cost_usd_micros, run.spend.cost_usd_micros),
        ("no_progress_turns", limits.no_progress_turns.map(u64::from), counters.no_progress.into()),
    ];
    all.into_iter()
        .filter_map(|(name, max, used)| Some((name.to_owned(), LimitView { used, max: max? })))
        .collect()
}

fn containment(run: &Run) -> &'static str {
    let is_orphaned = run.attempt.as_ref().is_some_and(|attempt| attempt.state.is_orphaned);
    if is_orphaned || cfg!(not(target_os = "linux")) { "best_effort" } else { "subreaper" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_a_library_writes_them() {
        let mut ms = 1;
        while ms < 6_000_000_000_000 {
            let expected = jiff::Timestamp::from_millisecond(ms).expect("in range");
            let written = rfc3339(Time(u64::try_from(ms).expect("positive")));
            assert_eq!(written, format!("{expected:.3}"));
            ms += 86_399_999 * 7 + 13;
        }
    }
}
