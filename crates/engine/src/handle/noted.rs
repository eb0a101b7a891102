//! A live attempt leaves a note.

use crate::handle::Draft;
use crate::notes::LONGEST_NOTE;
use crate::{AgentNote, Context, Fact};

pub(super) fn handle(draft: &mut Draft, note: &AgentNote, context: &Context) {
    let AgentNote { id, turn, attempt, kind, text } = note.clone();
    let run = draft.run();
    if run.live().is_none_or(|live| !live.is(turn, attempt)) || run.notes.has(&id) {
        return;
    }
    let text = text[..text.floor_char_boundary(LONGEST_NOTE)].to_owned();
    draft.push(context.now, Fact::NoteTaken { turn, attempt, note: id, what: kind, text });
}
