//! Run directories that the journal does not know: a journal that was lost, replaced or restored has forgotten
//! runs that are still on disk, and some of them may be alive.
//!
//! Removes a directory only with proof that its run was never acknowledged, or that its removal was asked for.
//! Every other one may be a user's work: it stays where it is, is shown, and can be recovered or stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex};
use std::time::UNIX_EPOCH;

use outlast_engine::{Agent, Event, Fact, ReasonCode, Row, Run, RunId, RunSpec, StateName, Time};
use outlast_home::layout::RunDir;
use outlast_store::{Error, Filter, Resolved};
use outlast_wire::again;
use outlast_wire::api::Trouble;
use outlast_wire::codes::Code;

use super::Supervisor;
use crate::directory::{Contents, word};
use crate::refusal::Refusal;
use crate::sync::lock;
use crate::world::files;
use crate::{snapshots, steps};

/// Everything that a creation writes before the journal has its run.
const OF_CREATION: [&str; 9] = [
    "spec.new",
    "env.json",
    "env.tmp",
    "workflow.md",
    "workflow.tmp",
    "trigger.json",
    "trigger.tmp",
    "stdin",
    "stdin.tmp",
];

/// What a directory that the journal does not know proves about its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// Its creation did not finish, so no client was told of it.
    Unfinished,
    /// Its removal was asked for, and nothing of it is alive.
    Removing,
    /// It may have been acknowledged.
    Kept,
}

/// What the directory itself proves; that the journal does not know the run is the caller's to see to.
pub(crate) fn proof_of(dir: &RunDir) -> io::Result<Proof> {
    let contents = Contents::read(dir)?;
    if contents.has("removing") {
        let is_alive = is_alive(dir, &contents);
        return Ok(if is_alive { Proof::Kept } else { Proof::Removing });
    }
    let has_steps = contents.steps().next().is_some();
    let is_of_creation = contents.others.iter().all(|name| {
        let is_store = dir.0.join(name) == dir.snapshots();
        is_store || OF_CREATION.iter().any(|known| name == known)
    });
    let has_begun = contents.others.is_empty() || contents.has("spec.new");
    match !has_steps && is_of_creation && has_begun {
        true => Ok(Proof::Unfinished),
        false => Ok(Proof::Kept),
    }
}

/// True while a shim holds the lock of any step in the directory.
pub(crate) fn is_alive(dir: &RunDir, contents: &Contents) -> bool {
    contents.steps().any(|step| steps::is_locked(&steps::step_dir(dir, step)))
}

/// Removes what a creation that did not finish has written, name by name, and nothing else.
pub(crate) fn clear_unfinished(dir: &RunDir) -> io::Result<()> {
    for name in OF_CREATION {
        files::remove(&dir.0.join(name))?;
    }
    match std::fs::remove_dir_all(dir.snapshots()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    match std::fs::remove_dir(&dir.0) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Removes the directory of a run whose removal was asked for. The mark that says so goes last, and only once the
/// rest is gone for good: without it, what a kill or a power loss leaves would look like a user's work.
pub(crate) fn clear_removed(dir: &RunDir) -> io::Result<()> {
    snapshots::drop_ref(dir);
    let mark = dir.removing();
    for name in files::names(&dir.0)? {
        let path = dir.0.join(name);
        if path == mark {
            continue;
        }
        let is_dir = std::fs::symlink_metadata(&path)?.is_dir();
        if is_dir { std::fs::remove_dir_all(&path) } else { files::remove(&path) }?;
    }
    match std::fs::File::open(&dir.0) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        opened => opened?.sync_all()?,
    }
    files::remove(&mark)?;
    std::fs::remove_dir(&dir.0)
}

/// The journal has the run: from here on its directory says that it may have been acknowledged.
pub(crate) fn acknowledge(dir: &RunDir) {
    match std::fs::rename(dir.unacknowledged_spec(), dir.spec()) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            tracing::error!(dir = %dir.0.display(), %error, "cannot mark a run's directory as acknowledged");
        }
        Ok(()) | Err(_) => {}
    }
}

/// Where the spec of a run is read from that the journal does not know.
pub(crate) fn read_spec(dir: &RunDir) -> io::Result<RunSpec> {
    let bytes = match outlast_home::regular::read(&dir.spec()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            outlast_home::regular::read(&dir.unacknowledged_spec())?
        }
        other => other?,
    };
    serde_json::from_slice(&bytes)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// One directory that is kept, as it is shown.
#[derive(Debug, Clone)]
pub(crate) struct Stray {
    pub(crate) trouble: Trouble,
    pub(crate) row: Row,
}

/// The directories that are kept.
#[derive(Debug, Default)]
pub(crate) struct Strays(Mutex<BTreeMap<RunId, Stray>>);

