//! No code decides on the text of a state, a health, a reason or a trouble: it matches the enum of the crate `words`.
//!
//! The rule reads the sources of our crates without their tests, line by line. It finds a word of those sets, whole and in
//! quotes, where a decision is made of it:
//!
//! - beside `==` or `!=`, also within `Some(…)` or `Ok(…)`;
//! - in the pattern of a match arm, which is before `=>` on its line, or on a line that begins with `|`;
//! - in the pattern of `matches!`, or of `if let` and `let … else`.
//!
//! A word in any other place is data, such as a key of JSON or a column of a table, and is let pass. So is a text that is
//! compared through a variable or with `contains`: the rule prefers to miss a decision over finding what is none.

use outlast_wire::words::{BlockReason, Health, ReasonCode, StateName, TroubleCode};

use super::Finding;
use super::tree::File;

/// Where these texts may be compared, and why.
const HOMES: [(&str, &str); 9] = [
    ("crates/agents/src/adapter/", "the words of vendors"),
    ("crates/words/src/", "the words themselves"),
    ("crates/wire/src/", "the bodies that have them"),
    ("crates/outlast/src/output/", "what is printed for people"),
    ("crates/outlast/src/progress/news.rs", "events in words for people, and outcomes of attempts"),
    ("crates/agents/src/response/", "the status that an agent writes"),
    ("crates/store/src/sqlite/triggers.rs", "what became of a delivery"),
    ("crates/workflow/src/notify/read.rs", "the level of a sink"),
    ("crates/outlast/src/service/", "what a service manager says of its unit"),
];

/// Reason codes that are words of other sets too: fields of a log, results of a job, keys of the config.
const COMMON: [ReasonCode; 9] = [
    ReasonCode::Ready,
    ReasonCode::Done,
    ReasonCode::Message,
    ReasonCode::RunTimeout,
    ReasonCode::TurnTimeout,
    ReasonCode::StallWindow,
    ReasonCode::MaxTurns,
    ReasonCode::MaxTokens,
    ReasonCode::MaxCost,
];

pub(super) fn with_words(files: &[File]) -> Vec<Finding> {
    let words = words();
    let sources = files.iter().filter(|file| file.source_of().is_some() && !is_home(&file.path));
    sources.flat_map(|file| in_file(file, &words)).collect()
}

fn words() -> Vec<&'static str> {
    let mut words: Vec<&str> = StateName::ALL.map(StateName::word).to_vec();
    words.extend(Health::ALL.map(Health::word));
    let is_own = |code: &ReasonCode| !COMMON.contains(code);
    words.extend(ReasonCode::ALL.into_iter().filter(is_own).map(ReasonCode::word));
    words.extend(BlockReason::ALL.map(BlockReason::word));
    words.extend(TroubleCode::OWN.map(TroubleCode::word));
    words.sort_unstable();
    words.dedup();
    words
}

fn is_home(path: &str) -> bool {
    HOMES.iter().any(|(home, _)| path.starts_with(home)) || path.ends_with("/tests.rs")
}

fn in_file(file: &File, words: &[&str]) -> Vec<Finding> {
    let code = file.lines().take_while(|(_, text)| !text.starts_with("#[cfg(test)]"));
    let code = code.filter(|(_, text)| !text.trim_start().starts_with("//"));
    let found = code.filter_map(|(line, text)| {
        let word = words.iter().find(|word| decides(text, word))?;
        let message = format!("decides on the text \"{word}\"; match the enum of `words`");
        Some(Finding::failure(&file.path, line, message))
    });
    found.collect()
}

fn decides(line: &str, word: &str) -> bool {
    let quoted = format!("\"{word}\"");
    line.match_indices(&quoted).any(|(at, _)| {
        let before = without_openers(&line[..at]);
        let after = line[at + quoted.len()..].trim_start_matches([')', ' ']);
        is_compared(before, after) || is_in_pattern(before, after)
    })
}

fn is_compared(before: &str, after: &str) -> bool {
    ["==", "!="].iter().any(|sign| before.ends_with(sign) || after.starts_with(sign))
}

fn is_in_pattern(before: &str, after: &str) -> bool {
    let is_arm = after.contains("=>") && !before.contains("=>");
    let is_alternative = before.trim_start() == "|";
    let is_next = before.ends_with([',', '|']);
    let is_matched = before.contains("matches!(") && is_next;
    let has_let = before.contains("let ") || before.ends_with("let");
    let is_let = has_let && after.starts_with("= ");
    is_arm || is_alternative || is_matched || is_let
}

/// The text without what may stand between a sign and the word: `Some(`, `&`, the bracket of a tuple.
fn without_openers(before: &str) -> &str {
    let mut left = before.trim_end();
    loop {
        let shorter =
            ["Some(", "Ok(", "Err(", "(", "&"].iter().find_map(|it| left.strip_suffix(it));
        match shorter {
            Some(shorter) => left = shorter.trim_end(),
            None => return left,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tree::files;
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        with_words(&files(&[(path, text)])).iter().map(|found| found.line).collect()
    }

    #[test]
    fn a_decision_on_a_text_is_found() {
        for text in [
            "if view.state == \"blocked\" {",
            "if \"blocked\" != view.state {",
            "let is_paused = row.reason_code.as_deref() == Some(\"paused\");",
            "    \"needs_approval\" => vec![",
            "    (\"failed\", Some(\"lost\")) => Some(6),",
            "    | \"needs_input\"",
            "matches!(health, \"waiting_human\" | \"stalled\")",
            "if let Some(\"unreachable\") = code {",
        ] {
            assert_eq!(lines("crates/daemon/src/a.rs", text), [1], "{text}");
        }
    }

    #[test]
    fn a_word_that_decides_nothing_is_let_pass() {
        for text in [
            "Self::Blocked => \"blocked\",",
            "json!({ \"state\": \"running\" })",
            "let word = \"blocked\";",
            "// if state == \"blocked\"",
            "if state == \"no such word\" {",
            "matches!(of(\"running\"), Some(_))",
        ] {
            assert!(lines("crates/daemon/src/a.rs", text).is_empty(), "{text}");
        }
    }

    #[test]
    fn tests_and_printing_may_compare() {
        let text = "fn f() {}\n#[cfg(test)]\nmod tests {\n    a == \"blocked\"\n}\n";
        assert!(lines("crates/daemon/src/a.rs", text).is_empty());
        let compared = "a == \"blocked\"";
        for home in
            ["crates/outlast/src/output/a.rs", "crates/outlast/tests/a.rs", "xtask/src/a.rs"]
        {
            assert!(lines(home, compared).is_empty(), "{home}");
        }
    }
}
