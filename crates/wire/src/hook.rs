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

/// Dies by SIGKILL if this is the point that `OUTLAST_CRASH_AT` names, or its n-th pass for `name@n`.
///
/// `OUTLAST_CRASH_TOKEN` names a file that is used up by the death, so that a process that is started
/// afterwards with the same environment lives. `OUTLAST_CRASH_SIGNAL` names another signal: after a `STOP`
/// the test decides which process dies while another stands here. `PANIC` is a bug, which ends less than the process.
#[cfg(debug_assertions)]
pub fn pass(name: &str) {
    let passes = steer("OUTLAST_CRASH_LOG").map_or(1, |log| count_pass(&log, name));
    let Some(at) = steer("OUTLAST_CRASH_AT") else { return };
    let at = at.to_string_lossy();
    let (point, first) = at.split_once('@').unwrap_or((&at, "1"));
    let first: usize = first.parse().expect("the pass is a number");
    if point != name || passes < first {
        return;
    }
    let token = steer("OUTLAST_CRASH_TOKEN");
    if token.is_some_and(|token| std::fs::remove_file(token).is_ok()) {
        signal_self();
    }
}

#[cfg(debug_assertions)]
#[expect(clippy::disallowed_methods, reason = "tests steer crash points through the environment")]
fn steer(name: &str) -> Option<std::ffi::OsString> {
    std::env::var_os(name)
}

/// Writes the pass down, and says how many there have been.
#[cfg(debug_assertions)]
fn count_pass(log: &std::ffi::OsStr, name: &str) -> usize {
    use std::io::Write;

    let opened = std::fs::OpenOptions::new().append(true).create(true).open(log);
    let written = opened.and_then(|mut log| log.write_all(format!("{name}\n").as_bytes()));
    written.expect("the crash log can be written");
    let passed = std::fs::read_to_string(log).expect("the crash log can be read");
    passed.lines().filter(|line| *line == name).count()
}

#[cfg(debug_assertions)]
fn signal_self() {
    let signal = steer("OUTLAST_CRASH_SIGNAL").unwrap_or_else(|| "KILL".into());
    assert!(signal != "PANIC", "a test wants a bug here");
    let script = format!("kill -{} $PPID", signal.to_string_lossy());
    #[expect(clippy::disallowed_methods, reason = "a crash point kills its own process, for real")]
    let status = std::process::Command::new("sh").args(["-c", &script]).status();
    assert!(signal == "STOP", "kill -9 of ourselves returned {status:?}");
}
