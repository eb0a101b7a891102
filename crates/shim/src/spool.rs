//! `output.log`: the attempt's output, byte for byte in arrival order, bounded on disk.
//!
//! Keeps the first `head_bytes` and at least the last `tail_bytes`; what is between is punched out of
//! the file, so that every byte keeps its offset. A filesystem that cannot punch holes keeps the first
//! `head_bytes + tail_bytes` instead and counts the rest: less useful, still bounded, and the
//! header says exactly what is missing.
//!
//! Loses nothing when a write fails: the bytes at hand are held, and the caller reads no more until
//! [`Spool::retry`] has put them down.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use outlast_home::layout::AttemptDir;
use outlast_wire::output::Stream;
use outlast_wire::shim::Spool as Keep;

use crate::sparse_file::{BLOCK, create, punch};
use crate::spool_index::Index;

/// How much more than the tail is let to gather before a hole is made for it.
const SLACK: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Spool {
    log: File,
    index: Index,
    keep: Keep,
    bound: Bound,
    /// Bytes of output so far, gap included.
    total: u64,
    unwritten: Option<Unwritten>,
}

/// How the log is kept from growing.
#[derive(Debug)]
enum Bound {
    /// The log is a file with a hole: declared to `gap_to`, punched to `punched_to`.
    Punch { gap_to: u64, punched_to: u64 },
    /// No holes here: bytes beyond head and tail are counted, not kept.
    Count { declared_to: u64 },
}

/// Bytes that were read from the child and are not in the log yet.
#[derive(Debug)]
struct Unwritten {
    stream: Stream,
    bytes: Vec<u8>,
    at_ms: u64,
}

