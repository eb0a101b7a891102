//! Prose names its actor: the client, the conductor, the shim; not a pronoun that stands for any of them.
//!
//! The rule reads comments and strings of Rust sources, and all of every other text. A test's name may say what it likes.

use super::Finding;
use super::tokens::texts;
use super::tree::File;

/// Pronouns without a noun, and turns of phrase that hide who does what. In lower case; the words of each are joined, so
/// that the rule does not find itself.
const HIDING: [&str; 16] = [
    concat!("who", "ever"),
    concat!("whom", "ever"),
    concat!("some", "body"),
    concat!("no", "body"),
    concat!("every", "body"),
    concat!("any", "body"),
    concat!("some", "one"),
    concat!("any", "one"),
    concat!("every", "one"),
    concat!("no ", "one"),
    concat!("there", "by"),
    concat!("like", "wise"),
    concat!("in ", "vain"),
    concat!("all the ", "same"),
    concat!("by way ", "of"),
    concat!("word for ", "all"),
];

/// Text of others, and files that older releases wrote. The tests of webhooks have the secret of
/// GitHub's published example.
const NOT_OURS: [&str; 6] = [
    "crates/agents/tests/recordings/",
    "fuzz/",
    "crates/outlast/tests/golden/",
    "LICENSE",
    "crates/daemon/src/triggers/webhook/tests.rs",
    "crates/outlast/tests/suite/webhooks.rs",
];

/// How many there still are, by the start of the path. A number only falls, and an entry goes with its last.
const KNOWN: [(&str, usize); 0] = [];

pub(super) fn are_named(files: &[File]) -> Vec<Finding> {
    findings(files, &KNOWN)
}

fn findings(files: &[File], known: &[(&str, usize)]) -> Vec<Finding> {
    let is_ours = |file: &&File| !NOT_OURS.iter().any(|start| file.path.starts_with(start));
    let found: Vec<Finding> = files.iter().filter(is_ours).flat_map(in_file).collect();
    let start_of = |finding: &Finding| {
        known.iter().map(|(start, _)| *start).find(|start| finding.path.starts_with(start))
    };
    let counts = known.iter().map(|(start, most)| {
        let of_start: Vec<&Finding> =
            found.iter().filter(|finding| start_of(finding) == Some(start)).collect();
        (start, *most, of_start)
    });
    let new = found.iter().filter(|finding| start_of(finding).is_none()).cloned();
    let beyond = counts.flat_map(|(start, most, of_start)| match of_start.len() {
        count if count > most => of_start.into_iter().cloned().collect(),
        count if count < most => vec![fewer(start, count)],
        _ => Vec::new(),
    });
    new.chain(beyond).collect()
}

fn fewer(start: &str, count: usize) -> Finding {
    let message = format!("{start} has only {count} now: lower its number in tidy's actors.rs");
    Finding::warning("xtask/src/tidy/actors.rs", 1, message)
}

fn in_file(file: &File) -> Vec<Finding> {
    let lines: Vec<(usize, &str)> = match file.path.ends_with(".rs") {
        true => texts(&file.text).into_iter().flat_map(lines_of).collect(),
        false => file.lines().collect(),
    };
    let told = |(line, text): (usize, &str)| {
        let hiding = hiding(text)?;
        let message = format!("{hiding:?} names no actor: say which process, task or person");
        Some(Finding::failure(&file.path, line, message))
    };
    lines.into_iter().filter_map(told).collect()
}

fn lines_of(text: super::tokens::Token<'_>) -> impl Iterator<Item = (usize, &str)> {
    text.text.lines().enumerate().map(move |(index, line)| (text.line + index, line))
}

fn hiding(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    HIDING.into_iter().find(|hiding| {
        text.match_indices(hiding).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + hiding.len()..].chars().next();
            !before.is_some_and(is_of_word) && !after.is_some_and(is_of_word)
        })
    })
}

fn is_of_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

#[cfg(test)]
mod tests {
    use super::super::tree::files;
    use super::*;

    fn told(path: &str, text: &str) -> Vec<String> {
        findings(&files(&[(path, text)]), &[]).iter().map(|it| format!("{}", it.line)).collect()
    }

    #[test]
    fn a_pronoun_is_found_in_comments_strings_and_documents() {
        for word in HIDING {
            let capital: String = word.chars().enumerate().map(upper_first).collect();
            assert_eq!(told("a.md", &format!("x\n{capital} asks\n")), ["2"], "{word}");
            assert_eq!(told("a.rs", &format!("// {word} asks\nlet a = \"{word}\";\n")), ["1", "2"]);
        }
    }

    fn upper_first((at, letter): (usize, char)) -> char {
        if at == 0 { letter.to_ascii_uppercase() } else { letter }
    }

    #[test]
    fn names_in_code_and_of_tests_are_left_alone() {
        let word = HIDING[3];
        let text =
            format!("fn a_line_that_{word}_reads() {{ let {word} = 1; }} // see a_{word}_b\n");
        assert_eq!(told("a.rs", &text), [""; 0]);
    }

    #[test]
    fn what_is_known_may_only_fall() {
        let text = format!("{0}\n{0}\n", HIDING[0]);
        let levels = |most| {
            let found = findings(&files(&[("a/b.md", &text)]), &[("a/", most)]);
            found.iter().map(|it| it.level == super::super::Level::Failure).collect::<Vec<_>>()
        };
        assert_eq!((levels(1), levels(2), levels(3)), (vec![true, true], vec![], vec![false]));
    }
}
