//! Snapshots that no run has, and runs whose snapshots are gone.

use std::sync::Arc;

use outlast_wire::api::{Finding, Level};

use super::finding;
use crate::runs::refs;
use crate::supervisor::Supervisor;

/// So many are told one by one.
const MOST: usize = 20;

pub(super) fn snapshots(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    // A store that cannot be read is said by another.
    let Ok(held) = refs::look(supervisor) else { return Vec::new() };
    let orphans = held.orphans.iter().take(MOST).map(|orphan| {
        let message =
            format!("{} in {} is of no run of this home", orphan.name, orphan.repository.display());
        let hint = format!("if no other home has that run:\n{}", orphan.command());
        finding(Level::Warning, "snapshots", message, Some(&hint))
    });
    let lost = held.lost.iter().take(MOST).map(|run| {
        let message = format!("the snapshots of run {run} are gone: its repository or its ref is");
        let hint = format!("it goes on without them; to forget it:\noutlast rm {run}");
        finding(Level::Warning, "snapshots", message, Some(&hint))
    });
    orphans.chain(lost).collect()
}
