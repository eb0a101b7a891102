//! Which agent is behind the protocol, and what holds for it alone.

use serde_json::{Value, json};

use crate::adapter::json::{text, yes};
use crate::adapter::mcp::McpServer;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Agent {
    Claude,
    Codex,
    Gemini,
    OpenCode,
    Other { can_steer: bool },
}

/// How a running turn is given a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Steering {
    No,
    /// By a second prompt, which joins the turn and has an answer of its own.
    Prompt,
    /// By `_session/steering`.
    Extension,
}

impl Agent {
    /// By the answer to `initialize`.
    pub(super) fn of(initialized: &Value) -> Self {
        let name = text(initialized, "agentInfo.name").unwrap_or_default();
        match name.rsplit('/').next().unwrap_or_default() {
            "claude-agent-acp" | "claude-code-acp" => Self::Claude,
            "codex-acp" => Self::Codex,
            "gemini-cli" => Self::Gemini,
            "OpenCode" => Self::OpenCode,
            _ => Self::Other { can_steer: yes(initialized, "_meta.steering.supported") },
        }
    }

    /// The mode in which it asks before it writes or runs anything. That of Codex is strict because the next one writes
    /// to the workspace unasked, and its default asks a model instead of us.
    pub(super) fn asks_in(&self) -> Option<&'static str> {
        match self {
            Self::Claude | Self::Gemini => Some("default"),
            Self::Codex => Some("read-only"),
            // What asks there is its configuration, at launch. A repository may have made another agent the default.
            Self::OpenCode => Some("build"),
            Self::Other { .. } => None,
        }
    }

    /// Claude would move the tool that runs to the background for the extension, where it outlives the turn. Codex would
    /// take a second prompt as a turn of its own, and Gemini would cancel the first.
    pub(super) fn steering(&self) -> Steering {
        match self {
            Self::Claude | Self::OpenCode => Steering::Prompt,
            Self::Codex | Self::Other { can_steer: true } => Steering::Extension,
            Self::Gemini | Self::Other { can_steer: false } => Steering::No,
        }
    }

    /// True if the usage of a prompt is known to be all of it. opencode gives that of the last step.
    pub(super) fn counts_all(&self) -> bool {
        matches!(self, Self::Claude | Self::Codex | Self::Gemini)
    }

    /// What two prompts of one turn have used: opencode gives the same figure twice.
    pub(super) fn adds_prompts(&self) -> bool {
        !matches!(self, Self::OpenCode)
    }

    /// True if it takes its open questions back by itself when the turn is cancelled. It gives an answer to one of them to
    /// the model, which is then asked once more before the cancel arrives there.
    pub(super) fn takes_questions_back(&self) -> bool {
        *self == Self::Claude
    }

    /// What gives a session this server. Claude would hide the tools behind a search and put the server's environment, which
    /// has the run's token, into a command line; what stands under `_meta` it takes as it is.
    pub(super) fn serving(&self, server: Option<&McpServer>) -> Value {
        match (self, server) {
            (Self::Claude, Some(server)) => {
                let options = server.for_claude();
                json!({ "mcpServers": [], "_meta": { "claudeCode": { "options": options } } })
            }
            (_, server) => {
                let servers: Vec<Value> = server.map(McpServer::for_acp).into_iter().collect();
                json!({ "mcpServers": servers })
            }
        }
    }

    /// Words that the program says in the model's place.
    pub(super) fn is_notice(&self, words: &str) -> bool {
        *self == Self::Gemini && words.starts_with("[MODE_UPDATE] ")
    }

    /// Gemini ends a turn well when it saw a loop, and both of these when they took the prompt for a command of their
    /// own: no model has answered then. Codex gives no usage at all in that case.
    pub(super) fn is_idle(&self, has_used: Option<bool>) -> bool {
        match self {
            Self::Gemini => has_used == Some(false),
            Self::Codex => has_used != Some(true),
            Self::Claude | Self::OpenCode | Self::Other { .. } => false,
        }
    }
}

/// After each turn the adapter of Claude asks the model, with the whole conversation, what a person might type next. That
/// call is in no count of the turn.
pub(super) fn claude_suggests_nothing() -> (String, String) {
    ("CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION".to_owned(), "false".to_owned())
}

/// opencode does everything unasked unless its configuration says otherwise. This one goes over the repository's own,
/// rule by rule, and a rule of an agent goes over one for all.
pub(super) fn opencode_asks() -> (String, String) {
    let rules = json!({
        "*": "ask",
        "read": { "*": "allow", "*.env": "ask", "*.env.*": "ask" },
        "glob": "allow",
        "grep": "allow",
        "list": "allow",
        "todowrite": "allow",
        "edit": "ask",
        "bash": "ask",
        "task": "ask",
        "webfetch": "ask",
        "external_directory": "ask",
    });
    let config = json!({ "permission": rules, "agent": { "build": { "permission": rules } } });
    ("OPENCODE_CONFIG_CONTENT".to_owned(), config.to_string())
}
