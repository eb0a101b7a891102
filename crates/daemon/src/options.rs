//! How a daemon is started.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use outlast_home::layout::Layout;
use outlast_wire::api::Mode;

pub struct Options {
    pub layout: Layout,
    /// The name of this program, for shims to start a daemon by. It may lead to another version by then.
    pub exe: PathBuf,
    /// Tells this build from others of its version.
    pub build: &'static str,
    /// Asks the daemon that holds the lock to make room, once it is certain that this one can do its work.
    pub replaces: bool,
    /// Recorded, so that a daemon started by a shim gets the same.
    pub env: Vec<(OsString, OsString)>,
    /// A service manager's waits if there is a daemon already; any other says who that is and leaves.
    pub mode: Mode,
    /// Gets one line: `ready`, or `error` and an `ErrorInfo` as JSON.
    pub ready: Option<OwnedFd>,
    /// Gives back what only the start needed.
    pub give_back: fn(),
}
