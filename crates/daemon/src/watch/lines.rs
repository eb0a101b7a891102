//! Lines out of bytes: whole ones, however the bytes were cut on their way, without what a terminal obeys.

use std::borrow::Cow;

use outlast_wire::plain::plain_text;

/// A line is judged by so many bytes of it; the rest is passed over.
pub(super) const LONGEST_LINE: usize = 8 << 10;

/// The line of one stream that has not ended yet.
#[derive(Debug, Default)]
pub(super) struct Lines {
    begun: Vec<u8>,
    /// Where what has been seen of it ends.
    end: u64,
}

impl Lines {
    /// Shows `see` each line that ends in these bytes, and where in the output it ends. A carriage return ends
    /// one too, as progress bars have them; empty lines are not shown.
    pub(super) fn feed(&mut self, bytes: &[u8], offset: u64, see: &mut dyn FnMut(&[u8], u64)) {
        let mut at = offset;
        for part in bytes.split_inclusive(|byte| matches!(byte, b'\n' | b'\r')) {
            at += part.len() as u64;
            self.end = at;
            match part {
                [rest @ .., b'\n' | b'\r'] => {
                    self.take(rest);
                    self.finish(see);
                }
                rest => self.take(rest),
            }
        }
    }

    /// There is no more of this line.
    pub(super) fn finish(&mut self, see: &mut dyn FnMut(&[u8], u64)) {
        if !self.begun.is_empty() {
            see(&self.begun, self.end);
            self.begun.clear();
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        let room = LONGEST_LINE.saturating_sub(self.begun.len());
        self.begun.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// The line without terminal sequences and control characters; a tab stays. A line that has neither stays as it is,
/// with its bytes that are not UTF-8.
pub(super) fn plain(line: &[u8]) -> Cow<'_, [u8]> {
    let is_control = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
    if !line.iter().any(is_control) {
        return line.into();
    }
    plain_text(line).into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(chunks: &[&[u8]]) -> Vec<(String, u64)> {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        let mut offset = 0;
        let mut see = |line: &[u8], end: u64| {
            seen.push((String::from_utf8_lossy(&plain(line)).into_owned(), end));
        };
        for chunk in chunks {
            lines.feed(chunk, offset, &mut see);
            offset += chunk.len() as u64;
        }
        lines.finish(&mut see);
        seen
    }

    fn text(line: &[u8]) -> String {
        String::from_utf8_lossy(&plain(line)).into_owned()
    }

    #[test]
    fn a_line_is_the_same_however_it_was_cut() {
        let whole = "größer\nzweite 🦀 Zeile\r\nlast".as_bytes();
        let expected = seen(&[whole]);
        assert_eq!(
            expected,
            [("größer".to_owned(), 9), ("zweite 🦀 Zeile".to_owned(), 27), ("last".to_owned(), 32)]
        );
        for at in 0..whole.len() {
            assert_eq!(seen(&[&whole[..at], &whole[at..]]), expected, "cut at {at}");
        }
        let bytes: Vec<&[u8]> = whole.chunks(1).collect();
        assert_eq!(seen(&bytes), expected);
    }

    #[test]
    fn a_line_without_end_takes_no_more_room_than_a_line_has() {
        let chunk = vec![b'x'; 3000];
        let mut chunks: Vec<&[u8]> = vec![&chunk; 20];
        chunks.push(b"\nshort\n");
        let lines = seen(&chunks);
        assert_eq!((lines[0].0.len(), lines[0].1), (LONGEST_LINE, 60_001));
        assert_eq!(lines[1], ("short".to_owned(), 60_007));
    }

    #[test]
    fn what_a_terminal_obeys_is_not_part_of_a_line() {
        assert_eq!(text(b"\x1b[1;31merror\x1b[0m: \x1b[38;5;9mno\x1b[K"), "error: no");
        assert_eq!(text(b"\x1b]0;a title\x07err\x1b]8;;http://x\x1b\\or\x1b(B\x1b="), "error");
        assert_eq!(text(b"a\tb\x08\x00c"), "a\tbc");
        // Cut off, or none at all.
        assert_eq!(text(b"end\x1b"), "end");
        assert_eq!(text(b"end\x1b[31"), "end");
        assert_eq!(text("größe".as_bytes()), "größe");
    }
}
