//! Long answers, page by page: one page is read while the client takes the one before.
//!
//! No thread is held while a client reads, and no more than two pages are in memory, however long the answer is. A page that cannot be read cuts the answer short, which no reader takes for whole.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use outlast_wire::api::LINES;
use serde::Serialize;
use tokio::task::JoinHandle;

use crate::refusal::Answer;

/// How a list of objects is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Array,
    Lines,
}

impl Shape {
    /// As the client asks for it.
    pub(super) fn wanted(headers: &HeaderMap) -> Self {
        match headers.get(ACCEPT) {
            Some(accept) if accept == LINES => Self::Lines,
            _ => Self::Array,
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Self::Array => "application/json",
            Self::Lines => LINES,
        }
    }
}

/// The next objects, and where to go on; `None` after the last of them.
pub(super) struct Page<S> {
    pub(super) objects: Objects,
    pub(super) next: Option<S>,
}

/// Objects as text, each with what stands between it and its neighbour.
pub(super) struct Objects {
    shape: Shape,
    text: Vec<u8>,
}

impl Objects {
    pub(super) fn new(shape: Shape) -> Self {
        Self { shape, text: Vec::new() }
    }

    pub(super) fn push(&mut self, object: &impl Serialize) {
        if self.shape == Shape::Array {
            self.text.push(BETWEEN);
        }
        serde_json::to_writer(&mut self.text, object).expect("an object is plain data");
        if self.shape == Shape::Lines {
            self.text.push(b'\n');
        }
    }
}

/// Before every object of an array but the first, which has the bracket in its place.
const BETWEEN: u8 = b',';

/// An answer whose body `read` gives page by page.
pub(super) fn answer<S, F, R>(shape: Shape, first: S, read: R) -> Response
where
    S: Send + 'static,
    F: Future<Output = Answer<Page<S>>> + Send + 'static,
    R: Fn(S) -> F + Send + 'static,
{
    ([(CONTENT_TYPE, shape.content_type())], body(shape, first, read)).into_response()
}

/// A body that `read` gives page by page, beginning with the page that `first` leads to.
pub(super) fn body<S, F, R>(shape: Shape, first: S, read: R) -> Body
where
    S: Send + 'static,
    F: Future<Output = Answer<Page<S>>> + Send + 'static,
    R: Fn(S) -> F + Send + 'static,
{
    let begin = Writing { shape, has_begun: false, read };
    let pages = stream::unfold(Some((begin, Next::At(first))), |state| async {
        let (mut writing, next) = state?;
        let read = match next {
            Next::At(first) => (writing.read)(first).await,
            Next::OnTheWay(reading) => reading.await,
        };
        match read {
            Ok(page) => {
                let next = page.next.map(|at| Next::OnTheWay(Reading::begin((writing.read)(at))));
                let bytes = writing.write(page.objects, next.is_none());
                Some((Ok(bytes), next.map(|next| (writing, next))))
            }
            Err(refusal) => {
                tracing::error!(message = refusal.message, "an answer was cut short");
                Some((Err(io::Error::other(refusal.message)), None))
            }
        }
    });
    Body::from_stream(pages)
}

/// The page after those that were written.
enum Next<S> {
    At(S),
    OnTheWay(Reading<S>),
}

/// A page that is being read. Given up with the answer that it is for.
struct Reading<S>(JoinHandle<Answer<Page<S>>>);

impl<S: Send + 'static> Reading<S> {
    fn begin(read: impl Future<Output = Answer<Page<S>>> + Send + 'static) -> Self {
        #[expect(clippy::disallowed_methods, reason = "ends with the answer that it is for")]
        let reading = tokio::spawn(read);
        Self(reading)
    }
}

impl<S> Future for Reading<S> {
    type Output = Answer<Page<S>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let read = ready!(Pin::new(&mut self.0).poll(context));
        Poll::Ready(read.unwrap_or_else(|error| Err(io::Error::other(error).into())))
    }
}

impl<S> Drop for Reading<S> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Writing<R> {
    shape: Shape,
    has_begun: bool,
    read: R,
}

impl<R> Writing<R> {
    fn write(&mut self, objects: Objects, is_last: bool) -> Bytes {
        let mut text = objects.text;
        let has_begun = self.has_begun;
        self.has_begun |= !text.is_empty();
        if self.shape == Shape::Array {
            match text.first_mut() {
                Some(first) if !has_begun => *first = b'[',
                None if !has_begun && is_last => text.push(b'['),
                Some(_) | None => {}
            }
            if is_last {
                text.push(b']');
            }
        }
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(shape: Shape, pages: &[&[u32]]) -> String {
        let mut writing = Writing { shape, has_begun: false, read: () };
        let last = pages.len() - 1;
        let pages = pages.iter().enumerate().map(|(at, page)| {
            let mut objects = Objects::new(shape);
            page.iter().for_each(|number| objects.push(number));
            String::from_utf8(writing.write(objects, at == last).to_vec()).expect("it is text")
        });
        pages.collect()
    }

    #[test]
    fn pages_are_one_list_wherever_they_are_cut() {
        assert_eq!(written(Shape::Array, &[&[]]), "[]");
        assert_eq!(written(Shape::Array, &[&[], &[1], &[], &[2, 3], &[]]), "[1,2,3]");
        assert_eq!(written(Shape::Lines, &[&[]]), "");
        assert_eq!(written(Shape::Lines, &[&[1, 2], &[3]]), "1\n2\n3\n");
    }
}
