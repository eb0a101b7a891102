//! The waiter: one small process for each home that starts a daemon again when the daemon has died and no shim
//! lives to do that.
//!
//! It sleeps in `flock(2)` on the daemon's lock, which the kernel grants when the daemon is dead, so it has no
//! timer and no wakeup while the daemon lives. It starts nothing while a person wants the daemon down or while no
//! run needs one: then it ends. One daemon after the other finds the same waiter by its lock.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use outlast_home::regular;
use outlast_home::waiter::announce;
use outlast_wire::again;
use outlast_wire::shim::{NOT_NEEDED, Waiter};

use crate::revive::Reviver;
use crate::{EXIT_BAD_FILES, EXIT_BUSY, clock, setup};

/// A daemon that lived so long did not die of its start: the next pause is the shortest again.
const STEADY: Duration = Duration::from_secs(5);

/// Waits for the death of each daemon in turn, until none is needed any more.
///
/// Takes the whole process over, as a shim does.
pub fn main(plan: &Path) -> ExitCode {
    setup::become_waiter();
    let Some(waiter) = read(plan) else { return ExitCode::from(EXIT_BAD_FILES) };
    let Some(_held_for_life) = announce(&waiter.lock) else { return ExitCode::from(EXIT_BUSY) };
    setup::restore_limits(waiter.revive.soft_limits);
    let mut reviver = Reviver::new(waiter.revive);
    outlast_home::trim::give_back();
    let mut came_at = clock::now();
    loop {
        match until_dead(&reviver.plan().daemon_lock) {
            // Something else is in the place of the lock: the next daemon sets it aside.
            Err(error) if error.kind() == ErrorKind::InvalidInput => {}
            // The state directory is gone or is no longer ours: there is nothing left to look after.
            Err(_) => return ExitCode::SUCCESS,
            Ok(()) => {}
        }
        if reviver.has_daemon() {
            // The lock's file was replaced, and the same daemon holds the new one.
            continue;
        }
        if reviver.plan().stopped_marker.exists() || !is_needed(&waiter.needed) {
            return ExitCode::SUCCESS;
        }
        // A later daemon may be of another program.
        if let Some(newer) = read(plan) {
            reviver.follow(newer.revive);
        }
        let now = clock::now();
        if now.duration_since(came_at) < STEADY {
            reviver.daemon_gone_again(now);
        } else {
            reviver.daemon_gone(now);
        }
        if !revive(&mut reviver) {
            return ExitCode::SUCCESS;
        }
        came_at = clock::now();
        outlast_home::trim::give_back();
    }
}

/// Starts daemons until one holds the lock. False if a person wants none meanwhile.
fn revive(reviver: &mut Reviver) -> bool {
    while let Some(at) = reviver.wake_at() {
        std::thread::sleep(at.saturating_duration_since(clock::now()));
        if reviver.has_daemon() {
            break;
        }
        if reviver.plan().stopped_marker.exists() || !reviver.plan().daemon_lock.exists() {
            return false;
        }
        reviver.tick(clock::now());
    }
    reviver.daemon_came();
    true
}

/// Returns when no daemon holds the lock. A daemon that wants it gets it at once: ours is let go before we return.
fn until_dead(lock: &Path) -> io::Result<()> {
    again::lock_shared(&regular::open(lock)?)
}

/// What cannot be read is not taken for a daemon that is not needed.
fn is_needed(path: &Path) -> bool {
    !matches!(regular::read(path).as_deref(), Ok([NOT_NEEDED, ..]))
}

fn read(plan: &Path) -> Option<Waiter> {
    serde_json::from_slice(&regular::read(plan).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use super::*;

    #[test]
    fn only_the_word_that_none_is_needed_means_that() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.needed");
        assert!(is_needed(&path), "there is no such file");
        for (bytes, needed) in [(&b"0"[..], false), (b"1", true), (b"", true), (b"?", true)] {
            File::create(&path).unwrap().write_all(bytes).unwrap();
            assert_eq!(is_needed(&path), needed, "{bytes:?}");
        }
    }

    #[test]
    fn a_lock_that_is_gone_is_waited_for_by_nobody() {
        assert!(until_dead(Path::new("/nowhere/daemon.lock")).is_err());
    }
}
