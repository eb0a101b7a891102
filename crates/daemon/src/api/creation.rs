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
use crate::supervisor::{Claim, Leaving, Supervisor};
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
    let Some(claim) = supervisor.claim(&id) else { return Err(busy(&id)) };
    let env = serde_json::to_vec(&asked.env).map_err(|error| bad_request(error.to_string()))?;
    let creation = Creation { supervisor, id, spec, env, _claim: claim };
    // A task of its own: a client that hangs up must not leave a run that nobody conducts.
    #[expect(
        clippy::disallowed_methods,
        reason = "ends with the append, and its answer is awaited here"
    )]
    let made = tokio::spawn(creation.make()).await;
    let created =
        made.map_err(|error| Refusal::new("bug", format!("making a run died: {error}")))??;
    let status = if created.existed { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(created)))
}

/// A run that is being made.
struct Creation {
    supervisor: Arc<Supervisor>,
    id: RunId,
    spec: RunSpec,
    env: Vec<u8>,
    /// Kept until the journal has the run, or its files are gone.
    _claim: Claim,
}

impl Creation {
    async fn make(self) -> Answer<Created> {
        if self.exists().await? {
            return self.same_as(&self.id).await;
        }
        let dir = self.supervisor.layout.run(self.id.as_str());
        self.write(&dir).await?;
        hook!("daemon.create-files");
        let (epoch, moment) = (self.supervisor.epoch, self.supervisor.world.moment());
        let (append, seat) = Seat::create(&self.id, self.spec.clone(), &moment, epoch);
        match append_to(&self.supervisor, append).await {
            Ok(()) => {
                hook!("daemon.run-created");
                self.supervisor.seat(seat, None);
                Ok(Created { id: self.id.0, existed: false })
            }
            Err(error) => self.settle(&dir, error).await,
        }
    }

    async fn write(&self, dir: &RunDir) -> Answer<()> {
        let written = {
            let (dir, spec, env) = (dir.clone(), self.spec.clone(), self.env.clone());
            blocking(move || Ok(write_files(&dir, &spec, &env)?)).await
        };
        written.map_err(|error| {
            discard(dir);
            let runs = self.supervisor.layout.runs();
            error.about(&format!("cannot write the files of a new run to {}", runs.display()))
        })
    }

    /// The journal did not take it. It may be because the run, or one with its key, is there already.
    async fn settle(&self, dir: &RunDir, error: Error) -> Answer<Created> {
        match &error {
            Error::KeyTaken { by, .. } => {
                discard(dir);
                self.same_as(by).await
            }
            Error::Conflict { .. } => self.same_as(&self.id).await,
            Error::StaleEpoch { .. } => {
                // The directory may be another daemon's by now.
                self.supervisor.leave(Leaving::Fenced);
                Err(error.into())
            }
            refused if refused.is_refusal() => {
                discard(dir);
                Err(error.into())
            }
            // Nobody knows whether it was written. If it was, it needs a conductor; if not, its files are
            // cleared away by the next daemon.
            _ => {
                self.supervisor.seat_if_open(&self.id);
                Err(error.into())
            }
        }
    }

    async fn exists(&self) -> Answer<bool> {
        let (store, id) = (self.supervisor.store.clone(), self.id.clone());
        blocking(move || Ok(store.row(&id)?.is_some())).await
    }

    /// The run that is there already, unless it is another one than was asked for.
    async fn same_as(&self, id: &RunId) -> Answer<Created> {
        let (store, wanted) = (self.supervisor.store.clone(), id.clone());
        let first = blocking(move || Ok(store.events(&wanted, 0, 1)?)).await?;
        let is_same = first.first().is_some_and(|event| match &event.fact {
            Fact::RunCreated { spec: theirs } => is_same_work(theirs, &self.spec),
            _ => false,
        });
        if is_same {
            self.supervisor.seat_if_open(id);
            return Ok(Created { id: id.0.clone(), existed: true });
        }
        let key = self.spec.key.as_deref().unwrap_or_default();
        let message = format!("run {id} has key {key:?} and is a different command or directory");
        let hint = format!("use another --key, or look at it with `outlast show {id}`");
        Err(Refusal::new("key_conflict", message).hint(hint).into())
    }
}

fn is_same_work(theirs: &RunSpec, ours: &RunSpec) -> bool {
    theirs.agent == ours.agent && theirs.dir == ours.dir && theirs.task == ours.task
}

/// The same request is being answered already, or what a dead daemon had made of it is being cleared away.
fn busy(id: &RunId) -> ApiError {
    ApiError(Refusal::new("busy", format!("run {id} is being made just now")).hint("ask again"))
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
        umask: asked.umask,
        tty: asked.tty.map(|window| Window { rows: window.rows.max(1), cols: window.cols.max(1) }),
        labels: asked.labels.clone(),
        parent,
        limits: Limits {
            turn_timeout_ms: asked.limits.turn_timeout_ms,
            stall_window_ms: asked.limits.stall_window_ms,
            run_timeout_ms: asked.limits.run_timeout_ms,
            ..Limits::default()
        },
        retry: Retry {
            max_attempts: asked.retry.saturating_add(1),
            initial_backoff_ms: asked.backoff_ms.unwrap_or(default.initial_backoff_ms),
            max_backoff_ms: default.max_backoff_ms,
        },
        ..RunSpec::command(agent, asked.dir.clone())
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
