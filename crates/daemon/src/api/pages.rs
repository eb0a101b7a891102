//! Long answers, page by page: the next page is read when the client has taken the one before.
//!
//! No thread is held while a client reads, and no more than a page or two are in memory, however long the
//! answer is. A page that cannot be read cuts the answer short, which no reader takes for whole.

use std::future::Future;

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use outlast_wire::api::LINES;

use super::error::{Answer, ApiError};

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

/// The next objects as text, and where to go on; `None` after the last of them.
pub(super) struct Page<S> {
    pub(super) objects: Vec<Vec<u8>>,
    pub(super) next: Option<S>,
}

/// An answer whose body `read` gives page by page.
pub(super) fn answer<S, F, R>(shape: Shape, first: S, read: R) -> Response
where
    S: Send + 'static,
    F: Future<Output = Answer<Page<S>>> + Send,
    R: Fn(S) -> F + Send + 'static,
{
    ([(CONTENT_TYPE, shape.content_type())], body(shape, first, read)).into_response()
}

/// A body that `read` gives page by page, beginning with the page that `first` leads to.
pub(super) fn body<S, F, R>(shape: Shape, first: S, read: R) -> Body
where
    S: Send + 'static,
    F: Future<Output = Answer<Page<S>>> + Send,
    R: Fn(S) -> F + Send + 'static,
{
    let begin = Writing { shape, has_begun: false, read };
    let pages = stream::unfold(Some((begin, first)), |state| async {
        let (mut writing, at) = state?;
        match (writing.read)(at).await {
            Ok(page) => {
                let bytes = writing.write(&page.objects, page.next.is_none());
                Some((Ok(bytes), page.next.map(|next| (writing, next))))
            }
            Err(ApiError(refusal)) => {
                tracing::error!(message = refusal.message, "an answer was cut short");
                Some((Err(std::io::Error::other(refusal.message)), None))
            }
        }
    });
    Body::from_stream(pages)
}

struct Writing<R> {
    shape: Shape,
    has_begun: bool,
    read: R,
}

impl<R> Writing<R> {
    fn write(&mut self, objects: &[Vec<u8>], is_last: bool) -> Bytes {
        let mut bytes = Vec::with_capacity(objects.iter().map(|object| object.len() + 1).sum());
        let (first, between, end) = match self.shape {
            Shape::Array => ("[", ",", "]"),
            Shape::Lines => ("", "", ""),
        };
        for object in objects {
            let before = if std::mem::replace(&mut self.has_begun, true) { between } else { first };
            bytes.extend_from_slice(before.as_bytes());
            bytes.extend_from_slice(object);
            if self.shape == Shape::Lines {
                bytes.push(b'\n');
            }
        }
        if is_last {
            let begin = if self.has_begun { "" } else { first };
            bytes.extend_from_slice(begin.as_bytes());
            bytes.extend_from_slice(end.as_bytes());
        }
        bytes.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(shape: Shape, pages: &[&[&str]]) -> String {
        let mut writing = Writing { shape, has_begun: false, read: () };
        let last = pages.len() - 1;
        let pages = pages.iter().enumerate().map(|(at, page)| {
            let objects: Vec<Vec<u8>> = page.iter().map(|text| text.as_bytes().to_vec()).collect();
            String::from_utf8(writing.write(&objects, at == last).to_vec()).expect("it is text")
        });
        pages.collect()
    }

    #[test]
    fn pages_are_one_list_wherever_they_are_cut() {
        assert_eq!(written(Shape::Array, &[&[]]), "[]");
        assert_eq!(written(Shape::Array, &[&[], &["1"], &[], &["2", "3"], &[]]), "[1,2,3]");
        assert_eq!(written(Shape::Lines, &[&[]]), "");
        assert_eq!(written(Shape::Lines, &[&["1", "2"], &["3"]]), "1\n2\n3\n");
    }
}
