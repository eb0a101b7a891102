//! What was promised, held against what really happened.
//!
//! Looks at every append as it lands and at every command as it runs. Decides nothing, and changes nothing
//! but what it knows itself.

mod calls;
mod children;
mod clients;
mod ends;
mod exec;
mod places;
mod rest;
mod shares;
mod turns;

use outlast_engine::{Event, Fact, Run, State, Step, WaitCause, check};
use outlast_store::Journal;

use crate::world::{Key, RunIndex, World};

pub(crate) use calls::{on_effect, on_result_told, was_made};
pub(crate) use clients::{check_promised, on_answered, on_created};
pub(crate) use exec::on_exec;
pub(crate) use places::on_workspace_op;
pub(crate) use rest::{UNSTOPPABLE, check_rest, has_unsent, unrest};
pub(crate) use shares::check_room;

/// The most events that a simulated journal may have.
const MOST_EVENTS: usize = 100_000;

/// Journals up to this long are checked whole after every append; longer ones now and then, and at the end.
const SHORT: u64 = 60;

pub(crate) fn journal(world: &World, run: RunIndex) -> Vec<Event> {
    world.store.events(&world.runs[run].id, 0, MOST_EVENTS).unwrap_or_default()
}

/// The journal may have grown, whatever its writer was told.
pub(crate) fn on_append(world: &mut World, run: RunIndex) {
    let id = world.runs[run].id.clone();
    let seen = world.runs[run].known.seq();
    let news = world.store.events(&id, seen, MOST_EVENTS).unwrap_or_default();
    for event in &news {
        world.note(|| format!("  run {run} #{} {}", event.seq, event.fact.kind()));
        let before = world.runs[run].known.fold(&id, event);
        if let Err(illegal) = before {
            return world.broke(Some(run), format!("cannot be read back: {illegal}"));
        }
        on_event(world, run, event);
    }
    let Some(last) = news.last() else { return };
    turns::check_messages(world, run);
    turns::check_spend(world, run);
    shares::check_slots(world);
    let row = world.store.row(&id).expect("memory can be read");
    if row != world.runs[run].known.run().map(Run::row) {
        world.broke(Some(run), "the row in the store is not the journal's".to_owned());
    }
    let is_end = news.iter().any(|event| matches!(event.fact, Fact::RunEnded { .. }));
    if is_end || last.seq <= SHORT || last.seq.is_multiple_of(16) {
        check_whole(world, run);
    }
}

/// The whole journal, read anew.
pub(crate) fn check_whole(world: &mut World, run: RunIndex) {
    let (id, events) = (world.runs[run].id.clone(), journal(world, run));
    for violation in check(&id, &events) {
        world.broke(Some(run), violation.to_string());
    }
    ends::check_told(world, run);
    if Run::replay(&id, &events).ok().as_ref() != world.runs[run].known.run() {
        world.broke(Some(run), "a journal replays to something else at once".to_owned());
    }
}

