//! Appends to the journal, as they fail and as they get lost.

use outlast_store::{Append, Error, Fault, Journal};

use crate::faults::Surface;
use crate::options::Sabotage;
use crate::truth;
use crate::world::{RunIndex, World};

/// Appends with the faults of this seed, and compares the result with the truth.
pub(crate) fn append(world: &mut World, run: RunIndex, mut append: Append) -> Result<(), Error> {
    let writer = append.epoch;
    if world.is_sabotaged(Sabotage::StaleEpochsWrite) {
        append.epoch = world.epoch;
    }
    let fault = world.faults.of_append(&mut world.rng);
    if let Some(fault) = fault {
        world.store.fail_next(fault.0);
    }
    let (epoch, count) = (append.epoch, append.events.len());
    let answer = world.store.append_wait(append);
    world.note(|| format!("append of {count} to run {run} by epoch {epoch}: {answer:?}"));
    if answer.is_ok() && writer != world.epoch {
        let current = world.epoch;
        world.broke(
            Some(run),
            format!("a daemon of epoch {writer} has written while epoch {current} holds the store"),
        );
    }
    match (&answer, fault) {
        (Ok(()), _) => world.stats.appends += 1,
        (Err(Error::StaleEpoch { .. }), _) => world.stats.stale_appends_refused += 1,
        (Err(Error::Conflict { .. }), _) => world.stats.conflicts += 1,
        (Err(_), Some((Fault::RefuseFull, _))) => world.stats.full_disks += 1,
        (Err(_), Some((Fault::LoseBeforeCommit, _))) => world.stats.lost_appends += 1,
        (Err(_), Some((Fault::LoseAfterCommit, _))) => world.stats.lost_acks += 1,
        (Err(_), None) => {}
    }
    truth::on_append(world, run);
    match fault {
        // The same uncertainty, met by a daemon that lives on.
        Some((_, Surface::AsIo)) if answer == Err(Error::Closed) => {
            Err(Error::Io("simulated".to_owned()))
        }
        Some(_) | None => answer,
    }
}
