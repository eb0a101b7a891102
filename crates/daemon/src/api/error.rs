//! A refusal as an HTTP answer: the status of its code, and its words as JSON.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use outlast_wire::api::ErrorBody;
use outlast_wire::codes::Code;

use crate::refusal::Refusal;

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        (status(self.code), Json(ErrorBody { error: self.info() })).into_response()
    }
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
