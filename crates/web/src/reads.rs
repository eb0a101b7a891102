//! Questions that are answered from what the daemon knows, and the exchange of a code for a session.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderMap, ORIGIN};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use outlast_client::ask::{Ask, run_path};
use outlast_client::connection::Reply;
use outlast_client::journal::Event;
use outlast_client::session::Session;
use outlast_client::sse;
use outlast_wire::api::{FRAMES, RunView};
use outlast_wire::words::{BlockReason, Wants};
use serde_json::{Value, json};
use tokio::sync::OwnedSemaphorePermit;

use crate::access::NoSession;
use crate::asked::{Asked, Over, checked, number, place, signed_out};
use crate::doors;
use crate::refusal::Refusal;
use crate::state::Web;
use crate::{telling, truth};

type Done = Result<Response, Refusal>;
type Here = State<Arc<Web>>;

/// Events that one answer has at most.
const MOST_EVENTS: u64 = 2000;

pub(crate) async fn exchange(State(web): Here, headers: HeaderMap, body: Bytes) -> Done {
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    if asked["proxy"] == true {
        return enter(&web, &headers);
    }
    let code = asked["code"].as_str().unwrap_or_default();
    let hint = "outlast web url prints another link";
    match web.exchange(code) {
        Ok(secret) => Ok(Json(json!({ "secret": secret })).into_response()),
        Err(NoSession::WrongCode) => {
            let message = "the link was used, or is older than two minutes";
            Err(Refusal::new(StatusCode::UNAUTHORIZED, "wrong_code", message).hint(hint))
        }
        Err(NoSession::TooManyWrong) => {
            let message = "too many wrong codes; no code is taken for a minute";
            Err(Refusal::new(StatusCode::TOO_MANY_REQUESTS, "too_many_codes", message))
        }
        Err(NoSession::NoChance(why)) => {
            Err(Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", &why))
        }
    }
}

/// A session for the person whom the proxy names. A browser says from where it asks; what does not is no page of ours.
fn enter(web: &Web, headers: &HeaderMap) -> Done {
    if !headers.contains_key(ORIGIN) {
        return Err(Refusal::silent(StatusCode::FORBIDDEN));
    }
    let Some(caller) = web.named(headers)? else {
        let message = "no proxy names a person here";
        return Err(Refusal::new(StatusCode::UNAUTHORIZED, "no_person", message));
    };
    let secret = web.enter(caller.name()).map_err(|_| {
        let message = "the system has no randomness for a secret";
        Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", message)
    })?;
    let (name, role) = (caller.name(), caller.role().word());
    Ok(Json(json!({ "secret": secret, "name": name, "role": role })).into_response())
}

pub(crate) async fn end_session(State(web): Here, headers: HeaderMap) -> Response {
    if let Some(secret) = doors::bearer(&headers) {
        web.end(secret);
    }
    Json(json!({})).into_response()
}

/// A run, how it stands, what is not known of it, and what a person may say to it.
pub(crate) async fn view(State(web): Here, Path(run): Path<String>) -> Done {
    let ask = Ask::get(&run_path(checked(&run)?, ""));
    let view: RunView = Session::again(&web.world).call(&ask).await?;
    let told = (web.words.view)(&view);
    Ok(Json(json!({
        "told": { "group": told.group, "words": told.words },
        "truths": truth::of_view(&view),
        "wants": wants(&view),
        "run": view,
    }))
    .into_response())
}

/// Which of the answers make sense: `decision`, `answer`, `either` or `look`; none if the run does not ask.
fn wants(view: &RunView) -> Option<&'static str> {
    if let Some(blocked) = &view.blocked {
        return Some(match blocked.reason_code.wants() {
            Wants::Decision => "decision",
            Wants::Answer if blocked.reason_code.known() == Some(BlockReason::NeedsInput) => {
                "either"
            }
            Wants::Answer => "answer",
            Wants::Look => "look",
        });
    }
    let asks = view.asks.as_ref()?;
    Some(if asks.tool.is_some() { "either" } else { "answer" })
}

