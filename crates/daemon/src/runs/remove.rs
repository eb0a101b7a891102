//! Removing runs: only what has ended, or what a person named and nothing of which is alive.

use std::sync::Arc;

use outlast_engine::{RunId, Strategy};
use outlast_store::Remove;
use outlast_wire::codes::Code;

use super::workspaces::{self, Removed};
use crate::children;
use crate::directory::Contents;
use crate::lanes::{Lane, in_lane};
use crate::refusal::{Answer, Refusal};
use crate::supervisor::{Supervisor, strays};
use crate::world::{files, orphans};

/// A directory that the journal does not know goes only because a person named it, and only if nothing of it
/// is alive.
pub(crate) async fn stray(supervisor: Arc<Supervisor>, id: RunId) -> Answer<()> {
    let Some(claim) = supervisor.claim_soon(&id).await else {
        return Err(
            Refusal::new(Code::Busy, format!("run {id} is being changed")).hint("ask again")
        );
    };
    if supervisor.strays.get(&id).is_none() {
        return Err(Refusal::new(Code::UnknownRun, format!("there is no run {id}")));
    }
    in_lane(Lane::Chores, move || {
        let _claim = claim;
        refuse_alive(&supervisor, &id, |_| format!("outlast stop {id}"))?;
        std::fs::remove_dir_all(supervisor.ground.layout.run(id.as_str()).0)?;
        supervisor.strays.forget(&id);
        supervisor.watchers.note(&id);
        Ok(())
    })
    .await
}

/// A run that cannot be read may still be running, and what runs is not to be forgotten.
pub(crate) fn refuse_alive(
    supervisor: &Supervisor,
    id: &RunId,
    hint: impl FnOnce(&[String]) -> String,
) -> Answer<()> {
    let dir = supervisor.ground.layout.run(id.as_str());
    let is_held = match Contents::read(&dir) {
        Ok(contents) => strays::is_alive(&dir, &contents),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
        Err(error) => return Err(error.into()),
    };
    let alive = orphans::of_run(id)?;
    if alive.is_empty() && !is_held {
        return Ok(());
    }
    if alive.is_empty() {
        let message = format!("run {id} cannot be read, and a shim of it has not gone yet");
        return Err(Refusal::new(Code::RunIsLive, message).hint("ask again"));
    }
    let names: Vec<String> =
        alive.iter().map(|one| format!("pid {} ({})", one.pid, one.command)).collect();
    let pids: Vec<String> = alive.iter().map(|one| one.pid.to_string()).collect();
    let message = format!("run {id} cannot be read and is alive: {}", names.join(", "));
    Err(Refusal::new(Code::RunIsLive, message).hint(hint(&pids)))
}

/// The journal first: a journal without its directory is a lie. The directory says before that its removal was
/// asked for, so that the next daemon can finish it.
pub(crate) fn run(supervisor: &Supervisor, id: &RunId, how: Remove) -> Answer<()> {
    children::refuse_removal(supervisor, id)?;
    let dir = supervisor.ground.layout.run(id.as_str());
    let marked = files::write(&dir.removing(), b"").and_then(|()| files::sync(&[dir.removing()]));
    match marked {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound && !is_full(&error) => {
            return Err(error.into());
        }
        Ok(()) | Err(_) => {}
    }
    if let Err(error) = supervisor.ground.store.remove(id, supervisor.ground.epoch, how) {
        files::remove(&dir.removing())?;
        return Err(error.into());
    }
    supervisor.release(id);
    supervisor.watchers.note(id);
    if how == Remove::Any {
        // One that could not be read was open until now.
        supervisor.triggers.table.runs_may_have_ended();
    }
    Ok(strays::clear_removed(&dir)?)
}

/// Without the mark the directory is kept if this daemon dies in between, and shown by the next.
fn is_full(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded)
}

/// What a run worked in goes with it, unless work would be lost by that.
pub(crate) fn workspace_of(supervisor: &Arc<Supervisor>, id: &RunId) -> Answer<()> {
    let is_open = supervisor.ground.store.row(id)?.is_none_or(|row| row.is_open);
    if is_open && workspaces::under_way(supervisor, id).is_none() {
        // Refused below, in the store's own words.
        return Ok(());
    }
    match workspace(supervisor, id)? {
        Removed::Gone => Ok(()),
        Removed::Kept { why } => {
            let refusal =
                Refusal::new(Code::WorkspaceKept, format!("the workspace of {id} stays: {why}"));
            let keep = format!("remove only the run:\noutlast rm --keep-workspace {id}");
            let discard =
                discard_line(supervisor, id).map(|line| format!("\nor discard the work:\n{line}"));
            Err(refusal.hint(format!("{keep}{}", discard.unwrap_or_default())))
        }
    }
}

/// What a person types to have git remove a worktree with the work in it. Only that order discards it.
fn discard_line(supervisor: &Supervisor, id: &RunId) -> Option<String> {
    let run = supervisor.ground.replay(id).ok()?;
    let repository = run.spec.workspace.repository.as_ref()?;
    let is_worktree = run.spec.workspace.strategy == Strategy::Worktree;
    is_worktree.then(|| {
        let (repository, dir) = (quoted(repository), quoted(&run.spec.dir));
        format!("git -C {repository} worktree remove --force {dir}")
    })
}

/// A path as a shell takes it.
pub(super) fn quoted(path: &str) -> String {
    let is_plain = |char: char| char.is_alphanumeric() || "-_./".contains(char);
    match path.chars().all(is_plain) {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', r"'\''")),
    }
}

/// Removes the workspace of an ended run.
pub(crate) fn workspace(supervisor: &Arc<Supervisor>, id: &RunId) -> Answer<Removed> {
    workspaces::remove(supervisor, id).map_err(|message| {
        Refusal::new(Code::UnreadableRun, format!("run {id} cannot be read: {message}"))
    })
}
