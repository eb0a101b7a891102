//! Triggers.
pub(crate) mod cron;
pub(crate) mod schedule;
