//! The legality table: which event may follow in which state.
//!
//! One place, asked by every append, every replay and every test. It decides nothing; it refuses.

use crate::run::{Emission, Removal};
use crate::{Fact, Order, Planted, Purpose, Run, State, StateName, Step, Undo, children};

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Illegal {
    #[error("the journal is empty")]
    Empty,
    #[error("the journal begins with {kind}, not with RunCreated")]
    NotCreated { kind: &'static str },
    #[error("event {found} where {expected} was next")]
    Seq { expected: u64, found: u64 },
    #[error("{kind} is illegal while the run is {state}: {why}", state = state.word())]
    Fact { kind: &'static str, state: StateName, why: &'static str },
}

/// Says why `fact` may not happen to `run` now, if it may not.
pub(crate) fn check(run: &Run, fact: &Fact) -> Result<(), Illegal> {
    match objection(run, fact) {
        None => Ok(()),
        Some(why) => Err(Illegal::Fact { kind: fact.kind(), state: run.state.name(), why }),
    }
}

fn objection(run: &Run, fact: &Fact) -> Option<&'static str> {
    match fact {
        Fact::RunCreated { .. } => Some("a run is created once"),
        Fact::ClockSet { .. } | Fact::JournalRestored { .. } => {
            unless(!run.has_ended(), "the run has ended")
        }
        Fact::RunRecovered { turns_committed, errands, .. } => first_of([
            unless(!run.has_ended(), "the run has ended"),
            unless(run.live().is_none(), "an attempt is alive"),
            unless(run.live_errand().is_none(), "an errand is alive"),
            unless(*turns_committed >= run.turns_committed, "what was committed stays committed"),
            unless(*errands >= run.errands, "errands are not forgotten"),
        ]),
        Fact::StateChanged { from, to, cause, verdict, .. } => first_of([
            unless(*from == run.state.name(), "it leaves a state the run is not in"),
            unless(may_follow(*from, *to), "there is no such transition"),
            unless(
                (*to == StateName::Waiting) == cause.is_some(),
                "waiting has a cause, and nothing else has",
            ),
            unless(
                (*to == StateName::Finishing) == verdict.is_some(),
                "finishing has a verdict, and nothing else has",
            ),
            unless(is_promised_end(run, *to), "a run ends as it was finishing to"),
            unless(!run.has_ended() || run.is_reopened(), "the run has ended"),
            unless(!is_end_or_rest(*to) || run.live().is_none(), "an attempt is alive"),
            unless(!is_end_or_rest(*to) || run.live_errand().is_none(), "an errand is alive"),
        ]),
        Fact::Segment { turn, to, .. } => first_of([
            unless(run.live().is_none(), "an attempt is alive"),
            unless(run.state == State::Running, "a run goes on while running"),
            unless(is_border(run, *turn), "it is not at the border of that turn"),
            unless(run.build.as_ref() != Some(to), "that build conducts it already"),
        ]),
        Fact::TurnStarted { turn, attempt, messages, .. } => first_of([
            unless(run.state == State::Running, "turns start while running"),
            may_start(run),
            unless(run.stop.is_none() && run.limit.is_none(), "the run is being ended"),
            unless(!run.is_to_rest(), "the run is paused"),
            unless(is_next(run, *turn, *attempt), "turns and attempts are numbered without gaps"),
            unless(*messages <= run.inbox.last(), "a message is given that has not come"),
        ]),
        Fact::ToolsOffered { turn, attempt, .. } => not_live(run, *turn, *attempt),
        Fact::AttemptStarted { turn, attempt, .. } => first_of([
            not_live(run, *turn, *attempt),
            unless(
                run.live().is_none_or(|live| live.state.process.is_none()),
                "an attempt starts once",
            ),
        ]),
        Fact::AttemptAdopted { turn, attempt, .. } => not_live(run, *turn, *attempt),
        Fact::AttemptOrphaned { turn, attempt } => first_of([
            not_live(run, *turn, *attempt),
            unless(
                run.live().is_none_or(|live| live.state.process.is_some()),
                "only what has started can be orphaned",
            ),
            unless(run.live().is_none_or(|live| !live.state.is_orphaned), "it is orphaned already"),
        ]),
        Fact::AttemptEnded { turn, attempt, .. } => not_live(run, *turn, *attempt),
        Fact::TreeEmptied { turn, attempt } => {
            emptied(run, Step::Attempt { turn: *turn, attempt: *attempt })
        }
        Fact::StopIncomplete { turn, attempt, survivors } => {
            incomplete(run, Step::Attempt { turn: *turn, attempt: *attempt }, survivors.len())
        }
        Fact::TurnCommitted { turn, attempt, .. } => first_of([
            not_current(run, Step::Attempt { turn: *turn, attempt: *attempt }),
            unless(run.live().is_none(), "the attempt is still alive"),
            unless(run.turns_committed + 1 == *turn, "a turn commits once, in order"),
            unless(run.state == State::Running, "turns commit while running"),
        ]),
        Fact::WorkspacePrepared { .. } | Fact::WorkspaceRefused { .. } => {
            unless(run.state == State::Preparing, "workspaces are made while preparing")
        }
        Fact::WorkspaceDiscarded { .. } => unless(
            matches!(run.state, State::Finishing { .. }),
            "what is half made is discarded while finishing",
        ),
        Fact::ErrandStarted { errand, .. } => first_of([
            may_start(run),
            unless(*errand == run.errands + 1, "errands are numbered without gaps"),
            unless(may_have_errands(run), "nothing is run for it in this state"),
        ]),
        Fact::ErrandEnded { errand, .. } => {
            unless(run.live_errand().is_some_and(|live| live.number == *errand), "it is not alive")
        }
        Fact::SnapshotTaken { snapshot, .. } => {
            after_errand(run, |purpose| *purpose == Purpose::Snapshot { cause: snapshot.cause })
        }
        Fact::SnapshotFailed { .. } => after_errand(run, |purpose| {
            matches!(purpose, Purpose::Snapshot { .. } | Purpose::Restore { .. })
        }),
        Fact::RestoreRequested { order, .. } => first_of([
            taken_before(run, order),
            unless(run.refuse_restore().is_ok(), "its workspace cannot go back now"),
        ]),
        Fact::Forked { .. } => first_of([
            may_start(run),
            unless(
                run.spec.fork.is_some() && !run.is_forked,
                "it is no fork, or was forked before",
            ),
        ]),
        Fact::WorkspaceRestored { to, wreck, .. } => first_of([
            after_errand(run, |purpose| *purpose == Purpose::Restore { to: to.clone() }),
            unless(is_kept(run, wreck), "what was found is kept first"),
        ]),
        Fact::ErrandEmptied { errand } => emptied(run, Step::Errand { errand: *errand }),
        Fact::ErrandIncomplete { errand, survivors } => {
            incomplete(run, Step::Errand { errand: *errand }, survivors.len())
        }
        Fact::CallAnswered { call, key, .. } => first_of([
            unless(run.calls.contains_key(key), "no call under that key has completed"),
            unless(run.next_call().is_some_and(|(next, _)| next == *call), "another call is next"),
        ]),
        Fact::NoteTaken { turn, attempt, .. } | Fact::TerminalOpened { turn, attempt, .. } => {
            not_live(run, *turn, *attempt)
        }
        Fact::CallBegun { .. } | Fact::CallEnded { .. } | Fact::CallResolved { .. } => {
            first_of([unless(!run.has_ended(), "the run has ended"), run.call_objection(fact)])
        }
        Fact::Emitted { turn, .. } | Fact::EmissionDenied { turn, .. } => unless(
            run.settling
                .as_ref()
                .is_some_and(|it| it.turn == *turn && it.emission != Emission::Settled),
            "that turn has nothing left to say",
        ),
        Fact::MessageReceived { message, from, .. } => first_of([
            unless(!run.has_ended(), "the run has ended"),
            unless(!run.inbox.has_had(message), "that message has come already"),
            unless(!run.inbox.is_full() || children::is_sender(from), "the inbox is full"),
        ]),
        Fact::QuestionAsked { turn, attempt, question, .. } => first_of([
            not_live(run, *turn, *attempt),
            unless(
                run.live().is_none_or(|live| live.asked.get(question).is_none()),
                "that was asked already",
            ),
        ]),
        Fact::QuestionWithdrawn { turn, attempt, question } => first_of([
            not_live(run, *turn, *attempt),
            unless(
                run.live().is_some_and(|live| {
                    live.asked.get(question).is_some_and(|it| it.answer.is_none())
                }),
                "that is not open",
            ),
        ]),
        Fact::MessagesGiven { turn, attempt, messages } => first_of([
            not_live(run, *turn, *attempt),
            unless(
                messages.iter().all(|seq| {
                    run.inbox.has(*seq) && run.live().is_some_and(|live| live.may_take(*seq))
                }),
                "a message is given that has not come, or that it has",
            ),
        ]),
        Fact::PauseRequested { all, now, order, .. } => first_of([
            taken_before(run, order),
            unless(!run.has_ended(), "the run has ended"),
            unless(
                *now || if *all {
                    !run.is_paused_with_all
                } else {
                    !run.is_paused || order.id.is_some()
                },
                "it is paused already",
            ),
            unless(!now || run.live().is_some(), "nothing is alive that could be ended for it"),
        ]),
        Fact::ResumeRequested { all: true, .. } => {
            unless(run.is_paused_with_all, "it was not paused with the others")
        }
        Fact::ResumeRequested { all: false, order, .. } => first_of([
            taken_before(run, order),
            unless(run.is_paused || run.state.is_blocked(), "it is neither paused nor blocked"),
            unless(
                order.answers.is_none_or(|seq| run.releases(Some(seq)) == Some(seq)),
                "it answers neither the pause nor the block",
            ),
        ]),
        Fact::Answered { order, .. } => first_of([
            taken_before(run, order),
            unless(
                run.state.is_blocked() || run.open_question().is_some(),
                "it is not blocked, and its agent asks nothing",
            ),
            unless(
                order.answers.is_none_or(|seq| run.asks().is_some_and(|it| it.seq == seq)),
                "that question is not open",
            ),
        ]),
        Fact::RemovalRequested { .. } => first_of([
            unless(run.ended_at.is_some(), "the run has not ended"),
            unless(run.removal != Removal::Removed, "the workspace is gone already"),
        ]),
        Fact::WorkspaceRemoved { .. } | Fact::WorkspaceKept { .. } => {
            unless(run.removal == Removal::Asked, "no client asked for that")
        }
        Fact::StopRequested { mode, order, .. } => first_of([
            taken_before(run, order),
            unless(run.is_open(), "there is nothing left to stop"),
            // An order with an id is kept as it was given; the stronger of two stops holds.
            unless(
                order.id.is_some() || run.stop.is_none_or(|asked| asked <= *mode),
                "a stop is never taken back",
            ),
        ]),
        Fact::LimitReached { .. } => first_of([
            unless(!run.has_ended(), "the run has ended"),
            unless(run.limit.is_none(), "a limit is reached once"),
        ]),
        Fact::LimitsRaised { limits, order, .. } => first_of([
            taken_before(run, order),
            unless(run.may_be_raised(), "the run is being ended, or has ended otherwise"),
            unless(limits.cover(&run.spec.limits), "no limit is lowered"),
        ]),
        Fact::PredecessorEnded { run: other, .. } => first_of([
            unless(!run.has_ended(), "the run has ended"),
            unless(run.predecessor.is_none(), "that was said already"),
            unless(
                run.spec.start.after.as_ref().is_some_and(|after| after.run == *other),
                "it does not wait for that run",
            ),
        ]),
        Fact::RunEnded { state, .. } => first_of([
            unless(run.state == State::Ended { verdict: *state }, "it ends as the state it is in"),
            unless(run.ended_at.is_none(), "a run ends once"),
        ]),
        Fact::ChildSpawned { child, .. } => {
            unless(!run.children.contains_key(child), "it has that child already")
        }
        Fact::ChildSettled { child, .. } => unless(
            run.children.get(child).is_some_and(|child| child.end.is_none()),
            "it has no such child, or that has settled",
        ),
        Fact::HealthDegraded { .. } | Fact::HealthRecovered { .. } => None,
        Fact::OutputMatched { turn, attempt, watch, offset, .. } => first_of([
            not_current(run, Step::Attempt { turn: *turn, attempt: *attempt }),
            unless(
                run.looking(*watch).is_some_and(|it| *offset > it.offset()),
                "there is no such watch, or it has told that already",
            ),
        ]),
        Fact::HeartbeatTold { turn, attempt, output_bytes } => first_of([
            not_current(run, Step::Attempt { turn: *turn, attempt: *attempt }),
            unless(*output_bytes > run.heartbeat.bytes, "there is no new output"),
        ]),
        Fact::WatchDisabled { watch, .. } => {
            unless(run.looking(*watch).is_some(), "there is no such watch")
        }
        Fact::LimitNeared { limit, .. } => first_of([
            unless(!run.has_ended(), "the run has ended"),
            unless(!run.neared.contains(limit), "that was said already"),
        ]),
        Fact::UsageReported { turn, attempt, charge } => first_of([
            not_live(run, *turn, *attempt),
            unless(
                run.live().and_then(|live| live.reported).is_none_or(|had| charge.covers(&had)),
                "what was used stays used",
            ),
        ]),
    }
}

