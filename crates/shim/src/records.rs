//! `events.jsonl`: the facts about the attempt, appended in the order they became true.
//!
//! Keeps every record in memory as well, because a full disk must not make the shim forget: what could
//! not be written is still told, and written later. Never rewrites a line, and refuses a file that holds
//! a whole line which it cannot read.
//!
//! What is written survives our own death. Only an end is synced as well, so that it survives the machine's:
//! of everything else a power loss tells enough by changing the boot id.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use outlast_wire::shim::Record;

#[derive(Debug)]
pub(crate) struct Records {
    file: File,
    all: Vec<Record>,
    /// How much of the file is whole lines of ours.
    saved: u64,
    /// Lines that are not in the file yet, all of them or a part.
    unsaved: Vec<u8>,
}

impl Records {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut file = outlast_home::regular::open_with(&mut options, path)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        // A last line without its end was being written when its writer died: it was never said.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if whole < bytes.len() {
            file.set_len(whole as u64)?;
        }
        let all = bytes[..whole]
            .split_inclusive(|byte| *byte == b'\n')
            .map(serde_json::from_slice)
            .collect::<Result<Vec<Record>, _>>()?;
        Ok(Self { file, all, saved: whole as u64, unsaved: Vec::new() })
    }

    pub(crate) fn all(&self) -> &[Record] {
        &self.all
    }

    /// An earlier shim, or we, have settled whether this attempt starts.
    pub(crate) fn is_settled(&self) -> bool {
        self.all
            .iter()
            .any(|record| matches!(record, Record::Starting { .. } | Record::NeverStarted { .. }))
    }

    pub(crate) fn is_saved(&self) -> bool {
        self.unsaved.is_empty()
    }

    /// Remembers the record in any case; an error means that it is not on disk yet.
    pub(crate) fn append(&mut self, record: Record) -> io::Result<()> {
        serde_json::to_writer(&mut self.unsaved, &record)?;
        self.unsaved.push(b'\n');
        self.all.push(record);
        self.write()
    }

    /// Puts on disk what is not there yet, so that it survives the machine.
    pub(crate) fn save(&mut self) -> io::Result<()> {
        self.write()?;
        self.file.sync_data()
    }

    /// Writes at a fixed place, so that a half-written line is written over by the next try.
    fn write(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.unsaved, self.saved)?;
        self.saved += self.unsaved.len() as u64;
        self.unsaved.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn starting() -> Record {
        Record::Starting { at_ms: 1, epoch: 7, booted_at_ms: None }
    }

    #[test]
    fn a_torn_last_line_was_never_said() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("events.jsonl");
        let mut records = Records::open(&path).expect("opens");
        records.append(starting()).expect("writes");
        let mut file = OpenOptions::new().append(true).open(&path).expect("opens");
        file.write_all(br#"{"event":"tree_em"#).expect("writes");

        let mut records = Records::open(&path).expect("opens again");
        assert_eq!(records.all(), [starting()]);
        records.append(Record::TreeEmpty { at_ms: 2 }).expect("writes");
        assert_eq!(
            Records::open(&path).expect("reads").all(),
            [starting(), Record::TreeEmpty { at_ms: 2 }]
        );
    }

    #[test]
    fn an_unreadable_line_is_refused_and_not_skipped() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("events.jsonl");
        let mut file = File::create(&path).expect("creates");
        file.write_all(b"not a record\n").expect("writes");
        assert!(Records::open(&path).is_err());
    }
}
