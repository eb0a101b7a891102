//! The ceilings that the engine itself keeps. They are absolute, so no restart extends them.

use crate::{Run, Time};

/// When the run's wall clock is over.
pub(crate) fn deadline(run: &Run) -> Option<Time> {
    run.spec.limits.run_timeout_ms.map(|ms| run.created_at.plus_ms(ms))
}

/// True if the deadline has passed and that is not known yet.
pub(crate) fn is_reached(run: &Run, now: Time) -> bool {
    run.limit.is_none()
        && run.stop.is_none()
        && deadline(run).is_some_and(|deadline| now >= deadline)
}
