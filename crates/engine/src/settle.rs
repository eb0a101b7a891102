//! What the end of an attempt means for its run, and what has to be done between two turns.

use crate::advance::Facts;
use crate::emit::{self, Emit};
use crate::run::{Attempt, CallOutcome, Done, Settling};
use crate::{
    BlockReason, Budget, Context, Exceeded, Fact, Hook, Impediment, Limit, NeverStarted,
    OnInterrupt, Outcome, Purpose, Reason, ReasonCode, Run, StateName, Strategy, TurnStatus,
    Verdict, Wait, WaitCause, limits, reason, rest, retry, snapshot, tools,
};

pub(crate) fn next(run: &Run, context: &Context) -> Option<Facts> {
    if run.live().is_some() || run.live_errand().is_some() {
        return None;
    }
    if let Some(settling) = &run.settling {
        return settle(run, settling, context);
    }
    match &run.attempt {
        Some(attempt) if !attempt.is_settled => failed(run, attempt, context),
        _ if run.has_survivors() => None,
        Some(_) | None => start(run, context),
    }
}

/// An attempt that ended without an answer. A loop is not over while a process of its last attempt is left.
fn failed(run: &Run, attempt: &Attempt, context: &Context) -> Option<Facts> {
    let (outcome, at) = attempt.state.end.as_ref().expect("it has ended");
    let (verdict, why) = reason::verdict_of(outcome);
    let stalled_too_often = limits::stalls_are_spent(run);
    let is_in_doubt = run.call_in_doubt().is_some();
    let is_unseen = matches!(outcome, Outcome::Interrupted { .. } | Outcome::Lost);
    let is_seen_failure = verdict == Verdict::Failed && !is_unseen;
    match outcome {
        Outcome::Stalled { .. } if stalled_too_often => {
            let text = format!("{}, {} times in a row", why.reason, run.counters.stalls);
            let why = reason::block(&text, BlockReason::StallRestartsExhausted);
            Some(reason::blocked(run, context, why))
        }
        // The answer came while the process that had asked was being ended.
        Outcome::Impeded { .. } if run.question_at_end().is_some_and(|it| it.answer.is_some()) => {
            if run.has_survivors() {
                None
            } else {
                start(run, context)
            }
        }
        Outcome::Impeded { by, until, .. } => Some(impeded(run, *by, *until, why, context)),
        // What is there now may be a person's: nothing is made or removed in its place.
        Outcome::NeverStarted { code: NeverStarted::NoDirectory, why }
            if run.spec.workspace.strategy != Strategy::Inplace =>
        {
            let why = reason::block(why, BlockReason::WorkspaceLost);
            Some(reason::blocked(run, context, why))
        }
        _ if is_unseen && run.spec.on_interrupt == OnInterrupt::Block => Some(reason::blocked(
            run,
            context,
            reason::block(&why.reason, BlockReason::Interrupted),
        )),
        _ => match retry::delay_ms(run, outcome) {
            // A failure would be repeated by a person, or by a trigger, without a word of the call.
            // An end that was not observed says so itself.
            delay if is_in_doubt && (delay.is_some() || is_seen_failure) => {
                let key = run.call_in_doubt().unwrap_or_default();
                let text = format!("the end of the call {key} was not observed");
                Some(reason::blocked(
                    run,
                    context,
                    reason::block(&text, BlockReason::UnknownCallOutcome),
                ))
            }
            Some(delay_ms) => {
                let until = Some(context.now.plus_ms(delay_ms));
                Some(vec![(*at, reason::waiting(run, WaitCause::Backoff, until, why))])
            }
            None if run.has_survivors() && run.spec.workflow.is_some() => None,
            None => Some(vec![reason::finishing(run, *at, verdict, tries(run, why))]),
        },
    }
}

/// Something kept the attempt from its turn. A provider is waited for, until the time that it gave or a while; after
/// many refusals without a time, and for all else, a person is.
fn impeded(
    run: &Run,
    by: Impediment,
    until: Option<crate::Time>,
    why: Reason,
    context: &Context,
) -> Facts {
    let block = |reason| reason::blocked(run, context, reason::block(&why.reason, reason));
    match by {
        Impediment::Login => block(BlockReason::AuthExpired),
        Impediment::Approval => block(BlockReason::NeedsApproval),
        Impediment::Question => block(BlockReason::NeedsInput),
        Impediment::Provider if run.counters.impeded > MOST_IMPEDED => {
            let text = format!("{} ({} times in a row)", why.reason, run.counters.impeded);
            reason::blocked(run, context, reason::block(&text, BlockReason::AgentBlocked))
        }
        Impediment::Provider => {
            let (outcome, _) =
                run.attempt.as_ref().and_then(|it| it.state.end.as_ref()).expect("it has ended");
            let delay_ms = retry::delay_ms(run, outcome).unwrap_or(0);
            let until = until.unwrap_or(context.now.plus_ms(delay_ms));
            vec![(context.now, reason::waiting(run, WaitCause::RateLimit, Some(until), why))]
        }
    }
}

