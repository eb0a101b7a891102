//! Times for people: relative, short, with a unit.

use jiff::Timestamp;

/// `3m ago`, `in 12s`, `now`.
pub(crate) fn relative(at: Timestamp, now: Timestamp) -> String {
    let ms = now.as_millisecond().saturating_sub(at.as_millisecond());
    let text = span(ms.unsigned_abs());
    match ms {
        -999..=999 => "now".to_owned(),
        1000.. => format!("{text} ago"),
        _ => format!("in {text}"),
    }
}

/// A length of time by its two largest units: `850ms`, `12s`, `3m 4s`, `2h 10m`, `5d 3h`.
pub(crate) fn span(ms: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)];
    let seconds = ms / 1000;
    let Some(first) = UNITS.iter().position(|(_, unit)| seconds >= *unit) else {
        return format!("{ms}ms");
    };
    let (name, unit) = UNITS[first];
    let whole = format!("{}{name}", seconds / unit);
    let rest = UNITS.get(first + 1).map(|(name, smaller)| (name, seconds % unit / smaller));
    match rest {
        Some((name, count)) if count > 0 => format!("{whole} {count}{name}"),
        _ => whole,
    }
}

/// The largest unit alone, for columns: `0s`, `3m`, `2h`.
pub(crate) fn age(ms: u64) -> String {
    if ms < 1000 {
        return "0s".to_owned();
    }
    let text = span(ms);
    text.split(' ').next().unwrap_or_default().to_owned()
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
    fn spans_keep_their_two_largest_units() {
        let cases = [
            (0, "0ms"),
            (850, "850ms"),
            (1000, "1s"),
            (59_999, "59s"),
            (60_000, "1m"),
            (184_000, "3m 4s"),
            (7_800_000, "2h 10m"),
            (7_205_000, "2h"),
            (442_800_000, "5d 3h"),
            (100 * 86_400_000, "100d"),
        ];
        for (ms, text) in cases {
            assert_eq!(span(ms), text);
        }
        assert_eq!(age(184_000), "3m");
        assert_eq!(age(15), "0s");
    }

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
