//! Why a run is made: a client's request, or something that came to a trigger.

use outlast_engine::Origin;
use serde_json::Value;

#[derive(Debug, Clone)]
pub(crate) enum Occasion {
    /// A person's request.
    Asked,
    /// Something that came to a trigger, and what the run is told of it. `name` is the run's.
    Came { origin: Origin, told: Value, name: Option<String> },
    /// Nothing yet: only whether runs of this kind can be made.
    Tried,
}

impl Occasion {
    /// What the run is told of it.
    pub(crate) fn told(&self) -> Option<&Value> {
        match self {
            Self::Came { told, .. } => Some(told),
            Self::Asked | Self::Tried => None,
        }
    }
}
