//! A refusal as an HTTP answer: the status of its code, and its words as JSON.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use outlast_store::Journal;
use outlast_wire::api::{ErrorBody, ErrorInfo};
use outlast_wire::codes::Code;

use crate::lanes::blocking;
use crate::refusal::Refusal;
use crate::runs::names;
use crate::supervisor::Supervisor;

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let info = self.info();
        let body = Json(ErrorBody { error: info.clone() });
        let mut response = (status(self.code), body).into_response();
        response.extensions_mut().insert(Told(info));
        response
    }
}

/// What a response refuses, for the layer that names its runs.
#[derive(Debug, Clone)]
struct Told(ErrorInfo);

/// Has every refusal name its runs as their users name them, in the message and in the commands to paste.
pub(crate) async fn by_name(
    State(supervisor): State<Arc<Supervisor>>,
    request: Request,
    next: Next,
) -> Response {
    let response = next.run(request).await;
    let Some(Told(info)) = response.extensions().get::<Told>().cloned() else { return response };
    // Where several runs have one name or one start of an id, the ids tell them apart.
    if info.code == Code::AmbiguousRun || info.code == Code::NameTaken {
        return response;
    }
    let named = blocking(move || Ok(named(&*supervisor.ground.store, info)?)).await;
    // A journal that cannot be read has no names; the refusal stands as it is.
    match named {
        Ok(Some(info)) => (response.status(), Json(ErrorBody { error: info })).into_response(),
        Ok(None) | Err(_) => response,
    }
}

/// The same with names; `None` if it has no run in it that has one.
fn named(store: &dyn Journal, info: ErrorInfo) -> Result<Option<ErrorInfo>, outlast_store::Error> {
    let message = names::in_text(store, &info.message)?;
    let hint = info.hint.as_deref().map(|hint| names::in_text(store, hint)).transpose()?;
    let is_same = message == info.message && hint == info.hint;
    Ok((!is_same).then_some(ErrorInfo { message, hint, ..info }))
}

fn status(code: Code) -> StatusCode {
    StatusCode::from_u16(code.status()).expect("every code has a status of HTTP")
}

/// The router names the methods that there are in `allow`.
pub(crate) async fn wrong_method(method: axum::http::Method, uri: axum::http::Uri) -> Refusal {
    Refusal::new(Code::WrongMethod, format!("{} does not take {method}", uri.path()))
        .hint("GET /v1/openapi.json lists what there is")
}

pub(crate) async fn no_such_path(uri: axum::http::Uri) -> Refusal {
    Refusal::new(Code::UnknownPath, format!("there is no {}", uri.path()))
        .hint("GET /v1/openapi.json lists what there is")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_status() {
        for code in Code::ALL {
            assert!(!status(*code).is_success(), "{code:?}");
        }
    }
}
