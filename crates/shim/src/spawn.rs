//! Makes the child: fork, barrier, exec. The home of `unsafe` that a fork needs.
//!
//! The child is held at a barrier until it is written down who it is; if the shim dies before that,
//! the barrier's other end closes and the child exits without having exec'd anything. Writes no record
//! itself.

use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::Path;

use outlast_wire::shim::NeverStarted;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::Pid;

use crate::command::{Command, Failure, is_shortage};
use crate::tolerate;

/// A child that exists and waits.
#[derive(Debug)]
pub(crate) struct AtBarrier {
    pub(crate) pid: Pid,
    barrier: OwnedFd,
    pub(crate) report: Report,
}

/// Where the child says why its exec failed. Closed by a successful exec.
#[derive(Debug)]
pub(crate) struct Report(OwnedFd);

/// What the child gets as its standard descriptors.
#[derive(Debug)]
pub(crate) enum Stdio {
    Plain {
        stdin: OwnedFd,
        stdout: OwnedFd,
        stderr: OwnedFd,
    },
    /// The slave side of a terminal, for all three and as its controlling terminal.
    Terminal(OwnedFd),
}

/// Forks a child that execs `command` once [`AtBarrier::release`] is called.
pub(crate) fn fork_to_barrier(
    command: &Command,
    stdio: &Stdio,
    umask: u32,
) -> Result<AtBarrier, Failure> {
    let (barrier_in, barrier_out) = pipe()?;
    let (report_in, report_out) = pipe()?;
    let (stdin, stdout, stderr, is_terminal) = match stdio {
        Stdio::Plain { stdin, stdout, stderr } => {
            (stdin.as_raw_fd(), stdout.as_raw_fd(), stderr.as_raw_fd(), false)
        }
        Stdio::Terminal(slave) => (slave.as_raw_fd(), slave.as_raw_fd(), slave.as_raw_fd(), true),
    };
    let argv = pointers(&command.argv);
    let env = pointers(&command.env);
    let plan = Plan {
        program: &command.program,
        argv: &argv,
        env: &env,
        dir: &command.dir,
        umask,
        stdio: [stdin, stdout, stderr],
        is_terminal,
        barrier_in: barrier_in.as_raw_fd(),
        barrier_out: barrier_out.as_raw_fd(),
        report: report_out.as_raw_fd(),
    };
    #[expect(unsafe_code, reason = "a barrier between fork and exec needs a real fork")]
    // SAFETY: there is one thread, and the child calls async-signal-safe functions only.
    let pid = unsafe {
        match libc::fork() {
            0 => child(&plan),
            pid => pid,
        }
    };
    match u32::try_from(pid).ok().and_then(|_| Pid::from_raw(pid)) {
        Some(pid) => Ok(AtBarrier { pid, barrier: barrier_out, report: Report(report_in) }),
        None => Err(no_resources(std::io::Error::last_os_error())),
    }
}

impl AtBarrier {
    /// Lets the child exec.
    pub(crate) fn release(self) -> Report {
        // A child that was killed at the barrier has closed its end; its status tells that.
        tolerate(rustix::io::write(&self.barrier, b"1"));
        self.report
    }
}

impl Report {
    /// Asked once the child is gone: why it never exec'd, or `None` if it did.
    pub(crate) fn failure(&self, name: &str) -> Option<Failure> {
        let mut bytes = [0; 5];
        let count = rustix::io::read(&self.0, &mut bytes[..]).ok()?;
        let [step, errno @ ..] = bytes;
        (count == bytes.len())
            .then(|| explain(step, Errno::from_raw_os_error(i32::from_le_bytes(errno)), name))
    }
}

const STEP_DIR: u8 = 1;
const STEP_TERMINAL: u8 = 2;
const STEP_EXEC: u8 = 3;

fn explain(step: u8, errno: Errno, name: &str) -> Failure {
    let (code, why) = match (step, errno) {
        (_, errno) if is_shortage(&errno.into()) => {
            (NeverStarted::NoResources, format!("{name}: {errno}"))
        }
        (STEP_DIR, errno) => (NeverStarted::NoDirectory, format!("working directory: {errno}")),
        (STEP_EXEC, Errno::NOENT) => (
            NeverStarted::CommandNotFound,
            format!("{name}: the interpreter that it names was not found"),
        ),
        (STEP_EXEC, Errno::ACCESS | Errno::NOEXEC) => {
            (NeverStarted::NotExecutable, format!("{name}: {errno}"))
        }
        (STEP_EXEC, Errno::TOOBIG) => (NeverStarted::TooLong, format!("{name}: {errno}")),
        (STEP_TERMINAL, errno) => (NeverStarted::NoResources, format!("terminal: {errno}")),
        (_, errno) => (NeverStarted::NotExecutable, format!("{name}: {errno}")),
    };
    Failure { code, why }
}

