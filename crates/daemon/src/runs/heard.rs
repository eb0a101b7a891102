//! What the journal says of the output of a run's attempts, without a look at their files.
//!
//! A log that is not there is no proof that nothing was printed: an attempt that has started has had one.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use outlast_engine::{Fact, RunId};
use outlast_store::{Error, Journal};
use outlast_wire::shim::Spool;

/// So many events are read at a time.
const PAGE: usize = 10_000;

/// The attempts that have started, as far as the journal has been read.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    seq: u64,
    attempts: BTreeMap<(u32, u32), Printed>,
}

/// How much an attempt printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Printed {
    Unknown,
    Bytes(u64),
}

impl Heard {
    /// Reads what the journal has by now.
    pub(crate) fn read_on(&mut self, store: &dyn Journal, id: &RunId) -> Result<(), Error> {
        loop {
            let events = store.events(id, self.seq, PAGE)?;
            for event in &events {
                self.seq = event.seq;
                self.hear(&event.fact);
            }
            if events.len() < PAGE {
                return Ok(());
            }
        }
    }

    pub(crate) fn hear(&mut self, fact: &Fact) {
        match fact {
            Fact::AttemptStarted { turn, attempt, .. } => {
                self.attempts.insert((*turn, *attempt), Printed::Unknown);
            }
            // An attempt without an exit has an end that no shim saw, so zero bytes are no proof either.
            Fact::AttemptEnded { turn, attempt, outcome, output_bytes, .. }
                if outcome.exit().is_some() || *output_bytes > 0 =>
            {
                if let Some(printed) = self.attempts.get_mut(&(*turn, *attempt)) {
                    *printed = Printed::Bytes(*output_bytes);
                }
            }
            _ => {}
        }
    }

    /// The attempts that have had a log, in order.
    pub(crate) fn attempts(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.attempts.keys().copied()
    }

    /// True if a file is not there that every attempt has which has started.
    pub(crate) fn lacks(&self, attempt: (u32, u32), file: &Path) -> bool {
        let is_missing = || file.metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
        self.attempts.contains_key(&attempt) && is_missing()
    }

    /// If a log that is not at this path, or not all of it, held something: how many bytes, as far as is known.
    pub(crate) fn lost(&self, attempt: (u32, u32), log: &Path) -> Option<Option<u64>> {
        let lost = match self.attempts.get(&attempt)? {
            Printed::Bytes(0) => return None,
            Printed::Bytes(bytes) => Some(*bytes),
            Printed::Unknown => None,
        };
        let is_lost = match log.metadata() {
            Ok(log) => lost.is_some_and(|bytes| log.len() < kept(bytes)),
            // One that cannot be looked at is said by those who read it.
            Err(error) => error.kind() == ErrorKind::NotFound,
        };
        is_lost.then_some(lost)
    }
}

/// The least length of a log of so many bytes. A disk without holes keeps no more than head and tail.
fn kept(bytes: u64) -> u64 {
    let Spool { head_bytes, tail_bytes } = Spool::default();
    bytes.min(head_bytes + tail_bytes)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn heard(facts: &[Value]) -> Heard {
        let mut heard = Heard::default();
        for fact in facts {
            heard.hear(&serde_json::from_value(fact.clone()).expect("a fact"));
        }
        heard
    }

    #[test]
    fn only_an_end_that_was_seen_proves_that_nothing_was_printed() {
        let nowhere = Path::new("/nonexistent/output.log");
        let started =
            json!({"kind": "AttemptStarted", "turn": 1, "attempt": 1, "pid": 7, "start": 9});
        let ended = |outcome: &str, bytes: u64| {
            json!({"kind": "AttemptEnded", "turn": 1, "attempt": 1, "outcome": outcome, "code": 0,
                "output_bytes": bytes})
        };
        let lost = |facts: &[Value]| heard(facts).lost((1, 1), nowhere);
        assert_eq!(lost(&[]), None, "it never started");
        assert_eq!(lost(std::slice::from_ref(&started)), Some(None));
        assert_eq!(lost(&[started.clone(), ended("exited", 12)]), Some(Some(12)));
        assert_eq!(lost(&[started.clone(), ended("exited", 0)]), None);
        assert_eq!(lost(&[started, ended("lost", 0)]), Some(None));
    }
}
