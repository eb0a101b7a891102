//! A notice in words for people, and words cut to what a sink takes.

use outlast_wire::api::Notice;
use outlast_wire::shim::Exit;

/// `nightly completed`, `k3m… failed: exit 3`: one line.
pub(super) fn title(notice: &Notice) -> String {
    let who = notice.data.name.as_deref().unwrap_or(&notice.data.run);
    let what = match notice.kind.as_str() {
        "run.warning" => "warns".to_owned(),
        "run.asked" => "asks".to_owned(),
        "run.matched" => "has written what is watched for".to_owned(),
        "run.heartbeat" => "goes on".to_owned(),
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

/// The summary, and the last lines of output.
pub(super) fn message(notice: &Notice) -> String {
    let summary = notice.data.summary.as_deref().unwrap_or_default().trim();
    let tail = notice.data.output_tail.trim_end();
    match (summary.is_empty(), tail.trim().is_empty()) {
        (false, false) => format!("{summary}\n\n{tail}"),
        (false, true) => summary.to_owned(),
        (true, false) => tail.to_owned(),
        (true, true) => title(notice),
    }
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
    let words: Vec<&str> = text
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
    fn cuts_fall_between_characters() {
        assert_eq!(clipped("abcdef", 6), "abcdef");
        assert_eq!(clipped("abcdefg", 6), "abc…");
        assert_eq!(clipped("ééééé", 8), "éé…");
        assert_eq!(end_of("aé", 1), "");
        assert_eq!(end_of("aé", 2), "é");
        assert_eq!(one_line("a\r\nBcc: b\tc"), "a Bcc: b c");
    }
}