/// The transitions of the state diagram; a phase in which there is nothing to do is passed over.
fn may_follow(from: StateName, to: StateName) -> bool {
    use StateName::{Blocked, Finishing, Preparing, Queued, Running, Verifying, Waiting};
    match from {
        Queued => matches!(to, Preparing | Running | Waiting | Blocked | Finishing),
        Preparing => matches!(to, Running | Waiting | Blocked | Finishing),
        Running => matches!(to, Waiting | Verifying | Blocked | Finishing),
        Waiting => {
            matches!(to, Running | Preparing | Verifying | Waiting | Blocked | Finishing)
        }
        Verifying => matches!(to, Running | Waiting | Blocked | Finishing),
        Blocked => matches!(to, Running | Preparing | Verifying | Waiting | Finishing),
        Finishing => to.verdict().is_some(),
        StateName::Exhausted => to == Queued,
        StateName::Completed | StateName::Failed | StateName::Stopped => false,
    }
}

fn is_promised_end(run: &Run, to: StateName) -> bool {
    match (&run.state, to.verdict()) {
        (State::Finishing { verdict, .. }, Some(end)) => *verdict == end,
        (_, Some(_)) => false,
        (_, None) => true,
    }
}

fn is_end_or_rest(to: StateName) -> bool {
    match to {
        StateName::Waiting | StateName::Blocked | StateName::Finishing | StateName::Queued => true,
        StateName::Completed | StateName::Failed | StateName::Stopped | StateName::Exhausted => {
            true
        }
        StateName::Preparing | StateName::Running | StateName::Verifying => false,
    }
}

