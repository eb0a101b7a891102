//! The real processes of a step: they begin, end, and are signalled.

use crate::agent;
use crate::tree::{Main, Other, Signal, Who};
use crate::truth;
use crate::world::{Key, World};

/// The child passes its barrier: from here on it is the command.
pub(crate) fn exec(world: &mut World, key: Key) {
    let Main::AtBarrier(who) = world.site(key).tree.main else { return };
    if draw_exec_failure(world, key) {
        return world.site(key).tree.main = Main::Dead(None);
    }
    truth::on_exec(world, key);
    world.stats.executions += 1;
    world.note(|| format!("  {key}: exec"));
    let is_endless = agent::draw_endless(world, key);
    let others = draw_others(world);
    let calls = agent::draw_calls(world, key);
    let site = world.site(key);
    site.executions += 1;
    site.is_endless = is_endless;
    site.calls = (calls, 0);
    site.tree.main = Main::Running(who);
    site.tree.others = others;
}

fn draw_exec_failure(world: &mut World, key: Key) -> bool {
    let fails = world.rng.chance(world.faults.exec_failure);
    if fails {
        world.note(|| format!("  {key}: exec fails"));
    }
    fails
}

/// The descendants that a command starts.
fn draw_others(world: &mut World) -> Vec<Other> {
    let count = if world.rng.chance(250) { world.rng.between(1, 2) } else { 0 };
    (0..count)
        .map(|_| {
            let who = fresh(world);
            let kills = if world.rng.chance(120) {
                None
            } else {
                Some(u8::try_from(world.rng.below(6)).expect("small"))
            };
            Other { who, kills, leaves_by_itself: world.rng.chance(500), is_killed: false }
        })
        .collect()
}

pub(crate) fn fresh(world: &mut World) -> Who {
    let id = world.fresh();
    // Numbers come again, start times do not.
    Who { pid: 100 + u32::try_from(id % 7).expect("small"), start: id }
}

/// Time passes for the processes of one attempt.
pub(crate) fn step(world: &mut World, key: Key) {
    let has_shim = world.shims.values().any(|shim| shim.key == key && shim.has_command());
    let Some(site) = world.sites.get_mut(&key) else { return };
    match site.tree.main {
        Main::AtBarrier(_) if !has_shim => {
            site.tree.main = Main::Dead(None);
        }
        // A script that has calls to make rarely ends before.
        Main::Running(_)
            if !site.is_endless && world.rng.chance(if site.calls.0 > 0 { 40 } else { 300 }) =>
        {
            agent::end_by_itself(world, key);
        }
        Main::AtBarrier(_) | Main::Running(_) | Main::Absent | Main::Dead(_) => {}
    }
    let World { sites, rng, .. } = world;
    if let Some(site) = sites.get_mut(&key) {
        site.tree.others.retain(|other| {
            let is_dying = other.is_killed && other.kills.is_some() && rng.chance(300);
            !(is_dying || other.leaves_by_itself && rng.chance(80))
        });
    }
    note_exit(world, key);
}

/// Keeps what the command returned for later comparison.
fn note_exit(world: &mut World, key: Key) {
    let attempt = world.site(key);
    if let Main::Dead(Some(exit)) = attempt.tree.main
        && attempt.exit.is_none()
    {
        attempt.exit = Some(exit);
        world.note(|| format!("  {key}: the command is gone with {exit:?}"));
    }
}

/// Signals the real processes of an attempt.
pub(crate) fn signal(world: &mut World, key: Key, signal: Signal) {
    let World { sites, rng, .. } = world;
    if let Some(site) = sites.get_mut(&key) {
        site.tree.signal(signal, rng);
    }
    note_exit(world, key);
}
