//! Runs that are open and get nowhere: no other check would notice.

use std::sync::Arc;

use outlast_engine::{Run, State, Time};
use outlast_wire::api::{Finding, Level};

use super::finding;
use crate::supervisor::Supervisor;

const HOUR_MS: u64 = 60 * 60 * 1000;
const DAY_MS: u64 = 24 * HOUR_MS;

/// So long may a person or another run take before `doctor` reminds of it.
const PATIENCE_MS: u64 = 7 * DAY_MS;

/// So long may a run have nothing to do that is not at rest.
const IDLE_MS: u64 = HOUR_MS;

pub(super) fn runs(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    let now = supervisor.ground.world.now();
    let handles = supervisor.handles();
    let stale = handles.iter().filter_map(|(_, handle)| stale(&handle.snapshot.borrow().run, now));
    stale.collect()
}

fn stale(run: &Run, now: Time) -> Option<Finding> {
    let rests_ms = now.ms_since(run.since);
    let days = rests_ms / DAY_MS;
    let told =
        |message: String, hint: &str| Some(finding(Level::Warning, "run", message, Some(hint)));
    match &run.state {
        State::Blocked { .. } if rests_ms >= PATIENCE_MS => told(
            format!("{} has waited for a person for {days} days ({})", run.id, run.why.reason_code),
            &format!("answer it, resume it, or stop it:\noutlast show {}", run.id),
        ),
        State::Waiting { cause, until: None, .. } if rests_ms >= PATIENCE_MS => told(
            format!("{} has waited for {days} days ({})", run.id, cause.written().word()),
            &format!("resume it, or stop it:\noutlast resume {0}\noutlast stop {0}", run.id),
        ),
        State::Blocked { .. } | State::Waiting { .. } | State::Queued | State::Ended { .. } => None,
        State::Preparing | State::Running | State::Verifying | State::Finishing { .. } => {
            let is_idle = run.due().is_empty() && run.wake_at().is_none();
            (is_idle && rests_ms >= IDLE_MS).then(|| {
                let message = format!(
                    "{} is {} for {} hours, and nothing is due for it",
                    run.id,
                    run.state.name().word(),
                    rests_ms / HOUR_MS
                );
                finding(
                    Level::Problem,
                    "run",
                    message,
                    Some(&format!("please report this; to end it:\noutlast stop {}", run.id)),
                )
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use outlast_engine::{Agent, BootId, Context, RunId, RunSpec, WaitCause, create};

    use super::*;

    /// A run that waits for this since the beginning.
    fn waiting(cause: WaitCause, until: Option<Time>) -> Run {
        let agent = Agent { kind: "exec".to_owned(), command: vec!["true".to_owned()] };
        let id = RunId("aaaa00000001".to_owned());
        let spec = RunSpec::command(agent, "/".to_owned());
        let events = create(&id, spec, &Context::new(Time(0), BootId("b".to_owned())));
        let mut run = Run::replay(&id, &events).expect("the engine makes legal runs");
        run.state = State::Waiting { cause, since: Time(0), until };
        run
    }

    #[test]
    fn a_run_that_waits_for_somebody_is_brought_up_after_a_week() {
        let run = waiting(WaitCause::Message, None);
        assert!(stale(&run, Time(PATIENCE_MS - 1)).is_none());
        let found = stale(&run, Time(PATIENCE_MS)).expect("it is stale");
        assert_eq!(found.message, "aaaa00000001 has waited for 7 days (message)");
        let timer = waiting(WaitCause::Timer, Some(Time(1)));
        assert!(stale(&timer, Time(PATIENCE_MS)).is_none());
    }
}
