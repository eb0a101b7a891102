//! Starting the daemon because a command needs it.
//!
//! Any number of clients may start a daemon at once: the daemon's lock picks one daemon, and all clients connect to
//! that daemon.

use std::process::Child;
use std::time::Duration;

use outlast_home::holder::{self, Left};
use outlast_home::layout::Layout;
use outlast_home::lock::{self, Lock};
use outlast_wire::api::ErrorInfo;
use outlast_wire::codes::Code;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::unix::pipe::Receiver;
use tokio::time::{Instant, sleep, timeout};

use crate::connection::Connection;
use crate::dial::try_connect;
use crate::nudge;
use crate::problem::{Problem, REFUSED, UNREACHABLE};
use crate::world::World;

const START_MAX: Duration = Duration::from_secs(15);
/// Time for the new daemon to look at the journal, wait for the old daemon to leave, and load every open run.
const REPLACE_MAX: Duration = Duration::from_secs(90);
/// A daemon that dies as it starts is started this many times, and no more.
const STARTS_MAX: u32 = 4;
/// How long the successor of a daemon that was replaced may take to get the lock.
const SUCCESSOR_WITHIN: Duration = Duration::from_secs(3);
const NUDGES_MAX: u32 = 3;
const FIRST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// The code of a daemon that lost the race for the lock to another daemon.
const RACE_LOST: Code = Code::DaemonRunning;

/// What a started daemon says of itself.
#[derive(Debug, PartialEq, Eq)]
pub enum Said {
    Ready,
    Error(ErrorInfo),
    /// The daemon went away, or lost the race for the lock to another daemon.
    Nothing,
}

/// A connection to a daemon, which this client or another one started.
pub async fn start(world: &World) -> Result<Connection, Problem> {
    let layout = world.layout()?;
    let deadline = Instant::now() + START_MAX;
    let mut starting: Option<Lines<BufReader<Receiver>>> = None;
    let mut starts = 0;
    let mut pause = FIRST_PAUSE;
    let mut nudges = 0;
    let mut successor_until = None;
    while Instant::now() < deadline {
        if let Some(connection) = try_connect(layout).await? {
            return Ok(connection);
        }
        match &mut starting {
            // The client also looks at the socket now and then: a daemon that another client started serves as well.
            Some(pipe) => match timeout(pause, next_line(pipe)).await {
                Ok(Said::Error(info)) if info.code != RACE_LOST => return Err(refused(info)),
                Ok(Said::Ready | Said::Error(_) | Said::Nothing) => starting = None,
                Err(_) => {}
            },
            // The daemon that holds the lock is about to listen, so another daemon would have nothing to do.
            None if starts < STARTS_MAX && lock::probe(&layout.daemon_lock()) == Lock::Free => {
                // A daemon that was replaced has a successor, which may be of a newer build than this client's.
                let now = Instant::now();
                let until = *successor_until.get_or_insert(now + SUCCESSOR_WITHIN);
                if now < until && was_replaced(layout) {
                    sleep(pause).await;
                    continue;
                }
                starts += 1;
                starting = Some(listen(world.start_daemon(&[])?)?);
                continue;
            }
            None => {
                // A daemon that has not listened for a while may not know that its socket is gone.
                if pause == LONGEST_PAUSE && nudges < NUDGES_MAX {
                    nudges += 1;
                    nudge::nudge(layout);
                }
                sleep(pause).await;
            }
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
    Err(stuck(layout))
}

/// Starts a daemon that takes the place of the running daemon, and waits until the new daemon is ready.
pub async fn replace(world: &World) -> Result<(), Problem> {
    let mut pipe = listen(world.start_daemon(&["--replace"])?)?;
    match timeout(REPLACE_MAX, next_line(&mut pipe)).await {
        Ok(Said::Ready) => Ok(()),
        Ok(Said::Error(info)) => Err(refused(info)),
        Ok(Said::Nothing) => Err(Problem::unreachable("the successor ended without a word")
            .hint("read its last words:\noutlast daemon logs --tail 50")),
        Err(_elapsed) => {
            let seconds = REPLACE_MAX.as_secs();
            Err(Problem::unreachable(format_args!(
                "the successor did not start within {seconds} s"
            )))
        }
    }
}

fn was_replaced(layout: &Layout) -> bool {
    let last = holder::last(&layout.daemon_lock());
    last.is_some_and(|holder| holder.left == Some(Left::Replaced))
}

fn listen(mut child: Child) -> Result<Lines<BufReader<Receiver>>, Problem> {
    let stdout = child.stdout.take().expect("its output is piped");
    let pipe = Receiver::from_owned_fd(stdout.into()).map_err(|error| {
        Problem::unreachable(format_args!("cannot listen to its start: {error}"))
    })?;
    Ok(BufReader::new(pipe).lines())
}

async fn next_line(pipe: &mut Lines<BufReader<Receiver>>) -> Said {
    match pipe.next_line().await {
        Ok(Some(line)) => read_line(&line),
        Ok(None) | Err(_) => Said::Nothing,
    }
}

pub fn read_line(line: &str) -> Said {
    if line == "ready" {
        return Said::Ready;
    }
    let error = line.strip_prefix("error ").and_then(|json| serde_json::from_str(json).ok());
    error.map_or(Said::Nothing, Said::Error)
}

/// The error of a daemon that did not start.
fn refused(info: ErrorInfo) -> Problem {
    let exit = match info.code.known() {
        // A daemon that runs rejects one request on a full disk; without a daemon there is nothing to ask.
        Some(Code::DiskFull) => UNREACHABLE,
        Some(code) => code.exit(),
        None => REFUSED,
    };
    Problem::Told { info: Box::new(info), exit }
}

fn stuck(layout: &Layout) -> Problem {
    let seconds = START_MAX.as_secs();
    let (lock, log) = (layout.daemon_lock(), layout.daemon_log());
    match lock::probe(&lock) {
        Lock::Held => {
            let who =
                holder::current(&lock).map(|it| format!(", pid {},", it.pid)).unwrap_or_default();
            let lock = lock.display();
            Problem::unreachable(format_args!(
                "it holds {lock}{who} and has not answered for {seconds} s"
            ))
            .hint(format_args!(
                "its log is {}; to end it, also if it hangs:\noutlast daemon stop",
                log.display()
            ))
        }
        Lock::Free => Problem::unreachable(format_args!("it did not start within {seconds} s"))
            .hint(format_args!("its log is {}", log.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_says_one_of_three_things() {
        assert_eq!(read_line("ready"), Said::Ready);
        assert_eq!(read_line(""), Said::Nothing);
        let line = r#"error {"code":"corrupt","message":"outlast.db is damaged","hint":null}"#;
        let Said::Error(info) = read_line(line) else { panic!("an error is told") };
        assert_eq!(refused(info).exit(), 2);
    }
}
