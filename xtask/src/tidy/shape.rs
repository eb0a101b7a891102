//! The shape of source files: not too long, and opening with what they are.

use super::Finding;
use super::tree::File;

const LONG: usize = 400;
const TOO_LONG: usize = 600;

pub(super) fn sizes(files: &[File]) -> Vec<Finding> {
    files.iter().filter(|file| file.source_of().is_some()).filter_map(size).collect()
}

fn size(file: &File) -> Option<Finding> {
    let lines = file.text.lines().count();
    let message = format!("{lines} lines: is this becoming the drawer for everything?");
    let finding = if lines > TOO_LONG { Finding::failure } else { Finding::warning };
    (lines > LONG).then(|| finding(&file.path, lines, message))
}

pub(super) fn opening_docs(files: &[File]) -> Vec<Finding> {
    let sources = files
        .iter()
        .filter(|file| file.source_of().is_some() || file.path.starts_with("xtask/src/"));
    sources
        .filter(|file| !file.text.starts_with("//! "))
        .map(|file| {
            Finding::failure(&file.path, 1, "does not begin with //! and what the file owns")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::super::tree::files;
    use super::*;

    #[test]
    fn long_files_are_warned_of_and_longer_ones_refused() {
        let level = |lines: usize| {
            let found = sizes(&files(&[("crates/a/src/a.rs", &"x\n".repeat(lines))]));
            found.first().map(|found| found.level)
        };
        assert_eq!(level(400), None);
        assert_eq!(level(401), Some(Level::Warning));
        assert_eq!(level(600), Some(Level::Warning));
        assert_eq!(level(601), Some(Level::Failure));
        assert_eq!(sizes(&files(&[("crates/a/tests/a.rs", &"x\n".repeat(1000))])), []);
    }

    #[test]
    fn a_file_that_does_not_say_what_it_is_is_found() {
        let tree = [
            ("crates/a/src/a.rs", "//! A.\n"),
            ("crates/a/src/b.rs", "use a;\n"),
            ("crates/a/tests/c.rs", ""),
        ];
        let found = opening_docs(&files(&tree));
        assert_eq!(
            found.iter().map(|found| found.path.as_str()).collect::<Vec<_>>(),
            ["crates/a/src/b.rs"]
        );
    }
}
