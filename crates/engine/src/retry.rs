//! Whether a failed attempt is tried again, and after how long.

use crate::{NeverStarted, OnInterrupt, Outcome, Run};

/// How often an attempt in which nothing ran, by no fault of the command, is made again for free.
const FREE_ATTEMPTS: u32 = 5;
const FREE_BACKOFF_MS: u64 = 100;

/// The longest wait between two tries while the host lacks something.
const LONGEST_SHORTAGE_WAIT_MS: u64 = 30_000;

/// Between two tries while a provider does not say when it answers again.
const IMPEDED_BACKOFF_MS: u64 = 15_000;
const LONGEST_IMPEDED_MS: u64 = 900_000;

/// The delay before the next attempt; `None` if there is none.
pub(crate) fn delay_ms(run: &Run, outcome: &Outcome) -> Option<u64> {
    match outcome {
        // The host's shortage lasts as long as it lasts; it ends no run.
        Outcome::NeverStarted { code: NeverStarted::NoResources, .. } => {
            let free = run.counters.free_attempts;
            Some(jittered(backoff_ms(FREE_BACKOFF_MS, LONGEST_SHORTAGE_WAIT_MS, free), run))
        }
        Outcome::NeverStarted { code, .. } if code.is_ours() => {
            let free = run.counters.free_attempts;
            let delay = backoff_ms(FREE_BACKOFF_MS, run.spec.retry.max_backoff_ms, free);
            (free < FREE_ATTEMPTS).then(|| jittered(delay, run))
        }
        Outcome::Impeded { .. } => Some(jittered(
            backoff_ms(IMPEDED_BACKOFF_MS, LONGEST_IMPEDED_MS, run.counters.impeded),
            run,
        )),
        // It rests first, for as long as a person wants.
        outcome if outcome.is_by_pause() => Some(0),
        // Trying again cannot help.
        Outcome::NeverStarted { .. } => None,
        // A command may have done its work: running it again is for a person to decide.
        Outcome::Lost if run.spec.on_interrupt == OnInterrupt::Fail => None,
        Outcome::Stopped { .. } => None,
        // How often that may happen is counted apart.
        Outcome::Stalled { .. } if run.spec.limits.max_stall_restarts.is_some() => {
            Some(delay_after(run, run.counters.stalls))
        }
        Outcome::Exited { .. }
        | Outcome::Signaled { .. }
        | Outcome::BadResponse { .. }
        | Outcome::Stalled { .. }
        | Outcome::TimedOut { .. }
        | Outcome::Lost
        | Outcome::Interrupted { .. } => (run.counters.attempts < run.spec.retry.max_attempts)
            .then(|| delay_after(run, run.counters.attempts)),
    }
}

fn delay_after(run: &Run, failures: u32) -> u64 {
    let retry = run.spec.retry;
    jittered(backoff_ms(retry.initial_backoff_ms, retry.max_backoff_ms, failures), run)
}

/// `min(initial · 2^(failures - 1), max)`
fn backoff_ms(initial_ms: u64, max_ms: u64, failures: u32) -> u64 {
    let doublings = failures.saturating_sub(1).min(32);
    initial_ms.saturating_mul(1 << doublings).min(max_ms)
}

/// ±10 %, the same for the same attempt of the same run, so that replaying changes nothing.
fn jittered(delay_ms: u64, run: &Run) -> u64 {
    let seed = run.id.as_str().bytes().chain(run.seq().to_le_bytes());
    let hash = seed.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let per_mille = 900 + (hash >> 32) % 201;
    delay_ms.saturating_mul(per_mille) / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_cap() {
        let delays: Vec<u64> =
            (1..=7).map(|failures| backoff_ms(10_000, 300_000, failures)).collect();
        assert_eq!(delays, [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]);
        assert_eq!(backoff_ms(u64::MAX, u64::MAX, u32::MAX), u64::MAX);
    }
}
