//! How a daemon is started.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use outlast_wire::api::Mode;
use outlast_wire::layout::Layout;

pub struct Options {
    pub layout: Layout,
    /// This program, for starting shims, and for shims to start a daemon.
    pub exe: PathBuf,
    /// Recorded, so that a daemon started by a shim gets the same.
    pub env: Vec<(OsString, OsString)>,
    /// A service manager's waits if there is a daemon already; any other says who that is and leaves.
    pub mode: Mode,
    /// Gets one line: `ready`, or `error` and an `ErrorInfo` as JSON.
    pub ready: Option<OwnedFd>,
    /// Gives back what only the start needed.
    pub give_back: fn(),
}
