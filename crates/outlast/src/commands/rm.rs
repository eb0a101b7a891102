//! `outlast rm`: remove runs that have ended. What still lives is refused by the daemon.

use outlast_client::ask::{Ask, run_path};
use outlast_client::problem::Problem;
use outlast_client::run_id;
use outlast_client::session::Session;
use outlast_wire::api::{RunView, StopRun};
use outlast_wire::codes::Code;

use super::pick::{Kind, Picked, picked};
use super::stop::stop_one;
use super::{each, errors_as};
use crate::Answer;
use crate::args::Rm;
use crate::output::{self, errors, figures};
use crate::world::World;

pub(crate) async fn rm(world: &World, args: Rm) -> Answer {
    let mut session = Session::new(&world.client);
    let keep = if args.keep_workspace { "?keep_workspace=true" } else { "" };
    let kind = if args.force { Kind::Any } else { Kind::Ended };
    let Picked { runs, passed } =
        picked(&mut session, &args.runs, &args.pick, kind, args.all).await?;
    if runs.is_empty() && passed == 0 {
        output::tell("no run matches");
    }
    let removed = each(&runs, errors_as(args.json), async |run| {
        // By its id: a name may be another run's by the time that a lost answer is asked for again.
        if args.force {
            let order = StopRun { now: false, id: Some(run_id::new()?), tree: false };
            stop_one(&mut session, run, &order).await?;
        }
        let (id, told) = match session.call::<RunView>(&Ask::get(&run_path(run, ""))).await {
            Ok(view) => (view.id.clone(), told(run, &view)),
            // One that cannot be read, or that the journal does not know, can be removed too.
            Err(problem) if problem.is(Code::UnreadableRun) || problem.is(Code::NotInJournal) => {
                (problem.run().unwrap_or(run).to_owned(), run.to_owned())
            }
            Err(problem) => return Err(problem),
        };
        match session.fetch(&Ask::delete(&run_path(&id, keep))).await {
            // Removed the first time, and only the answer was lost.
            Err(problem) if session.was_repeated() && problem.is(Code::UnknownRun) => {}
            answer => drop(answer?),
        }
        output::print_line(&format!("removed {told}"))?;
        Ok(0)
    })
    .await?;
    match (passed, runs.is_empty()) {
        (0, _) => Ok(removed),
        (_, true) => Err(not_ended(&args, passed)),
        (_, false) => {
            errors::report(&not_ended(&args, passed), errors_as(args.json));
            Ok(removed)
        }
    }
}

/// What is said to be removed: the run, whatever it was found by. A trigger's name finds the newest of its runs.
fn told(typed: &str, view: &RunView) -> String {
    match view.name.as_deref() {
        Some(name) if name != typed && view.id != typed => format!("{name} ({})", view.id),
        Some(name) => name.to_owned(),
        None => view.id.clone(),
    }
}

/// Runs that match and were passed over, since they go on.
fn not_ended(args: &Rm, passed: usize) -> Problem {
    let which = args.pick.state.as_ref().map(|state| format!(" --state {state}"));
    let labels: String =
        args.pick.label.iter().map(|(key, value)| format!(" --label {key}={value}")).collect();
    let all = if args.all { " --all" } else { "" };
    let runs = figures::count(passed, "matching run");
    let have = if passed == 1 { "has" } else { "have" };
    Problem::refusal("run_is_live", format!("{runs} {have} not ended"))
        .hint(format_args!("outlast rm --force{all}{}{labels}", which.unwrap_or_default()))
}