pub(crate) fn pipe() -> Result<(OwnedFd, OwnedFd), Failure> {
    rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(no_resources)
}

/// The two ends of a pipe for output; ours does not block.
pub(crate) fn output_pipe() -> Result<(OwnedFd, OwnedFd), Failure> {
    let (ours, childs) = pipe()?;
    rustix::io::ioctl_fionbio(&ours, true).map_err(no_resources)?;
    Ok((ours, childs))
}

/// The child's standard input: this file, or nothing.
pub(crate) fn input(path: Option<&Path>) -> Result<OwnedFd, Failure> {
    let Some(path) = path else { return null().map_err(no_resources) };
    let file = open_input(path).map_err(|errno| unusable_input(path, errno))?;
    // A pipe with a name has no end that we know of.
    match rustix::fs::fstat(&file).map(|stat| FileType::from_raw_mode(stat.st_mode)) {
        Ok(FileType::RegularFile) => Ok(file),
        Ok(_) => {
            let why = format!("standard input {}: not a regular file", path.display());
            Err(Failure::new(NeverStarted::BadSpec, why))
        }
        Err(errno) => Err(unusable_input(path, errno)),
    }
}

/// Neither waits for a pipe's other end nor takes a terminal for ours.
fn open_input(path: &Path) -> rustix::io::Result<OwnedFd> {
    let careful = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::io::retry_on_intr(|| {
        rustix::fs::open(path, OFlags::RDONLY | careful, Mode::empty())
    })?;
    rustix::io::ioctl_fionbio(&file, false)?;
    Ok(file)
}

fn unusable_input(path: &Path, errno: Errno) -> Failure {
    Failure::of_files(&errno.into(), &format!("standard input {}", path.display()))
}

fn null() -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    rustix::io::retry_on_intr(|| rustix::fs::open("/dev/null", flags, Mode::empty()))
}

pub(crate) fn no_resources(error: impl Into<std::io::Error>) -> Failure {
    Failure::new(NeverStarted::NoResources, error.into().to_string())
}

/// Starts a process that is not our descendant but our sibling, with nothing of ours but its arguments: the first of
/// `programs` (null-terminated) that can be executed.
///
/// Not reaped by us and not waited for: whether it came up shows elsewhere. Answers with a handle on it where the
/// kernel has them; a process that is gone already has none.
#[expect(unsafe_code, reason = "only clone makes a sibling")]
pub(crate) fn sibling(
    programs: &[*const libc::c_char],
    argv: &[*const libc::c_char],
    env: &[*const libc::c_char],
) -> std::io::Result<Option<OwnedFd>> {
    let null = null()?;
    let null_fd = null.as_raw_fd();
    // SAFETY: there is one thread; the child calls async-signal-safe functions only, on pointers that
    // its copy of our memory keeps valid.
    let pid = unsafe {
        match fork_sibling() {
            0 => {
                libc::setsid();
                restore_signals();
                for target in 0..3 {
                    libc::dup2(null_fd, target);
                }
                libc::chdir(c"/".as_ptr());
                mark_rest_cloexec();
                for program in programs.iter().take_while(|program| !program.is_null()) {
                    libc::execve(*program, argv.as_ptr(), env.as_ptr());
                }
                libc::_exit(127)
            }
            pid => pid,
        }
    };
    if pid < 0 { Err(std::io::Error::last_os_error()) } else { Ok(handle(pid)) }
}

#[cfg(target_os = "linux")]
fn handle(pid: libc::c_long) -> Option<OwnedFd> {
    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
}

/// Where the pid is that of a process in the middle.
#[cfg(not(target_os = "linux"))]
fn handle(_: libc::c_long) -> Option<OwnedFd> {
    None
}

/// # Safety
/// As `fork`, in a process with one thread.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "only clone makes a sibling")]
unsafe fn fork_sibling() -> libc::c_long {
    let flags = libc::c_long::from(libc::CLONE_PARENT | libc::SIGCHLD);
    // SAFETY: without a stack and with copied memory this is fork, but for the parent.
    unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) }
}

