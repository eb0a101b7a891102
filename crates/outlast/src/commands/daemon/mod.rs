//! `outlast daemon …`: one file for each of its verbs.

mod install;
pub(crate) mod logs;
pub(crate) mod run;
mod start;
mod status;
mod stop;
mod uninstall;

use outlast_wire::api::DaemonStatus;

use crate::Answer;
use crate::args::DaemonCommand;
use crate::ask::Ask;
use crate::client::{Connection, Failed};
use crate::problem::Problem;
use crate::world::World;

pub(crate) async fn daemon(world: &World, command: DaemonCommand) -> Answer {
    match command {
        DaemonCommand::Run(_) => unreachable!("dispatched before there is an event loop"),
        DaemonCommand::Start { json } => start::start(world, json).await,
        DaemonCommand::Status(args) => status::status(world, &args).await,
        DaemonCommand::Install(args) => install::install(world, args).await,
        DaemonCommand::Uninstall(args) => uninstall::uninstall(world, args).await,
        DaemonCommand::Stop { json: _ } => stop::stop(world).await,
        DaemonCommand::Logs(args) => logs::logs(world, args).await,
    }
}

/// Asks a daemon about itself, once: a status that starts or awaits a daemon would not be one.
async fn ask_status(connection: &mut Connection) -> Result<DaemonStatus, Problem> {
    let body = match connection.fetch(&Ask::get("/v1/daemon")).await {
        Ok(body) => body,
        Err(Failed::Lost(why)) => return Err(Problem::unreachable(why)),
        Err(Failed::Answered(problem)) => return Err(problem),
    };
    serde_json::from_slice(&body).map_err(|error| crate::session::unreadable(&error))
}
