//! What was promised, held against what really happened.

use outlast_engine::{Event, Fact, Outcome, Run, State, StateName, Verdict, check};
use outlast_store::Journal;

use crate::record;
use crate::world::{Key, RunIndex, World, boot_id};

/// The most events that a simulated journal may have.
const MOST_EVENTS: usize = 100_000;

pub(crate) fn journal(world: &World, run: RunIndex) -> Vec<Event> {
    world.store.events(&world.runs[run].id, 0, MOST_EVENTS).unwrap_or_default()
}

/// A command is about to run.
pub(crate) fn on_exec(world: &mut World, key: Key) {
    let events = journal(world, key.run);
    let is_meant = events.iter().any(
        |event| matches!(event.fact, Fact::TurnStarted { turn, attempt, .. } if (turn, attempt) == (key.turn, key.attempt)),
    );
    let is_committed = events
        .iter()
        .any(|event| matches!(event.fact, Fact::TurnCommitted { turn, .. } if turn == key.turn));
    let others = world.attempts.iter().filter(|(other, _)| other.run == key.run && **other != key);
    let alive: Vec<String> = others
        .filter(|(_, attempt)| attempt.tree.runs())
        .map(|(other, _)| other.to_string())
        .collect();
    let attempt = world.attempt(key);
    let (executions, has_ended) = (attempt.executions, attempt.has_ended);
    let mut broke = |is_broken: bool, what: &str| {
        if is_broken {
            world.broke(Some(key.run), format!("{key}: {what}"));
        }
    };
    broke(!is_meant, "executed although the journal does not mean to");
    broke(is_committed, "executed after its turn was committed");
    broke(executions > 0, "executed twice");
    broke(has_ended, "executed after the journal said that it had ended");
    broke(!alive.is_empty(), &format!("executed while this was alive: {}", alive.join(", ")));
}

/// The journal may have grown, whatever its writer was told.
pub(crate) fn on_append(world: &mut World, run: RunIndex) {
    let events = journal(world, run);
    let seen = world.runs[run].checked_seq;
    let Some(last) = events.last().filter(|last| last.seq > seen) else { return };
    world.runs[run].checked_seq = last.seq;
    let id = world.runs[run].id.clone();
    for violation in check(&id, &events) {
        world.broke(Some(run), violation.to_string());
    }
    if let Ok(replayed) = Run::replay(&id, &events) {
        let row = world.store.row(&id).expect("memory can be read");
        if row != Some(replayed.row()) {
            world.broke(Some(run), "the row in the store is not the journal's".to_owned());
        }
    }
    for event in events.iter().filter(|event| event.seq > seen) {
        world.note(|| format!("  run {run} #{} {}", event.seq, event.fact.kind()));
        on_event(world, run, &events, event);
    }
}

fn on_event(world: &mut World, run: RunIndex, events: &[Event], event: &Event) {
    match &event.fact {
        Fact::TurnStarted { turn, attempt, .. } => {
            world.stats.attempts += 1;
            on_turn_started(world, Key { run, turn: *turn, attempt: *attempt });
        }
        Fact::AttemptEnded { turn, attempt, outcome, survivors, .. } => {
            let key = Key { run, turn: *turn, attempt: *attempt };
            world.stats.attempts_with_survivors += u64::from(!survivors.is_empty());
            on_attempt_ended(world, key, outcome, survivors.is_empty(), events);
        }
        Fact::TreeEmptied { turn, attempt } => {
            let key = Key { run, turn: *turn, attempt: *attempt };
            let is_empty = world.attempt(key).tree.is_empty();
            broke_unless(world, key, is_empty, "its tree is said to be empty and is not");
        }
        Fact::TurnCommitted { turn, attempt, .. } => {
            let key = Key { run, turn: *turn, attempt: *attempt };
            let has_succeeded = world.attempt(key).exit == Some(outlast_engine::Exit::Code(0));
            broke_unless(
                world,
                key,
                has_succeeded,
                "committed although its command has not succeeded",
            );
        }
        Fact::RunEnded { state, .. } => on_run_ended(world, run, events, *state),
        Fact::RunCreated { .. } => world.stats.runs += 1,
        Fact::AttemptAdopted { .. } => world.stats.adopted += 1,
        Fact::AttemptOrphaned { .. } => world.stats.orphaned += 1,
        Fact::StopIncomplete { .. } => world.stats.stops_incomplete += 1,
        Fact::StateChanged { .. }
        | Fact::AttemptStarted { .. }
        | Fact::StopRequested { .. }
        | Fact::LimitReached { .. } => {}
    }
}

