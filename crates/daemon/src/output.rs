//! Reading an attempt's output back, while it is being written or after.
//!
//! The rule against a racing writer: read the bytes, then read the header again, and believe only what the
//! gap has not swallowed meanwhile. A reader holds nobody up; one that falls far behind is shown the gap.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use outlast_engine::Time;
use outlast_wire::layout::AttemptDir;
use outlast_wire::output::{CHUNK_BYTES, Chunk, HEADER_BYTES, Header, Stream};

/// How much one piece holds: little at first, so that it is there at once, and more when more is wanted.
const FIRST_PIECE: usize = 8 << 10;
const LARGEST_PIECE: usize = 256 << 10;

/// How often a header that is just being written is read again.
const HEADER_TRIES: usize = 1000;

/// What comes next in the output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Data {
        offset: u64,
        stream: Stream,
        at: Time,
        bytes: Vec<u8>,
    },
    Gap {
        from: u64,
        to: u64,
    },
    /// There is no more yet.
    End,
}

pub(crate) struct Reader {
    log: File,
    index: File,
    /// The next byte to read.
    offset: u64,
    /// A chunk that is not beyond it.
    chunk: u64,
    /// How much the next piece may hold.
    piece: usize,
}

impl Reader {
    /// `None` if there is no output, not even an empty one.
    pub(crate) fn open(dir: &AttemptDir) -> io::Result<Option<Self>> {
        let open = |path: std::path::PathBuf| match File::open(path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        };
        let (Some(log), Some(index)) = (open(dir.output())?, open(dir.index())?) else {
            return Ok(None);
        };
        Ok(Some(Self { log, index, offset: 0, chunk: 0, piece: FIRST_PIECE }))
    }

    /// The byte that comes next.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Goes to a byte. What is beyond the end is waited for.
    pub(crate) fn seek(&mut self, offset: u64) -> io::Result<()> {
        self.offset = offset;
        let last = self.chunks()?;
        self.chunk = self.first_where(0, last, |chunk| chunk.end() > offset)?;
        Ok(())
    }

    /// Goes to the first byte that arrived at `since` or later.
    pub(crate) fn seek_time(&mut self, since: Time) -> io::Result<()> {
        let last = self.chunks()?;
        self.chunk = self.first_where(0, last, |chunk| chunk.at_ms >= since.0)?;
        let header = self.header()?;
        if (header.chunk_gap_from..header.chunk_gap_to).contains(&self.chunk) {
            // It is gone, and where it began with it: not before the gap.
            self.offset = header.gap_from;
            return Ok(());
        }
        self.offset = match self.chunk_at(self.chunk)? {
            Some(chunk) => chunk.offset,
            None => self.log.metadata()?.len(),
        };
        Ok(())
    }