impl Strays {
    pub(crate) fn all(&self) -> BTreeMap<RunId, Stray> {
        lock(&self.0).clone()
    }

    pub(crate) fn get(&self, id: &RunId) -> Option<Stray> {
        lock(&self.0).get(id).cloned()
    }

    pub(crate) fn forget(&self, id: &RunId) {
        lock(&self.0).remove(id);
    }

    /// Those that a list with this filter shows.
    pub(crate) fn passing(&self, filter: &Filter) -> Vec<Stray> {
        lock(&self.0).values().filter(|stray| filter.passes(&stray.row)).cloned().collect()
    }

    /// The one that a text means, by the rules for runs that the journal knows.
    pub(crate) fn resolve(&self, text: &str) -> Option<RunId> {
        let strays = lock(&self.0);
        let exact = strays.get(&RunId(text.to_owned())).map(|stray| &stray.row.id);
        let named = || strays.values().find(|it| it.row.name.as_deref() == Some(text));
        if let Some(id) = exact.or_else(|| named().map(|it| &it.row.id)) {
            return Some(id.clone());
        }
        if text.len() < Resolved::SHORTEST_PREFIX {
            return None;
        }
        let mut starting = strays.keys().filter(|id| id.as_str().starts_with(text));
        starting.next().filter(|_| starting.next().is_none()).cloned()
    }

    /// The one whose run was made under this key.
    pub(crate) fn of_key(&self, key: &str) -> Option<RunId> {
        let strays = lock(&self.0);
        strays.values().find(|it| it.row.key.as_deref() == Some(key)).map(|it| it.row.id.clone())
    }
}

/// Why a run that is only a directory cannot be asked for as other runs can.
pub(crate) fn refusal(id: &RunId) -> Refusal {
    let hint =
        format!("rebuild it from its files, or end it:\noutlast recover {id}\noutlast stop {id}");
    Refusal::new(
        Code::NotInJournal,
        format!("run {id} has a directory, and the journal does not know it"),
    )
    .hint(hint)
    .run(id)
}

impl Supervisor {
    /// Looks for directories that the journal does not know, and remembers those that are kept.
    pub(crate) fn look_for_strays(&self) -> Result<(), Error> {
        for id in self.unknown_directories()? {
            match proof_of(&self.ground.layout.run(id.as_str())) {
                Ok(Proof::Unfinished | Proof::Removing) => {}
                Ok(Proof::Kept) => self.keep_stray(&id),
                Err(error) => {
                    tracing::error!(run = %id, %error, "cannot look into a directory that the journal does not know");
                    self.keep_stray(&id);
                }
            }
        }
        Ok(())
    }

    fn unknown_directories(&self) -> Result<Vec<RunId>, Error> {
        let known: BTreeSet<RunId> = self.ground.store.run_ids()?.into_iter().collect();
        let entries = match again::read_dir(self.ground.layout.runs()) {
            Ok(entries) => entries,
            Err(error) => {
                tracing::error!(%error, "cannot list the run directories");
                return Ok(Vec::new());
            }
        };
        let ids = entries.flatten().map(|it| RunId(it.file_name().to_string_lossy().into_owned()));
        Ok(ids.filter(|id| id.is_well_formed() && !known.contains(id)).collect())
    }

    fn keep_stray(&self, id: &RunId) {
        let dir = self.ground.layout.run(id.as_str());
        let contents = Contents::read(&dir).unwrap_or_default();
        let trouble = self.ground.trouble(Code::NotInJournal, describe(&dir, &contents));
        let row = row(id, &dir, &contents);
        tracing::warn!(run = %id, message = trouble.message, "the journal does not know this directory; it is kept");
        lock(&self.strays.0).insert(id.clone(), Stray { trouble, row });
        self.watchers.note(id);
    }

    /// Removes every directory that is proven to be of no run; says which, and how much each held.
    pub(crate) fn sweep_strays(self: &Arc<Self>) -> Result<Vec<(RunId, u64)>, Error> {
        let mut removed = Vec::new();
        for id in self.unknown_directories()? {
            match self.sweep_one(&id) {
                Ok(Some(bytes)) => {
                    tracing::info!(run = %id, "removed a directory that belongs to no run");
                    removed.push((id, bytes));
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(run = %id, %error, "cannot remove a directory that belongs to no run");
                }
            }
        }
        Ok(removed)
    }

    /// Those that [`Supervisor::sweep_strays`] would remove.
    pub(crate) fn sweepable(self: &Arc<Self>) -> Result<Vec<(RunId, u64)>, Error> {
        let mut found = self.unknown_directories()?;
        found.retain(|id| {
            let dir = self.ground.layout.run(id.as_str());
            self.claim(id).is_some()
                && matches!(proof_of(&dir), Ok(Proof::Unfinished | Proof::Removing))
        });
        let sized = |id: RunId| {
            let bytes = files::disk_usage(&self.ground.layout.run(id.as_str()).0);
            (id, bytes)
        };
        Ok(found.into_iter().map(sized).collect())
    }

