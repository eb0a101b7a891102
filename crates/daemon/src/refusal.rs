//! What is answered to somebody who asked for what cannot be.

use outlast_wire::api::ErrorInfo;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Refusal {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn info(&self) -> ErrorInfo {
        ErrorInfo {
            code: self.code.to_owned(),
            message: self.message.clone(),
            hint: self.hint.clone(),
        }
    }
}
