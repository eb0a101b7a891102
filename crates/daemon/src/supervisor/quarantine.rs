//! Runs that cannot be read: shown, left alone, and read again later.

use outlast_engine::RunId;
use outlast_wire::codes::Code;
use outlast_wire::words::TroubleCode;

use super::Supervisor;
use crate::sync::lock;
use outlast_conduct::reconcile::{Desired, Readiness};

impl Supervisor {
    /// Leaves a run alone that cannot be read, until it is read again.
    pub(crate) fn quarantine(&self, id: &RunId, message: String) {
        self.quarantine_as(id, Code::Unreadable, message);
    }

    /// The same for another reason than that it cannot be read.
    pub(crate) fn quarantine_as(&self, id: &RunId, code: impl Into<TroubleCode>, message: String) {
        let trouble = self.ground.trouble(code, message);
        let mut quarantine = lock(&self.quarantine);
        let known = quarantine.entry(id.clone()).or_insert_with(|| {
            tracing::error!(run = %id, message = trouble.message, "this run is left alone");
            trouble.clone()
        });
        known.message = trouble.message;
        drop(quarantine);
        self.needs.note_unreadable(id);
        self.watchers.note(id);
        let (readiness, since) = (Readiness::Unreadable, self.ground.world.steady());
        let wanted = Desired { run: id.clone(), readiness, priority: 0, since };
        self.restarts.lost(wanted, false, since);
    }

    pub(crate) fn unquarantine(&self, id: &RunId) {
        if lock(&self.quarantine).remove(id).is_some() {
            tracing::info!(run = %id, "it can be read again");
        }
    }
}
