//! A broken promise, with everything that is needed to look at it again.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub seed: u64,
    pub step: u64,
    pub reason: String,
    /// The journal of the run that it is about, one event a line; empty if it is about no single run.
    pub journal: Vec<String>,
    /// The journals of the other runs, then the last things that happened in the world.
    pub trail: Vec<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "seed {} step {}: {}", self.seed, self.step, self.reason)?;
        self.journal.iter().try_for_each(|line| writeln!(f, "  {line}"))?;
        writeln!(f, "what came before, the latest last:")?;
        self.trail.iter().try_for_each(|line| writeln!(f, "  {line}"))
    }
}

impl std::error::Error for Failure {}
