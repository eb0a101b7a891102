//! The tree as text: what git knows or would take, else everything that is not built.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::root;

/// A text file, by its path from the root of the repository.
#[derive(Debug, Clone)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) text: String,
}

impl File {
    /// Lines with their numbers.
    pub(super) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// The crate whose sources this belongs to: `daemon` for `crates/daemon/src/serve.rs`.
    pub(super) fn source_of(&self) -> Option<&str> {
        let (name, rest) = self.path.strip_prefix("crates/")?.split_once('/')?;
        (rest.starts_with("src/") && rest.ends_with(".rs")).then_some(name)
    }

    /// The number of the line that the byte at `offset` is on.
    pub(super) fn line_at(&self, offset: usize) -> usize {
        self.text[..offset].matches('\n').count() + 1
    }
}

/// Every text file; what is not UTF-8 is not text.
pub(super) fn read() -> Result<Vec<File>> {
    let root = root::repository();
    let paths = known_to_git(&root).map_or_else(|| walk(&root, ""), Ok)?;
    let file = |path: String| fs::read(root.join(&path)).ok().and_then(|bytes| text(path, bytes));
    Ok(paths.into_iter().filter_map(file).collect())
}

fn text(path: String, bytes: Vec<u8>) -> Option<File> {
    String::from_utf8(bytes).ok().map(|text| File { path, text })
}

fn known_to_git(root: &Path) -> Option<Vec<String>> {
    let args = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").args(args).current_dir(root).output().ok()?;
    let list = String::from_utf8(output.stdout).ok()?;
    let paths: Vec<_> = list.split_terminator('\0').map(str::to_owned).collect();
    (output.status.success() && !paths.is_empty()).then_some(paths)
}

fn walk(root: &Path, under: &str) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    let entries = fs::read_dir(root.join(under)).with_context(|| format!("reading {under}"))?;
    for entry in entries {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        let path = if under.is_empty() { name.clone() } else { format!("{under}/{name}") };
        let kind = entry.file_type()?;
        if kind.is_file() {
            paths.push(path);
        } else if kind.is_dir() && name != ".git" && path != "target" {
            paths.extend(walk(root, &path)?);
        }
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
pub(super) fn files(files: &[(&str, &str)]) -> Vec<File> {
    files
        .iter()
        .map(|(path, text)| File { path: (*path).to_owned(), text: (*text).to_owned() })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_finds_what_git_finds_among_others() {
        let root = root::repository();
        let walked = walk(&root, "xtask").expect("xtask can be walked");
        assert!(walked.contains(&"xtask/src/tidy/tree.rs".to_owned()), "{walked:?}");
    }

    #[test]
    fn sources_know_their_crate() {
        let of = |path: &str| files(&[(path, "")])[0].source_of().map(str::to_owned);
        assert_eq!(of("crates/daemon/src/api/mod.rs"), Some("daemon".to_owned()));
        assert_eq!(of("crates/daemon/tests/a.rs"), None);
        assert_eq!(of("xtask/src/main.rs"), None);
    }
}