/// Without subreapers a child whose parent exits goes to init, which is as good.
///
/// # Safety
/// As `fork`, in a process with one thread.
#[cfg(not(target_os = "linux"))]
#[expect(unsafe_code, reason = "there is no clone here")]
unsafe fn fork_sibling() -> libc::c_long {
    // SAFETY: the middle process does nothing but fork and exit.
    unsafe {
        match libc::fork() {
            0 => match libc::fork() {
                0 => 0,
                _ => libc::_exit(0),
            },
            pid => {
                libc::waitpid(pid, std::ptr::null_mut(), 0);
                libc::c_long::from(pid)
            }
        }
    }
}

/// A null-terminated array, valid as long as the strings are.
pub(crate) fn pointers(strings: &[std::ffi::CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(|string| string.as_ptr()).chain([std::ptr::null()]).collect()
}

/// All that the child needs, as plain numbers and pointers: it may not allocate.
struct Plan<'a> {
    program: &'a CStr,
    argv: &'a [*const libc::c_char],
    env: &'a [*const libc::c_char],
    dir: &'a CStr,
    umask: u32,
    stdio: [RawFd; 3],
    is_terminal: bool,
    barrier_in: RawFd,
    barrier_out: RawFd,
    report: RawFd,
}

/// The child's side of the fork: never returns.
///
/// # Safety
/// To be called in a forked child of a single-threaded process, with pointers that are valid there.
#[expect(unsafe_code, reason = "between fork and exec there is only libc")]
unsafe fn child(plan: &Plan<'_>) -> ! {
    // SAFETY: async-signal-safe calls on descriptors and pointers that the plan keeps alive.
    unsafe {
        libc::setsid();
        restore_signals();
        libc::close(plan.barrier_out);
        if !barrier_opened(plan.barrier_in) {
            libc::_exit(127);
        }
        if plan.is_terminal && libc::ioctl(plan.stdio[0], libc::TIOCSCTTY, 0) != 0 {
            fail(plan.report, STEP_TERMINAL);
        }
        if libc::chdir(plan.dir.as_ptr()) != 0 {
            fail(plan.report, STEP_DIR);
        }
        libc::umask(plan.umask as libc::mode_t);
        for (target, source) in (0..).zip(plan.stdio) {
            libc::dup2(source, target);
        }
        mark_rest_cloexec();
        libc::execve(plan.program.as_ptr(), plan.argv.as_ptr(), plan.env.as_ptr());
        fail(plan.report, STEP_EXEC)
    }
}

/// Default dispositions and an empty mask, as after a login: what we ignore is not the run's business.
///
/// # Safety
/// To be called in a forked child before exec.
#[expect(unsafe_code, reason = "between fork and exec there is only libc")]
pub(crate) unsafe fn restore_signals() {
    // SAFETY: SIG_DFL runs no code; the set is initialised before it is read.
    unsafe {
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
    }
}

/// A belt for the braces: every descriptor of ours is close-on-exec already.
///
/// # Safety
/// To be called in a forked child before exec.
#[expect(unsafe_code, reason = "between fork and exec there is only libc")]
pub(crate) unsafe fn mark_rest_cloexec() {
    #[cfg(target_os = "linux")]
    // SAFETY: sets a flag on descriptors that the exec is about to close.
    unsafe {
        libc::syscall(libc::SYS_close_range, 3u32, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
}

/// # Safety
/// `barrier` is the reading end of the barrier.
#[expect(unsafe_code, reason = "between fork and exec there is only libc")]
unsafe fn barrier_opened(barrier: RawFd) -> bool {
    let mut byte = 0u8;
    loop {
        // SAFETY: reads one byte into one byte.
        match unsafe { libc::read(barrier, (&raw mut byte).cast(), 1) } {
            1 => return true,
            -1 if Errno::from_io_error(&std::io::Error::last_os_error()) == Some(Errno::INTR) => {}
            _ => return false,
        }
    }
}

/// # Safety
/// `report` is the writing end of the report pipe, and errno is that of the step.
#[expect(unsafe_code, reason = "between fork and exec there is only libc")]
unsafe fn fail(report: RawFd, step: u8) -> ! {
    let errno = std::io::Error::last_os_error().raw_os_error().unwrap_or(0).to_le_bytes();
    let message = [step, errno[0], errno[1], errno[2], errno[3]];
    // SAFETY: writes from an array that is on the stack, then ends the process.
    unsafe {
        libc::write(report, message.as_ptr().cast(), message.len());
        libc::_exit(127)
    }
}
