//! Modules of a crate depend on each other in one direction only.
//!
//! The rule compares siblings at every level of folders, each sibling with everything below it. A module may use its
//! ancestors and its descendants: a folder and its `mod.rs` are one thing. The rule reads `use` trees and paths that
//! begin with `crate`, `super` or `self`. A name that an ancestor re-exports counts as the ancestor's.

mod graph;
mod mentions;

use std::collections::BTreeMap;

use self::graph::{Cycle, Link, Source};
use super::Finding;
use super::tree::File;

/// Crates that this rule skips. The engine's rules over one state refer to each other by design: `advance` asks the
/// rule of a run's state, and that rule may hand the run on to the rule of another state.
const EXEMPT: [&str; 1] = ["engine"];

/// A cycle that the tree still has.
struct Known {
    crate_name: &'static str,
    /// The module that the cycle is in, with slashes; empty for the top of the crate.
    folder: &'static str,
    /// In the order of their names, with a space between them.
    modules: &'static str,
}

/// Cycles that are still to be undone. An entry goes with its cycle, and no entry is added.
const KNOWN: &[Known] = &[];

pub(super) fn between_modules(files: &[File]) -> Vec<Finding> {
    findings(files, KNOWN)
}

fn findings(files: &[File], known: &[Known]) -> Vec<Finding> {
    let crates = crates(files);
    let found: Vec<(&str, Cycle<'_>)> = crates
        .iter()
        .filter(|(name, _)| !EXEMPT.contains(name))
        .flat_map(|(name, sources)| graph::cycles(sources).into_iter().map(|cycle| (*name, cycle)))
        .collect();
    let is_known = |name: &str, cycle: &Cycle<'_>| known.iter().any(|it| it.is(name, cycle));
    let new = found.iter().filter(|(name, cycle)| !is_known(name, cycle)).map(|(_, it)| cyclic(it));
    let is_there = |it: &Known| found.iter().any(|(name, cycle)| it.is(name, cycle));
    let gone = known.iter().filter(|it| !is_there(it)).map(undone);
    new.chain(gone).collect()
}

impl Known {
    fn is(&self, crate_name: &str, cycle: &Cycle<'_>) -> bool {
        self.crate_name == crate_name
            && self.folder == cycle.folder
            && cycle.modules.join(" ") == self.modules
    }
}

fn cyclic(cycle: &Cycle<'_>) -> Finding {
    let links: Vec<_> = cycle.links.iter().map(told).collect();
    let message =
        format!("{} depend on each other: {}", cycle.modules.join(", "), links.join(", "));
    let first = cycle.links.first().expect("a cycle has links");
    Finding::failure(first.file, first.line, message)
}

fn told(link: &Link<'_>) -> String {
    format!("{} uses {} ({}:{})", link.from, link.to, link.file, link.line)
}

fn undone(known: &Known) -> Finding {
    let Known { crate_name, folder, modules } = known;
    let message =
        format!("{crate_name}/{folder}: {modules}: no longer a cycle; take it out of KNOWN");
    Finding::failure(file!(), 1, message)
}

/// The sources of each crate, by its name.
fn crates(files: &[File]) -> BTreeMap<&str, Vec<Source<'_>>> {
    let mut crates: BTreeMap<&str, Vec<Source<'_>>> = BTreeMap::new();
    for file in files {
        if let Some((name, source)) = source(file) {
            crates.entry(name).or_default().push(source);
        }
    }
    crates
}

fn source(file: &File) -> Option<(&str, Source<'_>)> {
    let (name, path) = match file.path.strip_prefix("crates/") {
        Some(rest) => rest.split_once('/')?,
        None => file.path.split_once('/').filter(|(name, _)| *name == "xtask")?,
    };
    let path = path.strip_prefix("src/")?.strip_suffix(".rs")?;
    Some((name, Source { file: &file.path, text: &file.text, module: module(path) }))
}

/// The module that a file holds: `api::runs` for `api/runs`, `api` for `api/mod`, the crate itself for `lib`.
fn module(path: &str) -> Vec<&str> {
    let mut module: Vec<&str> = path.split('/').collect();
    if matches!(module.last(), Some(&("mod" | "lib" | "main"))) {
        module.pop();
    }
    module
}

#[cfg(test)]
mod tests {
    use super::super::tree::files;
    use super::*;

    const TWO: [(&str, &str); 3] = [
        ("lib.rs", "mod one;\nmod two;\n"),
        ("one.rs", "//! One.\n\nuse crate::two::{self, Two};\n"),
        ("two.rs", "pub struct Two(super::one::One);\n"),
    ];

    /// What is found in files that are in the folder `src`.
    fn told(src: &str, tree: &[(&str, &str)], known: &[Known]) -> Vec<String> {
        let paths: Vec<_> =
            tree.iter().map(|(name, text)| (format!("{src}/{name}"), text)).collect();
        let tree: Vec<_> = paths.iter().map(|(path, text)| (path.as_str(), **text)).collect();
        findings(&files(&tree), known).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn two_modules_that_use_each_other_are_found_with_an_edge_for_each_direction() {
        let expected = "crates/a/src/one.rs:3: one, two depend on each other: \
            one uses two (crates/a/src/one.rs:3), two uses one (crates/a/src/two.rs:1)";
        assert_eq!(told("crates/a/src", &TWO, &[]), [expected]);
        assert_eq!(told("xtask/src", &TWO, &[]).len(), 1);
    }

    #[test]
    fn modules_that_use_each_other_in_one_direction_are_fine() {
        let tree = [TWO[0], TWO[1], ("two.rs", "pub struct Two;\n")];
        assert_eq!(told("crates/a/src", &tree, &[]), [""; 0]);
    }

    #[test]
    fn the_engine_and_what_is_no_source_are_skipped() {
        for skipped in ["crates/engine/src", "crates/a/tests", "fuzz/src"] {
            assert_eq!(told(skipped, &TWO, &[]), [""; 0], "{skipped}");
        }
    }

    #[test]
    fn a_known_cycle_is_no_finding_until_it_is_another() {
        let known = |modules| [Known { crate_name: "a", folder: "", modules }];
        assert_eq!(told("crates/a/src", &TWO, &known("one two")), [""; 0]);
        let found = told("crates/a/src", &TWO, &known("one three two"));
        let expected = "xtask/src/tidy/cycles.rs:1: a/: one three two: no longer a cycle; take it out of KNOWN";
        assert_eq!(found.len(), 2);
        assert_eq!(found[1], expected);
    }
}
