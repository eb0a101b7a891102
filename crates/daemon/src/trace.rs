//! The trace that an attempt belongs to, in the words of W3C Trace Context. Derived from the run, so that
//! every daemon says the same.

/// A sampled `traceparent`: one trace for a run, one span for each attempt.
pub(crate) fn parent(run: &str, turn: u32, attempt: u32) -> String {
    let high = hash(run.as_bytes(), 0x6f75_746c_6173_7431);
    let low = hash(run.as_bytes(), 0x6f75_746c_6173_7432);
    let span = hash(format!("{run}/t{turn}.a{attempt}").as_bytes(), 0x6f75_746c_6173_7433);
    // All zeros are forbidden there.
    format!("00-{high:016x}{low:016x}-{:016x}-01", span.max(1))
}

/// FNV-1a; what it gives stands in other systems' traces, so it does not change.
fn hash(bytes: &[u8], seed: u64) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325 ^ seed, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
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
    }
}
