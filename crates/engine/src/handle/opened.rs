//! A person is to type into the terminal of a live attempt: written down before the first key reaches it.

use crate::handle::Draft;
use crate::{By, Context, Fact};

pub(super) fn handle(
    draft: &mut Draft,
    (turn, attempt): (u32, u32),
    by: Option<&By>,
    context: &Context,
) {
    if draft.run().live().is_some_and(|live| live.is(turn, attempt)) {
        draft.push(context.now, Fact::TerminalOpened { turn, attempt, by: by.cloned() });
    }
}