impl Spool {
    pub(crate) fn create(dir: &AttemptDir, keep: Keep) -> io::Result<Self> {
        let log = create(&dir.output())?;
        let index = Index::at(dir.index());
        let bound = match punch(&log, 0, BLOCK) {
            Ok(()) => Bound::Punch { gap_to: 0, punched_to: 0 },
            Err(_) => Bound::Count { declared_to: 0 },
        };
        Ok(Self { log, index, keep, bound, total: 0, unwritten: None })
    }

    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// Puts bytes in the log. After an error, what is left of them is held: call [`Spool::retry`] before
    /// the next append.
    pub(crate) fn append(&mut self, stream: Stream, bytes: &[u8], at_ms: u64) -> io::Result<()> {
        assert!(self.unwritten.is_none(), "nothing is read while bytes are held");
        let mut rest = bytes;
        while !rest.is_empty() {
            match self.index.make().and_then(|()| self.write_some(stream, rest, at_ms)) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.unwritten = Some(Unwritten { stream, bytes: rest.to_vec(), at_ms });
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Once a round: writes the index and makes room.
    pub(crate) fn settle(&mut self) -> io::Result<()> {
        self.index.make()?;
        self.index.flush()?;
        match self.bound {
            Bound::Punch { gap_to, punched_to } => self.make_hole(gap_to, punched_to),
            Bound::Count { declared_to } => self.declare_uncounted(declared_to),
        }
    }

    /// Tries again what failed.
    pub(crate) fn retry(&mut self) -> io::Result<()> {
        if let Some(unwritten) = self.unwritten.take() {
            self.append(unwritten.stream, &unwritten.bytes, unwritten.at_ms)?;
        }
        self.settle()
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.log.sync_data()
    }

    fn write_some(&mut self, stream: Stream, bytes: &[u8], at_ms: u64) -> io::Result<usize> {
        let room = match self.bound {
            Bound::Punch { .. } => u64::MAX,
            Bound::Count { .. } => {
                (self.keep.head_bytes + self.keep.tail_bytes).saturating_sub(self.total)
            }
        };
        if room == 0 {
            self.total += bytes.len() as u64;
            return Ok(bytes.len());
        }
        let fits = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        let count = self.log.write_at(&bytes[..fits], self.total)?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        self.index.add(
            self.total,
            u32::try_from(count).expect("a read fits in a chunk"),
            stream,
            at_ms,
        );
        self.total += count as u64;
        Ok(count)
    }

    fn make_hole(&mut self, gap_to: u64, punched_to: u64) -> io::Result<()> {
        let Keep { head_bytes, tail_bytes } = self.keep;
        let kept_from = gap_to.max(head_bytes);
        let gap_to = if self.total.saturating_sub(kept_from) > tail_bytes + slack(tail_bytes) {
            let to = (self.total - tail_bytes) / BLOCK * BLOCK;
            self.index.declare_gap(head_bytes, to)?;
            self.bound = Bound::Punch { gap_to: to, punched_to };
            to
        } else {
            gap_to
        };
        if punched_to < gap_to {
            punch(&self.log, punched_to.max(head_bytes), gap_to)?;
            self.index.punch_gap()?;
            self.bound = Bound::Punch { gap_to, punched_to: gap_to };
        }
        Ok(())
    }

    fn declare_uncounted(&mut self, declared_to: u64) -> io::Result<()> {
        let kept = self.keep.head_bytes + self.keep.tail_bytes;
        if self.total > kept.max(declared_to) {
            self.index.declare_gap(kept, self.total)?;
            self.bound = Bound::Count { declared_to: self.total };
        }
        Ok(())
    }
}

/// A sixteenth of the tail, so that holes are made seldom; a block for the small spools of tests.
fn slack(tail_bytes: u64) -> u64 {
    if tail_bytes < SLACK { BLOCK } else { SLACK.max(tail_bytes / 16 / BLOCK * BLOCK) }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use outlast_wire::output::{CHUNK_BYTES, Chunk, HEADER_BYTES, Header};

    use super::*;

    fn bytes(from: u64, to: u64) -> Vec<u8> {
        (from..to).map(|at| u8::try_from(at * 7 % 251).expect("below 251")).collect()
    }

    fn written(
        keep: Keep,
        total: u64,
        step: u64,
        bound: Option<Bound>,
    ) -> (tempfile::TempDir, AttemptDir) {
        let temp = tempfile::tempdir().expect("a directory");
        let dir = AttemptDir(temp.path().to_owned());
        let mut spool = Spool::create(&dir, keep).expect("creates");
        if let Some(bound) = bound {
            spool.bound = bound;
        }
        for from in (0..total).step_by(usize::try_from(step).expect("small")) {
            let to = total.min(from + step);
            spool.append(Stream::Stdout, &bytes(from, to), from).expect("appends");
            spool.settle().expect("settles");
        }
        (temp, dir)
    }

    fn header(dir: &AttemptDir) -> (Header, Vec<u8>) {
        let index = std::fs::read(dir.index()).expect("reads");
        let first = index.first_chunk::<HEADER_BYTES>().expect("a header");
        (Header::decode(first).expect("whole"), index)
    }

    #[test]
    fn the_middle_goes_and_the_header_says_exactly_what() {
        let keep = Keep { head_bytes: 10_000, tail_bytes: 20_000 };
        let (_temp, dir) = written(keep, 300_000, 1_000, None);
        let (header, index) = header(&dir);
        assert_eq!(header.gap_from, 10_000);
        assert!(header.gap_to <= 280_000 && header.gap_to > 280_000 - 3 * BLOCK, "{header:?}");
        let log = std::fs::read(dir.output()).expect("reads");
        assert_eq!(log.len(), 300_000);
        assert!(log[..10_000] == bytes(0, 10_000));
        let kept = usize::try_from(header.gap_to).expect("small");
        assert!(log[kept..] == bytes(header.gap_to, 300_000));
        assert!(std::fs::metadata(dir.output()).expect("there").blocks() * 512 < 60_000);

        // Each chunk that is not dropped is there, and they cover everything outside the gap.
        let (chunks, _) = index[HEADER_BYTES..].as_chunks::<CHUNK_BYTES>();
        let kept: Vec<Chunk> = (0..)
            .zip(chunks)
            .filter(|(number, _)| !(header.chunk_gap_from..header.chunk_gap_to).contains(number))
            .map(|(_, bytes)| Chunk::decode(bytes).expect("whole"))
            .collect();
        let missing: u64 = kept.windows(2).map(|two| two[1].offset - two[0].end()).sum();
        assert!(missing > 0 && missing <= header.gap_to - header.gap_from);
        assert_eq!(kept.last().expect("some").end(), 300_000);
    }

    #[test]
    fn output_goes_on_when_its_directory_goes_before_its_index_is_made() {
        let temp = tempfile::tempdir().expect("a directory");
        let dir = AttemptDir(temp.path().join("t1.a1"));
        std::fs::create_dir(&dir.0).expect("it is ours");
        let mut spool =
            Spool::create(&dir, Keep { head_bytes: 1_000, tail_bytes: 500 }).expect("creates");
        std::fs::remove_dir_all(&dir.0).expect("it is ours");
        for _ in 0..20 {
            spool.append(Stream::Stdout, &bytes(0, 1_000), 0).expect("appends");
            spool.settle().expect("settles");
        }
        assert_eq!(spool.total(), 20_000);
    }

    #[test]
    fn without_holes_the_rest_is_counted() {
        let keep = Keep { head_bytes: 1_000, tail_bytes: 500 };
        let (_temp, dir) = written(keep, 9_000, 700, Some(Bound::Count { declared_to: 0 }));
        let (header, _) = header(&dir);
        assert_eq!((header.gap_from, header.gap_to), (1_500, 9_000));
        assert!(std::fs::read(dir.output()).expect("reads") == bytes(0, 1_500));
    }
}
