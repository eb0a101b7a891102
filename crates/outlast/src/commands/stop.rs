//! `outlast stop`: end runs and everything they started, and return when that is proven.

use std::time::Duration;

use outlast_client::ask::{Ask, run_path};
use outlast_client::problem::Problem;
use outlast_client::run_id;
use outlast_client::session::Session;
use outlast_client::wait::{self, For};
use outlast_wire::api::{RunTree, RunView, StopRun, Waited};
use outlast_wire::codes::Code;
use outlast_wire::words::{ReasonCode, StateName};
use tokio::time::Instant;

use super::pick::{Kind, Picked, picked};
use super::{each, errors_as};
use crate::Answer;
use crate::args::Stop;
use crate::output::{self, called, figures, printable};
use crate::world::World;

/// Longer than any grace between asking and killing.
const LONGEST: Duration = Duration::from_secs(90);
/// Between two looks at whether the stop has failed.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) async fn stop(world: &World, args: Stop) -> Answer {
    let mut session = Session::new(&world.client);
    let Picked { runs, .. } =
        picked(&mut session, &args.runs, &args.pick, Kind::Live, args.all).await?;
    if runs.is_empty() {
        output::tell("no run matches");
    }
    each(&runs, errors_as(args.json), async |run| {
        let order = StopRun { now: args.now, id: Some(run_id::new()?), tree: args.tree };
        let (view, line) = stop_one(&mut session, run, &order).await?;
        if args.json {
            output::print_json(&view)?;
        } else {
            output::print_line(&line)?;
            if !args.tree {
                tell_left(&mut session, &view).await?;
            }
        }
        Ok(0)
    })
    .await
}

/// Says that runs below a stopped one go on, and how to stop them too.
async fn tell_left(session: &mut Session<'_>, view: &RunView) -> Result<(), Problem> {
    if view.children.is_empty() {
        return Ok(());
    }
    let tree: RunTree = session.call(&Ask::get(&run_path(&view.id, "/tree"))).await?;
    let left = tree.below().iter().filter(|row| !row.state.has_ended()).count();
    if left > 0 {
        let verb = if left == 1 { "goes" } else { "go" };
        output::tell(&format!("{} below it {verb} on", figures::count(left, "run")));
        output::tell_hint(&format!("outlast stop --tree {}", called(view)));
    }
    Ok(())
}

pub(super) async fn stop_one(
    session: &mut Session<'_>,
    run: &str,
    order: &StopRun,
) -> Result<(RunView, String), Problem> {
    let before = match session.call::<RunView>(&Ask::get(&run_path(run, ""))).await {
        Ok(view) => Some(view),
        // The journal has forgotten it, and it cannot be shown before what is alive of it has ended.
        Err(problem) if problem.is(Code::ErrandIsLive) => None,
        Err(problem) => return Err(problem),
    };
    let had_ended = before.as_ref().is_some_and(has_ended);
    if let Some(view) =
        before.as_ref().filter(|view| had_ended && view.survivors.is_empty() && !order.tree)
    {
        let line = format!("{} has already ended: {}", called(view), view.state);
        return Ok((view.clone(), line));
    }
    let left_over = before.as_ref().map_or(0, |view| view.survivors.len());
    let id = before.as_ref().map_or(run, |view| view.id.as_str());
    let live = match &before {
        Some(view) if order.tree => live_below(session, &view.id).await?,
        Some(_) | None => 0,
    };
    let ask = Ask::post(&run_path(id, "/stop"), order).long_poll(LONGEST);
    let ordered: RunView = match (session.call(&ask).await, before) {
        // It ended while we asked; what is left of it is still waited for.
        (Err(problem), Some(view)) if problem.is(Code::HasEnded) => view,
        (answer, _) => answer?,
    };
    let view = until_empty(session, ordered).await?;
    if order.tree {
        until_empty_below(session, &view.id).await?;
    }
    let below = figures::count(live, "run");
    let line = match had_ended {
        true if order.tree && live == 0 && left_over == 0 => {
            format!("{} and all below it have already ended", called(&view))
        }
        true if order.tree && live > 0 => {
            format!("stopped {below} below {}, which had already ended", called(&view))
        }
        false if order.tree => format!("stopped {} and {below} below it", called(&view)),
        true if left_over == 1 => format!("killed 1 leftover process of {}", called(&view)),
        true => format!("killed {left_over} leftover processes of {}", called(&view)),
        false if view.state == StateName::Stopped => format!("stopped {}", called(&view)),
        false => format!("{} ended before the stop: {}", called(&view), view.state),
    };
    Ok((view, line))
}

/// How many runs below one have not ended.
async fn live_below(session: &mut Session<'_>, run: &str) -> Result<usize, Problem> {
    let tree: RunTree = session.call(&Ask::get(&run_path(run, "/tree"))).await?;
    Ok(tree.below().iter().filter(|row| !row.state.has_ended() || row.survivors > 0).count())
}

/// Waits until every run below one has ended.
async fn until_empty_below(session: &mut Session<'_>, run: &str) -> Result<(), Problem> {
    let tree: RunTree = session.call(&Ask::get(&run_path(run, "/tree"))).await?;
    for row in tree.below().iter().filter(|row| !row.state.has_ended() || row.survivors > 0) {
        let view: RunView = session.call(&Ask::get(&run_path(&row.id, ""))).await?;
        until_empty(session, view).await?;
    }
    Ok(())
}

async fn until_empty(session: &mut Session<'_>, ordered: RunView) -> Result<RunView, Problem> {
    let deadline = Instant::now() + LONGEST;
    let mut view = ordered;
    loop {
        let waited: Waited = session.call(&wait::ask(&view.id, For::Empty, LOOK)).await?;
        view = waited.run;
        if !waited.timed_out && has_ended(&view) && view.survivors.is_empty() {
            return Ok(view);
        }
        if is_incomplete(&view) || Instant::now() >= deadline {
            return Err(incomplete(&view));
        }
    }
}

fn has_ended(view: &RunView) -> bool {
    view.state.has_ended()
}

fn is_incomplete(view: &RunView) -> bool {
    view.reason_code.as_ref().is_some_and(|code| *code == ReasonCode::StopIncomplete)
}

/// "Stopped" is said only of a tree that is proven empty.
fn incomplete(view: &RunView) -> Problem {
    let survivors: Vec<String> = view
        .survivors
        .iter()
        .map(|survivor| format!("pid {} ({})", survivor.pid, printable(&survivor.command)))
        .collect();
    let left = match survivors.as_slice() {
        [] => format!("it is still {}", view.state),
        some => format!("still alive: {}", some.join(", ")),
    };
    let run = called(view);
    let message = format!("run {run} could not be proven stopped; {left}");
    Problem::new(1, "stop_incomplete", message).hint(format_args!("outlast stop --now {run}"))
}
