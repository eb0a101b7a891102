//! Follows the wall clock: notices when it is set, and wakes every run and the triggers once the setting is believed.
//!
//! Decides nothing (`world::clock` does). Has no timer while the wall clock agrees: the kernel reports when it is
//! set.

use std::convert::Infallible;
use std::time::Duration;

use crate::supervisor::Supervisor;
use crate::world::alarm::Alarm;

/// While the wall agrees: only to be told when it is set.
const NEVER: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Goes on for the daemon's life.
pub(crate) async fn keep(supervisor: &Supervisor) -> Infallible {
    let clock = supervisor.ground.world.clock();
    let mut alarm = Alarm::default();
    let mut known = clock.moment().1;
    loop {
        let wait = clock.doubts_for().unwrap_or(NEVER);
        tokio::select! {
            () = alarm.after(Some(wait)) => {}
            () = clock.changed() => {}
        }
        let (_, booted_at_ms) = clock.moment();
        if booted_at_ms == known {
            continue;
        }
        let by_s = booted_at_ms.saturating_sub(known) / 1000;
        tracing::warn!(
            by_s,
            "the machine's clock was set, and that is believed now; limits and delays go on as before"
        );
        known = booted_at_ms;
        supervisor.clock_was_set();
    }
}

impl Supervisor {
    /// Leaves the next daemon the line that holds now, and has everything look again that goes by it.
    fn clock_was_set(&self) {
        if let Err(error) = self.ground.keep_clock() {
            tracing::error!(%error, "cannot leave the next daemon what the clock says");
        }
        self.handles().iter().for_each(|(id, _)| self.poke(id));
        self.triggers.table.wake();
    }
}
