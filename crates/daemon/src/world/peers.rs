//! The process at the other end of a connection, and those above it.
//!
//! Says what the kernel says: parents, sessions, environments, control groups. What follows from it is for the
//! caller to decide.

use std::path::Path;

use outlast_engine::RunId;
use outlast_wire::environment::GUARD_NAME;
use outlast_wire::guard::GUARD_VERB;

use super::process;

/// No line of parents is followed further up. A deeper line is refused.
const DEEPEST: usize = 512;

/// How often a line is followed anew because a process of it ended meanwhile.
const TRIES: usize = 8;

/// How many clock ticks the kernel counts a second in `/proc/<pid>/stat`.
const TICKS_A_SECOND: u64 = 100;

/// Who connected, and when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    /// `None` if the kernel does not say, as of a process in another pid namespace.
    pub(crate) pid: Option<u32>,
    pub(crate) uid: u32,
    /// Clock ticks since boot.
    at: u64,
}

impl Peer {
    pub(crate) fn of(stream: &tokio::net::UnixStream) -> std::io::Result<Self> {
        let peer = stream.peer_cred()?;
        let pid = peer.pid().and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0);
        Ok(Self { pid, uid: peer.uid(), at: ticks() })
    }
}

#[cfg(target_os = "linux")]
fn ticks() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(now.tv_nsec).unwrap_or(0);
    seconds * TICKS_A_SECOND + nanos * TICKS_A_SECOND / 1_000_000_000
}

#[cfg(not(target_os = "linux"))]
fn ticks() -> u64 {
    0
}

/// A process, or one above it, as far as it tells of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kin {
    pub(crate) pid: u32,
    pub(crate) start: u64,
    pub(crate) session: u32,
    /// The run that its environment names.
    pub(crate) marked: Option<RunId>,
    /// The run whose scope it lives in.
    pub(crate) scope: Option<RunId>,
    /// The run of the step that it is the shim of.
    pub(crate) shim: Option<RunId>,
    /// Whether it is the guard of a command of a sink or a poll, or was started below one.
    pub(crate) is_commands: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unknown {
    #[error("the kernel does not say which process it was")]
    NoPid,
    #[error("the process that connected (pid {0}) is gone")]
    Gone(u32),
    #[error("processes cannot be looked at: {0}")]
    Unreadable(String),
    #[error("pid {0} has more parents than can be followed")]
    TooDeep(u32),
}

/// The peer and those above it, the peer first, up to `top` or the first process.
pub(crate) fn line_of(peer: &Peer, top: u32) -> Result<Vec<Kin>, Unknown> {
    let first = peer.pid.ok_or(Unknown::NoPid)?;
    for _ in 0..TRIES {
        if let Some(line) = line_once(first, peer.at, top)? {
            return Ok(line);
        }
    }
    Err(Unknown::Gone(first))
}

/// `None` if a process ended while its line was followed: its children have another parent by now.
fn line_once(first: u32, at: u64, top: u32) -> Result<Option<Vec<Kin>>, Unknown> {
    let mut line = Vec::new();
    let mut next = first;
    while next != 0 {
        if line.len() >= DEEPEST {
            return Err(Unknown::TooDeep(first));
        }
        let looked = process::stat(next).map_err(|error| Unknown::Unreadable(error.to_string()))?;
        let Some(stat) = looked else {
            return if line.is_empty() { Err(Unknown::Gone(first)) } else { Ok(None) };
        };
        // A number that was given out again since is another process.
        if line.is_empty() && (stat.is_zombie || stat.start > at + 1) {
            return Err(Unknown::Gone(first));
        }
        line.push(kin(next, &stat));
        next = if next == top { 0 } else { stat.parent };
    }
    Ok(Some(line))
}

fn kin(pid: u32, stat: &process::Stat) -> Kin {
    // What cannot be read belongs to another user, or is gone.
    let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let (environment, command_line) = (read("environ"), read("cmdline"));
    Kin {
        pid,
        start: stat.start,
        session: stat.session,
        marked: run_in_environment(&environment),
        scope: scope_of(pid).as_deref().and_then(run_of_scope),
        shim: run_of_shim(&command_line),
        is_commands: is_guard(&command_line) || is_guarded(&environment),
    }
}

fn run_in_environment(environment: &[u8]) -> Option<RunId> {
    let mut values = environment.split(|byte| *byte == 0);
    let value = values.find_map(|it| it.strip_prefix(b"OUTLAST_RUN_ID="))?;
    Some(RunId(String::from_utf8(value.to_vec()).ok()?))
}

