//! The request that makes a run once more: of its journal, and of the files that its directory keeps.
//!
//! `rerun` makes another run of it; `raise` takes from it which variables an exhausted run may have again. A name and
//! the labels are repeated, a key and a parent are not.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::Arc;

use outlast_engine::{Run, RunId, Strategy};
use outlast_home::layout::RunDir;
use outlast_wire::OsText;
use outlast_wire::api::{
    AskedDriving, AskedLimits, AskedQueue, AskedTree, CreateRun, Created, LARGEST_STDIN, RerunRun,
    WorkflowFile,
};
use outlast_wire::codes::Code;
use outlast_wire::shim::Window;
use sha2::{Digest, Sha256};

use super::create;
use super::find::snapshot_of;
use super::spec::kept;
use crate::lanes::blocking;
use crate::occasion::Occasion;
use crate::refusal::{Answer, Refusal};
use crate::supervisor::Supervisor;
use crate::world::files;

/// Says of which run the new one is a repetition.
const RERUN_LABEL: &str = "rerun";

/// Of what a trigger says of an item, as JSON.
const LARGEST_TOLD: usize = 16 << 20;

/// Makes the same run again.
pub(crate) async fn rerun(
    supervisor: Arc<Supervisor>,
    id: &RunId,
    asked: RerunRun,
) -> Answer<Created> {
    let run = snapshot_of(&supervisor, id).await?.run;
    let dir = supervisor.ground.layout.run(id.as_str());
    let (mut request, occasion) =
        blocking(move || Ok((request_of(&run, &dir)?, occasion(&run, &dir)?))).await?;
    request.id = asked.id;
    request.env = asked.env;
    request.env_set = asked.env_set;
    request.labels.insert(RERUN_LABEL.to_owned(), id.0.clone());
    if let Some(command) = asked.command {
        request.command = command;
    }
    if let Some(task) = asked.task {
        request.task = Some(task);
    }
    if let Some(file) = asked.workflow {
        request = as_the_file_says(request, file);
    }
    create::make(supervisor, request, occasion).await
}

/// With a file that is read anew, what the old one had settled does not hold.
fn as_the_file_says(request: CreateRun, file: WorkflowFile) -> CreateRun {
    CreateRun {
        workflow: Some(file),
        agent: None,
        command: Vec::new(),
        workspace: None,
        priority: None,
        limits: AskedLimits::default(),
        retry: None,
        backoff_ms: None,
        driving: AskedDriving::default(),
        ..request
    }
}

/// The request without an environment, which is gone with the run. Blocks.
pub(super) fn request_of(run: &Run, dir: &RunDir) -> Answer<CreateRun> {
    let spec = &run.spec;
    let limits = &spec.limits;
    let workflow = workflow_of(run, dir)?;
    let driving = &spec.driving;
    let has_agent = outlast_agents::is_driven(&spec.agent, driving);
    Ok(CreateRun {
        id: None,
        // A trigger names its runs itself, and their directories after their ids.
        name: spec.name.clone().filter(|_| spec.origin.is_none()),
        key: None,
        task: spec.task.clone(),
        agent: Some(spec.agent.kind.clone()),
        workspace: Some(spec.workspace.strategy.word().to_owned()),
        priority: Some(spec.queue.priority),
        command: spec.agent.command.clone(),
        dir: directory_of(run),
        env: Vec::new(),
        env_set: Vec::new(),
        umask: spec.umask,
        tty: spec.tty.map(|window| Window { rows: window.rows, cols: window.cols }),
        labels: labels_of(run),
        parent: None,
        limits: AskedLimits {
            turn_timeout_ms: limits.turn_timeout_ms,
            stall_window_ms: limits.stall_window_ms,
            run_timeout_ms: limits.run_timeout_ms,
            max_turns: limits.max_turns,
            max_tokens: limits.max_tokens,
            max_cost_usd_micros: limits.max_cost_usd_micros,
        },
        retry: Some(spec.retry.max_attempts.saturating_sub(1)),
        backoff_ms: Some(spec.retry.initial_backoff_ms),
        notify: spec.notify.clone(),
        watch: spec.watches.clone(),
        heartbeat_ms: spec.heartbeat_ms,
        driving: AskedDriving {
            approvals: has_agent.then(|| driving.approvals.word().to_owned()),
            allow: driving.allow.clone(),
            model: driving.model.clone(),
            effort: driving.effort.clone(),
        },
        start: Default::default(),
        queue: spec
            .queue
            .name
            .clone()
            .map(|name| AskedQueue { name, slots: spec.queue.most_of_queue }),
        stdin: stdin_of(run, dir)?,
        tree: AskedTree { children: Some(spec.tree.children.word().to_owned()), ..tree_of(run) },
        workflow,
    })
}