fn on_turn_started(world: &mut World, key: Key) {
    let others = world.attempts.iter().filter(|(other, _)| other.run == key.run && **other != key);
    let alive: Vec<String> = others
        .filter(|(_, attempt)| attempt.tree.runs())
        .map(|(other, _)| other.to_string())
        .collect();
    broke_unless(
        world,
        key,
        alive.is_empty(),
        &format!("meant to start while this was alive: {}", alive.join(", ")),
    );
}

fn on_attempt_ended(
    world: &mut World,
    key: Key,
    outcome: &Outcome,
    is_said_empty: bool,
    events: &[Event],
) {
    let is_other_boot = events.iter().any(|event| match &event.fact {
        Fact::TurnStarted { turn, attempt, boot } => {
            (*turn, *attempt) == (key.turn, key.attempt) && *boot != boot_id(world.boot)
        }
        _ => false,
    });
    let is_held = world.shims.values().any(|shim| shim.key == key && shim.has_command());
    let attempt = world.attempt(key);
    attempt.has_ended = true;
    let (executions, really, is_empty) =
        (attempt.executions, attempt.exit, attempt.tree.is_empty());
    let is_main_alive = attempt.tree.is_main_alive();
    let is_seen = record::has_exited(&attempt.records);
    if let Some(said) = outcome.exit() {
        broke_unless(
            world,
            key,
            really == Some(said),
            &format!("said to have ended with {said:?}, which was {really:?}"),
        );
    }
    if is_said_empty && executions > 0 {
        broke_unless(world, key, is_empty, "ended without survivors while some are alive");
    }
    match outcome {
        Outcome::NeverStarted { .. } => {
            world.stats.never_started += 1;
            broke_unless(world, key, executions == 0, "said never to have started, and it has");
        }
        Outcome::Lost => {
            world.stats.lost += 1;
            let is_unseen = !is_held && !is_seen && !is_main_alive;
            broke_unless(world, key, is_unseen, "called lost although its end can be seen");
        }
        Outcome::Interrupted { .. } => {
            world.stats.interrupted += 1;
            broke_unless(
                world,
                key,
                is_other_boot && !is_seen,
                "called interrupted, and it was not",
            );
        }
        Outcome::Stopped { .. } => {
            broke_unless(world, key, is_empty, "said to be stopped while some of it is alive");
        }
        Outcome::Stalled { .. } | Outcome::TimedOut { .. } => {
            world.stats.timed_out_or_stalled += 1;
            broke_unless(world, key, is_empty, "said to be ended while some of it is alive");
        }
        Outcome::Exited { .. } | Outcome::Signaled { .. } => {
            broke_unless(world, key, !is_main_alive, "said to have ended while it is alive");
        }
    }
}

/// A stop that is durable before the verdict is the verdict.
fn on_run_ended(world: &mut World, run: RunIndex, events: &[Event], verdict: Verdict) {
    match verdict {
        Verdict::Completed => world.stats.completed += 1,
        Verdict::Failed => world.stats.failed += 1,
        Verdict::Stopped => world.stats.stopped += 1,
        Verdict::Exhausted => world.stats.exhausted += 1,
    }
    let finishing = events.iter().position(|event| {
        matches!(event.fact, Fact::StateChanged { to: StateName::Finishing, .. })
    });
    let stop = events.iter().position(|event| matches!(event.fact, Fact::StopRequested { .. }));
    let was_stopped_first = stop.is_some() && stop < finishing;
    if (was_stopped_first || world.runs[run].is_stop_promised) && verdict != Verdict::Stopped {
        world.broke(Some(run), format!("a run that was told to stop ended {verdict:?}"));
    }
}

