//! The sheet that settling writes on: what is given, what was found, and what each key came to.

use std::fmt::Display;

use super::{Effective, Explained, Loaded, Origin, Overrides};
use crate::config::Config;
use crate::node::Node;
use crate::problem::{Code, Problem};
use crate::refused::{self, Refused};
use crate::times;
use crate::verify::Findings;

pub(super) struct Sheet<'a> {
    pub(super) file: &'a str,
    pub(super) config: &'a Config,
    pub(super) overrides: &'a Overrides,
    pub(super) errors: Vec<Problem>,
    pub(super) warnings: Vec<Problem>,
    /// Every length of time is in milliseconds here.
    root: &'a Node,
    /// As a person wrote it.
    written: &'a Node,
    explained: Vec<Explained>,
}

impl<'a> Sheet<'a> {
    pub(super) fn new(
        file: &'a str,
        (root, written): (&'a Node, &'a Node),
        config: &'a Config,
        overrides: &'a Overrides,
        found: Findings,
    ) -> Self {
        let Findings { errors, warnings } = found;
        Self { file, config, overrides, errors, warnings, root, written, explained: Vec::new() }
    }

    /// What the file says of a key. It may be of the wrong type, which was told before.
    pub(super) fn given(&self, key: &str) -> Option<&'a Node> {
        self.root.get(key)
    }

    pub(super) fn text(&self, key: &str) -> Option<(&'a str, usize)> {
        let node = self.given(key)?;
        Some((node.text()?, node.line))
    }

    pub(super) fn whole(&self, key: &str) -> Option<(u64, usize)> {
        let node = self.given(key)?;
        Some((u64::try_from(node.whole()?).ok()?, node.line))
    }

    pub(super) fn problem(&self, code: Code, key: &str, message: impl Display) -> Problem {
        Problem::new(code, self.file, message).key(key)
    }

    /// Takes down what a key came to.
    pub(super) fn note(&mut self, key: &str, value: impl Display, origin: Origin) {
        let value = value.to_string();
        self.explained.push(Explained { key: key.to_owned(), value, origin });
    }

    pub(super) fn finish(self, effective: Effective) -> Result<Loaded, Refused> {
        let Self { errors, warnings, explained, written, .. } = self;
        let as_written = |problems: Vec<Problem>| -> Vec<Problem> {
            problems.into_iter().map(|problem| times::as_written(problem, written)).collect()
        };
        let (errors, mut warnings) = (as_written(errors), as_written(warnings));
        if !errors.is_empty() {
            return Err(Refused::new(errors, warnings));
        }
        refused::sort(&mut warnings);
        Ok(Loaded { effective, warnings, explained })
    }
}
