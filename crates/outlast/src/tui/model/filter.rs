//! Which runs a typed filter leaves: those that have all of its words somewhere.

use outlast_wire::api::RunRow;

use crate::output::state::Condition;

pub(crate) fn matches(row: &RunRow, filter: &str) -> bool {
    if filter.trim().is_empty() {
        return true;
    }
    let text = searched(row);
    filter.to_lowercase().split_whitespace().all(|word| text.contains(word))
}

/// What of a run can be searched for.
fn searched(row: &RunRow) -> String {
    let state = Condition::from(row).words_at(row.phase.as_deref(), row.agent.as_ref());
    let mut text =
        [&row.id, row.name.as_deref().unwrap_or_default(), &state, row.health.as_str(), &row.what]
            .join(" ");
    for (key, value) in &row.labels {
        text.push_str(&format!(" {key}={value}"));
    }
    text.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::sample;

    #[test]
    fn every_word_has_to_be_somewhere() {
        let mut row = sample::row("k3mx", "blocked", 1);
        row.name = Some("Port".to_owned());
        row.labels.insert("repo".to_owned(), "web".to_owned());
        for found in ["", "  ", "k3", "port", "BLOCKED", "repo=web port"] {
            assert!(matches(&row, found), "{found}");
        }
        for missed in ["nightly", "port nightly", "repo=cli"] {
            assert!(!matches(&row, missed), "{missed}");
        }
    }
}
