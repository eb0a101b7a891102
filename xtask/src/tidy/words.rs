//! Words that do not belong in the tree: unfinished business, and the paths of one machine.

use super::Finding;
use super::tree::File;

// Put together, so that the rules do not find themselves.
const UNFINISHED: [&str; 5] = [
    concat!("FIX", "ME"),
    concat!("TO", "DO"),
    concat!("X", "XX"),
    concat!("to", "do!"),
    concat!("db", "g!"),
];

const CODE: [&str; 6] = [".rs", ".toml", ".sql", ".sh", ".yml", ".ci/run"];

const MACHINE: [&str; 3] = [concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/wo", "rk/")];

pub(super) fn unfinished(files: &[File]) -> Vec<Finding> {
    let code = files.iter().filter(|file| CODE.iter().any(|end| file.path.ends_with(end)));
    each_line(code, |line| {
        let word = UNFINISHED.into_iter().find(|word| has_word(line, word))?;
        Some(format!("{word}: finish it, or open an issue"))
    })
}

pub(super) fn machine_paths(files: &[File]) -> Vec<Finding> {
    each_line(files.iter(), |line| {
        let path = MACHINE.into_iter().find(|path| names_machine(line, path))?;
        Some(format!("{path}… is a path of one machine"))
    })
}

fn each_line<'a>(
    files: impl Iterator<Item = &'a File>,
    rule: impl Fn(&str) -> Option<String>,
) -> Vec<Finding> {
    let told = |file: &'a File| {
        file.lines()
            .filter_map(|(line, text)| Some(Finding::failure(&file.path, line, rule(text)?)))
    };
    files.flat_map(told).collect()
}

fn has_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + word.len()..].chars().next();
        !before.is_some_and(is_of_word) && (word.ends_with('!') || !after.is_some_and(is_of_word))
    })
}

/// True if an absolute path of this kind stands on the line, with something under it.
fn names_machine(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + path.len()..].chars().next();
        let is_absolute = !before.is_some_and(|before| {
            is_of_word(before) || matches!(before, '.' | '}' | '~' | '-' | '/')
        });
        is_absolute && after.is_some_and(is_of_word)
    })
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

#[cfg(test)]
mod tests {
    use super::super::tree::files;
    use super::*;

    #[test]
    fn unfinished_business_is_found_in_code_as_whole_words() {
        for word in UNFINISHED {
            let text = format!("fn f() {{}}\n// {word}(: later)\n");
            let found = unfinished(&files(&[("crates/a/src/a.rs", &text), ("a.md", &text)]));
            let places: Vec<_> =
                found.iter().map(|found| (found.path.as_str(), found.line)).collect();
            assert_eq!(places, [("crates/a/src/a.rs", 2)], "{word}");
        }
        let longer = UNFINISHED.map(|word| format!("a{word}")).join(" ");
        assert_eq!(unfinished(&files(&[("a.rs", &longer)])), []);
    }

    #[test]
    fn paths_of_a_machine_are_found_anywhere() {
        for path in MACHINE {
            let text = format!("in {path}me/x\n");
            assert_eq!(machine_paths(&files(&[("README.md", &text)])).len(), 1, "{text}");
            let relative = format!("crates{path}x and {{dir}}{path}x and `{path}`\n");
            assert_eq!(machine_paths(&files(&[("README.md", &relative)])), [], "{relative}");
        }
    }
}
