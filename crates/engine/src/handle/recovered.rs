//! A run rebuilt from its directory: for a journal that has forgotten it, or that stands behind it.
//!
//! Says only what was found. A turn was committed if a later one exists, or if its answer was found; an end that was
//! not recorded is `lost`; a call that a rebuilt turn asked for is not made again, since its outcome is unknown.

use crate::advance::Facts;
use crate::handle::{Draft, Report, reported, restored};
use crate::{
    Answer, BlockReason, BootId, Context, Custody, End, Event, Exit, Fact, Illegal, Line, Outcome,
    Reason, ReasonCode, RefusedCall, Run, RunId, RunSpec, State, StateName, Time, Verdict, line,
    reason,
};

/// So many attempts of one turn may be missing in a row.
const MOST_MISSING: u32 = 1000;

/// What a run directory proves.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// In the order of their numbers.
    pub attempts: Vec<FoundAttempt>,
    /// The highest number of an errand.
    pub errands: u32,
    /// What is not there or cannot be read, in words.
    pub missing: Vec<String>,
    /// How the run had ended, if it had.
    pub end: Option<FoundEnd>,
}

/// How a run had ended, as its directory says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundEnd {
    pub verdict: Verdict,
    pub why: Reason,
    pub at: Time,
}

/// An attempt, as its files show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundAttempt {
    pub turn: u32,
    pub attempt: u32,
    /// The boot it belongs to.
    pub boot: BootId,
    /// When it was told to start.
    pub at: Time,
    /// True if nothing of it can be alive.
    pub is_over: bool,
    pub report: Report,
}

/// Why a run cannot be rebuilt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CannotRecover {
    #[error(transparent)]
    Illegal(#[from] Illegal),
    #[error("more than {MOST_MISSING} attempts of turn {turn} are missing")]
    Gap { turn: u32 },
}

/// The events of a run that the journal does not know.
pub fn recover(
    id: &RunId,
    spec: RunSpec,
    created_at: Time,
    found: &Found,
    context: &Context,
) -> Result<Vec<Event>, CannotRecover> {
    // The times that were found are on the line of this context.
    let fact = Fact::RunCreated { spec: Box::new(spec), line: Line::of(context) };
    let first = Event { seq: 1, at: created_at, fact };
    let mut draft = Draft::new(&Run::created(id, &first)?);
    rebuild(&mut draft, found, context)?;
    Ok(std::iter::once(first).chain(draft.into_events()).collect())
}

impl Run {
    /// True if the directory holds steps or an end that this journal does not know.
    pub fn is_behind(&self, found: &Found) -> bool {
        let has_steps = found.errands > self.errands || newer(self, found).next().is_some();
        has_steps || (found.end.is_some() && !self.is_finishing())
    }

    /// True once it is decided how the run ends.
    pub fn is_finishing(&self) -> bool {
        matches!(self.state, State::Finishing { .. } | State::Ended { .. })
    }

    /// The events that take this run to where its directory is.
    pub fn catch_up(&self, found: &Found, context: &Context) -> Result<Vec<Event>, CannotRecover> {
        let mut draft = Draft::new(self);
        line::follow(&mut draft, context);
        restored::note(&mut draft, end_of_known(self, found), context);
        end_known(&mut draft, found, context)?;
        rebuild(&mut draft, found, context)?;
        Ok(draft.into_events())
    }
}

/// Attempts beyond the last one that the journal knows.
fn newer<'a>(run: &Run, found: &'a Found) -> impl Iterator<Item = &'a FoundAttempt> {
    let last = run.attempt.as_ref().map_or((0, 0), |last| (last.turn, last.number));
    let known = last.max((run.turns_committed, u32::MAX));
    found.attempts.iter().filter(move |it| (it.turn, it.attempt) > known)
}

/// When the attempt ended that the journal takes for alive, as far as that was recorded.
fn end_of_known(run: &Run, found: &Found) -> Time {
    let is_live = |it: &&FoundAttempt| run.live().is_some_and(|live| live.is(it.turn, it.attempt));
    match found.attempts.iter().find(is_live).and_then(|it| it.report.end.as_ref()) {
        Some(End::Exited { at, .. } | End::NeverStarted { at, .. }) => *at,
        None => Time(0),
    }
}

