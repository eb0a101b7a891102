//! What is sent back: one JSON body, or a stream of events that ends with the answer.

use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use serde_json::Value;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;

/// What is heard of a call.
pub(super) enum News {
    Progress(Value),
    Done(Value),
}

/// A call that goes on. A client that goes away takes it along, unless its effect has to be on record.
pub(super) struct Running {
    pub(super) task: JoinHandle<()>,
    pub(super) must_end: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.must_end {
            self.task.abort();
        }
    }
}

pub(super) struct Reply {
    first: Option<Bytes>,
    more: Option<(Receiver<News>, Running)>,
}

pub(super) fn json(status: StatusCode, message: &Value) -> Response<Reply> {
    let body = Reply { first: Some(message.to_string().into()), more: None };
    response(status, "application/json", body)
}

/// Without a body: what was said needs no answer.
pub(super) fn accepted() -> Response<Reply> {
    let mut response = Response::new(Reply { first: None, more: None });
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

/// A stream that begins with this notification and ends with the answer.
pub(super) fn stream(first: &Value, more: Receiver<News>, running: Running) -> Response<Reply> {
    let body = Reply { first: Some(event(first)), more: Some((more, running)) };
    response(StatusCode::OK, "text/event-stream", body)
}

fn response(status: StatusCode, kind: &'static str, body: Reply) -> Response<Reply> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("POST"));
    }
    if status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// JSON has no line feed of its own, so that a message is one line of data.
fn event(message: &Value) -> Bytes {
    format!("event: message\ndata: {message}\n\n").into()
}

impl Body for Reply {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        let Some((news, _)) = &mut self.more else { return Poll::Ready(None) };
        match std::task::ready!(news.poll_recv(context)) {
            Some(News::Progress(message)) => Poll::Ready(Some(Ok(Frame::data(event(&message))))),
            Some(News::Done(message)) => {
                self.more = None;
                Poll::Ready(Some(Ok(Frame::data(event(&message)))))
            }
            // The task panicked, and has said so on standard error.
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.more.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.more {
            Some(_) => SizeHint::default(),
            None => SizeHint::with_exact(self.first.as_ref().map_or(0, |bytes| bytes.len() as u64)),
        }
    }
}
