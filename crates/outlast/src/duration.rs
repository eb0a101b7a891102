//! Durations and moments as people type them: `90s`, `5m`, `1h30m`, `500ms`; a bare number is seconds.

use std::time::Duration;

use jiff::Timestamp;
use outlast_client::problem::Problem;

/// What to write instead, said in every refusal.
const EXAMPLES: &str = "write 90s, 5m, 2h, 1h30m or 500ms";

pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let ms = parse_ms(text).ok_or_else(|| format!("not a duration; {EXAMPLES}"))?;
    Ok(Duration::from_millis(ms))
}

/// A duration with its unit. What is removed by it does not come back, so a bare number is not guessed at.
pub(crate) fn parse_with_unit(text: &str) -> Result<Duration, String> {
    if text.parse::<u64>().is_ok() {
        return Err(format!("has no unit; write {text}s, {text}m, {text}h or {text}d"));
    }
    parse(text)
}

/// A limit of nothing would end every run before it began.
pub(crate) fn parse_limit(text: &str) -> Result<Duration, String> {
    let limit = parse(text)?;
    if limit.is_zero() {
        return Err(format!("a limit is more than 0; {EXAMPLES}"));
    }
    Ok(limit)
}

/// How long a start is put off; not at all is the start without the option.
pub(crate) fn parse_delay(text: &str) -> Result<Duration, String> {
    let delay = parse(text)?;
    if delay.is_zero() {
        return Err("a delay is more than 0; without it, the run starts now".to_owned());
    }
    Ok(delay)
}

/// A moment in the past: an RFC 3339 time, or how long ago it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Since {
    At(Timestamp),
    Ago(Duration),
}

pub(crate) fn parse_since(text: &str) -> Result<Since, String> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(Since::At(at));
    }
    parse(text).map(Since::Ago).map_err(|_| {
        "neither a time nor a duration; write 2026-11-15T20:50:00Z, or 10m for ten minutes ago"
            .to_owned()
    })
}

impl Since {
    /// The same, of a moment that has come: nothing has happened since one in the future.
    pub(crate) fn past(self, now: Timestamp) -> Result<Self, Problem> {
        match self {
            Self::At(at) if at > now => {
                let message = format!("--since {at} is in the future");
                Err(Problem::refusal("bad_time", message)
                    .hint("write a time that has passed, or 10m for ten minutes ago"))
            }
            _ => Ok(self),
        }
    }

    pub(crate) fn timestamp(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(at) => at,
            Self::Ago(ago) => now.checked_sub(ago).unwrap_or(Timestamp::UNIX_EPOCH),
        }
    }
}

pub(crate) fn as_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A bare number is seconds.
fn parse_ms(text: &str) -> Option<u64> {
    match text.parse::<u64>() {
        Ok(seconds) => seconds.checked_mul(1000),
        Err(_) => outlast_workflow::duration::parse(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_removed_by_is_said_with_its_unit() {
        let days = |count: u64| Duration::from_secs(count * 24 * 3600);
        assert_eq!(parse_with_unit("3d"), Ok(days(3)));
        let said = parse_with_unit("3").expect_err("three of what?");
        assert!(said.contains("3s, 3m, 3h or 3d"), "{said}");
    }

    #[test]
    fn durations_as_people_type_them() {
        let cases = [
            ("90", 90_000),
            ("0", 0),
            ("90s", 90_000),
            ("5m", 300_000),
            ("2h", 7_200_000),
            ("1h30m", 5_400_000),
            ("1m500ms", 60_500),
            ("500ms", 500),
            ("7d", 604_800_000),
            ("1w", 604_800_000),
            ("1d2h3m4s5ms", 93_784_005),
        ];
        for (text, ms) in cases {
            assert_eq!(parse(text), Ok(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let cases = [
            "",
            "m",
            "5x",
            "5 m",
            "-5s",
            "1.5h",
            "30m1h",
            "1h1h",
            "5ms5ms",
            "5m5",
            "s5",
            "+5",
            "99999999999999999999",
            "99999999999999999d",
            "٣s",
        ];
        for text in cases.into_iter().filter(|text| *text != "+5") {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse_limit("0s").is_err());
        assert!(parse_limit("1ms").is_ok());
    }

    #[test]
    fn since_takes_a_time_or_an_age() {
        let now: Timestamp = "2026-11-15T12:00:00Z".parse().expect("a time");
        let moment = |text| parse_since(text).map(|since| since.timestamp(now).to_string());
        assert_eq!(moment("10m"), Ok("2026-11-15T11:50:00Z".to_owned()));
        assert_eq!(moment("2026-11-15T13:00:00+02:00"), Ok("2026-11-15T11:00:00Z".to_owned()));
        assert!(moment("yesterday").is_err());
        let past = |text| parse_since(text).map(|since| since.past(now).is_ok());
        assert_eq!(past("2030-01-01T00:00:00Z"), Ok(false));
        assert_eq!((past("2026-11-15T12:00:00Z"), past("10m")), (Ok(true), Ok(true)));
    }
}
