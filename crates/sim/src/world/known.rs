//! What the journal of a run has said so far, folded as it grew, and what a reader remembers of it.

use std::collections::BTreeSet;

use outlast_engine::{Event, Fact, Hook, Illegal, Limits, Outcome, Purpose, Run, RunId, Spend};

#[derive(Debug, Default)]
pub(crate) struct Known {
    run: Option<Run>,
    pub(crate) committed: BTreeSet<u32>,
    pub(crate) received: Vec<String>,
    /// Messages that were in the request of a turn that has committed.
    pub(crate) taken: BTreeSet<String>,
    /// Messages that an attempt took while it lived, by its turn and number.
    pub(crate) midway: BTreeSet<(u32, u32, String)>,
    /// Keys of calls that have completed.
    pub(crate) completed_keys: BTreeSet<String>,
    /// What the host's commands have said yes to.
    pub(crate) passed: Vec<Purpose>,
    /// Checks that have passed since the last turn.
    pub(crate) done_checks: BTreeSet<u32>,
    pub(crate) spend: Spend,
    pub(crate) was_stopped_first: bool,
    is_finishing: bool,
    /// The limits that a person has given it since it was made.
    pub(crate) raised: Option<Limits>,
    /// How many errands there were when the run was last opened again.
    pub(crate) errands_before: u32,
}

impl Known {
    pub(crate) fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    pub(crate) fn seq(&self) -> u64 {
        self.run.as_ref().map_or(0, Run::seq)
    }

    pub(crate) fn fold(&mut self, id: &RunId, event: &Event) -> Result<(), Illegal> {
        self.remember(&event.fact);
        self.run = Some(match self.run.take() {
            Some(run) => run.apply(event)?,
            None => Run::created(id, event)?,
        });
        Ok(())
    }

    fn remember(&mut self, fact: &Fact) {
        match fact {
            Fact::TurnCommitted { .. } => self.done_checks.clear(),
            Fact::MessageReceived { message, .. } => self.received.push(message.clone()),
            Fact::ErrandEnded { outcome: Outcome::Exited { code: 0 }, .. } => self.pass(),
            Fact::StateChanged { verdict: Some(_), .. } => self.is_finishing = true,
            Fact::StopRequested { .. } => self.was_stopped_first |= !self.is_finishing,
            Fact::LimitsRaised { limits, .. } => {
                self.raised = Some(*limits);
                self.open_again();
            }
            _ => {}
        }
    }

    /// A run that had ended has to be made ready, and to be cleaned up after, once more.
    fn open_again(&mut self) {
        let Some(run) = self.run.as_ref().filter(|run| run.has_ended()) else { return };
        self.errands_before = run.errands;
        self.is_finishing = false;
        self.passed.retain(|purpose| {
            !matches!(purpose, Purpose::Ready { .. } | Purpose::Hook { hook: Hook::BeforeRun })
        });
    }

    fn pass(&mut self) {
        let errand = self.run.as_ref().and_then(Run::live_errand);
        let Some(purpose) = errand.map(|errand| errand.purpose.clone()) else { return };
        match &purpose {
            Purpose::Tool { key, .. } => drop(self.completed_keys.insert(key.clone())),
            Purpose::Done { check } => drop(self.done_checks.insert(*check)),
            Purpose::Snapshot { .. } | Purpose::Restore { .. } => {}
            Purpose::Checkout | Purpose::Hook { .. } | Purpose::Ready { .. } => {
                self.passed.push(purpose);
            }
        }
    }
}
