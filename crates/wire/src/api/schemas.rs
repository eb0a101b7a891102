//! How the OpenAPI document describes what the crate `words` declares: that crate knows serde and nothing else.
//!
//! Built with the feature `openapi` alone, and never made or read: only the derived descriptions are used.

#![expect(dead_code, reason = "only the derived descriptions are used")]

/// An event of a run: these keys, and the fields of its kind.
#[derive(utoipa::ToSchema)]
pub struct EventView {
    /// Counts the events of its run from 1 on.
    seq: u64,
    /// RFC 3339.
    at: String,
    /// The id of the run.
    run: String,
    /// `TurnStarted`, `RunEnded`, …
    kind: String,
}

/// An event among those of all runs.
#[derive(utoipa::ToSchema)]
pub struct WrittenEventView {
    /// Counts the events of all runs in the order in which they were written, with gaps.
    cursor: u64,
    /// The name of the run, if it has one.
    run_name: Option<String>,
    #[serde(flatten)]
    event: EventView,
}

#[derive(utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Exit {
    Code(i32),
    Signal(i32),
}

/// A process of the tree that outlived its main process.
#[derive(utoipa::ToSchema)]
pub(super) struct Survivor {
    pid: u32,
    start: u64,
    command: String,
}

#[derive(utoipa::ToSchema)]
pub(super) struct Window {
    rows: u16,
    cols: u16,
}
