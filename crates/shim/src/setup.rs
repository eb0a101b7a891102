//! Turns a freshly exec'd process into a shim, a waiter or a guard: session, signals, umask, descriptors, subreaper.
//!
//! Opens no file of the attempt. Each step is best effort where its absence only weakens a guarantee
//! that a later step states for itself (a shim that is no subreaper finds no descendants to prove gone).

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;

use outlast_wire::shim::SoftLimits;
use rustix::fs::{Mode, OFlags};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::tolerate;

/// Signals that must not end a shim: only orders do. TERM is among them because a service manager that
/// stops the daemon's group sends it to every process, and XFSZ because a file size limit is to be met as a
/// write that fails.
const IGNORED: [libc::c_int; 6] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGPIPE, libc::SIGTERM, libc::SIGXFSZ];

/// Signals that must not end a waiter. TERM ends it: that is how a daemon that was asked to stop orders it.
const IGNORED_BY_WAITER: [libc::c_int; 4] =
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGPIPE];

/// What the starting daemon left us with.
#[derive(Debug)]
pub(crate) struct Inherited {
    /// The connection that it put on descriptor 0, if it did.
    pub(crate) connection: Option<UnixStream>,
    pub(crate) umask: u32,
}

pub(crate) fn become_shim() -> Inherited {
    close_inherited();
    take_name();
    let connection = take_stdin();
    occupy_standard_descriptors();
    ignore_signals(&IGNORED);
    // Fails only for a process group leader, which has its own group already.
    tolerate(rustix::process::setsid());
    let umask = rustix::process::umask(Mode::from_raw_mode(0o077)).as_raw_mode();
    become_subreaper();
    Inherited { connection, umask }
}

/// A guard is what a shim is, to a command that leaves no records. It pins no directory.
pub(crate) fn become_guard() -> Inherited {
    let inherited = become_shim();
    // A guard that cannot go there works as well where it is.
    tolerate(rustix::process::chdir("/"));
    inherited
}

/// Takes what the daemon gave us for the command's output, so that we hold none of it open.
pub(crate) fn take_outputs() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let stdout = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    let stderr = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stderr(), 3)?;
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    let null = retry_on_intr(|| rustix::fs::open("/dev/null", flags, Mode::empty()))?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok((stdout, stderr))
}

/// A waiter has no connection and no children; it pins no directory.
pub(crate) fn become_waiter() {
    close_inherited();
    take_name();
    occupy_standard_descriptors();
    ignore_signals(&IGNORED_BY_WAITER);
    // Fails only for a process group leader, which has its own group already.
    tolerate(rustix::process::setsid());
    rustix::process::umask(Mode::from_raw_mode(0o077));
    // A waiter that cannot go there works as well where it is.
    tolerate(rustix::process::chdir("/"));
}

/// Gives this process, and so its child or a daemon that it starts, the soft limits that the daemon was started
/// with.
pub(crate) fn restore_limits(before: SoftLimits) {
    let limits = [(Resource::Nofile, before.open_files), (Resource::Nproc, before.processes)];
    for (resource, before) in limits {
        let Some(soft) = before else { continue };
        let maximum = getrlimit(resource).maximum;
        tolerate(setrlimit(resource, Rlimit { current: Some(soft), maximum }));
    }
}

/// Started through /proc/self/exe we would be called `exe`.
fn take_name() {
    #[cfg(target_os = "linux")]
    tolerate(rustix::thread::set_name(c"outlast"));
}

/// Whatever the starter left open above stderr is not ours to hold open for hours.
fn close_inherited() {
    #[cfg(target_os = "linux")]
    #[expect(unsafe_code, reason = "rustix has no close_range")]
    // SAFETY: runs before this process has opened anything, so nothing in it owns these descriptors.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, 0u32);
    }
}

fn take_stdin() -> Option<UnixStream> {
    let stdin = rustix::stdio::stdin();
    rustix::net::sockopt::socket_type(stdin).ok()?;
    let ours: OwnedFd = rustix::io::fcntl_dupfd_cloexec(stdin, 3).ok()?;
    let stream = UnixStream::from(ours);
    stream.set_nonblocking(true).ok()?;
    // Descriptor 0 would otherwise keep the connection open after we close it.
    rustix::stdio::dup2_stdin(null()?).ok()?;
    Some(stream)
}

/// Makes sure that no file we open lands on 0, 1 or 2.
fn occupy_standard_descriptors() {
    let Some(null) = null() else { return };
    let is_closed =
        |fd: rustix::fd::BorrowedFd<'_>| rustix::io::fcntl_getfd(fd) == Err(Errno::BADF);
    if is_closed(rustix::stdio::stdin()) {
        tolerate(rustix::stdio::dup2_stdin(null.as_fd()));
    }
    if is_closed(rustix::stdio::stdout()) {
        tolerate(rustix::stdio::dup2_stdout(null.as_fd()));
    }
    if is_closed(rustix::stdio::stderr()) {
        tolerate(rustix::stdio::dup2_stderr(null.as_fd()));
    }
}

/// `/dev/null`, on a descriptor above the standard ones where possible.
fn null() -> Option<File> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    retry_on_intr(|| rustix::fs::open("/dev/null", flags, Mode::empty())).ok().map(File::from)
}

#[expect(unsafe_code, reason = "rustix does not set signal dispositions")]
fn ignore_signals(ignored: &[libc::c_int]) {
    // What the starter ignores was inherited.
    // SAFETY: SIG_DFL runs no code of ours, and there is one thread.
    unsafe { libc::signal(libc::SIGTERM, libc::SIG_DFL) };
    for signal in ignored {
        // SAFETY: SIG_IGN runs no code of ours, and there is one thread.
        unsafe { libc::signal(*signal, libc::SIG_IGN) };
    }
    // SAFETY: the set is initialised by sigemptyset before it is read.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// Orphans of the tree come to us and not to init, so that "no child left" proves the tree empty.
/// Elsewhere than on Linux there is no such thing: there the proof covers the process group only.
fn become_subreaper() {
    #[cfg(target_os = "linux")]
    tolerate(rustix::process::set_child_subreaper(Some(rustix::process::getpid())));
}
