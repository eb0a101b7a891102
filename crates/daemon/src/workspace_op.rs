//! A workspace operation: what the daemon does to a workspace itself (make, discard, remove), on a thread that may wait for the
//! disk.
//!
//! A workspace operation is safe to repeat: a dropped one leaves what the next one finds. The conductor starts it and hears its
//! result as an input.

use std::sync::Arc;
use std::time::Duration;

use outlast_conduct::conductor::WorkspaceOp;
use outlast_engine::{Input, Run};
use outlast_home::layout::RunDir;
use outlast_wire::api::Trouble;
use outlast_wire::hook;
use tokio::task::AbortHandle;

use crate::ground::Ground;
use crate::lanes::Lane;
use crate::mailbox::{Handle, Message};
use crate::workspace::{self, Failure};

const RETRIES: u32 = 6;
const FIRST_RETRY: Duration = Duration::from_millis(500);
const LAST_RETRY: Duration = Duration::from_secs(16);

/// A workspace operation that is being done. Let go of when dropped: what it did is found by the next one.
pub(crate) struct WorkspaceTask {
    pub(crate) op: WorkspaceOp,
    task: AbortHandle,
}

impl Drop for WorkspaceTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl WorkspaceTask {
    pub(crate) fn start(
        ground: Arc<Ground>,
        op: WorkspaceOp,
        run: Arc<Run>,
        dir: RunDir,
        handle: Handle,
    ) -> Self {
        #[expect(clippy::disallowed_methods, reason = "owned by the conductor, which aborts it")]
        let task = tokio::spawn(async move {
            let work = Work { ground, op, run, dir, handle: handle.clone() };
            let input = work.until_done().await;
            // A conductor that is gone is followed by one that does this again.
            let _gone = handle.mailbox.send(Message::Input { input, done: None }).await;
        });
        Self { op, task: task.abort_handle() }
    }
}

struct Work {
    ground: Arc<Ground>,
    op: WorkspaceOp,
    run: Arc<Run>,
    dir: RunDir,
    handle: Handle,
}

impl Work {
    /// What the host lacks is waited for as long as it takes; what else may pass by itself, for a while.
    async fn until_done(self) -> Input {
        let (kind, run) = (self.op, &self.run);
        let mut retry_in = FIRST_RETRY;
        let (mut tries_left, mut is_suspended) = (RETRIES, false);
        loop {
            let (work, place) = (run.clone(), self.dir.clone());
            let done = Lane::Chores.run(move || carry_out(kind, &work, &place)).await;
            let failure = match done {
                Ok(Ok(input)) => {
                    if is_suspended {
                        self.say_trouble(None).await;
                    }
                    return input;
                }
                Ok(Err(failure)) => failure,
                Err(error) => return failed(kind, error.to_string()),
            };
            if let Some(code) = failure.of_host(run.spec.dir.as_ref()) {
                is_suspended = true;
                let trouble = self.ground.trouble(code, format!("workspace: {failure}"));
                self.say_trouble(Some(trouble)).await;
            } else if failure.may_pass() && tries_left > 1 {
                tries_left -= 1;
                tracing::warn!(run = %run.id, ?kind, %failure, "workspace; tried again");
            } else {
                let hint = failure.hint().map_or_else(String::new, |hint| format!(" ({hint})"));
                tracing::warn!(run = %run.id, ?kind, %failure, "workspace");
                return failed(kind, format!("{failure}{hint}"));
            }
            tokio::time::sleep(retry_in).await;
            retry_in = (retry_in * 2).min(LAST_RETRY);
        }
    }

    async fn say_trouble(&self, trouble: Option<Trouble>) {
        let shown = self.handle.snapshot.borrow().trouble.clone();
        let code = |trouble: &Option<Trouble>| trouble.as_ref().map(|it| it.code.clone());
        if code(&shown) == code(&trouble) {
            return;
        }
        if let Some(Trouble { code, message, .. }) = &trouble {
            tracing::error!(run = %self.run.id, kind = ?self.op, %code, message, "suspended");
        }
        // A conductor that is gone has let go of this operation too.
        let _gone = self.handle.mailbox.send(Message::Trouble { trouble }).await;
    }
}

fn carry_out(op: WorkspaceOp, run: &Run, dir: &RunDir) -> Result<Input, Failure> {
    let spec = &run.spec;
    let done = match op {
        WorkspaceOp::Prepare => workspace::prepare(spec).and_then(|prepared| {
            workspace::note(run, dir, prepared.created)?;
            Ok(Input::WorkspaceMade { created: prepared.created })
        }),
        WorkspaceOp::Discard => {
            workspace::discard(spec).map(|()| Input::WorkspaceDiscarded { problem: None })
        }
        WorkspaceOp::Remove => workspace::stands(spec, dir)
            .and_then(|()| workspace::remove(spec))
            .map(|removed| Input::WorkspaceRemoved { bytes: removed.bytes }),
    };
    hook!("daemon.chore-done");
    done
}

fn failed(op: WorkspaceOp, why: String) -> Input {
    match op {
        WorkspaceOp::Prepare => Input::WorkspaceRefused { why },
        WorkspaceOp::Discard => Input::WorkspaceDiscarded { problem: Some(why) },
        WorkspaceOp::Remove => Input::WorkspaceKept { why },
    }
}
