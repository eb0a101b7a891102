//! A notice in words for people, and words cut to what a sink takes.

use outlast_wire::api::{Notice, Usage};
use outlast_wire::plain::visible;
use outlast_wire::shim::Exit;
use outlast_workflow::{duration, money};

/// `nightly completed`, `k3m… failed: exit 3`: one line.
pub(super) fn title(notice: &Notice) -> String {
    let who = notice.data.name.as_deref().unwrap_or(&notice.data.run);
    let what = match notice.kind.as_str() {
        "run.warning" => "has a warning".to_owned(),
        "run.asked" => "asks".to_owned(),
        "run.matched" => "printed a watched line".to_owned(),
        "run.heartbeat" => "is running".to_owned(),
        "run.emitted" => "says".to_owned(),
        "sink.test" => return "outlast: a test".to_owned(),
        other => other.trim_start_matches("run.").to_owned(),
    };
    let why = match (notice.kind.as_str(), notice.data.exit, &notice.data.reason_code) {
        ("run.failed", Some(Exit::Code(code)), _) => format!(": exit {code}"),
        ("run.failed", Some(Exit::Signal(signal)), _) => format!(": signal {signal}"),
        ("run.failed" | "run.exhausted" | "run.blocked", _, Some(code)) => format!(": {code}"),
        _ => String::new(),
    };
    one_line(&format!("{who} {what}{why}"))
}

/// The summary, the question if that is another text, how long and how much, and the last lines of output: what may be
/// cut is last.
pub(super) fn message(notice: &Notice) -> String {
    let data = &notice.data;
    let summary = data.summary.as_deref().unwrap_or_default().trim();
    let question = data.question.as_deref().unwrap_or_default().trim();
    let question = if summary.contains(question) { "" } else { question };
    let (facts, next) = (facts(notice), next(notice));
    let parts = [summary, question, &next, &facts, data.output_tail.trim_end()];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.trim().is_empty()).collect();
    if parts.is_empty() { title(notice) } else { parts.join("\n\n") }
}

/// What a person who is needed types next.
fn next(notice: &Notice) -> String {
    let run = notice.data.name.as_deref().unwrap_or(&notice.data.run);
    let run = if run.contains(' ') { format!("'{run}'") } else { run.to_owned() };
    match (notice.kind.as_str(), &notice.data.question) {
        ("run.blocked" | "run.asked", Some(_)) => format!("outlast answer {run} 'TEXT'"),
        // A notice of an older version does not say whether it asks.
        ("run.blocked", None) if notice.data.host.is_some() => format!("outlast show {run}"),
        _ => String::new(),
    }
}

/// `after 4m 2s, $0.06, on build7`: of a notice about the run as a whole.
fn facts(notice: &Notice) -> String {
    let is_whole = matches!(
        notice.kind.as_str(),
        "run.completed" | "run.failed" | "run.stopped" | "run.exhausted" | "run.blocked"
    );
    if !is_whole {
        return String::new();
    }
    let data = &notice.data;
    let took = data.duration_ms.map(|ms| format!("after {}", duration::short(ms)));
    let spent = data.usage.as_ref().and_then(spent);
    let host = data.host.as_ref().map(|host| format!("on {host}"));
    [took, spent, host].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What was spent, if that is anything; what was not reported is at most what was reserved for it.
fn spent(usage: &Usage) -> Option<String> {
    let micros = money::micros(&format!("{:.6}", usage.cost_usd)).filter(|micros| *micros > 0)?;
    let cost = money::shown(micros);
    let unreported = money::micros(&format!("{:.6}", usage.unreported_usd)).unwrap_or(0);
    Some(match (usage.known || usage.money_known, unreported) {
        (true, _) => cost,
        (false, 0) => format!("≥ {cost}, not all reported"),
        (false, part) if part >= micros => format!("≤ {cost}, not reported"),
        (false, part) => format!("≤ {cost}, {} of it not reported", money::shown(part)),
    })
}

/// At most so many bytes, with a mark where something is missing.
pub(super) fn clipped(text: &str, most: usize) -> String {
    const MARK: &str = "…";
    if text.len() <= most {
        return text.to_owned();
    }
    let mut end = most.saturating_sub(MARK.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{MARK}", &text[..end])
}

/// What is left of a text if only so many bytes of its end may be.
pub(super) fn end_of(text: &str, most: usize) -> &str {
    let mut begin = text.len().saturating_sub(most);
    while !text.is_char_boundary(begin) {
        begin += 1;
    }
    &text[begin..]
}

pub(super) fn one_line(text: &str) -> String {
    let seen = visible(text, |char| char.is_control().then_some(char));
    let words: Vec<&str> = seen
        .split(|char: char| char.is_control())
        .map(str::trim)
        .filter(|it| !it.is_empty())
        .collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_reported_is_not_told_as_spent() {
        let usage = |cost_usd: f64, unreported_usd: f64, known: bool| {
            spent(&Usage { cost_usd, unreported_usd, known, ..Usage::default() })
        };
        assert_eq!(usage(0.06, 0.0, true).as_deref(), Some("$0.06"));
        assert_eq!(usage(5.0, 5.0, false).as_deref(), Some("≤ $5.00, not reported"));
        assert_eq!(usage(1.5, 1.0, false).as_deref(), Some("≤ $1.50, $1.00 of it not reported"));
        assert_eq!(usage(0.42, 0.0, false).as_deref(), Some("≥ $0.42, not all reported"));
        assert_eq!((usage(0.0, 0.0, true), usage(0.0, 0.0, false)), (None, None));
        let paid = Usage { cost_usd: 0.42, money_known: true, ..Usage::default() };
        assert_eq!(spent(&paid).as_deref(), Some("$0.42"), "only tokens are missing");
    }

    #[test]
    fn cuts_fall_between_characters() {
        assert_eq!(clipped("abcdef", 6), "abcdef");
        assert_eq!(clipped("abcdefg", 6), "abc…");
        assert_eq!(clipped("ééééé", 8), "éé…");
        assert_eq!(end_of("aé", 1), "");
        assert_eq!(end_of("aé", 2), "é");
        assert_eq!(one_line("a\r\nBcc: b\tc"), "a Bcc: b c");
    }
}
