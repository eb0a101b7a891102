//! `outlast daemon start`: a daemon in the background, if there is none yet.

use std::time::Duration;

use outlast_client::ask::Ask;
use outlast_client::autostart;
use outlast_client::connect::{meet, reconnect};
use outlast_client::connection::{Connection, Failed};
use outlast_client::problem::Problem;
use outlast_client::session::unreadable;
use outlast_wire::api::DaemonStatus;
use tokio::time::Instant;

use crate::service;
use crate::world::World;
use crate::{Answer, output};

/// A daemon that is just dying may still take the connection; the next one is asked then, so often.
const TRIES: usize = 5;
/// A shim looks at least this often whether a daemon is to be started.
const SHIM_WITHIN: Duration = Duration::from_secs(45);

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

/// A daemon that is no process of a run: inside one, its shim starts the daemon once it may.
async fn start_outside(world: &World) -> Result<Connection, Problem> {
    if !world.client.is_in_run_of_home() {
        return autostart::start(&world.client).await;
    }
    let marker = world.client.layout()?.stopped_marker();
    match std::fs::remove_file(&marker) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            let marker = marker.display();
            return Err(Problem::unreachable(format_args!("cannot remove {marker}: {error}")));
        }
        Ok(()) | Err(_) => {}
    }
    reconnect(&world.client, Instant::now() + SHIM_WITHIN).await
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
                ("started", start_outside(world).await?)
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
