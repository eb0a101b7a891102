//! The end of what a step wrote, as text for people and for the next turn.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use outlast_wire::layout::AttemptDir;

/// At most the last `most` bytes of the output, from the start of a line where there is one, with what is not
/// text replaced. Empty if nothing was written, or it cannot be read: the files say why.
pub(crate) fn of_output(dir: &AttemptDir, most: usize) -> String {
    match last_bytes(&dir.output(), most) {
        Ok((bytes, is_cut)) => text(&bytes, is_cut),
        Err(error) => {
            if error.kind() != std::io::ErrorKind::NotFound {
                tracing::warn!(path = %dir.output().display(), %error, "cannot read output");
            }
            String::new()
        }
    }
}

fn last_bytes(path: &std::path::Path, most: usize) -> std::io::Result<(Vec<u8>, bool)> {
    let mut file = File::open(path)?;
    let length = file.seek(SeekFrom::End(0))?;
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    let from = length.saturating_sub(most);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    Ok((bytes, from > 0))
}

fn text(bytes: &[u8], is_cut: bool) -> String {
    let begin =
        bytes.iter().position(|byte| *byte == b'\n').filter(|_| is_cut).map_or(0, |at| at + 1);
    let text = String::from_utf8_lossy(&bytes[begin..]);
    text.chars().filter(|char| !char.is_control() || matches!(char, '\n' | '\t')).collect()
}

/// The last line that says anything, cut to what a list shows.
pub(crate) fn last_line(dir: &AttemptDir) -> Option<String> {
    let tail = of_output(dir, 2048);
    let line = tail.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(200).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_begins_with_a_line_and_holds_text_only() {
        assert_eq!(text(b"cut off\nsecond\x1b[31m\nthird\xff", true), "second[31m\nthird\u{fffd}");
        assert_eq!(text(b"whole", false), "whole");
    }
}
