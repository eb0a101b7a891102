//! Whether what is said of a run was seen by this daemon, or is only what the journal has of an earlier one.

use outlast_engine::Run;

/// Whether this daemon has looked at a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Sight {
    #[default]
    Known,
    /// The journal says how the run was when the last daemon wrote; this one has yet to look.
    Checking,
}

impl Sight {
    /// Of a run as it was read from the journal: a process that an earlier daemon launched may be gone.
    pub(crate) fn of(run: &Run) -> Self {
        let attempt = run.live().map(|live| &live.state);
        let errand = run.errand.as_ref().map(|errand| &errand.state);
        let has_process = [attempt, errand].iter().flatten().any(|state| state.process.is_some());
        if has_process { Self::Checking } else { Self::Known }
    }
}
