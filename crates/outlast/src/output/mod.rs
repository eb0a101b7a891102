//! Everything that is printed goes through here; nothing here decides what to say.

pub(crate) mod agent;
pub(crate) mod bytes;
pub(crate) mod colour;
pub(crate) mod errors;
pub(crate) mod figures;
pub(crate) mod outcome;
pub(crate) mod page;
pub(crate) mod rest;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) mod state;
pub(crate) mod table;
pub(crate) mod time;

use outlast_client::problem::Problem;
use outlast_wire::plain::without_sequences;
use serde::Serialize;

use bytes::Target;

/// Prints to standard output.
pub(crate) fn print(text: &str) -> Result<(), Problem> {
    bytes::write_all(Target::Stdout, text.as_bytes()).map_err(|error| bytes::unwritable(&error))
}

pub(crate) fn print_line(text: &str) -> Result<(), Problem> {
    print(&format!("{text}\n"))
}

pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Problem> {
    let json = serde_json::to_string(value).expect("what we print is plain data");
    print_line(&json)
}

/// Says something on standard error. When even that is gone no reader is left to tell.
pub(crate) fn tell(text: &str) {
    drop(bytes::write_all(Target::Stderr, format!("{text}\n").as_bytes()));
}

/// Text from elsewhere, on one line and without anything that a terminal would obey.
pub(crate) fn printable(text: &str) -> String {
    if !text.contains(is_obeyed) {
        return text.to_owned();
    }
    text.chars().map(|c| if is_obeyed(c) { '·' } else { c }).collect()
}

/// Control characters, and signs that change the order in which others are shown.
fn is_obeyed(char: char) -> bool {
    char.is_control() || matches!(char, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Text of several lines on one, in the same way.
pub(crate) fn one_line(text: &str) -> String {
    printable(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// The last line in there that says something, without what a terminal would obey.
pub(crate) fn last_line(bytes: &[u8]) -> Option<String> {
    let tail = &bytes[bytes.len().saturating_sub(LONGEST_LINE)..];
    let text = without_sequences(tail);
    let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(printable(line))
}

/// In bytes; no terminal is wider.
const LONGEST_LINE: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_not_printed() {
        assert_eq!(printable("a\x1b[2Jb\nc\u{9b}d — ok"), "a·[2Jb·c·d — ok");
    }

    #[test]
    fn the_last_line_is_what_was_said_last() {
        assert_eq!(last_line(b"one\ntwo\n\n  \n"), Some("two".to_owned()));
        assert_eq!(last_line(b"\x1b[32mok\x1b[0m\r\n\x1b[K"), Some("ok".to_owned()));
        assert_eq!(
            last_line(b"\x1b]8;;u\x1b\\a link\x1b]8;;\x1b\\\x1bPq~\x1b\\"),
            Some("a link".to_owned())
        );
        assert_eq!(last_line(b"\n"), None);
    }
}
