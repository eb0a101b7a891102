//! `outlast resume`: let runs go on that are paused or blocked.

use outlast_client::ask::{Ask, run_path};
use outlast_client::run_id;
use outlast_client::session::Session;
use outlast_wire::api::{HoldView, OrderRun, RaiseRun, ResumeAll, RunView};

use super::pause::superseded_line;
use super::pick::{Kind, Picked, picked};
use super::run::vars;
use super::{each, errors_as};
use crate::args::Resume;
use crate::output::{rest, waiting};
use crate::world::World;
use crate::{Answer, loop_file, output};

pub(crate) async fn resume(world: &World, args: Resume) -> Answer {
    let mut session = Session::new(&world.client);
    loop_file::mention_wrong_config(world)?;
    if args.all {
        let order = ResumeAll { id: Some(run_id::new()?) };
        let hold: HoldView = session.call(&Ask::post("/v1/daemon/resume", &order)).await?;
        if args.json {
            output::print_json(&hold)?;
        } else {
            output::print_line(&all_line(&hold))?;
        }
        return Ok(0);
    }
    let Picked { runs, .. } =
        picked(&mut session, &args.runs, &args.pick, Kind::Resting, false).await?;
    if runs.is_empty() {
        output::tell("no run matches");
    }
    each(&runs, errors_as(args.json), async |run| {
        let view: RunView = session.call(&Ask::get(&run_path(run, ""))).await?;
        if rest::was_ended_by_budget(&view) {
            return after_budget(world, &mut session, &view, args.json).await;
        }
        let order = OrderRun {
            id: Some(run_id::new()?),
            seq: args.seq.or(Some(view.seq)),
            tree: args.tree,
        };
        let ask = Ask::post(&run_path(&view.id, "/resume"), &order);
        let view: RunView = session.call(&ask).await?;
        if args.json {
            output::print_json(&view)?;
        } else {
            output::print_line(&format!("resumed {}", output::called(&view)))?;
            waiting::tell_if(&view, world)?;
        }
        Ok(0)
    })
    .await
}

/// Lets a run go on that a shared budget has ended. Its environment was removed when it ended, so it gets ours.
async fn after_budget(
    world: &World,
    session: &mut Session<'_>,
    before: &RunView,
    json: bool,
) -> Answer {
    let (id, env) = (Some(run_id::new()?), vars(world.client.env.clone()));
    let order = RaiseRun { id, env, ..RaiseRun::default() };
    let ask = Ask::post(&run_path(&before.id, "/raise"), &order);
    let after: RunView = session.call(&ask).await?;
    if json {
        output::print_json(&after)?;
    } else {
        let how = match rest::is_plain_command(&after) {
            true => "its command starts again as a new attempt",
            false => "it goes on where it was",
        };
        output::print_line(&format!("resumed {}: {how}", output::called(&after)))?;
        waiting::tell_if(&after, world)?;
    }
    Ok(0)
}

fn all_line(hold: &HoldView) -> String {
    if let Some(line) = superseded_line(hold) {
        return line;
    }
    // An order that was taken before has found what it was for.
    match hold.held_before.is_some() || hold.existed {
        true => "resumed all".to_owned(),
        false => "nothing to resume: pause --all is not in effect".to_owned(),
    }
}