/// So often a provider is asked again that does not say when it answers. With the pauses between, several hours.
const MOST_IMPEDED: u32 = 20;

/// How often it was tried, if more than once.
fn tries(run: &Run, why: Reason) -> Reason {
    match run.counters.attempts {
        0 | 1 => why,
        tries => Reason { reason: format!("{} ({tries} attempts)", why.reason), ..why },
    }
}

/// A turn has committed: its calls, its hook, what it has to say, and then what it wants.
fn settle(run: &Run, settling: &Settling, context: &Context) -> Option<Facts> {
    if run.has_survivors() && !lets_survivors_be(run, settling) {
        return None;
    }
    if settling.needs_person {
        return Some(reason::blocked(run, context, unknown_call(run)));
    }
    if let Some((call, wanted)) = run.next_call() {
        let key = wanted
            .key
            .clone()
            .unwrap_or_else(|| format!("{}/t{}/c{}", run.id, settling.turn, call));
        if run.calls.contains_key(&key) {
            let turn = settling.turn;
            return Some(vec![(context.now, Fact::CallAnswered { turn, call, key })]);
        }
        let purpose = Purpose::Tool { call, name: wanted.name.clone(), key };
        return Some(rest::unless_paused(run, context, || reason::errand(run, context, purpose)));
    }
    if settling.after_turn == Done::NotYet {
        let purpose = Purpose::Hook { hook: Hook::AfterTurn };
        return Some(rest::unless_paused(run, context, || reason::errand(run, context, purpose)));
    }
    if let Some(facts) = snapshot::after_turn(run, settling.turn, context) {
        return Some(rest::unless_paused(run, context, || facts));
    }
    match emit::decide(run, settling) {
        Emit::Now { to, text } => {
            Some(vec![(context.now, Fact::Emitted { turn: settling.turn, to, text })])
        }
        Emit::Ask => {
            let why = reason::block(
                "what the turn has to say needs approval",
                BlockReason::NeedsApproval,
            );
            Some(reason::blocked(run, context, why))
        }
        Emit::Nothing => act(run, settling, context),
    }
}

/// A single command may leave processes behind; they are listed. A loop's next step meets none of the last.
fn lets_survivors_be(run: &Run, settling: &Settling) -> bool {
    settling.status == TurnStatus::Done
        && run.spec.workflow.is_none()
        && run.spec.checks.done.is_empty()
        && !run.spec.needs_preparation()
        && settling.after_turn != Done::NotYet
        && run.next_call().is_none()
}

/// What the turn wants to be next.
fn act(run: &Run, settling: &Settling, context: &Context) -> Option<Facts> {
    let ended_at = run.attempt.as_ref().and_then(|it| it.state.end.as_ref()).map(|(_, at)| *at);
    // What came between is part of the run: a hook, a person's word.
    let is_last = |at: &crate::Time| run.errand.is_none() && *at >= run.since;
    let at = ended_at.filter(is_last).unwrap_or(context.now);
    match settling.status {
        TurnStatus::Done if run.spec.checks.done.is_empty() => {
            let why = reason::of("done", ReasonCode::Done);
            Some(vec![reason::finishing(run, at, Verdict::Completed, why)])
        }
        TurnStatus::Done => {
            let why = reason::of("the agent says it is done", ReasonCode::ClaimedDone);
            Some(vec![(context.now, reason::to_state(run, StateName::Verifying, why))])
        }
        TurnStatus::Blocked => Some(reason::blocked(
            run,
            context,
            said(run, "the agent is blocked", BlockReason::AgentBlocked.into()),
        )),
        TurnStatus::Failed => {
            let why = said(run, "the agent gave up", ReasonCode::AgentFailed);
            Some(vec![reason::finishing(run, at, Verdict::Failed, why)])
        }
        TurnStatus::Continue if limits::is_going_nowhere(run) => {
            let turns = run.counters.no_progress;
            let text = format!("{turns} turns in a row changed nothing");
            Some(reason::blocked(run, context, reason::block(&text, BlockReason::NoProgress)))
        }
        TurnStatus::Continue => match wait(run, settling) {
            Some((cause, code, until)) => {
                let why = reason::of("the agent waits", code);
                Some(vec![(context.now, reason::waiting(run, cause, until, why))])
            }
            None => start(run, context),
        },
    }
}