    fn sweep_one(self: &Arc<Self>, id: &RunId) -> io::Result<Option<u64>> {
        let Some(_claim) = self.claim(id) else { return Ok(None) };
        // Its creation may have finished since it was listed. A store that cannot be asked knows every run.
        if !matches!(self.ground.store.row(id), Ok(None)) {
            return Ok(None);
        }
        let dir = self.ground.layout.run(id.as_str());
        let bytes = files::disk_usage(&dir.0);
        match proof_of(&dir)? {
            Proof::Unfinished => clear_unfinished(&dir)?,
            Proof::Removing => clear_removed(&dir)?,
            Proof::Kept => return Ok(None),
        }
        Ok(Some(bytes))
    }
}

fn describe(dir: &RunDir, contents: &Contents) -> String {
    let (attempts, errands) = (contents.attempts.len(), contents.errands.len());
    let alive: Vec<String> = contents
        .steps()
        .filter(|step| steps::is_locked(&steps::step_dir(dir, *step)))
        .map(word)
        .collect();
    let alive = match alive.as_slice() {
        [] => String::new(),
        some => format!(", {} alive", some.join(" and ")),
    };
    format!(
        "its directory holds {attempts} attempts and {errands} errands{alive}, and the journal does not know it"
    )
}

/// The line that a list shows: what the run was asked for, and how far its directory goes.
fn row(id: &RunId, dir: &RunDir, contents: &Contents) -> Row {
    let unknown = || {
        let agent = Agent { kind: "exec".to_owned(), command: Vec::new() };
        RunSpec::command(agent, String::new())
    };
    let spec = read_spec(dir).unwrap_or_else(|_| unknown());
    let first = Event {
        seq: 1,
        at: made_at(dir),
        fact: Fact::RunCreated { spec: Box::new(spec), line: None },
    };
    let run = Run::created(id, &first).expect("RunCreated numbered 1 creates a run");
    let (turn, attempt) = contents.attempts.last().copied().unwrap_or((0, 0));
    let phase = if is_alive(dir, contents) { "alive" } else { "not in the journal" };
    Row {
        state: StateName::Blocked,
        reason_code: Some(ReasonCode::NotInJournal.into()),
        turn,
        attempt,
        phase: Some(phase.to_owned()),
        ..run.row()
    }
}

/// When the run's spec was written, or else its directory.
pub(crate) fn made_at(dir: &RunDir) -> Time {
    let of = |path: &std::path::Path| {
        let modified = std::fs::metadata(path).ok()?.modified().ok()?;
        let since = modified.duration_since(UNIX_EPOCH).ok()?;
        Some(Time(u64::try_from(since.as_millis()).ok()?))
    };
    let places = [dir.spec(), dir.unacknowledged_spec(), dir.0.clone()];
    places.iter().find_map(|path| of(path)).unwrap_or(Time(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(names: &[&str]) -> Proof {
        let dir = tempfile::tempdir().expect("a temporary directory");
        for name in names {
            match name.strip_suffix('/') {
                Some(name) => std::fs::create_dir(dir.path().join(name)).expect("it is ours"),
                None => drop(std::fs::File::create(dir.path().join(name)).expect("it is ours")),
            }
        }
        let run = RunDir(dir.path().to_owned());
        let found = proof_of(&run).expect("it can be read");
        if found == Proof::Unfinished {
            clear_unfinished(&run).expect("it goes");
            assert!(!run.0.exists());
        } else {
            assert!(clear_unfinished(&run).is_err(), "what is kept is not cleared by mistake");
        }
        found
    }

    #[test]
    fn only_what_proves_that_no_client_was_told_goes() {
        assert_eq!(with(&[]), Proof::Unfinished);
        assert_eq!(with(&["spec.new"]), Proof::Unfinished);
        assert_eq!(with(&["spec.new", "workflow.md", "env.tmp"]), Proof::Unfinished);
        assert_eq!(with(&["spec.json", "env.json"]), Proof::Kept);
        assert_eq!(with(&["spec.new", "t1.a1/"]), Proof::Kept);
        assert_eq!(with(&["spec.new", "e1/"]), Proof::Kept);
        assert_eq!(with(&["spec.new", "notes.txt"]), Proof::Kept);
        assert_eq!(with(&["spec.json", "t1.a1/", "removing"]), Proof::Removing);
    }

    /// A part of a creation without its beginning is not the beginning of a creation.
    #[test]
    fn an_environment_without_a_spec_is_kept() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        std::fs::File::create(dir.path().join("env.json")).expect("it is ours");
        assert_eq!(proof_of(&RunDir(dir.path().to_owned())).expect("it can be read"), Proof::Kept);
    }
}
