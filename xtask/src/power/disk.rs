//! What was done to the files of a home, in order: the recording.
//!
//! Names and data are kept apart, as a disk keeps them: a directory's entries are one thing that may be lost,
//! a file's bytes another. At the end the recording is held against the real files, so that a call that it
//! does not know cannot go unnoticed.

use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::trace::{Call, Named};

pub(super) type Inode = usize;

/// The home itself.
pub(super) const ROOT: Inode = 0;

#[derive(Debug)]
pub(super) enum What {
    /// A name for a new file, a new directory, or (a hard link) a file that is there already.
    Make {
        directory: Inode,
        name: OsString,
        inode: Inode,
    },
    Rename {
        from: (Inode, OsString),
        to: (Inode, OsString),
    },
    Remove {
        directory: Inode,
        name: OsString,
    },
    Write {
        inode: Inode,
        at: usize,
        data: Vec<u8>,
    },
    Punch {
        inode: Inode,
        at: usize,
        length: usize,
    },
    Truncate {
        inode: Inode,
        length: usize,
    },
    Sync {
        inode: Inode,
    },
    /// A sync that came back with an error.
    SyncFailed {
        inode: Inode,
    },
    /// A client was told something, from which it follows that it must be there after any cut.
    Told(Value),
}

#[derive(Debug)]
pub(super) struct Op {
    pub(super) what: What,
    /// So many operations had ended when this one began: what a sync covers.
    pub(super) after: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    File,
    Directory,
}

/// A directory's entries while the recording is read.
type Entries = BTreeMap<OsString, Inode>;

pub(super) struct Disk {
    home: PathBuf,
    /// Where clients write down what they were told, and the command of a sink what it was.
    told: [PathBuf; 2],
    pub(super) ops: Vec<Op>,
    pub(super) kinds: Vec<Kind>,
    /// The line on which each operation ended.
    ended: Vec<usize>,
    entries: HashMap<Inode, Entries>,
    lengths: Vec<usize>,
    /// Where the next plain write goes, if a seek has said so; at the end otherwise.
    positions: HashMap<Inode, usize>,
    removed: HashMap<PathBuf, Inode>,
}

impl Disk {
    /// `home` as it is before the recording, which is taken to be on disk.
    pub(super) fn new(home: &Path, told: [PathBuf; 2]) -> Result<Self> {
        let mut disk = Self {
            home: home.to_owned(),
            told,
            ops: Vec::new(),
            kinds: vec![Kind::Directory],
            ended: Vec::new(),
            entries: HashMap::from([(ROOT, Entries::new())]),
            lengths: vec![0],
            positions: HashMap::new(),
            removed: HashMap::new(),
        };
        for entry in fs::read_dir(home).context("the home before the recording")? {
            let entry = entry?;
            ensure!(entry.file_type()?.is_file(), "the home has a directory already");
            let inode = disk.make(ROOT, entry.file_name(), Kind::File);
            let data = fs::read(entry.path())?;
            disk.lengths[inode] = data.len();
            disk.push(What::Write { inode, at: 0, data });
            disk.push(What::Sync { inode });
        }
        disk.push(What::Sync { inode: ROOT });
        disk.ended = vec![0; disk.ops.len()];
        Ok(disk)
    }

    /// Takes in one call, if it did anything to the home.
    pub(super) fn take(&mut self, call: &Call) -> Result<()> {
        let before = self.ops.len();
        self.understand(call).with_context(|| format!("line {}: {}", call.ended, call.name))?;
        // What had ended by the time this call began; several calls may be under way at once.
        let after = self.ended.partition_point(|line| *line < call.began);
        for op in &mut self.ops[before..] {
            op.after = after;
        }
        self.ended.resize(self.ops.len(), call.ended);
        Ok(())
    }

    fn understand(&mut self, call: &Call) -> Result<()> {
        let is_sync = matches!(call.name.as_str(), "fsync" | "fdatasync");
        let Some(returned) = call.returned() else {
            if let Some(inode) = self.of(call.file(0).ok().flatten().filter(|_| is_sync))? {
                self.push(What::SyncFailed { inode });
            }
            return Ok(());
        };
        match call.name.as_str() {
            "openat" => self.open(call, 2),
            "open" => self.open(call, 1),
            "write" | "writev" => self.write(call, None, returned),
            "pwrite64" | "pwritev" | "pwritev2" => {
                self.write(call, Some(usize::try_from(call.number(3)?)?), returned)
            }
            "lseek" => {
                if let Some(inode) = self.of(call.file(0)?)? {
                    self.positions.insert(inode, usize::try_from(returned)?);
                }
                Ok(())
            }
            "ftruncate" => {
                let Some(inode) = self.of(call.file(0)?)? else { return Ok(()) };
                self.truncate(inode, usize::try_from(call.number(1)?)?);
                Ok(())
            }
            "fallocate" => self.fallocate(call),
            "fsync" | "fdatasync" => {
                if let Some(inode) = self.of(call.file(0)?)? {
                    self.push(What::Sync { inode });
                }
                Ok(())
            }
            "mkdir" => self.mkdir(call.path(0)?),
            "mkdirat" => self.mkdir(call.path_at(0)?),
            "rename" => self.rename(call.path(0)?, call.path(1)?),
            "renameat" | "renameat2" => self.rename(call.path_at(0)?, call.path_at(2)?),
            "link" => self.link(call.path(0)?, call.path(1)?),
            "linkat" => self.link(call.path_at(0)?, call.path_at(2)?),
            "unlink" | "rmdir" => self.remove(call.path(0)?),
            "unlinkat" => self.remove(call.path_at(0)?),
            other => {
                let touches = call.args.iter().any(|arg| {
                    let named = super::trace::named(arg).ok().flatten();
                    named.is_some_and(|named| named.path.starts_with(&self.home))
                });
                ensure!(!touches, "{other} of a file of the home is not understood");
                Ok(())
            }
        }
    }

