//! The other lives of this binary: the daemon, the shim, the driver of an agent, snapshots, the waiter and the guard.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// `outlast __shim DIR`
pub(crate) fn shim(dir: Option<OsString>) -> ExitCode {
    let Some(dir) = dir else { return ExitCode::from(outlast_client::problem::REFUSED) };
    outlast_shim::main(Path::new(&dir))
}

/// `outlast __drive DIR`
pub(crate) fn drive(dir: Option<OsString>, env: &[(OsString, OsString)]) -> ExitCode {
    let Some(dir) = dir else { return ExitCode::from(outlast_client::problem::REFUSED) };
    outlast_drive::main(Path::new(&dir), env)
}

/// `outlast __snapshot DIR`
pub(crate) fn snapshot(dir: Option<OsString>, env: &[(OsString, OsString)]) -> ExitCode {
    let Some(dir) = dir else { return ExitCode::from(outlast_client::problem::REFUSED) };
    outlast_snapshot::main(Path::new(&dir), env)
}

/// `outlast __wait PLAN`
pub(crate) fn waiter(plan: Option<OsString>) -> ExitCode {
    let Some(plan) = plan else { return ExitCode::from(outlast_client::problem::REFUSED) };
    outlast_shim::wait(Path::new(&plan))
}

/// `outlast __guard`, with a socket on its standard input
pub(crate) fn guard() -> ExitCode {
    outlast_shim::guard()
}

/// `outlast daemon run`
pub(crate) fn daemon(options: outlast_daemon::Options) -> ExitCode {
    // Started through /proc/self/exe we would be called `exe`; a name that cannot be set is only a name.
    #[cfg(target_os = "linux")]
    let _is_only_a_name = rustix::thread::set_name(c"outlast");
    outlast_daemon::run(options)
}
