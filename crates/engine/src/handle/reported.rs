//! How a step looks from outside: what its shim has written, who holds it, who is left of its tree.
//!
//! A report is a view of everything, not a step, so it may be late, repeated or out of order: what it
//! says is compared with what is known, and only the difference becomes events.

use crate::handle::{Draft, matched};
use crate::run::Previous;
use crate::{
    Answer, Attempt, Charge, Context, EndCause, Exit, Fact, Made, Matched, NeverStarted, Outcome,
    RefusedCall, Response, Run, Step, StepState, Survivor, Time, TurnStatus, Usage, limits, spend,
};
use crate::{emit, errand, snapshot};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub step: Step,
    pub custody: Custody,
    pub started: Option<Started>,
    pub end: Option<End>,
    /// Why the daemon ended the tree in the place of the shim, if it did.
    pub ended_for: Option<EndCause>,
    pub tree: TreeNews,
    pub output_bytes: u64,
    /// (an attempt that has ended) What it answered.
    pub answer: Answer,
    /// Calls of that answer which will not be made.
    pub refused: Vec<RefusedCall>,
    /// The workspace as it is now: at the start of the first attempt, and at the end of each.
    pub workspace: Option<String>,
    /// (an errand that has ended) The end of what it wrote.
    pub tail: String,
    /// (an attempt that has ended) What it has used up, as far as it was heard, whatever it answered.
    pub used: Option<Usage>,
    /// True if it has used more than that.
    pub used_is_floor: bool,
    /// (an attempt that has ended) What its watches have found and no sink was told of.
    pub matched: Vec<Matched>,
    /// (an errand that has ended) What it made of the workspace, by its own record.
    pub made: Option<Made>,
}

impl Report {
    /// Nothing but who holds the step.
    pub fn of(step: Step, custody: Custody) -> Self {
        Self {
            step,
            custody,
            started: None,
            end: None,
            ended_for: None,
            tree: TreeNews::Unknown,
            output_bytes: 0,
            answer: Answer::None,
            refused: Vec::new(),
            workspace: None,
            tail: String::new(),
            used: None,
            used_is_floor: false,
            matched: Vec::new(),
            made: None,
        }
    }
}

/// Who holds the step.
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TreeNews {
    Unknown,
    Left { survivors: Vec<Survivor>, stop_failed: bool },
    Empty,
}

pub(super) fn handle(draft: &mut Draft, report: &Report, context: &Context) {
    let report = &in_its_time(report, draft.run(), context);
    match report.step {
        Step::Attempt { turn, attempt } => {
            let known = draft.run().attempt.clone().filter(|known| known.is(turn, attempt));
            if let Some(known) = known {
                handle_attempt(draft, &known, report, context);
            }
        }
        Step::Errand { errand } => {
            let known = draft.run().errand.as_ref().filter(|known| known.number == errand);
            if let Some(state) = known.map(|known| known.state.clone()) {
                handle_errand(draft, errand, &state, report, context);
            }
        }
    }
}

/// The report with its times by our clock. A shim reads the wall clock, which may have been set back or forth
/// since: nothing it saw was before the state that the run is in, and nothing is after now.
pub(super) fn in_its_time(report: &Report, run: &Run, context: &Context) -> Report {
    let ours = |at: Time| at.min(context.now).max(run.since);
    let mut report = report.clone();
    if let Some(started) = &mut report.started {
        started.at = ours(started.at);
    }
    if let Some(End::Exited { at, .. } | End::NeverStarted { at, .. }) = &mut report.end {
        *at = ours(*at);
    }
    report
}

fn handle_attempt(draft: &mut Draft, known: &Attempt, report: &Report, context: &Context) {
    let (turn, attempt) = (known.turn, known.number);
    if !known.state.is_live() {
        if is_emptied(&known.state, report) {
            draft.push(context.now, Fact::TreeEmptied { turn, attempt });
        } else if let Some(survivors) = would_not_go(draft.run(), report) {
            draft.push(context.now, Fact::StopIncomplete { turn, attempt, survivors });
        }
        return;
    }
    let ran = !matches!(report.end, Some(End::NeverStarted { .. }));
    if let Some(Started { at, pid, start }) =
        report.started.filter(|_| known.state.process.is_none() && ran)
    {
        // The first attempt shows what the loop began with.
        let is_first = (turn, attempt) == (1, 1) && report.end.is_none();
        let workspace = report.workspace.clone().filter(|_| is_first);
        draft.push(at, Fact::AttemptStarted { turn, attempt, pid, start, workspace });
    }
    let has_started = draft.run().live().is_some_and(|live| live.state.process.is_some());
    if report.custody == Custody::Orphan && has_started && !known.state.is_orphaned {
        draft.push(context.now, Fact::AttemptOrphaned { turn, attempt });
    }
    if let Some((at, outcome)) = outcome(draft.run(), report, context) {
        end_attempt(draft, (turn, attempt), report, at, outcome);
    }
    if let Some(survivors) = would_not_go(draft.run(), report) {
        draft.push(context.now, Fact::StopIncomplete { turn, attempt, survivors });
    }
}

