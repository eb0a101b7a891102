//! `outlast daemon stop`: ask the daemon to go, and return when it has gone.

use std::time::Duration;

use outlast_wire::layout::Layout;
use tokio::time::{Instant, sleep};

use super::ask_status;
use crate::ask::Ask;
use crate::client::Failed;
use crate::connect::try_connect;
use crate::lock::{self, Lock};
use crate::problem::Problem;
use crate::world::World;
use crate::{Answer, output};

const LONGEST: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) async fn stop(world: &World) -> Answer {
    let layout = world.layout()?;
    let lock = layout.daemon_lock();
    let Some(mut connection) = try_connect(layout).await? else {
        return match lock::probe(&lock) {
            Lock::Free => {
                stay_down(layout)?;
                output::print_line("not running").map(|()| 0)
            }
            Lock::Held => Err(deaf(layout)),
        };
    };
    let asked = ask_status(&mut connection).await?.pid;
    match connection.fetch(&Ask::post("/v1/daemon/stop", &serde_json::json!({}))).await {
        // It may be gone before its answer is through.
        Ok(_) | Err(Failed::Lost(_)) => {}
        Err(Failed::Answered(problem)) => return Err(problem),
    }
    let deadline = Instant::now() + LONGEST;
    while lock::probe(&lock) == Lock::Held {
        if Instant::now() >= deadline {
            let seconds = LONGEST.as_secs();
            return Err(Problem::unreachable(format_args!(
                "it was asked to stop {seconds} s ago and has not"
            )));
        }
        let holder = lock::holder(&lock);
        if let Some(holder) = holder.filter(|_| holder != asked) {
            let said =
                format!("stopped; the daemon that waited for its place has it now, pid {holder}");
            return output::print_line(&said).map(|()| 0);
        }
        sleep(PAUSE).await;
    }
    output::print_line("stopped; runs go on without it")?;
    Ok(0)
}

/// A daemon that died may be about to be started again by a shim; it was just asked not to be.
fn stay_down(layout: &Layout) -> Result<(), Problem> {
    let marker = layout.stopped_marker();
    match std::fs::File::create(&marker) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => {
            Err(Problem::unreachable(format_args!("cannot write {}: {error}", marker.display())))
        }
    }
}

fn deaf(layout: &Layout) -> Problem {
    Problem::unreachable("it holds the lock and does not listen on its socket")
        .hint(format_args!("its log is {}", layout.daemon_log().display()))
}
