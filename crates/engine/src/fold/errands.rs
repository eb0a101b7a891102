//! How what becomes of an errand changes its run.

use std::sync::Arc;

use crate::errand::{self, Result as ErrandResult};
use crate::run::{CallMade, CallOutcome, CallResult, CompletedCall, Done, FailedCheck};
use crate::{BootId, Errand, Hook, Outcome, Purpose, Run, StepState, Survivor, Time, ToolClass};

impl Run {
    pub(super) fn begin_errand(&mut self, number: u32, purpose: &Purpose, boot: &BootId) {
        let earlier_tries = match &self.errand {
            Some(last) if last.purpose == *purpose => match last.result() {
                Some(ErrandResult::Unknown { .. }) => last.earlier_tries + 1,
                Some(ErrandResult::Passed | ErrandResult::Failed { .. }) | None => 0,
            },
            Some(_) | None => 0,
        };
        self.errands = number;
        self.has_cleaned_up |= *purpose == Purpose::Hook { hook: Hook::AfterRun };
        self.errand = Some(Errand {
            number,
            purpose: purpose.clone(),
            state: StepState::new(boot),
            tail: String::new(),
            earlier_tries,
        });
    }

    pub(super) fn end_errand(
        &mut self,
        outcome: &Outcome,
        at: Time,
        output_bytes: u64,
        tail: &str,
        survivors: &[Survivor],
    ) {
        let errand = self.the_errand();
        errand.state.ended(outcome, at, output_bytes, survivors);
        tail.clone_into(&mut errand.tail);
        let (number, purpose) = (errand.number, errand.purpose.clone());
        // What was not observed is tried again, a few times; after that it counts as failed. What the host had no
        // resources for is tried for as long as that takes.
        let result = match errand::result(outcome) {
            ErrandResult::Unknown { may_have_run } if !errand.is_given_up() => {
                if !self.is_harmful_call(&purpose, may_have_run) {
                    // What may have run is not run again if it is promised to run once.
                    self.has_cleaned_up &= may_have_run;
                    return;
                }
                ErrandResult::Unknown { may_have_run }
            }
            ErrandResult::Unknown { .. } if matches!(purpose, Purpose::Tool { .. }) => {
                ErrandResult::Unknown { may_have_run: true }
            }
            ErrandResult::Unknown { .. } => {
                ErrandResult::Failed { why: "its end was not observed".to_owned() }
            }
            known => known,
        };
        self.conclude(number, &purpose, &result, tail);
    }

    /// True for a call that must not be made a second time although the end of the first was not observed.
    fn is_harmful_call(&self, purpose: &Purpose, may_have_run: bool) -> bool {
        let Purpose::Tool { name, .. } = purpose else { return false };
        let class = self.spec.tools.iter().find(|tool| tool.name == *name).map(|tool| tool.class);
        may_have_run && class.is_none_or(|class| class == ToolClass::Unsafe)
    }

    fn conclude(&mut self, errand: u32, purpose: &Purpose, result: &ErrandResult, tail: &str) {
        let done = match result {
            ErrandResult::Passed => Done::Well,
            ErrandResult::Failed { why } => Done::Badly { why: why.clone() },
            ErrandResult::Unknown { .. } => {
                Done::Badly { why: "its end was not observed".to_owned() }
            }
        };
        let has_passed = done == Done::Well;
        match purpose {
            Purpose::Checkout if has_passed => self.preparation.is_checked_out = true,
            // A workspace that cannot be checked out is none.
            Purpose::Checkout => self.preparation.after_create = done,
            Purpose::Hook { hook: Hook::AfterCreate } => self.preparation.after_create = done,
            Purpose::Hook { hook: Hook::BeforeRun } => self.preparation.before_run = done,
            Purpose::Hook { hook: Hook::AfterTurn } => {
                if let Some(settling) = &mut self.settling {
                    settling.after_turn = done;
                }
            }
            Purpose::Hook { hook: Hook::AfterRun | Hook::BeforeRemove } => {}
            Purpose::Ready { .. } => {
                self.preparation.ready += u32::from(has_passed);
                self.preparation.has_asked = !has_passed;
            }
            Purpose::Done { check } => self.conclude_check(*check, &done, tail),
            Purpose::Snapshot { cause } => self.conclude_snapshot(*cause),
            // The event that follows says what became of it.
            Purpose::Restore { .. } => {}
            Purpose::Tool { call, name, key } => {
                let outcome = match result {
                    ErrandResult::Passed => CallOutcome::Ok,
                    ErrandResult::Failed { why } => CallOutcome::Failed { why: why.clone() },
                    ErrandResult::Unknown { .. } => CallOutcome::Unknown,
                };
                let (name, key) = (name.clone(), key.clone());
                let made = Some(CallMade { errand, seq: self.seq });
                let result = CallResult { name, key, outcome, made };
                self.conclude_call(*call, result);
            }
        }
    }

    fn conclude_check(&mut self, check: u32, done: &Done, tail: &str) {
        let Some(claim) = &mut self.claim else { return };
        match done {
            Done::NotYet | Done::Well => claim.passed += 1,
            Done::Badly { why } => {
                claim.has_failed = true;
                self.counters.failed_claims += 1;
                let at = usize::try_from(check).unwrap_or(usize::MAX);
                let command = self.spec.checks.done.get(at).cloned().unwrap_or_default();
                let failed = FailedCheck { command, why: why.clone(), output: tail.to_owned() };
                if let Some(previous) = &mut self.previous {
                    previous.failed_checks.push(failed);
                }
            }
        }
    }

    fn conclude_call(&mut self, call: u32, result: CallResult) {
        if let Some(settling) = &mut self.settling {
            settling.needs_person |= result.outcome == CallOutcome::Unknown;
        }
        if let (CallOutcome::Ok, Some(made)) = (&result.outcome, result.made) {
            let completed = CompletedCall { name: result.name.clone(), made };
            Arc::make_mut(&mut self.calls).insert(result.key.clone(), completed);
        }
        self.set_result(call, result);
    }

    pub(super) fn answer_call(&mut self, call: u32, key: &str) {
        if let Some(CompletedCall { name, made }) = self.calls.get(key).cloned() {
            let (key, outcome) = (key.to_owned(), CallOutcome::Ok);
            self.set_result(call, CallResult { name, key, outcome, made: Some(made) });
        }
    }

    fn set_result(&mut self, call: u32, result: CallResult) {
        let at = usize::try_from(call).unwrap_or(usize::MAX);
        if let Some(slot) = self.previous.as_mut().and_then(|it| it.results.get_mut(at)) {
            *slot = Some(result);
        }
    }
}
