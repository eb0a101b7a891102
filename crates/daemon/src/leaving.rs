//! Why a daemon leaves.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leaving {
    Asked,
    /// Another daemon waits for the lock: a service manager's, or one of another build.
    Replaced,
    /// Another daemon has taken the journal.
    Fenced,
    /// The journal's files are no longer ours: the next daemon serves what is in their place.
    Parted,
}
