//! Starting an attempt: its directory, its spec, its shim. Starting twice is harmless: the lock decides.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;

use outlast_wire::layout::AttemptDir;
use outlast_wire::shim::{EnvVar, Limits, NeverStarted, Record, Revive, Spec, Spool, Window};
use outlast_wire::{hook, version};

use super::session::Session;
use super::{Work, records};
use crate::world::files::{self, Lasting};
use crate::world::spawn;

/// Between TERM and KILL when the shim ends a turn by itself.
pub(crate) const GRACE_MS: u64 = 10_000;

impl Work {
    /// Starts a shim; `None` if it went without a word, as one does that finds the lock taken. Whether it
    /// runs the command is for its lock, its records and our epoch to decide.
    pub(super) async fn launch(&self) -> io::Result<Option<Session>> {
        files::private_dir(&self.dir.0)?;
        let spec = serde_json::to_vec(&self.spec()?).map_err(io::Error::other)?;
        files::write_whole(&self.dir.spec(), &spec, Lasting::Process)?;
        hook!("daemon.attempt-spec");
        let stream = spawn::shim(&self.supervisor.exe, &self.dir.0)?;
        hook!("daemon.shim-spawned");
        let stream = tokio::net::UnixStream::from_std(stream)?;
        match Session::over(stream, self.supervisor.epoch, self.start_order()).await {
            Ok(mut session) => {
                session.is_ours = true;
                Ok(Some(session))
            }
            Err(error) => {
                tracing::warn!(run = %self.task.run.id, %error, "a new shim did not answer");
                Ok(None)
            }
        }
    }

    fn spec(&self) -> io::Result<Spec> {
        let run = &self.task.run;
        let plan = outlast_agents::plan(&run.spec.agent).map_err(io::Error::other)?;
        let layout = &self.supervisor.layout;
        Ok(Spec {
            proto: version::SHIM,
            run: run.id.0.clone(),
            turn: self.task.turn,
            attempt: self.task.attempt,
            argv: plan.argv,
            dir: run.spec.dir.clone().into(),
            env_file: layout.run(run.id.as_str()).env(),
            env: self.attempt_env(),
            umask: run.spec.umask,
            tty: run.spec.tty.map(|window| Window { rows: window.rows, cols: window.cols }),
            stdin: None,
            heartbeat: None,
            limits: Limits {
                turn_timeout_ms: run.spec.limits.turn_timeout_ms,
                stall_window_ms: run.spec.limits.stall_window_ms,
                grace_ms: GRACE_MS,
            },
            spool: Spool::default(),
            revive: Revive {
                exe: self.supervisor.exe.clone(),
                args: ["daemon", "run", "--detached"].map(str::to_owned).to_vec(),
                env_file: layout.daemon_env(),
                daemon_lock: layout.daemon_lock(),
                revive_lock: layout.revive_lock(),
                stopped_marker: layout.stopped_marker(),
            },
        })
    }

    /// What an attempt is told about itself.
    fn attempt_env(&self) -> Vec<EnvVar> {
        let run = &self.task.run;
        let (turn, attempt) = (self.task.turn, self.task.attempt);
        let set = |name: &str, value: std::ffi::OsString| EnvVar {
            name: name.into(),
            value: value.into(),
        };
        vec![
            set("OUTLAST_RUN_ID", run.id.0.clone().into()),
            set("OUTLAST_TURN", turn.to_string().into()),
            set("OUTLAST_ATTEMPT", attempt.to_string().into()),
            set("OUTLAST_WORKSPACE", run.spec.dir.clone().into()),
            set("OUTLAST_SOCKET", self.supervisor.layout.socket().into()),
            set("OUTLAST_KEY_BASE", format!("{}/t{turn}", run.id).into()),
        ]
    }
}

/// What a shim that is gone has left; `None` while one lives. Read with the lock in hand, so that no shim can
/// begin in between; one that starts in that instant leaves, and the next look launches again.
pub(super) fn left(dir: &AttemptDir) -> Result<Option<Vec<Record>>, records::Unreadable> {
    match hold(dir) {
        Ok(Some(_lock)) => records::read(&dir.events()).map(Some),
        Ok(None) => Ok(None),
        // Not even a directory.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Some(Vec::new())),
        Err(error) => {
            Err(records::Unreadable::Io { path: dir.lock().display().to_string(), error })
        }
    }
}

/// Writes down that the attempt never started, unless it has or a shim lives that may.
pub(super) fn fence(dir: &AttemptDir, at_ms: u64, why: String) -> io::Result<()> {
    files::private_dir(&dir.0)?;
    let Some(_lock) = hold(dir)? else { return Ok(()) };
    let known = records::read(&dir.events()).map_err(io::Error::other)?;
    if records::is_begun(&known) {
        return Ok(());
    }
    let record = Record::NeverStarted { at_ms, code: NeverStarted::NoResources, why };
    let mut line = serde_json::to_vec(&record).map_err(io::Error::other)?;
    line.push(b'\n');
    // Whole, because a part of a line that a shim left is not said, and would spoil ours.
    files::write_whole(&dir.events(), &line, Lasting::Process)
}

/// The shim's lock, held for a moment; `None` if a shim has it.
fn hold(dir: &AttemptDir) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    let lock =
        options.read(true).write(true).create(true).truncate(false).mode(0o600).open(dir.lock())?;
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
