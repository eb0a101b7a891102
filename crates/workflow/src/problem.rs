//! What is wrong with a file, said so that a person finds the place.
//!
//! Decides nothing: whether a problem stops the loading is its list's business, not its own.

use std::fmt;

pub use outlast_engine::Code;

/// One thing wrong with a file. `Display` is one line without the hint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub code: Code,
    /// As the person named it.
    pub file: Box<str>,
    /// Counted from 1.
    pub line: Option<usize>,
    pub key: Option<String>,
    pub message: String,
    pub hint: Option<String>,
}

impl Problem {
    pub fn new(code: Code, file: impl fmt::Display, message: impl fmt::Display) -> Self {
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
