//! The ids of a run's trace, as in W3C Trace Context.
//!
//! They are derived from the run, so every daemon computes the same ones, and an attempt is told the ids that the
//! collector gets.

use crate::workspace::Fnv;

/// A sampled `traceparent`: one trace for a run, one span for each attempt.
pub(crate) fn parent(run: &str, turn: u32, attempt: u32) -> String {
    format!("00-{}-{}-01", trace_id(run), attempt_span(run, turn, attempt))
}

pub(crate) fn trace_id(run: &str) -> String {
    let high = hash(run.as_bytes(), 0x6f75_746c_6173_7431);
    let low = hash(run.as_bytes(), 0x6f75_746c_6173_7432);
    format!("{high:016x}{low:016x}")
}

pub(crate) fn attempt_span(run: &str, turn: u32, attempt: u32) -> String {
    span(&format!("{run}/t{turn}.a{attempt}"))
}

/// Of the run itself, which is above its attempts.
#[cfg(feature = "otlp")]
pub(crate) fn run_span(run: &str) -> String {
    span(run)
}

#[cfg(feature = "otlp")]
pub(crate) fn errand_span(run: &str, errand: u32) -> String {
    span(&format!("{run}/e{errand}"))
}

fn span(name: &str) -> String {
    // All zeros are forbidden there.
    format!("{:016x}", hash(name.as_bytes(), 0x6f75_746c_6173_7433).max(1))
}

fn hash(bytes: &[u8], seed: u64) -> u64 {
    let mut hash = Fnv::seeded(seed);
    hash.add(bytes);
    hash.value()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_trace_for_a_run_and_a_span_for_each_attempt() {
        let (one, other) = (parent("k3v9d2m7q0xa", 1, 1), parent("k3v9d2m7q0xa", 1, 2));
        assert_eq!(one.len(), 55);
        assert_eq!(one[..36], other[..36]);
        assert_ne!(one[36..], other[36..]);
        // What stands in traces already.
        assert_eq!(one, "00-a86defa9eb72d5b3bd0f08666a5bdd7c-ed626166c3a6d8af-01");
    }
}
