//! The one place where the shim waits.
//!
//! Each round: wait until something is ready or due, hand what is ready to the attempt, then let it do
//! what is due. An attempt with nothing due and nothing ready does not wake up.

use std::process::ExitCode;
use std::time::Duration;

use rustix::event::{PollFd, Timespec, poll};

use crate::attempt::Attempt;
use crate::clock;
use crate::source::{Source, Waited};

pub(crate) fn serve(mut attempt: Attempt) -> ExitCode {
    while !attempt.is_finished() {
        let before = clock::now();
        let timeout = attempt.wake_at(before).map(|at| at.saturating_duration_since(before));
        let ready = wait(&attempt.waited_for(), timeout);
        let now = clock::now();
        if let Some(asked) = timeout {
            attempt.waited(asked, now.saturating_duration_since(before), now);
        }
        for source in ready {
            attempt.handle(source, now);
        }
        attempt.tick(clock::now());
    }
    // The socket stays where it is: a client that tries it is refused, and removing it would cost every launch
    // after it (ext4 steps around inodes that were just freed).
    ExitCode::SUCCESS
}

fn wait(waited: &[Waited<'_>], timeout: Option<Duration>) -> Vec<Source> {
    let mut fds: Vec<PollFd<'_>> =
        waited.iter().map(|(_, fd, flags)| PollFd::from_borrowed_fd(*fd, *flags)).collect();
    let timeout = timeout.map(|timeout| Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    });
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) => {
            let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
            waited
                .iter()
                .zip(&fds)
                .filter(|(_, fd)| is_ready(fd))
                .map(|((source, ..), _)| *source)
                .collect()
        }
        // Interrupted, or out of memory for a moment: the next round asks again.
        Err(_) => Vec::new(),
    }
}
