//! A command runs: whether it may, and whether the same has run before.

use outlast_engine::{BootId, Hook, Purpose, Run, Step, ToolClass, Undo};

use super::broke_unless;
use crate::world::{Key, RunIndex, World};

/// The journal means a step to run.
pub(super) fn on_meant(world: &mut World, key: Key, boot: &BootId) {
    let alive = alive_beside(world, key);
    let errand = world.runs[key.run].known.run().and_then(Run::live_errand);
    let purpose = errand.map(|errand| errand.purpose.clone());
    let turn = world.runs[key.run].known.run().map_or(0, |known| known.turns_committed);
    let site = world.site(key);
    site.boot = Some(boot.clone());
    site.purpose = purpose.map(|purpose| (purpose, turn));
    let what = format!("meant to start while this was alive: {}", alive.join(", "));
    broke_unless(world, key, alive.is_empty(), &what);
}

/// A command is about to run.
pub(crate) fn on_exec(world: &mut World, key: Key) {
    let alive = alive_beside(world, key);
    let site = world.site(key);
    let (executions, has_ended, is_meant) = (site.executions, site.has_ended, site.boot.is_some());
    broke_unless(world, key, is_meant, "executed although the journal does not mean to");
    broke_unless(world, key, executions == 0, "executed twice");
    broke_unless(world, key, !has_ended, "executed after the journal said that it had ended");
    let what = format!("executed while this was alive: {}", alive.join(", "));
    broke_unless(world, key, alive.is_empty(), &what);
    match key.step {
        Step::Attempt { turn, .. } => on_attempt(world, key, turn),
        Step::Errand { .. } => on_errand(world, key),
    }
}

fn alive_beside(world: &World, key: Key) -> Vec<String> {
    let others = world.sites.iter().filter(|(other, _)| other.run == key.run && **other != key);
    others.filter(|(_, site)| site.tree.runs()).map(|(other, _)| other.to_string()).collect()
}

fn on_attempt(world: &mut World, key: Key, turn: u32) {
    let is_committed = world.runs[key.run].known.committed.contains(&turn);
    broke_unless(world, key, !is_committed, "executed after its turn was committed");
    let truth = &world.runs[key.run];
    let checks = truth.spec.checks.before_run.len();
    let checks = (0..u32::try_from(checks).expect("few")).map(|check| Purpose::Ready { check });
    let hook = truth.spec.hooks.before_run.is_some();
    let hook = hook.then_some(Purpose::Hook { hook: Hook::BeforeRun });
    let is_ready = checks.chain(hook).all(|purpose| truth.known.passed.contains(&purpose));
    broke_unless(world, key, is_ready, "executed before the host had found it ready");
}

fn on_errand(world: &mut World, key: Key) {
    let Some((purpose, turn)) = world.site(key).purpose.clone() else {
        return broke_unless(world, key, false, "executed without a purpose");
    };
    match &purpose {
        Purpose::Tool { call, name, key: call_key } => {
            world.stats.calls += 1;
            let has_completed = world.runs[key.run].known.completed_keys.contains(call_key);
            broke_unless(world, key, !has_completed, "a call was made again that has completed");
            if is_unsafe(world, key.run, name) {
                let again = ran_before(world, key, |(other, its_turn)| {
                    *its_turn == turn
                        && matches!(other, Purpose::Tool { call: its, .. } if its == call)
                });
                broke_unless(world, key, !again, "an unsafe call was made twice");
            }
        }
        Purpose::Hook { hook: Hook::AfterRun } => {
            world.stats.cleaned_up += 1;
            let opened = world.runs[key.run].known.errands_before;
            let is_of_this_end =
                |other: &Key| matches!(other.step, Step::Errand { errand } if errand > opened);
            let same = others_that_ran(world, key, |(other, _)| *other == purpose);
            let again = same.iter().any(is_of_this_end);
            broke_unless(world, key, !again, "after_run ran twice");
            let truth = &world.runs[key.run];
            let before = Purpose::Hook { hook: Hook::BeforeRun };
            let is_ready =
                truth.spec.hooks.before_run.is_none() || truth.known.passed.contains(&before);
            broke_unless(world, key, is_ready, "after_run ran without a good before_run");
        }
        Purpose::Restore { to } => on_restore(world, key, to),
        Purpose::Hook { .. }
        | Purpose::Checkout
        | Purpose::Ready { .. }
        | Purpose::Done { .. }
        | Purpose::Snapshot { .. } => {}
    }
}

/// A restore removes what an attempt did, so what it did is kept first, and no process of the attempt is left.
fn on_restore(world: &mut World, key: Key, to: &str) {
    world.stats.restored += 1;
    let run = world.runs[key.run].known.run();
    let known = run.map(|run| &run.snapshots);
    let asked = known.and_then(|it| it.asked.as_ref());
    let is_kept = asked.is_some() || known.is_some_and(|it| matches!(it.undo, Undo::Kept { .. }));
    let point = asked.map(|it| &it.point).or_else(|| known.and_then(|it| it.point.as_ref()));
    let is_point = point.is_some_and(|at| at.commit == to);
    broke_unless(world, key, is_kept, "a restore ran before what was found was kept");
    broke_unless(world, key, is_point, "a restore went elsewhere than to the last settled turn");
}

fn is_unsafe(world: &World, run: RunIndex, name: &str) -> bool {
    let tool = world.runs[run].spec.tools.iter().find(|tool| tool.name == name);
    tool.is_some_and(|tool| tool.class == ToolClass::Unsafe)
}

fn ran_before(world: &World, key: Key, is_same: impl Fn(&(Purpose, u32)) -> bool) -> bool {
    !others_that_ran(world, key, is_same).is_empty()
}

fn others_that_ran(world: &World, key: Key, is_same: impl Fn(&(Purpose, u32)) -> bool) -> Vec<Key> {
    let others = world.sites.iter().filter(|(other, _)| other.run == key.run && **other != key);
    others
        .filter(|(_, site)| site.executions > 0)
        .filter(|(_, site)| site.purpose.as_ref().is_some_and(&is_same))
        .map(|(other, _)| *other)
        .collect()
}
