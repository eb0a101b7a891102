//! Between a run and `outlast __snapshot`: its orders, made of the journal alone, and what it has left.
//!
//! Orders that are made twice are the same, so a snapshot that is made twice is the same commit.

use std::io;
use std::path::{Path, PathBuf};

use outlast_engine::{
    Cause, LeftOut, Made, Planted, Point, Purpose, Run, RunId, RunSpec, Snapshot, SnapshotRules,
    Strategy, Time,
};
use outlast_home::layout::{AttemptDir, Layout, RunDir};
use outlast_snapshot::Around;
use outlast_wire::codes::Code;
use outlast_wire::snapshot::{self as wire, Orders, Todo, Where};
use outlast_workflow::{AskedSnapshots, SnapshotMode};

use crate::refusal::{Answer, Refusal};
use crate::world::git::bounded;
use crate::world::{files, variable};

/// How long one may take. The first of a large directory outside of a repository takes longest.
pub(crate) const TIMEOUT_MS: u64 = 600_000;
const LARGEST_MADE: usize = 1 << 20;

/// The rules of a new run, or why it has no snapshots although it would have.
pub(crate) fn rules(
    asked: &AskedSnapshots,
    spec: (&Path, Strategy),
    is_top_of_repository: impl Fn(&Path) -> bool,
    layout: &Layout,
    home: Option<&Path>,
) -> (Option<Box<SnapshotRules>>, Option<String>) {
    let (dir, strategy) = spec;
    let is_cheap = match strategy {
        Strategy::Dir | Strategy::Worktree => true,
        Strategy::Inplace => is_top_of_repository(dir),
    };
    match asked.mode {
        SnapshotMode::Off => return (None, None),
        SnapshotMode::Auto if !is_cheap => return (None, None),
        SnapshotMode::Auto | SnapshotMode::On => {}
    }
    let holds = |path: &Path| path.starts_with(dir);
    let why = if dir.parent().is_none() {
        "the root directory"
    } else if home.is_some_and(holds) {
        "a home directory"
    } else if holds(&layout.state) || holds(&layout.config) {
        "a directory that holds Outlast's own state"
    } else {
        return (Some(Box::new(asked.rules.clone())), None);
    };
    (None, Some(format!("no snapshots are made of {why}: {}", dir.display())))
}

/// What an errand of this kind is to do; `None` for any other.
pub(crate) fn orders(run: &Run, purpose: &Purpose, layout: &Layout) -> Option<Orders> {
    let todo = match purpose {
        Purpose::Snapshot { .. } => Todo::Take,
        Purpose::Restore { to } => Todo::Restore { to: to.clone(), head: head(run) },
        Purpose::Checkout
        | Purpose::Hook { .. }
        | Purpose::Ready { .. }
        | Purpose::Done { .. }
        | Purpose::Tool { .. } => return None,
    };
    of_run(run, layout, todo, message(run, purpose))
}

/// Orders to look at the workspace as it is now.
pub(crate) fn look(run: &Run, layout: &Layout, objects: PathBuf) -> Option<Orders> {
    of_run(run, layout, Todo::Look { objects }, String::new())
}

fn of_run(run: &Run, layout: &Layout, todo: Todo, message: String) -> Option<Orders> {
    let rules = run.spec.workspace.snapshot.as_ref()?;
    let known = &run.snapshots;
    let last = |point: &Point| wire::Last {
        commit: point.commit.clone(),
        tree: point.tree.clone(),
        head: point.head.clone(),
    };
    Some(Orders {
        run: run.id.0.clone(),
        git_dir: layout.run(run.id.as_str()).snapshots(),
        dir: PathBuf::from(&run.spec.dir),
        store: store(&run.spec, rules),
        max_file: rules.max_file,
        bytes_left: rules.max_total.saturating_sub(known.bytes),
        exclude: rules.exclude.clone(),
        state: vec![layout.state.clone(), layout.config.clone()],
        last: known.tip.as_ref().map(last),
        since: known.since.as_ref().map(|since| since.tree.clone()),
        date_s: happened_at(run).0 / 1000,
        message,
        todo,
    })
}

fn store(spec: &RunSpec, rules: &SnapshotRules) -> Where {
    match spec.workspace.strategy {
        // A repository in it is the agent's, and can be gone at any time.
        Strategy::Dir => Where::Own,
        Strategy::Inplace | Strategy::Worktree if rules.own_store => Where::Own,
        Strategy::Inplace | Strategy::Worktree => Where::Repository,
    }
}

/// When what a snapshot shows had happened.
fn happened_at(run: &Run) -> Time {
    let ended = run.attempt.as_ref().and_then(|last| last.state.end.as_ref());
    ended.map_or(run.created_at, |(_, at)| *at)
}

