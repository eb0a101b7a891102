//! `outlast daemon restart`: this program's daemon takes the place of the one that runs.
//!
//! The successor looks at the journal and the config before it asks for the place, so a program that cannot do the
//! work never gets it. Clients that wait find the successor by themselves.

use std::time::Duration;

use outlast_client::ask::Ask;
use outlast_client::autostart;
use outlast_client::connect::meet;
use outlast_client::connection::{Connection, Failed};
use outlast_client::problem::Problem;
use outlast_home::lock::{self, Lock};
use outlast_wire::api::{DaemonStatus, Mode};
use outlast_wire::codes::Code;
use tokio::time::{Instant, sleep};

use super::{Heard, ask_status, does_answer, start};
use crate::world::World;
use crate::{Answer, output, service};

/// A service manager may take a while to end one process and to start another.
const SERVICE_WITHIN: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);

pub(crate) async fn restart(world: &World, json: bool) -> Answer {
    let Some(mut connection) = meet(&world.client).await? else {
        return match lock::probe(&world.client.layout()?.daemon_lock()) {
            Lock::Free => start::start(world, json).await,
            Lock::Held => Err(silent()),
        };
    };
    if does_answer(&mut connection).await? == Heard::Nothing {
        return Err(silent());
    }
    let before = ask_status(&mut connection).await?;
    match (replace(world, connection).await, before.mode) {
        (Ok(()), _) => {}
        // It has looked at the journal and found nothing in its way but the manager.
        (Err(problem), Some(Mode::Service)) if problem.is(Code::MakesNoRoom) => {
            service::restart(world).await?;
        }
        (Err(problem), _) => return Err(problem),
    }
    let after = successor(world, before.pid).await?;
    if json {
        output::print_json(&after)?;
    } else {
        output::say(&told(&before, &after))?;
    }
    Ok(0)
}

/// Starts the successor; inside a run the daemon does that, so that the successor is no process of the run.
async fn replace(world: &World, mut connection: Connection) -> Result<(), Problem> {
    if !world.client.is_in_run_of_home() {
        drop(connection);
        return autostart::replace(&world.client).await;
    }
    match connection.fetch(&Ask::post("/v1/daemon/restart", &serde_json::json!({}))).await {
        // It may be gone before its answer is through.
        Ok(_) | Err(Failed::Lost(_)) => Ok(()),
        Err(Failed::Answered(problem)) => Err(problem),
    }
}

/// The daemon that answers, once it is another.
async fn successor(world: &World, before: Option<u32>) -> Result<DaemonStatus, Problem> {
    let deadline = Instant::now() + SERVICE_WITHIN;
    while Instant::now() < deadline {
        if let Some(mut connection) = meet(&world.client).await?
            && let Ok(status) = ask_status(&mut connection).await
            && status.pid != before
        {
            return Ok(status);
        }
        sleep(PAUSE).await;
    }
    Err(Problem::unreachable("it was replaced, and its successor does not answer")
        .hint("read its last words:\noutlast daemon logs --tail 50"))
}

fn told(before: &DaemonStatus, after: &DaemonStatus) -> String {
    let who = |status: &DaemonStatus| {
        let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
        let pid = status.pid.map_or_else(|| "unknown".to_owned(), |pid| pid.to_string());
        format!("pid {pid}, version {}, build {}", text(&status.version), text(&status.build))
    };
    format!("restarted: {}; before: {}", who(after), who(before))
}

fn silent() -> Problem {
    Problem::unreachable("it holds the lock and does not answer").hint(
        "end it, also if it hangs, then start another:\noutlast daemon stop\noutlast daemon start",
    )
}
