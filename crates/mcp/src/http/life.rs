//! How long the server lives: as long as the attempt that it was started in.
//!
//! A process in the background may outlive the command that started it, and a run may end with processes left. The
//! journal says when the attempt is over, whichever process is still there.

use std::time::Duration;

use outlast_client::journal::Journal;
use outlast_client::problem::Problem;
use outlast_wire::codes::Code;

use crate::answers::complain;
use crate::owner::Owner;

/// A daemon that is not there is asked for again so many times in a row, the last time after about four minutes.
const TRIES: u32 = 10;
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Returns once the attempt is over; an error if no daemon could be asked for it any more.
pub(super) async fn over(owner: &Owner<'_>) -> Result<(), Problem> {
    let mut after = 0;
    let mut failures = 0;
    loop {
        let before = after;
        let problem = match watched(owner, &mut after).await {
            Ok(()) => return Ok(()),
            Err(problem) if problem.is(Code::UnknownRun) => return Ok(()),
            Err(problem) => problem,
        };
        failures = if after > before { 1 } else { failures + 1 };
        if failures >= TRIES {
            return Err(problem);
        }
        complain(&problem);
        tokio::time::sleep(Duration::from_secs(1 << failures.min(5)).min(LONGEST_PAUSE)).await;
    }
}

/// Reads the run's events, and notes how far.
async fn watched(owner: &Owner<'_>, after: &mut u64) -> Result<(), Problem> {
    let mut journal = Journal::new(owner.session(), &owner.run, *after);
    while let Some(event) = journal.next().await? {
        *after = event.seq;
        let is_ours = event.number("turn") == Some(owner.turn.into())
            && event.number("attempt") == Some(owner.attempt.into());
        if event.kind == "AttemptEnded" && is_ours {
            return Ok(());
        }
    }
    Ok(())
}
