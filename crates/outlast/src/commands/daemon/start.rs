//! `outlast daemon start`: a daemon in the background, if there is none yet.

use outlast_client::ask::Ask;
use outlast_client::autostart;
use outlast_client::connect::meet;
use outlast_client::connection::Failed;
use outlast_client::problem::Problem;
use outlast_client::session::unreadable;
use outlast_wire::api::DaemonStatus;

use crate::service;
use crate::world::World;
use crate::{Answer, output};

/// A daemon that is just dying may still take the connection; the next one is asked then, so often.
const TRIES: usize = 5;

pub(crate) async fn start(world: &World, json: bool) -> Answer {
    let (what, status) = started(world).await?;
    if json {
        output::print_json(&status)?;
    } else {
        let pid = status.pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
        output::print_line(&format!("{what}, pid {pid}"))?;
    }
    Ok(0)
}

/// What was found or made of the daemon. To start it is what was asked for, so nothing forbids that.
async fn started(world: &World) -> Result<(&'static str, DaemonStatus), Problem> {
    let mut lost = String::new();
    for _ in 0..TRIES {
        let (what, mut connection) = match meet(&world.client).await? {
            Some(connection) => ("already running", connection),
            None => {
                // A service's daemon is the service manager's to start; if nothing comes of it, we do.
                service::start(world).await;
                ("started", autostart::start(&world.client).await?)
            }
        };
        match connection.fetch(&Ask::get("/v1/daemon")).await {
            Ok(body) => {
                let status = serde_json::from_slice(&body).map_err(|error| unreadable(&error))?;
                return Ok((what, status));
            }
            Err(Failed::Answered(problem)) => return Err(problem),
            Err(Failed::Lost(why)) => lost = why,
        }
    }
    Err(Problem::unreachable(lost))
}
