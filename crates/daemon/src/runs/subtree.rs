//! Orders to a run with all below it: pause and resume. A stop is the engine's own, because it has to reach children
//! that are made while it is given.
//!
//! The same order goes to each run under one id, the nearest runs first, so that giving it again is harmless. A run below
//! that does not take it, because it has ended or is not paused, is passed over.

use std::sync::Arc;

use futures_util::future::join_all;
use outlast_engine::{By, DEEPEST, Input, Order, Run, RunId, StopMode};

use super::find::snapshot_of;
use super::orders::refuse_pause;
use super::tell::tell;
use crate::lanes::blocking;
use crate::refusal::Answer;
use crate::supervisor::Supervisor;

/// The runs below one that have not ended, the nearest first.
pub(crate) async fn open_below(supervisor: &Arc<Supervisor>, run: &RunId) -> Answer<Vec<RunId>> {
    let (supervisor, run) = (supervisor.clone(), run.clone());
    blocking(move || {
        let mut open = Vec::new();
        let mut level = vec![run];
        for _ in 0..DEEPEST {
            let mut next = Vec::new();
            for parent in &level {
                let children = supervisor.ground.store.children(parent)?;
                open.extend(children.iter().filter(|row| row.is_open).map(|row| row.id.clone()));
                next.extend(children.into_iter().map(|row| row.id));
            }
            level = next;
        }
        Ok(open)
    })
    .await
}

/// Gives an order to the runs below one, and says to how many. `input` is what a run is told, if it is for that run at all.
async fn give(
    supervisor: &Arc<Supervisor>,
    run: &RunId,
    input: impl Fn(&Run) -> Option<Input>,
) -> Answer<usize> {
    let below = open_below(supervisor, run).await?;
    let told = below.iter().map(async |id| {
        let before = snapshot_of(supervisor, id).await?.run;
        match input(&before).filter(|_| !before.has_ended()) {
            Some(input) => tell(supervisor, id, input).await.map(|_| 1),
            None => Ok(0),
        }
    });
    join_all(told).await.into_iter().sum()
}

pub(crate) async fn pause(
    supervisor: &Arc<Supervisor>,
    run: &RunId,
    id: &str,
    by: Option<By>,
) -> Answer<usize> {
    let order = Order { id: Some(id.to_owned()), by, ..Order::default() };
    give(supervisor, run, |before| {
        refuse_pause(before, None).is_ok().then(|| Input::PauseAsked(order.clone()))
    })
    .await
}

/// Takes pauses back. What is blocked waits for an answer of its own.
pub(crate) async fn resume(
    supervisor: &Arc<Supervisor>,
    run: &RunId,
    id: &str,
    by: Option<By>,
) -> Answer<usize> {
    give(supervisor, run, |before| {
        let is_for_it = before.is_paused && !before.state.is_blocked();
        let (id, by, answers) = (Some(id.to_owned()), by.clone(), before.releases(None));
        is_for_it.then_some(Input::ResumeAsked(Order { id, by, answers, said: None }))
    })
    .await
}

/// Stops what is left below a run that has ended.
pub(crate) async fn stop(
    supervisor: &Arc<Supervisor>,
    run: &RunId,
    id: &str,
    by: Option<By>,
    mode: StopMode,
) -> Answer<usize> {
    let order = Order { id: Some(id.to_owned()), by, ..Order::default() };
    give(supervisor, run, |_| Some(Input::StopTreeAsked { mode, order: order.clone() })).await
}
