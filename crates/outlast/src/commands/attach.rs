//! `outlast attach`: come back to a run.

use outlast_client::ask::{Ask, run_path};
use outlast_client::problem::Problem;
use outlast_client::session::Session;
use outlast_wire::api::{RunView, exit_status};

use crate::args::Attach;
use crate::progress::{About, Progress};
use crate::signals::Detach;
use crate::world::World;
use crate::{Answer, attached, terminal, tty};

pub(crate) async fn attach(world: &World, args: Attach) -> Answer {
    let detach = Detach::listen()?;
    let mut session = Session::new(&world.client);
    let view: RunView = session.call(&Ask::get(&run_path(&args.run, ""))).await?;
    let goes_on = exit_status(&view.state, view.reason_code.as_ref()).is_none();
    // From here on by id: a name may pass to another run.
    if view.tty && goes_on && terminal::is_there() {
        tty::attach(world, session, &view.id, detach).await
    } else {
        let progress = joined(world, &view);
        attached::attach(world, session, &view.id, &progress, detach).await
    }
}

/// The progress of a run that was there before us.
pub(super) async fn join<'w>(
    world: &'w World,
    session: &mut Session<'w>,
    run: &str,
) -> Result<Progress<'w>, Problem> {
    let view: RunView = session.call(&Ask::get(&run_path(run, ""))).await?;
    Ok(joined(world, &view))
}

fn joined<'w>(world: &'w World, view: &RunView) -> Progress<'w> {
    let progress = Progress::new(world, &view.id, About::from(view));
    progress.joined(view);
    progress
}
