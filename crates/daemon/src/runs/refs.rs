//! What keeps snapshots alive, held against the runs that there are: refs without a run, and runs without their snapshots.
//!
//! Only looks. A ref that no run of this home has may be another home's, so it is a person who removes it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use outlast_engine::RunId;
use outlast_snapshot::{Git, place_of, ref_of};
use outlast_store::{Error, Filter};

use crate::snapshots;
use crate::supervisor::Supervisor;
use crate::world::git::bounded;

/// So many runs are looked at, the newest of them.
const MOST_RUNS: usize = 2000;
const MOST: usize = 4 << 20;
const REFS: &str = "refs/outlast/runs/";

#[derive(Debug, Default)]
pub(crate) struct Held {
    pub(crate) orphans: Vec<Orphan>,
    /// Runs that had snapshots, and whose snapshots are gone.
    pub(crate) lost: Vec<RunId>,
}

/// A ref whose run this home does not know.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Orphan {
    pub(crate) run: RunId,
    pub(crate) name: String,
    pub(crate) repository: PathBuf,
}

impl Orphan {
    /// What a person types to remove it.
    pub(crate) fn command(&self) -> String {
        let repository = super::remove::quoted(&self.repository.to_string_lossy());
        format!("git --git-dir={repository} update-ref -d {}", self.name)
    }
}

/// Blocks: asks git once for each repository that a run has snapshots in.
pub(crate) fn look(supervisor: &Supervisor) -> Result<Held, Error> {
    let rows = supervisor.ground.store.rows(&Filter { all: true, ..Filter::default() })?;
    let known: BTreeSet<RunId> = rows.iter().map(|row| row.id.clone()).collect();
    let mut held = Held::default();
    let mut by_repository: BTreeMap<PathBuf, Vec<RunId>> = BTreeMap::new();
    for row in rows.iter().take(MOST_RUNS) {
        let git_dir = supervisor.ground.layout.run(row.id.as_str()).snapshots();
        // What cannot be read is said when it is used.
        let Ok(Some(place)) = place_of(&git_dir) else { continue };
        match place.repository {
            Some(repository) if outlast_snapshot::has_begun(&git_dir) => {
                by_repository.entry(repository.common).or_default().push(row.id.clone());
            }
            Some(_) => {}
            None if git_dir.join("objects").is_dir() => {}
            None => held.lost.push(row.id.clone()),
        }
    }
    let path = snapshots::around().path;
    for (repository, runs) in by_repository {
        let git = Git::new(&path, &repository);
        let asked = git.command(&["for-each-ref", "--format=%(refname)", REFS]);
        let listed = if repository.is_dir() { bounded(asked, MOST).ok() } else { None };
        let Some((listed, _)) = listed else {
            held.lost.extend(runs);
            continue;
        };
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let names: BTreeSet<&str> = listed.lines().collect();
        held.lost.extend(runs.into_iter().filter(|run| !names.contains(&*ref_of(run.as_str()))));
        for name in names {
            let run = name.strip_prefix(REFS).and_then(|rest| rest.split('/').next());
            let Some(run) = run.map(|run| RunId(run.to_owned())) else { continue };
            // One that is being made has its ref before the journal has it.
            if !known.contains(&run) && !supervisor.is_claimed(&run) {
                let (name, repository) = (name.to_owned(), repository.clone());
                held.orphans.push(Orphan { run, name, repository });
            }
        }
    }
    Ok(held)
}