pub(super) fn end_attempt(
    draft: &mut Draft,
    (turn, attempt): (u32, u32),
    report: &Report,
    at: Time,
    outcome: Outcome,
) {
    matched::at_end(draft, (turn, attempt), &report.matched, at);
    let (outcome, response) = answered(outcome, &report.answer, at);
    let survivors = survivors(report).to_vec();
    let output_bytes = report.output_bytes;
    let has_started = draft.run().live().is_some_and(|live| live.state.process.is_some());
    // What may have run may have cost something, also if its start was not observed.
    let ran = has_started || outcome.may_have_run();
    let usage = response.as_ref().and_then(|response| response.usage.as_ref());
    let reported = draft.run().live().and_then(|live| live.reported);
    let heard = report.used.as_ref().map(|used| spend::reported(reported.as_ref(), used));
    let reported = heard.or(reported);
    let is_silent = usage.is_none() && reported.is_none();
    let spec = &draft.run().spec;
    // A shell or a driver was started, and what it was to execute was not.
    let is_missing = has_started && matches!(outcome, Outcome::NeverStarted { .. });
    let charge = if is_silent && response.is_none() && is_missing {
        Some(Charge::nothing())
    } else {
        ran.then(|| spend::charge(spec, usage, reported.as_ref())).flatten()
    };
    let charge = charge.map(|it| match (report.used_is_floor, &response) {
        (true, None) => it.at_least(spec),
        // A turn that has ended well has cost what was heard, or more, unless the response says all of it.
        (true, Some(response)) if !response.usage.as_ref().is_some_and(says_all) => {
            Charge { known: false, reserved: Some(it.reserved()), half: None, ..it }
        }
        (true, Some(_)) | (false, _) => it,
    });
    let ended = Fact::AttemptEnded { turn, attempt, outcome, output_bytes, survivors, charge };
    draft.push(at, ended);
    if let Some(response) = response {
        let committed = committed(draft.run(), (turn, attempt), report, response);
        draft.push(at, committed);
    }
}

fn says_all(usage: &Usage) -> bool {
    let says_tokens = usage.input_tokens.is_some() || usage.output_tokens.is_some();
    says_tokens && usage.cost_usd_micros.is_some()
}

/// The outcome in the light of what was answered, and the answer that counts.
fn answered(outcome: Outcome, answer: &Answer, at: Time) -> (Outcome, Option<Response>) {
    if !outcome.is_by_itself() {
        return (outcome, None);
    }
    match answer {
        Answer::Given(response) => (outcome, Some((**response).clone())),
        Answer::Bad { why } => {
            (Outcome::BadResponse { exit: outcome.exit(), why: why.clone() }, None)
        }
        Answer::NoProgram { code, why } => {
            (Outcome::NeverStarted { code: *code, why: why.clone() }, None)
        }
        Answer::Impeded { by, until, why, question } => {
            let until = until.filter(|until| is_believed(*until, at));
            let (by, why, exit) = (*by, why.clone(), outcome.exit());
            let question = question.clone();
            (Outcome::Impeded { by, until, why, exit, question }, None)
        }
        // Without a word, the exit status is the answer.
        Answer::None if outcome == (Outcome::Exited { code: 0 }) => (outcome, Some(done())),
        Answer::None => (outcome, None),
    }
}

/// The longest window of a provider is a month. A time that is over, or further away, is not what it will answer at.
const LONGEST_WINDOW_MS: u64 = 35 * 24 * 3_600_000;

fn is_believed(until: Time, at: Time) -> bool {
    until > at && until <= at.plus_ms(LONGEST_WINDOW_MS)
}

fn done() -> Response {
    Response {
        status: TurnStatus::Done,
        summary: String::new(),
        next_task: None,
        tool_calls: Vec::new(),
        usage: None,
        wait: None,
    }
}

/// The commit of a turn: what it said, and what that was worth.
fn committed(run: &Run, (turn, attempt): (u32, u32), report: &Report, response: Response) -> Fact {
    let Response { status, summary, next_task, tool_calls, wait, .. } = response;
    let now = Previous::new(turn, status, &summary, next_task.as_ref(), &tool_calls, &[]);
    let is_progress = limits::is_progress(run, &now, report.workspace.as_deref(), wait.is_some());
    let outcome = emit::classify(&run.spec.output, status, tool_calls.len(), is_progress);
    Fact::TurnCommitted {
        turn,
        attempt,
        status,
        outcome,
        summary,
        next_task,
        tool_calls,
        refused: report.refused.clone(),
        wait,
        workspace: report.workspace.clone(),
        progress: Some(is_progress),
    }
}

