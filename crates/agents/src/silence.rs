//! How long an attempt may be silent if the loop file does not say; `None` is for ever.

const MINUTE_MS: u64 = 60_000;

/// An agent that reports on the way is silent for minutes only if it hangs.
pub(crate) const OF_A_TALKER_MS: Option<u64> = Some(5 * MINUTE_MS);

/// One that says nothing before it has finished.
pub(crate) const OF_A_WORKER_MS: Option<u64> = Some(30 * MINUTE_MS);
