//! What runs that go on cost: memory, wakeups, and coming back to all of them after a crash.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::context::Context;
use super::row::{Row, Target, median};
use crate::interrupt;
use crate::private::Private;
use crate::process::{self, Memory, Sleeps};

/// After this long nothing that was begun is still going on, and threads without work have gone.
const SETTLED: Duration = Duration::from_secs(4);
const WATCHED: Duration = Duration::from_secs(3);
const ADOPTED_MAX: Duration = Duration::from_secs(60);

/// Of the daemon, in MiB: with no run, and with a thousand.
const IDLE_MIB: f64 = 12.0;
const THOUSAND_MIB: f64 = 60.0;
const SHIM_MIB: f64 = 2.5;
const WAITER_MIB: f64 = 0.3;
const ADOPTED_S: f64 = 3.0;

pub(super) fn measure(context: &Context) -> Result<Vec<Row>> {
    let runs = if context.is_quick { 200 } else { 1000 };
    let outlast = context.outlast()?;
    let daemon = outlast.start_daemon()?;
    let mut rows = vec![wakeups("idle", daemon, "with no run")?, idle_memory(daemon)?];
    rows.extend(waiter(&outlast)?);
    let ids = (0..runs).map(|_| start(&outlast)).collect::<Result<Vec<_>>>()?;
    rows.push(wakeups("idle-live", daemon, &format!("with {runs} silent runs"))?);
    rows.push(live_memory(daemon, runs)?);
    rows.push(shim_memory(&outlast, &ids)?);
    rows.push(adoption(&outlast, &ids)?);
    Ok(rows)
}

fn start(outlast: &Private) -> Result<String> {
    interrupt::check()?;
    outlast.start_run(&["sleep", "3600"])
}

pub(super) fn wakeups(name: &'static str, daemon: u32, when: &str) -> Result<Row> {
    interrupt::pause(SETTLED);
    let before = Sleeps::of(daemon)?;
    interrupt::pause(WATCHED);
    let count = Sleeps::of(daemon)?.since(&before);
    let how = format!("wakeups of the daemon's threads in {} s {when}", WATCHED.as_secs());
    Ok(Row::figure(name, count as f64, "", Target::AtMost(0.0), how))
}

/// The process that starts a daemon again: what it costs while the daemon lives.
fn waiter(outlast: &Private) -> Result<Vec<Row>> {
    let lock = outlast.home().join("state/waiter.lock");
    let said = std::fs::read(&lock).with_context(|| format!("reading {}", lock.display()))?;
    let said: Value = serde_json::from_slice(&said).context("who the waiter is")?;
    let pid = said["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    let pid = pid.context("there is no waiter")?;
    let before = Sleeps::of(pid)?;
    interrupt::pause(WATCHED);
    let woken = Sleeps::of(pid)?.since(&before);
    let how = format!("wakeups of the waiter in {} s", WATCHED.as_secs());
    let own = "the waiter's own memory (private pages)".to_owned();
    let mib = process::own_kib(pid)? as f64 / 1024.0;
    Ok(vec![
        Row::figure("idle-waiter", woken as f64, "", Target::AtMost(0.0), how),
        Row::figure("memory-waiter", mib, "MiB", Target::AtMost(WAITER_MIB), own),
    ])
}

fn idle_memory(daemon: u32) -> Result<Row> {
    let mib = process::memory_mib(daemon, Memory::Now)?;
    Ok(Row::figure(
        "memory-idle",
        mib,
        "MiB",
        Target::AtMost(IDLE_MIB),
        "daemon RSS with no run".to_owned(),
    ))
}

fn live_memory(daemon: u32, runs: u32) -> Result<Row> {
    let mib = process::memory_mib(daemon, Memory::Now)?;
    let target = IDLE_MIB + (THOUSAND_MIB - IDLE_MIB) * f64::from(runs) / 1000.0;
    Ok(Row::figure(
        "memory-live",
        mib,
        "MiB",
        Target::AtMost(target),
        format!("daemon RSS with {runs} live runs"),
    ))
}

fn shim_memory(outlast: &Private, ids: &[String]) -> Result<Row> {
    let memory = |id: &String| process::memory_mib(shim_of(outlast, id)?, Memory::Now);
    let sample =
        ids.iter().step_by(ids.len().div_ceil(20)).map(memory).collect::<Result<Vec<_>>>()?;
    let how = format!("shim RSS, the median of {}", sample.len());
    Ok(Row::figure("memory-shim", median(sample), "MiB", Target::AtMost(SHIM_MIB), how))
}

pub(super) fn shim_of(outlast: &Private, id: &str) -> Result<u32> {
    let shim = outlast.show(id)?["shim_pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    shim.with_context(|| format!("run {id} has no shim"))
}

/// The journals say when each run was adopted, so that asking for it does not count.
fn adoption(outlast: &Private, ids: &[String]) -> Result<Row> {
    let killed_at = SystemTime::now();
    outlast.strike_daemon()?;
    outlast.start_daemon()?;
    let mut last = Duration::ZERO;
    for id in ids {
        let adopted_at = interrupt::wait_for(id, ADOPTED_MAX, || adopted_at(outlast, id))?;
        last = last.max(adopted_at);
    }
    let took = last.saturating_sub(killed_at.duration_since(UNIX_EPOCH)?);
    let how =
        format!("from kill -9 of the daemon until the last of {} live runs was adopted", ids.len());
    Ok(Row::figure("adopt", took.as_secs_f64(), "s", Target::AtMost(ADOPTED_S), how))
}

fn adopted_at(outlast: &Private, id: &str) -> Result<Option<Duration>> {
    let events = outlast.events(id)?;
    let ended = events.iter().any(|event| event["kind"] == "RunEnded");
    ensure!(!ended, "run {id} has ended instead of being adopted");
    events.iter().rfind(|event| event["kind"] == "AttemptAdopted").map(time_of).transpose()
}

/// The event's time since 1970: RFC 3339 in UTC, or milliseconds.
pub(super) fn time_of(event: &Value) -> Result<Duration> {
    let at = &event["at"];
    let ms = at.as_u64().or_else(|| rfc3339_ms(at.as_str()?));
    ms.map(Duration::from_millis).with_context(|| format!("an event at {at}"))
}

fn rfc3339_ms(text: &str) -> Option<u64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<u64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut time = time.splitn(3, ':');
    let (hours, minutes) = (time.next()?.parse::<u64>().ok()?, time.next()?.parse::<u64>().ok()?);
    let (seconds, fraction) =
        time.next().map(|seconds| seconds.split_once('.').unwrap_or((seconds, "0")))?;
    let seconds = days_since_1970(year, month, day)? * 86_400
        + hours * 3600
        + minutes * 60
        + seconds.parse::<u64>().ok()?;
    let fraction: u64 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    Some(seconds * 1000 + fraction)
}

/// Counted from 1 March, so that the leap day comes last.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let (year, month) =
        if month > 2 { (year, month - 3) } else { (year.checked_sub(1)?, month + 9) };
    let days = year * 365 + year / 4 - year / 100 + year / 400 + (month * 153 + 2) / 5 + day;
    days.checked_sub(719_469)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_events_are_read() {
        assert_eq!(rfc3339_ms("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(rfc3339_ms("2024-02-29T12:34:56.789Z"), Some(1_709_210_096_789));
        assert_eq!(rfc3339_ms("2024-03-01T00:00:00.5Z"), Some(1_709_251_200_500));
        assert_eq!(rfc3339_ms("yesterday"), None);
    }
}
