//! Looking for what the watches of a run want, in the output of one attempt, from where they have told to.
//!
//! Holds what was found until the journal has it. Nothing here is lost with the daemon: the next one looks
//! again from the last line that was told.

use std::io;

use outlast_engine::{Matched, Run};
use outlast_home::layout::AttemptDir;
use outlast_wire::output::Stream;
use regex::bytes::{Regex, RegexBuilder};

use super::lines::{self, Lines};
use crate::output::{Piece, Reader};

/// The largest a compiled pattern may be, and what it may remember while it looks; in bytes.
const LARGEST_PATTERN: usize = 1 << 20;

/// So far before the last line that was told it is read again: the other stream may have had a line begun there.
const REACH: u64 = 64 << 10;

/// So many pieces are read before what was found is told.
const PIECES_AT_ONCE: usize = 64;

/// A pattern, or what is wrong with it.
pub(crate) fn pattern(text: &str) -> Result<Regex, String> {
    let made =
        RegexBuilder::new(text).size_limit(LARGEST_PATTERN).dfa_size_limit(LARGEST_PATTERN).build();
    made.map_err(|error| match error {
        regex::Error::CompiledTooBig(most) => format!("it takes more than {most} bytes"),
        other => {
            let text = other.to_string();
            let last = text.lines().next_back().unwrap_or_default().trim();
            last.strip_prefix("error: ").unwrap_or(last).to_owned()
        }
    })
}

pub(super) struct Scan {
    dir: AttemptDir,
    watches: Vec<Watching>,
    /// The next byte to look at.
    offset: u64,
    /// Of standard output and of standard error; a terminal has only one.
    lines: [Lines; 2],
}

/// One watch, which looks.
struct Watching {
    pattern: Regex,
    /// Everything up to here has been told.
    told: u64,
    unsent: Matched,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    All,
    /// There is more at once.
    Some,
}

impl Scan {
    /// `None` if no watch looks.
    pub(super) fn new(run: &Run, dir: AttemptDir) -> Option<Self> {
        let looking = run.watches.iter().zip(&run.spec.watches).zip(0..);
        let watches = looking.filter(|((watch, _), _)| !watch.is_disabled);
        let watches: Vec<Watching> = watches
            .filter_map(|((watch, text), number)| match pattern(text) {
                Ok(pattern) => {
                    Some(Watching { pattern, told: watch.offset(), unsent: Matched::new(number) })
                }
                Err(why) => {
                    tracing::error!(run = %run.id, watch = %text, %why, "cannot look for this");
                    None
                }
            })
            .collect();
        let told = watches.iter().map(|watching| watching.told).min()?;
        Some(Self { dir, watches, offset: told.saturating_sub(REACH), lines: Default::default() })
    }

    /// Looks through what has been written since the last look, or a good part of it. Blocks.
    pub(super) fn read(&mut self) -> io::Result<Read> {
        // Opened anew each time: a thousand runs that are watched in silence hold no files open.
        let Some(mut reader) = Reader::open(&self.dir)? else { return Ok(Read::All) };
        reader.seek(self.offset)?;
        for _ in 0..PIECES_AT_ONCE {
            let piece = reader.next()?;
            self.offset = reader.offset();
            match piece {
                Piece::End => return Ok(Read::All),
                // What stands before a gap and what stands after it are not one line.
                Piece::Gap { .. } => self.finish(),
                Piece::Data { offset, stream, bytes, .. } => {
                    let (lines, mut see) = self.parts(stream);
                    lines.feed(&bytes, offset, &mut see);
                }
            }
        }
        Ok(Read::Some)
    }

    /// The output is over: what has been begun is a line too.
    pub(super) fn finish(&mut self) {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let (lines, mut see) = self.parts(stream);
            lines.finish(&mut see);
        }
    }

    /// What has been found and not told.
    pub(super) fn unsent(&self) -> impl Iterator<Item = &Matched> {
        self.watches.iter().map(|watching| &watching.unsent).filter(|unsent| !unsent.is_empty())
    }

    /// Lets go of what the journal has, and of watches that look no more.
    pub(super) fn forget_told(&mut self, run: &Run) {
        let known = |unsent: &Matched| run.watches.get(usize::try_from(unsent.watch).ok()?);
        self.watches.retain(|watching| known(&watching.unsent).is_some_and(|it| !it.is_disabled));
        for watching in &mut self.watches {
            let told = known(&watching.unsent).map_or(0, outlast_engine::Watch::offset);
            watching.told = watching.told.max(told);
            if watching.unsent.offset() <= told {
                watching.unsent = Matched::new(watching.unsent.watch);
            }
        }
    }

    pub(super) fn is_looking(&self) -> bool {
        !self.watches.is_empty()
    }

    fn parts(&mut self, stream: Stream) -> (&mut Lines, impl FnMut(&[u8], u64)) {
        let [first, second] = &mut self.lines;
        let lines = match stream {
            Stream::Stdout | Stream::Tty => first,
            Stream::Stderr => second,
        };
        let watches = &mut self.watches;
        let see = move |line: &[u8], end: u64| {
            let line = lines::plain(line);
            for watching in watches.iter_mut() {
                if end > watching.told && watching.pattern.is_match(&line) {
                    watching.unsent.add(&String::from_utf8_lossy(&line), end);
                }
            }
        };
        (lines, see)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_that_is_none_says_why_in_one_line() {
        assert_eq!(pattern("(a").map(drop), Err("unclosed group".to_owned()));
        let big = pattern("(?:\\w{1000}){100}").map(drop).expect_err("too big");
        assert!(big.starts_with("it takes more than"), "{big}");
        assert!(pattern("^error: .*größer").is_ok());
    }
}
