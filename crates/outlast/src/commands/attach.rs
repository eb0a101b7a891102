//! `outlast attach`: come back to a run.

use outlast_client::ask::{Ask, run_path};
use outlast_client::problem::Problem;
use outlast_client::session::Session;
use outlast_wire::api::{RunView, exit_status};
use outlast_wire::shim::Window;

use crate::args::{Attach, Tail};
use crate::attached::{self, Watched};
use crate::output::{self, waiting};
use crate::progress::{About, Progress};
use crate::signals::Detach;
use crate::world::{self, World};
use crate::{Answer, terminal, tty};

pub(crate) async fn attach(world: &World, args: Attach) -> Answer {
    let detach = Detach::listen()?;
    let mut session = Session::new(&world.client);
    let view: RunView = session.call(&Ask::get(&run_path(&args.run, ""))).await?;
    waiting::tell_if(&view, world)?;
    let goes_on = exit_status(&view.state, view.reason_code.as_ref()).is_none();
    // From here on by id: a name may pass to another run.
    let watched = Watched {
        tail: tail(args.tail, world::window().filter(|_| world.columns().is_some())),
        ..Watched::new(&view.id, Some(output::handle(&view)))
    };
    if view.tty && goes_on && terminal::is_there() {
        return tty::attach(world, session, &watched, detach).await;
    }
    let progress = joined(world, &view);
    attached::attach(world, session, &watched, &progress, detach).await
}

/// How many lines of what is there are shown: what was asked for; else one screen on a terminal, and elsewhere all, byte
/// for byte.
fn tail(asked: Option<Tail>, window: Option<Window>) -> Option<u64> {
    match (asked, window) {
        (Some(Tail::All), _) | (None, None) => None,
        (Some(Tail::Lines(lines)), _) => Some(lines),
        // The first line and the line at the bottom are ours.
        (None, Some(window)) => Some(u64::from(window.rows.saturating_sub(3).max(1))),
    }
}

/// The progress of a run that was there before us.
pub(super) async fn join<'w>(
    world: &'w World,
    session: &mut Session<'w>,
    run: &str,
) -> Result<(Watched, Progress<'w>), Problem> {
    let view: RunView = session.call(&Ask::get(&run_path(run, ""))).await?;
    waiting::tell_if(&view, world)?;
    Ok((Watched::new(&view.id, Some(output::handle(&view))), joined(world, &view)))
}

fn joined<'w>(world: &'w World, view: &RunView) -> Progress<'w> {
    let progress = Progress::new(world, &view.id, About::from(view));
    progress.joined(view);
    progress
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_one_screen_of_what_was_and_a_pipe_all_of_it() {
        let window = Some(Window { rows: 24, cols: 80 });
        assert_eq!(tail(None, window), Some(21));
        assert_eq!(tail(None, None), None);
        assert_eq!(tail(Some(Tail::All), window), None);
        assert_eq!(tail(Some(Tail::Lines(5)), None), Some(5));
    }
}
