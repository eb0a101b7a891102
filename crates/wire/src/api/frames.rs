//! A run's output as it crosses the socket.

use serde::{Deserialize, Serialize};

/// The header by which a client asks for framed output (see [`OutputFrame`]).
pub const FRAMES: &str = "application/vnd.outlast.output";

/// One frame of `GET /v1/runs/{run}/output` when [`FRAMES`] is accepted:
/// `length: u32 LE, head: u16 LE, <head bytes of JSON>, <data>`; `length` counts all that follows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "frame", rename_all = "snake_case")]
pub enum OutputFrame {
    /// What follows belongs to this attempt.
    Attempt { turn: u32, attempt: u32 },
    /// The frame's data is the output's bytes from `offset` on; without any, they will begin there.
    Data { offset: u64, stream: crate::output::Stream, at_ms: u64 },
    /// Bytes `from..to` are gone from the spool.
    Gap { from: u64, to: u64 },
    /// The index of this attempt's output is missing or damaged: the bytes that follow come without their streams
    /// and times. Sent only then.
    Damaged,
    /// The output of this attempt is no longer on disk. The journal says how many bytes came, if it knows.
    Gone {
        #[serde(default)]
        bytes: Option<u64>,
    },
    /// The output cannot be read, and asking again does not help. Nothing more will come.
    Failed { message: String },
    /// Nothing more will come.
    End,
}

/// A frame, its data, and how many bytes the two took.
pub type Framed<'a> = (OutputFrame, &'a [u8], usize);

impl OutputFrame {
    pub fn encode(&self, data: &[u8]) -> Vec<u8> {
        let head = serde_json::to_vec(self).expect("a frame's head is plain data");
        let head_length = u16::try_from(head.len()).expect("a frame's head is short");
        let length = u32::try_from(2 + head.len() + data.len())
            .expect("a frame's data is one read of a file");
        let mut frame = Vec::with_capacity(4 + length as usize);
        frame.extend_from_slice(&length.to_le_bytes());
        frame.extend_from_slice(&head_length.to_le_bytes());
        frame.extend_from_slice(&head);
        frame.extend_from_slice(data);
        frame
    }

    /// The first whole frame in `bytes`, its data, and how many bytes it took; `Ok(None)` if more are needed.
    pub fn decode(bytes: &[u8]) -> Result<Option<Framed<'_>>, serde_json::Error> {
        let Some((length, rest)) = bytes.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        let Some(frame) = rest.get(..length) else { return Ok(None) };
        let Some((head_length, body)) = frame.split_first_chunk::<2>() else {
            return Err(serde::de::Error::custom("a frame without a head"));
        };
        let Some((head, data)) =
            body.split_at_checked(usize::from(u16::from_le_bytes(*head_length)))
        else {
            return Err(serde::de::Error::custom("a head longer than its frame"));
        };
        Ok(Some((serde_json::from_slice(head)?, data, 4 + length)))
    }
}
