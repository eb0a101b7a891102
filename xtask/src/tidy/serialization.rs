//! What is written down or sent has a home, because a change of it breaks another process or release.

use super::Finding;
use super::tree::File;

/// Where types may be `Serialize` or `Deserialize`, and why.
const HOMES: [(&str, &str); 24] = [
    ("crates/words/src/", "the words in all of the others"),
    ("crates/wire/src/", "what crosses a process boundary"),
    ("crates/home/src/holder.rs", "what the daemon's lock says"),
    ("crates/home/src/process.rs", "what the waiter's lock says"),
    ("crates/engine/src/", "events, which are on disk for good"),
    ("crates/agents/src/response/", "the walk over what an agent wrote, before it is read"),
    (
        "crates/agents/src/adapter/",
        "what daemon and driver leave for each other, and what an agent did",
    ),
    ("crates/drive/src/record.rs", "the lines between a driver and its agent"),
    ("crates/daemon/src/api/", "the queries of the API"),
    ("crates/daemon/src/triggers/progress.rs", "how far a trigger has come, for the next daemon"),
    ("crates/daemon/src/instance.rs", "what one daemon leaves for the next"),
    ("crates/daemon/src/lineage.rs", "what one daemon leaves for the next"),
    ("crates/daemon/src/order_book.rs", "what one daemon leaves for the next"),
    ("crates/daemon/src/steps/note.rs", "what one daemon leaves for the next"),
    ("crates/daemon/src/ended.rs", "what a run leaves for an older journal"),
    ("crates/daemon/src/starts.rs", "what one daemon leaves for the next"),
    ("crates/daemon/src/diary.rs", "what one daemon leaves for the next"),
    ("crates/outlast/src/commands/events.rs", "the few fields of an event that the table shows"),
    ("crates/outlast/src/commands/ps.rs", "the few fields of a run that the table shows"),
    ("crates/web/src/desk.rs", "what a command asks of outlast web"),
    ("crates/web/src/shares.rs", "a read-only link, as a command asks for it and lists it"),
    ("crates/web/src/orders.rs", "what the page sends"),
    ("crates/web/src/keys.rs", "what the page sends"),
    ("crates/web/src/tty.rs", "what the page sends"),
];

pub(super) fn homes(files: &[File]) -> Vec<Finding> {
    let homeless = files.iter().filter(|file| file.source_of().is_some());
    let homeless =
        homeless.filter(|file| !HOMES.iter().any(|(home, _)| file.path.starts_with(home)));
    homeless.flat_map(in_file).collect()
}

fn in_file(file: &File) -> Vec<Finding> {
    let message = "Serialize and Deserialize have homes, listed in tidy's serialization.rs; this is none of them";
    let lines = derives(file).chain(impls(file));
    lines.map(|line| Finding::failure(&file.path, line, message)).collect()
}

fn derives(file: &File) -> impl Iterator<Item = usize> {
    file.text.match_indices("derive(").filter_map(|(at, _)| {
        let list = file.text[at..].split_once(')')?.0;
        is_named(list).then(|| file.line_at(at))
    })
}

fn impls(file: &File) -> impl Iterator<Item = usize> {
    let is_impl = |text: &str| text.starts_with("impl") && text.contains(" for ") && is_named(text);
    file.lines().filter(move |(_, text)| is_impl(text)).map(|(line, _)| line)
}

fn is_named(text: &str) -> bool {
    text.contains("Serialize") || text.contains("Deserialize")
}

#[cfg(test)]
mod tests {
    use super::super::tree::files;
    use super::*;

    #[test]
    fn a_type_that_is_written_down_in_a_strange_place_is_found() {
        let text = "#[derive(Debug)]\nstruct A;\n#[derive(\n    Clone,\n    serde::Serialize,\n)]\nstruct B;\n\
                    impl<'de> Deserialize<'de> for A {}\n";
        let lines = |path: &str| {
            homes(&files(&[(path, text)])).iter().map(|found| found.line).collect::<Vec<_>>()
        };
        assert_eq!(lines("crates/shim/src/spool.rs"), [3, 8]);
        assert!(lines("crates/wire/src/api.rs").is_empty());
        assert!(lines("crates/shim/tests/spool.rs").is_empty());
    }
}