    /// Goes to the start of the last `lines` lines, of one stream or of all.
    pub(crate) fn seek_tail(&mut self, lines: u64, stream: Option<Stream>) -> io::Result<()> {
        let header = self.header()?;
        let mut number = self.chunks()?;
        let mut wanted = lines;
        let mut at_end = true;
        self.seek(self.log.metadata()?.len())?;
        while number > 0 && wanted > 0 {
            number -= 1;
            if (header.chunk_gap_from..header.chunk_gap_to).contains(&number) {
                number = header.chunk_gap_from;
                continue;
            }
            let Some(chunk) = self
                .chunk_at(number)?
                .filter(|chunk| stream.is_none_or(|only| only == chunk.stream))
            else {
                continue;
            };
            let mut bytes = vec![0; chunk.length as usize];
            self.log.read_exact_at(&mut bytes, chunk.offset)?;
            for (index, _) in bytes.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n') {
                let is_last_byte = at_end && index + 1 == bytes.len();
                if !is_last_byte && wanted == 1 {
                    return self.seek(chunk.offset + index as u64 + 1);
                }
                wanted -= u64::from(!is_last_byte);
            }
            at_end &= bytes.is_empty();
            self.offset = chunk.offset;
            self.chunk = number;
        }
        Ok(())
    }

    /// The next piece, at the offset where the last one ended.
    pub(crate) fn next(&mut self) -> io::Result<Piece> {
        let header = self.header()?;
        if header.gap_from < header.gap_to
            && (header.gap_from..header.gap_to).contains(&self.offset)
        {
            let from = self.offset;
            self.seek(header.gap_to)?;
            return Ok(Piece::Gap { from, to: header.gap_to });
        }
        let Some(chunk) = self.current(&header)? else { return Ok(Piece::End) };
        let length =
            usize::try_from(chunk.end() - self.offset).unwrap_or(self.piece).min(self.piece);
        let before_gap = header
            .gap_from
            .checked_sub(self.offset)
            .filter(|left| *left > 0 && header.gap_from < header.gap_to);
        let length =
            before_gap.map_or(length, |left| length.min(usize::try_from(left).unwrap_or(length)));
        let mut bytes = vec![0; length];
        match self.log.read_exact_at(&mut bytes, self.offset) {
            Ok(()) => {}
            // The index lasted and the bytes did not: the machine went down before they were on disk.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Piece::End),
            Err(error) => return Err(error),
        }
        self.piece = (self.piece * 2).min(LARGEST_PIECE);
        let after = self.header()?;
        let end = self.offset + length as u64;
        if after.gap_from < after.gap_to && self.offset < after.gap_to && end > after.gap_from {
            // Swallowed while we read: look again, and see the gap.
            return if self.offset < after.gap_from {
                self.next()
            } else {
                self.seek(self.offset).and_then(|()| self.next())
            };
        }
        let piece =
            Piece::Data { offset: self.offset, stream: chunk.stream, at: Time(chunk.at_ms), bytes };
        self.offset = end;
        Ok(piece)
    }

    /// The chunk that holds the next byte, if it has been written.
    fn current(&mut self, header: &Header) -> io::Result<Option<Chunk>> {
        loop {
            if (header.chunk_gap_from..header.chunk_gap_to).contains(&self.chunk) {
                self.chunk = header.chunk_gap_to;
            }
            match self.chunk_at(self.chunk)? {
                Some(chunk) if chunk.end() > self.offset => return Ok(Some(chunk)),
                // The last chunk may still grow, so it is left only for one that follows it.
                Some(_) if self.chunk_at(self.chunk + 1)?.is_some() => self.chunk += 1,
                Some(_) | None => return Ok(None),
            }
        }
    }

    fn header(&self) -> io::Result<Header> {
        let mut bytes = [0; HEADER_BYTES];
        for _ in 0..HEADER_TRIES {
            match self.index.read_exact_at(&mut bytes, 0) {
                Ok(()) => {}
                // Just being made.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    return Ok(Header::default());
                }
                Err(error) => return Err(error),
            }
            if let Some(header) = Header::decode(&bytes) {
                return Ok(header);
            }
        }
        Err(io::Error::new(io::ErrorKind::InvalidData, "the output index has no readable header"))
    }

    fn chunks(&self) -> io::Result<u64> {
        Ok(self.index.metadata()?.len().saturating_sub(HEADER_BYTES as u64) / CHUNK_BYTES as u64)
    }

    fn chunk_at(&self, number: u64) -> io::Result<Option<Chunk>> {
        let mut bytes = [0; CHUNK_BYTES];
        match self.index.read_exact_at(&mut bytes, Chunk::position(number)) {
            Ok(()) => Ok(Chunk::decode(&bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The first chunk in `from..to` for which `is` holds; chunks are in order, and the missing ones never hold.
    fn first_where(&self, from: u64, to: u64, is: impl Fn(&Chunk) -> bool) -> io::Result<u64> {
        let header = self.header()?;
        let (mut low, mut high) = (from, to);
        while low < high {
            let middle = low + (high - low) / 2;
            let is_missing = (header.chunk_gap_from..header.chunk_gap_to).contains(&middle);
            let probe = if is_missing { header.chunk_gap_to } else { middle };
            match self.chunk_at(probe)? {
                Some(chunk) if is(&chunk) => high = middle,
                Some(_) => low = if is_missing { probe } else { middle + 1 },
                None => high = middle,
            }
        }
        Ok(low)
    }
}

/// How many bytes of output there are, gap included, and when the last came.
pub(crate) fn extent(dir: &AttemptDir) -> (u64, Option<Time>) {
    let Ok(metadata) = std::fs::metadata(dir.output()) else { return (0, None) };
    let modified =
        metadata.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let at = modified.and_then(|since| u64::try_from(since.as_millis()).ok()).map(Time);
    (metadata.len(), at.filter(|_| metadata.len() > 0))
}
