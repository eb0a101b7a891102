//! An older journal was put back, and this run is as that journal knows it.
//!
//! Says so once, and until when the run is known. Takes no time back that is proven, and counts none that is not.

use crate::handle::Draft;
use crate::{Context, Fact, Time};

pub(super) fn handle(draft: &mut Draft, noticed_at: Time, known_until: Time, context: &Context) {
    if draft.run().has_ended() || draft.run().seen_at >= noticed_at {
        return;
    }
    note(draft, known_until, context);
}

/// What this journal has is known, whatever the files of the run prove beyond it.
pub(super) fn note(draft: &mut Draft, known_until: Time, context: &Context) {
    let known_until = known_until.max(draft.run().seen_at).min(context.now);
    draft.push(context.now, Fact::JournalRestored { known_until });
}
