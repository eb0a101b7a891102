//! What a disk may hold after the power went at one point of a recording.
//!
//! What a completed sync covers is there. Of what came later, a seed chooses: nothing, everything, a part up
//! to some sector, or any sectors in any order. Names follow one of two rules, [`Names`].

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;

use serde_json::Value;

use super::disk::{Disk, Inode, Kind, ROOT, What, punch, put};
use crate::random::Random;

/// Which names survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Names {
    /// As on ext4, xfs or btrfs: one journal for all names, which any sync writes out up to its own point.
    Journalled,
    /// As POSIX promises: a name lasts once its directory was synced, and no other sync helps.
    Posix,
}

/// How much of what was not synced survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Luck {
    Nothing,
    Everything,
    /// Up to some sector of each file.
    Torn,
    /// Any sectors; so many of a hundred are kept.
    Sectors(u64),
}

const SECTOR: usize = 512;
const PAGE: usize = 4096;

/// What a sync is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syncs {
    Count,
    /// A disk that lies. The audit must find that acknowledgements are lost, or cannot look.
    Lie,
}

/// Walks through a recording, and gives what may be left at each point of it.
pub(super) struct Replay<'a> {
    disk: &'a Disk,
    syncs: Syncs,
    /// So many operations have ended.
    at: usize,
    files: HashMap<Inode, File>,
    /// Operations on names, in order.
    renamed: Vec<usize>,
    /// Names below this are on disk, under [`Names::Journalled`].
    journalled: usize,
    /// The same for each directory, under [`Names::Posix`].
    synced: HashMap<Inode, usize>,
    pub(super) told: Vec<&'a Value>,
}

/// A file's bytes: what is on disk for certain, and what was written since.
#[derive(Debug, Default)]
struct File {
    certain: Vec<u8>,
    pending: Vec<usize>,
}

impl<'a> Replay<'a> {
    pub(super) fn new(disk: &'a Disk, syncs: Syncs) -> Self {
        Self {
            disk,
            syncs,
            at: 0,
            files: HashMap::new(),
            renamed: Vec::new(),
            journalled: 0,
            synced: HashMap::new(),
            told: Vec::new(),
        }
    }

    /// Goes on to the point where so many operations have ended.
    pub(super) fn advance(&mut self, to: usize) {
        while self.at < to {
            self.step(self.at);
            self.at += 1;
        }
    }

    fn step(&mut self, at: usize) {
        let op = &self.disk.ops[at];
        match &op.what {
            What::Make { .. } | What::Rename { .. } | What::Remove { .. } => self.renamed.push(at),
            What::Write { inode, .. }
            | What::Punch { inode, .. }
            | What::Truncate { inode, .. } => {
                self.files.entry(*inode).or_default().pending.push(at);
            }
            What::Sync { inode } if self.syncs == Syncs::Count => self.sync(*inode, op.after),
            What::Sync { .. } => {}
            What::SyncFailed { inode } => self.sync_failed(*inode, op.after),
            What::Told(told) => self.told.push(told),
        }
    }

    fn sync(&mut self, inode: Inode, covers: usize) {
        self.journalled = self.journalled.max(covers);
        match self.disk.kinds[inode] {
            Kind::Directory => {
                let mark = self.synced.entry(inode).or_default();
                *mark = covers.max(*mark);
            }
            Kind::File => {
                let file = self.files.entry(inode).or_default();
                let split = file.pending.partition_point(|op| *op < covers);
                for op in file.pending.drain(..split) {
                    keep(&mut file.certain, &self.disk.ops[op].what);
                }
            }
        }
    }

    /// The kernel has given up on these bytes and forgets that they were to be written: no later sync writes
    /// them, unless they are written anew.
    fn sync_failed(&mut self, inode: Inode, covers: usize) {
        let ops = &self.disk.ops;
        let is_forgotten = |op: &usize| *op < covers && matches!(ops[*op].what, What::Write { .. });
        if let Some(file) = self.files.get_mut(&inode) {
            file.pending.retain(|op| !is_forgotten(op));
        }
    }

