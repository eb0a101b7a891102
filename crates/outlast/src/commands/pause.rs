//! `outlast pause`: let runs rest after the turn they are at.

use outlast_wire::api::{HoldView, RunView};

use super::{each, errors_as};
use crate::args::Pause;
use crate::ask::{Ask, run_path};
use crate::session::Session;
use crate::world::World;
use crate::output::{self, figures};
use crate::Answer;

pub(crate) async fn pause(world: &World, args: Pause) -> Answer {
    let mut session = Session::new(world);
    if args.all {
        let hold: HoldView = session.call(&Ask::order("/v1/daemon/pause")).await?;
        if args.json {
            output::print_json(&hold)?;
        } else {
            output::print_line(&all_line(&hold))?;
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

fn all_line(hold: &HoldView) -> String {
    format!(
        "everything is paused ({} after the turn they are at); outlast resume --all lets it go on",
        count(hold.runs)
    )
}

fn count(runs: u64) -> String {
    figures::count(usize::try_from(runs).unwrap_or(usize::MAX), "run")
}

/// A turn that has begun is not cut short.
fn line(view: &RunView) -> String {
    match view.state.as_str() {
        "waiting" | "blocked" | "queued" => format!("paused {}", view.id),
        _ => format!("{} pauses after the turn it is at", view.id),
    }
}
