//! `outlast pause`: let runs rest after the turn they are at.

use outlast_client::ask::{Ask, run_path};
use outlast_client::problem::Problem;
use outlast_client::run_id;
use outlast_client::session::Session;
use outlast_wire::api::{HoldView, OrderRun, PauseAll, RunView};

use super::{each, errors_as};
use crate::Answer;
use crate::args::Pause;
use crate::output::{self, figures, rest};
use crate::world::World;

pub(crate) async fn pause(world: &World, args: Pause) -> Answer {
    if args.now && !args.all {
        let message = "--now has no effect without --all: a run pauses after the turn it is at";
        let runs = args.runs.join(" ");
        return Err(
            Problem::refusal("no_effect", message).hint(format_args!("outlast pause {runs}"))
        );
    }
    let mut session = Session::new(&world.client);
    if args.all {
        let order = PauseAll { now: args.now, id: Some(run_id::new()?) };
        let ask = Ask::post("/v1/daemon/pause", &order);
        let hold: HoldView = session.call(&ask).await?;
        if args.json {
            output::print_json(&hold)?;
        } else {
            output::print_line(&all_line(&hold, args.now))?;
        }
        return Ok(0);
    }
    each(&args.runs, errors_as(args.json), async |run| {
        let view: RunView = session.call(&Ask::get(&run_path(run, ""))).await?;
        let order = OrderRun { id: Some(run_id::new()?), seq: Some(view.seq), tree: args.tree };
        let ask = Ask::post(&run_path(&view.id, "/pause"), &order);
        let view: RunView = session.call(&ask).await?;
        if args.json {
            output::print_json(&view)?;
        } else {
            output::print_line(&rest::paused(&view))?;
        }
        Ok(0)
    })
    .await
}

fn all_line(hold: &HoldView, now: bool) -> String {
    if let Some(line) = superseded_line(hold) {
        return line;
    }
    let runs = figures::count(usize::try_from(hold.runs).unwrap_or(usize::MAX), "run");
    let when = if now { "now" } else { "each after its current turn" };
    format!("paused everything: {runs}, {when}; outlast resume --all resumes them")
}

/// An order to all that was taken, and after which another client has given another.
pub(crate) fn superseded_line(hold: &HoldView) -> Option<String> {
    let later = hold.superseded.as_ref()?;
    let by = later.by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
    let now = match hold.held_since {
        Some(_) => "everything was paused",
        None => "everything was resumed",
    };
    Some(format!("done, but {now} since, {}{by}", later.at))
}
