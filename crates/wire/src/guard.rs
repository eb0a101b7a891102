//! What a daemon asks of a guard, and what a guard says of the command that it has run.
//!
//! On the guard's standard input, a socket: the length of a [`Guarded`] as `u32 LE`, the [`Guarded`] as JSON, and then the
//! bytes of the command's standard input. Back comes one [`Ended`] as JSON, and the end of the stream. Daemon and
//! guard are the same build, so nothing of this is kept for a later one.

use std::io::{self, Read};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::shim::{EnvVar, Exit, NeverStarted, SoftLimits};

/// The guard's first argument, by which a daemon knows it among the processes above a caller.
pub const GUARD_VERB: &str = "__guard";

/// A command line and an environment are never longer, as JSON.
const HEAD_MAX: usize = 64 << 20;

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guarded {
    pub argv: Vec<String>,
    pub dir: PathBuf,
    pub env: Vec<EnvVar>,
    /// The guard sets these for itself, and so for the command.
    #[serde(default, skip_serializing_if = "SoftLimits::are_untouched")]
    pub soft_limits: SoftLimits,
    /// How many bytes of standard input follow.
    pub stdin_bytes: u64,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    Exited(Exit),
    NeverStarted { code: NeverStarted, why: String },
}

impl Guarded {
    /// The order as bytes on the socket. The standard input goes after it.
    pub fn encode(&self) -> io::Result<Vec<u8>> {
        let head = serde_json::to_vec(self)?;
        let length = u32::try_from(head.len()).ok().filter(|_| head.len() <= HEAD_MAX);
        let length = length.ok_or_else(too_long)?;
        Ok([&length.to_le_bytes()[..], &head].concat())
    }

    /// Reads the whole order and the standard input. One that is cut off is an error.
    pub fn read(from: &mut impl Read) -> io::Result<(Self, Vec<u8>)> {
        let mut length = [0; 4];
        from.read_exact(&mut length)?;
        let length = u32::from_le_bytes(length);
        if length as usize > HEAD_MAX {
            return Err(too_long());
        }
        let guarded: Self = serde_json::from_slice(&exactly(from, length.into())?)?;
        let stdin = exactly(from, guarded.stdin_bytes)?;
        Ok((guarded, stdin))
    }
}

/// So many bytes. Makes room for what comes and not for what is announced.
fn exactly(from: &mut impl Read, bytes: u64) -> io::Result<Vec<u8>> {
    let mut read = Vec::new();
    from.take(bytes).read_to_end(&mut read)?;
    if read.len() as u64 == bytes { Ok(read) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::ArgumentListTooLong, "the command and its environment")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(stdin_bytes: u64) -> Guarded {
        Guarded {
            argv: ["sh", "-c", "true"].map(str::to_owned).to_vec(),
            dir: "/".into(),
            env: vec![EnvVar { name: "A".into(), value: "b".into() }],
            soft_limits: SoftLimits { open_files: Some(1024), processes: None },
            stdin_bytes,
        }
    }

    #[test]
    fn an_order_comes_with_its_standard_input() {
        let bytes = [order(4).encode().unwrap(), b"told, and more".to_vec()].concat();
        let read = Guarded::read(&mut &bytes[..]).unwrap();
        assert_eq!(read, (order(4), b"told".to_vec()));
    }

    #[test]
    fn an_order_that_is_cut_off_is_none() {
        let bytes = [order(4).encode().unwrap(), b"told".to_vec()].concat();
        for end in 0..bytes.len() {
            let read = Guarded::read(&mut &bytes[..end]);
            assert_eq!(read.expect_err("cut").kind(), io::ErrorKind::UnexpectedEof, "{end}");
        }
        assert!(Guarded::read(&mut &u32::MAX.to_le_bytes()[..]).is_err());
        assert!(Guarded::read(&mut &order(u64::MAX).encode().unwrap()[..]).is_err());
    }
}
