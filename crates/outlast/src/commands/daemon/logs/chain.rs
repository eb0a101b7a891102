//! The files of the log as one: `daemon.log.2`, `daemon.log.1`, `daemon.log`, also while they are turned over.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const CHUNK: u64 = 64 << 10;

/// No line is longer: more without a break is shown as it is.
const LONGEST_LINE: usize = 1 << 20;

/// A chain is never longer than this.
const MOST_FILES: u32 = 1000;

pub(super) struct Chain {
    path: PathBuf,
}

/// What there is to read next.
pub(super) enum Next {
    Lines(Vec<Vec<u8>>),
    /// The file that was being read is gone, and perhaps others after it.
    Gap,
    Nothing,
}

impl Chain {
    pub(super) fn of(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// Every file that there is, the oldest first. Opened from the newest on, so that one that becomes older
    /// meanwhile is met twice and not missed.
    pub(super) fn open(&self) -> io::Result<Vec<Reader>> {
        let mut readers: Vec<Reader> = Vec::new();
        let mut seen = BTreeSet::new();
        for number in 0..MOST_FILES {
            match Reader::open(&self.file(number)) {
                Ok(reader) if seen.insert(reader.identity) => readers.push(reader),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::NotFound && number > 0 => break,
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        readers.reverse();
        Ok(readers)
    }

    fn file(&self, number: u32) -> PathBuf {
        match number {
            0 => self.path.clone(),
            _ => self.path.with_extension(format!("log.{number}")),
        }
    }

    /// What has come since, in the file that was being read or in the one after it.
    pub(super) fn more(&self, current: &mut Option<Reader>) -> io::Result<Next> {
        let Some(reader) = current else {
            *current = self.open()?.into_iter().next();
            return Ok(Next::Nothing);
        };
        let lines = reader.lines()?;
        if !lines.is_empty() {
            return Ok(Next::Lines(lines));
        }
        if !self.is_past(reader)? {
            reader.rewind_if_cut()?;
            return Ok(Next::Nothing);
        }
        // It was turned over after the look above, and nothing is added to it any more.
        let lines = reader.lines()?;
        if !lines.is_empty() {
            return Ok(Next::Lines(lines));
        }
        if let Some(rest) = reader.rest() {
            return Ok(Next::Lines(vec![rest]));
        }
        let mut files = self.open()?;
        let at = files.iter().position(|file| file.identity == reader.identity);
        let next = at.map_or(0, |at| at + 1);
        if next < files.len() {
            *current = Some(files.swap_remove(next));
        }
        Ok(if at.is_some() { Next::Nothing } else { Next::Gap })
    }

    /// True once another file stands where this one did.
    fn is_past(&self, reader: &Reader) -> io::Result<bool> {
        match std::fs::metadata(&self.path) {
            Ok(now) => Ok((now.dev(), now.ino()) != reader.identity),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// One file, line by line.
pub(super) struct Reader {
    file: File,
    identity: (u64, u64),
    /// The beginning of a line whose end has not come.
    begun: Vec<u8>,
}

impl Reader {
    fn open(path: &Path) -> io::Result<Self> {
        let file = outlast_home::regular::open(path)?;
        let metadata = file.metadata()?;
        Ok(Self { file, identity: (metadata.dev(), metadata.ino()), begun: Vec::new() })
    }

    /// Some whole lines, without their ends; none if there are no more for now.
    pub(super) fn lines(&mut self) -> io::Result<Vec<Vec<u8>>> {
        loop {
            let mut chunk = Vec::new();
            (&mut self.file).take(CHUNK).read_to_end(&mut chunk)?;
            if chunk.is_empty() {
                return Ok(Vec::new());
            }
            self.begun.append(&mut chunk);
            let Some(end) = self.begun.iter().rposition(|byte| *byte == b'\n') else {
                if self.begun.len() > LONGEST_LINE {
                    return Ok(vec![std::mem::take(&mut self.begun)]);
                }
                continue;
            };
            let begun = self.begun.split_off(end + 1);
            let whole = std::mem::replace(&mut self.begun, begun);
            return Ok(whole[..end].split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect());
        }
    }

    /// What stands after the last end of a line.
    pub(super) fn rest(&mut self) -> Option<Vec<u8>> {
        let rest = std::mem::take(&mut self.begun);
        (!rest.is_empty()).then_some(rest)
    }

    /// A file that another process has cut short is read again from its start.
    fn rewind_if_cut(&mut self) -> io::Result<()> {
        if self.file.metadata()?.len() < self.file.stream_position()? {
            self.begun.clear();
            self.file.seek(SeekFrom::Start(0))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use super::*;

    fn append(path: &Path, text: &str) {
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(text.as_bytes())).expect("it is ours");
    }

    fn all(reader: &mut Reader) -> Vec<String> {
        let mut all = Vec::new();
        loop {
            let lines = reader.lines().expect("it can be read");
            if lines.is_empty() {
                return all;
            }
            all.extend(lines.into_iter().map(|line| String::from_utf8(line).expect("text")));
        }
    }

    #[test]
    fn a_line_is_shown_once_it_is_whole() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("daemon.log");
        append(&path, "one\ntw");
        let mut reader = Reader::open(&path).expect("it is there");
        assert_eq!(all(&mut reader), ["one"]);
        append(&path, "o\n\nthree\n");
        assert_eq!(all(&mut reader), ["two", "", "three"]);
        let long = "x".repeat(200_000);
        append(&path, &format!("{long}\nend"));
        assert_eq!(all(&mut reader), [long]);
        assert_eq!(reader.rest().as_deref(), Some(&b"end"[..]));
        assert_eq!(reader.rest(), None);
    }

    #[test]
    fn nothing_is_missed_or_shown_twice_when_files_are_turned_over() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("daemon.log");
        let older = |number: u32| path.with_extension(format!("log.{number}"));
        append(&path, "0\n");
        let chain = Chain::of(&path);
        let mut current = chain.open().expect("it can be read").pop();
        let mut seen = Vec::new();
        let mut gaps = 0;
        let mut read = |current: &mut Option<Reader>, looks: u32| {
            for _ in 0..looks {
                match chain.more(current).expect("it can be read") {
                    Next::Lines(lines) => seen.extend(lines),
                    Next::Gap => gaps += 1,
                    Next::Nothing => {}
                }
            }
        };
        read(&mut current, 2);
        // Turned over twice before the next look, with more in the first file.
        append(&path, "1\n");
        std::fs::rename(&path, older(1)).expect("ours");
        append(&path, "2\n");
        std::fs::rename(older(1), older(2)).expect("ours");
        std::fs::rename(&path, older(1)).expect("ours");
        append(&path, "3\n");
        read(&mut current, 9);
        append(&path, "4\n");
        read(&mut current, 2);
        let told: Vec<_> = seen.iter().map(|line| String::from_utf8_lossy(line)).collect();
        assert_eq!(told, ["0", "1", "2", "3", "4"]);
        assert_eq!(gaps, 0);
    }
}
