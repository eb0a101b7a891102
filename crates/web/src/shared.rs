//! What the holder of a read-only link gets: one run, whose id is the link's and in no address.
//!
//! Each field is named here, so what a later version of the daemon adds is not shown. What the run was told and asks,
//! what its agent said at the end of a turn (which may be the question), its environment, labels and directory are left
//! out; its output is there unless the link is without.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Extension, Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::{Json, body};
use futures_util::stream;
use outlast_client::ask::{Ask, run_path};
use outlast_client::journal::Event;
use outlast_client::session::Session;
use outlast_client::sse;
use outlast_wire::api::{RunView, TurnRow};
use serde_json::{Value, json};
use tokio::time::{Duration, Instant, sleep};

use crate::asked::{Asked, place};
use crate::refusal::Refusal;
use crate::shares::Grant;
use crate::state::Web;
use crate::{pages, reads, truth};

type Done = Result<Response, Refusal>;
type Here = State<Arc<Web>>;
type Holder = Extension<Grant>;

/// A proxy or a sleeping phone would take a silent connection for a dead one.
const KEEP_ALIVE: Duration = Duration::from_secs(20);

/// How the run stands, without what it was told.
pub(crate) async fn view(State(web): Here, Extension(grant): Holder) -> Done {
    let view: RunView =
        Session::again(&web.world).call(&Ask::get(&run_path(&grant.run, ""))).await?;
    let told = (web.words.view)(&view);
    let left_s = grant.until.saturating_duration_since(Instant::now()).as_secs();
    Ok(Json(json!({
        "told": { "group": told.group, "words": told.words },
        "truths": truth::of_view(&view),
        "link": { "output": grant.output, "left_s": left_s },
        "run": shown(&view),
    }))
    .into_response())
}

fn shown(view: &RunView) -> Value {
    json!({
        "id": view.id, "name": view.name, "state": view.state, "health_since": view.health_since,
        "phase": view.phase, "turn": view.turn, "attempt": view.attempt,
        "turns_committed": view.turns_committed, "created_at": view.created_at,
        "started_at": view.started_at, "ended_at": view.ended_at, "wake_at": view.wake_at,
        "worked_ms": view.worked_ms, "usage": view.usage, "limits": view.limits, "seq": view.seq,
        "is_asked": view.blocked.is_some() || view.asks.is_some(),
    })
}

pub(crate) async fn turns(state: Here, Extension(grant): Holder, asked: Asked) -> Done {
    let answer = pages::turns(state, Path(grant.run), asked).await?;
    let whole = body::to_bytes(answer.into_body(), usize::MAX).await;
    let rows: Vec<TurnRow> =
        whole.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let rows: Vec<Value> = rows.iter().map(turn).collect();
    Ok(Json(rows).into_response())
}

fn turn(row: &TurnRow) -> Value {
    json!({
        "turn": row.turn, "attempts": row.attempts, "errands": [], "status": row.status,
        "outcome": row.outcome, "committed_at": row.committed_at, "changed": row.changed,
    })
}

pub(crate) async fn output(State(web): Here, Extension(grant): Holder, asked: Asked) -> Done {
    need_output(&grant)?;
    let over = {
        let (web, grant) = (web.clone(), grant.clone());
        async move { web.lent(&grant).await }
    };
    reads::output_until(web, &grant.run, &asked.0, Box::pin(over)).await
}

pub(crate) async fn search(state: Here, Extension(grant): Holder, asked: Asked) -> Done {
    need_output(&grant)?;
    pages::search(state, Path(grant.run), asked).await
}

fn need_output(grant: &Grant) -> Result<(), Refusal> {
    if grant.output {
        return Ok(());
    }
    let message = "this link shows no output";
    Err(Refusal::new(StatusCode::FORBIDDEN, "not_shared", message))
}

/// A line for each event of the run, which says its number and nothing of it. Ends with the link.
pub(crate) async fn live(State(web): Here, Extension(grant): Holder, asked: Asked) -> Done {
    let place = place(&web)?;
    let Query(asked) = asked;
    let after = crate::asked::number(&asked, "after")?;
    let ask = Ask::get(&run_path(&grant.run, "/events")).query("follow", true);
    let ask = ask.query_if("after", after).accept("text/event-stream");
    let source = sse::Stream::new(Session::again(&web.world).open(&ask).await?);
    let pieces =
        stream::unfold((source, web, grant, place), |(mut source, web, grant, place)| async move {
            let piece = tokio::select! {
                event = source.next() => changed(event)?,
                () = web.lent(&grant) => return None,
                () = sleep(KEEP_ALIVE) => Bytes::from_static(b": \n\n"),
            };
            Some((Ok::<_, std::convert::Infallible>(piece), (source, web, grant, place)))
        });
    Ok(([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(pieces)).into_response())
}

fn changed(event: Option<sse::Event>) -> Option<Bytes> {
    let Some(sse::Event::Data(text)) = event else { return None };
    let seq = Event::read(&text).ok()?.seq;
    Some(Bytes::from(format!("event: changed\ndata: {{\"seq\":{seq}}}\n\n")))
}
