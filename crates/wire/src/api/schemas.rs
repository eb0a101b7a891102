//! How the OpenAPI document describes what the crate `words` declares: that crate knows serde and nothing else.
//!
//! Built with the feature `openapi` alone, and never made or read: only the derived descriptions are used.

#![expect(dead_code, reason = "only the derived descriptions are used")]

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
