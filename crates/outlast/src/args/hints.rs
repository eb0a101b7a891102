//! Every `outlast …` in a message, a hint or a page of docs is read by the command line itself, so that none can rot.
//!
//! Only a test: it reads the sources of all crates, and the docs.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;

use super::tests::commands_in;
use super::{aliases, read};

/// What follows the program's name in a sentence that is no command.
const PROSE: &[&str] = &["binary", "come", "command", "has", "is", "itself", "somewhere", "wrote"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[expect(clippy::disallowed_methods, reason = "a test reads the sources")]
fn files(dir: &Path, ending: &str, found: &mut Vec<PathBuf>) {
    let entries =
        std::fs::read_dir(dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, ending, found);
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
}

/// The texts between quotes in a Rust file, with their escapes resolved; those of its tests left out.
fn literals(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let mut chars = code.chars().peekable();
    let mut found = Vec::new();
    let mut before = ' ';
    while let Some(c) = chars.next() {
        match c {
            '/' if chars.peek() == Some(&'/') => {
                chars.by_ref().take_while(|c| *c != '\n').for_each(drop);
            }
            '\'' => {
                let rest: Vec<char> = chars.clone().take(3).collect();
                let length = match rest.as_slice() {
                    ['\\', _, '\''] => 3,
                    [_, '\'', ..] => 2,
                    _ => 0,
                };
                chars.by_ref().take(length).for_each(drop);
            }
            '"' if before == 'r' => found.push(chars.by_ref().take_while(|c| *c != '"').collect()),
            '"' if before == '#' => {
                let rest: String = chars.clone().collect();
                let text = rest.split("\"#").next().unwrap_or_default();
                chars.by_ref().take(text.chars().count() + 1).for_each(drop);
                found.push(text.to_owned());
            }
            '"' => found.push(literal(&mut chars)),
            _ => {}
        }
        before = c;
    }
    found
}

fn literal(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let mut text = String::new();
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => match chars.next() {
                Some('n') => text.push('\n'),
                Some('\n') => {
                    while chars.peek().is_some_and(|c| c.is_whitespace()) {
                        chars.next();
                    }
                }
                Some(other) => text.push(other),
                None => break,
            },
            other => text.push(other),
        }
    }
    text
}

/// Each `outlast …` of a message, up to where the sentence about it begins or ends.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("outlast ") {
        let is_word =
            text[..at].chars().last().is_none_or(|c| !c.is_alphanumeric() && !"/_-.".contains(c));
        if !is_word {
            continue;
        }
        let rest = &text[at..];
        let ends = [
            "\n", "`", ";", "  ", " #", ", ", ": ", ". ", " (", ")", " | ", " && ", " > ", "\"",
            "…", " or ", " · ",
        ];
        let end = ends.iter().filter_map(|end| rest.find(end)).min().unwrap_or(rest.len());
        found.push(rest[..end].trim_end_matches(['.', ',', ':', '?']).to_owned());
    }
    found
}

/// With a word in the place of each placeholder: `{id}` and `N` are `1`, which is a name, a number and a time.
fn filled(command: &str, word: &str) -> String {
    let mut text = String::new();
    let mut depth = 0;
    for c in command.chars() {
        match c {
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                text.push_str(word);
            }
            c if depth == 0 => text.push(c),
            _ => {}
        }
    }
    text.replace(" N", " 1")
}

/// True if the words up to some place are a good command line, and no option stands behind that place.
fn is_known(words: &[OsString]) -> bool {
    let is_option = |word: &OsString| word.to_string_lossy().starts_with('-');
    let least = words.iter().rposition(is_option).map_or(2, |last| last + 1).min(words.len());
    // An option may be named without its value.
    let valued = [words, &["1".into()]].concat();
    let beginnings = (least..=words.len()).map(|end| words[..end].to_vec());
    beginnings.chain([valued]).any(|words| match read(&aliases::expand(words)) {
        Ok(_) => true,
        // A verb may be named without what it needs, and its help may be pointed to.
        Err(error) => matches!(
            error.kind(),
            ErrorKind::DisplayHelp
                | ErrorKind::DisplayVersion
                | ErrorKind::MissingRequiredArgument
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        ),
    })
}

