//! Somebody lets a paused or blocked run go on.

use crate::handle::Draft;
use crate::{Actor, Fact, Moment, Run, State};

pub(super) fn handle(draft: &mut Draft, moment: &Moment) {
    if draft.run().may_resume() {
        draft.push(moment.now, Fact::ResumeRequested { actor: Actor::User, all: false });
    }
}

impl Run {
    /// True if `resume` would change anything: not for a run that waits for a yes or a no.
    pub fn may_resume(&self) -> bool {
        self.is_paused || (self.state == State::Blocked && !self.needs_decision())
    }

    /// True if a person has to approve or deny before the run can go on.
    pub fn needs_decision(&self) -> bool {
        self.state == State::Blocked && self.why.reason_code == "needs_approval"
    }
}
