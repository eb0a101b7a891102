//! Lanes: the threads for work that waits for a disk or for git, separated by purpose.
//!
//! A job waits only for jobs of its own lane. So no list that a client reads, no git and no walk through a workspace
//! delays what a turn's commit needs. Commits themselves have the store's own thread.

use std::time::Duration;

use outlast_wire::codes::Code;
use tokio::sync::Semaphore;
use tokio::task::JoinError;

use crate::refusal::{Answer, Refusal};

/// What a job is for. Each lane has its own threads and its own queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// What a new run, a launch or a turn's end waits for: small files of the state directory, short questions
    /// to the store.
    Steps,
    /// What a client reads: one page, one view, one short question.
    Clients,
    /// What looks through a directory of the user's: a workspace at a turn's end, a folder that is watched. A
    /// commit waits for it only for a bounded time.
    Folders,
    /// What is done to directories of the user: git, workspaces made and removed.
    Chores,
    /// What waits until chores of other runs are done: `rm` and `gc`. In the lane of chores it would take the
    /// threads that it waits for.
    Removals,
    /// What reads all of the store: `doctor`, metrics, traces.
    Surveys,
}

impl Lane {
    const ALL: [Self; 6] =
        [Self::Steps, Self::Clients, Self::Folders, Self::Chores, Self::Removals, Self::Surveys];

    /// How many jobs of this lane run at once. The others wait in the order in which they came.
    const fn width(self) -> usize {
        match self {
            Self::Steps | Self::Clients | Self::Folders | Self::Chores => 4,
            Self::Removals | Self::Surveys => 2,
        }
    }

    /// As many threads as all lanes need together: then no lane ever waits for another's thread.
    pub(crate) fn threads() -> usize {
        Self::ALL.into_iter().map(Self::width).sum()
    }

    fn room(self) -> &'static Semaphore {
        static STEPS: Semaphore = Semaphore::const_new(Lane::Steps.width());
        static CLIENTS: Semaphore = Semaphore::const_new(Lane::Clients.width());
        static FOLDERS: Semaphore = Semaphore::const_new(Lane::Folders.width());
        static CHORES: Semaphore = Semaphore::const_new(Lane::Chores.width());
        static REMOVALS: Semaphore = Semaphore::const_new(Lane::Removals.width());
        static SURVEYS: Semaphore = Semaphore::const_new(Lane::Surveys.width());
        match self {
            Self::Steps => &STEPS,
            Self::Clients => &CLIENTS,
            Self::Folders => &FOLDERS,
            Self::Chores => &CHORES,
            Self::Removals => &REMOVALS,
            Self::Surveys => &SURVEYS,
        }
    }

    /// Does the work on a thread of this lane, once there is one. A job that has begun goes on when the caller
    /// no longer waits for it, and keeps its place until it is done.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        let place = self.room().acquire().await.expect("no lane is ever closed");
        #[expect(clippy::disallowed_methods, reason = "this is where threads are handed out")]
        let job = tokio::task::spawn_blocking(move || {
            let _place = place;
            work()
        });
        job.await
    }

    /// The same, for work that the caller can do without: `None` if it is not done in time.
    pub(crate) async fn run_within<T: Send + 'static>(
        self,
        within: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<Result<T, JoinError>> {
        tokio::time::timeout(within, self.run(work)).await.ok()
    }
}

/// What a client waits for alone.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Answer<T> + Send + 'static,
) -> Answer<T> {
    in_lane(Lane::Clients, work).await
}

/// Work that waits for the disk, among work of its own kind.
pub(crate) async fn in_lane<T: Send + 'static>(
    lane: Lane,
    work: impl FnOnce() -> Answer<T> + Send + 'static,
) -> Answer<T> {
    match lane.run(work).await {
        Ok(answer) => answer,
        Err(error) => Err(Refusal::new(Code::Bug, format!("a reader died: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Takes every thread of a lane until the sender that is returned is dropped.
    fn fill(lane: Lane) -> Vec<mpsc::Sender<()>> {
        let fill_one = |_| {
            let (release, released) = mpsc::channel::<()>();
            #[expect(clippy::disallowed_methods, reason = "ends with the test")]
            let _job = tokio::spawn(lane.run(move || released.recv().is_ok()));
            release
        };
        (0..lane.width()).map(fill_one).collect()
    }

    #[test]
    fn a_lane_that_is_full_holds_up_no_other() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(Lane::threads())
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let mut filled = Vec::new();
            for lane in [Lane::Clients, Lane::Folders, Lane::Chores, Lane::Surveys] {
                filled.push(fill(lane));
            }
            for _ in 0..3 {
                tokio::task::yield_now().await;
            }
            assert_eq!(Lane::Steps.run(|| 7).await.expect("it ran"), 7);
            let skipped = Lane::Folders.run_within(Duration::from_millis(20), || 7).await;
            assert!(skipped.is_none(), "a full lane is not waited for beyond the time");
        });
    }
}
