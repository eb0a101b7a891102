//! Everything that is printed goes through here; nothing here decides what to say.

pub(crate) mod bytes;
pub(crate) mod colour;
pub(crate) mod errors;
pub(crate) mod figures;
pub(crate) mod outcome;
pub(crate) mod state;
pub(crate) mod table;
pub(crate) mod time;

use serde::Serialize;

use crate::problem::Problem;
use bytes::Target;

/// Prints to standard output.
pub(crate) fn print(text: &str) -> Result<(), Problem> {
    bytes::write_all(Target::Stdout, text.as_bytes()).map_err(|error| Problem::unwritable(&error))
}

pub(crate) fn print_line(text: &str) -> Result<(), Problem> {
    print(&format!("{text}\n"))
}

pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Problem> {
    let json = serde_json::to_string(value).expect("what we print is plain data");
    print_line(&json)
}

/// Says something on standard error. When even that is gone there is nobody left to tell.
pub(crate) fn tell(text: &str) {
    drop(bytes::write_all(Target::Stderr, format!("{text}\n").as_bytes()));
}

/// Text from elsewhere, on one line and without anything that a terminal would obey.
pub(crate) fn printable(text: &str) -> String {
    if !text.contains(char::is_control) {
        return text.to_owned();
    }
    text.chars().map(|c| if c.is_control() { '·' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_not_printed() {
        assert_eq!(printable("a\x1b[2Jb\nc\u{9b}d — ok"), "a·[2Jb·c·d — ok");
    }
}