/// A daemon has taken over what the journal took.
pub(crate) fn on_accept(world: &mut World, run: RunIndex, seated: &Run) {
    let events = journal(world, run);
    let known = events.iter().take_while(|event| event.seq <= seated.seq());
    let replayed = Run::replay(&world.runs[run].id, known);
    if replayed.as_ref() != Ok(seated) {
        world.broke(Some(run), "the seat is not what the journal replays to".to_owned());
    }
}

/// A client is told that its run exists.
pub(crate) fn on_created(world: &mut World, client: usize, run: RunIndex) {
    world.clients[client].is_answered();
    world.runs[run].is_promised = true;
    check_promised(world);
}

/// A client is told that its stop is durable.
pub(crate) fn on_stop_answered(world: &mut World, run: RunIndex) {
    world.stats.stops_acknowledged += 1;
    let events = journal(world, run);
    let Ok(replayed) = Run::replay(&world.runs[run].id, &events) else { return };
    match replayed.state {
        State::Finishing { .. } | State::Ended { .. } => {}
        _ if replayed.stop.is_some() => world.runs[run].is_stop_promised = true,
        _ => {
            world.broke(Some(run), "a stop was acknowledged that is not in the journal".to_owned());
        }
    }
}

/// What clients were told to exist exists.
pub(crate) fn check_promised(world: &mut World) {
    for run in 0..world.runs.len() {
        let exists = world.store.row(&world.runs[run].id).expect("memory can be read").is_some();
        if world.runs[run].is_promised && !exists {
            world.broke(Some(run), "a run that was acknowledged does not exist".to_owned());
        }
    }
}

/// Everything that must hold once the world is at rest.
pub(crate) fn check_rest(world: &mut World) {
    check_promised(world);
    for problem in world.store.check().expect("memory can be read") {
        world.broke(None, format!("the store says: {}", problem.message));
    }
    let keys: Vec<String> =
        world.existing().iter().filter_map(|run| world.runs[*run].spec.key.clone()).collect();
    let mut once = keys.clone();
    once.sort();
    once.dedup();
    if once.len() != keys.len() {
        world.broke(None, "two runs have one key".to_owned());
    }
}

/// Why the run has not come to its end, if it should have.
pub(crate) fn unrest(world: &World, run: RunIndex) -> Option<&'static str> {
    let replayed = Run::replay(&world.runs[run].id, &journal(world, run)).ok()?;
    let has_immortals = world.attempts.iter().any(|(key, attempt)| {
        key.run == run
            && attempt
                .tree
                .others
                .iter()
                .any(|other| other.kills.is_none() && !other.leaves_by_itself)
    });
    if has_immortals {
        // Nobody can end it. It is enough to say so.
        let is_said = replayed.reason_code().as_deref() == Some("stop_incomplete");
        return (!is_said).then_some("it cannot be stopped, and nobody says so");
    }
    if !replayed.has_ended() || replayed.ended_at.is_none() {
        return Some("it has not ended");
    }
    replayed.is_open().then_some("it has ended and somebody of it is left")
}

/// A run with a limit ends without anybody asking for it.
pub(crate) fn check_limits(world: &mut World, run: RunIndex) {
    let is_alive =
        world.attempts.iter().any(|(key, attempt)| key.run == run && attempt.tree.is_main_alive());
    if is_alive {
        world.broke(Some(run), "its time is long over, and it goes on".to_owned());
    }
}

fn broke_unless(world: &mut World, key: Key, holds: bool, what: &str) {
    if !holds {
        world.broke(Some(key.run), format!("{key}: {what}"));
    }
}
