//! Searches an attempt's output for the run's watches, and says when a heartbeat notice is due.
//!
//! Brings what it found to the conductor; the engine decides what is told when. Sleeps until there is more output, or
//! until the end of the window while something is held back. Otherwise nothing wakes up.

mod lines;
mod scan;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{Input, Matched, Run, Step};
use outlast_home::layout::AttemptDir;
use outlast_wire::hook;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::AbortHandle;

use crate::ground::Ground;
use crate::lanes::Lane;
use crate::mailbox::{Following, Handle};
use crate::output;

pub(crate) use scan::pattern;
use scan::{Read, Scan};

/// Before what should have been told and was not is brought again.
const AGAIN: Duration = Duration::from_secs(1);

/// Looks until it is dropped or the attempt has ended.
pub(crate) struct Watcher {
    /// `None` if only the heartbeat is wanted.
    scan: Option<Arc<Mutex<Scan>>>,
    task: AbortHandle,
}

impl Watcher {
    /// A watcher of the output of this step, if the run has watches.
    pub(crate) fn start(
        ground: &Arc<Ground>,
        handle: &Handle,
        run: &Run,
        step: Step,
        dir: &AttemptDir,
    ) -> Option<Self> {
        let Step::Attempt { turn, attempt } = step else { return None };
        let is_live = run.live().is_some_and(|live| live.is(turn, attempt));
        if !is_live || !run.is_watched() {
            return None;
        }
        let scan = Scan::new(run, dir.clone()).map(|scan| Arc::new(Mutex::new(scan)));
        let look = Look {
            ground: ground.clone(),
            handle: handle.clone(),
            step: (turn, attempt),
            dir: dir.clone(),
            scan: scan.clone(),
        };
        #[expect(
            clippy::disallowed_methods,
            reason = "owned by the task of its step, which aborts it"
        )]
        let task = tokio::spawn(look.watch()).abort_handle();
        Some(Self { scan, task })
    }

    /// All that is left to tell when the output is over.
    pub(crate) async fn last_words(&self) -> Vec<Matched> {
        let Some(scan) = &self.scan else { return Vec::new() };
        // The task that reports a match has the lock until the journal has it, so nothing is told twice.
        let mut scan = scan.clone().lock_owned().await;
        let read = Lane::Steps.run(move || {
            while scan.read()? == Read::Some {}
            scan.finish();
            Ok::<_, io::Error>(scan.unsent().cloned().collect())
        });
        match read.await.map_err(io::Error::other).flatten() {
            Ok(unsent) => unsent,
            Err(error) => {
                tracing::error!(%error, "cannot look through the end of the output");
                Vec::new()
            }
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Look {
    ground: Arc<Ground>,
    handle: Handle,
    step: (u32, u32),
    dir: AttemptDir,
    scan: Option<Arc<Mutex<Scan>>>,
}

/// When to look again, if there is no more output before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    AtOnce,
    Within(Option<Duration>),
}

impl Look {
    async fn watch(self) {
        let mut bytes = self.handle.output.bytes.subscribe();
        let mut snapshot = self.handle.snapshot.clone();
        let mut following = None;
        while let Some(run) = self.live_run() {
            bytes.borrow_and_update();
            let (is_looking, next) = match self.look_through(&run).await {
                Ok(looked) => looked,
                Err(error) => {
                    tracing::error!(run = %run.id, %error, "cannot look through the output; its watches see no more");
                    return;
                }
            };
            let beat = self.heartbeat().await;
            // A watcher that only asks whether there is more output has its answer until that is told.
            let follows = is_looking || (run.spec.heartbeat_ms.is_some() && beat.is_none());
            if follows != following.is_some() {
                following = follows.then(|| Following::new(self.handle.clone()));
            }
            let Next::Within(unsent) = next else { continue };
            let wait = [unsent, beat].into_iter().flatten().min();
            tokio::select! {
                Ok(()) = bytes.changed(), if following.is_some() => {}
                () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => {}
                _ = snapshot.wait_for(|seen| !self.is_live(&seen.run)) => return,
            }
        }
    }

    fn is_live(&self, run: &Run) -> bool {
        run.live().is_some_and(|live| live.is(self.step.0, self.step.1))
    }

    /// The run as it is now; `None` once the attempt has ended.
    fn live_run(&self) -> Option<Arc<Run>> {
        Some(self.handle.snapshot.borrow().run.clone()).filter(|run| self.is_live(run))
    }

    /// Looks, and tells what may be told. Says whether any watch looks on.
    async fn look_through(&self, run: &Run) -> io::Result<(bool, Next)> {
        let Some(scan) = &self.scan else { return Ok((false, Next::Within(None))) };
        let mut scan = scan.clone().lock_owned().await;
        scan.forget_told(run);
        if !scan.is_looking() {
            return Ok((false, Next::Within(None)));
        }
        let looked = Lane::Steps.run(move || {
            let read = scan.read()?;
            Ok::<_, io::Error>((scan, read))
        });
        let (mut scan, read) = looked.await.map_err(io::Error::other).flatten()?;
        let unsent = self.tell_matched(&mut scan).await;
        let next = if read == Read::Some { Next::AtOnce } else { Next::Within(unsent) };
        Ok((scan.is_looking(), next))
    }

    /// Brings what was found to the conductor; says after which time to bring what is held back.
    async fn tell_matched(&self, scan: &mut OwnedMutexGuard<Scan>) -> Option<Duration> {
        let mut again: Option<Duration> = None;
        for matched in scan.unsent().cloned().collect::<Vec<_>>() {
            let run = self.live_run()?;
            let Some(watch) =
                usize::try_from(matched.watch).ok().and_then(|at| run.watches.get(at))
            else {
                continue;
            };
            let wait = match watch.wait_ms(self.ground.world.now()) {
                0 => {
                    hook!("daemon.lines-matched");
                    let (turn, attempt) = self.step;
                    self.handle.tell(Input::Matched { turn, attempt, matched }).await?;
                    continue;
                }
                ms => Duration::from_millis(ms),
            };
            again = Some(again.map_or(wait, |sooner| sooner.min(wait)));
        }
        scan.forget_told(&*self.live_run()?);
        let is_left = scan.unsent().next().is_some();
        again.or(is_left.then_some(AGAIN))
    }

    /// Tells of new output if it is time; says when it will be, if there is any.
    async fn heartbeat(&self) -> Option<Duration> {
        let run = self.live_run()?;
        run.spec.heartbeat_ms?;
        let (written, _) = output::extent(&self.dir);
        let wait = |run: &Run| run.heartbeat_in_ms(written, self.ground.world.now());
        if wait(&run)? == 0 {
            let (turn, attempt) = self.step;
            let input = Input::HeartbeatDue { turn, attempt, output_bytes: written };
            self.handle.tell(input).await?;
        }
        let left = wait(&*self.live_run()?)?;
        Some(Duration::from_millis(left).max(Duration::from_millis(1)))
    }
}
