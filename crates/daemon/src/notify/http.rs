//! What a web server's answer means for a notice.

use outlast_engine::Time;

use super::{Outcome, text};
pub(super) use crate::http::{Answer, Post, post};

/// What is told of an answer.
const MOST_TOLD: usize = 200;

/// What an answer means for a notice.
pub(super) fn outcome(answer: Result<Answer, String>, now: Time) -> Outcome {
    let answer = match answer {
        Ok(answer) => answer,
        Err(why) => return Outcome::failed(why),
    };
    let retry_after_ms = answer.retry_after.as_deref().and_then(|text| retry_after_ms(text, now));
    let said = text::one_line(&text::clipped(&answer.body, MOST_TOLD));
    let why = match said.is_empty() {
        true => format!("it answered {}", answer.status),
        false => format!("it answered {}: {said}", answer.status),
    };
    match answer.status {
        200..=299 => Outcome::Delivered { said: answer.status.to_string() },
        300..=399 => Outcome::Failed {
            why: format!("it answered {}: redirects are not followed", answer.status),
            retry_after_ms,
        },
        410 => Outcome::Gone { why },
        408 | 429 => Outcome::Failed { why, retry_after_ms },
        400..=499 => Outcome::Refused { why, retry_after_ms },
        _ => Outcome::Failed { why, retry_after_ms },
    }
}

/// Seconds, or a date.
fn retry_after_ms(text: &str, now: Time) -> Option<u64> {
    let text = text.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(seconds.saturating_mul(1000));
    }
    let at = jiff::fmt::rfc2822::DateTimeParser::new()
        .relaxed_weekday(true)
        .parse_timestamp(text)
        .ok()?;
    let at_ms = u64::try_from(at.as_millisecond()).ok()?;
    Some(at_ms.saturating_sub(now.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, retry_after: Option<&str>) -> Outcome {
        let retry_after = retry_after.map(str::to_owned);
        outcome(Ok(Answer { status, retry_after, body: String::new() }), Time(784_111_777_000))
    }

    #[test]
    fn a_status_says_whose_fault_it_is() {
        assert!(matches!(answer(204, None), Outcome::Delivered { .. }));
        assert!(matches!(answer(302, None), Outcome::Failed { .. }));
        assert!(matches!(answer(400, None), Outcome::Refused { .. }));
        assert!(matches!(answer(410, None), Outcome::Gone { .. }));
        for status in [408, 429, 500, 503] {
            assert!(matches!(answer(status, None), Outcome::Failed { .. }), "{status}");
        }
    }

    #[test]
    fn a_server_may_ask_to_be_left_alone_in_seconds_or_until_a_date() {
        let asked = |text| match answer(503, Some(text)) {
            Outcome::Failed { retry_after_ms, .. } => retry_after_ms,
            other => panic!("{other:?}"),
        };
        assert_eq!(asked("120"), Some(120_000));
        assert_eq!(asked("Sun, 06 Nov 1994 08:50:37 GMT"), Some(60_000));
        assert_eq!(asked("Sun, 06 Nov 1994 08:40:00 GMT"), Some(0));
        assert_eq!(asked("soon"), None);
    }
}
