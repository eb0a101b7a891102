//! A conversation with a living shim, from its Hello until the connection ends or the shim has to be done without.

use outlast_engine::{Custody, Input, StopMode};
use outlast_wire::codes::Code;
use outlast_wire::shim::{self, Record};
use outlast_wire::words::TroubleCode;

use super::pulse::{Do, Pulse};
use super::{
    At, Effect, GRACE_MS, Hello, NO_ANSWER, News, Say, StepMonitor, Surroundings, Then, Unposted,
    Who,
};
use crate::records;

#[derive(Debug)]
pub(super) struct Session {
    records: Vec<Record>,
    /// Failed stops that were there before the latest was asked for.
    stops_before: usize,
    pulse: Pulse,
}

impl StepMonitor {
    /// A shim is there. `is_ours` if this monitor has just launched it: then it has heard Start with Hello.
    pub(super) fn meet(&mut self, hello: Hello, is_ours: bool, around: &dyn Surroundings) -> At {
        let Hello { shim_pid, records } = hello;
        self.silent_since_ms = None;
        self.effects.extend([Effect::Trouble(None), Effect::Shim(Some(shim_pid))]);
        if !records::is_begun(&records) && !is_ours && self.has_run_before() {
            // The step's files were deleted, and another daemon has launched a shim in their place. The step runs once.
            self.effects.extend([Effect::HangUp, Effect::Shim(None)]);
            let told = std::mem::take(&mut self.told);
            return self.see_to_left(told, around);
        }
        if !records::is_begun(&records) {
            // What is to be stopped is not started first.
            if !is_ours && self.stop.is_none() {
                self.effects.push(Effect::Say(Say::Start));
            }
        } else if !is_ours && !self.has_met {
            let (step, epoch) = (self.task.step, self.owner.epoch);
            self.effects.push(Effect::Tell(Input::Adopted { step, epoch }));
        }
        // A shim that is met again after a lost connection was ours already.
        self.has_met = true;
        self.remember(&records);
        // What a shim could not end by itself is news as long as nothing was ordered.
        let is_ordered = self.stop.is_some();
        let stops_before = if is_ordered { records::failed_stops(&records) } else { 0 };
        let pulse = Pulse::new(around.awake_ms());
        let session = Session { records, stops_before, pulse };
        self.report_session(session, Then::Order, around)
    }

    /// True if the journal, a note or a shim that this monitor has met says that the command was started.
    fn has_run_before(&self) -> bool {
        let is_told = records::is_begun(&self.told);
        is_told || self.known_process().is_some() || self.is_known_to_have_run
    }

    fn report_session(
        &mut self,
        session: Session,
        then: impl FnOnce(Session) -> Then,
        around: &dyn Surroundings,
    ) -> At {
        let Session { records, stops_before, .. } = &session;
        let report = records::report(self.task.step, Custody::Shim, records, *stops_before);
        let line = records::line(records);
        self.post(Unposted { report, line, then: then(session) }, around)
    }

    /// Keeps what the shim has told, and has its main process noted beside the step's directory.
    fn remember(&mut self, records: &[Record]) {
        let is_new = records::identity(&self.told).is_none() && self.journalled_process().is_none();
        self.told = records.to_vec();
        let main = records::identity(records).filter(|_| is_new);
        if let Some(main) = main.map(|it| Who { pid: it.pid, start: it.start }) {
            self.noted = Some(main);
            self.effects.push(Effect::NoteMain(main));
        }
    }

    pub(super) fn talk(
        &mut self,
        mut session: Session,
        news: News,
        around: &dyn Surroundings,
    ) -> At {
        match news {
            News::Heard(said) => {
                if session.pulse.heard(around.awake_ms()) {
                    self.effects.push(Effect::Trouble(None));
                }
                self.hear(session, said, around)
            }
            News::HungUp => self.rest(around),
            News::Asked => {
                self.ask(&mut session, false, around);
                At::Talking(session)
            }
            _ => At::Talking(session),
        }
    }

    fn hear(&mut self, mut session: Session, said: shim::News, around: &dyn Surroundings) -> At {
        match said {
            shim::News::Record { record } => {
                session.records.push(record);
                self.remember(&session.records);
                return self.report_session(session, Then::Talk, around);
            }
            shim::News::Disk { problem: Some(problem) } => {
                self.say_trouble(Code::DiskFull, problem);
            }
            shim::News::Disk { problem: None } => self.effects.push(Effect::Trouble(None)),
            shim::News::Refused { .. } => {
                self.effects.push(Effect::HangUp);
                return self.rest(around);
            }
            shim::News::Output { .. } | shim::News::Hello { .. } | shim::News::Window { .. } => {}
        }
        At::Talking(session)
    }

    /// Passes on the stop that is ordered, if one is.
    pub(super) fn pass_on(&mut self, mut session: Session, around: &dyn Surroundings) -> At {
        self.is_stop_news = false;
        let grace_ms = match self.stop {
            None => return At::Talking(session),
            Some(StopMode::Gracefully) => GRACE_MS,
            Some(StopMode::Now) => 0,
        };
        session.stops_before = records::failed_stops(&session.records);
        self.effects.push(Effect::Say(Say::Stop { grace_ms }));
        self.ask(&mut session, true, around);
        At::Talking(session)
    }

    /// Has the shim say that it is there.
    fn ask(&mut self, session: &mut Session, is_order: bool, around: &dyn Surroundings) {
        if session.pulse.wants_to_know(around.awake_ms(), is_order) {
            self.effects.push(Effect::Say(Say::Hello));
        }
    }

    /// Does what the shim's silence asks for.
    pub(super) fn tend(&mut self, mut session: Session, around: &dyn Surroundings) -> At {
        let overdue = self.overdue(&session.records, around);
        while let Some(what) = session.pulse.due(around.awake_ms(), overdue.is_some()) {
            match what {
                Do::Ask => self.effects.push(Effect::Say(Say::Hello)),
                Do::SayUnreachable => {
                    self.say_trouble(TroubleCode::Unreachable, NO_ANSWER.to_owned());
                }
                Do::Wake => self.effects.push(Effect::WakeShim),
                Do::TakeOver => {
                    self.taken_over = Some(overdue.flatten());
                    self.effects.push(Effect::HangUp);
                    return self.take_over(around);
                }
            }
        }
        At::Talking(session)
    }

    /// When to look at the shim again, if nothing happens before: when its silence is to be acted on, or when a limit
    /// is reached that it should have ended the step for.
    pub(super) fn look_in(&self, session: &Session, around: &dyn Surroundings) -> Option<u64> {
        let is_due = self.overdue(&session.records, around).is_some();
        let pulse_at = session.pulse.wake_at(is_due);
        let pulse_in = pulse_at.map(|at_ms| at_ms.saturating_sub(around.awake_ms()));
        let limit_in = self.limit_due(&session.records, around).filter(|_| !is_due);
        let limit_in = limit_in.map(|(at, _)| at.ms_since(around.steady()).max(1));
        pulse_in.into_iter().chain(limit_in).min()
    }
}
