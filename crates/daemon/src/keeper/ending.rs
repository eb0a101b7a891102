//! What is found when the main process of a step has ended: what an attempt answered and how it left the
//! workspace, or the last words of an errand.
//!
//! Looked at once, before the journal hears of the end, and again by the next daemon if this one dies in
//! between: the agent is not asked twice.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use outlast_agents::{must_answer, tools};
use outlast_engine::{
    Answer, Custody, End, EndCause, Exit, RefusedCall, Report, Run, RunSpec, Step,
};
use outlast_home::layout::AttemptDir;
use outlast_wire::codes::Code;
use outlast_wire::hook;

use super::Work;
use crate::lanes::Lane;
use crate::world::host;
use crate::{response, tail, workspace};

/// As much of an errand's output as the journal keeps.
const TAIL: usize = 4 << 10;

/// How long a commit waits for the fingerprint of its workspace. 200,000 entries take about a second.
const DIGEST_WITHIN: Duration = Duration::from_secs(20);

/// Between two tries to read what an ended step has left, while the host lacks something.
const READ_AGAIN: Duration = Duration::from_millis(500);

/// A tool's output is what the agent asked for.
const TOOL_TAIL: usize = 32 << 10;

#[derive(Debug, Clone)]
pub(super) struct Ending {
    answer: Answer,
    refused: Vec<RefusedCall>,
    workspace: Option<String>,
    tail: String,
}

impl Work {
    /// Adds to a report what only the files of the step say.
    pub(super) async fn look_at_end(&mut self, report: &mut Report) {
        let Some(exit) = ended_by_itself(report) else {
            report.workspace.clone_from(&self.baseline);
            if matches!(report.end, Some(End::Exited { .. })) && is_errand(self.task.step) {
                report.tail = self.ending(Exit::Code(1)).await.tail;
            }
            return;
        };
        let found = self.ending(exit).await;
        report.answer = found.answer;
        report.refused = found.refused;
        report.workspace = found.workspace;
        report.tail = found.tail;
    }

    /// And what its watches have found to the last line, if there will be no more of them.
    pub(super) async fn look_at_output(&self, report: &mut Report) {
        let is_over = report.end.is_some()
            || matches!(report.custody, Custody::Nobody | Custody::Rebooted | Custody::NeverHeld);
        let run = self.handle.snapshot.borrow().run.clone();
        let is_live = run.live().is_some_and(|live| live.step() == report.step);
        if let Some(watcher) = self.watcher.as_ref().filter(|_| is_over && is_live) {
            report.matched = watcher.last_words().await;
        }
    }

    async fn ending(&mut self, exit: Exit) -> Ending {
        if let Some(found) = &self.ending {
            return found.clone();
        }
        let found = self.look_now(exit).await;
        hook!("daemon.ending-seen");
        self.ending = Some(found.clone());
        found
    }
}

impl Work {
    /// A file or two of the step's own, and for a bounded time all of its workspace.
    async fn look_now(&self, exit: Exit) -> Ending {
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
                        self.say_no_trouble().await;
                    }
                    return Ending { workspace, ..found };
                }
                // What it answered is there, and is read when the host lets us.
                Err(error) => {
                    is_suspended = true;
                    let code = host::failure(&error).map_or("unreadable", Code::word);
                    self.say_trouble(code, error.to_string()).await;
                    tokio::time::sleep(READ_AGAIN).await;
                }
            }
        }
    }
}

fn is_errand(step: Step) -> bool {
    matches!(step, Step::Errand { .. })
}

fn ended_by_itself(report: &Report) -> Option<Exit> {
    match report.end {
        Some(End::Exited { exit, cause: None, .. }) => Some(exit),
        Some(End::Exited {
            cause: Some(EndCause::Stopped | EndCause::TimedOut | EndCause::Stalled),
            ..
        })
        | Some(End::NeverStarted { .. })
        | None => None,
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
        },
        Step::Attempt { .. } => {
            let answer = answer(&run.spec, dir, exit)?;
            Ending { refused: refused(run, &answer), workspace: None, answer, tail: String::new() }
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
    Ok(match response::read(&dir.response())? {
        Answer::None if spec.workflow.is_some() && !is_whole(dir) => {
            let why = "the attempt's files are gone, and what it answered with them".to_owned();
            Answer::Bad { why }
        }
        Answer::None if must_answer(&spec.agent.kind) && exit == Exit::Code(0) => {
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
