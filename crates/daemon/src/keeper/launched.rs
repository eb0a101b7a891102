//! What says that a step was launched when its own files do not.
//!
//! Missing files are no evidence: a directory that is gone may have had a command at work, or may have it
//! still. So a daemon notes in the run's directory, outside of the step's own, which step it is about to
//! launch, and who its main process is once there is one. Before anything is launched the journal, this note,
//! what else is in the step's directory and the kernel are asked, in this order.
//!
//! The note survives our death, and need not survive the machine's: on another boot nothing is launched again.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use outlast_engine::Step;
use serde::{Deserialize, Serialize};

use super::Work;
use crate::world::orphans;
use crate::world::process::Who;

/// A note is written over the last one in one piece, so all are equally long.
const NOTE_BYTES: usize = 96;

/// What is behind a step that has no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Past {
    /// Nothing: it may be launched.
    Unlaunched,
    /// A shim of it is alive and has started nothing.
    Launching,
    /// It may have run, and its records are gone.
    Ran,
}

/// What `launched` holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    /// The name of the step's directory.
    step: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    main: Option<Main>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Main {
    pid: u32,
    start: u64,
}

impl Note {
    pub(super) fn new(step: Step, main: Option<Who>) -> Self {
        let main = main.map(|Who { pid, start }| Main { pid, start });
        Self { step: name(step), main }
    }

    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(0o600).open(path)?;
        self.write_to(&file)
    }

    fn write_to(&self, file: &File) -> io::Result<()> {
        let mut text = serde_json::to_vec(self).map_err(io::Error::other)?;
        assert!(text.len() < NOTE_BYTES, "the numbers in a note are bounded");
        text.resize(NOTE_BYTES - 1, b' ');
        text.push(b'\n');
        file.write_all_at(&text, 0)
    }

    /// `None` if no step of this run was launched by a daemon that takes notes.
    fn read(path: &Path) -> io::Result<Option<Self>> {
        match File::open(path) {
            Ok(file) => Self::read_from(&file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn read_from(file: &File) -> io::Result<Option<Self>> {
        let mut bytes = [0; NOTE_BYTES];
        let text = match file.read_at(&mut bytes, 0) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                return Self::read_from(file);
            }
            read => &bytes[..read?],
        };
        // Made and not written: the disk was full, or a daemon died in between. Nothing is launched before it is.
        // Zeros are bytes that a power loss took: what was launched then was launched on another boot.
        if text.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        serde_json::from_slice(text).map(Some).map_err(io::Error::other)
    }

    fn process(&self) -> Option<Who> {
        self.main.map(|Main { pid, start }| Who { pid, start })
    }

    fn is_for(&self, step: Step) -> bool {
        self.step == name(step)
    }
}

fn name(step: Step) -> String {
    match step {
        Step::Attempt { turn, attempt } => format!("t{turn}.a{attempt}"),
        Step::Errand { errand } => format!("e{errand}"),
    }
}

impl Work {
    /// Notes that the step is about to be launched. Refuses if it has been meanwhile, by a daemon before this one
    /// that has not left yet: the next look finds out what became of it.
    pub(super) fn note_launch(&self) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(self.run_dir().launched())?;
        let known = Note::read_from(&file)?;
        if known.is_some_and(|note| note.is_for(self.task.step) && note.main.is_some()) {
            return Err(io::Error::other("it has been started meanwhile"));
        }
        Note::new(self.task.step, None).write_to(&file)
    }

    /// Notes the step as launched, and who its main process is once that is known.
    pub(super) fn note_launched(&self, main: Option<Who>) -> io::Result<()> {
        Note::new(self.task.step, main).write(&self.run_dir().launched())
    }

    /// The main process as the journal has it.
    pub(super) fn journalled_process(&self) -> Option<Who> {
        let process = self.task.run.held(self.task.step)?.process?;
        Some(Who { pid: process.pid, start: process.start })
    }

    /// The main process as the journal has it, or as the daemon that launched it noted it.
    pub(super) fn known_process(&self) -> Option<Who> {
        self.journalled_process().or_else(|| {
            let note = Note::read(&self.run_dir().launched());
            note.ok().flatten().filter(|note| note.is_for(self.task.step))?.process()
        })
    }

    /// What is behind a step without a record. Asked before each launch, so what is dear is asked only where
    /// something says that a launch was tried before.
    pub(super) fn past(&self) -> io::Result<Past> {
        if self.journalled_process().is_some() {
            return Ok(Past::Ran);
        }
        let (run, dir) = (self.run_dir(), &self.dir);
        let is_tried = match Note::read(&run.launched())? {
            // Its spec was there before the note was.
            Some(note) if note.is_for(self.task.step) => {
                if note.main.is_some() || !dir.spec().try_exists()? {
                    return Ok(Past::Ran);
                }
                true
            }
            Some(_other) => false,
            // A daemon that took no notes may have launched it.
            None => self.task.run.created_at < self.ground.began || !run.0.try_exists()?,
        };
        // A shim makes these for a command that it was told to start, after a record that is gone now.
        let is_there = dir.0.try_exists()?;
        for left in [dir.output(), dir.index(), dir.response()] {
            if is_there && left.try_exists()? {
                return Ok(Past::Ran);
            }
        }
        if !is_tried {
            return Ok(Past::Unlaunched);
        }
        let found = orphans::look(&self.marks(None))?;
        Ok(match (found.tree.is_empty(), found.shims.is_empty()) {
            (true, true) => Past::Unlaunched,
            // It has not come to its lock yet, or has lost its socket: it is asked again.
            (true, false) => Past::Launching,
            (false, _) => Past::Ran,
        })
    }

    pub(super) fn marks(&self, main: Option<Who>) -> orphans::Marks {
        orphans::Marks::new(&self.task.run.id, self.task.step, &self.dir, main)
    }

    fn run_dir(&self) -> outlast_home::layout::RunDir {
        self.ground.layout.run(self.task.run.id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shorter_note_leaves_nothing_of_a_longer_one() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("launched");
        assert_eq!(Note::read(&path).expect("none is none"), None);
        let longest = Step::Attempt { turn: u32::MAX, attempt: u32::MAX };
        let main = Some(Who { pid: u32::MAX, start: u64::MAX });
        for note in [Note::new(longest, main), Note::new(Step::Errand { errand: 3 }, None)] {
            note.write(&path).expect("the directory takes it");
            assert_eq!(Note::read(&path).expect("it can be read"), Some(note));
        }
    }

    #[test]
    fn a_note_that_cannot_be_read_is_not_none() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("launched");
        let put = |bytes: &[u8]| {
            let file = OpenOptions::new().write(true).create(true).truncate(true).open(&path);
            file.and_then(|file| file.write_all_at(bytes, 0)).expect("the directory takes it");
        };
        put(b"{\"step\":");
        assert!(Note::read(&path).is_err());
        // Never written, by us or by a disk that lost its power.
        for unwritten in [&[][..], &[0; NOTE_BYTES]] {
            put(unwritten);
            assert_eq!(Note::read(&path).expect("none is none"), None);
        }
    }
}