/// The turn that starts next, or the one that is tried again.
fn is_border(run: &Run, turn: u32) -> bool {
    turn == run.turns_committed + 1
}

/// The next try at the same turn while that is uncommitted, or else the first try at the next.
fn is_next(run: &Run, turn: u32, attempt: u32) -> bool {
    match &run.attempt {
        Some(last) if last.turn > run.turns_committed => {
            turn == last.turn && attempt == last.number + 1
        }
        Some(_) | None => turn == run.turns_committed + 1 && attempt == 1,
    }
}

fn not_live(run: &Run, turn: u32, attempt: u32) -> Option<&'static str> {
    let is_live = run.live().is_some_and(|live| live.is(turn, attempt));
    unless(is_live, "that attempt is not alive")
}

fn not_current(run: &Run, step: Step) -> Option<&'static str> {
    unless(run.step_state(step).is_some(), "that is not the current one")
}

fn emptied(run: &Run, step: Step) -> Option<&'static str> {
    first_of([
        not_current(run, step),
        unless(
            run.step_state(step).is_none_or(crate::StepState::has_survivors),
            "no process was left",
        ),
    ])
}

fn incomplete(run: &Run, step: Step, survivors: usize) -> Option<&'static str> {
    first_of([
        not_current(run, step),
        unless(survivors > 0, "an incomplete stop names who is left"),
    ])
}

