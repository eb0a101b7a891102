//! The status of each refusal.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use outlast_wire::api::ErrorBody;

use crate::refusal::Refusal;

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = match self.code {
            "unknown_run" | "unknown_path" | "unknown_attempt" | "unknown_turn"
            | "unknown_sink" | "unknown_trigger" => StatusCode::NOT_FOUND,
            "ambiguous_run" | "key_conflict" | "id_conflict" | "name_taken" | "run_is_live"
            | "no_terminal" | "has_ended" | "not_blocked" | "not_paused" | "needs_decision"
            | "inbox_full" | "workspace_kept" | "makes_no_room" | "has_children"
            | "trigger_taken" | "already_answered" | "stale_order" | "is_ending" | "not_taken"
            | "held" | "not_in_journal" | "journal_behind" => StatusCode::CONFLICT,
            "inside_a_run" | "not_below" | "not_a_person" | "caller_unknown" => {
                StatusCode::FORBIDDEN
            }
            "disk_full" => StatusCode::INSUFFICIENT_STORAGE,
            "daemon_leaving" | "busy" | "no_resources" | "journal_locked" | "journal_gone" => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            "bug" | "io" | "journal_unusable" | "unreadable_run" => {
                StatusCode::INTERNAL_SERVER_ERROR
            }
            // Everything else is said of what was asked for, not of us.
            _ => StatusCode::BAD_REQUEST,
        };
        (status, Json(ErrorBody { error: self.info() })).into_response()
    }
}

pub(crate) async fn no_such_path(uri: axum::http::Uri) -> Refusal {
    Refusal::new("unknown_path", format!("there is no {}", uri.path()))
        .hint("GET /v1/openapi.json lists what there is")
}
