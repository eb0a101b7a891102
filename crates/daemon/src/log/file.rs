//! The files of the log: `daemon.log` and, the older the higher, `daemon.log.1`, `daemon.log.2`, …
//!
//! A line goes into one file whole. When the current file is full it becomes the first of the older ones, the
//! oldest goes, and standard error follows, if that was where it went.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tracing_subscriber::fmt::MakeWriter;

use super::line::{self, Fields};
use crate::view;
use crate::world::clock;

pub(super) struct Files {
    path: PathBuf,
    max_bytes: u64,
    keep: u32,
    current: Mutex<Current>,
}

struct Current {
    file: File,
    bytes: u64,
    /// The file ends in the middle of a line.
    is_torn: bool,
    /// Lines that could not be written.
    lost: u64,
}

impl Files {
    /// Opens the log where a daemon before this one has left it.
    pub(super) fn open(path: &Path, max_bytes: u64, keep: u32) -> io::Result<Self> {
        let current = Mutex::new(open(path)?);
        Ok(Self { path: path.to_owned(), max_bytes, keep, current })
    }

    /// Writes a line; one that cannot be written is lost, and counted.
    pub(super) fn write(&self, line: &[u8]) {
        let mut current = self.lock();
        let has_begun = current.bytes > 0;
        if has_begun && current.bytes + line.len() as u64 > self.max_bytes {
            // If there can be no other file, this one grows: a long log is better than none.
            if let Ok(next) = self.turn_over(&current.file) {
                *current = Current { lost: current.lost, ..next };
            }
        }
        current.write(line);
    }

    fn turn_over(&self, old: &File) -> io::Result<Current> {
        // Those that a longer chain had left over go too.
        let mut beyond = self.keep.max(1);
        while beyond <= MOST_FILES && self.older(beyond).exists() {
            std::fs::remove_file(self.older(beyond))?;
            beyond += 1;
        }
        for number in (1..self.keep.saturating_sub(1)).rev() {
            move_if_there(&self.older(number), &self.older(number + 1))?;
        }
        match self.keep {
            0 | 1 => std::fs::remove_file(&self.path)?,
            _ => std::fs::rename(&self.path, self.older(1))?,
        }
        let next = open(&self.path)?;
        follow_standard_error(old, &next.file);
        Ok(next)
    }

    fn older(&self, number: u32) -> PathBuf {
        self.path.with_extension(format!("log.{number}"))
    }

    /// True if what is said on standard error ends up here anyway.
    pub(super) fn is_standard_error(&self) -> bool {
        // Asked by a panic, which may have come while this was held.
        match self.current.try_lock() {
            Ok(current) => is_same(&current.file, &rustix::stdio::stderr()),
            Err(_) => false,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A chain is never longer than this, whatever the config says.
const MOST_FILES: u32 = 1000;

impl Current {
    fn write(&mut self, line: &[u8]) {
        let mut whole = Vec::with_capacity(line.len() + 1);
        if self.is_torn {
            whole.push(b'\n');
        }
        if self.lost > 0 {
            whole.extend(lost(self.lost).as_bytes());
        }
        whole.extend_from_slice(line);
        let (written, is_whole) = write_whole(&mut self.file, &whole);
        self.bytes += written as u64;
        self.is_torn = match is_whole {
            true => false,
            false => self.is_torn || written > 0,
        };
        self.lost = if is_whole { 0 } else { self.lost + 1 };
    }
}

/// In one call wherever the disk takes it: other processes append to this file, too.
fn write_whole(file: &mut File, bytes: &[u8]) -> (usize, bool) {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return (written, false),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return (written, false),
        }
    }
    (written, true)
}

fn lost(count: u64) -> String {
    let message = format!("{count} lines of this log were lost, because they could not be written");
    line::line(&view::rfc3339(clock::wall()), "warn", Fields::saying(message)) + "\n"
}

fn open(path: &Path) -> io::Result<Current> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true).mode(0o600);
    let mut file = outlast_home::regular::open_with(&mut options, path)?;
    let bytes = file.metadata()?.len();
    let is_torn = bytes > 0 && last_byte(&mut file, bytes)? != b'\n';
    Ok(Current { file, bytes, is_torn, lost: 0 })
}

fn last_byte(file: &mut File, bytes: u64) -> io::Result<u8> {
    use std::os::unix::fs::FileExt;

    let mut last = [b'\n'];
    file.read_exact_at(&mut last, bytes - 1)?;
    Ok(last[0])
}

fn move_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match std::fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// What was said to the old file is said to the new one.
fn follow_standard_error(old: &File, new: &File) {
    use rustix::stdio::{dup2_stderr, dup2_stdout, stderr, stdout};

    // Without it, last words would only be found in an older file.
    if is_same(old, &stdout()) {
        let _stays = dup2_stdout(new);
    }
    if is_same(old, &stderr()) {
        let _stays = dup2_stderr(new);
    }
}

fn is_same(file: &File, other: &impl std::os::fd::AsFd) -> bool {
    match (file.metadata(), rustix::fs::fstat(other)) {
        (Ok(ours), Ok(theirs)) => (ours.dev(), ours.ino()) == (theirs.st_dev, theirs.st_ino),
        _ => false,
    }
}

pub(super) struct Writer(pub(super) Arc<Files>);

impl<'a> MakeWriter<'a> for Writer {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        Line(&self.0)
    }
}

/// Gets a line whole, in one call.
pub(super) struct Line<'a>(&'a Files);

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(dir: &Path) -> Vec<String> {
        let names = ["daemon.log.4", "daemon.log.3", "daemon.log.2", "daemon.log.1", "daemon.log"];
        let texts = names.iter().filter_map(|name| std::fs::read_to_string(dir.join(name)).ok());
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    #[test]
    fn lines_go_on_from_file_to_file_and_the_oldest_go() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("daemon.log");
        for number in 0..10 {
            // As if each were written by another daemon.
            let files = Files::open(&path, 20, 3).expect("it opens");
            files.write(format!("line {number:04}\n").as_bytes());
        }
        let expected: Vec<String> = (4..10).map(|number| format!("line {number:04}")).collect();
        assert_eq!(lines(dir.path()), expected);
        assert!(!dir.path().join("daemon.log.3").exists());
        // A shorter chain takes the rest of a longer one with it.
        let files = Files::open(&path, 1, 1).expect("it opens");
        files.write(b"alone\n");
        assert_eq!(lines(dir.path()), ["alone"]);
    }

    #[test]
    fn a_line_that_was_torn_off_is_ended_before_the_next() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("daemon.log");
        File::create(&path).and_then(|mut file| file.write_all(b"half")).expect("a file");
        let files = Files::open(&path, 1 << 20, 2).expect("it opens");
        files.write(b"whole\n");
        files.write(b"more\n");
        assert_eq!(lines(dir.path()), ["half", "whole", "more"]);
    }

    #[test]
    fn a_full_disk_loses_lines_and_says_so_afterwards() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("daemon.log");
        let files = Files::open(&path, 1 << 20, 2).expect("it opens");
        files.lock().file =
            OpenOptions::new().append(true).open("/dev/full").expect("there is one");
        files.write(b"one\n");
        files.write(b"two\n");
        files.lock().file = OpenOptions::new().append(true).open(&path).expect("it is there");
        files.write(b"three\n");
        let lines = lines(dir.path());
        assert!(lines[0].contains("2 lines of this log were lost"), "{lines:?}");
        assert_eq!(lines[1..], ["three"]);
    }
}
