//! What the kernel says of a process by its number.
//!
//! A number alone does not name a process for long, so callers compare the start as well.

/// The start of the process in clock ticks since boot; `None` if there is no such process.
pub fn start(pid: u32) -> Option<u64> {
    fields(pid)?.get(19)?.parse().ok()
}

/// True if the process was stopped by a signal or a tracer, and does nothing until it is continued.
pub fn is_stopped(pid: u32) -> bool {
    fields(pid).is_some_and(|fields| matches!(fields.first().map(String::as_str), Some("T" | "t")))
}

/// The fields of `/proc/<pid>/stat` after the command, which may hold anything: the last parenthesis ends it.
fn fields(pid: u32) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after) = stat.rsplit_once(')')?;
    Some(after.split_whitespace().map(str::to_owned).collect())
}
