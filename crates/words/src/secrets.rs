//! Which variables of an environment are secret, beside those that look so.
//!
//! The journal (in the spec of a run), the shim's spec and the driver's orders have it in the same form.

use serde::{Deserialize, Serialize};

/// What the operator says of secret variables. The default is the rule that is built in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SecretRules {
    /// False if everything is to be kept and shown as it is.
    pub redact: bool,
    /// Names that are secret whatever they look like; each may end in `*`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// Names that look secret and are not; each may end in `*`. They count before `names`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub off: Vec<String>,
}

impl Default for SecretRules {
    fn default() -> Self {
        Self { redact: true, names: Vec::new(), off: Vec::new() }
    }
}

impl SecretRules {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