fn on_event(world: &mut World, run: RunIndex, event: &Event) {
    let of_attempt = |turn: &u32, attempt: &u32| Key {
        run,
        step: Step::Attempt { turn: *turn, attempt: *attempt },
    };
    let of_errand = |errand: &u32| Key { run, step: Step::Errand { errand: *errand } };
    match &event.fact {
        Fact::TurnStarted { turn, attempt, boot, .. } => {
            world.stats.attempts += 1;
            exec::on_meant(world, of_attempt(turn, attempt), boot);
            turns::on_turn_started(world, run, *attempt);
        }
        Fact::ErrandStarted { errand, boot, .. } => {
            world.stats.errands += 1;
            exec::on_meant(world, of_errand(errand), boot);
        }
        Fact::AttemptEnded { turn, attempt, outcome, survivors, charge, .. } => {
            world.stats.attempts_with_survivors += u64::from(!survivors.is_empty());
            let key = of_attempt(turn, attempt);
            ends::on_ended(world, key, outcome, survivors.is_empty());
            turns::on_charged(world, key, charge.as_ref());
        }
        Fact::ErrandEnded { errand, outcome, survivors, .. } => {
            ends::on_ended(world, of_errand(errand), outcome, survivors.is_empty());
        }
        Fact::TreeEmptied { turn, attempt } => ends::on_emptied(world, of_attempt(turn, attempt)),
        Fact::ErrandEmptied { errand } => ends::on_emptied(world, of_errand(errand)),
        Fact::TurnCommitted { turn, attempt, .. } => {
            world.stats.turns_committed += 1;
            turns::on_committed(world, of_attempt(turn, attempt), &event.fact);
        }
        Fact::MessagesGiven { turn, attempt, messages } => {
            turns::on_given(world, run, (*turn, *attempt), messages);
        }
        Fact::RunEnded { state, .. } => ends::on_run_ended(world, run, *state),
        Fact::RunCreated { spec, .. } => {
            world.stats.runs += 1;
            children::on_made(world, run, spec);
        }
        Fact::AttemptAdopted { .. } => world.stats.adopted += 1,
        Fact::AttemptOrphaned { .. } => world.stats.orphaned += 1,
        Fact::StopIncomplete { .. } | Fact::ErrandIncomplete { .. } => {
            world.stats.stops_incomplete += 1;
        }
        Fact::StateChanged { .. } => on_state(world, run),
        Fact::LimitReached { .. } => world.stats.limits_reached += 1,
        Fact::MessageReceived { .. } => world.stats.messages += 1,
        Fact::ChildSpawned { .. } => world.stats.children_meant += 1,
        Fact::ChildSettled { child, .. } => children::on_settled(world, child, &event.fact),
        Fact::CallBegun { .. } => world.stats.call_intents += 1,
        Fact::CallEnded { .. } => calls::on_call_ended(world, run, &event.fact),
        Fact::CallResolved { .. } => calls::on_resolved(world, run, &event.fact),
        Fact::CallAnswered { .. } => world.stats.calls_answered += 1,
        Fact::WorkspaceDiscarded { .. } => world.stats.workspaces_discarded += 1,
        Fact::WorkspaceRemoved { .. } => world.stats.workspaces_removed += 1,
        Fact::ToolsOffered { .. }
        | Fact::AttemptStarted { .. }
        | Fact::StopRequested { .. }
        | Fact::WorkspacePrepared { .. }
        | Fact::WorkspaceRefused { .. }
        | Fact::Emitted { .. }
        | Fact::EmissionDenied { .. }
        | Fact::PauseRequested { .. }
        | Fact::ResumeRequested { .. }
        | Fact::Answered { .. }
        | Fact::QuestionAsked { .. }
        | Fact::QuestionWithdrawn { .. }
        | Fact::RemovalRequested { .. }
        | Fact::WorkspaceKept { .. }
        | Fact::SnapshotTaken { .. }
        | Fact::SnapshotFailed { .. }
        | Fact::RestoreRequested { .. }
        | Fact::Forked { .. }
        | Fact::WorkspaceRestored { .. }
        | Fact::HealthDegraded { .. }
        | Fact::HealthRecovered { .. }
        | Fact::ClockSet { .. }
        | Fact::LimitNeared { .. }
        | Fact::LimitsRaised { .. }
        | Fact::PredecessorEnded { .. }
        | Fact::UsageReported { .. }
        | Fact::OutputMatched { .. }
        | Fact::WatchDisabled { .. }
        | Fact::RunRecovered { .. }
        | Fact::JournalRestored { .. }
        | Fact::Segment { .. }
        | Fact::HeartbeatTold { .. }
        | Fact::NoteTaken { .. }
        | Fact::TerminalOpened { .. } => {}
    }
}

/// Notices without words: what matters here is which there are.
pub(crate) struct Unsaid;

impl outlast_conduct::fenced_run::Tell for Unsaid {
    fn body(&self, _run: &Run, notice: &outlast_engine::Notice) -> String {
        format!("{{\"id\":\"{}\"}}", notice.id)
    }
}

fn on_state(world: &mut World, run: RunIndex) {
    match world.runs[run].known.run().map(|known| &known.state) {
        Some(State::Blocked { .. }) => world.stats.blocked += 1,
        Some(State::Waiting { cause, .. }) => {
            world.stats.rests += 1;
            world.stats.waits_for_budget += u64::from(*cause == WaitCause::Budget);
        }
        Some(State::Verifying) => world.stats.claims += 1,
        Some(
            State::Queued
            | State::Preparing
            | State::Running
            | State::Finishing { .. }
            | State::Ended { .. },
        )
        | None => {}
    }
}

/// A daemon has taken over what the journal took.
pub(crate) fn on_accept(world: &mut World, run: RunIndex, seated: &Run) {
    let known = world.runs[run].known.run();
    if known.is_some_and(|known| known.seq() == seated.seq()) {
        if known != Some(seated) {
            world.broke(Some(run), "the seat is not what the journal replays to".to_owned());
        }
        return;
    }
    let events = journal(world, run);
    let told = events.iter().take_while(|event| event.seq <= seated.seq());
    if Run::replay(&world.runs[run].id, told).as_ref() != Ok(seated) {
        world.broke(Some(run), "the seat is not what the journal replays to".to_owned());
    }
}

fn broke_unless(world: &mut World, key: Key, holds: bool, what: &str) {
    if !holds {
        world.broke(Some(key.run), format!("{key}: {what}"));
    }
}
