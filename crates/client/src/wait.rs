//! Waiting until a run has ended or rests.
//!
//! Sets no time limit of its own; the caller does.

use std::time::Duration;

use outlast_wire::api::{RunView, Waited, exit_status};
use tokio::time::sleep;

use crate::ask::{Ask, run_path};
use crate::problem::Problem;
use crate::session::Session;
use crate::world::World;

/// How long one question waits. The daemon answers after 60 s at the latest, also if a client asks for longer.
pub const ONE_WAIT: Duration = Duration::from_secs(50);
/// The pause after an answer that came early and without news.
const PAUSE: Duration = Duration::from_secs(1);

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum For {
    /// The run has ended, or rests until a person acts.
    Rest,
    /// The run has ended or rests, and no process of the run is alive.
    Empty,
}

pub fn ask(run: &str, what: For, wait: Duration) -> Ask {
    let what = match what {
        For::Rest => "end",
        For::Empty => "empty",
    };
    Ask::get(&run_path(run, "/wait"))
        .query("timeout_ms", wait.as_millis())
        .query("for", what)
        .long_poll(wait)
}

/// The run once it has ended or rests.
pub async fn for_rest(world: &World, run: &str) -> Result<RunView, Problem> {
    let mut session = Session::new(world);
    loop {
        let waited: Waited = session.call(&ask(run, For::Rest, ONE_WAIT)).await?;
        if exit_status(&waited.run.state, waited.run.reason_code.as_ref()).is_some() {
            return Ok(waited.run);
        }
        if !waited.timed_out {
            sleep(PAUSE).await;
        }
    }
}

/// The exit code for a run that has ended or rests.
pub fn status(view: &RunView) -> u8 {
    exit_status(&view.state, view.reason_code.as_ref())
        .expect("asked only of a run that has ended or rests")
}