    /// One of the disks that may be found if the power goes now.
    pub(super) fn cut(&self, names: Names, luck: Luck, seed: u64) -> Image<'_, 'a> {
        let mut random = Random::new(seed);
        let directories = match names {
            Names::Journalled => self.journalled_names(luck, &mut random),
            Names::Posix => self.posix_names(luck, &mut random),
        };
        Image { replay: self, directories, luck, seed: random.next() }
    }

    fn journalled_names(&self, luck: Luck, random: &mut Random) -> Directories {
        let certain = self.renamed.partition_point(|op| *op < self.journalled);
        let survived = survivors(certain, self.renamed.len(), luck, random);
        self.renamed[..survived].iter().fold(Directories::default(), |mut names, op| {
            names.apply(&self.disk.ops[*op].what);
            names
        })
    }

    fn posix_names(&self, luck: Luck, random: &mut Random) -> Directories {
        // Each directory has a point of its own up to which its names are there.
        let mut marks: BTreeMap<Inode, usize> = BTreeMap::new();
        for op in &self.renamed {
            let directory = home_of(&self.disk.ops[*op].what);
            marks.entry(directory).or_insert_with(|| {
                let certain = self.synced.get(&directory).copied().unwrap_or(0);
                survivors(certain.min(self.at), self.at, luck, random)
            });
        }
        let is_there = |op: &&usize| marks[&home_of(&self.disk.ops[**op].what)] > **op;
        self.renamed.iter().filter(is_there).fold(Directories::default(), |mut names, op| {
            names.apply(&self.disk.ops[*op].what);
            names
        })
    }

