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
    text.iter().map(|byte| char::from(*byte)).collect()
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

pub(crate) fn row(row: Row, trouble: Option<Trouble>) -> RunRow {
    RunRow {
        id: row.id.0,
        name: row.name,
        state: row.state.word().to_owned(),
        reason_code: row.reason_code,
        health: health(row.health, trouble.as_ref()),
        what: row.what,
        turn: row.turn,
        attempt: row.attempt,
        created_at: rfc3339(row.created_at),
        started_at: row.started_at.map(rfc3339),
        ended_at: row.ended_at.map(rfc3339),
        exit: row.exit.map(exit),
        labels: row.labels,
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
