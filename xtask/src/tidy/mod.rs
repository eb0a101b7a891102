//! `cargo xtask tidy`: the rules of the tree that no compiler checks.
//!
//! Each rule is a function from the text of files to findings. Nothing here compiles or runs anything.

mod actors;
mod codes;
mod comparisons;
mod cycles;
mod dependencies;
mod documents;
mod hooks;
mod manifest;
mod purity;
mod serialization;
mod shape;
mod tokens;
mod tree;
mod words;

use std::fmt;

use anyhow::{Result, bail};

use self::tree::File;

type Rule = fn(&[File]) -> Vec<Finding>;

const RULES: [Rule; 16] = [
    dependencies::between_our_crates,
    dependencies::kept_out,
    dependencies::have_a_purpose,
    cycles::between_modules,
    words::unfinished,
    words::machine_paths,
    actors::are_named,
    hooks::are_listed,
    shape::sizes,
    shape::opening_docs,
    serialization::homes,
    purity::engine,
    codes::are_documented,
    comparisons::with_words,
    documents::decisions,
    documents::are_there,
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Level {
    Failure,
    Warning,
}

/// Something that is not as it should be, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    level: Level,
    path: String,
    line: usize,
    message: String,
}

impl Finding {
    fn failure(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { level: Level::Failure, path: path.to_owned(), line, message: message.into() }
    }

    fn warning(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { level: Level::Warning, ..Self::failure(path, line, message) }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.level {
            Level::Failure => "",
            Level::Warning => "warning: ",
        };
        write!(f, "{}:{}: {word}{}", self.path, self.line, self.message)
    }
}

pub(crate) fn run() -> Result<()> {
    let findings = findings()?;
    findings.iter().for_each(|finding| println!("{finding}"));
    match findings.iter().filter(|finding| finding.level == Level::Failure).count() {
        0 => Ok(()),
        1 => bail!("1 thing is not tidy"),
        count => bail!("{count} things are not tidy"),
    }
}

fn findings() -> Result<Vec<Finding>> {
    let files = tree::read()?;
    Ok(RULES.iter().flat_map(|rule| rule(&files)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_tidy() {
        let findings = findings().expect("the tree can be read");
        let failures: Vec<_> =
            findings.iter().filter(|finding| finding.level == Level::Failure).collect();
        let lines: Vec<_> = failures.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "not tidy:\n{}", lines.join("\n"));
    }
}
