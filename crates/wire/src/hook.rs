//! Named crash points, shared by the two processes of the launch protocol.
//!
//! A debug build can be told to die at one (`OUTLAST_CRASH_AT`) or to write down each one it passes
//! (`OUTLAST_CRASH_LOG`); a release build has none of this code. The crash matrix kills at every name
//! that a reference run passes, and `xtask tidy` refuses a name that no test lists.

/// Passes the crash point `name`, of the form `daemon.run-created` or `shim.starting`.
#[macro_export]
macro_rules! hook {
    ($name:literal) => {
        #[cfg(debug_assertions)]
        $crate::hook::pass($name);
    };
}

/// Dies by SIGKILL if this is the point that `OUTLAST_CRASH_AT` names.
///
/// `OUTLAST_CRASH_TOKEN` names a file that is used up by the death, so that whoever is started
/// afterwards with the same environment lives.
#[cfg(debug_assertions)]
#[expect(clippy::disallowed_methods, reason = "tests steer crash points through the environment")]
pub fn pass(name: &str) {
    use std::io::Write;

    if let Some(path) = std::env::var_os("OUTLAST_CRASH_LOG") {
        let log = std::fs::OpenOptions::new().append(true).create(true).open(path);
        let written = log.and_then(|mut log| log.write_all(format!("{name}\n").as_bytes()));
        written.expect("the crash log can be written");
    }
    if std::env::var_os("OUTLAST_CRASH_AT").is_none_or(|at| at != name) {
        return;
    }
    let token = std::env::var_os("OUTLAST_CRASH_TOKEN");
    if token.is_some_and(|token| std::fs::remove_file(token).is_ok()) {
        die();
    }
}

#[cfg(debug_assertions)]
fn die() -> ! {
    #[expect(clippy::disallowed_methods, reason = "a crash point kills its own process, for real")]
    let status = std::process::Command::new("sh").args(["-c", "kill -9 $PPID"]).status();
    unreachable!("kill -9 of ourselves returned {status:?}")
}
