//! What is done to a workspace itself, on a thread that may wait for the disk.

use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{Effect, Input, Run};
use outlast_wire::hook;
use outlast_wire::layout::RunDir;
use tokio::task::AbortHandle;

use crate::conductor::Message;
use crate::supervisor::Handle;
use crate::workspace::{self, Failure};
use crate::world::files::{self, Lasting};

const RETRIES: u32 = 6;
const FIRST_RETRY: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Prepare,
    Discard,
    Remove,
}

impl Kind {
    /// The chore that is due, if one is.
    pub(crate) fn due(effects: &[Effect]) -> Option<Self> {
        effects.iter().find_map(|effect| match effect {
            Effect::PrepareWorkspace => Some(Self::Prepare),
            Effect::DiscardWorkspace => Some(Self::Discard),
            Effect::RemoveWorkspace => Some(Self::Remove),
            Effect::Ensure { .. } | Effect::Stop { .. } | Effect::Finish { .. } => None,
        })
    }
}

/// A chore that is being done. Let go of when dropped: what it did is found by the next one.
pub(crate) struct Chore {
    pub(crate) kind: Kind,
    task: AbortHandle,
}

impl Drop for Chore {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Chore {
    pub(crate) fn start(kind: Kind, run: Arc<Run>, dir: RunDir, handle: Handle) -> Self {
        #[expect(clippy::disallowed_methods, reason = "owned by the conductor, which aborts it")]
        let task = tokio::spawn(async move {
            let input = until_done(kind, run, dir).await;
            // A conductor that is gone is followed by one that does this again.
            let _gone = handle.mailbox.send(Message::Input { input, done: None }).await;
        });
        Self { kind, task: task.abort_handle() }
    }
}

/// What may pass by itself, such as a full disk, is waited for a while.
async fn until_done(kind: Kind, run: Arc<Run>, dir: RunDir) -> Input {
    let mut retry_in = FIRST_RETRY;
    for tries_left in (0..RETRIES).rev() {
        let (work, place) = (run.clone(), dir.clone());
        let done = tokio::task::spawn_blocking(move || carry_out(kind, &work, &place)).await;
        match done {
            Ok(Ok(input)) => return input,
            Ok(Err(failure)) if failure.may_pass() && tries_left > 0 => {
                tracing::warn!(run = %run.id, ?kind, %failure, "workspace; tried again");
                tokio::time::sleep(retry_in).await;
                retry_in *= 2;
            }
            Ok(Err(failure)) => {
                let hint = failure.hint().map_or_else(String::new, |hint| format!(" ({hint})"));
                tracing::warn!(run = %run.id, ?kind, %failure, "workspace");
                return failed(kind, format!("{failure}{hint}"));
            }
            Err(error) => return failed(kind, error.to_string()),
        }
    }
    unreachable!("the last try returns")
}

fn carry_out(kind: Kind, run: &Run, dir: &RunDir) -> Result<Input, Failure> {
    let spec = &run.spec;
    let done = match kind {
        Kind::Prepare => workspace::prepare(spec).map(|prepared| {
            note(run, dir, prepared.created);
            Input::WorkspaceMade { created: prepared.created }
        }),
        Kind::Discard => {
            workspace::discard(spec).map(|()| Input::WorkspaceDiscarded { problem: None })
        }
        Kind::Remove => {
            workspace::remove(spec).map(|removed| Input::WorkspaceRemoved { bytes: removed.bytes })
        }
    };
    hook!("daemon.chore-done");
    done
}

/// Says where the run works, for people who look into its directory; the journal has it too.
fn note(run: &Run, dir: &RunDir, created: bool) {
    let place = &run.spec.workspace;
    let note = serde_json::json!({
        "path": run.spec.dir,
        "strategy": place.strategy,
        "root": place.root,
        "repository": place.repository,
        "created": created,
    });
    let written =
        files::write_whole(&dir.workspace(), note.to_string().as_bytes(), Lasting::Process);
    if let Err(error) = written {
        tracing::warn!(run = %run.id, %error, "cannot note where the workspace is");
    }
}

fn failed(kind: Kind, why: String) -> Input {
    match kind {
        Kind::Prepare => Input::WorkspaceRefused { why },
        Kind::Discard => Input::WorkspaceDiscarded { problem: Some(why) },
        Kind::Remove => Input::WorkspaceKept { why },
    }
}
