//! What the page has the daemon do. Each order has an id and names what the page showed, so it counts once and for that.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequestParts, Path};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use outlast_client::ask::{Ask, run_path, trigger_path};
use outlast_client::session::Session;
use outlast_wire::api::{
    AnswerRun, CreateRun, NamedSink, OrderRun, OrderTrigger, PauseAll, RaiseRun, ResumeAll,
    RunView, SendMessage, StopRun, TriggerRun, WorkflowFile,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::asked::{checked, named};
use crate::people::Caller;
use crate::refusal::Refusal;
use crate::state::Web;

type Done = Result<Response, Refusal>;

/// Who gives an order, and the way to the daemon.
pub(crate) struct Giver {
    web: Arc<Web>,
    caller: Caller,
}

impl FromRequestParts<Arc<Web>> for Giver {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, web: &Arc<Web>) -> Result<Self, Refusal> {
        let caller = parts.extensions.get::<Caller>().cloned();
        let caller = caller.ok_or_else(|| Refusal::silent(StatusCode::UNAUTHORIZED))?;
        Ok(Self { web: web.clone(), caller })
    }
}

pub(crate) async fn answer(giver: Giver, Path(run): Path<String>, body: Bytes) -> Done {
    let order: AnswerRun = read(&body)?;
    need(
        order.id.is_some() && order.seq.is_some(),
        "an answer names its id and its question's seq",
    )?;
    give(&giver, &run, "/answer", &order).await
}

pub(crate) async fn send(giver: Giver, Path(run): Path<String>, body: Bytes) -> Done {
    let message: SendMessage = read(&body)?;
    need(message.id.is_some(), "a message names its id")?;
    need(message.from.is_none(), "a message from the page is a person's")?;
    give(&giver, &run, "/messages", &message).await
}

pub(crate) async fn pause(giver: Giver, Path(run): Path<String>, body: Bytes) -> Done {
    let order: OrderRun = read(&body)?;
    need(
        order.id.is_some() && order.seq.is_some(),
        "a pause names its id and the last event seen",
    )?;
    give(&giver, &run, "/pause", &order).await
}

pub(crate) async fn resume(giver: Giver, Path(run): Path<String>, body: Bytes) -> Done {
    let order: OrderRun = read(&body)?;
    need(
        order.id.is_some() && order.seq.is_some(),
        "a resume names its id and the last event seen",
    )?;
    give(&giver, &run, "/resume", &order).await
}

pub(crate) async fn stop(giver: Giver, Path(run): Path<String>, body: Bytes) -> Done {
    let order: StopRun = read(&body)?;
    need(order.id.is_some(), "a stop names its id")?;
    give(&giver, &run, "/stop", &order).await
}

/// More room. An exhausted run goes on with the environment of this process, since its own is gone.
pub(crate) async fn raise(giver: Giver, Path(run): Path<String>, body: Bytes) -> Done {
    let mut order: RaiseRun = read(&body)?;
    need(order.id.is_some(), "a raise names its id")?;
    need(
        order.env.is_empty() && order.env_set.is_empty(),
        "the page sets no environment of a run",
    )?;
    let run = checked(&run)?;
    let before: RunView =
        Session::again(&giver.web.world).call(&Ask::get(&run_path(run, ""))).await?;
    if before.state.has_ended() {
        order.env = (giver.web.words.env)();
    }
    give(&giver, run, "/raise", &order).await
}

pub(crate) async fn pause_all(giver: Giver, body: Bytes) -> Done {
    let order: PauseAll = read(&body)?;
    need(order.id.is_some(), "a pause names its id")?;
    tell(&giver, Ask::post("/v1/daemon/pause", &order)).await
}

pub(crate) async fn resume_all(giver: Giver, body: Bytes) -> Done {
    let order: ResumeAll = read(&body)?;
    need(order.id.is_some(), "a resume names its id")?;
    tell(&giver, Ask::post("/v1/daemon/resume", &order)).await
}

