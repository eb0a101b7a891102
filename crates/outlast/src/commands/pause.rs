//! `outlast pause`: let runs rest after the turn they are at.

use outlast_wire::api::RunView;

use super::{each, errors_as};
use crate::args::Pause;
use crate::ask::{Ask, run_path};
use crate::session::Session;
use crate::world::World;
use crate::{Answer, output};

pub(crate) async fn pause(world: &World, args: Pause) -> Answer {
    let mut session = Session::new(world);
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

/// A turn that has begun is not cut short.
pub(crate) fn line(view: &RunView) -> String {
    match view.state.as_str() {
        "waiting" | "blocked" | "queued" => format!("paused {}", view.id),
        _ => format!("{} pauses after the turn it is at", view.id),
    }
}
