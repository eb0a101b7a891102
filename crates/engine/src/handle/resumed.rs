//! A person lets a paused or blocked run go on. What came after what the person saw stays as it is.

use crate::handle::Draft;
use crate::{Actor, Context, Fact, Order, Run, State, Wants};

pub(super) fn handle(draft: &mut Draft, order: &Order, context: &Context) {
    if draft.run().orders.has(order) {
        return;
    }
    let Some(released) = draft.run().releases(order.answers) else { return };
    let (actor, all) = (Actor::User, false);
    let order = Order { answers: Some(released), ..order.clone() };
    draft.push(context.now, Fact::ResumeRequested { actor, all, order });
}

impl Run {
    /// True if a person has to approve or deny before the run can go on.
    pub fn needs_decision(&self) -> bool {
        matches!(&self.state, State::Blocked { reason } if reason.wants() == Wants::Decision)
    }
}
