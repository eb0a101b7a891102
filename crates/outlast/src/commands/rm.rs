//! `outlast rm`: remove runs that have ended. What still lives is refused by the daemon.

use outlast_client::ask::{Ask, run_path};
use outlast_client::session::Session;
use outlast_wire::api::RunView;
use outlast_wire::codes::Code;

use super::{each, errors_as};
use crate::Answer;
use crate::args::Rm;
use crate::output;
use crate::world::World;

pub(crate) async fn rm(world: &World, args: Rm) -> Answer {
    let mut session = Session::new(&world.client);
    let keep = if args.keep_workspace { "?keep_workspace=true" } else { "" };
    each(&args.runs, errors_as(args.json), async |run| {
        // By its id: a name may be another run's by the time that a lost answer is asked for again.
        let id = match session.call::<RunView>(&Ask::get(&run_path(run, ""))).await {
            Ok(view) => view.id,
            // One that cannot be read, or that the journal does not know, can be removed too.
            Err(problem) if problem.is(Code::UnreadableRun) || problem.is(Code::NotInJournal) => {
                problem.run().unwrap_or(run).to_owned()
            }
            Err(problem) => return Err(problem),
        };
        match session.fetch(&Ask::delete(&run_path(&id, keep))).await {
            // Removed the first time, and only the answer was lost.
            Err(problem) if session.was_repeated() && problem.is(Code::UnknownRun) => {}
            answer => drop(answer?),
        }
        output::print_line(&format!("removed {run}"))?;
        Ok(0)
    })
    .await
}
