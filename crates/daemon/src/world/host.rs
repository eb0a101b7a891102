//! What the host lacks or keeps from us for a while: no failure of a run.
//!
//! A run that meets it is suspended, which is shown, and goes on by itself. What is wrong with a run's own
//! command, such as a program that is not there, is not decided here: the shim says that.

use std::io::{self, ErrorKind};
use std::path::Path;

use outlast_wire::codes::Code;
use rustix::io::Errno;

/// A disk with less than this is called full.
const LEAST_ROOM_BYTES: u64 = 64 << 10;

/// What this machine is called.
pub(crate) fn name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// The code under which a failure of the host is shown; `None` if waiting for the host would not help.
pub(crate) fn failure(error: &io::Error) -> Option<Code> {
    if is_full(error) {
        return Some(Code::DiskFull);
    }
    let errno = Errno::from_io_error(error)?;
    let is_shortage = [
        Errno::MFILE, // this process has no descriptors left
        Errno::NFILE, // the machine has none
        Errno::AGAIN, // no process may be started
        Errno::NOMEM,
        Errno::NOBUFS,
    ];
    is_shortage.contains(&errno).then_some(Code::NoResources)
}

/// The same of a launch: it may also meet a program or a directory that an upgrade has just moved, or a journal
/// that cannot be read just now.
pub(crate) fn launch_failure(error: &io::Error) -> Option<Code> {
    failure(error).or(match error.kind() {
        ErrorKind::NotFound | ErrorKind::PermissionDenied | ErrorKind::ExecutableFileBusy => {
            Some(Code::NoResources)
        }
        ErrorKind::ResourceBusy => Some(Code::JournalUnusable),
        _ => None,
    })
}

/// True if a disk or a quota has no room.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// True if the file system that `path` is or will be on takes no more. What cannot be asked is not called full.
pub(crate) fn has_no_room(path: &Path) -> bool {
    let there = path.ancestors().find(|ancestor| ancestor.exists());
    let Some(Ok(stat)) = there.map(rustix::fs::statvfs) else { return false };
    let free_bytes = stat.f_bavail.saturating_mul(stat.f_frsize);
    free_bytes < LEAST_ROOM_BYTES || (stat.f_files > 0 && stat.f_favail == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortages_pass_and_mistakes_stay() {
        let code = |errno: Errno| failure(&errno.into());
        for errno in [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM] {
            assert_eq!(code(errno), Some(Code::NoResources), "{errno}");
        }
        assert_eq!(code(Errno::NOSPC), Some(Code::DiskFull));
        assert_eq!(code(Errno::DQUOT), Some(Code::DiskFull));
        for errno in [Errno::INVAL, Errno::TOOBIG, Errno::NOTDIR] {
            assert_eq!(code(errno), None, "{errno}");
        }
        assert_eq!(failure(&io::Error::other("EMFILE")), None);
    }

    #[test]
    fn a_program_that_is_being_replaced_costs_no_attempt_and_a_spec_that_cannot_be_made_does() {
        for kind in
            [ErrorKind::NotFound, ErrorKind::PermissionDenied, ErrorKind::ExecutableFileBusy]
        {
            assert!(launch_failure(&kind.into()).is_some(), "{kind:?}");
        }
        assert_eq!(launch_failure(&ErrorKind::InvalidData.into()), None);
    }
}
