//! The end of a step's output, as text for people and for the next turn.

use std::io::{Read, Seek, SeekFrom};

use outlast_home::layout::AttemptDir;
use outlast_wire::plain::{plain_text, visible, without_sequences};

use crate::world::files;
use crate::world::host;

/// At most the last `most` bytes of the output, from the start of a line where there is one, with what is not
/// text replaced. Empty if nothing was written, or it cannot be read: the files say why.
pub(crate) fn of_output(dir: &AttemptDir, most: usize) -> String {
    read(dir, most).map(|(bytes, is_cut)| text(&bytes, is_cut)).unwrap_or_default()
}

/// The same of a step that has ended, whose output is part of what it did: fails for what the host lacks.
pub(crate) fn of_ended(dir: &AttemptDir, most: usize) -> std::io::Result<String> {
    match last_bytes(&dir.output(), most) {
        Err(error) if host::failure(&error).is_some() => Err(error),
        Ok((bytes, is_cut)) => Ok(text(&bytes, is_cut)),
        Err(_) => Ok(of_output(dir, most)),
    }
}

/// The end of the output, and whether there is more before it.
fn read(dir: &AttemptDir, most: usize) -> Option<(Vec<u8>, bool)> {
    match last_bytes(&dir.output(), most) {
        Ok(read) => Some(read),
        Err(error) => {
            if error.kind() != std::io::ErrorKind::NotFound {
                tracing::warn!(path = %dir.output().display(), %error, "cannot read output");
            }
            None
        }
    }
}

fn last_bytes(path: &std::path::Path, most: usize) -> std::io::Result<(Vec<u8>, bool)> {
    let mut file = files::open_regular(path)?;
    let length = file.seek(SeekFrom::End(0))?;
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    let from = length.saturating_sub(most);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok((bytes, from > 0))
}

fn text(bytes: &[u8], is_cut: bool) -> String {
    plain_text(from_a_line(bytes, is_cut))
}

/// Without the rest of a line whose beginning was cut off, if a line follows.
fn from_a_line(bytes: &[u8], is_cut: bool) -> &[u8] {
    let end = bytes.iter().position(|byte| *byte == b'\n').filter(|_| is_cut);
    end.map_or(bytes, |at| &bytes[at + 1..])
}

/// The last line that says anything, cut to what a list shows.
pub(crate) fn last_line(dir: &AttemptDir) -> Option<String> {
    let (bytes, is_cut) = read(dir, 2048)?;
    last_of(&without_sequences(from_a_line(&bytes, is_cut)))
}

/// What a carriage return has overwritten is not there any more.
fn last_of(text: &str) -> Option<String> {
    let line = text
        .lines()
        .rev()
        .find_map(|line| line.rsplit('\r').map(str::trim).find(|part| !part.is_empty()))?;
    Some(visible(line, |_| None).chars().take(200).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_begins_with_a_line_and_holds_text_only() {
        assert_eq!(text(b"cut off\nsecond\x1b[31m\nthird\xff", true), "second\nthird\u{fffd}");
        assert_eq!(text(b"whole", false), "whole");
    }

    #[test]
    fn hyperlinks_and_device_control_strings_leave_nothing_behind() {
        let bytes = b"\x1b]8;;https://example.org\x1b\\ link\x1b]8;;\x1b\\ done\x1bPq#0~~\x1b\\\n";
        assert_eq!(text(bytes, false), " link done\n");
        assert_eq!(last_of(&without_sequences(bytes)).as_deref(), Some("link done"));
    }

    #[test]
    fn the_last_line_is_what_a_terminal_would_show_of_it() {
        let last = |bytes: &[u8]| last_of(&without_sequences(bytes));
        let told = |text: &str| Some(text.to_owned());
        assert_eq!(last(b"one\n\x1b[1;32m   Compiling\x1b[0m it\n\n"), told("Compiling it"));
        assert_eq!(last(b"10%\r50%\r100%\r\n"), told("100%"));
        assert_eq!(last(b"\x1b]0;a title\x07here\x08"), told("here"));
        assert_eq!(last(b"\n \x1b[K\n"), None);
    }
}