/// Also of a child, whose caps its parent may have narrowed: a repetition never has more than the run had.
fn tree_of(run: &Run) -> AskedTree {
    let room = &run.spec.tree.room;
    AskedTree {
        max_turns: room.turns,
        max_runs: room.runs,
        max_depth: room.depth,
        max_width: room.width,
        ..AskedTree::default()
    }
}

/// A worktree is made of the repository that its run was started in; a directory of its own is made anywhere.
fn directory_of(run: &Run) -> String {
    let spec = &run.spec;
    let beside_file = || {
        let path = Path::new(&spec.workflow.as_ref()?.path);
        path.parent()?.to_str().map(str::to_owned)
    };
    match spec.workspace.strategy {
        Strategy::Inplace => spec.dir.clone(),
        Strategy::Worktree | Strategy::Dir => {
            let repository = spec.workspace.repository.clone();
            repository.or_else(beside_file).unwrap_or_else(|| "/".to_owned())
        }
    }
}

fn labels_of(run: &Run) -> BTreeMap<String, String> {
    let mut labels = run.spec.labels.clone();
    labels.remove(RERUN_LABEL);
    labels
}

/// The loop file as it was when the run was made. The journal has its hash: an agent may have changed the copy.
fn workflow_of(run: &Run, dir: &RunDir) -> Answer<Option<WorkflowFile>> {
    let Some(known) = &run.spec.workflow else { return Ok(None) };
    let gone = |why: String| {
        let message = format!("the loop file that run {} was made of {why}", run.id);
        let hint = format!("read {} anew:\noutlast rerun --fresh-file {}", known.path, run.id);
        Refusal::new(Code::UnreadableFile, message).hint(hint)
    };
    let bytes = files::read_regular(&dir.workflow(), outlast_workflow::LARGEST_FILE)
        .map_err(|error| gone(format!("cannot be read from its directory: {error}")))?;
    let hash: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    if hash != known.sha256 {
        return Err(gone("was changed in its directory".to_owned()));
    }
    let text = String::from_utf8(bytes).map_err(|_| gone("is not UTF-8".to_owned()))?;
    Ok(Some(WorkflowFile { path: known.path.clone(), text }))
}

fn stdin_of(run: &Run, dir: &RunDir) -> Answer<Option<OsText>> {
    if !run.spec.has_stdin {
        return Ok(None);
    }
    let gone = |why: String| {
        let message = format!("the standard input of run {} {why}", run.id);
        let hint = "start it anew with its input: outlast run -i -- COMMAND < FILE";
        Refusal::new(Code::UnreadableFile, message).hint(hint)
    };
    let path = dir.stdin();
    let bytes = files::read_unlinked(&path, LARGEST_STDIN)
        .map_err(|error| gone(format!("cannot be read from its directory: {error}")))?;
    // A journal from before does not say what the file held.
    match &run.spec.stdin {
        Some(was) if *was != kept(&bytes) => {
            let (was, is) = (was.bytes, bytes.len());
            Err(gone(format!(
                "was changed in its directory: {was} bytes were kept, and {is} are there"
            )))
        }
        Some(_) | None => Ok(Some(OsText(OsString::from_vec(bytes)))),
    }
}

/// What a trigger had to say of the run is said again.
fn occasion(run: &Run, dir: &RunDir) -> Answer<Occasion> {
    let Some(origin) = run.spec.origin.clone() else { return Ok(Occasion::Asked) };
    let bytes = files::read_regular(&dir.trigger(), LARGEST_TOLD)?;
    let told = serde_json::from_slice(&bytes).map_err(|error| {
        let message = format!("what the trigger said of run {} cannot be read: {error}", run.id);
        Refusal::new(Code::UnreadableFile, message)
    })?;
    Ok(Occasion::Came { origin, told, name: run.spec.name.clone() })
}