    fn open(&mut self, call: &Call, flags: usize) -> Result<()> {
        let flags = call.arg(flags)?;
        let Some(named) = super::trace::named(&call.result)? else { return Ok(()) };
        let Some((directory, name)) = self.place(&named.path)? else { return Ok(()) };
        match self.entries[&directory].get(&name).copied() {
            Some(inode) => {
                self.positions.remove(&inode);
                if flags.contains("O_TRUNC") {
                    self.truncate(inode, 0);
                }
            }
            None if flags.contains("O_CREAT") => {
                self.make(directory, name, Kind::File);
            }
            None => bail!("{} was not seen to be made", named.path.display()),
        }
        Ok(())
    }

    fn write(&mut self, call: &Call, at: Option<usize>, written: u64) -> Result<()> {
        let Some(named) = call.file(0)? else { return Ok(()) };
        if self.told.contains(&named.path) {
            for line in call.data(1)?.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
                let told = serde_json::from_slice(line).context("what a client was told")?;
                self.push(What::Told(told));
            }
            return Ok(());
        }
        let Some(inode) = self.of(Some(named))? else { return Ok(()) };
        let mut data = call.data(1)?;
        data.truncate(usize::try_from(written)?);
        let at = at.unwrap_or_else(|| {
            let position = self.positions.get_mut(&inode);
            position.map_or(self.lengths[inode], |at| std::mem::replace(at, *at + data.len()))
        });
        self.lengths[inode] = self.lengths[inode].max(at + data.len());
        self.push(What::Write { inode, at, data });
        Ok(())
    }

    fn truncate(&mut self, inode: Inode, length: usize) {
        if self.lengths[inode] != length {
            self.lengths[inode] = length;
            self.push(What::Truncate { inode, length });
        }
    }

    fn fallocate(&mut self, call: &Call) -> Result<()> {
        let Some(inode) = self.of(call.file(0)?)? else { return Ok(()) };
        let (at, length) = (usize::try_from(call.number(2)?)?, usize::try_from(call.number(3)?)?);
        if call.arg(1)?.contains("PUNCH_HOLE") {
            self.push(What::Punch { inode, at, length });
        } else if !call.arg(1)?.contains("KEEP_SIZE") {
            self.truncate(inode, self.lengths[inode].max(at + length));
        }
        Ok(())
    }

    fn mkdir(&mut self, path: Option<PathBuf>) -> Result<()> {
        let Some((directory, name)) = self.place_of(path)? else { return Ok(()) };
        self.make(directory, name, Kind::Directory);
        Ok(())
    }

    fn rename(&mut self, from: Option<PathBuf>, to: Option<PathBuf>) -> Result<()> {
        let (from, to) = (self.place_of(from)?, self.place_of(to)?);
        match (from, to) {
            (None, None) => Ok(()),
            (Some(from), Some(to)) => {
                let moved = self.entries.get_mut(&from.0).and_then(|names| names.remove(&from.1));
                let moved = moved.context("what is renamed was not seen to be made")?;
                self.entries.entry(to.0).or_default().insert(to.1.clone(), moved);
                self.push(What::Rename { from, to });
                Ok(())
            }
            _ => bail!("a rename into or out of the home"),
        }
    }

    fn link(&mut self, from: Option<PathBuf>, to: Option<PathBuf>) -> Result<()> {
        let (from, to) = (self.place_of(from)?, self.place_of(to)?);
        let Some((directory, name)) = to else { return Ok(()) };
        let (of, known) = from.context("a link into the home")?;
        let inode = self.entries[&of].get(&known).copied().context("a link to an unknown file")?;
        self.entries.entry(directory).or_default().insert(name.clone(), inode);
        self.push(What::Make { directory, name, inode });
        Ok(())
    }

    fn remove(&mut self, path: Option<PathBuf>) -> Result<()> {
        let Some((directory, name)) = self.place_of(path.clone())? else { return Ok(()) };
        // A socket is made by `bind` and is not recorded: it means nothing after a boot.
        let gone = self.entries.get_mut(&directory).and_then(|names| names.remove(&name));
        if let (Some(inode), Some(path)) = (gone, path) {
            self.removed.insert(path, inode);
            self.push(What::Remove { directory, name });
        }
        Ok(())
    }

    fn make(&mut self, directory: Inode, name: OsString, kind: Kind) -> Inode {
        let inode = self.kinds.len();
        self.kinds.push(kind);
        self.lengths.push(0);
        if kind == Kind::Directory {
            self.entries.insert(inode, Entries::new());
        }
        self.entries.entry(directory).or_default().insert(name.clone(), inode);
        self.push(What::Make { directory, name, inode });
        inode
    }

    fn push(&mut self, what: What) {
        self.ops.push(Op { what, after: self.ops.len() });
    }

    /// The file of the home that a descriptor stands for.
    fn of(&self, named: Option<Named>) -> Result<Option<Inode>> {
        let Some(named) = named else { return Ok(None) };
        if named.path == self.home {
            return Ok(Some(ROOT));
        }
        let Some((directory, name)) = self.place(&named.path)? else { return Ok(None) };
        let known = self.entries[&directory].get(&name).copied().filter(|_| !named.is_deleted);
        let known = known.or_else(|| self.removed.get(&named.path).copied());
        known.map(Some).with_context(|| format!("{} was not seen to be made", named.path.display()))
    }

    fn place_of(&self, path: Option<PathBuf>) -> Result<Option<(Inode, OsString)>> {
        path.map_or(Ok(None), |path| self.place(&path))
    }

    /// The directory and the name of a path within the home; `None` for what lies elsewhere or has no
    /// directory, and for SQLite's shared memory, which is written without calls and is made anew.
    fn place(&self, path: &Path) -> Result<Option<(Inode, OsString)>> {
        let Ok(within) = path.strip_prefix(&self.home) else { return Ok(None) };
        let Some(name) = within.file_name().filter(|name| !is_shared_memory(name)) else {
            return Ok(None);
        };
        let mut directory = ROOT;
        for part in within.parent().into_iter().flat_map(Path::components) {
            let names =
                self.entries.get(&directory).context("a file where a directory is meant")?;
            let Some(inode) = names.get(part.as_os_str()) else { return Ok(None) };
            directory = *inode;
        }
        Ok(self.entries.contains_key(&directory).then(|| (directory, name.to_owned())))
    }

    /// Holds what was recorded against what is there.
    pub(super) fn verify(&self) -> Result<()> {
        let mut contents: HashMap<Inode, Vec<u8>> = HashMap::new();
        for op in &self.ops {
            apply(&mut contents, &op.what);
        }
        self.verify_directory(ROOT, &self.home, &contents)
    }

    fn verify_directory(
        &self,
        directory: Inode,
        path: &Path,
        contents: &HashMap<Inode, Vec<u8>>,
    ) -> Result<()> {
        let mut seen = Entries::new();
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            let (name, kind) = (entry.file_name(), entry.file_type()?);
            if kind.is_socket() || is_shared_memory(&name) {
                continue;
            }
            let at = entry.path();
            let inode = self.entries[&directory].get(&name).copied();
            let inode = inode.with_context(|| format!("{} was not recorded", at.display()))?;
            if kind.is_dir() {
                self.verify_directory(inode, &at, contents)?;
            } else {
                let recorded = contents.get(&inode).map_or(&[][..], Vec::as_slice);
                let real = fs::read(&at)?;
                ensure!(real == recorded, "{} is not as it was recorded", at.display());
            }
            seen.insert(name, inode);
        }
        ensure!(
            seen == self.entries[&directory],
            "{} holds {seen:?}, and was recorded with {:?}",
            path.display(),
            self.entries[&directory]
        );
        Ok(())
    }
}

