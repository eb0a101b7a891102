//! Files that must last, and directories that no other user may look into.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

pub(crate) use outlast_home::directory::{new_private_dir, only_private_dir, private_dir};
use outlast_home::regular;
use outlast_wire::again;
use outlast_workflow::Look;

/// Whether a file survives the machine, or only us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lasting {
    /// Through a crash of the machine.
    Power,
    /// Through our own death; after a crash of the machine it is not needed.
    Process,
}

/// What is at a path that a program is looked for at.
pub(crate) fn look(path: &Path) -> Look {
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Look::Nothing,
        Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => Look::NotExecutable,
        Ok(_) => Look::Program,
        Err(_) => Look::Nothing,
    }
}

/// Writes a 0600 file whole or not at all. What is in its way and is no file of ours, such as a directory, is set
/// aside.
pub(crate) fn write_whole(path: &Path, content: &[u8], lasting: Lasting) -> io::Result<()> {
    let beside = path.with_extension("tmp");
    match try_write_whole(path, &beside, content, lasting) {
        Err(error) if is_in_the_way(&error) => {
            for it in [path, &beside].into_iter().filter(|it| !is_plain(it)) {
                set_aside(it)?;
            }
            try_write_whole(path, &beside, content, lasting)
        }
        done => done,
    }
}

fn is_in_the_way(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, IsADirectory, PermissionDenied};
    matches!(error.kind(), IsADirectory | PermissionDenied | InvalidInput)
}

/// True if nothing is there, or a regular file that may be written to.
fn is_plain(path: &Path) -> bool {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => {
            rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
        }
        Ok(_) => false,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

/// The end of the name of what was set aside, before its number.
pub(crate) const DAMAGED: &str = ".damaged-";
/// More than so many are a person's to look at first.
const MOST_ASIDE: u32 = 1000;

/// Renames what cannot be used, to the first free name beside it. Nothing is deleted.
pub(crate) fn set_aside(path: &Path) -> io::Result<PathBuf> {
    for number in 1..=MOST_ASIDE {
        let mut name = path.as_os_str().to_owned();
        name.push(format!("{DAMAGED}{number}"));
        let aside = PathBuf::from(name);
        match std::fs::symlink_metadata(&aside) {
            Ok(_) => continue,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        std::fs::rename(path, &aside)?;
        tracing::error!(path = %path.display(), aside = %aside.display(), "set aside, since it cannot be used");
        return Ok(aside);
    }
    Err(io::Error::other(format!("too many files were set aside beside {}", path.display())))
}

/// Sets a file aside that is opened where it lies, if it cannot be: a directory in its place, or one without its mode.
pub(crate) fn set_aside_unless_usable(path: &Path) -> io::Result<()> {
    if is_plain(path) { Ok(()) } else { set_aside(path).map(drop) }
}

fn try_write_whole(path: &Path, beside: &Path, content: &[u8], lasting: Lasting) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = regular::open_with(&mut options, beside)?;
    file.write_all(content)?;
    if lasting == Lasting::Power {
        file.sync_all()?;
    }
    std::fs::rename(beside, path)?;
    if lasting == Lasting::Power {
        sync_names(path)?;
    }
    Ok(())
}

/// Writes a 0600 file that no process reads before we are done with it, and that is written again if we die.
pub(crate) fn write(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    regular::open_with(&mut options, path)?.write_all(content)
}

/// Reads a file of at most so many bytes. What is no regular file is refused: nothing is waited for, as it would be
/// at the other end of a fifo that was put in its place.
pub(crate) fn read_regular(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    read_at_most(open_regular(path)?, most)
}

/// The same of a file that we made: a link in its place leads to another, and is refused.
pub(crate) fn read_unlinked(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let file = open_with(path, rustix::fs::OFlags::NOFOLLOW).map_err(|error| {
        let is_link = std::fs::symlink_metadata(path).is_ok_and(|it| it.is_symlink());
        if is_link { io::Error::new(io::ErrorKind::InvalidInput, "it is a link") } else { error }
    })?;
    read_at_most(file, most)
}

fn read_at_most(file: File, most: usize) -> io::Result<Vec<u8>> {
    // Room for all of it and for the end, so that most files take one read.
    let length = file.metadata().map_or(0, |found| found.len());
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(most).min(most) + 1);
    file.take(u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() > most {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is bigger than {most} bytes"),
        ));
    }
    Ok(bytes)
}

/// Opens a file to read it, and nothing else: a pipe in its place would make the reader wait.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    open_with(path, rustix::fs::OFlags::empty())
}

fn open_with(path: &Path, more: rustix::fs::OFlags) -> io::Result<File> {
    regular::open_flagged(OpenOptions::new().read(true), more, path)
}

/// The end of a file that may be long, from the start of a line on.
pub(crate) fn read_tail(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let mut file = open_regular(path)?;
    let most = u64::try_from(most).unwrap_or(u64::MAX);
    let from = file.metadata()?.len().saturating_sub(most);
    file.seek(io::SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes)?;
    let first =
        bytes.iter().position(|byte| *byte == b'\n').filter(|_| from > 0).map_or(0, |at| at + 1);
    bytes.drain(..first);
    Ok(bytes)
}

/// Makes files last that were only written; one that is not there was not needed.
pub(crate) fn sync(paths: &[PathBuf]) -> io::Result<()> {
    for path in paths {
        match open_regular(path) {
            Ok(file) => file.sync_all()?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    paths.first().map_or(Ok(()), |path| sync_names(path))
}

/// Makes the name of a file last, and that of the directory it is in, which may be as new.
fn sync_names(path: &Path) -> io::Result<()> {
    path.ancestors().skip(1).take(2).try_for_each(|dir| File::open(dir)?.sync_all())
}

/// Removes a file; one that is gone already is fine.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// The names in a directory; none if there is no such directory.
pub(crate) fn names(dir: &Path) -> io::Result<Vec<std::ffi::OsString>> {
    match again::read_dir(dir) {
        Ok(entries) => entries.map(|entry| Ok(entry?.file_name())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// How much disk a directory takes, as far as it can be read.
pub(crate) fn disk_usage(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;

    let Ok(entries) = again::read_dir(path) else { return 0 };
    entries
        .flatten()
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => disk_usage(&entry.path()),
            Ok(metadata) => metadata.blocks() * 512,
            Err(_) => 0,
        })
        .sum()
}