/// Runs a trigger now. The occurrence is the page's, so that a second press makes no second run.
pub(crate) async fn run_trigger(giver: Giver, Path(trigger): Path<String>, body: Bytes) -> Done {
    let order: TriggerRun = read(&body)?;
    need(
        order.occurrence.is_some() && order.trigger_id.is_some(),
        "an order to a trigger names its occurrence and the trigger's id",
    )?;
    tell(&giver, Ask::post(&trigger_path(named(&trigger)?, "/run"), &order)).await
}

pub(crate) async fn pause_trigger(giver: Giver, Path(trigger): Path<String>, body: Bytes) -> Done {
    order_trigger(&giver, &trigger, "/pause", &body).await
}

pub(crate) async fn resume_trigger(giver: Giver, Path(trigger): Path<String>, body: Bytes) -> Done {
    order_trigger(&giver, &trigger, "/resume", &body).await
}

async fn order_trigger(giver: &Giver, trigger: &str, verb: &str, body: &[u8]) -> Done {
    let order: OrderTrigger = read(body)?;
    need(
        order.id.is_some() && order.trigger_id.is_some(),
        "an order to a trigger names its id and the trigger's",
    )?;
    tell(giver, Ask::post(&trigger_path(named(trigger)?, verb), &order)).await
}

pub(crate) async fn test_sink(giver: Giver, body: Bytes) -> Done {
    tell(&giver, Ask::post("/v1/sinks/test", &sink(&body)?)).await
}

pub(crate) async fn enable_sink(giver: Giver, body: Bytes) -> Done {
    tell(&giver, Ask::post("/v1/sinks/enable", &sink(&body)?)).await
}

/// A sink that the config knows: the page sends nothing to an address that a person did not write down there.
fn sink(body: &[u8]) -> Result<NamedSink, Refusal> {
    let asked: NamedSink = read(body)?;
    need(asked.dir.is_none() && !asked.sink.contains(':'), "the page tests sinks by their names")?;
    Ok(asked)
}

/// What a person started from the page.
#[derive(serde::Deserialize)]
struct StartRun {
    /// Of the run to come, so that a second press makes no second run.
    id: String,
    /// Of the loop file, absolute.
    path: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    task: Option<String>,
}

/// Starts a run from a loop file of this machine, as `outlast run -d -f FILE` does in the file's directory.
pub(crate) async fn start(giver: Giver, body: Bytes) -> Done {
    let asked: StartRun = read(&body)?;
    let path = std::path::PathBuf::from(&asked.path);
    let Some(dir) = path.parent().filter(|_| path.is_absolute()) else {
        return Err(bad("the path of a loop file is absolute"));
    };
    let text = read_file(&path).map_err(|error| bad(&format!("{}: {error}", asked.path)))?;
    let order = CreateRun {
        id: Some(asked.id),
        name: asked.name.filter(|it| !it.is_empty()),
        task: asked.task.filter(|it| !it.is_empty()),
        workflow: Some(WorkflowFile { path: asked.path, text }),
        dir: dir.display().to_string(),
        env: (giver.web.words.env)(),
        ..CreateRun::default()
    };
    tell(&giver, Ask::post("/v1/runs", &order)).await
}

/// A loop file is a small text.
fn read_file(path: &std::path::Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let file = std::fs::File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("this is no file"));
    }
    let mut text = String::new();
    let _length = file.take(LARGEST_LOOP_FILE).read_to_string(&mut text)?;
    Ok(text)
}

const LARGEST_LOOP_FILE: u64 = 1024 * 1024;

/// The order is asked again under the same id until the daemon has answered.
async fn tell(giver: &Giver, ask: Ask) -> Done {
    let ask = ask.via(&giver.caller.via());
    let body = Session::again(&giver.web.world).fetch(&ask).await?;
    Ok((StatusCode::ACCEPTED, [(CONTENT_TYPE, "application/json")], body).into_response())
}

/// The order is asked again under the same id until the daemon has answered.
async fn give(giver: &Giver, run: &str, verb: &str, order: &impl Serialize) -> Done {
    tell(giver, Ask::post(&run_path(checked(run)?, verb), order)).await
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| bad(&format!("the order cannot be read: {error}")))
}

fn need(is_there: bool, what: &str) -> Result<(), Refusal> {
    if is_there { Ok(()) } else { Err(bad(what)) }
}

fn bad(message: &str) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "bad_request", message)
}
