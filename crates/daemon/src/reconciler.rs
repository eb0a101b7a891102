//! Carries out the plan of `reconcile`: at the start, whenever something happens that the plan depends on, and every
//! ten minutes while a run is open, in case something was missed.
//!
//! Decides nothing. With no open run it waits for news and has no timer.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{Run, RunId, Time};
use outlast_store::{Entry, Error};

use crate::children;
use crate::conductor;
use crate::lanes::Lane;
use crate::recovery;
use crate::reserve;
use crate::successors;
use crate::supervisor::{Supervisor, strays};
use crate::waiter;
use outlast_conduct::fenced_run::FencedRun;
use outlast_conduct::reconcile::{Desired, Readiness};

#[cfg(test)]
mod tests;

/// Between two looks for what was missed.
const TICK_MS: u64 = 600_000;

/// Carrying a plan out leaves nothing to do but what it has set off itself: a run that could not be read.
const PLANS: usize = 3;

/// Goes on for the daemon's life.
pub(crate) async fn run(supervisor: &Arc<Supervisor>) -> Infallible {
    let mut tick_at = None;
    loop {
        let look_at = reconcile(supervisor);
        let now = supervisor.ground.world.steady();
        tick_at = if supervisor.has_open() { tick_at.or(Some(now.plus_ms(TICK_MS))) } else { None };
        wait(supervisor, earlier(look_at, tick_at), now).await;
        if tick_at.is_some_and(|at| at <= supervisor.ground.world.steady()) {
            tick_at = None;
            look_for_missed(supervisor).await;
        }
    }
}

async fn wait(supervisor: &Supervisor, until: Option<Time>, now: Time) {
    let Some(until) = until else { return supervisor.restarts.news().await };
    let wait = Duration::from_millis(until.ms_since(now));
    // Early or late, everything is looked at again.
    let _elapsed = tokio::time::timeout(wait, supervisor.restarts.news()).await;
}

fn earlier(one: Option<Time>, other: Option<Time>) -> Option<Time> {
    one.into_iter().chain(other).min()
}

/// Takes over every run that is open. One that cannot be read does not keep the others from it.
pub(crate) fn load(supervisor: &Arc<Supervisor>) -> Result<usize, Error> {
    supervisor.load_shared()?;
    supervisor.look_for_strays()?;
    let open = supervisor.ground.store.open_runs()?;
    let mut loaded = HashMap::new();
    for id in &open {
        match supervisor.ground.replay(id) {
            Ok(run) if let Some(why) = supervisor.ahead_of(&run) => {
                supervisor.quarantine_as(id, recovery::BEHIND, why);
            }
            Ok(run) => {
                // The daemon that made it may have died before it could.
                strays::acknowledge(&supervisor.ground.layout.run(id.as_str()));
                supervisor.restarts.push(
                    Desired::of(&run, &supervisor.ground.world.boot),
                    supervisor.is_alive(&run),
                );
                // A run that was at work keeps its slot, before any other run takes one.
                let (is_paced, nothing) = (true, Entry::default());
                let _no_run_waits_yet = supervisor.books.note(&run, is_paced, nothing);
                loaded.insert(id.clone(), run);
            }
            Err(message) => supervisor.quarantine(id, message),
        }
    }
    let parents: Vec<Run> = loaded.values().cloned().collect();
    carry_out(supervisor, loaded);
    children::catch_up(supervisor, &parents)?;
    parents.iter().for_each(|run| successors::look(supervisor, run));
    supervisor.notices.wake_waiting();
    supervisor.notices.prune();
    Ok(open.len())
}

/// Does what is to be done now; says when to look again.
pub(crate) fn reconcile(supervisor: &Arc<Supervisor>) -> Option<Time> {
    carry_out(supervisor, HashMap::new())
}