    fn content(&self, inode: Inode, luck: Luck, seed: u64) -> Vec<u8> {
        let Some(file) = self.files.get(&inode) else { return Vec::new() };
        let mut content = file.certain.clone();
        let mut random = Random::new(seed ^ (inode as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let pending = file.pending.iter().map(|op| &self.disk.ops[*op].what);
        match luck {
            Luck::Nothing => {}
            Luck::Everything => pending.for_each(|what| keep(&mut content, what)),
            Luck::Torn => tear(&mut content, &pending.collect::<Vec<_>>(), &mut random),
            Luck::Sectors(percent) => {
                scatter(&mut content, &pending.collect::<Vec<_>>(), percent, &mut random);
            }
        }
        content
    }
}

/// So many of the operations survive, of which `certain` do anyway.
fn survivors(certain: usize, all: usize, luck: Luck, random: &mut Random) -> usize {
    match luck {
        Luck::Nothing => certain,
        Luck::Everything => all,
        Luck::Torn | Luck::Sectors(_) => certain + below(random, all - certain + 1),
    }
}

fn keep(content: &mut Vec<u8>, what: &What) {
    match what {
        What::Write { at, data, .. } => put(content, *at, data),
        What::Punch { at, length, .. } => punch(content, *at, *length),
        What::Truncate { length, .. } => content.resize(*length, 0),
        What::Make { .. }
        | What::Rename { .. }
        | What::Remove { .. }
        | What::Sync { .. }
        | What::SyncFailed { .. }
        | What::Told(_) => unreachable!("only what changes a file is pending for it"),
    }
}

/// Everything up to one write, of which only the first sectors came through.
fn tear(content: &mut Vec<u8>, pending: &[&What], random: &mut Random) {
    if pending.is_empty() {
        return;
    }
    let whole = below(random, pending.len() + 1);
    pending[..whole].iter().for_each(|what| keep(content, what));
    if let Some(What::Write { at, data, .. }) = pending.get(whole) {
        // A disk writes a sector whole or not at all.
        let end = (at + below(random, data.len() + 1)) / SECTOR * SECTOR;
        put(content, *at, &data[..end.saturating_sub(*at)]);
    }
}

/// Any sectors of any write. A file is cut or not; what was written after a cut that is lost is lost, too,
/// because it went to other places of the disk.
fn scatter(content: &mut Vec<u8>, pending: &[&What], percent: u64, random: &mut Random) {
    let size = if random.below(2) == 0 { SECTOR } else { PAGE };
    let mut longest = content.len();
    for what in pending {
        match what {
            What::Write { at, data, .. } => {
                longest = longest.max(at + data.len());
                let mut from = 0;
                while from < data.len() {
                    let to = data.len().min(((at + from) / size + 1) * size - at);
                    if random.below(100) < percent {
                        put(content, at + from, &data[from..to]);
                    }
                    from = to;
                }
            }
            What::Truncate { .. } if random.below(100) >= percent => break,
            other => keep(content, other),
        }
    }
    // The new length without the bytes: what some file systems leave of a write at the end.
    if random.below(4) == 0 && longest > content.len() {
        content.resize(longest, 0);
    }
}

fn below(random: &mut Random, below: usize) -> usize {
    usize::try_from(random.below(below as u64)).expect("below an usize")
}

/// The directory that an operation on a name belongs to.
fn home_of(what: &What) -> Inode {
    match what {
        What::Make { directory, .. } | What::Remove { directory, .. } => *directory,
        What::Rename { to, .. } => to.0,
        What::Write { .. }
        | What::Punch { .. }
        | What::Truncate { .. }
        | What::Sync { .. }
        | What::SyncFailed { .. }
        | What::Told(_) => unreachable!("these change no name"),
    }
}

/// The names that survived.
#[derive(Debug, Default)]
struct Directories(HashMap<Inode, BTreeMap<OsString, Inode>>);

impl Directories {
    fn apply(&mut self, what: &What) {
        match what {
            What::Make { directory, name, inode } => {
                self.0.entry(*directory).or_default().insert(name.clone(), *inode);
            }
            What::Remove { directory, name } => {
                self.0.entry(*directory).or_default().remove(name);
            }
            What::Rename { from, to } => {
                // Its old name may not have survived; then there is nothing to rename.
                let moved = self.0.entry(from.0).or_default().remove(&from.1);
                if let Some(inode) = moved {
                    self.0.entry(to.0).or_default().insert(to.1.clone(), inode);
                }
            }
            What::Write { .. }
            | What::Punch { .. }
            | What::Truncate { .. }
            | What::Sync { .. }
            | What::SyncFailed { .. }
            | What::Told(_) => unreachable!("these change no name"),
        }
    }
}

/// A disk after a cut.
pub(super) struct Image<'r, 'a> {
    replay: &'r Replay<'a>,
    directories: Directories,
    luck: Luck,
    seed: u64,
}

impl Image<'_, '_> {
    /// A file's bytes, by its path within the home; `None` if no such name is left.
    pub(super) fn read(&self, path: &str) -> Option<Vec<u8>> {
        let mut inode = ROOT;
        for part in path.split('/') {
            inode = *self.directories.0.get(&inode)?.get(std::ffi::OsStr::new(part))?;
        }
        Some(self.replay.content(inode, self.luck, self.seed))
    }

    /// Every name that is left: a directory, or a file with its bytes.
    pub(super) fn all(&self) -> Vec<(PathBuf, Option<Vec<u8>>)> {
        let mut found = Vec::new();
        self.collect(ROOT, &PathBuf::new(), &mut found);
        found
    }

    fn collect(
        &self,
        directory: Inode,
        at: &std::path::Path,
        found: &mut Vec<(PathBuf, Option<Vec<u8>>)>,
    ) {
        for (name, inode) in self.directories.0.get(&directory).into_iter().flatten() {
            let path = at.join(name);
            match self.replay.disk.kinds[*inode] {
                Kind::Directory => {
                    found.push((path.clone(), None));
                    self.collect(*inode, &path, found);
                }
                Kind::File => {
                    let content = self.replay.content(*inode, self.luck, self.seed);
                    found.push((path, Some(content)));
                }
            }
        }
    }
}
