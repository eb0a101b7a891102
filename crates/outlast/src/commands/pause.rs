//! `outlast pause`: let runs rest after the turn they are at.

use outlast_wire::api::{HoldView, PauseAll, RunView};

use super::{each, errors_as};
use crate::Answer;
use crate::args::Pause;
use crate::ask::{Ask, run_path};
use crate::output::{self, figures};
use crate::session::Session;
use crate::world::World;

pub(crate) async fn pause(world: &World, args: Pause) -> Answer {
    let mut session = Session::new(world);
    if args.all {
        let ask = Ask::post("/v1/daemon/pause", &PauseAll { now: args.now });
        let hold: HoldView = session.call(&ask).await?;
        if args.json {
            output::print_json(&hold)?;
        } else {
            output::print_line(&all_line(&hold, args.now))?;
        }
        return Ok(0);
    }
    each(&args.runs, errors_as(args.json), async |run| {
        let view: RunView = session.call(&Ask::order(&run_path(run, "/pause"))).await?;
        if args.json {
            output::print_json(&view)?;
        } else {
            output::print_line(&line(&view))?;
        }
        Ok(0)
    })
    .await
}

fn all_line(hold: &HoldView, now: bool) -> String {
    let runs = figures::count(usize::try_from(hold.runs).unwrap_or(usize::MAX), "run");
    let when = if now { "at once" } else { "after the turn it is at" };
    format!("everything is paused, each of {runs} {when}; outlast resume --all lets it go on")
}

/// A turn that has begun is not cut short.
pub(crate) fn line(view: &RunView) -> String {
    match view.state.as_str() {
        "waiting" | "blocked" | "queued" => format!("paused {}", view.id),
        _ => format!("{} pauses after the turn it is at", view.id),
    }
}
