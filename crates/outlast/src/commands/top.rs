//! `outlast top`: all runs on one screen, live.

use outlast_client::problem::Problem;

use crate::args::Top;
use crate::world::World;
use crate::{Answer, terminal, tui};

pub(crate) async fn top(world: &World, args: Top) -> Answer {
    if !terminal::is_there() {
        return Err(Problem::refusal("no_terminal", "top needs a terminal to draw on")
            .hint("outlast ps --json"));
    }
    if world.is_dumb() {
        return Err(
            Problem::refusal("dumb_terminal", "TERM=dumb cannot be drawn on").hint("outlast ps")
        );
    }
    tui::show(world, args.open).await
}
