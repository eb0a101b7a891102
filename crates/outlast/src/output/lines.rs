//! Sentences on a terminal: broken at blanks where they would be wider than the window.
//!
//! A command to paste is never broken, and neither is a word: a path or an address that is cut in two is of no use.

use unicode_width::UnicodeWidthStr;

use super::printable;

/// How far a sentence is set in below its first line.
const HANG: usize = 2;

/// Programs that hints tell a person to start.
const PROGRAMS: &[&str] = &[
    "outlast",
    "chmod",
    "curl",
    "echo",
    "export",
    "fuser",
    "git",
    "journalctl",
    "kill",
    "launchctl",
    "loginctl",
    "mkdir",
    "printf",
    "systemctl",
];

/// `hint: ` and what it says; a command stands alone on its line, so that it can be pasted as it is.
pub(crate) fn hint(text: &str) -> String {
    let lines: Vec<String> = text.trim_end().lines().map(printable).collect();
    format!("hint: {}", lines.join("\n  "))
}

/// True of a line that is a command to paste, with or without `hint:` before it.
pub(crate) fn is_command(line: &str) -> bool {
    let line = line.trim_start();
    let line = line.strip_prefix("hint: ").unwrap_or(line);
    let first = line.split(' ').next().unwrap_or_default();
    let is_set = first.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    });
    PROGRAMS.contains(&first) || is_set
}

/// The text with each line that is too wide as several; `None` for a reader that is no terminal.
pub(crate) fn fitting(text: &str, columns: Option<usize>) -> String {
    let Some(columns) = columns else { return text.to_owned() };
    let lines: Vec<String> = text.split('\n').map(|line| fitted(line, columns)).collect();
    lines.join("\n")
}

fn fitted(line: &str, columns: usize) -> String {
    if line.width() <= columns || is_command(line) {
        return line.to_owned();
    }
    let indent = line.len() - line.trim_start().len();
    let hang = " ".repeat(indent + HANG);
    let mut lines = vec![line[..indent].to_owned()];
    let mut used = indent;
    for (at, word) in line[indent..].split(' ').enumerate() {
        let wide = word.width();
        if at > 0 && used + 1 + wide > columns {
            lines.push(hang.clone());
            used = hang.len();
        } else if at > 0 {
            push(&mut lines, " ");
            used += 1;
        }
        push(&mut lines, word);
        used += wide;
    }
    lines.join("\n")
}

fn push(lines: &mut [String], text: &str) {
    lines.last_mut().expect("there is always one").push_str(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_a_hint_stands_alone_on_its_line() {
        assert_eq!(hint("outlast ps -a"), "hint: outlast ps -a");
        let told = hint("rebuild it, or remove it:\noutlast recover k3m\noutlast rm k3m");
        insta::assert_snapshot!(told, @r"
        hint: rebuild it, or remove it:
          outlast recover k3m
          outlast rm k3m
        ");
    }

    #[test]
    fn a_sentence_is_broken_at_blanks_and_a_command_never() {
        let text = "outlast: the config of this machine is not valid, so the settings of yesterday still hold\n\
            hint: outlast run -d --name a-long-name -f a/very/long/path/to/WORKFLOW.md\n\
            warning: /a/path/of/one/word/that/has/no/blank/at/all is long";
        insta::assert_snapshot!(fitting(text, Some(40)), @r"
        outlast: the config of this machine is
          not valid, so the settings of
          yesterday still hold
        hint: outlast run -d --name a-long-name -f a/very/long/path/to/WORKFLOW.md
        warning:
          /a/path/of/one/word/that/has/no/blank/at/all
          is long
        ");
        assert_eq!(fitting(text, None), text);
    }

    #[test]
    fn a_command_is_known_by_its_program() {
        for command in ["outlast ps", "hint: outlast ps", "  EDITOR=vi outlast config edit"] {
            assert!(is_command(command), "{command}");
        }
        for words in ["outlast: no run x", "hint: look at it", "=x", "", "hint: "] {
            assert!(!is_command(words), "{words}");
        }
    }
}
