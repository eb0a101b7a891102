//! The two other lives of this binary: the daemon and the shim.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// `outlast __shim DIR`
pub(crate) fn shim(dir: Option<OsString>) -> ExitCode {
    let Some(dir) = dir else { return ExitCode::from(crate::problem::REFUSED) };
    outlast_shim::main(Path::new(&dir))
}

/// `outlast daemon run`
pub(crate) fn daemon(options: outlast_daemon::Options) -> ExitCode {
    outlast_daemon::run(options)
}
