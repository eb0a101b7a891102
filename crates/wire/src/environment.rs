//! Environment variables that say what a process belongs to, and which of them no process of ours inherits.

/// The processes of an attempt are known by these. `OUTLAST_ERRAND` names a host command (a hook, a check or a tool
/// call), and `OUTLAST_TOKEN` proves the run to the daemon. A daemon or shim never has them in its own environment,
/// also if it was started from within a run.
pub const ATTEMPT_NAMES: [&str; 5] =
    ["OUTLAST_RUN_ID", "OUTLAST_TURN", "OUTLAST_ATTEMPT", "OUTLAST_ERRAND", "OUTLAST_TOKEN"];

/// Set for every command that a guard runs. If the guard was killed, the processes that the command left behind are
/// known by it, as long as they keep their environment.
pub const GUARD_NAME: &str = "OUTLAST_GUARD";

/// By these a service manager talks to the one process that it has started itself.
pub const SERVICE_NAMES: [&str; 14] = [
    "NOTIFY_SOCKET",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "SYSTEMD_EXEC_PID",
    "MAINPID",
    "MANAGERPID",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LISTEN_PID",
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
    "MEMORY_PRESSURE_WATCH",
    "MEMORY_PRESSURE_WRITE",
    "XPC_SERVICE_NAME",
];

/// Variables that a daemon or shim never gets from the process that starts it.
pub fn not_inherited() -> impl Iterator<Item = &'static str> {
    ATTEMPT_NAMES.into_iter().chain([GUARD_NAME]).chain(SERVICE_NAMES)
}
