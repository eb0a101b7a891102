//! The end of a step and of a run, as the journal tells them.

use outlast_engine::{Answer, Event, Fact, Outcome, Verdict};

use super::broke_unless;
use crate::record;
use crate::spec::SINKS;
use crate::world::{Key, RunIndex, World, boot_id};

pub(super) fn on_emptied(world: &mut World, key: Key) {
    let is_empty = world.site(key).tree.is_empty();
    broke_unless(world, key, is_empty, "its tree is said to be empty and is not");
}

pub(super) fn on_ended(world: &mut World, key: Key, outcome: &Outcome, is_said_empty: bool) {
    let now_boot = boot_id(world.boot);
    let is_guarded =
        world.shims.values().any(|shim| shim.key == key && shim.has_command() && !shim.is_cut_off);
    let site = world.site(key);
    site.has_ended = true;
    let is_other_boot = site.boot.as_ref().is_some_and(|boot| *boot != now_boot);
    let (executions, really, is_empty) = (site.executions, site.exit, site.tree.is_empty());
    // A driver ran, and by its word nothing of its agent.
    let is_driver_alone = matches!(site.said, Answer::NoProgram { .. });
    let is_main_alive = site.tree.is_main_alive();
    let is_seen = record::has_exited(&site.records);
    if let Some(said) = outcome.exit() {
        let what = format!("said to have ended with {said:?}, which was {really:?}");
        broke_unless(world, key, really == Some(said), &what);
    }
    if is_said_empty && executions > 0 {
        broke_unless(world, key, is_empty, "ended without survivors while some are alive");
    }
    match outcome {
        Outcome::NeverStarted { .. } => {
            world.stats.never_started += 1;
            let is_true = executions == 0 || is_driver_alone;
            broke_unless(world, key, is_true, "said never to have started, and it has");
        }
        Outcome::Lost => {
            world.stats.lost += 1;
            let is_unseen = !is_guarded && !is_seen && !is_main_alive;
            broke_unless(world, key, is_unseen, "called lost although its end can be seen");
        }
        Outcome::Interrupted { by } if by == "pause" => {
            world.stats.interrupted += 1;
            broke_unless(world, key, is_empty, "said to be ended while some of it is alive");
        }
        Outcome::Interrupted { .. } => {
            world.stats.interrupted += 1;
            let is_true = is_other_boot && !is_seen;
            broke_unless(world, key, is_true, "called interrupted, and it was not");
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
        Outcome::BadResponse { .. } | Outcome::Impeded { .. } => {
            world.stats.bad_responses += 1;
            broke_unless(world, key, !is_main_alive, "said to have ended while it is alive");
        }
    }
}

/// A stop that is durable before the verdict is the verdict, and a claim of done was verified.
pub(super) fn on_run_ended(world: &mut World, run: RunIndex, verdict: Verdict) {
    match verdict {
        Verdict::Completed => world.stats.completed += 1,
        Verdict::Failed => world.stats.failed += 1,
        Verdict::Stopped => world.stats.stopped += 1,
        Verdict::Exhausted => world.stats.exhausted += 1,
    }
    let truth = &world.runs[run];
    let is_to_stop = truth.known.was_stopped_first || truth.is_stop_promised;
    let checks = u32::try_from(truth.spec.checks.done.len()).expect("few");
    let is_verified = (0..checks).all(|check| truth.known.done_checks.contains(&check));
    if is_to_stop && verdict != Verdict::Stopped {
        world.broke(Some(run), format!("a run that was told to stop ended {verdict:?}"));
    }
    if verdict == Verdict::Completed && !is_verified {
        world.broke(Some(run), "completed although not every check has agreed".to_owned());
    }
}

/// An end that is in the journal is in the outbox, once for each sink; and none that is not.
pub(super) fn check_told(world: &mut World, run: RunIndex) {
    let truth = &world.runs[run];
    // A run that was exhausted and given more room ends again, and that is told again.
    let ends_of = |event: &&Event| matches!(event.fact, Fact::RunEnded { .. });
    let times = super::journal(world, run).iter().filter(ends_of).count();
    let ends = ["run.completed", "run.failed", "run.stopped", "run.exhausted"];
    let mut sinks: Vec<String> = Vec::new();
    for (kind, sink) in world.store.told(&truth.id) {
        if ends.contains(&kind.as_str()) {
            sinks.push(sink);
        }
    }
    let expected = SINKS.repeat(times);
    if sinks != expected {
        let message = format!("its end is to be told to {sinks:?} and not to {expected:?}");
        world.broke(Some(run), message);
    }
}
