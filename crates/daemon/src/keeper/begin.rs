//! Beginning a step: launched, or suspended for as long as the host cannot launch it.
//!
//! A host without descriptors, processes, memory or room, or one on which no shim starts, fails no step: the
//! step waits, which is shown, and is tried again. Only a step that cannot be described never starts. A step
//! that is to be stopped is not waited for.

use std::time::Duration;

use outlast_engine::Step;
use outlast_wire::shim::NeverStarted;
use outlast_wire::words::TroubleCode;

use super::{PATIENCE, Work};
use crate::world::{host, limits};

/// Before a command of the host for which there were no resources is tried again.
const FIRST_ERRAND_WAIT: Duration = Duration::from_millis(100);
const LAST_ERRAND_WAIT: Duration = Duration::from_secs(30);

impl Work {
    /// Launches the step and meets its shim, or says what keeps us from that.
    pub(super) async fn begin(&mut self) {
        self.pace_errand().await;
        let launched = match self.has_room() {
            Ok(()) => self.launch().await,
            Err(error) => Err(error),
        };
        match launched {
            Ok(Some(session)) => {
                self.has_gone_on();
                self.meet(session).await;
            }
            Ok(None) if self.tries < PATIENCE => self.tries += 1,
            Ok(None) => self.suspend(TroubleCode::NoShim, "no shim answers".to_owned()).await,
            // What the step is given cannot be made, and will not be next time either.
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                self.fence(NeverStarted::BadSpec, error.to_string()).await;
            }
            Err(error) => {
                let code = host::launch_failure(&error)
                    .map_or(TroubleCode::CannotStart, TroubleCode::from);
                self.suspend(code, error.to_string()).await;
            }
        }
    }

    /// Steps leave some descriptors to clients. One that is to be stopped may take the last.
    pub(super) fn has_room(&self) -> std::io::Result<()> {
        if self.stop.borrow().is_some() {
            return Ok(());
        }
        limits::keep_some_free(std::fs::File::open("/dev/null")?)
    }

    async fn suspend(&mut self, code: TroubleCode, why: String) {
        if self.stop.borrow().is_some() {
            let why = format!("stopped before it was started (cannot start a shim: {why})");
            return self.fence(NeverStarted::Stopped, why).await;
        }
        self.say_trouble(code, format!("cannot start a shim: {why}")).await;
    }

    /// An errand is tried again at once by the engine, which knows no shortage that lasts.
    async fn pace_errand(&mut self) {
        let earlier = match (self.task.step, &self.task.run.errand) {
            (Step::Errand { .. }, Some(errand)) => errand.earlier_tries,
            (Step::Errand { .. }, None) | (Step::Attempt { .. }, _) => 0,
        };
        if earlier == 0 || self.tries > 0 {
            return;
        }
        let doublings = earlier.saturating_sub(1).min(16);
        let wait = FIRST_ERRAND_WAIT.saturating_mul(1 << doublings).min(LAST_ERRAND_WAIT);
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            Ok(()) = self.stop.changed() => self.stop.mark_changed(),
        }
    }
}
