//! The engine, the words that it is made of, and what the daemon decides with it are functions of their arguments.

use super::Finding;
use super::tree::File;

/// Names that bring the world or an order of chance in, and what to do instead.
const IMPURE: [(&str, &str); 8] = [
    ("SystemTime", "time arrives as an argument"),
    ("Instant", "time arrives as an argument"),
    ("std::fs", "the engine reads no file"),
    ("std::net", "the engine opens no socket"),
    ("std::thread", "the engine has no threads"),
    ("std::env", "the environment arrives as an argument"),
    ("HashMap", "its order is random; use BTreeMap"),
    ("HashSet", "its order is random; use BTreeSet"),
];

pub(super) fn engine(files: &[File]) -> Vec<Finding> {
    let is_pure = |file: &&File| matches!(file.source_of(), Some("engine" | "words" | "conduct"));
    files.iter().filter(is_pure).flat_map(in_file).collect()
}

fn in_file(file: &File) -> Vec<Finding> {
    let code = file.lines().filter(|(_, text)| !text.trim_start().starts_with("//"));
    let found = code.filter_map(|(line, text)| {
        let (name, instead) = IMPURE.iter().find(|(name, _)| text.contains(name))?;
        Some(Finding::failure(&file.path, line, format!("{name}: {instead}")))
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::super::tree::files;
    use super::*;

    #[test]
    fn whatever_reaches_for_the_world_is_found() {
        for (name, _) in IMPURE {
            let text = format!("//! Not {name}.\nuse {name};\n");
            let found = engine(&files(&[
                ("crates/engine/src/a.rs", &text),
                ("crates/words/src/a.rs", &text),
                ("crates/conduct/src/a.rs", &text),
                ("crates/store/src/a.rs", &text),
            ]));
            let places: Vec<_> =
                found.iter().map(|found| (found.path.clone(), found.line)).collect();
            let expected = ["engine", "words", "conduct"];
            let expected = expected.map(|name| (format!("crates/{name}/src/a.rs"), 2));
            assert_eq!(places, expected, "{name}");
        }
    }
}
