//! How a person's word changes a run: an answer, a resume, more room, a stop.

use std::sync::Arc;

use crate::run::{Done, Emission, Removal};
use crate::{AgentAnswer, Decision, Limits, Run, Time};

impl Run {
    pub(super) fn answer(
        &mut self,
        decision: Decision,
        text: Option<&String>,
        answers: Option<u64>,
    ) {
        let is_live = self.open_question().is_some();
        if let (Some(attempt), Some(seq)) = (&mut self.attempt, answers) {
            attempt.asked.answer(seq, AgentAnswer { decision, text: text.cloned() });
        }
        if is_live {
            return;
        }
        self.decision = Some(decision);
        if let Some(settling) = &mut self.settling
            && settling.emission == Emission::Undecided
            && decision == Decision::Approve
        {
            settling.emission = Emission::Approved;
        }
        self.release();
    }

    /// Takes back a pause and releases a block, as far as they are not later than the event that the order
    /// answers. An order from before orders were bound to anything takes back all.
    pub(super) fn resume(&mut self, answers: Option<u64>, at: Time) {
        let answered = answers.unwrap_or(u64::MAX);
        if self.paused_seq <= answered {
            self.is_paused = false;
        }
        let was_awaiting_look = self.awaits_look();
        let is_bound = answers.is_some();
        let stays_blocked = self.state_seq > answered || self.needs_decision();
        if !(is_bound && self.state.is_blocked() && stays_blocked) {
            self.release();
        }
        // Until now, an attempt of a rebuilt run is counted once it has ended.
        let live = self.live().and_then(|live| live.state.process);
        if let Some(process) = live.filter(|_| was_awaiting_look && !self.awaits_look()) {
            self.clock.used_ms += at.ms_since(process.at);
        }
        self.wind(at);
    }

    /// A person lets the run go on: what had it blocked is counted anew.
    pub(super) fn release(&mut self) {
        self.is_released = self.state.is_blocked();
        self.waive_undo();
        if let Some(recovered) = &mut self.recovered {
            recovered.awaits_look = false;
        }
        self.counters.stalls = 0;
        self.counters.no_progress = 0;
        self.counters.failed_claims = 0;
        if let Some(settling) = &mut self.settling {
            settling.needs_person = false;
        }
        if self.state.is_blocked() && !self.is_prepared() {
            self.preparation.ready = 0;
            self.preparation.has_asked = false;
        }
    }

    /// These limits hold from here on. A run that was exhausted goes on with all that it had; what is done before its
    /// turns and after them is done again.
    pub(super) fn raise(&mut self, limits: &Limits) {
        let before = self.spec.limits;
        Arc::make_mut(&mut self.spec).limits = *limits;
        self.neared.retain(|limit| before.of(*limit) == limits.of(*limit));
        if !self.has_ended() {
            return;
        }
        self.ended_at = None;
        self.limit = None;
        // What it left behind was stopped.
        self.stop = None;
        self.stops_tree = false;
        self.has_cleaned_up = false;
        self.removal = Removal::NotAsked;
        self.preparation.before_run = Done::NotYet;
        self.preparation.ready = 0;
        self.preparation.has_asked = false;
        self.counters.attempts = 0;
        self.counters.free_attempts = 0;
        self.counters.impeded = 0;
        self.release();
    }

    pub(super) fn order_stop(&mut self, mode: crate::StopMode) {
        self.stop = Some(self.stop.map_or(mode, |asked| asked.max(mode)));
        if let Some(attempt) = &mut self.attempt {
            attempt.state.order_stop(mode);
        }
        if let Some(errand) = &mut self.errand {
            errand.state.order_stop(mode);
        }
    }
}
