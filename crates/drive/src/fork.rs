//! A conversation that is a copy of the first turns of another one.
//!
//! Some agents make the copy themselves, at a turn that they have a name for. Others keep each conversation as a file of
//! lines: here the first lines are copied into a file of another name, the agent makes a conversation of its own from
//! that file, and the file is removed. The other conversation is only read.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use outlast_agents::adapter::{Forks, Session, SessionMark, Transcripts, Variable};
use outlast_home::regular;
use outlast_wire::again;

/// What the agent finds its conversations by.
pub(crate) struct Place<'a> {
    pub(crate) forks: Forks,
    pub(crate) var: &'a Variable<'a>,
    /// The directory that it works in.
    pub(crate) dir: &'a str,
}

/// The first lines of a conversation under a name of their own, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Cut {
    pub(crate) id: String,
    path: PathBuf,
}

impl Drop for Cut {
    fn drop(&mut self) {
        // One that stays is a conversation too many in the agent's list, and harms nothing.
        let _stays = fs::remove_file(&self.path);
    }
}

/// Where the conversation stands now. `None` if no copy of it could be made from that.
pub(crate) fn mark(
    place: &Place<'_>,
    session: &Session,
    turn: Option<&str>,
) -> Option<SessionMark> {
    let (at, bytes) = match place.forks {
        Forks::No => return None,
        Forks::AtTurn => (Some(turn?.to_owned()), None),
        Forks::Cut(_) => {
            let transcripts = place.transcripts().ok()?;
            (None, Some(longest(&transcripts.root, &session.id).ok()?.1))
        }
    };
    let (kind, id) = (session.kind.clone(), session.id.clone());
    Some(SessionMark { kind, id, at, bytes, began_in: session.began_in })
}

/// Makes what the agent needs for a copy that ends with this mark; nothing for an agent that makes the copy itself.
pub(crate) fn prepare(
    place: &Place<'_>,
    mark: &SessionMark,
    id: String,
) -> Result<Option<Cut>, String> {
    match (place.forks, mark.bytes) {
        (Forks::AtTurn, _) if mark.at.is_some() => Ok(None),
        (Forks::Cut(_), Some(bytes)) => {
            let transcripts = place.transcripts()?;
            let (from, long) = longest(&transcripts.root, &mark.id)?;
            if long < bytes {
                return Err("the agent's file of the conversation has become shorter".to_owned());
            }
            cut(&from, bytes, &transcripts.here, id)
                .map(Some)
                .map_err(|error| format!("the conversation cannot be copied: {error}"))
        }
        (Forks::No | Forks::AtTurn | Forks::Cut(_), _) => {
            Err("it is not known where the conversation stood".to_owned())
        }
    }
}

impl Place<'_> {
    fn transcripts(&self) -> Result<Transcripts, String> {
        let Forks::Cut(transcripts) = self.forks else {
            return Err("the agent has no files of its conversations".to_owned());
        };
        // The agent sees the directory without links.
        let dir = fs::canonicalize(self.dir).map_err(|error| format!("{}: {error}", self.dir))?;
        let dir = dir.to_str().ok_or("the workspace's name is no text")?;
        transcripts(self.var, dir)
            .ok_or_else(|| "it is not known where the agent keeps its conversations".to_owned())
    }
}

/// The file of the conversation, and its length. Its directory may have another name by now, its id is its own.
fn longest(root: &Path, id: &str) -> Result<(PathBuf, u64), String> {
    if id.is_empty() || !id.chars().all(|it| it.is_ascii_alphanumeric() || it == '-') {
        return Err("the conversation's name is no name of a file".to_owned());
    }
    let gone = || "the agent's file of the conversation is gone".to_owned();
    let found = again::read_dir(root).map_err(|_| gone())?.flatten().filter_map(|entry| {
        let path = entry.path().join(format!("{id}.jsonl"));
        let about = fs::symlink_metadata(&path).ok().filter(fs::Metadata::is_file)?;
        Some((path, about.len()))
    });
    found.max_by_key(|(_, long)| *long).ok_or_else(gone)
}

/// Copies the whole lines of the first so many bytes.
fn cut(from: &Path, bytes: u64, here: &Path, id: String) -> io::Result<Cut> {
    let mut lines = BufReader::new(regular::open(from)?.take(bytes));
    DirBuilder::new().recursive(true).mode(0o700).create(here)?;
    let path = here.join(format!("{id}.jsonl"));
    let mut options = OpenOptions::new();
    options.create_new(true).write(true).mode(0o600);
    let mut copy = options.open(&path)?;
    let made = Cut { id, path };
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        if line.ends_with(b"\n") {
            copy.write_all(&line)?;
        }
        line.clear();
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0b5b6a0e-1111-4222-8333-444444444444";

    fn transcripts(var: &Variable<'_>, _dir: &str) -> Option<Transcripts> {
        let root = PathBuf::from(var("ROOT")?);
        Some(Transcripts { here: root.join("here"), root })
    }

    fn marked(bytes: u64) -> SessionMark {
        SessionMark {
            kind: "claude".to_owned(),
            id: ID.to_owned(),
            bytes: Some(bytes),
            ..SessionMark::default()
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "files of a test")]
    fn a_copy_has_whole_lines_up_to_the_mark_and_the_conversation_stays_as_it_is() {
        let scratch = tempfile::tempdir().unwrap();
        let root = scratch.path();
        let there = root.join("there").join(format!("{ID}.jsonl"));
        fs::create_dir_all(there.parent().unwrap()).unwrap();
        fs::write(&there, "one\ntwo\n").unwrap();
        let var = |name: &str| (name == "ROOT").then(|| root.to_str().unwrap().to_owned());
        let place =
            Place { forks: Forks::Cut(transcripts), var: &var, dir: root.to_str().unwrap() };
        let mut session = Session::begun("claude", ID, Some(1));
        let mark = mark(&place, &session, None).unwrap();
        assert_eq!((mark.bytes, mark.began_in), (Some(8), Some(1)));
        fs::write(&there, "one\ntwo\nthree\n").unwrap();
        let copy =
            |mark: &SessionMark| prepare(&place, mark, "copy".to_owned()).map(|it| it.unwrap());
        for (bytes, expected) in [(8, "one\ntwo\n"), (10, "one\ntwo\n"), (3, "")] {
            let made = copy(&marked(bytes)).unwrap();
            assert_eq!(fs::read_to_string(root.join("here/copy.jsonl")).unwrap(), expected);
            assert_eq!(made.id, "copy");
        }
        assert!(!root.join("here/copy.jsonl").exists(), "it goes with the process that needed it");
        assert_eq!(fs::read_to_string(&there).unwrap(), "one\ntwo\nthree\n");
        assert!(copy(&marked(15)).unwrap_err().contains("shorter"));
        fs::remove_file(&there).unwrap();
        assert!(copy(&marked(8)).unwrap_err().contains("gone"));
        session.id = "../x".to_owned();
        assert_eq!(super::mark(&place, &session, None), None);
    }

    #[test]
    fn an_agent_that_copies_by_itself_needs_the_name_of_the_turn() {
        let var = |_: &str| None;
        let place = Place { forks: Forks::AtTurn, var: &var, dir: "/" };
        let session = Session::begun("codex", "t", Some(2));
        assert_eq!(mark(&place, &session, None), None);
        let mark = mark(&place, &session, Some("turn")).unwrap();
        assert_eq!((mark.at.as_deref(), mark.bytes), (Some("turn"), None));
        assert!(prepare(&place, &mark, String::new()).unwrap().is_none());
        assert!(prepare(&place, &marked(1), String::new()).is_err());
    }
}
