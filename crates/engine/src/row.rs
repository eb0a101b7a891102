//! One line about a run, as lists show it and the store keeps it beside the journal.
//!
//! A projection: whatever is here can be had by replaying, and `check` of the store does.

use std::collections::BTreeMap;

use crate::{Exit, Health, ReasonCode, Run, RunId, State, StateName, Time, Word};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub id: RunId,
    pub name: Option<String>,
    pub key: Option<String>,
    pub state: StateName,
    pub reason_code: Option<Word<ReasonCode>>,
    pub health: Health,
    pub what: String,
    pub turn: u32,
    pub attempt: u32,
    /// What it is doing, in few words; nothing once it has ended.
    pub phase: Option<String>,
    /// Of a loop.
    pub max_turns: Option<u32>,
    pub tokens: u64,
    pub cost_usd_micros: u64,
    pub created_at: Time,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    pub exit: Option<Exit>,
    pub labels: BTreeMap<String, String>,
    pub survivors: usize,
    /// The trigger that made it, if one did.
    pub trigger: Option<String>,
    pub parent: Option<RunId>,
    /// Something still has to be done or watched.
    pub is_open: bool,
}

impl Row {
    /// True once the journal has the run's end.
    pub fn has_ended(&self) -> bool {
        self.state.verdict().is_some() && self.ended_at.is_some()
    }
}

impl Run {
    pub fn row(&self) -> Row {
        let attempt = self.attempt.as_ref();
        Row {
            id: self.id.clone(),
            name: self.spec.name.clone(),
            key: self.spec.key.clone(),
            state: self.state.name(),
            reason_code: self.reason_code(),
            health: self.known_health(),
            what: self.spec.what(),
            turn: attempt.map_or(0, |attempt| attempt.turn),
            attempt: attempt.map_or(0, |attempt| attempt.number),
            phase: (!self.has_ended()).then(|| self.phase()),
            max_turns: self.spec.limits.max_turns.filter(|_| self.spec.workflow.is_some()),
            tokens: self.spend.tokens(),
            cost_usd_micros: self.spend.cost_usd_micros,
            created_at: self.created_at,
            started_at: self.started_at,
            ended_at: self.ended_at,
            exit: self.exit(),
            labels: self.spec.labels.clone(),
            survivors: self.survivors().len(),
            trigger: self.spec.origin.as_ref().map(|origin| origin.trigger.clone()),
            parent: self.spec.parent.clone(),
            is_open: self.is_open(),
        }
    }

    /// Why the run is where it is, unless it simply goes on.
    pub fn reason_code(&self) -> Option<Word<ReasonCode>> {
        if self.is_stop_incomplete() {
            return Some(ReasonCode::StopIncomplete.into());
        }
        match self.state {
            State::Queued | State::Preparing | State::Running | State::Verifying => None,
            State::Waiting { .. }
            | State::Blocked { .. }
            | State::Finishing { .. }
            | State::Ended { .. } => Some(self.why.reason_code.clone()),
        }
    }

    /// The exit of the last attempt, if it was observed.
    pub fn exit(&self) -> Option<Exit> {
        self.attempt.as_ref()?.state.end.as_ref()?.0.exit()
    }
}
