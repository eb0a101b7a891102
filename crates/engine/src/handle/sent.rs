//! A client or another run has something to say to the run. It is kept until a turn that was given it has committed.

use crate::handle::Draft;
use crate::{By, Context, Fact};

pub(super) fn handle(
    draft: &mut Draft,
    message: &str,
    from: &str,
    text: &str,
    by: Option<&By>,
    context: &Context,
) {
    let run = draft.run();
    if run.has_ended() || run.inbox.has_had(message) || run.inbox.is_full() {
        return;
    }
    draft.push(
        context.now,
        Fact::MessageReceived {
            message: message.to_owned(),
            from: from.to_owned(),
            text: text.to_owned(),
            by: by.cloned(),
        },
    );
}
