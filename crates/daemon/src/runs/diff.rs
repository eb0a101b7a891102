//! What turns changed: the difference of two snapshots, or of one and the workspace as it is.
//!
//! Tree against tree, so it costs what changed and not what there is. No command of the repository takes part.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use outlast_engine::{Cause, Fact, Point, Run, RunId};
use outlast_snapshot::{Git, place_of, reader};
use outlast_wire::api::{DiffFile, DiffView};
use outlast_wire::codes::Code;
use outlast_wire::snapshot::{MADE_FILE, Made, ORDERS_FILE};

use crate::refusal::{Answer, Refusal, bad_request};
use crate::snapshots;
use crate::supervisor::Supervisor;
use crate::world::files::{self, Lasting};
use crate::world::git::bounded;

const PAGE: usize = 1000;
const MOST_FILES: usize = 10_000;
/// Of what git prints.
const MOST_LISTED: usize = 8 << 20;
const MOST_PATCH: usize = 4 << 20;

/// A point in a run's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum At {
    /// The end of a turn; 0 is before the first.
    Turn(u32),
    Now,
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    /// All that the run has done.
    All,
    Turn(u32),
    Between(At, At),
}

impl Asked {
    /// `3`, `1..4`, `2..now`, `now`; without a text, all of it.
    pub(crate) fn read(text: Option<&str>) -> Answer<Self> {
        let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else {
            return Ok(Self::All);
        };
        let wrong = || {
            bad_request(format!("{text:?} is no turn and no range of turns"))
                .hint("write 3, 1..4, 2..now or now")
        };
        let point = |text: &str| match text {
            "now" => Ok(At::Now),
            number => number.parse().map(At::Turn).map_err(|_| wrong()),
        };
        match text.split_once("..") {
            Some((from, "")) => Ok(Self::Between(point(from)?, At::Now)),
            Some(("", to)) => Ok(Self::Between(At::Turn(0), point(to)?)),
            Some((from, to)) => Ok(Self::Between(point(from)?, point(to)?)),
            None => match point(text)? {
                At::Turn(0) => Err(wrong()),
                At::Turn(turn) => Ok(Self::Turn(turn)),
                At::Now => Ok(Self::Between(At::Turn(u32::MAX), At::Now)),
            },
        }
    }
}

/// The commits of a run's snapshots, by what they show.
#[derive(Debug, Default)]
pub(crate) struct Known {
    /// How each turn left the workspace.
    ends: BTreeMap<u32, Point>,
    /// How each turn found it.
    starts: BTreeMap<u32, String>,
}

impl Known {
    pub(crate) fn read(supervisor: &Supervisor, id: &RunId) -> Answer<Self> {
        let (mut known, mut after) = (Self::default(), 0);
        loop {
            let page = supervisor.ground.store.events(id, after, PAGE)?;
            page.iter().for_each(|event| known.hear(&event.fact));
            match page.last() {
                Some(last) if page.len() == PAGE => after = last.seq,
                _ => return Ok(known),
            }
        }
    }

    fn hear(&mut self, fact: &Fact) {
        let Fact::SnapshotTaken { turn, snapshot } = fact else { return };
        let (commit, point) = (snapshot.commit.clone(), snapshot.point());
        match snapshot.cause {
            Cause::Base | Cause::Turn => drop(self.ends.insert(*turn, point)),
            Cause::Found => drop(self.ends.entry(*turn).or_insert(point)),
            Cause::Wreck => return,
        }
        self.starts.insert(turn + 1, commit);
    }

    /// The commit of a turn's end, and the turn; `u32::MAX` is the last.
    pub(crate) fn end(&self, id: &RunId, turn: u32) -> Answer<(u32, String)> {
        let found = match turn {
            u32::MAX => self.ends.iter().next_back(),
            turn => self.ends.get_key_value(&turn),
        };
        let found = found.map(|(turn, point)| (*turn, point.commit.clone()));
        found.ok_or_else(|| self.missing(id, turn))
    }

    /// Where the end of a turn is; 0 is before the first.
    pub(crate) fn point(&self, id: &RunId, turn: u32) -> Answer<Point> {
        self.ends.get(&turn).cloned().ok_or_else(|| self.missing(id, turn))
    }

    /// Where the run began, if there is a snapshot of that.
    pub(crate) fn first(&self) -> Option<&Point> {
        self.ends.values().next()
    }

    fn start(&self, id: &RunId, turn: u32) -> Answer<String> {
        self.starts.get(&turn).cloned().ok_or_else(|| self.missing(id, turn.saturating_sub(1)))
    }

    fn missing(&self, id: &RunId, turn: u32) -> Refusal {
        if self.ends.is_empty() {
            return Refusal::new(Code::NoSnapshot, format!("run {id} has no snapshots"))
                .hint("`workspace: { snapshot: on }` in its loop file makes them");
        }
        let have: Vec<String> = self.ends.keys().map(u32::to_string).collect();
        let message = format!("run {id} has no snapshot of turn {turn}");
        Refusal::new(Code::NoSnapshot, message)
            .hint(format!("there are snapshots of: {}", have.join(", ")))
    }
}

