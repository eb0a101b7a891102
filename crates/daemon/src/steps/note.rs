//! What says that a step was launched when its own files do not.
//!
//! Missing files are no evidence: a directory that is gone may have had a command at work, or may have it
//! still. So a daemon notes in the run's directory, outside of the step's own, which step it is about to
//! launch, and who its main process is once there is one. What the monitor makes of it is in
//! `outlast_conduct::steps`.
//!
//! The note survives our death, and need not survive the machine's: on another boot nothing is launched again.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use outlast_conduct::steps::{Evidence, Note as Known, Trouble, Who as Main};
use outlast_engine::Step;
use outlast_home::layout::RunDir;
use outlast_wire::again;
use serde::{Deserialize, Serialize};

use super::{Driver, conduct_who, who};
use crate::world::host;
use crate::world::process::Who;

/// A note is written over the last one in one piece, so all are equally long.
const NOTE_BYTES: usize = 96;

/// What `launched` holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Note {
    /// The name of the step's directory.
    step: String,
    /// The epoch of the daemon that was about to launch it. Not said with `main`, for which a note has no room left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    epoch: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    main: Option<Process>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Process {
    pid: u32,
    start: u64,
}

impl Note {
    fn launch(step: Step, epoch: u64) -> Self {
        Self { step: name(step), epoch: Some(epoch), main: None }
    }

    fn started(step: Step, Who { pid, start }: Who) -> Self {
        Self { step: name(step), epoch: None, main: Some(Process { pid, start }) }
    }

    /// True if the step has been launched by another daemon meanwhile: it has run, or that daemon has replaced this one.
    fn is_launched_since(&self, step: Step, epoch: u64) -> bool {
        self.is_for(step) && (self.main.is_some() || self.epoch.is_some_and(|its| its > epoch))
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = outlast_home::regular::open_with(&mut options, path)?;
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
        match outlast_home::regular::open(path) {
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
        self.main.map(|Process { pid, start }| Who { pid, start })
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

/// Whether a launch was noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Noted {
    Launch,
    /// Another daemon has launched the step, or is about to.
    Superseded,
}

impl Driver {
    /// Notes that the step is about to be launched, unless another daemon has launched it meanwhile.
    pub(super) fn note_launch(&self) -> io::Result<Noted> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = outlast_home::regular::open_with(&mut options, &self.run_dir().launched())?;
        // Nothing is between reading and writing: a daemon that was replaced may be at it, too.
        match again::try_lock(&file) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Noted::Superseded),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        let (step, epoch) = (self.task.step, self.ground.epoch);
        if Note::read_from(&file)?.is_some_and(|note| note.is_launched_since(step, epoch)) {
            return Ok(Noted::Superseded);
        }
        Note::launch(step, epoch).write_to(&file)?;
        Ok(Noted::Launch)
    }

    /// True if something says that the step may have run, or that another daemon has launched it meanwhile.
    pub(super) fn has_been_launched(&self) -> io::Result<bool> {
        let (step, epoch) = (self.task.step, self.ground.epoch);
        let note = Note::read(&self.run_dir().launched())?;
        let is_noted = note.is_some_and(|note| note.is_launched_since(step, epoch));
        Ok(is_noted || self.try_gather()?.may_have_run())
    }

    /// Notes who the step's main process is.
    pub(super) fn note_main(&self, main: Main) {
        let note = Note::started(self.task.step, who(main));
        if let Err(error) = note.write(&self.run_dir().launched()) {
            // The journal is about to know it, too.
            tracing::warn!(run = %self.task.run.id, %error, "cannot note the main process of a step");
        }
    }

    /// The main process, as the daemon that launched the step noted it.
    pub(super) fn noted(&self) -> Option<Main> {
        let note = Note::read(&self.run_dir().launched()).ok().flatten();
        note.filter(|note| note.is_for(self.task.step))?.process().map(conduct_who)
    }

    /// What says that a step without a record was launched.
    pub(super) fn gather_evidence(&self) -> Result<Evidence, Trouble> {
        self.try_gather()
            .map_err(|error| Trouble::of_file(host::failure(&error), error.to_string()))
    }

    fn try_gather(&self) -> io::Result<Evidence> {
        let (run, dir) = (self.run_dir(), &self.dir);
        let note = match Note::read(&run.launched())? {
            Some(note) if note.is_for(self.task.step) => {
                note.process().map_or(Known::Launch, |main| Known::Main(conduct_who(main)))
            }
            Some(_other) => Known::Other,
            None => Known::None,
        };
        let is_there = dir.0.try_exists()?;
        let mut has_leftovers = false;
        for left in [dir.output(), dir.index(), dir.response()] {
            has_leftovers |= is_there && left.try_exists()?;
        }
        let (has_run_dir, has_spec) = (run.0.try_exists()?, is_there && dir.spec().try_exists()?);
        Ok(Evidence { note, has_run_dir, has_spec, has_leftovers })
    }

    fn run_dir(&self) -> RunDir {
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
        let main = Who { pid: u32::MAX, start: u64::MAX };
        let errand = Step::Errand { errand: 3 };
        let notes = [
            Note::started(longest, main),
            Note::launch(longest, u64::MAX),
            Note::launch(errand, 1),
        ];
        for note in notes {
            note.write(&path).expect("the directory takes it");
            assert_eq!(Note::read(&path).expect("it can be read"), Some(note));
        }
    }

    #[test]
    fn a_daemon_that_was_replaced_launches_nothing_that_its_follower_has() {
        let (step, other) = (Step::Errand { errand: 3 }, Step::Errand { errand: 4 });
        assert!(Note::launch(step, 8).is_launched_since(step, 7));
        assert!(!Note::launch(step, 7).is_launched_since(step, 7), "its own try");
        assert!(!Note::launch(step, 6).is_launched_since(step, 7), "that of the daemon before it");
        assert!(!Note::launch(other, 8).is_launched_since(step, 7));
        assert!(Note::started(step, Who { pid: 1, start: 2 }).is_launched_since(step, 9));
        let old = serde_json::from_str::<Note>(r#"{"step":"e3"}"#).expect("written by 0.1");
        assert!(!old.is_launched_since(step, 7));
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
