//! `output.idx`: which stream each stretch of output came from, and when; and what is missing.
//!
//! Chunks are collected during a round of the loop and written once. The last chunk stays open: output
//! of the same stream that follows within a moment makes it longer instead of making another one.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use outlast_wire::output::{CHUNK_BYTES, Chunk, Header, Stream};

use crate::sparse_file::{create, punch};

/// Output within this time of a chunk's first byte belongs to that chunk.
const MERGE_MS: u64 = 100;
const CHUNK_MAX: u32 = 1 << 20;
/// Chunks read at once when the gap moves on.
const SCAN: usize = 128;

#[derive(Debug)]
pub(crate) struct Index {
    path: PathBuf,
    file: Option<File>,
    header: Header,
    /// The number of the first chunk in `recent`.
    first: u64,
    /// The open chunk and, before a flush, those closed since the last one.
    recent: Vec<Chunk>,
    /// When the open chunk's first byte arrived.
    began_ms: u64,
    is_dirty: bool,
}

/// For a step whose directory was removed as soon as its command began. Its output has no name either, and goes on.
#[cfg(target_os = "linux")]
fn nowhere() -> io::Result<File> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    Ok(rustix::fs::memfd_create("output.idx", flags)?.into())
}

#[cfg(not(target_os = "linux"))]
fn nowhere() -> io::Result<File> {
    Err(io::ErrorKind::NotFound.into())
}

impl Index {
    pub(crate) fn at(path: PathBuf) -> Self {
        let header = Header::default();
        let recent = Vec::new();
        Self { path, file: None, header, first: 0, recent, began_ms: 0, is_dirty: false }
    }

    /// Makes the file if there is none yet. Not before the command is on its way, which would wait for it, and always
    /// before the first byte of output.
    pub(crate) fn make(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            let file = match create(&self.path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => nowhere()?,
                made => made?,
            };
            file.write_all_at(&self.header.encode(), 0)?;
            self.file = Some(file);
        }
        Ok(())
    }

    fn file(&self) -> &File {
        self.file.as_ref().expect("it is made before there is output")
    }

    /// `length` bytes of `stream` are in the log at `offset`. Never more than a read at once.
    pub(crate) fn add(&mut self, offset: u64, length: u32, stream: Stream, at_ms: u64) {
        self.is_dirty = true;
        if let Some(open) = self.recent.last_mut() {
            let fits =
                open.stream == stream && open.end() == offset && open.length + length <= CHUNK_MAX;
            if fits && at_ms.saturating_sub(self.began_ms) < MERGE_MS {
                open.length += length;
                open.at_ms = at_ms;
                return;
            }
        }
        self.began_ms = at_ms;
        self.recent.push(Chunk { offset, length, stream, at_ms });
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        if !self.is_dirty {
            return Ok(());
        }
        let bytes: Vec<u8> = self.recent.iter().flat_map(Chunk::encode).collect();
        self.file().write_all_at(&bytes, Chunk::position(self.first))?;
        self.is_dirty = false;
        let closed = self.recent.len().saturating_sub(1);
        self.recent.drain(..closed);
        self.first += closed as u64;
        Ok(())
    }

    /// Says that `from..to` of the log is gone. The caller removes the bytes afterwards: a reader that
    /// races it must find the header there first.
    pub(crate) fn declare_gap(&mut self, from: u64, to: u64) -> io::Result<()> {
        self.flush()?;
        let mut header = Header { gap_from: from, gap_to: to, ..self.header };
        // As long as no chunk was dropped, where dropping begins is still to be found.
        if header.chunk_gap_from == header.chunk_gap_to {
            header.chunk_gap_from =
                self.first_chunk(header.chunk_gap_from, |chunk| chunk.offset >= from)?;
            header.chunk_gap_to = header.chunk_gap_from;
        }
        header.chunk_gap_to = self.first_chunk(header.chunk_gap_to, |chunk| chunk.end() > to)?;
        self.file().write_all_at(&header.encode(), 0)?;
        self.header = header;
        Ok(())
    }

    /// Frees the chunks that went with the gap.
    pub(crate) fn punch_gap(&self) -> io::Result<()> {
        let from = Chunk::position(self.header.chunk_gap_from);
        punch(self.file(), from, Chunk::position(self.header.chunk_gap_to))
    }

    /// The first chunk from `number` on that `is_it`, or the open one.
    fn first_chunk(&self, mut number: u64, is_it: impl Fn(&Chunk) -> bool) -> io::Result<u64> {
        let mut bytes = [0; SCAN * CHUNK_BYTES];
        while number < self.first {
            let count = usize::try_from(self.first - number).unwrap_or(SCAN).min(SCAN);
            let some = &mut bytes[..count * CHUNK_BYTES];
            self.file().read_exact_at(some, Chunk::position(number))?;
            let (chunks, _) = some.as_chunks::<CHUNK_BYTES>();
            let found = chunks
                .iter()
                .position(|bytes| Chunk::decode(bytes).is_some_and(|chunk| is_it(&chunk)));
            match found {
                Some(at) => return Ok(number + at as u64),
                None => number += count as u64,
            }
        }
        Ok(self.first)
    }
}
