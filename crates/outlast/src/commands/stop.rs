//! `outlast stop`: end runs and everything they started, and return when that is proven.

use std::time::Duration;

use outlast_client::ask::{Ask, run_path};
use outlast_client::problem::Problem;
use outlast_client::run_id;
use outlast_client::session::Session;
use outlast_client::wait::{self, For};
use outlast_wire::api::{RunView, StopRun, Waited};
use outlast_wire::codes::Code;
use outlast_wire::words::{ReasonCode, StateName};
use tokio::time::Instant;

use super::{each, errors_as};
use crate::Answer;
use crate::args::Stop;
use crate::output::{self, printable};
use crate::world::World;

/// Longer than any grace between asking and killing.
const LONGEST: Duration = Duration::from_secs(90);
/// Between two looks at whether the stop has failed.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) async fn stop(world: &World, args: Stop) -> Answer {
    let mut session = Session::new(&world.client);
    each(&args.runs, errors_as(args.json), async |run| {
        let order = StopRun { now: args.now, id: Some(run_id::new()?) };
        let (view, line) = stop_one(&mut session, run, &order).await?;
        if args.json {
            output::print_json(&view)?;
        } else {
            output::print_line(&line)?;
        }
        Ok(0)
    })
    .await
}

async fn stop_one(
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
    if let Some(view) = before.as_ref().filter(|view| had_ended && view.survivors.is_empty()) {
        let line = format!("{} has already ended: {}", view.id, view.state);
        return Ok((view.clone(), line));
    }
    let id = before.as_ref().map_or(run, |view| view.id.as_str());
    let ask = Ask::post(&run_path(id, "/stop"), order).long_poll(LONGEST);
    let ordered: RunView = match (session.call(&ask).await, before) {
        // It ended while we asked; what is left of it is still waited for.
        (Err(problem), Some(view)) if problem.is(Code::HasEnded) => view,
        (answer, _) => answer?,
    };
    let view = until_empty(session, ordered).await?;
    let line = match had_ended {
        true => format!("stopped what {} had left behind", view.id),
        false if view.state == StateName::Stopped => format!("stopped {}", view.id),
        false => format!("{} ended by itself before: {}", view.id, view.state),
    };
    Ok((view, line))
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
    let message = format!("run {} could not be proven stopped; {left}", view.id);
    Problem::new(1, "stop_incomplete", message).hint(format_args!("outlast stop --now {}", view.id))
}
