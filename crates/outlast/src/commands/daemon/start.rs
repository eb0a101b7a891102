//! `outlast daemon start`: a daemon in the background, if there is none yet.

use outlast_wire::api::DaemonStatus;

use crate::ask::Ask;
use crate::connect::try_connect;
use crate::service;
use crate::session::Session;
use crate::world::World;
use crate::{Answer, autostart, output};

pub(crate) async fn start(world: &World, json: bool) -> Answer {
    let what = match try_connect(world.layout()?).await? {
        Some(_) => "already running",
        None => {
            // A service's daemon is the service manager's to start; if nothing comes of it, we do.
            service::start(world).await;
            autostart::start(world).await.map(|_| "started")?
        }
    };
    // A daemon that is just dying may still have taken the connection; then another one answers.
    let status: DaemonStatus = Session::new(world).call(&Ask::get("/v1/daemon")).await?;
    if json {
        output::print_json(&status)?;
    } else {
        let pid = status.pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
        output::print_line(&format!("{what}, pid {pid}"))?;
    }
    Ok(0)
}