fn called(turn: u32) -> String {
    if turn == 0 { "before the first turn".to_owned() } else { format!("turn {turn}") }
}

/// Blocks: runs git, and for `now` looks through the workspace.
pub(crate) fn diff(
    supervisor: &Supervisor,
    id: &RunId,
    asked: &Asked,
    paths: &[String],
    wants_patch: bool,
) -> Answer<DiffView> {
    let run = supervisor.ground.replay(id).map_err(|why| {
        Refusal::new(Code::UnreadableRun, format!("run {id} cannot be read: {why}"))
    })?;
    let known = Known::read(supervisor, id)?;
    let (from, to) = match asked {
        Asked::All => (At::Turn(0), At::Turn(u32::MAX)),
        Asked::Turn(turn) => (At::Turn(turn - 1), At::Turn(*turn)),
        Asked::Between(from, to) => (*from, *to),
    };
    let mut look = None;
    let mut point = |at: At, is_start: bool| -> Answer<(String, String)> {
        match (at, asked) {
            (At::Now, _) => {
                let looked = look.get_or_insert_with(|| Look::at(supervisor, &run));
                let tree = looked.as_ref().map_err(Clone::clone)?.tree.clone();
                Ok(("now".to_owned(), tree))
            }
            (At::Turn(before), Asked::Turn(turn)) if is_start => {
                known.end(id, *turn)?;
                Ok((called(before), known.start(id, *turn)?))
            }
            (At::Turn(turn), _) => {
                let (turn, commit) = known.end(id, turn)?;
                Ok((called(turn), commit))
            }
        }
    };
    let (from, from_id) = point(from, true)?;
    let (to, to_id) = point(to, false)?;
    let git_dir = supervisor.ground.layout.run(id.as_str()).snapshots();
    let around = snapshots::around();
    let lost =
        |failure: outlast_snapshot::Failure| Refusal::new(Code::NoSnapshot, failure.to_string());
    let gone = || Refusal::new(Code::NoSnapshot, format!("the snapshots of run {id} are gone"));
    let mut git = reader(&git_dir, &around).map_err(lost)?.ok_or_else(gone)?;
    if let Some(Ok(look)) = &look {
        git = git.with("GIT_ALTERNATE_OBJECT_DIRECTORIES", look.dir.join("objects"));
    }
    let prefix = place_of(&git_dir).map_err(lost)?.map(|place| place.prefix).unwrap_or_default();
    let compare = Compare { git, from: &from_id, to: &to_id, prefix: &prefix, paths };
    let (files, files_cut) = compare.files()?;
    let (patch, patch_cut) = if wants_patch { compare.patch()? } else { (None, false) };
    let sum = |of: fn(&DiffFile) -> Option<u64>| files.iter().filter_map(of).sum();
    let (added, deleted) = (sum(|file| file.added), sum(|file| file.deleted));
    let last = known.ends.keys().next_back().copied().unwrap_or(0);
    let is_short = *asked == Asked::All && last < run.turns_committed;
    Ok(DiffView {
        run: id.0.clone(),
        from,
        to,
        from_id,
        to_id,
        added,
        deleted,
        files,
        files_cut,
        patch,
        patch_cut,
        unshown_until: is_short.then_some(run.turns_committed),
    })
}

/// Two trees of one store.
struct Compare<'a> {
    git: Git,
    from: &'a str,
    to: &'a str,
    prefix: &'a str,
    paths: &'a [String],
}

impl Compare<'_> {
    fn run(&self, format: &[&str], most: usize) -> Answer<(Vec<u8>, bool)> {
        let mut args: Vec<OsString> =
            ["diff-tree", "-r", "-M", "-l400", "--no-ext-diff", "--no-textconv"]
                .map(OsString::from)
                .to_vec();
        args.extend(format.iter().map(OsString::from));
        if !self.prefix.is_empty() {
            args.push(format!("--relative={}", self.prefix).into());
        }
        args.extend([OsString::from(self.from), OsString::from(self.to), OsString::from("--")]);
        args.extend(self.paths.iter().map(|path| format!("{}{path}", self.prefix).into()));
        bounded(self.git.command(&args), most).map_err(|error| {
            Refusal::new(Code::NoSnapshot, format!("the snapshots cannot be compared: {error}"))
                .hint("they are gone if the repository was removed or the ref refs/outlast was deleted")
        })
    }

    fn files(&self) -> Answer<(Vec<DiffFile>, bool)> {
        let (raw, is_cut) = self.run(&["--raw", "-z"], MOST_LISTED)?;
        let (counts, _) = self.run(&["--numstat", "-z"], MOST_LISTED)?;
        let mut files = names(&raw);
        count(&counts, &mut files);
        let is_cut = is_cut || files.len() > MOST_FILES;
        files.truncate(MOST_FILES);
        Ok((files, is_cut))
    }

    fn patch(&self) -> Answer<(Option<String>, bool)> {
        let (patch, is_cut) = self.run(&["-p", "--no-color"], MOST_PATCH)?;
        Ok((Some(String::from_utf8_lossy(&patch).into_owned()), is_cut))
    }
}

