//! `outlast daemon start`: a daemon in the background, if there is none yet.

use super::ask_status;
use crate::connect::try_connect;
use crate::world::World;
use crate::{Answer, autostart, output};

pub(crate) async fn start(world: &World, json: bool) -> Answer {
    let (mut connection, what) = match try_connect(world.layout()?).await? {
        Some(connection) => (connection, "already running"),
        None => (autostart::start(world).await?, "started"),
    };
    let status = ask_status(&mut connection).await?;
    if json {
        output::print_json(&status)?;
    } else {
        let pid = status.pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
        output::print_line(&format!("{what}, pid {pid}"))?;
    }
    Ok(0)
}
