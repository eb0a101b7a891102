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

/// Codes are for scripts: they stay as they are. `CODES` is all of them.
macro_rules! codes {
    ($($name:ident = $word:literal)+) => {
        pub const CODES: &[&str] = &[$($word,)+];

        pub(crate) mod code {
            $(pub(crate) const $name: &str = $word;)+
        }
    };
}

codes! {
    MISSING_FILE = "missing_workflow_file"
    UNREADABLE_FILE = "unreadable_file"
    FILE_TOO_BIG = "file_too_big"
    NOT_UTF8 = "not_utf8"
    WORKFLOW_PARSE = "workflow_parse_error"
    NOT_A_MAP = "workflow_front_matter_not_a_map"
    CONFIG_PARSE = "config_parse_error"
    TEMPLATE_PARSE = "template_parse_error"
    TEMPLATE_RENDER = "template_render_error"
    TEMPLATE_BUDGET = "template_budget_exceeded"
    UNKNOWN_KEY = "unknown_key"
    NO_EFFECT = "no_effect"
    MISSING_SECRET = "missing_secret"
    WRONG_TYPE = "wrong_type"
    BAD_VALUE = "bad_value"
    NEGATIVE_LIMIT = "negative_limit"
    CEILING_EXCEEDED = "ceiling_exceeded"
    UNKNOWN_KIND = "unknown_kind"
    UNSUPPORTED_KIND = "unsupported_kind"
    MISSING_COMMAND = "missing_command"
    UNSET_VARIABLE = "unset_variable"
    WORKSPACE_ESCAPES = "workspace_escapes"
    ENV_NOT_ALLOWED = "env_not_allowed"
    UNKNOWN_SINK = "unknown_sink"
    DUPLICATE_TOOL = "duplicate_tool"
    BAD_SCHEMA = "bad_schema"
    NEEDS_SNAPSHOTS = "needs_snapshots"
}
