//! The documents that have to be there, and decisions numbered without a gap.

use super::Finding;
use super::tree::File;

const NEEDED: [&str; 6] = [
    "README.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE-APACHE",
    "LICENSE-MIT",
];

pub(super) fn are_there(files: &[File]) -> Vec<Finding> {
    let missing = NEEDED.iter().filter(|name| !files.iter().any(|file| file.path == **name));
    missing.map(|name| Finding::failure(name, 1, "is missing")).collect()
}

/// Decisions are `docs/decisions/0001-what-was-decided.md` and so on.
pub(super) fn decisions(files: &[File]) -> Vec<Finding> {
    let mut paths: Vec<_> =
        files.iter().map(|file| file.path.as_str()).filter(|path| is_decision(path)).collect();
    paths.sort_unstable();
    let found = paths.iter().enumerate().filter_map(|(index, path)| {
        let expected = format!("{:04}", index + 1);
        let number = path.strip_prefix(FOLDER)?.split('-').next()?;
        let message = format!("is numbered {number} where {expected} is next");
        (number != expected).then(|| Finding::failure(path, 1, message))
    });
    // After the first gap every number is off.
    found.take(1).collect()
}

const FOLDER: &str = "docs/decisions/";

fn is_decision(path: &str) -> bool {
    path.strip_prefix(FOLDER).is_some_and(|name| name.ends_with(".md") && name != "README.md")
}

#[cfg(test)]
mod tests {
    use super::super::tree::files;
    use super::*;

    #[test]
    fn a_document_that_is_missing_is_found() {
        let tree: Vec<_> = NEEDED.iter().skip(1).map(|name| (*name, "")).collect();
        let found = are_there(&files(&tree));
        assert_eq!(
            found.iter().map(|found| found.path.as_str()).collect::<Vec<_>>(),
            ["README.md"]
        );
    }

    #[test]
    fn a_gap_or_a_repetition_among_decisions_is_found() {
        let found = |names: &[&str]| {
            let paths: Vec<_> = names.iter().map(|name| format!("{FOLDER}{name}")).collect();
            let tree: Vec<_> = paths.iter().map(|path| (path.as_str(), "")).collect();
            decisions(&files(&tree)).iter().map(|found| found.message.clone()).collect::<Vec<_>>()
        };
        assert!(found(&["0001-a.md", "0002-b.md", "README.md"]).is_empty());
        assert_eq!(
            found(&["0001-a.md", "0003-b.md", "0004-c.md"]),
            ["is numbered 0003 where 0002 is next"]
        );
        assert_eq!(found(&["0001-a.md", "0001-b.md"]), ["is numbered 0001 where 0002 is next"]);
    }
}
