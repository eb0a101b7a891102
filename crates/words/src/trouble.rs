//! What keeps the daemon from knowing or writing the state of one run or trigger, in a word.

use crate::Code;
use crate::vocabulary::{Vocabulary, Word};

/// The code of a trouble: that of the request that would be rejected for it, or one of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TroubleCode {
    Of(Code),
    /// A shim lives and does not answer, or an orphan cannot be ended.
    Unreachable,
    /// The journal takes nothing more of this run.
    Unwritable,
    /// The journal takes nothing of any run.
    JournalUnwritable,
    /// No shim answers.
    NoShim,
    /// The shim could not be started.
    CannotStart,
    /// (a trigger) Its loop file is wrong; runs are made with the last one that was right.
    WorkflowBroken,
    /// (a trigger) The folder cannot be read.
    Folder,
    /// (a trigger) The poll failed.
    PollFailed,
    /// (a trigger) A delivery was rejected.
    Refused,
}

impl TroubleCode {
    /// Those that are no code of a rejected request.
    pub const OWN: [Self; 9] = [
        Self::Unreachable,
        Self::Unwritable,
        Self::JournalUnwritable,
        Self::NoShim,
        Self::CannotStart,
        Self::WorkflowBroken,
        Self::Folder,
        Self::PollFailed,
        Self::Refused,
    ];

    /// The text, as scripts have it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Of(code) => code.word(),
            Self::Unreachable => "unreachable",
            Self::Unwritable => "unwritable",
            Self::JournalUnwritable => "journal_unwritable",
            Self::NoShim => "no_shim",
            Self::CannotStart => "cannot_start",
            Self::WorkflowBroken => "workflow_broken",
            Self::Folder => "folder",
            Self::PollFailed => "poll_failed",
            Self::Refused => "refused",
        }
    }

    /// What the text means; `None` if it is the word of another build.
    pub fn of(word: &str) -> Option<Self> {
        let own = Self::OWN.into_iter().find(|own| own.word() == word);
        own.or_else(|| Code::of(word).map(Self::Of))
    }
}

impl Vocabulary for TroubleCode {
    fn word(self) -> &'static str {
        Self::word(self)
    }

    fn of(word: &str) -> Option<Self> {
        Self::of(word)
    }
}

impl From<Code> for TroubleCode {
    fn from(code: Code) -> Self {
        Self::Of(code)
    }
}

impl PartialEq<Code> for Word<TroubleCode> {
    fn eq(&self, other: &Code) -> bool {
        self.known() == Some(TroubleCode::Of(*other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_trouble_of_its_own_has_the_word_of_a_code() {
        for own in TroubleCode::OWN {
            assert_eq!((Code::of(own.word()), TroubleCode::of(own.word())), (None, Some(own)));
        }
        assert_eq!(TroubleCode::of("disk_full"), Some(TroubleCode::Of(Code::DiskFull)));
        assert!(Word::<TroubleCode>::of("disk_full") == Code::DiskFull);
    }
}
