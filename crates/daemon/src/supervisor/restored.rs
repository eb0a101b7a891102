//! Open runs of a journal that was put back: each is told once, before it goes on.
//!
//! What such a run did since the journal was copied is not known. Only the files of a step that was alive say more.
//! A run whose directory has gone further is `recovery`'s business.

use outlast_conduct::records as meaning;
use outlast_engine::{Attempt, Custody, End, Input, Run, Step, Time};

use super::Supervisor;
use crate::records;
use crate::steps;

impl Supervisor {
    /// What a run that is taken over hears first.
    pub(crate) fn first_news(&self, run: &Run) -> Input {
        let noticed_at = self.ground.lineage.broken().map(|broken| Time(broken.at_ms));
        match noticed_at.filter(|at| run.seen_at < *at) {
            Some(noticed_at) => {
                Input::JournalRestored { noticed_at, known_until: self.known_until(run) }
            }
            None => Input::Woke,
        }
    }

    /// Until when it is known that the step was at work which the journal takes for alive.
    fn known_until(&self, run: &Run) -> Time {
        let attempt = run.live().map(Attempt::step);
        let errand = run.live_errand().map(|live| Step::Errand { errand: live.number });
        let Some(step) = attempt.or(errand) else { return run.seen_at };
        let dir = steps::step_dir(&self.ground.layout.run(run.id.as_str()), step);
        if steps::is_locked(&dir) {
            return self.ground.world.now();
        }
        let records = records::read(&dir.events()).unwrap_or_else(|error| {
            tracing::error!(run = %run.id, %error, "cannot read when a step of the run ended");
            Vec::new()
        });
        let mut report = meaning::report(step, Custody::Nobody, &records, 0);
        records::in_our_time(&mut report, meaning::line(&records), &self.ground.world);
        match report.end {
            Some(End::Exited { at, .. } | End::NeverStarted { at, .. }) => at,
            None => run.seen_at,
        }
    }
}
