//! The answer file of an attempt: the agent writes it, the daemon reads it, and the shim syncs it.
//!
//! The shim never reads the answer.

use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::retry_on_intr;

/// Makes the answer last at least as long as the exit record: with the record alone, the daemon would judge the
/// attempt by its exit status. A path that is no regular file is no answer. If a sync fails, the daemon reads the
/// answer as the disk has it.
pub(crate) fn sync(path: &Path) {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(answer) = retry_on_intr(|| rustix::fs::open(path, flags, Mode::empty())) else { return };
    let is_file = rustix::fs::fstat(&answer)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    if is_file {
        let _as_it_is = retry_on_intr(|| rustix::fs::fsync(&answer));
    }
}