/// What the journal takes for alive is over: later steps exist, and a run has one process tree at a time.
fn end_known(draft: &mut Draft, found: &Found, context: &Context) -> Result<(), CannotRecover> {
    if let Some(live) = draft.run().live_errand() {
        let errand = live.number;
        let (outcome, tail) = (Outcome::Lost, String::new());
        let (output_bytes, survivors) = (0, Vec::new());
        let ended = Fact::ErrandEnded { errand, outcome, output_bytes, tail, survivors };
        draft.try_push(context.now, ended)?;
    }
    let Some(live) = draft.run().live() else { return Ok(()) };
    let (turn, attempt, has_started) = (live.turn, live.number, live.state.process.is_some());
    let same = found.attempts.iter().find(|it| (it.turn, it.attempt) == (turn, attempt));
    match same {
        Some(same) => {
            let mut same = same.clone();
            if has_started {
                same.report.started = None;
            }
            end(draft, &same, context)
        }
        None => lose(draft, (turn, attempt), context.now),
    }
}

fn rebuild(draft: &mut Draft, found: &Found, context: &Context) -> Result<(), CannotRecover> {
    let newer: Vec<FoundAttempt> = newer(draft.run(), found).cloned().collect();
    let known = draft.run().turns_committed;
    let first = newer.last().map_or(known + 1, |last| first_turn(known, last.turn, found));
    let mut missing = found.missing.clone();
    if first > known + 1 {
        missing.push(format!("how turns {} to {} were answered", known + 1, first - 1));
    }
    missing.extend(lost_answer(draft.run(), !newer.is_empty()));
    let errands = found.errands.max(draft.run().errands);
    let (turns_committed, has_ended) = (first - 1, found.end.is_some());
    let recovered = Fact::RunRecovered { turns_committed, errands, missing, has_ended };
    draft.try_push(context.now, recovered)?;
    attempts(draft, &newer, first, context)?;
    finish(draft, found.end.as_ref(), context)
}

/// What an open question of an older journal has come to.
fn lost_answer(run: &Run, went_on: bool) -> Option<String> {
    let seq = run.asks()?.seq;
    Some(match went_on {
        true => format!("what was answered to the question of event {seq}"),
        false => format!("whether the question of event {seq} was answered"),
    })
}

fn attempts(
    draft: &mut Draft,
    newer: &[FoundAttempt],
    first: u32,
    context: &Context,
) -> Result<(), CannotRecover> {
    let Some(at) = newer.first().map(|it| it.at.min(context.now)) else { return Ok(()) };
    if draft.run().state != State::Running {
        let why = reason::of("rebuilt from its directory", ReasonCode::Recovered);
        let running = reason::to_state(draft.run(), StateName::Running, why);
        draft.try_push(at, running)?;
    }
    let last = newer.len() - 1;
    for (index, attempt) in newer.iter().enumerate().filter(|(_, it)| it.turn >= first) {
        fill(draft, attempt)?;
        begin(draft, attempt)?;
        if attempt.is_over || index < last {
            end(draft, attempt, context)?;
        }
    }
    Ok(())
}

/// The run ends as it had ended, unless something of it is alive after all.
fn finish(
    draft: &mut Draft,
    end: Option<&FoundEnd>,
    context: &Context,
) -> Result<(), CannotRecover> {
    let is_open = !draft.run().is_finishing() && draft.run().live().is_none();
    let Some(FoundEnd { verdict, why, at }) = end.filter(|_| is_open) else { return Ok(()) };
    let at = (*at).min(context.now);
    let (at, finishing) = reason::finishing(draft.run(), at, *verdict, why.clone());
    Ok(draft.try_push(at, finishing)?)
}

/// The first turn that is told of: every one from it to the last was answered, and the answer is there.
fn first_turn(known: u32, last: u32, found: &Found) -> u32 {
    let mut first = last;
    while first > known + 1 && is_answered(found, first - 1) {
        first -= 1;
    }
    first
}

fn is_answered(found: &Found, turn: u32) -> bool {
    let last = found.attempts.iter().rfind(|it| it.turn == turn);
    last.is_some_and(|last| match (&last.report.end, &last.report.answer) {
        (Some(End::Exited { cause: None, .. }), Answer::Given(_)) => true,
        (Some(End::Exited { cause: None, exit, .. }), Answer::None) => *exit == Exit::Code(0),
        _ => false,
    })
}