/// What an errand made is said once, when it has ended.
fn after_errand(run: &Run, is_its: impl Fn(&Purpose) -> bool) -> Option<&'static str> {
    let last = run.errand.as_ref().filter(|last| is_its(&last.purpose));
    unless(last.is_some_and(|last| !last.state.is_live()), "no errand for it has ended")
}

/// What a restore found is in this snapshot; the new workspace of a fork had nothing.
fn is_kept(run: &Run, wreck: &str) -> bool {
    let known = &run.snapshots;
    if known.planted == Planted::Due {
        return wreck.is_empty();
    }
    match (&known.asked, &known.undo) {
        (Some(asked), _) => asked.wreck.as_deref() == Some(wreck),
        (None, Undo::Kept { wreck: kept, .. }) => kept == wreck,
        (None, _) => false,
    }
}

/// One process tree at a time.
fn may_start(run: &Run) -> Option<&'static str> {
    first_of([
        unless(run.live().is_none(), "an attempt is alive"),
        unless(run.live_errand().is_none(), "an errand is alive"),
        unless(!run.has_survivors(), "the last tree is not empty"),
    ])
}

fn may_have_errands(run: &Run) -> bool {
    match run.state {
        State::Preparing | State::Running | State::Verifying | State::Finishing { .. } => true,
        State::Ended { .. } => run.removal == Removal::Asked || run.snapshots.asked.is_some(),
        State::Waiting { .. } | State::Blocked { .. } => run.snapshots.asked.is_some(),
        State::Queued => false,
    }
}

fn taken_before(run: &Run, order: &Order) -> Option<&'static str> {
    unless(!run.orders.has(order), "that order has been taken already")
}

fn unless(condition: bool, objection: &'static str) -> Option<&'static str> {
    (!condition).then_some(objection)
}

fn first_of<const N: usize>(objections: [Option<&'static str>; N]) -> Option<&'static str> {
    objections.into_iter().flatten().next()
}
