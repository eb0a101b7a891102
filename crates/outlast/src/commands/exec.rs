//! `outlast exec` and `outlast path`: the directory that a run works in.

use std::path::{Path, PathBuf};

use outlast_client::ask::{Ask, run_path};
use outlast_client::problem::Problem;
use outlast_client::session::Session;
use outlast_wire::api::RunView;

use crate::args;
use crate::world::World;
use crate::{Answer, output};

/// Becomes the command: this terminal, these signals and the exit code are its own.
pub(crate) async fn exec(world: &World, args: args::Exec) -> Answer {
    let dir = workspace(world, &args.run).await?;
    Err(world.become_command(&args.command, &dir))
}

pub(crate) async fn path(world: &World, args: args::Path) -> Answer {
    let dir = workspace(world, &args.run).await?;
    output::print_line(&dir.display().to_string())?;
    Ok(0)
}

/// The workspace of a run, if it is there.
async fn workspace(world: &World, run: &str) -> Result<PathBuf, Problem> {
    let view: RunView = Session::new(&world.client).call(&Ask::get(&run_path(run, ""))).await?;
    if Path::new(&view.workspace).is_dir() {
        return Ok(view.workspace.into());
    }
    let called = output::called(&view);
    let problem = if view.state.has_ended() {
        let message = format!("the workspace of {called} is gone: {}", view.workspace);
        Problem::refusal("workspace_gone", message).hint(format_args!("outlast rerun {called}"))
    } else {
        let message = format!("the workspace of {called} is not there: {}", view.workspace);
        Problem::refusal("workspace_gone", message).hint(format_args!("outlast show {called}"))
    };
    Err(problem)
}
