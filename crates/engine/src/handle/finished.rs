//! A finishing run is tidied up: it may end as it was decided to.

use crate::handle::Draft;
use crate::{Fact, State, finish};

pub(super) fn handle(draft: &mut Draft) {
    let State::Finishing { verdict, since } = draft.run().state else { return };
    if !finish::is_tidy(draft.run()) {
        return;
    }
    let why = draft.run().why.clone();
    let reason_code = Some(why.reason_code.clone());
    let from = draft.run().state.name();
    let ended = Fact::StateChanged {
        from,
        to: verdict.name(),
        why,
        cause: None,
        until: None,
        verdict: None,
    };
    draft.push(since, ended);
    draft.push(since, Fact::RunEnded { state: verdict, reason_code });
}
