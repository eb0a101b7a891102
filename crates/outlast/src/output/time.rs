//! Times for people: relative, short, with a unit.

use jiff::Timestamp;
use outlast_workflow::duration;

/// `3m ago`, `in 12s`, `now`.
pub(crate) fn relative(at: Timestamp, now: Timestamp) -> String {
    let ms = now.as_millisecond().saturating_sub(at.as_millisecond());
    let text = duration::short(ms.unsigned_abs());
    match ms {
        -999..=999 => "now".to_owned(),
        1000.. => format!("{text} ago"),
        _ => format!("in {text}"),
    }
}

/// Milliseconds from one time in a JSON body to another; `None` if either is unreadable.
pub(crate) fn ms_between(from: &str, to: Timestamp) -> Option<u64> {
    let from: Timestamp = from.parse().ok()?;
    u64::try_from(to.as_millisecond() - from.as_millisecond()).ok()
}

/// `3m ago (2026-11-15T20:50:00Z)`; what is not a time is shown as it came.
pub(crate) fn both(at: &str, now: Timestamp) -> String {
    match at.parse::<Timestamp>() {
        Ok(time) => format!("{} ({at})", relative(time, now)),
        Err(_) => at.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_times_look_both_ways() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().expect("a time");
        let told = |at: &str| relative(at.parse().expect("a time"), now);
        assert_eq!(told("2026-11-15T11:57:00Z"), "3m ago");
        assert_eq!(told("2026-11-15T12:00:12Z"), "in 12s");
        assert_eq!(told("2026-11-15T12:00:00.4Z"), "now");
        assert_eq!(told("2026-11-13T10:00:00Z"), "2d 2h ago");
        assert_eq!(both("soon", now), "soon");
        assert_eq!(both("2026-11-15T11:59:00Z", now), "1m ago (2026-11-15T11:59:00Z)");
    }
}