/// Reads `diff-tree --raw -z`. A last entry that was cut off is dropped.
fn names(raw: &[u8]) -> Vec<DiffFile> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut fields = raw.split(|byte| *byte == 0);
    let mut files = Vec::new();
    while let Some(head) = fields.next().filter(|head| head.starts_with(b":")) {
        let letter =
            head.rsplit(|byte| *byte == b' ').next().and_then(|word| word.first().copied());
        let Some(path) = fields.next() else { break };
        let (change, was, path) = match letter {
            Some(b'A') => ("added", None, path),
            Some(b'D') => ("deleted", None, path),
            Some(b'T') => ("type_changed", None, path),
            Some(b'R') => {
                let Some(new) = fields.next() else { break };
                ("renamed", Some(text(path)), new)
            }
            Some(_) | None => ("modified", None, path),
        };
        let path = text(path);
        files.push(DiffFile { path, was, change: change.to_owned(), added: None, deleted: None });
    }
    files
}

/// Adds the lines of `diff-tree --numstat -z`, which names the same files in the same order.
fn count(printed: &[u8], files: &mut [DiffFile]) {
    let mut fields = printed.split(|byte| *byte == 0);
    for file in files {
        let Some(line) = fields.next() else { return };
        let line = String::from_utf8_lossy(line).into_owned();
        let mut numbers = line.splitn(3, '\t');
        let mut number = || numbers.next().and_then(|number| number.parse().ok());
        (file.added, file.deleted) = (number(), number());
        if file.was.is_some() {
            fields.next();
            fields.next();
        }
    }
}

/// The workspace as it is, in a directory that goes with this.
struct Look {
    dir: PathBuf,
    tree: String,
}

impl Look {
    fn at(supervisor: &Supervisor, run: &Run) -> Answer<Self> {
        let name: String =
            crate::world::random::<8>()?.iter().map(|byte| format!("{byte:02x}")).collect();
        let dir = std::env::temp_dir().join(format!("outlast-look-{name}"));
        files::only_private_dir(&dir)?;
        // From here on it is removed whatever comes.
        let mut look = Self { dir, tree: String::new() };
        let layout = &supervisor.ground.layout;
        let orders = snapshots::look(run, layout, look.dir.clone()).ok_or_else(|| {
            Refusal::new(Code::NoSnapshot, format!("run {} has no snapshots", run.id))
        })?;
        let json = serde_json::to_vec(&orders).map_err(std::io::Error::other)?;
        files::write_whole(&look.dir.join(ORDERS_FILE), &json, Lasting::Process)?;
        let command = crate::world::git::looking(&supervisor.ground.exe, &look.dir);
        let looked = bounded(command, MOST_LISTED);
        look.tree = tree(&look.dir).map_err(|why| {
            let why = looked.err().map_or(why, |error| error.to_string());
            Refusal::new(Code::NoSnapshot, format!("the workspace cannot be read: {why}"))
        })?;
        Ok(look)
    }
}

fn tree(dir: &Path) -> Result<String, String> {
    let bytes =
        files::read_regular(&dir.join(MADE_FILE), MOST_LISTED).map_err(|it| it.to_string())?;
    match serde_json::from_slice(&bytes) {
        Ok(Made::Looked { tree }) => Ok(tree),
        Ok(Made::Failed { why, .. }) => Err(why),
        Ok(Made::Taken(_) | Made::Restored(_)) => Err("it made something else".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.dir) {
            tracing::warn!(%error, dir = %self.dir.display(), "cannot remove the objects of a look");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_git_prints_is_read_with_renames_and_files_that_are_no_text() {
        let raw = b":100644 100644 aa bb M\0a\0:000000 100644 00 bb A\0b\tc\0:100644 100644 aa aa R100\0old\0new\0";
        let mut files = names(raw);
        count(b"1\t2\ta\0-\t-\tb\tc\x000\t0\t\0old\0new\0", &mut files);
        let told: Vec<_> =
            files.iter().map(|it| (it.path.as_str(), it.change.as_str(), it.added)).collect();
        assert_eq!(
            told,
            [("a", "modified", Some(1)), ("b\tc", "added", None), ("new", "renamed", Some(0))]
        );
        assert_eq!(files[2].was.as_deref(), Some("old"));
    }

    #[test]
    fn ranges_are_read() {
        let read = |text| Asked::read(Some(text));
        assert_eq!(read("3").ok(), Some(Asked::Turn(3)));
        assert_eq!(read("1..4").ok(), Some(Asked::Between(At::Turn(1), At::Turn(4))));
        assert_eq!(read("2..now").ok(), Some(Asked::Between(At::Turn(2), At::Now)));
        assert_eq!(read("2..").ok(), Some(Asked::Between(At::Turn(2), At::Now)));
        for text in ["0", "x", "1..y", "-1", "now.."] {
            assert!(read(text).is_err() || text == "now..", "{text}");
        }
    }
}
