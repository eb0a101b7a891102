//! Which snapshots a loop has of its workspace, and what needs them.

use outlast_engine::{OnInterrupt, SnapshotRules, Strategy};

use super::Origin;
use super::sheet::Sheet;
use crate::node::{Node, Value};
use crate::problem::Code;

const KEY: &str = "workspace.snapshot";

/// Whether snapshots are made, as far as the file says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SnapshotMode {
    /// Where they cost little: in a workspace of the run's own, and in a repository.
    #[default]
    Auto,
    On,
    Off,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AskedSnapshots {
    pub mode: SnapshotMode,
    pub rules: SnapshotRules,
}

pub(super) fn snapshots(sheet: &mut Sheet<'_>) -> AskedSnapshots {
    let mode = mode(sheet);
    let default = SnapshotRules::default();
    let max_file = size(sheet, "workspace.snapshot.max_file", default.max_file);
    let max_total = size(sheet, "workspace.snapshot.max_total", default.max_total);
    let exclude = sheet.given("workspace.snapshot.exclude").map(Node::texts).unwrap_or_default();
    if let Some(blank) = exclude.iter().position(|pattern| pattern.contains('\n')) {
        let message = format!("pattern {} has a line break", blank + 1);
        let problem = sheet.problem(Code::BadValue, "workspace.snapshot.exclude", message);
        sheet.errors.push(problem.hint("one pattern is one line, as in .gitignore"));
    }
    let own_store = sheet.text("workspace.snapshot.store").is_some_and(|(word, _)| word == OWN);
    let undo_failed = sheet.text("retry.workspace").is_some_and(|(word, _)| word == RESTORE);
    if let Some((word, line)) = sheet.text("retry.workspace") {
        sheet.note("retry.workspace", word, Origin::Workflow { line });
    }
    let rules = SnapshotRules { max_file, max_total, exclude, own_store, undo_failed };
    AskedSnapshots { mode, rules }
}

const OWN: &str = "own";
const RESTORE: &str = "restore";

fn mode(sheet: &mut Sheet<'_>) -> SnapshotMode {
    let (mode, origin) = match sheet.given(KEY) {
        None => (SnapshotMode::Auto, Origin::Default),
        Some(node) => {
            let mode = match &node.value {
                Value::Map(_) => SnapshotMode::On,
                _ => match node.text() {
                    Some("on") => SnapshotMode::On,
                    Some("off") => SnapshotMode::Off,
                    // Any other word has been told as a problem by then.
                    Some(_) | None => SnapshotMode::Auto,
                },
            };
            (mode, Origin::Workflow { line: node.line })
        }
    };
    let word = match mode {
        SnapshotMode::Auto => "auto",
        SnapshotMode::On => "on",
        SnapshotMode::Off => "off",
    };
    sheet.note(KEY, word, origin);
    mode
}

/// What goes back to a snapshot needs one, and a workspace in which no person works beside the agent.
pub(super) fn check(
    sheet: &mut Sheet<'_>,
    asked: &AskedSnapshots,
    strategy: Strategy,
    on_interrupt: OnInterrupt,
) {
    let keys = [
        ("on_interrupt", on_interrupt == OnInterrupt::Restore),
        ("retry.workspace", asked.rules.undo_failed),
    ];
    for (key, _) in keys.into_iter().filter(|(_, is_asked)| *is_asked) {
        let (message, hint) = if strategy == Strategy::Inplace {
            (
                "restore would also undo what a person does in the same directory",
                "give the run a workspace of its own: workspace: { strategy: worktree }",
            )
        } else if asked.mode == SnapshotMode::Off {
            ("restore needs snapshots, which are off", "remove workspace.snapshot: off")
        } else {
            continue;
        };
        let line = sheet.given(key).map(|node| node.line);
        let mut problem = sheet.problem(Code::NeedsSnapshots, key, message).hint(hint);
        if let Some(line) = line {
            problem = problem.at(line);
        }
        sheet.errors.push(problem);
    }
}

/// A number of bytes: `50MB`, `2GB`, `512KiB` or a plain number.
fn size(sheet: &mut Sheet<'_>, key: &str, default: u64) -> u64 {
    let Some(node) = sheet.given(key) else { return default };
    let bytes = match (node.whole(), node.text()) {
        (Some(number), _) => u64::try_from(number).ok(),
        (None, Some(text)) => bytes_of(text),
        (None, None) => None,
    };
    let Some(bytes) = bytes.filter(|bytes| *bytes > 0) else {
        let message = format!("must be a size such as 50MB, got {}", node.quoted());
        let problem = sheet.problem(Code::BadValue, key, message).at(node.line);
        sheet.errors.push(problem.hint("units: B, KB, MB, GB, KiB, MiB, GiB"));
        return default;
    };
    sheet.note(key, format!("{bytes} bytes"), Origin::Workflow { line: node.line });
    bytes
}

fn bytes_of(text: &str) -> Option<u64> {
    let text = text.trim();
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..end].parse().ok()?;
    let unit: u64 = match text[end..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        for (text, bytes) in
            [("50MB", 50_000_000), ("2 GB", 2_000_000_000), ("1KiB", 1024), ("7", 7)]
        {
            assert_eq!(bytes_of(text), Some(bytes), "{text}");
        }
        for text in ["", "MB", "5 parsecs", "-1", "99999999999GB"] {
            assert_eq!(bytes_of(text), None, "{text}");
        }
    }
}