#[test]
fn every_command_in_a_message_is_one_that_the_program_knows() {
    let mut sources = Vec::new();
    files(&repository().join("crates"), ".rs", &mut sources);
    // What `suggest` says is tested there: it also names verbs that are still to come.
    sources.retain(|path| {
        let path = path.to_string_lossy();
        path.contains("/src/")
            && !path.ends_with("tests.rs")
            && !path.ends_with("suggest.rs")
            && !path.contains("/tests/")
    });
    let (mut wrong, mut count) = (Vec::new(), 0);
    for path in sources {
        let source = std::fs::read_to_string(&path).expect("a source is text");
        // A line of usage is no command.
        let texts = literals(&source).into_iter().filter(|text| !text.contains("[OPTIONS]"));
        for command in texts.flat_map(|text| commands(&text)) {
            // A placeholder may stand for nothing, too.
            let [with, without] = ["1", ""].map(|word| commands_in(&filled(&command, word)));
            let Some(words) = with.into_iter().next() else { continue };
            let verb = words.get(1).map(|verb| verb.to_string_lossy().into_owned());
            let Some(verb) = verb.filter(|verb| verb != "1" && !PROSE.contains(&verb.as_str()))
            else {
                continue;
            };
            count += 1;
            if !is_known(&words) && !without.first().is_some_and(|words| is_known(words)) {
                wrong.push(format!("{}: {command} ({verb})", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "no such command:\n{}", wrong.join("\n"));
    assert!(count > 100, "only {count} were found");
}

/// Places where a command stands in prose that is no hint: the help, the API's description, what is written into files.
const NOT_TOLD: &[&str] =
    &["/args/", "/openapi/", "/service/", "/doctor/bundle/", "/keys/", "/init/file.rs"];

/// A hint that ended with `# words` gave zsh words, and one in backquotes was run by a paste and its output was run, too.
#[test]
fn a_command_that_is_told_stands_alone_so_that_any_shell_takes_it() {
    let mut sources = Vec::new();
    for part in ["client", "daemon", "outlast", "workflow"] {
        files(&repository().join("crates").join(part).join("src"), ".rs", &mut sources);
    }
    let mut wrong = Vec::new();
    for path in sources {
        let name = path.to_string_lossy();
        if name.ends_with("tests.rs") || NOT_TOLD.iter().any(|place| name.contains(place)) {
            continue;
        }
        let source = std::fs::read_to_string(&path).expect("a source is text");
        for text in literals(&source) {
            let lines = text.lines().filter(|line| line.contains("outlast "));
            let is_wrong = |line: &&str| line.contains("`outlast ") || line.contains("  # ");
            wrong.extend(lines.filter(is_wrong).map(|line| format!("{name}: {line}")));
        }
    }
    assert!(wrong.is_empty(), "not to be pasted:\n{}", wrong.join("\n"));
}

#[test]
fn every_command_in_the_docs_is_one_that_the_program_knows() {
    let mut pages = vec![repository().join("README.md")];
    files(&repository().join("docs"), ".md", &mut pages);
    files(&repository().join("examples"), ".md", &mut pages);
    // What was decided once stays as it was written.
    pages.retain(|path| !path.to_string_lossy().contains("/decisions/"));
    let (mut wrong, mut count) = (Vec::new(), 0);
    for path in pages {
        let text = std::fs::read_to_string(&path).expect("a page is text");
        let mut is_code = false;
        for line in text.replace("\\\n", " ").lines() {
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
                continue;
            }
            let line = line.trim_start().trim_start_matches("$ ");
            let is_screen = line.starts_with("outlast  ");
            if !is_code || is_screen || !line.starts_with("outlast ") {
                continue;
            }
            for words in commands_in(line.split(" # ").next().unwrap_or_default()) {
                count += 1;
                if !is_known(&words) {
                    wrong.push(format!("{}: {line}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "no such command:\n{}", wrong.join("\n"));
    assert!(count > 20, "only {count} were found");
}
