//! What a run directory holds, by the names in it. Opens no file and decides nothing.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;

use outlast_engine::Step;
use outlast_home::layout::RunDir;
use outlast_wire::again;

/// The entries of one run directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// Turn and attempt, in order.
    pub(crate) attempts: BTreeSet<(u32, u32)>,
    pub(crate) errands: BTreeSet<u32>,
    /// Every other name.
    pub(crate) others: BTreeSet<OsString>,
}

impl Contents {
    /// Fails if any entry cannot be listed: what was not read is not absent.
    pub(crate) fn read(dir: &RunDir) -> io::Result<Self> {
        let mut contents = Self::default();
        for entry in again::read_dir(&dir.0)? {
            contents.add(entry?.file_name());
        }
        Ok(contents)
    }

    fn add(&mut self, name: OsString) {
        match name.to_str().and_then(step) {
            Some(Step::Attempt { turn, attempt }) => {
                self.attempts.insert((turn, attempt));
            }
            Some(Step::Errand { errand }) => {
                self.errands.insert(errand);
            }
            None => {
                self.others.insert(name);
            }
        }
    }

    pub(crate) fn steps(&self) -> impl Iterator<Item = Step> {
        let attempts = self.attempts.iter().map(|&(turn, attempt)| Step::Attempt { turn, attempt });
        attempts.chain(self.errands.iter().map(|&errand| Step::Errand { errand }))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.others.iter().any(|other| other == name)
    }
}

/// `t2.a1` or `e3`, written as we write it.
fn step(name: &str) -> Option<Step> {
    let step = match name.strip_prefix('t') {
        Some(rest) => {
            let (turn, attempt) = rest.split_once(".a")?;
            Step::Attempt { turn: turn.parse().ok()?, attempt: attempt.parse().ok()? }
        }
        None => Step::Errand { errand: name.strip_prefix('e')?.parse().ok()? },
    };
    (word(step) == name).then_some(step)
}

/// The name of a step's directory.
pub(crate) fn word(step: Step) -> String {
    match step {
        Step::Attempt { turn, attempt } => format!("t{turn}.a{attempt}"),
        Step::Errand { errand } => format!("e{errand}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_as_we_write_them_are_steps() {
        assert_eq!(step("t12.a3"), Some(Step::Attempt { turn: 12, attempt: 3 }));
        assert_eq!(step("e7"), Some(Step::Errand { errand: 7 }));
        for other in ["env.json", "t1", "t01.a1", "t1.a", "t1.a+1", "e", "e07", "trigger.json"] {
            assert_eq!(step(other), None, "{other}");
        }
    }
}
