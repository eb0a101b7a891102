//! What is found when the main process of a step has ended: what an attempt answered and how it left the
//! workspace, or the last words of an errand.
//!
//! Looked at once, before the journal hears of the end, and again by the next daemon if this one dies in
//! between: the agent is not asked twice.

use std::path::PathBuf;

use outlast_agents::{must_answer, tools};
use outlast_engine::{Answer, Custody, End, EndCause, Exit, RefusedCall, Report, Run, Step};
use outlast_wire::hook;
use outlast_wire::layout::AttemptDir;

use super::Work;
use crate::{response, tail, workspace};

/// As much of an errand's output as the journal keeps.
const TAIL: usize = 4 << 10;

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
    /// A file or two are read at once; a whole workspace where that holds nobody up.
    async fn look_now(&self, exit: Exit) -> Ending {
        let (run, step, dir) = (self.task.run.clone(), self.task.step, self.dir.clone());
        if !wants_digest(&run) || is_errand(step) {
            return look(&run, step, &dir, exit);
        }
        let looked = tokio::task::spawn_blocking(move || look(&run, step, &dir, exit)).await;
        looked.unwrap_or_else(|error| Ending {
            answer: Answer::Bad { why: format!("cannot be looked at: {error}") },
            refused: Vec::new(),
            workspace: None,
            tail: String::new(),
        })
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

fn look(run: &Run, step: Step, dir: &AttemptDir, exit: Exit) -> Ending {
    match step {
        Step::Errand { .. } => Ending {
            answer: Answer::None,
            refused: Vec::new(),
            workspace: None,
            tail: tail::of_output(dir, tail_size(run)),
        },
        Step::Attempt { .. } => {
            let answer = answer(run, dir, exit);
            Ending {
                refused: refused(run, &answer),
                workspace: digest(run),
                answer,
                tail: String::new(),
            }
        }
    }
}

fn tail_size(run: &Run) -> usize {
    match run.errand.as_ref().map(|errand| &errand.purpose) {
        Some(outlast_engine::Purpose::Tool { .. }) => TOOL_TAIL,
        Some(_) | None => TAIL,
    }
}

/// What the attempt answered. A kind that has to answer and did not is as bad as one that answered badly, unless
/// it says itself that it failed.
fn answer(run: &Run, dir: &AttemptDir, exit: Exit) -> Answer {
    match response::read(&dir.response()) {
        Answer::None if must_answer(&run.spec.agent.kind) && exit == Exit::Code(0) => {
            Answer::Bad { why: "no response was written".to_owned() }
        }
        answer => answer,
    }
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

/// The fingerprint of the workspace, for loops that care whether it changes.
pub(super) fn digest(run: &Run) -> Option<String> {
    wants_digest(run).then(|| workspace::digest(&PathBuf::from(&run.spec.dir))).flatten()
}

pub(super) fn wants_digest(run: &Run) -> bool {
    run.spec.workflow.is_some() && run.spec.limits.no_progress_turns.is_some()
}
