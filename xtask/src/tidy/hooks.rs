//! Crash points: each has one place, its crate's prefix, and a line in the crash matrix.

use std::collections::BTreeMap;

use super::Finding;
use super::tree::File;

/// The test that kills at every crash point, and says which there are in `const HOOKS`.
const MATRIX: &str = "crates/outlast/tests/suite/crash_matrix.rs";

struct Hook<'a> {
    name: &'a str,
    crate_name: &'a str,
    path: &'a str,
    line: usize,
}

pub(super) fn are_listed(files: &[File]) -> Vec<Finding> {
    let hooks: Vec<_> = files.iter().flat_map(in_file).collect();
    let matrix = files.iter().find(|file| file.path == MATRIX);
    let listed = matrix.map(listed).unwrap_or_default();
    let unlisted = hooks.iter().filter(|hook| !listed.iter().any(|(_, name)| *name == hook.name));
    let unlisted = unlisted.map(|hook| fault(hook, format!("is not in HOOKS of {MATRIX}")));
    let gone = listed.iter().filter(|(_, name)| !hooks.iter().any(|hook| hook.name == *name));
    let gone = gone.map(|(line, name)| {
        Finding::failure(MATRIX, *line, format!("there is no crash point {name}"))
    });
    misnamed(&hooks).chain(repeated(&hooks)).chain(unlisted).chain(gone).collect()
}

fn misnamed<'a>(hooks: &'a [Hook<'a>]) -> impl Iterator<Item = Finding> + 'a {
    let is_wrong = |hook: &&Hook<'_>| {
        hook.name.split_once('.').is_none_or(|(prefix, _)| prefix != hook.crate_name)
    };
    hooks
        .iter()
        .filter(is_wrong)
        .map(|hook| fault(hook, format!("does not begin with {}.", hook.crate_name)))
}

fn repeated<'a>(hooks: &'a [Hook<'a>]) -> impl Iterator<Item = Finding> + 'a {
    let mut first = BTreeMap::new();
    hooks.iter().filter_map(move |hook| match first.get(hook.name) {
        Some((path, line)) => Some(fault(hook, format!("is already at {path}:{line}"))),
        None => {
            first.insert(hook.name, (hook.path, hook.line));
            None
        }
    })
}

fn fault(hook: &Hook<'_>, what: String) -> Finding {
    Finding::failure(hook.path, hook.line, format!("crash point {} {what}", hook.name))
}

fn in_file(file: &File) -> Vec<Hook<'_>> {
    let Some(crate_name) = file.source_of() else { return Vec::new() };
    let code = file.lines().filter(|(_, text)| !text.trim_start().starts_with("//"));
    let named = code
        .filter_map(|(line, text)| Some((line, text.split_once("hook!(\"")?.1.split_once('"')?.0)));
    named.map(|(line, name)| Hook { name, crate_name, path: &file.path, line }).collect()
}

fn listed(matrix: &File) -> Vec<(usize, &str)> {
    let start =
        matrix.text.find("const HOOKS").and_then(|at| Some(at + matrix.text[at..].find("= &[")?));
    let Some(start) = start else { return Vec::new() };
    let end = matrix.text[start..].find("];").map_or(matrix.text.len(), |length| start + length);
    let mut at = start;
    let mut names = Vec::new();
    for (index, part) in matrix.text[start..end].split('"').enumerate() {
        if index % 2 == 1 {
            names.push((matrix.line_at(at), part));
        }
        at += part.len() + 1;
    }
    names
}

#[cfg(test)]
mod tests {
    use super::super::tree::files;
    use super::*;

    fn told(source: &str, matrix: &str) -> Vec<String> {
        let files = files(&[("crates/daemon/src/a.rs", source), (MATRIX, matrix)]);
        are_listed(&files)
            .iter()
            .map(|found| format!("{}: {}", found.line, found.message))
            .collect()
    }

    #[test]
    fn what_is_listed_once_and_exists_is_right() {
        let source = "/// hook!(\"daemon.not-this\")\nhook!(\"daemon.a\");\nhook!(\"daemon.b\");\n";
        assert!(
            told(source, "const HOOKS: &[&str] = &[\"daemon.a\",\n    \"daemon.b\"];\n").is_empty()
        );
    }

    #[test]
    fn a_crash_point_without_a_test_and_a_test_without_a_crash_point_are_found() {
        let matrix = "const HOOKS: &[&str] = &[\n    \"daemon.gone\",\n];\n";
        let found = told("hook!(\"daemon.a\");\n", matrix);
        let missing = format!("1: crash point daemon.a is not in HOOKS of {MATRIX}");
        assert_eq!(found, [missing, "2: there is no crash point daemon.gone".to_owned()]);
        let none = are_listed(&files(&[("crates/shim/src/a.rs", "hook!(\"shim.a\");")]));
        assert_eq!(none.len(), 1, "without a matrix nothing is listed");
    }

    #[test]
    fn a_crash_point_has_one_place_and_the_name_of_its_crate() {
        let matrix = "const HOOKS: &[&str] = &[\"daemon.a\", \"shim.b\"];\n";
        let found =
            told("hook!(\"daemon.a\");\nhook!(\"daemon.a\");\nhook!(\"shim.b\");\n", matrix);
        let expected = [
            "3: crash point shim.b does not begin with daemon.",
            "2: crash point daemon.a is already at crates/daemon/src/a.rs:1",
        ];
        assert_eq!(found, expected);
    }
}
