//! What is found when the main process of a step has ended: what an attempt answered and how it left the
//! workspace, or the last words of an errand.
//!
//! Looked at once, before the journal hears of the end, and again by the next daemon if this one dies in
//! between: the agent is not asked twice.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use outlast_agents::{is_driven, must_answer, tools};
use outlast_conduct::steps::{Ending, Trouble};
use outlast_engine::{Answer, Exit, RefusedCall, Run, RunSpec, Step};
use outlast_home::layout::AttemptDir;

use super::{Driver, driving, program};
use crate::lanes::Lane;
use crate::mailbox::Message;
use crate::world::host;
use crate::{response, snapshots, tail, workspace};

/// As much of an errand's output as the journal keeps.
const TAIL: usize = 4 << 10;

/// How long a commit waits for the fingerprint of its workspace. 200,000 entries take about a second.
const DIGEST_WITHIN: Duration = Duration::from_secs(20);

/// Between two tries to read what an ended step has left, while the host lacks something.
const READ_AGAIN: Duration = Duration::from_millis(500);

/// A tool's output is what the agent asked for.
const TOOL_TAIL: usize = 32 << 10;

impl Driver {
    /// A file or two of the step's own, and for a bounded time all of its workspace.
    pub(super) async fn look_at_end(&self, exit: Exit) -> Ending {
        let (run, step, dir) = (self.task.run.clone(), self.task.step, self.dir.clone());
        let workspace = match step {
            Step::Attempt { .. } => digest(run.clone()).await,
            Step::Errand { .. } => None,
        };
        let mut is_suspended = false;
        loop {
            match look(&run, step, &dir, exit) {
                Ok(found) => {
                    if is_suspended {
                        self.post(Message::Trouble { trouble: None }).await;
                    }
                    return Ending { workspace, ..found };
                }
                // What it answered is there, and is read when the host lets us.
                Err(error) => {
                    is_suspended = true;
                    let trouble = Trouble::of_file(host::failure(&error), error.to_string());
                    self.say_trouble(trouble).await;
                    tokio::time::sleep(READ_AGAIN).await;
                }
            }
        }
    }
}

/// Fails only for what the host lacks.
fn look(run: &Run, step: Step, dir: &AttemptDir, exit: Exit) -> io::Result<Ending> {
    Ok(match step {
        Step::Errand { .. } => Ending {
            answer: Answer::None,
            refused: Vec::new(),
            workspace: None,
            tail: tail::of_ended(dir, tail_size(run))?,
            made: match &run.errand {
                Some(errand) => snapshots::made(&errand.purpose, dir)?,
                None => None,
            },
        },
        Step::Attempt { .. } => {
            let answer = match answer(&run.spec, dir, exit)? {
                // A program that a turn was done with before may come back.
                Answer::None if run.turns_committed == 0 => {
                    program::missing(&run.spec, dir, exit).unwrap_or(Answer::None)
                }
                answer => answer,
            };
            let (refused, tail) = (refused(run, &answer), String::new());
            Ending { refused, workspace: None, answer, tail, made: None }
        }
    })
}

fn tail_size(run: &Run) -> usize {
    match run.errand.as_ref().map(|errand| &errand.purpose) {
        Some(outlast_engine::Purpose::Tool { .. }) => TOOL_TAIL,
        Some(_) | None => TAIL,
    }
}

/// What the attempt answered. A kind that has to answer and did not is as bad as one that answered badly, unless
/// it says itself that it failed. A turn whose files are gone may have answered anything; the exit of a single
/// command is its answer.
pub(super) fn answer(spec: &RunSpec, dir: &AttemptDir, exit: Exit) -> io::Result<Answer> {
    let answer = match response::read(&dir.response())? {
        Answer::None if is_driven(&spec.agent, &spec.driving) && is_whole(dir) => {
            driving::answer(spec, dir, exit)?
        }
        answer => answer,
    };
    Ok(match answer {
        Answer::None if spec.workflow.is_some() && !is_whole(dir) => {
            let why = "the attempt's files are gone, and what it answered with them".to_owned();
            Answer::Bad { why }
        }
        Answer::None if must_answer(spec) && exit == Exit::Code(0) => {
            Answer::Bad { why: "no response was written".to_owned() }
        }
        answer => answer,
    })
}

/// True if the files that the attempt was launched with are there.
fn is_whole(dir: &AttemptDir) -> bool {
    dir.spec().try_exists().unwrap_or(true)
}

fn refused(run: &Run, answer: &Answer) -> Vec<RefusedCall> {
    let Answer::Given(response) = answer else { return Vec::new() };
    let refusal = |(at, call)| {
        let (reason_code, why) = tools::refuse(&run.spec.tools, run.spec.model_class, call)?;
        let call = u32::try_from(at).unwrap_or(u32::MAX);
        Some(RefusedCall { call, reason_code: reason_code.to_owned(), why })
    };
    response.tool_calls.iter().enumerate().filter_map(refusal).collect()
}

/// The fingerprint of the workspace, for loops that care whether it changes. A workspace on a disk that does
/// not answer has none, and the turn goes on: then it is not known whether the turn has changed something.
pub(super) async fn digest(run: Arc<Run>) -> Option<String> {
    if !wants_digest(&run) {
        return None;
    }
    let dir = PathBuf::from(&run.spec.dir);
    let read = Lane::Folders.run_within(DIGEST_WITHIN, move || workspace::digest(&dir)).await;
    let Some(read) = read else {
        tracing::warn!(run = %run.id, dir = run.spec.dir, "workspace not read in time");
        return None;
    };
    read.ok().flatten()
}

pub(super) fn wants_digest(run: &Run) -> bool {
    run.spec.workflow.is_some() && run.spec.limits.no_progress_turns.is_some()
}
