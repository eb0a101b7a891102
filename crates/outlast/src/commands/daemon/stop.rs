//! `outlast daemon stop`: ask the daemon to go, and return when it has gone. One that does not answer is ended by
//! a signal to the process that holds the lock.

use std::io::Write;
use std::time::{Duration, SystemTime};

use outlast_client::ask::Ask;
use outlast_client::connect::meet;
use outlast_client::connection::{Connection, Failed};
use outlast_client::problem::Problem;
use outlast_home::holder;
use outlast_home::layout::{FOR_ALL, FOR_ALL_LATER, Layout};
use outlast_home::lock::{self, Lock};
use outlast_home::process::Sent;
use outlast_home::regular;
use rustix::process::Signal;
use tokio::time::{Instant, sleep};

use super::{Heard, ask_status, does_answer};
use crate::world::World;
use crate::{Answer, output};

const LONGEST: Duration = Duration::from_secs(30);
/// How long a daemon that does not answer may take to leave when it is told to by a signal.
const GRACE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// What a person has to know of the time without a daemon.
const WITHOUT: &str = "\
commands that run keep running, but loops take no next turn,
schedules do not start and notices are not sent until it is back:
  outlast daemon start";

pub(crate) async fn stop(world: &World) -> Answer {
    let layout = world.client.layout()?;
    let said = match meet(&world.client).await? {
        Some(mut connection) => match does_answer(&mut connection).await? {
            Heard::Something => ask_to_stop(connection, layout).await?,
            Heard::Nothing => end_by_signal(layout).await?,
        },
        None => match lock::probe(&layout.daemon_lock()) {
            Lock::Free => {
                stay_down_later(layout)?;
                "not running".to_owned()
            }
            Lock::Held => end_by_signal(layout).await?,
        },
    };
    output::say(&said).map(|()| 0)
}

async fn ask_to_stop(mut connection: Connection, layout: &Layout) -> Result<String, Problem> {
    let asked = ask_status(&mut connection).await?.pid;
    match connection.fetch(&Ask::post("/v1/daemon/stop", &serde_json::json!({}))).await {
        // It may be gone before its answer is through.
        Ok(_) | Err(Failed::Lost(_)) => {}
        Err(Failed::Answered(problem)) => return Err(problem),
    }
    match gone(layout, asked, LONGEST).await {
        Gone::Free => Ok(format!("stopped; {WITHOUT}")),
        Gone::To(other) => Ok(replaced(other)),
        Gone::No => {
            let seconds = LONGEST.as_secs();
            Err(Problem::unreachable(format_args!(
                "it was asked to stop {seconds} s ago and has not"
            )))
        }
    }
}

/// TERM first. A process that was frozen wakes up to it, and one that has not left in time is killed, which costs
/// nothing that is in the journal.
async fn end_by_signal(layout: &Layout) -> Result<String, Problem> {
    let Some(holder) = holder::current(&layout.daemon_lock()) else { return Err(deaf(layout)) };
    // A shim must not start another in the moment between.
    stay_down(layout)?;
    let was_frozen = holder.is_frozen();
    let pid = holder.pid;
    let why = if was_frozen { "it was frozen" } else { "it did not answer" };
    for (signal, name) in [(Signal::TERM, "SIGTERM"), (Signal::KILL, "SIGKILL")] {
        match holder.signal(signal) {
            Sent::Yes if was_frozen => {
                holder.signal(Signal::CONT);
            }
            // One that is not there has just left, or is not the process that holds the lock.
            Sent::Yes | Sent::Gone => {}
            Sent::No => return Err(deaf(layout)),
        }
        match gone(layout, Some(pid), GRACE).await {
            Gone::Free => {
                return Ok(format!("stopped by {name}: pid {pid}, {why}; {WITHOUT}"));
            }
            Gone::To(other) => return Ok(replaced(other)),
            Gone::No => {}
        }
    }
    Err(Problem::unreachable(format_args!(
        "pid {pid} was sent SIGKILL, and its lock is still held"
    ))
    .hint(format_args!("find out by which process:\nfuser {}", layout.daemon_lock().display())))
}

enum Gone {
    Free,
    /// Another daemon has the lock.
    To(u32),
    No,
}

/// Waits until the daemon `asked` has let go of the lock.
async fn gone(layout: &Layout, asked: Option<u32>, within: Duration) -> Gone {
    let lock = layout.daemon_lock();
    let deadline = Instant::now() + within;
    loop {
        if lock::probe(&lock) == Lock::Free {
            return Gone::Free;
        }
        let holder = holder::current(&lock).map(|holder| holder.pid);
        if let Some(holder) = holder.filter(|_| holder != asked) {
            return Gone::To(holder);
        }
        if Instant::now() >= deadline {
            return Gone::No;
        }
        sleep(PAUSE).await;
    }
}

fn replaced(other: u32) -> String {
    format!("stopped; another daemon was started meanwhile, pid {other}")
}

/// A daemon that lives is told by the marker before it is told by a signal, so that no shim starts another.
fn stay_down(layout: &Layout) -> Result<(), Problem> {
    mark(layout, FOR_ALL, None)
}

/// A daemon that died may be about to be started again by a shim; it was just asked not to be. The marker says that it
/// was dead by then; that of an earlier stop keeps its time.
fn stay_down_later(layout: &Layout) -> Result<(), Problem> {
    let marker = layout.stopped_marker();
    match regular::read(&marker) {
        Ok(content) if content == FOR_ALL_LATER.as_bytes() => Ok(()),
        Ok(_) => {
            let stopped_at = std::fs::metadata(&marker).and_then(|it| it.modified()).ok();
            mark(layout, FOR_ALL, stopped_at)
        }
        Err(_) => mark(layout, FOR_ALL_LATER, None),
    }
}

fn mark(layout: &Layout, content: &str, at: Option<SystemTime>) -> Result<(), Problem> {
    let marker = layout.stopped_marker();
    let write = || {
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let mut file = regular::open_with(&mut options, &marker)?;
        file.write_all(content.as_bytes())?;
        at.map_or(Ok(()), |at| file.set_modified(at))
    };
    match write() {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => {
            Err(Problem::unreachable(format_args!("cannot write {}: {error}", marker.display())))
        }
    }
}

/// An earlier daemon does not say enough of itself to be signalled.
fn deaf(layout: &Layout) -> Problem {
    let pid = holder::last(&layout.daemon_lock()).map(|holder| holder.pid);
    let problem =
        Problem::unreachable("it holds the lock, does not answer, and cannot be signalled");
    match pid {
        Some(pid) => problem.hint(format_args!("if pid {pid} is an outlast daemon:\nkill {pid}")),
        None => problem.hint(format_args!("its log is {}", layout.daemon_log().display())),
    }
}
