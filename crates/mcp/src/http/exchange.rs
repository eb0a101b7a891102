//! One request and its answer.

use std::time::Duration;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{ACCEPT, HeaderMap, HeaderName};
use hyper::{Request, Response, StatusCode};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::doors::{Doors, only};
use super::reply::{self, News, Reply, Running};
use crate::answers::{Answers, Call, Next};
use crate::era::{Era, Named, Unsupported};
use crate::rpc::{self, LONGEST_LINE, Said};

/// The whole of a body has to be there within this time.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// What is heard of a call and not yet sent. If it is full, progress is left out.
const NEWS: usize = 8;

pub(super) async fn answer(
    request: Request<Incoming>,
    doors: &Doors,
    answers: &Answers,
) -> Response<Reply> {
    let (head, body) = request.into_parts();
    if let Err((status, why)) = doors.judge(&head) {
        return refused(status, why);
    }
    let bytes = match whole(body).await {
        Ok(bytes) => bytes,
        Err((status, why)) => return refused(status, why),
    };
    match rpc::read(bytes.trim_ascii()) {
        Said::Wrong(answer) => reply::json(StatusCode::BAD_REQUEST, &answer),
        // A call that is to be given up is given up by hanging up; ids of different clients are not told apart here.
        Said::Response | Said::Notification { .. } => match named(&head.headers).known() {
            Ok(()) => reply::accepted(),
            Err(Unsupported(error)) => {
                reply::json(StatusCode::BAD_REQUEST, &rpc::refusal(&Value::Null, &error))
            }
        },
        Said::Request { id, method, params } => {
            let era = match Era::of_http(&named(&head.headers), &method, &params) {
                Ok(era) => era,
                Err(Unsupported(error)) => {
                    return reply::json(StatusCode::BAD_REQUEST, &rpc::refusal(&id, &error));
                }
            };
            match answers.next(&id, era, &method, &params) {
                Next::Said(answer) => reply::json(era.status(&answer), &answer),
                Next::Call(call) => called(answers.clone(), call, era, &head.headers).await,
            }
        }
    }
}

/// JSON if the call is over before there is progress to tell of; otherwise a stream, if the client takes one.
async fn called(answers: Answers, call: Call, era: Era, headers: &HeaderMap) -> Response<Reply> {
    let takes_stream = takes_stream(headers);
    let (send, mut news) = mpsc::channel(NEWS);
    let must_end = call.must_end;
    let task = tokio::task::spawn_local(async move {
        let tell = |progress| {
            let _full_or_gone = send.try_send(News::Progress(progress));
        };
        let answer = answers.make(call, tell).await;
        let _gone = send.send(News::Done(answer)).await;
    });
    let running = Running { task, must_end };
    loop {
        match news.recv().await {
            Some(News::Done(answer)) => return reply::json(era.status(&answer), &answer),
            Some(News::Progress(first)) if takes_stream => {
                return reply::stream(&first, news, running);
            }
            Some(News::Progress(_)) => {}
            // The task panicked, and has said so on standard error.
            None => return refused(StatusCode::INTERNAL_SERVER_ERROR, "the call broke off"),
        }
    }
}

async fn whole(body: Incoming) -> Result<Bytes, (StatusCode, &'static str)> {
    const TOO_LARGE: (StatusCode, &str) =
        (StatusCode::PAYLOAD_TOO_LARGE, "a message has at most 4 MiB");
    // A body that is announced to be too large is not waited for.
    if body.size_hint().lower() > LONGEST_LINE as u64 {
        return Err(TOO_LARGE);
    }
    let read = timeout(BODY_WITHIN, Limited::new(body, LONGEST_LINE).collect()).await;
    match read {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(TOO_LARGE),
        Ok(Err(_)) => Err((StatusCode::BAD_REQUEST, "the body broke off")),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the body did not come within 30 seconds")),
    }
}

/// What the headers say of the message. A header that is there twice says nothing.
fn named(headers: &HeaderMap) -> Named<'_> {
    let of = |name: &'static str| {
        let name = HeaderName::from_static(name);
        headers.contains_key(&name).then(|| only(headers, &name).unwrap_or_default())
    };
    Named { version: of("mcp-protocol-version"), method: of("mcp-method"), name: of("mcp-name") }
}

fn takes_stream(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut kinds = accepts.flat_map(|value| value.split(','));
    kinds.any(|kind| {
        let kind = kind.split(';').next().unwrap_or_default().trim();
        ["text/event-stream", "text/*", "*/*"].contains(&kind)
    })
}

fn refused(status: StatusCode, why: &str) -> Response<Reply> {
    reply::json(status, &rpc::error(&Value::Null, rpc::INVALID_REQUEST, why))
}
