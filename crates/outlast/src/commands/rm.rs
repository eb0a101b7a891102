//! `outlast rm`: remove runs that have ended. What still lives is refused by the daemon.

use super::{each, errors_as};
use crate::Answer;
use crate::args::Rm;
use crate::ask::{Ask, run_path};
use crate::output;
use crate::session::Session;
use crate::world::World;

pub(crate) async fn rm(world: &World, args: Rm) -> Answer {
    let mut session = Session::new(world);
    let keep = if args.keep_workspace { "?keep_workspace=true" } else { "" };
    each(&args.runs, errors_as(args.json), async |run| {
        session.fetch(&Ask::delete(&run_path(run, keep))).await?;
        output::print_line(&format!("removed {run}"))?;
        Ok(0)
    })
    .await
}
