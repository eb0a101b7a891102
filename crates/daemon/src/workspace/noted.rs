//! Where a workspace was when it was prepared, as the run's directory has it.
//!
//! An agent, or a person, can put a link in the place of a workspace or of its root. Nothing is run there then, and
//! nothing is removed: what the link leads to is not the run's.

use std::io;
use std::path::{Path, PathBuf};

use outlast_engine::{Run, RunSpec, Strategy};
use outlast_home::layout::RunDir;

use super::failure::Failure;
use super::make::root;
use super::place;
use crate::world::files::{self, Lasting};

const LARGEST_NOTE: usize = 1 << 16;

/// Says where the run works, also for people who look into its directory.
pub(crate) fn note(run: &Run, dir: &RunDir, created: bool) -> Result<(), Failure> {
    let workspace = &run.spec.workspace;
    let real = match workspace.strategy {
        Strategy::Inplace => None,
        Strategy::Dir | Strategy::Worktree => Some(place::real(Path::new(&run.spec.dir))?),
    };
    let note = serde_json::json!({
        "path": run.spec.dir,
        "real": real,
        "strategy": workspace.strategy,
        "root": workspace.root,
        "repository": workspace.repository,
        "created": created,
    });
    let path = dir.workspace();
    files::write_whole(&path, note.to_string().as_bytes(), Lasting::Process)
        .map_err(Failure::io("writing", &path))
}

/// Fails if a workspace of the run's own is a link, or is in another place than it was prepared in.
pub(crate) fn stands(spec: &RunSpec, dir: &RunDir) -> Result<(), Failure> {
    if spec.workspace.strategy == Strategy::Inplace {
        return Ok(());
    }
    let was = real(dir)?;
    Ok(place::stands(root(spec)?, Path::new(&spec.dir), was.as_deref())?)
}

/// What the note says. A run that was begun before notes said it has none.
fn real(dir: &RunDir) -> Result<Option<PathBuf>, Failure> {
    let path = dir.workspace();
    let bytes = match files::read_regular(&path, LARGEST_NOTE) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Failure::io("reading", &path)(error)),
    };
    let note: serde_json::Value = serde_json::from_slice(&bytes)
        .map_err(|error| Failure::io("reading", &path)(error.into()))?;
    Ok(note["real"].as_str().map(PathBuf::from))
}