fn is_shared_memory(name: &OsStr) -> bool {
    name.as_encoded_bytes().ends_with(b"-shm")
}

fn apply(contents: &mut HashMap<Inode, Vec<u8>>, what: &What) {
    match what {
        What::Write { inode, at, data } => put(contents.entry(*inode).or_default(), *at, data),
        What::Punch { inode, at, length } => {
            punch(contents.entry(*inode).or_default(), *at, *length);
        }
        What::Truncate { inode, length } => contents.entry(*inode).or_default().resize(*length, 0),
        What::Make { .. }
        | What::Rename { .. }
        | What::Remove { .. }
        | What::Sync { .. }
        | What::SyncFailed { .. }
        | What::Told(_) => {}
    }
}

pub(super) fn put(content: &mut Vec<u8>, at: usize, data: &[u8]) {
    let end = at + data.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[at..end].copy_from_slice(data);
}

pub(super) fn punch(content: &mut [u8], at: usize, length: usize) {
    let end = (at + length).min(content.len());
    if at < end {
        content[at..end].fill(0);
    }
}

/// True for the header that SQLite writes when it begins its write-ahead log anew.
pub(super) fn begins_log(what: &What) -> bool {
    matches!(what, What::Write { at: 0, data, .. } if data.starts_with(&[0x37, 0x7f, 0x06]))
}
