//! The path and the query of a request. What cannot be read is refused as everything else is: with a code, as JSON.

use axum::extract::{FromRequestParts, Path as AxumPath, Query as AxumQuery};
use axum::http::request::Parts;
use serde::de::DeserializeOwned;

use crate::refusal::{Refusal, bad_request};

pub(crate) struct Path<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let read = AxumPath::from_request_parts(parts, state).await;
        read.map(|AxumPath(value)| Self(value)).map_err(|error| bad_request(error.body_text()))
    }
}

pub(crate) struct Query<T>(pub(super) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        let read = AxumQuery::from_request_parts(parts, state).await;
        read.map(|AxumQuery(value)| Self(value)).map_err(|error| bad_request(error.body_text()))
    }
}
