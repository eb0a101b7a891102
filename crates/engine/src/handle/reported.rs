//! How an attempt looks from outside: what its shim has written, who holds it, who is left of its tree.
//!
//! A report is a view of everything, not a step, so it may be late, repeated or out of order: what it
//! says is compared with what is known, and only the difference becomes events.

use crate::handle::Draft;
use crate::{Attempt, Exit, Fact, Moment, NeverStarted, Outcome, Run, Survivor, Time};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub turn: u32,
    pub attempt: u32,
    pub custody: Custody,
    pub started: Option<Started>,
    pub end: Option<End>,
    /// Why somebody other than the shim ended the tree, if somebody did.
    pub ended_for: Option<EndCause>,
    pub tree: TreeNews,
    pub output_bytes: u64,
}

/// Who holds the attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Custody {
    /// Its shim lives.
    Shim,
    /// Its shim is gone, its process is alive.
    Orphan,
    /// Neither is alive, and the command may have run.
    Nobody,
    /// The shim died before the command could have run.
    NeverHeld,
    /// The machine has been started again since; nothing was probed.
    Rebooted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    pub at: Time,
    pub pid: u32,
    pub start: u64,
}

/// The end that the shim saw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    Exited { at: Time, exit: Exit, cause: Option<EndCause> },
    NeverStarted { at: Time, code: NeverStarted, why: String },
}

/// Why the shim ended the tree, if it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndCause {
    Stopped,
    TimedOut,
    Stalled,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeNews {
    Unknown,
    Left { survivors: Vec<Survivor>, stop_failed: bool },
    Empty,
}

pub(super) fn handle(draft: &mut Draft, report: &Report, moment: &Moment) {
    let Some(attempt) =
        draft.run().attempt.clone().filter(|known| known.is(report.turn, report.attempt))
    else {
        return;
    };
    if attempt.end.is_none() {
        handle_live(draft, &attempt, report, moment);
    } else {
        handle_left(draft, &attempt, report, moment);
    }
}

fn handle_live(draft: &mut Draft, known: &Attempt, report: &Report, moment: &Moment) {
    let (turn, attempt) = (report.turn, report.attempt);
    let ran = !matches!(report.end, Some(End::NeverStarted { .. }));
    if let Some(Started { at, pid, start }) =
        report.started.filter(|_| known.process.is_none() && ran)
    {
        draft.push(at, Fact::AttemptStarted { turn, attempt, pid, start });
    }
    let has_started = draft.run().live().is_some_and(|live| live.process.is_some());
    if report.custody == Custody::Orphan && has_started && !known.is_orphaned {
        draft.push(moment.now, Fact::AttemptOrphaned { turn, attempt });
    }
    if let Some((at, outcome)) = outcome(draft.run(), report, moment) {
        let survivors = survivors(report).to_vec();
        let output_bytes = report.output_bytes;
        draft.push(at, Fact::AttemptEnded { turn, attempt, outcome, output_bytes, survivors });
    }
    note_failed_stop(draft, known, report, moment);
}

/// News of whoever outlived an attempt that has ended.
fn handle_left(draft: &mut Draft, known: &Attempt, report: &Report, moment: &Moment) {
    let (turn, attempt) = (report.turn, report.attempt);
    let is_empty = matches!(report.tree, TreeNews::Empty) || report.custody == Custody::Rebooted;
    if is_empty && known.has_survivors() {
        draft.push(moment.now, Fact::TreeEmptied { turn, attempt });
    } else if known.has_survivors() {
        note_failed_stop(draft, known, report, moment);
    }
}

fn note_failed_stop(draft: &mut Draft, known: &Attempt, report: &Report, moment: &Moment) {
    let TreeNews::Left { survivors, stop_failed: true } = &report.tree else { return };
    let is_rebooted = report.custody == Custody::Rebooted;
    if !known.stop_incomplete && !survivors.is_empty() && !is_rebooted {
        let (turn, attempt) = (report.turn, report.attempt);
        draft
            .push(moment.now, Fact::StopIncomplete { turn, attempt, survivors: survivors.clone() });
    }
}

/// How the attempt has ended, once that is certain.
fn outcome(run: &Run, report: &Report, moment: &Moment) -> Option<(Time, Outcome)> {
    let is_empty = matches!(report.tree, TreeNews::Empty) || report.custody == Custody::Rebooted;
    match (&report.end, report.custody) {
        (Some(End::NeverStarted { at, code, why }), _) => {
            Some((*at, Outcome::NeverStarted { code: *code, why: why.clone() }))
        }
        (Some(End::Exited { at, exit, cause: None }), _) => Some((*at, by_itself(*exit))),
        // Being ended is an outcome only when the whole tree has gone.
        (Some(End::Exited { at, exit, cause: Some(cause) }), _) => {
            is_empty.then(|| (*at, ended(*cause, Some(*exit))))
        }
        (None, Custody::Shim | Custody::Orphan) => None,
        (None, Custody::NeverHeld) => {
            let why = "the shim died before the command was released".to_owned();
            Some((moment.now, Outcome::NeverStarted { code: NeverStarted::NoShim, why }))
        }
        (None, Custody::Nobody) if run.stop.is_some() => {
            is_empty.then_some((moment.now, Outcome::Stopped { exit: None }))
        }
        (None, Custody::Nobody) => match report.ended_for {
            Some(cause) => is_empty.then(|| (moment.now, ended(cause, None))),
            None => Some((moment.now, Outcome::Lost)),
        },
        (None, Custody::Rebooted) => {
            Some((moment.now, Outcome::Interrupted { by: "reboot".to_owned() }))
        }
    }
}

fn by_itself(exit: Exit) -> Outcome {
    match exit {
        Exit::Code(code) => Outcome::Exited { code },
        Exit::Signal(signal) => Outcome::Signaled { signal },
    }
}

fn ended(cause: EndCause, exit: Option<Exit>) -> Outcome {
    match cause {
        EndCause::Stopped => Outcome::Stopped { exit },
        EndCause::TimedOut => Outcome::TimedOut { exit },
        EndCause::Stalled => Outcome::Stalled { exit },
    }
}

/// Who is left. A reboot leaves nobody, whatever was written before it.
fn survivors(report: &Report) -> &[Survivor] {
    match &report.tree {
        TreeNews::Left { survivors, .. } if report.custody != Custody::Rebooted => survivors,
        TreeNews::Left { .. } | TreeNews::Unknown | TreeNews::Empty => &[],
    }
}
