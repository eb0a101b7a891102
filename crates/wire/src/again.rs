//! System calls that a signal can interrupt and that the standard library does not repeat.
//!
//! A call that was interrupted has done nothing, so each is made again until it succeeds or fails for another
//! reason. Signals come seldom; a loop that never ends would need one for every call.

use std::fs::{File, ReadDir, TryLockError};
use std::io;
use std::path::Path;

/// Opens a directory. On a disk that is a server's or a user's program, a signal interrupts that.
#[expect(clippy::disallowed_methods, reason = "this is where it is repeated")]
pub fn read_dir(path: impl AsRef<Path>) -> io::Result<ReadDir> {
    again(|| std::fs::read_dir(path.as_ref()))
}

/// Takes the lock if it is free.
#[expect(clippy::disallowed_methods, reason = "this is where it is repeated")]
pub fn try_lock(file: &File) -> Result<(), TryLockError> {
    again(|| file.try_lock())
}

/// Takes a share of the lock if no process has all of it.
#[expect(clippy::disallowed_methods, reason = "this is where it is repeated")]
pub fn try_lock_shared(file: &File) -> Result<(), TryLockError> {
    again(|| file.try_lock_shared())
}

/// Waits for the lock.
#[expect(clippy::disallowed_methods, reason = "this is where it is repeated")]
pub fn lock(file: &File) -> io::Result<()> {
    again(|| file.lock())
}

/// Waits for a share of the lock.
#[expect(clippy::disallowed_methods, reason = "this is where it is repeated")]
pub fn lock_shared(file: &File) -> io::Result<()> {
    again(|| file.lock_shared())
}

fn again<T, E: Failure>(mut call: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    loop {
        match call() {
            Err(error) if error.is_interruption() => {}
            done => return done,
        }
    }
}

trait Failure {
    fn is_interruption(&self) -> bool;
}

impl Failure for io::Error {
    fn is_interruption(&self) -> bool {
        self.kind() == io::ErrorKind::Interrupted
    }
}

impl Failure for TryLockError {
    fn is_interruption(&self) -> bool {
        match self {
            Self::Error(error) => error.is_interruption(),
            Self::WouldBlock => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_interrupted_call_is_made_again() {
        let mut answers = vec![
            Err(io::ErrorKind::NotFound.into()),
            Err(io::ErrorKind::Interrupted.into()),
            Err(io::ErrorKind::Interrupted.into()),
        ];
        let answer: io::Result<()> =
            again(|| answers.pop().expect("it stops at the first that is none"));
        assert_eq!(answer.unwrap_err().kind(), io::ErrorKind::NotFound);
        let mut locks =
            vec![TryLockError::WouldBlock, TryLockError::Error(io::ErrorKind::Interrupted.into())];
        let answer: Result<(), _> =
            again(|| Err(locks.pop().expect("it stops at the first that is none")));
        assert!(matches!(answer, Err(TryLockError::WouldBlock)));
    }
}