/// `outlast-RUN-t1a1.scope`
fn run_of_scope(name: &str) -> Option<RunId> {
    let (run, _step) = name.strip_prefix("outlast-")?.rsplit_once('-')?;
    Some(RunId(run.to_owned()))
}

/// `… __shim RUNS/RUN/t1.a1`
fn run_of_shim(command_line: &[u8]) -> Option<RunId> {
    let mut words = command_line.split(|byte| *byte == 0);
    words.find(|word| *word == b"__shim")?;
    let dir = Path::new(std::str::from_utf8(words.next()?).ok()?);
    let run = dir.parent()?.file_name()?;
    Some(RunId(run.to_str()?.to_owned()))
}

/// `outlast __guard`, of whichever daemon, alive or not.
fn is_guard(command_line: &[u8]) -> bool {
    command_line.split(|byte| *byte == 0).nth(1) == Some(GUARD_VERB.as_bytes())
}

/// What is left to tell a process by whose guard was killed.
fn is_guarded(environment: &[u8]) -> bool {
    let mut names = environment.split(|byte| *byte == 0).map(|it| it.split(|byte| *byte == b'='));
    names.any(|mut name| name.next() == Some(GUARD_NAME.as_bytes()))
}

/// The scope of ours that a process lives in, by the kernel's word.
pub(crate) fn scope_of(pid: u32) -> Option<String> {
    in_listing(&std::fs::read_to_string(format!("/proc/{pid}/cgroup")).ok()?)
}

/// One line for each hierarchy; below the scope there may be groups of the command's own.
fn in_listing(groups: &str) -> Option<String> {
    let is_ours = |name: &&str| name.starts_with("outlast-") && name.ends_with(".scope");
    groups.lines().flat_map(|line| line.split('/')).find(is_ours).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_the_daemon_is_read_off_its_guard_and_off_an_environment() {
        assert!(is_guard(b"/bin/outlast\0__guard\0"));
        for line in [&b"/bin/outlast\0"[..], b"", b"grep\0-r\0__guard\0", b"__guard\0x\0"] {
            assert!(!is_guard(line), "{}", String::from_utf8_lossy(line));
        }
        assert!(is_guarded(b"PATH=/bin\0OUTLAST_GUARD=1\0"));
        assert!(!is_guarded(b"PATH=OUTLAST_GUARD=1\0OUTLAST_GUARDED=1\0"));
    }

    #[test]
    fn a_run_is_read_off_an_environment_a_scope_and_a_shim() {
        let run = |id: &str| Some(RunId(id.to_owned()));
        let environment = b"PATH=/bin\0OUTLAST_RUN_ID=k3m\0X=1\0";
        assert_eq!(run_in_environment(environment), run("k3m"));
        assert_eq!(run_in_environment(b"MY_OUTLAST_RUN_ID=k3m\0"), None);
        assert_eq!(run_of_scope("outlast-k3m-t2a1.scope"), run("k3m"));
        assert_eq!(run_of_shim(b"/bin/outlast\0__shim\0/s/runs/k3m/t1.a1\0"), run("k3m"));
        assert_eq!(run_of_shim(b"/bin/outlast\0__shim\0"), None);
        assert_eq!(run_of_shim(b"/bin/outlast\0ps\0"), None);
    }

    #[test]
    fn the_line_of_a_process_leads_from_it_to_the_top() {
        let me = std::process::id();
        let peer = Peer { pid: Some(me), uid: 0, at: ticks() };
        let line = line_of(&peer, 1).expect("we are alive");
        assert_eq!(line.first().map(|kin| kin.pid), Some(me));
        assert_eq!(line_of(&peer, me).expect("we are alive").len(), 1);
        let before = Peer { at: 0, ..peer };
        assert_eq!(line_of(&before, 1), Err(Unknown::Gone(me)));
        let nobody = Peer { pid: None, ..peer };
        assert_eq!(line_of(&nobody, 1), Err(Unknown::NoPid));
    }

    #[test]
    fn the_scope_is_found_in_what_the_kernel_says() {
        let listing = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-outlast.slice/\
                       outlast-k3m-t1a1.scope/inner\n";
        assert_eq!(in_listing(listing).as_deref(), Some("outlast-k3m-t1a1.scope"));
        assert_eq!(in_listing("0::/app.slice/outlast.service\n"), None);
        assert_eq!(in_listing("0::/session-2.scope\n"), None);
    }
}