fn message(run: &Run, purpose: &Purpose) -> String {
    let turn = run.attempt.as_ref().map_or(0, |last| last.turn);
    let what = match purpose {
        Purpose::Snapshot { cause: Cause::Base } => "before the first turn".to_owned(),
        Purpose::Snapshot { cause: Cause::Turn } => format!("turn {turn}"),
        Purpose::Snapshot { cause: Cause::Found } => format!("found after turn {turn}"),
        Purpose::Snapshot { cause: Cause::Wreck } => match &run.snapshots.asked {
            Some(asked) => format!("before going back to turn {}", asked.back_to),
            None => format!("a failed attempt at turn {turn}"),
        },
        _ => String::new(),
    };
    format!("outlast run {}: {what}", run.id)
}

/// Where HEAD of a worktree of our own goes back to. Nothing of a user's checkout does.
fn head(run: &Run) -> Option<wire::Head> {
    let is_ours = run.spec.workspace.strategy == Strategy::Worktree;
    // A fork has a branch of its own, which its checkout has set.
    if run.snapshots.planted == Planted::Due {
        return None;
    }
    let asked = run.snapshots.asked.as_ref().map(|asked| &asked.point);
    let point = asked.or(run.snapshots.point.as_ref()).filter(|_| is_ours)?;
    Some(wire::Head { commit: point.head.clone()?, branch: point.branch.clone() })
}

/// What git is started with for a client: the daemon's own.
pub(crate) fn around() -> Around {
    let dir = |name| variable(name).map(PathBuf::from);
    Around {
        path: variable("PATH").unwrap_or_default().into(),
        home: dir("HOME"),
        config_home: dir("XDG_CONFIG_HOME"),
    }
}

/// Removes the ref of a run that is being removed. A repository that is gone has none, and one that cannot be written
/// to keeps it: the log says so.
pub(crate) fn drop_ref(dir: &RunDir) {
    let run = dir.0.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let dropped = outlast_snapshot::drop_ref(&dir.snapshots(), run, &around());
    let dropped = dropped.map_err(|failure| failure.to_string()).and_then(|commands| {
        commands.into_iter().try_for_each(|command| {
            bounded(command, 1024).map(drop).map_err(|error| error.to_string())
        })
    });
    if let Err(error) = dropped {
        tracing::warn!(run, error, "cannot remove the ref of its snapshots");
    }
}

/// Keeps the snapshots of a fork's first turns alive under its own name, before the fork exists.
pub(crate) fn pin(parent: &RunDir, child: &RunDir, id: &RunId, commit: &str) -> Answer<()> {
    let lost = |why: String| Refusal::new(Code::NoSnapshot, why);
    let (from, to) = (parent.snapshots(), child.snapshots());
    let pinned = outlast_snapshot::pin(&from, &to, id.as_str(), commit, &around());
    for command in pinned.map_err(|failure| lost(failure.to_string()))? {
        bounded(command, 1024).map_err(|error| {
            lost(format!("the snapshot {commit} cannot be kept for run {id}: {error}"))
        })?;
    }
    Ok(())
}

/// What an errand has left. Fails only for what the host lacks; a record that is not there is no result.
pub(crate) fn made(purpose: &Purpose, dir: &AttemptDir) -> io::Result<Option<Made>> {
    let cause = match purpose {
        Purpose::Snapshot { cause } => *cause,
        Purpose::Restore { .. } => Cause::Wreck,
        Purpose::Checkout
        | Purpose::Hook { .. }
        | Purpose::Ready { .. }
        | Purpose::Done { .. }
        | Purpose::Tool { .. } => return Ok(None),
    };
    let bytes = match files::read_regular(&dir.0.join(wire::MADE_FILE), LARGEST_MADE) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let unreadable = |error: serde_json::Error| Made::Failed {
        code: "io".to_owned(),
        why: format!("its result cannot be read: {error}"),
    };
    Ok(Some(serde_json::from_slice(&bytes).map_or_else(unreadable, |made| in_words(made, cause))))
}

fn in_words(made: wire::Made, cause: Cause) -> Made {
    match made {
        wire::Made::Taken(taken) => {
            let wire::Taken { commit, tree, head, branch, files, added, deleted, bytes, .. } =
                *taken;
            let left_out = LeftOut {
                files: taken.left_out.files,
                bytes: taken.left_out.bytes,
                names: taken.left_out.names,
            };
            let own_store = taken.store == Where::Own;
            let snapshot = Snapshot {
                cause,
                commit,
                tree,
                head,
                branch,
                files,
                added,
                deleted,
                bytes,
                left_out,
                own_store,
                progress: None,
            };
            Made::Snapshot { snapshot: Box::new(snapshot), is_same: taken.is_same }
        }
        wire::Made::Restored(wire::Restored { written, removed, kept }) => {
            Made::Restored { written, removed, kept }
        }
        wire::Made::Looked { .. } => {
            Made::Failed { code: "io".to_owned(), why: "it made something else".to_owned() }
        }
        wire::Made::Failed { code, why } => Made::Failed { code, why },
    }
}
