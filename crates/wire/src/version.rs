//! The numbers that say whether two processes understand each other.

/// This build, as `outlast version` says it.
pub const BUILD: &str = env!("CARGO_PKG_VERSION");

/// The HTTP API, as it stands in every path: `/v1/…`.
pub const API: u32 = 1;

/// The shim protocol that this build speaks. A daemon speaks every version from [`OLDEST_SHIM`] on.
pub const SHIM: u32 = 1;

/// The oldest shim that this build's daemon can still adopt.
pub const OLDEST_SHIM: u32 = 1;
