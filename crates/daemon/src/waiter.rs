//! The waiter, seen from the daemon: this module keeps one alive while the daemon lives, and tells it whether a
//! daemon is needed.
//!
//! The waiter is a process that starts a daemon again when this one dies and no shim lives to do that
//! (`outlast_shim::wait`). The daemon finds it by its lock, so one waiter serves one daemon after another. A service
//! manager restarts its daemon itself, so such a daemon has no waiter. Whether a daemon is needed is one byte in a
//! file. Writing it costs nothing beside an append. The byte need not survive a reboot, because the waiter does not
//! either.

use std::collections::HashSet;
use std::convert::Infallible;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use outlast_engine::{Run, RunId};
use outlast_home::layout::Layout;
use outlast_home::waiter::holder;
use outlast_wire::api::Mode;
use outlast_wire::shim::{NEEDED, NOT_NEEDED, Revive, Waiter};
use rustix::process::Signal;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::leaving::Leaving;
use crate::sync::lock;
use crate::world::files::{self, Lasting};
use crate::world::limits;
use crate::world::process;
use crate::world::spawn;

/// Before a waiter that has died is started again: longer each time, unless it lived for longer. Never long, because
/// a daemon that dies meanwhile is not started again.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The runs that need a daemon, and the byte that says whether there are any.
#[derive(Default)]
pub(crate) struct Needs(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    runs: HashSet<RunId>,
    /// There once every open run is known; what an earlier daemon wrote holds until then.
    byte: Option<File>,
}

impl Needs {
    /// Notes what a run has come to.
    pub(crate) fn note(&self, run: &Run) {
        let needs = run.is_open() && !run.waits_for_person();
        self.change(|runs| if needs { runs.insert(run.id.clone()) } else { runs.remove(&run.id) });
    }

    /// A run may need a daemon from now on. True if that is news.
    pub(crate) fn expect(&self, id: &RunId) -> bool {
        let is_known = lock(&self.0).runs.contains(id);
        if !is_known {
            self.change(|runs| runs.insert(id.clone()));
        }
        !is_known
    }

    /// A run that cannot be read is read again by a daemon only.
    pub(crate) fn note_unreadable(&self, id: &RunId) {
        self.change(|runs| runs.insert(id.clone()));
    }

    pub(crate) fn forget(&self, id: &RunId) {
        self.change(|runs| runs.remove(id));
    }

    /// Every open run is known from here on.
    pub(crate) fn loaded(&self, layout: &Layout) {
        let path = layout.needed();
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let opened = outlast_home::regular::open_with(&mut options, &path);
        let mut inner = lock(&self.0);
        match opened {
            Ok(file) => inner.byte = Some(file),
            Err(error) => {
                tracing::error!(%error, path = %path.display(), "cannot say whether a daemon is needed; the waiter takes it that one is");
            }
        }
        inner.say();
    }

    fn change(&self, change: impl FnOnce(&mut HashSet<RunId>) -> bool) {
        let mut inner = lock(&self.0);
        let was_needed = !inner.runs.is_empty();
        change(&mut inner.runs);
        if inner.runs.is_empty() == was_needed {
            inner.say();
        }
    }
}

impl Inner {
    fn say(&self) {
        let Some(file) = &self.byte else { return };
        let byte = if self.runs.is_empty() { NOT_NEEDED } else { NEEDED };
        if let Err(error) = file.write_all_at(&[byte], 0) {
            tracing::error!(%error, "cannot say whether a daemon is needed");
        }
    }
}

/// How a shim or the waiter starts a daemon again.
pub(crate) fn revive(layout: &Layout, exe: &Path) -> Revive {
    Revive {
        exe: exe.to_owned(),
        args: ["daemon", "run", "--detached"].map(str::to_owned).to_vec(),
        env_file: layout.daemon_env(),
        daemon_lock: layout.daemon_lock(),
        revive_lock: layout.revive_lock(),
        stopped_marker: layout.stopped_marker(),
        soft_limits: limits::before(),
    }
}

/// Whose waiter it is.
pub(crate) struct Daemon<'d> {
    pub(crate) layout: &'d Layout,
    pub(crate) exe: &'d Path,
    pub(crate) mode: Mode,
    pub(crate) leaving: watch::Receiver<Option<Leaving>>,
}

/// Sees to it that there is a waiter, for the daemon's life.
pub(crate) async fn keep(daemon: Daemon<'_>) -> Infallible {
    if daemon.mode == Mode::Service {
        end(daemon.layout);
        return std::future::pending().await;
    }
    let mut pause = FIRST_PAUSE;
    loop {
        let since = Instant::now();
        if let Err(error) = follow(&daemon).await {
            tracing::error!(%error, "cannot have a waiter; if this daemon dies while no shim lives, the next command starts one");
        }
        if daemon.leaving.borrow().is_some() {
            return std::future::pending().await;
        }
        pause = if since.elapsed() > LONGEST_PAUSE { FIRST_PAUSE } else { pause };
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Finds the waiter or starts one, and returns when it is gone.
async fn follow(daemon: &Daemon<'_>) -> io::Result<()> {
    let layout = daemon.layout;
    let revive = revive(layout, daemon.exe);
    let plan = Waiter { revive, lock: layout.waiter_lock(), needed: layout.needed() };
    let json = serde_json::to_vec(&plan).map_err(io::Error::other)?;
    files::write_whole(&layout.waiter_plan(), &json, Lasting::Process)?;
    if let Some(who) = holder(&layout.waiter_lock()) {
        rouse(layout);
        return process::gone(who).await;
    }
    // Our own child tells us, by a signal, when it is frozen. So does every shim that ends, so little is asked.
    let mut children = signal(SignalKind::child())?;
    let mut waiter = spawn::waiter(daemon.exe, &layout.waiter_plan())?;
    let pid = waiter.id();
    let rousing = async {
        while children.recv().await.is_some() {
            if pid.is_some_and(process::is_stopped_child) {
                rouse(layout);
            }
        }
        std::future::pending().await
    };
    let status = tokio::select! {
        status = waiter.wait() => status?,
        never = rousing => never,
    };
    tracing::debug!(%status, "the waiter is gone");
    Ok(())
}

/// Has a waiter go on that was frozen: it would see no daemon die.
pub(crate) fn rouse(layout: &Layout) {
    let Some(who) = holder(&layout.waiter_lock()) else { return };
    if process::is_frozen(who) {
        tracing::warn!(pid = who.pid, "the waiter was frozen; it goes on");
        process::signal(who, Signal::CONT);
    }
}

/// Ends the waiter, if there is one.
pub(crate) fn end(layout: &Layout) {
    if let Some(who) = holder(&layout.waiter_lock()) {
        process::signal(who, Signal::TERM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_byte_says_whether_any_run_needs_a_daemon_once_all_are_known() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::under(dir.path());
        files::private_dir(&layout.state).unwrap();
        let said = || std::fs::read(layout.needed()).ok();
        let needs = Needs::default();
        let run = |name: &str| RunId(name.to_owned());
        needs.note_unreadable(&run("one"));
        assert_eq!(said(), None, "an earlier daemon's word holds while runs are read");
        needs.loaded(&layout);
        assert_eq!(said(), Some(vec![NEEDED]));
        needs.note_unreadable(&run("two"));
        needs.forget(&run("one"));
        assert_eq!(said(), Some(vec![NEEDED]));
        needs.forget(&run("two"));
        assert_eq!(said(), Some(vec![NOT_NEEDED]));
        needs.note_unreadable(&run("one"));
        assert_eq!(said(), Some(vec![NEEDED]));
    }
}
