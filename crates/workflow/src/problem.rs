//! What is wrong with a file, said so that a person finds the place.
//!
//! Decides nothing: whether a problem stops the loading is its list's business, not its own.

use std::fmt;

/// One thing wrong with a file. `Display` is one line without the hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub code: &'static str,
    /// As the person named it.
    pub file: Box<str>,
    /// Counted from 1.
    pub line: Option<usize>,
    pub key: Option<String>,
    pub message: String,
    pub hint: Option<String>,
}

impl Problem {
    pub fn new(code: &'static str, file: impl fmt::Display, message: impl fmt::Display) -> Self {
        Self {
            code,
            file: file.to_string().into(),
            line: None,
            key: None,
            message: message.to_string(),
            hint: None,
        }
    }

    #[must_use]
    pub fn at(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }

    #[must_use]
    pub fn key(mut self, key: impl fmt::Display) -> Self {
        self.key = Some(key.to_string());
        self
    }

    #[must_use]
    pub fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hint = Some(hint.to_string());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        if let Some(key) = &self.key {
            write!(f, ": {key}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for Problem {}

/// Codes are for scripts: they stay as they are.
pub(crate) mod code {
    pub(crate) const MISSING_FILE: &str = "missing_workflow_file";
    pub(crate) const UNREADABLE_FILE: &str = "unreadable_file";
    pub(crate) const FILE_TOO_BIG: &str = "file_too_big";
    pub(crate) const NOT_UTF8: &str = "not_utf8";
    pub(crate) const WORKFLOW_PARSE: &str = "workflow_parse_error";
    pub(crate) const NOT_A_MAP: &str = "workflow_front_matter_not_a_map";
    pub(crate) const CONFIG_PARSE: &str = "config_parse_error";
    pub(crate) const TEMPLATE_PARSE: &str = "template_parse_error";
    pub(crate) const TEMPLATE_RENDER: &str = "template_render_error";
    pub(crate) const TEMPLATE_BUDGET: &str = "template_budget_exceeded";
    pub(crate) const UNKNOWN_KEY: &str = "unknown_key";
    pub(crate) const NO_EFFECT: &str = "no_effect";
    pub(crate) const MISSING_SECRET: &str = "missing_secret";
    pub(crate) const WRONG_TYPE: &str = "wrong_type";
    pub(crate) const BAD_VALUE: &str = "bad_value";
    pub(crate) const NEGATIVE_LIMIT: &str = "negative_limit";
    pub(crate) const CEILING_EXCEEDED: &str = "ceiling_exceeded";
    pub(crate) const UNKNOWN_KIND: &str = "unknown_kind";
    pub(crate) const UNSUPPORTED_KIND: &str = "unsupported_kind";
    pub(crate) const MISSING_COMMAND: &str = "missing_command";
    pub(crate) const UNSET_VARIABLE: &str = "unset_variable";
    pub(crate) const WORKSPACE_ESCAPES: &str = "workspace_escapes";
    pub(crate) const ENV_NOT_ALLOWED: &str = "env_not_allowed";
    pub(crate) const UNKNOWN_SINK: &str = "unknown_sink";
    pub(crate) const DUPLICATE_TOOL: &str = "duplicate_tool";
    pub(crate) const BAD_SCHEMA: &str = "bad_schema";
    pub(crate) const NEEDS_SNAPSHOTS: &str = "needs_snapshots";
}
