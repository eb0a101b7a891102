//! How a daemon is started.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use outlast_wire::layout::Layout;

pub struct Options {
    pub layout: Layout,
    /// This program, for starting shims, and for shims to start a daemon.
    pub exe: PathBuf,
    /// Recorded, so that a daemon started by a shim gets the same.
    pub env: Vec<(OsString, OsString)>,
    /// Started by hand: if there is a daemon already, say who it is. Otherwise wait for it to go.
    pub manual: bool,
    /// Gets one line: `ready`, or `error` and an `ErrorInfo` as JSON.
    pub ready: Option<OwnedFd>,
}
