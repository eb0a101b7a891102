//! `outlast wait`: until runs have ended.

use std::time::Duration;

use futures_util::future::select_all;
use outlast_client::ask::{Ask, run_path};
use outlast_client::problem::{DETACHED, Problem, TIMED_OUT};
use outlast_client::session::Session;
use outlast_client::wait::{self, For, ONE_WAIT};
use outlast_wire::api::{RunTree, RunView, Waited, exit_status};
use tokio::time::{Instant, sleep, timeout_at};

use crate::Answer;
use crate::args::Wait;
use crate::output::state::spaced;
use crate::output::{self, outcome, time};
use crate::signals::Detach;
use crate::world::World;

/// An answer that came early without news is not asked for again at once.
const PAUSE: Duration = Duration::from_secs(1);

pub(crate) async fn wait(world: &World, args: Wait) -> Answer {
    let mut detach = Detach::listen()?;
    let waiting = async {
        let mut session = Session::new(&world.client);
        // Every name is looked up at once: a slip must not show only after hours.
        let mut runs = Vec::new();
        for run in &args.runs {
            let view: RunView = session.call(&Ask::get(&run_path(run, ""))).await?;
            runs.push(view);
        }
        let deadline = args.timeout.map(|timeout| Instant::now() + timeout);
        let wait = Waiting { world, session, deadline, json: args.json };
        match (args.any, args.tree) {
            (true, _) => wait.any(runs).await,
            (false, true) => wait.trees(runs).await,
            (false, false) => wait.all(runs).await,
        }
    };
    tokio::select! {
        biased;
        () = detach.asked() => Ok(DETACHED),
        answer = waiting => answer,
    }
}

struct Waiting<'w> {
    world: &'w World,
    session: Session<'w>,
    deadline: Option<Instant>,
    json: bool,
}

impl Waiting<'_> {
    /// The code of the first run in this order that did not complete.
    async fn all(mut self, runs: Vec<RunView>) -> Answer {
        let mut first = 0;
        for run in runs {
            let view = self.one(run).await?;
            let status = self.ended(&view)?;
            if first == 0 {
                first = status;
            }
        }
        Ok(first)
    }

    /// The code of the first run in this order that did not complete; only these are reported, and those below them
    /// are waited for, also those that are made meanwhile.
    async fn trees(mut self, runs: Vec<RunView>) -> Answer {
        for run in &runs {
            loop {
                let tree: RunTree =
                    self.session.call(&Ask::get(&run_path(&run.id, "/tree"))).await?;
                let mut rows = std::iter::once(&tree.run).chain(tree.below());
                let Some(live) = rows.rfind(|row| !row.state.has_ended()) else { break };
                let view: RunView = self.session.call(&Ask::get(&run_path(&live.id, ""))).await?;
                let rested = self.one(view).await?;
                if !rested.state.has_ended() {
                    // It is blocked: only a person lets it go on.
                    return self.ended(&rested);
                }
            }
        }
        self.all(runs).await
    }

    /// The code of the run that was first to end.
    async fn any(mut self, runs: Vec<RunView>) -> Answer {
        let world = self.world;
        let ends = runs.iter().map(|run| Box::pin(wait::for_rest(&world.client, &run.id)));
        let first = select_all(ends);
        let ended = match self.deadline {
            Some(deadline) => timeout_at(deadline, first).await.ok(),
            None => Some(first.await),
        };
        match (ended, runs.first()) {
            (Some((view, _, _)), _) => self.ended(&view?),
            (None, Some(run)) => {
                let now: RunView = self.session.call(&Ask::get(&run_path(&run.id, ""))).await?;
                Err(self.timed_out(&now))
            }
            (None, None) => unreachable!("at least one run is named"),
        }
    }

    async fn one(&mut self, run: RunView) -> Result<RunView, Problem> {
        let mut view = run;
        while !is_at_rest(&view) {
            if self.is_over() {
                return Err(self.timed_out(&view));
            }
            let waited = self.ask(&view.id).await?;
            if !waited.timed_out && !is_at_rest(&waited.run) {
                sleep(PAUSE).await;
            }
            view = waited.run;
        }
        Ok(view)
    }

    async fn ask(&mut self, run: &str) -> Result<Waited, Problem> {
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let wait = left.map_or(ONE_WAIT, |left| left.min(ONE_WAIT));
        self.session.call(&wait::ask(run, For::Rest, wait)).await
    }

    fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    fn ended(&self, view: &RunView) -> Answer {
        if self.json {
            output::print_json(view)?;
        } else {
            outcome::report(view);
        }
        Ok(wait::status(view))
    }

    fn timed_out(&self, view: &RunView) -> Problem {
        let now = self.world.now();
        Problem::new(TIMED_OUT, "timeout", still(view, now))
    }
}

fn is_at_rest(view: &RunView) -> bool {
    exit_status(&view.state, view.reason_code.as_ref()).is_some()
}

/// Its state, what it is at, and what it will not fall behind of.
fn still(view: &RunView, now: jiff::Timestamp) -> String {
    let progress = view.last_progress_at.as_deref().and_then(|at| at.parse().ok());
    let progress = progress.map_or_else(
        || "no output yet".to_owned(),
        |at| format!("progress {}", time::relative(at, now)),
    );
    let RunView { state, turn, attempt, turns_committed, .. } = view;
    let run = output::called(view);
    let phase = match (&view.phase, turn) {
        (Some(phase), _) => spaced(phase),
        (None, 0) => "not started".to_owned(),
        (None, _) => format!("turn {turn} attempt {attempt}"),
    };
    let checkpoint = match (&view.checkpoint, turns_committed) {
        (Some(checkpoint), _) => checkpoint.clone(),
        (None, 0) => "none".to_owned(),
        (None, _) => format!("turn {turns_committed} committed"),
    };
    format!("{run} is still {state}; phase: {phase}; checkpoint: {checkpoint}; {progress}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::sample;

    #[test]
    fn who_waited_in_vain_learns_where_the_run_stands() {
        let now = "2026-11-15T12:00:00Z".parse().expect("a time");
        let mut view = sample::running_loop();
        insta::assert_snapshot!(still(&view, now), @"port is still running; phase: turn 3 attempt 1; checkpoint: turn 2 committed; progress 1m ago");
        (view.phase, view.checkpoint, view.last_progress_at) = (None, None, None);
        insta::assert_snapshot!(still(&view, now), @"port is still running; phase: turn 3 attempt 1; checkpoint: turn 2 committed; no output yet");
        (view.turn, view.turns_committed) = (0, 0);
        insta::assert_snapshot!(still(&view, now), @"port is still running; phase: not started; checkpoint: none; no output yet");
    }
}
