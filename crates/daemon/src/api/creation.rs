//! Making a run: checked, its files beside it, then the journal, then the answer.

use std::path::Path;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::StatusCode;
use outlast_engine::{Agent, Fact, Limits, Retry, RunId, RunSpec, Window};
use outlast_store::Error;
use outlast_wire::api::{CreateRun, Created};
use outlast_wire::hook;
use outlast_wire::layout::RunDir;

use super::Daemon;
use super::error::{Answer, ApiError, bad_request};
use super::runs::{blocking, resolve};
use crate::conductor::append_to;
use crate::driver::Seat;
use crate::refusal::Refusal;
use crate::supervisor::Supervisor;
use crate::world;
use crate::world::files::{self, Lasting};

/// Bounds on what is written into every journal.
const LONGEST_NAME: usize = 100;
const MOST_LABELS: usize = 64;

#[utoipa::path(post, path = "/v1/runs", request_body = CreateRun,
    responses((status = 201, body = Created), (status = 200, description = "it was there already", body = Created)))]
pub(crate) async fn create(
    State(supervisor): Daemon,
    body: Result<Json<CreateRun>, JsonRejection>,
) -> Answer<(StatusCode, Json<Created>)> {
    let Json(asked) = body.map_err(|rejection| bad_request(rejection.body_text()))?;
    let id = match &asked.id {
        Some(id) => RunId(id.clone()),
        None => RunId::from_random(world::random()?),
    };
    let parent = match &asked.parent {
        Some(parent) => Some(resolve(&supervisor, parent).await?),
        None => None,
    };
    let spec = spec(&id, &asked, parent)?;
    // Kept until the journal has the run, or its files are gone.
    let Some(_claim) = supervisor.claim(&id) else { return Err(busy(&id)) };
    if let Some(existing) = existing(&supervisor, &id, &spec).await? {
        return Ok((StatusCode::OK, Json(Created { id: existing.0, existed: true })));
    }
    let dir = supervisor.layout.run(id.as_str());
    let env = serde_json::to_vec(&asked.env).map_err(|error| bad_request(error.to_string()))?;
    let written = {
        let (dir, spec) = (dir.clone(), spec.clone());
        blocking(move || Ok(write_files(&dir, &spec, &env)?)).await
    };
    if let Err(error) = written {
        discard(&dir);
        return Err(error.about(&format!(
            "cannot write the files of a new run to {}",
            supervisor.layout.runs().display()
        )));
    }
    hook!("daemon.create-files");
    let (append, seat) =
        Seat::create(&id, spec.clone(), &supervisor.world.moment(), supervisor.epoch);
    match append_to(&supervisor, append).await {
        Ok(()) => {
            hook!("daemon.run-created");
            supervisor.seat(seat, None);
            Ok((StatusCode::CREATED, Json(Created { id: id.0, existed: false })))
        }
        Err(error) => {
            Ok((StatusCode::OK, Json(settle(&supervisor, &dir, &id, &spec, error).await?)))
        }
    }
}

/// The same request is being answered already, or what a dead daemon had made of it is being cleared away.
fn busy(id: &RunId) -> ApiError {
    ApiError(Refusal::new("busy", format!("run {id} is being made just now")).hint("ask again"))
}

/// The journal refused. It may be because the run, or one with its key, is there already.
async fn settle(
    supervisor: &Arc<Supervisor>,
    dir: &RunDir,
    id: &RunId,
    spec: &RunSpec,
    error: Error,
) -> Answer<Created> {
    let by = match &error {
        Error::KeyTaken { by, .. } => by.clone(),
        Error::Conflict { .. } => id.clone(),
        // After any other error nobody knows whether it was written; then the directory stays.
        refused if refused.is_refusal() => {
            discard(dir);
            return Err(error.into());
        }
        _ => return Err(error.into()),
    };
    if by != *id {
        discard(dir);
    }
    same_run(supervisor, &by, spec).await?;
    Ok(Created { id: by.0, existed: true })
}

/// The run that this request has made before, if it has.
async fn existing(
    supervisor: &Arc<Supervisor>,
    id: &RunId,
    spec: &RunSpec,
) -> Answer<Option<RunId>> {
    let store = supervisor.store.clone();
    let asked = id.clone();
    let is_known = blocking(move || Ok(store.row(&asked)?.is_some())).await?;
    if !is_known {
        return Ok(None);
    }
    same_run(supervisor, id, spec).await?;
    Ok(Some(id.clone()))
}

