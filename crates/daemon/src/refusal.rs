//! What is answered to somebody who asked for what cannot be.

use outlast_engine::RunId;
use outlast_wire::api::ErrorInfo;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Refusal {
    pub(crate) code: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// The id of the run that was meant, for a client that has only its name.
    pub(crate) run: Option<String>,
}

impl Refusal {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, run: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn run(mut self, id: &RunId) -> Self {
        self.run = Some(id.0.clone());
        self
    }

    pub(crate) fn info(&self) -> ErrorInfo {
        ErrorInfo {
            code: self.code.to_owned(),
            message: self.message.clone(),
            hint: self.hint.clone(),
            run: self.run.clone(),
        }
    }
}
