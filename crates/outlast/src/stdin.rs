//! The standard input of `run`: read to its end with `-i`, and otherwise never.
//!
//! Without `-i` a person is told if there is something to read. It is not waited for: cron and CI leave pipes open that
//! never end.

use std::ffi::OsString;
use std::io::{IsTerminal, Read};
use std::os::unix::ffi::OsStringExt;

use outlast_client::problem::Problem;
use outlast_wire::OsText;
use outlast_wire::api::LARGEST_STDIN;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::FileType;

use crate::output;

/// All of it, up to the bound.
pub(crate) fn read() -> Result<OsText, Problem> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        let message =
            "-i reads standard input to its end before the run starts, and this is a terminal";
        return Err(Problem::refusal("stdin_is_a_terminal", message)
            .hint("pipe into it, or start a run with a terminal:\noutlast run -t -- COMMAND"));
    }
    let mut bytes = Vec::new();
    let most = u64::try_from(LARGEST_STDIN).unwrap_or(u64::MAX);
    let taken = stdin.lock().take(most + 1).read_to_end(&mut bytes);
    taken.map_err(|error| Problem::failure(format_args!("cannot read standard input: {error}")))?;
    if bytes.len() > LARGEST_STDIN {
        let message = format!("standard input has more than {} MiB", LARGEST_STDIN >> 20);
        return Err(Problem::refusal("stdin_too_big", message)
            .hint("put it into a file:\noutlast run -- sh -c 'COMMAND < FILE'"));
    }
    Ok(OsText(OsString::from_vec(bytes)))
}

/// Says that standard input is not read, if there is something in it.
pub(crate) fn mention() {
    if has_something() {
        output::tell(
            "warning: standard input is not read; outlast run -i gives it to the command, \
             < /dev/null says that it is not meant",
        );
    }
}

/// True if a pipe or a file has bytes to read just now.
fn has_something() -> bool {
    let stdin = rustix::stdio::stdin();
    let Ok(stat) = rustix::fs::fstat(stdin) else { return false };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            let at = rustix::fs::tell(stdin).unwrap_or(0);
            u64::try_from(stat.st_size).is_ok_and(|size| size > at)
        }
        FileType::Fifo | FileType::Socket => {
            let mut waits = [PollFd::new(&stdin, PollFlags::IN)];
            let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
            let is_ready = rustix::event::poll(&mut waits, Some(&at_once)).is_ok_and(|n| n > 0);
            is_ready && rustix::io::ioctl_fionread(stdin).is_ok_and(|bytes| bytes > 0)
        }
        _ => false,
    }
}
