//! Everything that is printed goes through here; nothing here decides what to say.

pub(crate) mod agent;
pub(crate) mod bytes;
pub(crate) mod colour;
pub(crate) mod errors;
pub(crate) mod figures;
pub(crate) mod lines;
pub(crate) mod outcome;
pub(crate) mod page;
pub(crate) mod pots;
pub(crate) mod rest;
#[cfg(test)]
pub(crate) mod sample;
pub(crate) mod state;
pub(crate) mod table;
pub(crate) mod time;
pub(crate) mod waiting;

use outlast_client::problem::Problem;
use outlast_wire::api::RunView;
use outlast_wire::plain::{visible, without_sequences};
use serde::Serialize;

use bytes::Target;
use page::quoted;

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

/// Prints a sentence to standard output, within the width of a terminal.
pub(crate) fn say(text: &str) -> Result<(), Problem> {
    print_line(&lines::fitting(text, bytes::columns(Target::Stdout)))
}

/// Says something on standard error, within the width of a terminal. When even that is gone no reader is left to tell.
pub(crate) fn tell(text: &str) {
    tell_exactly(&lines::fitting(text, bytes::columns(Target::Stderr)));
}

/// The same for a line that a program reads, or that has colours.
pub(crate) fn tell_exactly(text: &str) {
    drop(bytes::write_all(Target::Stderr, format!("{text}\n").as_bytes()));
}

/// Tells a hint: a command to paste, or what it is for and then the command.
pub(crate) fn tell_hint(text: &str) {
    tell(&lines::hint(text));
}

/// Text from elsewhere, on one line and without anything that a terminal would obey or a reader would not see.
pub(crate) fn printable(text: &str) -> String {
    visible(text, |_| Some('·'))
}

/// What a run is called in messages and commands: its name if that name means this run, else its id; quoted where a
/// shell wants it. The daemon says which; an older one only has the name.
pub(crate) fn called(view: &RunView) -> String {
    quoted(handle(view))
}

/// The same, as it is.
pub(crate) fn handle(view: &RunView) -> &str {
    view.called.as_deref().or(view.name.as_deref()).unwrap_or(&view.id)
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
    fn what_a_reader_would_not_see_is_shown() {
        assert_eq!(printable("de\u{200b}ploy\u{2060}ed\u{feff}\u{ad}"), "de·ploy·ed··");
        assert_eq!(printable("a\u{200d}b \u{202e}c"), "a·b ·c");
        let joined = "👩\u{200d}🔧 می\u{200c}خواهم";
        assert_eq!(printable(joined), joined, "a joiner between letters that need it");
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
