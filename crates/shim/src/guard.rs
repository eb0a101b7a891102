//! The guard: one small process above one command of a sink or a poll, and above all that the command leaves behind.
//!
//! The guard is the subreaper of its command. A process that the command leaves behind has the guard above it for as
//! long as it lives, whatever it sheds, so a daemon knows it for what it is. The guard feeds the command, says how it
//! ended, and then sleeps in `waitpid(2)` until nothing is left. If the daemon goes away first, the guard ends the whole
//! tree. It keeps no file, and does not touch what an Outlast that the command started has started itself.
//!
//! Elsewhere than on Linux there is no subreaper: there a guard leaves with its command, and what is left is not held.

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use outlast_home::process::Who;
use outlast_wire::guard::{Ended, Guarded};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions};

use crate::command::{Command, Failure};
use crate::ending::{Due, Ending};
use crate::reap::{Tree, reap};
use crate::signals::Signals;
use crate::spawn::{self, Report, Stdio};
use crate::{EXIT_BAD_FILES, clock, setup, tolerate, tree};

/// Between TERM and KILL, for a command that the daemon no longer waits for.
const GRACE: Duration = Duration::from_secs(1);

/// Runs the command that comes on descriptor 0, and stays for as long as anything of it lives.
///
/// Takes the whole process over, as a shim does.
pub fn main() -> ExitCode {
    let inherited = setup::become_guard();
    let Some(mut daemon) = inherited.connection else { return ExitCode::from(EXIT_BAD_FILES) };
    let order = daemon.set_nonblocking(false).and_then(|()| Guarded::read(&mut daemon));
    // The daemon went away before it had said what to run.
    let Ok((guarded, stdin)) = order else { return ExitCode::from(EXIT_BAD_FILES) };
    setup::restore_limits(guarded.soft_limits);
    match Watch::start(&guarded, stdin, inherited.umask) {
        Ok(watch) => watch.until_over(daemon),
        Err(failure) => say(daemon, &never_started(failure)),
    }
    linger();
    ExitCode::SUCCESS
}

/// Sleeps until no child is left. Only an end in the tree wakes it.
fn linger() {
    if reap(None).tree == Tree::Empty {
        return;
    }
    outlast_home::trim::give_back();
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(_no_child) => return,
        }
    }
}

/// A command that runs, and what it has not read yet.
struct Watch {
    name: String,
    main: Pid,
    report: Report,
    stdin: Feed,
    signals: Signals,
    ending: Ending,
}

/// Whether there is still a daemon to tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Daemon {
    Waits,
    IsGone,
}

impl Watch {
    fn start(guarded: &Guarded, stdin: Vec<u8>, umask: u32) -> Result<Self, Failure> {
        let command = Command::new(&guarded.argv, &guarded.dir, &guarded.env)?;
        let (childs_end, ours) = spawn::pipe()?;
        rustix::io::ioctl_fionbio(&ours, true).map_err(spawn::no_resources)?;
        let (stdout, stderr) = setup::take_outputs().map_err(spawn::no_resources)?;
        let signals = Signals::register().map_err(spawn::no_resources)?;
        let childs = Stdio::Plain { stdin: childs_end, stdout, stderr };
        let child = spawn::fork_to_barrier(&command, &childs, umask)?;
        let main = child.pid;
        let name = guarded.argv.first().cloned().unwrap_or_default();
        let stdin = Feed { pipe: Some(ours), bytes: stdin, told: 0 };
        Ok(Self { name, main, report: child.release(), stdin, signals, ending: Ending::NotAsked })
    }

    /// Returns when the command has ended and the daemon knows, or when the daemon went away and the tree is ended.
    fn until_over(mut self, daemon: UnixStream) {
        loop {
            self.signals.child.take();
            let reaped = reap(Some(self.main));
            match (self.ending, reaped.main, reaped.tree) {
                (Ending::NotAsked, Some(exit), _) => {
                    let failure = self.report.failure(&self.name).map(never_started);
                    return say(daemon, &failure.unwrap_or(Ended::Exited(exit)));
                }
                (Ending::NotAsked, None, _) => self.stdin.feed(),
                (_, _, Tree::Empty) => return,
                (_, _, Tree::Alive) if self.go_on_ending(clock::now()) => return,
                (_, _, Tree::Alive) => {}
            }
            if self.wait(&daemon) == Daemon::IsGone && self.ending.ask(clock::now(), GRACE) {
                tree::signal(&ours(), &[Signal::TERM, Signal::CONT]);
            }
        }
    }

