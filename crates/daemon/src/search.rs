//! Finds a text in the output of attempts, within a bound of bytes.
//!
//! Byte by byte as it was printed: a text that was printed with a colour in its middle is not found.

use std::io;

use outlast_home::layout::RunDir;
use outlast_wire::api::{OutputFound, OutputMatch, OutputPlace};

use crate::output::{Piece, Reader};

/// The longest text that is looked for, in bytes.
pub(crate) const LONGEST: usize = 256;

/// Bytes that one search looks through, and places that it tells.
const MOST_BYTES: u64 = 64 << 20;
const MOST_MATCHES: usize = 100;

/// Bytes of a line before and after what was found in it.
const AROUND: usize = 120;

/// The places of `wanted` from a byte on, in attempts that are in order. Blocks.
pub(crate) fn search(
    dir: &RunDir,
    attempts: &[(u32, u32)],
    from: OutputPlace,
    wanted: &[u8],
) -> io::Result<OutputFound> {
    let mut found = OutputFound::default();
    for &(turn, attempt) in attempts.iter().filter(|it| **it >= (from.turn, from.attempt)) {
        let Some(mut reader) = Reader::open(&dir.attempt(turn, attempt))? else { continue };
        let is_first = (turn, attempt) == (from.turn, from.attempt);
        let begin = if is_first { from.offset } else { 0 };
        reader.seek(begin)?;
        let mut window = Window { begin, bytes: Vec::new(), wanted };
        loop {
            let place = OutputPlace { turn, attempt, offset: window.begin };
            if found.searched >= MOST_BYTES || found.matches.len() >= MOST_MATCHES {
                found.next = Some(place);
                return Ok(found);
            }
            match reader.next()? {
                Piece::End => break,
                Piece::Gap { to, .. } => window.skip(to),
                Piece::Data { offset, bytes, .. } => {
                    found.searched += bytes.len() as u64;
                    window.add(offset, &bytes);
                    let room = MOST_MATCHES - found.matches.len();
                    found.matches.extend(window.take(room).into_iter().map(|(offset, line)| {
                        OutputMatch { place: OutputPlace { offset, ..place }, line }
                    }));
                }
            }
        }
    }
    Ok(found)
}

/// Bytes that hang together, and have not been looked through to their end.
struct Window<'a> {
    begin: u64,
    bytes: Vec<u8>,
    wanted: &'a [u8],
}

impl Window<'_> {
    fn skip(&mut self, to: u64) {
        (self.begin, self.bytes) = (to, Vec::new());
    }

    fn add(&mut self, offset: u64, bytes: &[u8]) {
        if self.begin + self.bytes.len() as u64 != offset {
            self.skip(offset);
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// At most so many places; what is left may hold the beginning of the next.
    fn take(&mut self, most: usize) -> Vec<(u64, String)> {
        let mut found = Vec::new();
        let mut at = 0;
        while found.len() < most
            && let Some(next) = position(&self.bytes[at..], self.wanted)
        {
            found.push((self.begin + (at + next) as u64, line(&self.bytes, at + next)));
            at += next + self.wanted.len();
        }
        let keep = if found.len() == most {
            at
        } else {
            at.max(self.bytes.len().saturating_sub(self.wanted.len() - 1))
        };
        self.bytes.drain(..keep);
        self.begin += keep as u64;
        found
    }
}

fn position(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let (first, rest) = wanted.split_first()?;
    let mut from = 0;
    loop {
        let at = from + bytes.get(from..)?.iter().position(|byte| byte == first)?;
        if bytes[at + 1..].starts_with(rest) {
            return Some(at);
        }
        from = at + 1;
    }
}

/// The line around a byte, without what is far from it.
fn line(bytes: &[u8], at: usize) -> String {
    let is_end = |byte: &u8| *byte == b'\n';
    let before = &bytes[at.saturating_sub(AROUND)..at];
    let begin = at - before.iter().rev().position(is_end).unwrap_or(before.len());
    let after = &bytes[at..bytes.len().min(at + AROUND)];
    let end = at + after.iter().position(is_end).unwrap_or(after.len());
    String::from_utf8_lossy(&bytes[begin..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_across_pieces_and_not_across_a_gap() {
        let mut window = Window { begin: 0, bytes: Vec::new(), wanted: b"needle" };
        window.add(0, b"hay\nsome nee");
        assert_eq!(window.take(9), []);
        window.add(12, b"dle here\nneed");
        // Of the line before it there is as much as may have begun the text.
        assert_eq!(window.take(9), [(9, "e needle here".to_owned())]);
        window.add(30, b"le");
        assert_eq!(window.take(9), []);
    }
}
