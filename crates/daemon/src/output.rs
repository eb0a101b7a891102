//! Reads an attempt's output back, while the shim writes it or afterwards.
//!
//! A missing or damaged index costs what only the index knew, the streams and the times, and never the bytes: from
//! there on they are read as they lie in the log.
//!
//! The rule against a racing writer: read the bytes, then read the header again, and use only what the gap has not
//! reached meanwhile. A reader blocks no writer; a reader that falls far behind is shown the gap.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use outlast_engine::Time;
use outlast_home::layout::AttemptDir;
use outlast_wire::output::{CHUNK_BYTES, Chunk, HEADER_BYTES, Header, Stream};

use crate::world::files;

/// How much one piece holds: little at first, so that it is there at once, and more when more is wanted.
const FIRST_PIECE: usize = 8 << 10;
const LARGEST_PIECE: usize = 256 << 10;

/// How far back the last lines are looked for without an index.
const RAW_TAIL: u64 = 16 << 20;

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
    /// `None` once it is of no use: the bytes speak for themselves.
    index: Option<File>,
    /// True of a file that never has an index.
    is_bare: bool,
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
        let Some(log) = open_if_there(&dir.output())? else { return Ok(None) };
        let index = open_if_there(&dir.index())?;
        // A shim makes the log first, and its index before a byte is in it.
        if index.is_none() && log.metadata()?.len() == 0 {
            return Ok(None);
        }
        let mut reader =
            Self { log, index, is_bare: false, offset: 0, chunk: 0, piece: FIRST_PIECE };
        if let Err(error) = reader.header() {
            reader.do_without(error)?;
        }
        Ok(Some(reader))
    }

    /// The lines between a driver and its agent. `None` if there are none, not even an empty file.
    pub(crate) fn of_transcript(dir: &AttemptDir) -> io::Result<Option<Self>> {
        let log = open_if_there(&dir.transcript())?;
        let reader =
            |log| Self { log, index: None, is_bare: true, offset: 0, chunk: 0, piece: FIRST_PIECE };
        Ok(log.map(reader))
    }

    /// True if the bytes are read without the index that they had: then nothing is known of streams and times.
    pub(crate) fn is_damaged(&self) -> bool {
        self.index.is_none() && !self.is_bare
    }

    /// Reads on without the index, if that is what the error is about.
    fn do_without(&mut self, error: io::Error) -> io::Result<()> {
        if error.kind() != io::ErrorKind::InvalidData {
            return Err(error);
        }
        self.index = None;
        Ok(())
    }

    /// The same, of output to which nothing more will be written: an index that does not reach its end is of no use.
    pub(crate) fn settled(mut self) -> io::Result<Self> {
        let length = self.log.metadata()?.len();
        if self.index.is_some() && length > 0 {
            let last = match self.chunks()?.checked_sub(1) {
                Some(number) => self.chunk_at(number)?,
                None => None,
            };
            if last.is_none_or(|chunk| chunk.end() < length) {
                self.index = None;
            }
        }
        Ok(self)
    }

    /// Nothing more will be written: bytes that the index does not know are read without it.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if self.offset < self.log.metadata()?.len() {
            self.index = None;
        }
        Ok(())
    }

    /// The byte that comes next.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// How long the output is by now, with what was not kept of it.
    pub(crate) fn length(&self) -> io::Result<u64> {
        Ok(self.log.metadata()?.len())
    }

    /// The bytes that were not kept, as far as the index says.
    pub(crate) fn gap(&self) -> Option<(u64, u64)> {
        let header = self.header().ok()?;
        (header.gap_from < header.gap_to).then_some((header.gap_from, header.gap_to))
    }

    /// Goes to a byte. What is beyond the end is waited for.
    pub(crate) fn seek(&mut self, offset: u64) -> io::Result<()> {
        self.offset = offset;
        if self.index.is_none() {
            return Ok(());
        }
        let last = self.chunks()?;
        self.chunk = self.first_where(0, last, |chunk| chunk.end() > offset)?;
        Ok(())
    }

    /// Goes to the first byte that arrived at `since` or later; to the first of all if times are not known.
    pub(crate) fn seek_time(&mut self, since: Time) -> io::Result<()> {
        if self.index.is_none() {
            return Ok(());
        }
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

    /// Goes to the start of the last `lines` lines, of one stream or of all. Answers how many of them there are.
    pub(crate) fn seek_tail(&mut self, lines: u64, stream: Option<Stream>) -> io::Result<u64> {
        if self.index.is_none() {
            return self.seek_raw_tail(lines);
        }
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
                    self.seek(chunk.offset + index as u64 + 1)?;
                    return Ok(lines);
                }
                wanted -= u64::from(!is_last_byte);
            }
            at_end &= bytes.is_empty();
            self.offset = chunk.offset;
            self.chunk = number;
        }
        // What is before the first end of a line is a line, too, if there is anything.
        let first = u64::from(!at_end && wanted > 0);
        Ok(lines - wanted + first)
    }

    /// To the start of the last `lines` lines of the bytes, as far back as is reasonable.
    fn seek_raw_tail(&mut self, lines: u64) -> io::Result<u64> {
        let end = self.log.metadata()?.len();
        let from = end.saturating_sub(RAW_TAIL);
        let mut bytes = vec![0; usize::try_from(end - from).map_err(io::Error::other)?];
        self.log.read_exact_at(&mut bytes, from)?;
        let most = usize::try_from(lines).unwrap_or(usize::MAX);
        let ends = bytes.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
        let inner = ends.map(|(index, _)| index + 1).filter(|start| *start < bytes.len());
        // The starts of the last lines, the last first; the first line of all starts at 0.
        let starts = inner.chain((!bytes.is_empty()).then_some(0)).take(most);
        let (count, start) = starts.fold((0, bytes.len()), |(count, _), start| (count + 1, start));
        self.offset = from + start as u64;
        Ok(count)
    }

    /// The next piece, at the offset where the last one ended.
    pub(crate) fn next(&mut self) -> io::Result<Piece> {
        if self.index.is_some() {
            match self.next_indexed() {
                Err(error) => self.do_without(error)?,
                known => return known,
            }
        }
        self.next_raw()
    }

    /// The next bytes as they lie in the log. What was taken out of its middle is a hole.
    fn next_raw(&mut self) -> io::Result<Piece> {
        let end = self.log.metadata()?.len();
        if self.offset >= end {
            return Ok(Piece::End);
        }
        let data = match rustix::fs::seek(&self.log, rustix::fs::SeekFrom::Data(self.offset)) {
            Ok(data) => data,
            Err(rustix::io::Errno::NXIO) => end,
            // Not every file system knows of holes.
            Err(rustix::io::Errno::INVAL) => self.offset,
            Err(error) => return Err(error.into()),
        };
        if data > self.offset {
            let from = std::mem::replace(&mut self.offset, data);
            return Ok(Piece::Gap { from, to: data });
        }
        let length = usize::try_from(end - self.offset).unwrap_or(self.piece).min(self.piece);
        let mut bytes = vec![0; length];
        self.log.read_exact_at(&mut bytes, self.offset)?;
        self.piece = (self.piece * 2).min(LARGEST_PIECE);
        let offset = self.offset;
        self.offset += length as u64;
        Ok(Piece::Data { offset, stream: Stream::Stdout, at: Time(0), bytes })
    }

    fn next_indexed(&mut self) -> io::Result<Piece> {
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
                self.next_indexed()
            } else {
                self.seek(self.offset).and_then(|()| self.next_indexed())
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
            match self.index()?.read_exact_at(&mut bytes, 0) {
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
        Err(no_index())
    }

    fn index(&self) -> io::Result<&File> {
        self.index.as_ref().ok_or_else(no_index)
    }

    fn chunks(&self) -> io::Result<u64> {
        Ok(self.index()?.metadata()?.len().saturating_sub(HEADER_BYTES as u64) / CHUNK_BYTES as u64)
    }

    fn chunk_at(&self, number: u64) -> io::Result<Option<Chunk>> {
        let mut bytes = [0; CHUNK_BYTES];
        match self.index()?.read_exact_at(&mut bytes, Chunk::position(number)) {
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

fn open_if_there(path: &std::path::Path) -> io::Result<Option<File>> {
    match files::open_regular(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn no_index() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the output index has no readable header")
}

/// How many bytes of output there are, gap included, and when the last came.
pub(crate) fn extent(dir: &AttemptDir) -> (u64, Option<Time>) {
    let Ok(metadata) = std::fs::metadata(dir.output()) else { return (0, None) };
    let modified =
        metadata.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let at = modified.and_then(|since| u64::try_from(since.as_millis()).ok()).map(Time);
    (metadata.len(), at.filter(|_| metadata.len() > 0))
}
