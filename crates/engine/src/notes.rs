//! Notes that an attempt leaves for the next one, and whether its agent was shown the tools.

use serde::{Deserialize, Serialize};

/// So many are kept, the newest of them.
const MOST_NOTES: usize = 16;

/// No note is longer, in bytes.
pub const LONGEST_NOTE: usize = 8 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Noted {
    Note,
    /// How far the attempt is.
    Checkpoint,
    /// The agent was shown the tools of the run's MCP server.
    ToolsListed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentNote {
    pub id: String,
    pub turn: u32,
    pub attempt: u32,
    pub kind: Noted,
    pub text: String,
}

/// What the attempts of this turn and of the one before have noted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentNotes(std::sync::Arc<Vec<AgentNote>>);

impl AgentNotes {
    pub fn iter(&self) -> impl Iterator<Item = &AgentNote> {
        self.0.iter()
    }

    pub fn has(&self, id: &str) -> bool {
        self.0.iter().any(|note| note.id == id)
    }

    /// True if the agent of this attempt was shown the tools.
    pub fn has_listed_tools(&self, turn: u32, attempt: u32) -> bool {
        let is_it = |note: &AgentNote| note.turn == turn && note.attempt == attempt;
        self.0.iter().any(|note| is_it(note) && note.kind == Noted::ToolsListed)
    }

    pub(crate) fn take(&mut self, note: AgentNote) {
        let notes = std::sync::Arc::make_mut(&mut self.0);
        if note.kind == Noted::ToolsListed {
            notes.retain(|known| known.kind != Noted::ToolsListed);
        }
        if notes.len() >= MOST_NOTES {
            notes.remove(0);
        }
        notes.push(note);
    }

    /// The next turn is told what this one noted, and nothing older.
    pub(crate) fn turn_is_over(&mut self, turn: u32) {
        if self.0.iter().any(|note| note.turn < turn) {
            std::sync::Arc::make_mut(&mut self.0).retain(|note| note.turn >= turn);
        }
    }
}