fn carry_out(supervisor: &Arc<Supervisor>, mut loaded: HashMap<RunId, Run>) -> Option<Time> {
    let mut look_again_at = None;
    for _ in 0..PLANS {
        let plan = supervisor
            .restarts
            .plan(|run| supervisor.handle(run).is_some(), supervisor.ground.world.steady());
        look_again_at = plan.look_again_at;
        for id in &plan.seat {
            match loaded.remove(id) {
                Some(run) => {
                    let first = supervisor.first_news(&run);
                    conductor::start(
                        supervisor,
                        FencedRun::new(run, supervisor.ground.epoch),
                        Some(first),
                    );
                }
                None => take_over(supervisor, id),
            }
        }
        plan.retry.iter().for_each(|id| take_over(supervisor, id));
        plan.adopt.iter().chain(&plan.start).for_each(|id| supervisor.poke(id));
        if plan.seat.is_empty() && plan.retry.is_empty() {
            break;
        }
    }
    look_again_at
}

/// Gives a run without a conductor one, if the run is open and can be read.
pub(crate) fn take_over(supervisor: &Arc<Supervisor>, id: &RunId) {
    if supervisor.handle(id).is_some() {
        return supervisor.restarts.conducted(id);
    }
    let is_open = match supervisor.ground.store.row(id) {
        Ok(row) => row.is_some_and(|row| row.is_open),
        Err(error) => return supervisor.quarantine(id, error.to_string()),
    };
    if !is_open {
        supervisor.release(id);
        return;
    }
    match supervisor.ground.replay(id) {
        Ok(run) if let Some(why) = supervisor.ahead_of(&run) => {
            supervisor.quarantine_as(id, recovery::BEHIND, why);
        }
        Ok(run) => {
            tracing::info!(run = %id, "taken over");
            supervisor.unquarantine(id);
            supervisor.restarts.conducted(id);
            let (parent, first) = (run.clone(), supervisor.first_news(&run));
            conductor::start(supervisor, FencedRun::new(run, supervisor.ground.epoch), Some(first));
            successors::look(supervisor, &parent);
            if let Err(error) = children::catch_up(supervisor, &[parent]) {
                tracing::error!(run = %id, %error, "cannot look for what its children came to");
            }
        }
        Err(message) => supervisor.quarantine(id, message),
    }
}

/// Looks for what no event has told of: a run that is open and has no conductor, one that is open no more, a config
/// that has changed.
async fn look_for_missed(supervisor: &Arc<Supervisor>) {
    supervisor.triggers.table.runs_may_have_ended();
    if supervisor.config().is_err() {
        tracing::warn!("the config is not valid; outlast doctor shows why");
    }
    let (store, layout) = (supervisor.ground.store.clone(), supervisor.ground.layout.clone());
    let look = move || {
        reserve::make(&layout);
        // One that another daemon has started does not tell us when it is frozen.
        waiter::rouse(&layout);
        store.open_runs()
    };
    let open = Lane::Steps.run(look).await;
    let open = match open {
        Ok(Ok(open)) => open,
        Ok(Err(error)) => {
            return tracing::error!(%error, "cannot look for runs without a conductor");
        }
        Err(error) => {
            return tracing::error!(%error, "the search for runs without a conductor died");
        }
    };
    for id in open {
        let has_somebody = supervisor.handle(&id).is_some_and(|it| !it.mailbox.is_closed());
        if has_somebody || supervisor.is_claimed(&id) || supervisor.quarantined().contains_key(&id)
        {
            continue;
        }
        tracing::warn!(run = %id, "open, and has no conductor");
        supervisor.unseat(&id);
        let since = supervisor.ground.world.steady();
        supervisor.restarts.found(Desired {
            run: id,
            readiness: Readiness::Resting,
            priority: 0,
            since,
        });
    }
}

/// Takes over a run that is open and has no conductor: its creation became durable and no client was told.
pub(crate) fn take_over_if_open(supervisor: &Arc<Supervisor>, id: &RunId) {
    let is_open = matches!(supervisor.ground.store.row(id), Ok(Some(row)) if row.is_open);
    if supervisor.handle(id).is_none() && is_open {
        take_over(supervisor, id);
    }
}
