//! Every answer that is not what was asked for: a status, a stable code, a sentence and a hint.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use outlast_store::Error;
use outlast_wire::api::ErrorBody;

use crate::refusal::Refusal;
use crate::world::host;

const FREE_SPACE: &str = "free some space; what runs goes on meanwhile";

/// What to do about a program that holds the journal.
pub(crate) const LOCKED: &str =
    "another program has the journal open, such as sqlite3 or a backup; close it and try again";

#[derive(Debug)]
pub(crate) struct ApiError(pub(crate) Refusal);

pub(crate) type Answer<T> = Result<T, ApiError>;

impl ApiError {
    /// Says what was being done when it happened.
    pub(crate) fn about(mut self, doing: &str) -> Self {
        self.0.message = format!("{doing}: {}", self.0.message);
        self
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        let refusal = match error {
            Error::Full(_) => Refusal::new("disk_full", message).hint(FREE_SPACE),
            Error::UnreadableRun { .. } => Refusal::new("unreadable_run", message)
                .hint("`outlast doctor` shows what is wrong with it"),
            Error::UnknownRun { .. } => unknown_run(message),
            Error::StillOpen { .. } => {
                Refusal::new("run_is_live", message).hint("`outlast stop` ends it first")
            }
            Error::NameTaken { .. } => Refusal::new("name_taken", message)
                .hint("choose another name, or wait for that run to end"),
            Error::StaleEpoch { .. } | Error::Closed => {
                Refusal::new("daemon_leaving", message).hint("try again")
            }
            Error::TriggerTaken { .. } => Refusal::new("trigger_taken", message)
                .hint("choose another name, or `outlast trigger rm` it first"),
            Error::UnknownTrigger { .. } => unknown_trigger(message),
            Error::IdInUse { .. } => {
                Refusal::new("id_conflict", message).hint("leave the id out, or choose another")
            }
            Error::Locked(_) => Refusal::new("journal_locked", message).hint(LOCKED),
            Error::Unsaved { .. } => Refusal::new("journal_gone", message)
                .hint("nothing was written; make room or give the state directory back, and try again"),
            Error::Gone { .. } => Refusal::new("journal_gone", message)
                .hint("nothing was written; the next daemon serves what is there now, and `outlast doctor` says more"),
            Error::Rejected(_)
            | Error::Conflict { .. }
            | Error::KeyTaken { .. }
            | Error::ReadOnly(_)
            | Error::Newer { .. }
            | Error::Corrupt { .. }
            | Error::Io(_) => Refusal::new("journal_unusable", message)
                .hint("`outlast doctor` looks at the journal"),
        };
        Self(refusal)
    }
}

impl From<std::io::Error> for ApiError {
    fn from(error: std::io::Error) -> Self {
        let (code, hint) = match host::failure(&error) {
            Some("disk_full") => ("disk_full", FREE_SPACE),
            Some(code) => (code, "try again; the host lacks descriptors, processes or memory"),
            None => ("io", "`outlast doctor` looks at the state directory"),
        };
        Self(Refusal::new(code, error.to_string()).hint(hint))
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = match self.0.code {
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
        (status, Json(ErrorBody { error: self.0.info() })).into_response()
    }
}

pub(crate) fn unknown_run(message: String) -> Refusal {
    Refusal::new("unknown_run", message).hint("`outlast ps -a` lists every run")
}

pub(crate) fn unknown_trigger(message: String) -> Refusal {
    Refusal::new("unknown_trigger", message).hint("`outlast trigger ls` lists every trigger")
}

pub(crate) fn bad_request(message: impl Into<String>) -> ApiError {
    ApiError(Refusal::new("bad_request", message))
}

pub(crate) async fn no_such_path(uri: axum::http::Uri) -> ApiError {
    ApiError(
        Refusal::new("unknown_path", format!("there is no {}", uri.path()))
            .hint("GET /v1/openapi.json lists what there is"),
    )
}
