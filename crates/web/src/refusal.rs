//! What a browser is told when it does not get what it asked for: a status, and the daemon's own error body.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use outlast_client::problem::Problem;
use outlast_wire::api::{ErrorBody, ErrorInfo};
use outlast_wire::words::Word;
use serde_json::{Value, json};

#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    body: Option<Box<ErrorInfo>>,
}

impl Refusal {
    /// Without a word: the sender has no business here, or cannot be told.
    pub(crate) fn silent(status: StatusCode) -> Self {
        Self { status, body: None }
    }

    pub(crate) fn new(status: StatusCode, code: &str, message: &str) -> Self {
        let (code, message) = (Word::of(code), message.to_owned());
        let info = ErrorInfo { code, message, hint: None, run: None, problems: Vec::new() };
        Self { status, body: Some(Box::new(info)) }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The error as the page shows it.
    pub(crate) fn as_json(&self) -> Value {
        let Some(info) = &self.body else { return json!({ "code": "failed", "message": "" }) };
        json!({ "code": info.code, "message": info.message, "hint": info.hint })
    }

    pub(crate) fn hint(mut self, hint: &str) -> Self {
        if let Some(info) = &mut self.body {
            info.hint = Some(hint.to_owned());
        }
        self
    }
}

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        let unreachable = problem.is_unreachable();
        match problem {
            Problem::Told { info, .. } => {
                let known =
                    info.code.known().and_then(|code| StatusCode::from_u16(code.status()).ok());
                let by_kind = if unreachable {
                    StatusCode::SERVICE_UNAVAILABLE
                } else {
                    StatusCode::BAD_GATEWAY
                };
                Self { status: known.unwrap_or(by_kind), body: Some(info) }
            }
            Problem::OutputClosed => Self::silent(StatusCode::BAD_GATEWAY),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self.body {
            None => self.status.into_response(),
            Some(info) => (self.status, Json(ErrorBody { error: *info })).into_response(),
        }
    }
}