/// Refuses to call two different requests one run.
async fn same_run(supervisor: &Arc<Supervisor>, id: &RunId, spec: &RunSpec) -> Answer<()> {
    let store = supervisor.store.clone();
    let wanted = id.clone();
    let first = blocking(move || Ok(store.events(&wanted, 0, 1)?)).await?;
    let is_same = first.first().is_some_and(|event| match &event.fact {
        Fact::RunCreated { spec: theirs } => {
            theirs.agent == spec.agent && theirs.dir == spec.dir && theirs.task == spec.task
        }
        _ => false,
    });
    if is_same {
        return Ok(());
    }
    let key = spec.key.as_deref().unwrap_or_default();
    let refusal = Refusal::new(
        "key_conflict",
        format!("run {id} has key {key:?} and is a different command or directory"),
    );
    Err(refusal.hint(format!("use another --key, or look at it with `outlast show {id}`")).into())
}

fn spec(id: &RunId, asked: &CreateRun, parent: Option<RunId>) -> Answer<RunSpec> {
    let agent =
        Agent { kind: outlast_agents::exec::KIND.to_owned(), command: asked.command.clone() };
    outlast_agents::plan(&agent).map_err(|error| {
        Refusal::new("bad_command", error.to_string()).hint("put the command after `--`")
    })?;
    if !id.is_well_formed() {
        return Err(bad_request(format!("{id:?} is not a run id")));
    }
    check_name(asked.name.as_deref())?;
    check_key(asked.key.as_deref())?;
    check_dir(&asked.dir)?;
    if asked.labels.len() > MOST_LABELS {
        return Err(bad_request(format!(
            "{} labels are more than {MOST_LABELS}",
            asked.labels.len()
        )));
    }
    let default = Retry::default();
    Ok(RunSpec {
        name: asked.name.clone(),
        key: asked.key.clone(),
        task: asked.task.clone(),
        agent,
        dir: asked.dir.clone(),
        umask: asked.umask,
        tty: asked.tty.map(|window| Window { rows: window.rows.max(1), cols: window.cols.max(1) }),
        labels: asked.labels.clone(),
        parent,
        limits: Limits {
            turn_timeout_ms: asked.limits.turn_timeout_ms,
            stall_window_ms: asked.limits.stall_window_ms,
            run_timeout_ms: asked.limits.run_timeout_ms,
        },
        retry: Retry {
            max_attempts: asked.retry.saturating_add(1),
            initial_backoff_ms: asked.backoff_ms.unwrap_or(default.initial_backoff_ms),
            max_backoff_ms: default.max_backoff_ms,
        },
    })
}

fn check_name(name: Option<&str>) -> Answer<()> {
    let Some(name) = name else { return Ok(()) };
    let is_plain = |char: char| {
        char.is_alphanumeric() || matches!(char, '.' | '_' | '-' | ' ' | '/' | ':' | '@' | '#')
    };
    if name.is_empty()
        || name.len() > LONGEST_NAME
        || !name.chars().all(is_plain)
        || name.starts_with('-')
    {
        let refusal = Refusal::new("bad_request", format!("{name:?} is not a name for a run"));
        return Err(refusal.hint(format!("letters, digits, `.` `_` `-` `/` `:` `@` `#` and spaces, up to {LONGEST_NAME} bytes")).into());
    }
    Ok(())
}

fn check_key(key: Option<&str>) -> Answer<()> {
    match key {
        Some(key) if key.is_empty() || key.len() > 1024 => {
            let refusal = Refusal::new("bad_request", "a key has 1 to 1024 bytes");
            Err(refusal.hint("any text that names the work, such as build-42").into())
        }
        Some(_) | None => Ok(()),
    }
}

fn check_dir(dir: &str) -> Answer<()> {
    let path = Path::new(dir);
    if !path.is_absolute() {
        return Err(bad_request(format!("{dir:?} is not an absolute path")));
    }
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Ok(()),
        Ok(_) => Err(Refusal::new("no_directory", format!("{dir} is not a directory"))
            .hint("--dir names the directory to run in")
            .into()),
        Err(error) => Err(Refusal::new("no_directory", format!("cannot run in {dir}: {error}"))
            .hint("--dir names the directory to run in")
            .into()),
    }
}

fn write_files(dir: &RunDir, spec: &RunSpec, env: &[u8]) -> std::io::Result<()> {
    files::private_dir(&dir.0)?;
    let written = serde_json::to_vec_pretty(spec).map_err(std::io::Error::other)?;
    files::write_whole(&dir.spec(), &written, Lasting::Process)?;
    files::write_whole(&dir.env(), env, lasting(spec))
}

/// A command that is tried once is tried on this boot; only a later attempt, after the machine was down, needs
/// the environment to have lasted.
fn lasting(spec: &RunSpec) -> Lasting {
    if spec.retry.max_attempts > 1 { Lasting::Power } else { Lasting::Process }
}

/// Nobody was promised this run.
fn discard(dir: &RunDir) {
    if let Err(error) = std::fs::remove_dir_all(&dir.0) {
        tracing::warn!(dir = %dir.0.display(), %error, "cannot remove the files of a run that was not made");
    }
}