/// Attempts are numbered without gaps, so those before this one were made, and how they ended is not known.
fn fill(draft: &mut Draft, next: &FoundAttempt) -> Result<(), CannotRecover> {
    let turn = next.turn;
    let made = draft.run().attempt.as_ref().filter(|it| it.turn == turn).map_or(0, |it| it.number);
    if next.attempt.saturating_sub(made) > MOST_MISSING {
        return Err(CannotRecover::Gap { turn });
    }
    for attempt in made + 1..next.attempt {
        let (boot, at) = (next.boot.clone(), next.at);
        draft.try_push(at, Fact::TurnStarted { turn, attempt, boot, messages: 0 })?;
        lose(draft, (turn, attempt), at)?;
    }
    Ok(())
}

fn begin(draft: &mut Draft, found: &FoundAttempt) -> Result<(), CannotRecover> {
    let FoundAttempt { turn, attempt, at, .. } = *found;
    let boot = found.boot.clone();
    draft.try_push(at, Fact::TurnStarted { turn, attempt, boot, messages: 0 })?;
    Ok(())
}

fn end(draft: &mut Draft, found: &FoundAttempt, context: &Context) -> Result<(), CannotRecover> {
    let FoundAttempt { turn, attempt, .. } = *found;
    let mut report = reported::in_its_time(&found.report, draft.run(), context);
    report.refused = unknown_calls(&report.answer);
    let never_ran = matches!(report.end, Some(End::NeverStarted { .. }));
    if let Some(started) = report.started.filter(|_| !never_ran) {
        let (pid, start) = (started.pid, started.start);
        let fact = Fact::AttemptStarted { turn, attempt, pid, start, workspace: None };
        draft.try_push(started.at, fact)?;
    }
    if report.custody == Custody::Shim || report.custody == Custody::Orphan {
        // A later step exists, so its shim has let go.
        report.custody = Custody::Nobody;
    }
    match reported::outcome(draft.run(), &report, context) {
        Some((at, outcome)) => reported::end_attempt(draft, (turn, attempt), &report, at, outcome),
        None => lose(draft, (turn, attempt), context.now)?,
    }
    Ok(())
}

fn lose(draft: &mut Draft, (turn, attempt): (u32, u32), at: Time) -> Result<(), CannotRecover> {
    let outcome = Outcome::Lost;
    let (output_bytes, survivors, charge) = (0, Vec::new(), None);
    let ended = Fact::AttemptEnded { turn, attempt, outcome, output_bytes, survivors, charge };
    Ok(draft.try_push(at, ended)?)
}

/// Whether they were made, and what came of it, was in the journal.
fn unknown_calls(answer: &Answer) -> Vec<RefusedCall> {
    let Answer::Given(response) = answer else { return Vec::new() };
    let refused = |call| RefusedCall {
        call,
        reason_code: ReasonCode::UnknownCallOutcome.word().to_owned(),
        why: "the journal that knew what came of this call was lost".to_owned(),
    };
    (0..).take(response.tool_calls.len()).map(refused).collect()
}

/// True if the run was rebuilt and a person has to look at it before it starts anything.
pub(crate) fn awaits_look(run: &Run) -> bool {
    let is_going = match run.state {
        State::Queued
        | State::Preparing
        | State::Running
        | State::Waiting { .. }
        | State::Verifying => true,
        State::Blocked { .. } | State::Finishing { .. } | State::Ended { .. } => false,
    };
    let is_ending = run.stop.is_some() || run.limit.is_some();
    is_going && !is_ending && run.recovered.as_ref().is_some_and(|it| it.awaits_look)
}

/// True if what would follow by itself is for a person to decide: such a run may end, and starts nothing.
pub(crate) fn is_for_person(run: &Run, facts: &Facts) -> bool {
    awaits_look(run) && !facts.iter().all(|(_, fact)| may_follow(run, fact))
}

fn may_follow(run: &Run, fact: &Fact) -> bool {
    match fact {
        Fact::LimitReached { .. } => true,
        // What goes to the log alone leaves no run.
        Fact::Emitted { to, .. } => to.iter().all(|name| name == "log"),
        // A hook after the run would be run a second time.
        Fact::StateChanged { to, .. } => {
            *to == StateName::Blocked
                || (*to == StateName::Finishing && run.spec.hooks.after_run.is_none())
        }
        _ => false,
    }
}

/// Why a rebuilt run rests.
pub(crate) fn rest(run: &Run, context: &Context) -> Facts {
    let text = "rebuilt from its directory; a person has to look at it before it goes on";
    reason::blocked(run, context, reason::block(text, BlockReason::Recovered))
}