pub(crate) async fn turn(State(web): Here, Path((run, turn)): Path<(String, u32)>) -> Done {
    let ask = Ask::get(&run_path(checked(&run)?, &format!("/turns/{turn}")));
    let body = Session::again(&web.world).fetch(&ask).await?;
    Ok(([(CONTENT_TYPE, "application/json")], body).into_response())
}

/// Events after a number, at most so many; the page asks with the last one for those that follow.
pub(crate) async fn events(State(web): Here, Path(run): Path<String>, Query(asked): Asked) -> Done {
    let _place = place(&web)?;
    let (after, most) = (number(&asked, "after")?, number(&asked, "most")?);
    let most = most.unwrap_or(MOST_EVENTS).min(MOST_EVENTS);
    let path = run_path(checked(&run)?, "/events");
    let mut session = Session::again(&web.world);
    let view: RunView = session.call(&Ask::get(&run_path(&run, ""))).await?;
    let last = view.seq.min(after.unwrap_or(0).saturating_add(most));
    let ask = Ask::get(&path).query_if("after", after).query("follow", true);
    let mut source = sse::Stream::new(session.open(&ask.accept("text/event-stream")).await?);
    let (mut teller, mut list) = ((web.words.teller)(), Vec::new());
    let mut seen = after.unwrap_or(0);
    while seen < last {
        let Some(sse::Event::Data(json)) = source.next().await else {
            let message = "the list of events was cut short";
            return Err(Refusal::new(StatusCode::BAD_GATEWAY, "cut_short", message));
        };
        let event = Event::read(&json)?;
        seen = event.seq;
        list.push(telling::told(&event, &mut teller));
    }
    Ok(Json(Value::Array(list)).into_response())
}

/// The daemon's own frames, as they come. One without its `end` broke off, and is asked for again by its offset.
pub(crate) async fn output(
    State(web): Here,
    Path(run): Path<String>,
    headers: HeaderMap,
    Query(asked): Asked,
) -> Done {
    let over = signed_out(&web, &headers);
    output_until(web, &run, &asked, over).await
}

/// The same, and not after `over`.
pub(crate) async fn output_until(
    web: Arc<Web>,
    run: &str,
    asked: &BTreeMap<String, String>,
    over: Over,
) -> Done {
    let place = place(&web)?;
    let mut ask = Ask::get(&run_path(checked(run)?, "/output")).accept(FRAMES);
    for name in ["turn", "attempt", "offset", "tail", "limit"] {
        ask = ask.query_if(name, number(asked, name)?);
    }
    ask = ask.query_if("since", asked.get("since"));
    if asked.get("follow").is_some_and(|it| it == "true") {
        ask = ask.query("follow", true);
    }
    let reply = Session::again(&web.world).open(&ask).await?;
    Ok(([(CONTENT_TYPE, FRAMES)], relayed(reply, place, over)).into_response())
}

pub(crate) async fn report(State(web): Here, Query(asked): Asked) -> Done {
    let since = asked.get("since").cloned();
    let ask = move || (web.words.report)(since);
    #[expect(clippy::disallowed_methods, reason = "the command line's own report is awaited here")]
    let report = tokio::task::spawn_blocking(ask).await;
    let died = |_| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, "bug", "the report died");
    Ok(Json(report.map_err(died)??).into_response())
}

fn relayed(reply: Reply, place: OwnedSemaphorePermit, over: Over) -> Body {
    let pieces = stream::unfold((reply, place, over), |(mut reply, place, mut over)| async move {
        let piece = tokio::select! {
            piece = reply.more() => piece?.ok()?,
            () = &mut over => return None,
        };
        Some((Ok::<_, std::convert::Infallible>(piece), (reply, place, over)))
    });
    Body::from_stream(pieces)
}
