//! The processes of a step: who is alive of it, signals to them, and waiting for their death.
//!
//! Nothing is polled: each process is waited for through its own handle.

use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::time::Duration;

use futures_util::future::{join_all, select_all};
use outlast_conduct::steps::{Seen, Signal, Who as Main};
use outlast_engine::Survivor;
use rustix::process::Signal as Raw;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::{Driver, conduct_who, who};
use crate::world::orphans::{self, Found, Marks};
use crate::world::process::{self, Who};

/// Between two tries to watch a process when the system does not let us.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The processes whose death is waited for.
#[derive(Default)]
pub(super) struct Watched {
    until: Option<Pin<Box<dyn Future<Output = ()> + Send + Sync>>>,
}

impl Watched {
    /// Waits for any of these, or for all.
    pub(super) fn set(&mut self, these: &[Survivor], all: bool) {
        let deaths: Vec<_> = these
            .iter()
            .map(|one| Box::pin(gone(Who { pid: one.pid, start: one.start })))
            .collect();
        self.until = Some(if all {
            Box::pin(async { drop(join_all(deaths).await) })
        } else {
            Box::pin(async { drop(select_all(deaths).await) })
        });
    }

    /// Comes back once when it has come true; never while nothing is watched.
    pub(super) async fn gone(&mut self) {
        match &mut self.until {
            Some(until) => {
                until.await;
                self.until = None;
            }
            None => std::future::pending().await,
        }
    }
}

impl Driver {
    /// Who is alive of the step, and then what its records say.
    pub(super) fn see(&self, main: Option<Main>) -> Result<Seen, String> {
        let main = main.map(who);
        let look = || {
            let is_main_alive = match main {
                Some(main) => process::is_alive(main)?,
                None => false,
            };
            orphans::look(&self.marks(main)).map(|found| (found, is_main_alive))
        };
        let (found, is_main_alive) = look().map_err(|error| error.to_string())?;
        let Found { tree, shims, leader } = found;
        let leader = leader.map(conduct_who);
        let (records, noted) = (self.readable_records(), self.noted());
        Ok(Seen { tree, shims, leader, is_main_alive, records, noted })
    }

    pub(super) fn marks(&self, main: Option<Who>) -> Marks {
        Marks::new(&self.task.run.id, self.task.step, &self.dir, main)
    }
}

pub(super) fn signal(to: &[Survivor], signal: Signal) {
    let raw = match signal {
        Signal::Term => Raw::TERM,
        Signal::Cont => Raw::CONT,
        Signal::Kill => Raw::KILL,
    };
    orphans::signal(to, raw);
}

/// Lets a shim go on that was stopped by a signal.
pub(super) fn wake(marks: &Marks) {
    match orphans::look(marks) {
        Ok(found) => orphans::signal(&found.shims, Raw::CONT),
        Err(error) => tracing::warn!(%error, "cannot look for a shim to wake"),
    }
}

/// Returns when the process is dead.
async fn gone(who: Who) {
    loop {
        match process::open(who) {
            Ok(Some(handle)) => return wait_readable(handle).await,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(pid = who.pid, %error, "cannot watch a process of an orphan");
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        }
    }
}

/// A pidfd can be read from once its process has died.
async fn wait_readable(handle: OwnedFd) {
    #[expect(unsafe_code, reason = "tokio leaves it to its caller that the descriptor stays open")]
    // SAFETY: an `OwnedFd` is open, and stays so for as long as the `AsyncFd` that now owns it.
    let watched = unsafe { AsyncFd::register_with_interest(handle, Interest::READABLE) };
    match watched {
        Ok(handle) => {
            if let Err(error) = handle.readable().await {
                tracing::warn!(%error, "cannot wait for an orphan");
            }
        }
        Err(error) => tracing::warn!(%error, "cannot watch an orphan"),
    }
}
