//! The files that hold an attempt's output, as the shim writes and the daemon reads them.
//!
//! `output.log` holds the raw bytes in arrival order, each at its own offset in the stream, so that
//! `tail -f` works without us. When there is more than the spool keeps, the middle is punched out of the
//! file: the offsets stay, the blocks go. `output.idx` is a [`Header`], which says exactly what is
//! missing, and then one [`Chunk`] for each stretch of bytes of one stream.

/// The first bytes of `output.idx`.
pub const MAGIC: [u8; 8] = *b"outlidx1";

/// Size of [`Header`] and of each [`Chunk`] in the file.
pub const HEADER_BYTES: usize = 64;
pub const CHUNK_BYTES: usize = 24;

/// What is missing from the middle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Header {
    /// Bytes `gap_from..gap_to` of the stream are gone. Equal when nothing is missing.
    pub gap_from: u64,
    pub gap_to: u64,
    /// Chunks with numbers in `chunk_gap_from..chunk_gap_to` are gone from the index with them.
    pub chunk_gap_from: u64,
    pub chunk_gap_to: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk {
    pub offset: u64,
    pub length: u32,
    pub stream: Stream,
    /// When the last byte of the chunk arrived.
    pub at_ms: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum Stream {
    Stdout,
    Stderr,
    /// Both, as a terminal shows them.
    Tty,
}

impl Header {
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        let fields = [self.gap_from, self.gap_to, self.chunk_gap_from, self.chunk_gap_to];
        for (index, field) in fields.iter().enumerate() {
            bytes[8 + index * 8..16 + index * 8].copy_from_slice(&field.to_le_bytes());
        }
        bytes[40..48].copy_from_slice(&checksum(&fields).to_le_bytes());
        bytes
    }

    /// `None` if this is not a whole header; a reader that races the writer reads again.
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let fields = [word(bytes, 8), word(bytes, 16), word(bytes, 24), word(bytes, 32)];
        let [gap_from, gap_to, chunk_gap_from, chunk_gap_to] = fields;
        let whole = bytes[..8] == MAGIC && word(bytes, 40) == checksum(&fields);
        (whole && gap_from <= gap_to).then_some(Self {
            gap_from,
            gap_to,
            chunk_gap_from,
            chunk_gap_to,
        })
    }
}

impl Chunk {
    /// Where chunk `number` is in the file.
    pub fn position(number: u64) -> u64 {
        (HEADER_BYTES as u64).saturating_add(number.saturating_mul(CHUNK_BYTES as u64))
    }

    pub fn end(&self) -> u64 {
        self.offset.saturating_add(u64::from(self.length))
    }

    /// `offset: u64, at_ms: u48, stream: u8, zero: u8, length: u32, check: u32`
    pub fn encode(&self) -> [u8; CHUNK_BYTES] {
        let mut bytes = [0; CHUNK_BYTES];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        bytes[8..14].copy_from_slice(&self.at_ms.to_le_bytes()[..6]);
        bytes[14] = match self.stream {
            Stream::Stdout => 1,
            Stream::Stderr => 2,
            Stream::Tty => 3,
        };
        bytes[16..20].copy_from_slice(&self.length.to_le_bytes());
        let check = chunk_check(&bytes);
        bytes[20..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// `None` if these bytes are not a whole chunk: a hole, or a write in progress.
    pub fn decode(bytes: &[u8; CHUNK_BYTES]) -> Option<Self> {
        let stream = match bytes[14] {
            1 => Stream::Stdout,
            2 => Stream::Stderr,
            3 => Stream::Tty,
            _ => return None,
        };
        let quad = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        let mut at_ms = [0; 8];
        at_ms[..6].copy_from_slice(&bytes[8..14]);
        let whole = quad(20) == chunk_check(bytes);
        let chunk = Self {
            offset: word(bytes, 0),
            length: quad(16),
            stream,
            at_ms: u64::from_le_bytes(at_ms),
        };
        whole.then_some(chunk)
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

fn checksum(fields: &[u64]) -> u64 {
    fields
        .iter()
        .fold(0x6f75_746c_6173_7421, |sum: u64, field| (sum ^ field).wrapping_mul(0x0100_0000_01b3))
}

fn chunk_check(bytes: &[u8; CHUNK_BYTES]) -> u32 {
    let length = u32::from_le_bytes([bytes[16], bytes[17], bytes[18], bytes[19]]);
    let [a, b, c, d, ..] =
        checksum(&[word(bytes, 0), word(bytes, 8), u64::from(length)]).to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back_and_a_torn_one_does_not() {
        let header =
            Header { gap_from: 16 << 20, gap_to: 40 << 20, chunk_gap_from: 7, chunk_gap_to: 900 };
        let bytes = header.encode();
        assert_eq!(Header::decode(&bytes), Some(header));
        for at in 0..48 {
            let mut torn = bytes;
            torn[at] ^= 0x40;
            assert_eq!(Header::decode(&torn), None, "byte {at}");
        }
    }

    #[test]
    fn a_chunk_reads_back_and_a_hole_does_not() {
        let chunk = Chunk {
            offset: 1 << 40,
            length: 65_536,
            stream: Stream::Stderr,
            at_ms: 1_790_000_000_000,
        };
        assert_eq!(Chunk::decode(&chunk.encode()), Some(chunk));
        assert_eq!(Chunk::decode(&[0; CHUNK_BYTES]), None);
    }
}