fn handle_errand(
    draft: &mut Draft,
    errand: u32,
    known: &StepState,
    report: &Report,
    context: &Context,
) {
    let ending = known.is_live().then(|| outcome(draft.run(), report, context)).flatten();
    if let Some((at, outcome)) = ending {
        let survivors = survivors(report).to_vec();
        let (output_bytes, tail) = (report.output_bytes, report.tail.clone());
        let is_known = !matches!(errand::result(&outcome), errand::Result::Unknown { .. });
        draft.push(at, Fact::ErrandEnded { errand, outcome, output_bytes, tail, survivors });
        let run = draft.run();
        let last = run.errand.as_ref().filter(|last| is_known || last.is_given_up());
        if let Some(fact) = last.and_then(|last| snapshot::made(run, &last.purpose, report)) {
            draft.push(at, fact);
        }
    } else if is_emptied(known, report) {
        draft.push(context.now, Fact::ErrandEmptied { errand });
    }
    if let Some(survivors) = would_not_go(draft.run(), report) {
        draft.push(context.now, Fact::ErrandIncomplete { errand, survivors });
    }
}

/// True if the processes that had outlived a step are gone now.
fn is_emptied(known: &StepState, report: &Report) -> bool {
    let is_empty = matches!(report.tree, TreeNews::Empty) || report.custody == Custody::Rebooted;
    is_empty && known.has_survivors()
}

/// Who is left although a stop was tried, if that is news.
fn would_not_go(run: &Run, report: &Report) -> Option<Vec<Survivor>> {
    let TreeNews::Left { survivors, stop_failed: true } = &report.tree else { return None };
    let state = run.step_state(report.step)?;
    let is_news = !state.stop_incomplete
        && !survivors.is_empty()
        && report.custody != Custody::Rebooted
        && (state.is_live() || state.has_survivors());
    is_news.then(|| survivors.clone())
}

/// How the step has ended, once that is certain.
pub(super) fn outcome(run: &Run, report: &Report, context: &Context) -> Option<(Time, Outcome)> {
    let is_empty = matches!(report.tree, TreeNews::Empty) || report.custody == Custody::Rebooted;
    match (&report.end, report.custody) {
        // A pause that came before the command was started has ended it as well as one that came after.
        (Some(End::NeverStarted { at, code: NeverStarted::Stopped, .. }), _)
            if is_ended_for_pause(run, report.step) =>
        {
            Some((*at, Outcome::by_pause()))
        }
        (Some(End::NeverStarted { at, code, why }), _) => {
            Some((*at, Outcome::NeverStarted { code: *code, why: why.clone() }))
        }
        (Some(End::Exited { at, exit, cause: None }), _) => Some((*at, by_itself(*exit))),
        // Being ended is an outcome only when the whole tree has gone.
        (Some(End::Exited { at, exit, cause: Some(cause) }), _) => {
            is_empty.then(|| (*at, ended(run, report.step, *cause, Some(*exit))))
        }
        (None, Custody::Shim | Custody::Orphan) => None,
        (None, Custody::NeverHeld) => {
            let why = "the shim died before the command was released".to_owned();
            Some((context.now, Outcome::NeverStarted { code: NeverStarted::NoShim, why }))
        }
        (None, Custody::Nobody) if is_being_stopped(run, report.step) => {
            is_empty.then(|| (context.now, ended(run, report.step, EndCause::Stopped, None)))
        }
        (None, Custody::Nobody) => match report.ended_for {
            Some(cause) => is_empty.then(|| (context.now, ended(run, report.step, cause, None))),
            None => Some((context.now, Outcome::Lost)),
        },
        (None, Custody::Rebooted) => {
            Some((context.now, Outcome::Interrupted { by: "reboot".to_owned() }))
        }
    }
}

fn is_being_stopped(run: &Run, step: Step) -> bool {
    run.step_state(step).is_some_and(|state| state.stop.is_some())
}

fn by_itself(exit: Exit) -> Outcome {
    match exit {
        Exit::Code(code) => Outcome::Exited { code },
        Exit::Signal(signal) => Outcome::Signaled { signal },
    }
}

fn ended(run: &Run, step: Step, cause: EndCause, exit: Option<Exit>) -> Outcome {
    match cause {
        EndCause::Stopped if is_ended_for_pause(run, step) => Outcome::by_pause(),
        EndCause::Stopped => Outcome::Stopped { exit },
        EndCause::TimedOut => Outcome::TimedOut { exit },
        EndCause::Stalled => Outcome::Stalled { exit },
    }
}

/// True if an attempt was ordered to end, and its run was not.
fn is_ended_for_pause(run: &Run, step: Step) -> bool {
    let is_attempt = matches!(step, Step::Attempt { .. });
    is_attempt && is_being_stopped(run, step) && run.stop.is_none() && run.limit.is_none()
}

/// Which processes are left. A reboot leaves none, whatever was written before it.
fn survivors(report: &Report) -> &[Survivor] {
    match &report.tree {
        TreeNews::Left { survivors, .. } if report.custody != Custody::Rebooted => survivors,
        TreeNews::Left { .. } | TreeNews::Unknown | TreeNews::Empty => &[],
    }
}