fn wait(run: &Run, settling: &Settling) -> Option<(WaitCause, ReasonCode, Option<crate::Time>)> {
    let has_message = !run.inbox.unread.is_empty();
    match settling.wait? {
        // A provider that is asked again before its time only refuses again.
        Wait::RateLimit(until) => Some((WaitCause::RateLimit, ReasonCode::RateLimit, Some(until))),
        Wait::Until(_) | Wait::Message if has_message => None,
        Wait::Until(until) => Some((WaitCause::Timer, ReasonCode::Timer, Some(until))),
        Wait::Message => Some((WaitCause::Message, ReasonCode::Message, None)),
        Wait::Children => {
            let waits = run.live_children() > 0 && !run.has_word_of_others();
            waits.then_some((WaitCause::Children, ReasonCode::Children, None))
        }
    }
}

fn said(run: &Run, otherwise: &str, code: ReasonCode) -> Reason {
    let summary = run.previous.as_ref().map(|it| it.summary.trim()).unwrap_or_default();
    let text = if summary.is_empty() { otherwise } else { summary };
    reason::of(&text.chars().take(2000).collect::<String>(), code)
}

fn unknown_call(run: &Run) -> Reason {
    let results = run.previous.iter().flat_map(|previous| previous.results.iter().flatten());
    let unknown: Vec<&str> = results
        .filter(|result| result.outcome == CallOutcome::Unknown)
        .map(|result| result.name.as_str())
        .collect();
    let text = format!("the end of the call of {} was not observed", unknown.join(", "));
    Reason {
        evidence: reason::errand_evidence(run),
        ..reason::block(&text, BlockReason::UnknownCallOutcome)
    }
}

/// The next attempt: at the same turn while that is uncommitted, or else the first at the next.
pub(crate) fn upcoming(run: &Run) -> (u32, u32) {
    match &run.attempt {
        Some(last) if last.turn > run.turns_committed => (last.turn, last.number + 1),
        Some(_) | None => (run.turns_committed + 1, 1),
    }
}

fn start(run: &Run, context: &Context) -> Option<Facts> {
    let (turn, attempt) = upcoming(run);
    if limits::is_held_by_children(run) {
        let why = reason::of("its children hold what is left of its ceilings", ReasonCode::Budget);
        return Some(vec![(context.now, reason::waiting(run, WaitCause::Budget, None, why))]);
    }
    if let Some(limit) = limits::spent(run, attempt) {
        return Some(vec![(context.now, Fact::LimitReached { limit })]);
    }
    if let Budget::Spent { name, until, then } = &context.budget {
        return Some(beyond_budget(run, context, name, *until, *then));
    }
    if let Some(facts) = snapshot::before_attempt(run, context) {
        return Some(rest::unless_paused(run, context, || facts));
    }
    Some(rest::unless_paused(run, context, || {
        let messages = run.inbox.unread.last().map_or(0, |message| message.seq);
        let boot = context.boot.clone();
        let started = Fact::TurnStarted { turn, attempt, boot, messages };
        let offered = tools::offered(&run.spec, turn, attempt);
        let segment = segment(run, turn, context);
        let facts = segment.into_iter().chain([started]).chain(offered);
        facts.map(|fact| (context.now, fact)).collect()
    }))
}

/// Says that another build goes on with the run, at the border of a turn or of a try at it.
fn segment(run: &Run, turn: u32, context: &Context) -> Option<Fact> {
    let to = context.build.filter(|build| run.build.as_deref() != Some(build))?;
    let from = run.build.clone();
    Some(Fact::Segment { turn, from, to: to.to_owned(), reason: "upgrade".to_owned() })
}

/// The next attempt would go beyond what the run shares with others.
fn beyond_budget(
    run: &Run,
    context: &Context,
    name: &str,
    until: Option<crate::Time>,
    then: Exceeded,
) -> Facts {
    let why = reason::of(&format!("the budget {name} is spent"), ReasonCode::Budget);
    match then {
        Exceeded::Wait => {
            vec![(context.now, reason::waiting(run, WaitCause::Budget, until, why))]
        }
        Exceeded::End => vec![reason::finishing(run, context.now, Verdict::Exhausted, why)],
    }
}

/// What an exhausted run says of its limit. What was not reported is not said to be spent.
pub(crate) fn limit_text(run: &Run, limit: Limit) -> &'static str {
    let reserved = run.spend.reserved;
    match limit {
        Limit::MaxTokens if reserved.tokens > 0 => {
            "its limit of tokens is reached: attempts that reported nothing count with their share"
        }
        Limit::MaxCost if reserved.cost_usd_micros > 0 => {
            "its limit of money is reached: attempts that reported nothing count with their share"
        }
        Limit::RunTimeout => "the run's time is over",
        Limit::TurnTimeout => "the turn's time is over",
        Limit::StallWindow => "silent for too long",
        Limit::MaxTurns => "all its turns are used",
        Limit::MaxTokens => "all its tokens are used",
        Limit::MaxCost => "all its money is spent",
        Limit::Budget => "a budget that it shares is spent",
    }
}
