//! Orders to the daemon itself, as it remembers them.

use serde::{Deserialize, Serialize};

/// One of `GET /v1/orders`: an order that was taken, and what became durable with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct OrderView {
    /// Chosen by the client, or made by the daemon: the same id is the same order.
    pub id: String,
    /// `pause_all`, `resume_all`, `add_trigger`, `remove_trigger`, `pause_trigger` or `resume_trigger`.
    pub verb: String,
    /// The name of the trigger, if it is about one.
    #[serde(default)]
    pub trigger: Option<String>,
    /// The `id` of that trigger: a later one may have its name.
    #[serde(default)]
    pub trigger_id: Option<String>,
    /// Absent if the daemon could not tell.
    #[serde(default)]
    pub by: Option<ByView>,
    pub at: String,
}

/// Who gave an order, as far as the daemon can tell; as the events of a run have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum ByView {
    /// A process of this user that belongs to no run.
    User {
        uid: u32,
        /// By which way the person came, as that process says: `web`, `web:anna`, `link:phone`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<String>,
    },
    /// A process inside a run.
    Run { run: String },
    /// A command that the daemon runs for a sink or a trigger.
    Daemon,
}

impl std::fmt::Display for ByView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::User { uid, via: None } => write!(f, "user {uid}"),
            Self::User { uid, via: Some(via) } => write!(f, "user {uid} ({via})"),
            Self::Run { run } => write!(f, "run {run}"),
            Self::Daemon => write!(f, "a command of the daemon"),
        }
    }
}
