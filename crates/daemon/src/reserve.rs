//! The reserve: a file in the state directory that is given up when the disk is full.
//!
//! A daemon has to write a little to start, and an order to stop has to be written down. With the room of the reserve
//! both work on a disk that a run has filled. It promises no more than that room: another writer may take it first.
//! It is made again when there is room.

use std::io;
use std::path::Path;

use outlast_home::layout::Layout;
use rustix::fs::{FallocateFlags, Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Resource, getrlimit};

use crate::world::files;

/// As much as a daemon keeps back, on a disk that has plenty.
const BYTES: u64 = 4 << 20;
/// Of a small disk only so much of what is free.
const PART: u64 = 8;
/// Less than this would not help.
const LEAST_BYTES: u64 = 64 << 10;

/// Gives the reserve up. True if there was one.
pub(crate) fn spend(layout: &Layout) -> bool {
    let path = layout.reserve();
    if !path.exists() {
        return false;
    }
    match files::remove(&path) {
        Ok(()) => {
            tracing::error!("the disk is full; the reserve is given up");
            true
        }
        Err(error) => {
            tracing::error!(%error, "the disk is full, and the reserve cannot be given up");
            false
        }
    }
}

/// Makes the reserve if there is none and the disk has room for it. Waits for the disk.
pub(crate) fn make(layout: &Layout) {
    let path = layout.reserve();
    match std::fs::metadata(&path) {
        Ok(known) if known.len() >= LEAST_BYTES => return,
        // A daemon died while it made this one.
        Ok(_) => {
            if let Err(error) = files::remove(&path) {
                return tracing::error!(%error, "cannot remove a part of the reserve");
            }
        }
        Err(_) => {}
    }
    if let Err(error) = allocate(&layout.state, &path) {
        tracing::warn!(%error, "there is no reserve for a full disk");
        // A part of it does not help.
        if let Err(error) = files::remove(&path) {
            tracing::error!(%error, "cannot remove a part of the reserve");
        }
    }
}

fn allocate(state: &Path, path: &Path) -> io::Result<()> {
    let stat = rustix::fs::statvfs(state)?;
    let part = stat.f_bavail.saturating_mul(stat.f_frsize) / PART;
    let bytes = getrlimit(Resource::Fsize).current.map_or(part, |most| most.min(part)).min(BYTES);
    if bytes < LEAST_BYTES {
        return Ok(());
    }
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = retry_on_intr(|| rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR))?;
    match rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, bytes) {
        Ok(()) => Ok(()),
        // Then the bytes are written.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => fill(file.into(), bytes),
        Err(error) => Err(error.into()),
    }
}

fn fill(mut file: std::fs::File, bytes: u64) -> io::Result<()> {
    io::copy(&mut io::Read::take(io::repeat(0), bytes), &mut file).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_takes_room_until_it_is_given_up() {
        let dir = tempfile::tempdir().expect("a directory");
        let layout = Layout::under(dir.path());
        std::fs::create_dir_all(&layout.state).expect("it is ours");
        assert!(!spend(&layout), "there was none");
        make(&layout);
        make(&layout);
        let made = std::fs::metadata(layout.reserve()).expect("it was made");
        assert!((LEAST_BYTES..=BYTES).contains(&made.len()), "{} bytes", made.len());
        assert!(spend(&layout));
        assert!(!layout.reserve().exists());
    }

    #[test]
    fn a_part_of_a_reserve_is_made_whole() {
        let dir = tempfile::tempdir().expect("a directory");
        let layout = Layout::under(dir.path());
        std::fs::create_dir_all(&layout.state).expect("it is ours");
        std::fs::File::create(layout.reserve()).expect("it is ours");
        make(&layout);
        let made = std::fs::metadata(layout.reserve()).expect("it was made");
        assert!(made.len() >= LEAST_BYTES, "{} bytes", made.len());
    }
}