    /// True if nothing of ours is left, or what is left cannot be killed.
    fn go_on_ending(&mut self, now: Instant) -> bool {
        let left = ours();
        match self.ending.due(now) {
            _ if left.is_empty() => true,
            None => false,
            Some(due) => {
                tree::signal(&left, &[Signal::KILL]);
                due == Due::KillAndAdmit
            }
        }
    }

    /// Waits until something has ended, is due, or can be told.
    fn wait(&self, daemon: &UnixStream) -> Daemon {
        let is_asked = self.ending != Ending::NotAsked;
        let feeds = self.stdin.pipe.as_ref().filter(|_| !is_asked);
        let mut fds = vec![PollFd::new(&self.signals.child, PollFlags::IN)];
        // The daemon says nothing more: what can be read is the end.
        fds.extend((!is_asked).then(|| PollFd::new(daemon, PollFlags::IN)));
        fds.extend(feeds.map(|pipe| PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::OUT)));
        let left = self.ending.wake_at().map(|at| at.saturating_duration_since(clock::now()));
        let timeout = left.map(|left| Timespec {
            tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: left.subsec_nanos().into(),
        });
        // Interrupted, or out of memory for a moment: the next round asks again.
        let is_ready = poll(&mut fds, timeout.as_ref()).is_ok();
        let is_gone = is_ready && !is_asked && !fds[1].revents().is_empty();
        if is_gone { Daemon::IsGone } else { Daemon::Waits }
    }
}

/// The living of this tree. A daemon that the command started, for runs of its own, is not the command's to take along.
fn ours() -> Vec<Who> {
    tree::descendants_but(&tree::is_outlast)
}

/// The command's standard input.
struct Feed {
    /// `None` once all is told, or the command has closed its end.
    pipe: Option<OwnedFd>,
    bytes: Vec<u8>,
    told: usize,
}

impl Feed {
    fn feed(&mut self) {
        let Some(pipe) = &self.pipe else { return };
        while self.told < self.bytes.len() {
            match rustix::io::write(pipe, &self.bytes[self.told..]) {
                Ok(count) => self.told += count,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                // A command need not listen.
                Err(_) => break,
            }
        }
        self.pipe = None;
        self.bytes = Vec::new();
        self.told = 0;
    }
}

fn never_started(failure: Failure) -> Ended {
    Ended::NeverStarted { code: failure.code, why: failure.why }
}

/// A daemon that died meanwhile is not told.
fn say(mut daemon: UnixStream, ended: &Ended) {
    if let Ok(text) = serde_json::to_vec(ended) {
        tolerate(daemon.write_all(&text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_is_told_once_and_the_pipe_is_closed_after_it() {
        let (reader, writer) = spawn::pipe().unwrap();
        rustix::io::ioctl_fionbio(&writer, true).unwrap();
        let bytes: Vec<u8> = (0..300_000u32).map(|n| n.to_le_bytes()[0]).collect();
        let mut feed = Feed { pipe: Some(writer), bytes: bytes.clone(), told: 0 };
        let mut heard = Vec::new();
        let mut some = [0; 50_000];
        while feed.pipe.is_some() {
            feed.feed();
            let count = rustix::io::read(&reader, &mut some[..]).unwrap();
            heard.extend_from_slice(&some[..count]);
        }
        loop {
            match rustix::io::read(&reader, &mut some[..]).unwrap() {
                0 => break,
                count => heard.extend_from_slice(&some[..count]),
            }
        }
        assert_eq!(heard, bytes);
    }

    #[test]
    fn a_command_that_does_not_listen_is_not_told() {
        let (reader, writer) = spawn::pipe().unwrap();
        drop(reader);
        let mut feed = Feed { pipe: Some(writer), bytes: vec![0; 10], told: 0 };
        feed.feed();
        assert!(feed.pipe.is_none());
    }
}
