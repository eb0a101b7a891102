//! `outlast daemon …`: one file for each of its verbs.

mod install;
mod logs;
mod restart;
pub(crate) mod run;
mod start;
mod status;
mod stop;
mod uninstall;

use std::time::Duration;

use outlast_client::ask::Ask;
use outlast_client::connection::{Connection, Failed};
use outlast_client::problem::Problem;
use outlast_wire::api::DaemonStatus;
use tokio::time::timeout;

use crate::Answer;
use crate::args::DaemonCommand;
use crate::world::World;

pub(crate) async fn daemon(world: &World, command: DaemonCommand) -> Answer {
    match command {
        DaemonCommand::Run(_) => unreachable!("dispatched before there is an event loop"),
        DaemonCommand::Start { json } => start::start(world, json).await,
        DaemonCommand::Status(args) => status::status(world, &args).await,
        DaemonCommand::Install(args) => install::install(world, args).await,
        DaemonCommand::Uninstall(args) => uninstall::uninstall(world, args).await,
        DaemonCommand::Stop { json: _ } => stop::stop(world).await,
        DaemonCommand::Restart { json } => restart::restart(world, json).await,
        DaemonCommand::Logs(args) => logs::logs(world, args).await,
    }
}

/// How long a daemon that does nothing else may take to say its version. Beyond this it is frozen or hangs.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// Whether a daemon that took our connection answers on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    Something,
    Nothing,
}

/// Asks what costs nothing to answer.
pub(crate) async fn does_answer(connection: &mut Connection) -> Result<Heard, Problem> {
    let ask = Ask::get("/v1/version");
    match timeout(SIGN_OF_LIFE, connection.fetch(&ask)).await {
        // One that breaks the connection is leaving, which is a sign of life too.
        Ok(Ok(_) | Err(Failed::Lost(_))) => Ok(Heard::Something),
        Ok(Err(Failed::Answered(problem))) => Err(problem),
        Err(_elapsed) => Ok(Heard::Nothing),
    }
}

/// Asks a daemon about itself, once: a status that starts or awaits a daemon would not be one.
async fn ask_status(connection: &mut Connection) -> Result<DaemonStatus, Problem> {
    let body = match connection.fetch(&Ask::get("/v1/daemon")).await {
        Ok(body) => body,
        Err(Failed::Lost(why)) => return Err(Problem::unreachable(why)),
        Err(Failed::Answered(problem)) => return Err(problem),
    };
    serde_json::from_slice(&body).map_err(|error| outlast_client::session::unreadable(&error))
}
