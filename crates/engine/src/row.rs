//! One line about a run, as lists show it and the store keeps it beside the journal.
//!
//! A projection: whatever is here can be had by replaying, and `check` of the store does.

use std::collections::BTreeMap;

use crate::{Exit, Health, Known, ReasonCode, Run, RunId, State, StateName, Time, Word};

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
    /// What every attempt reported whole.
    pub known: Known,
    /// How much of the two was not reported, and is held for what was not.
    pub reserved_tokens: u64,
    pub reserved_cost_usd_micros: u64,
    /// How many attempts did not report all that they used, of a run whose attempts could. Absent in a row from before
    /// this was kept.
    pub unreported: Option<u64>,
    pub created_at: Time,
    pub started_at: Option<Time>,
    pub ended_at: Option<Time>,
    /// How long it worked, once it has ended: time at rest is not counted. Absent in a row from before this was kept.
    pub worked_ms: Option<u64>,
    pub exit: Option<Exit>,
    pub labels: BTreeMap<String, String>,
    pub survivors: usize,
    /// The trigger that made it, if one did.
    pub trigger: Option<String>,
    pub parent: Option<RunId>,
    /// What the next turn is asked to do, cut; nothing for a command.
    pub task: Option<String>,
    /// What the last turn that was committed said, cut.
    pub summary: Option<String>,
    /// Something still has to be done or watched.
    pub is_open: bool,
}

/// In characters: what a list shows of a text. The step to schema 4 of the store has the same number.
const LONGEST: usize = 200;

/// The first characters of a text, if it has any.
pub fn cut(text: &str) -> Option<String> {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => Some(format!("{}…", &text[..end])),
        None => Some(text.to_owned()).filter(|text| !text.is_empty()),
    }
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
            known: self.spend.known,
            reserved_tokens: self.spend.reserved.tokens,
            reserved_cost_usd_micros: self.spend.reserved.cost_usd_micros,
            unreported: Some(self.spend.unreported),
            created_at: self.created_at,
            started_at: self.started_at,
            ended_at: self.ended_at,
            worked_ms: self.ended_at.map(|at| self.clock.used_ms(at)),
            exit: self.exit(),
            labels: self.spec.labels.clone(),
            survivors: self.survivors().len(),
            trigger: self.spec.origin.as_ref().map(|origin| origin.trigger.clone()),
            parent: self.spec.parent.clone(),
            task: self.task.as_deref().and_then(cut),
            summary: self.previous.as_ref().and_then(|it| cut(&it.summary)),
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
