//! Whether a step without a record may be launched, and its launch.
//!
//! Missing files are no evidence: a directory that is gone may have had a command at work, or may have it still. So
//! the journal, the note beside the step's directory, what else is in that directory and the kernel are asked, in this
//! order, before anything is launched. A shim that was on its way meanwhile may have run the command and be gone before
//! the kernel is asked, and the directory with it: so where a launch was noted, the note and the directory are asked
//! once more after the kernel has said that no process is left. A launch writes the spec anew, and with it hides that
//! the spec was missing.
//!
//! A host without descriptors, processes, memory or room, or one on which no shim starts, fails no step: the step
//! waits, which is shown, and is tried again. Only a step that cannot be described never starts. A step that is to be
//! stopped is not waited for.

use outlast_engine::Step;
use outlast_wire::shim::NeverStarted;
use outlast_wire::words::TroubleCode;

use super::{At, Effect, Evidence, Launched, Note, Seen, StepMonitor, Surroundings, Trouble};

/// After this many failed launches the monitor says that no shim can be started.
const PATIENCE: u32 = 6;

/// Before a command of the host for which there were no resources is tried again.
const FIRST_ERRAND_WAIT_MS: u64 = 100;
const LAST_ERRAND_WAIT_MS: u64 = 30_000;

/// What was known of the step's processes before evidence was gathered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Since {
    Unknown,
    /// The kernel was asked just before, and there was none: whatever ran has left its evidence.
    NobodyLeft,
}

impl StepMonitor {
    /// No shim has the lock, and there is no record.
    pub(super) fn ask_evidence(&mut self, around: &dyn Surroundings) -> At {
        if self.journalled_process().is_some() || self.is_known_to_have_run {
            return self.see_to_left(Vec::new(), around);
        }
        self.gather(Since::Unknown)
    }

    fn gather(&mut self, since: Since) -> At {
        self.effects.push(Effect::GatherEvidence);
        At::GatheringEvidence(since)
    }

    pub(super) fn weigh(
        &mut self,
        evidence: Result<Evidence, Trouble>,
        since: Since,
        around: &dyn Surroundings,
    ) -> At {
        let evidence = match evidence {
            Ok(evidence) => evidence,
            Err(trouble) => return self.cannot_tell(trouble, around),
        };
        if let Note::Main(who) = evidence.note {
            self.noted = Some(who);
        }
        if evidence.may_have_run() {
            return self.has_run(around);
        }
        let is_tried = match evidence.note {
            Note::Launch | Note::Main(_) => true,
            Note::Other => false,
            // A daemon that took no notes may have launched it.
            Note::None => self.task.run.created_at < self.owner.began || !evidence.has_run_dir,
        };
        match since {
            Since::Unknown if is_tried => {
                self.effects.push(Effect::LookForProcesses { main: None });
                At::LookingBehind
            }
            Since::Unknown | Since::NobodyLeft => self.start(around),
        }
    }

    /// The step has run, and there was no record. Its shim took the lock before that, and maybe after this monitor
    /// found the lock free: so the monitor looks once more, and what it finds then is what is left.
    fn has_run(&mut self, around: &dyn Surroundings) -> At {
        if std::mem::replace(&mut self.is_known_to_have_run, true) {
            return self.see_to_left(Vec::new(), around);
        }
        self.look()
    }

    /// The step may have run, or it may not: neither is made up.
    fn cannot_tell(&mut self, trouble: Trouble, around: &dyn Surroundings) -> At {
        let is_shortage = trouble.is_shortage;
        self.effects.push(Effect::Trouble(Some(trouble)));
        if !is_shortage && self.takes_order() {
            return self.orphan(Vec::new(), around);
        }
        self.rest(around)
    }

    pub(super) fn looked_behind(
        &mut self,
        seen: Result<Seen, String>,
        around: &dyn Surroundings,
    ) -> At {
        match seen {
            Err(message) => self.cannot_tell(Trouble::of_file(None, message), around),
            Ok(seen) if !seen.tree.is_empty() => self.has_run(around),
            // It has not come to its lock yet, or has lost its socket: it is asked again.
            Ok(seen) if !seen.shims.is_empty() => {
                let told = self.told.clone();
                self.note_silence("a shim was started for it and does not answer", &told, around);
                self.rest(around)
            }
            // No process is left that could run it from here on. A shim that has gone may have run it since the evidence
            // was gathered.
            Ok(_) => self.gather(Since::NobodyLeft),
        }
    }

    /// Nothing of the step has ever run. One that is to be stopped is seen to at once.
    fn start(&mut self, around: &dyn Surroundings) -> At {
        if self.stop.is_none() && around.is_paced() {
            return At::HeldBack;
        }
        // A step that is to be stopped is not waited for.
        match self.errand_wait_ms().filter(|_| self.stop.is_none()) {
            Some(wait_ms) => At::Pacing { until_ms: around.awake_ms() + wait_ms },
            None => self.launch(),
        }
    }

    /// An errand is tried again at once by the engine, which knows no shortage that lasts.
    fn errand_wait_ms(&self) -> Option<u64> {
        let earlier = match (self.task.step, &self.task.run.errand) {
            (Step::Errand { .. }, Some(errand)) => errand.earlier_tries,
            (Step::Errand { .. }, None) | (Step::Attempt { .. }, _) => 0,
        };
        if earlier == 0 || self.tries > 0 {
            return None;
        }
        let doublings = earlier.saturating_sub(1).min(16);
        Some((FIRST_ERRAND_WAIT_MS << doublings).min(LAST_ERRAND_WAIT_MS))
    }

    pub(super) fn launch(&mut self) -> At {
        self.effects.push(Effect::Launch);
        At::Launching
    }

    pub(super) fn launched(&mut self, launched: Launched, around: &dyn Surroundings) -> At {
        match launched {
            Launched::Met { hello, baseline } => {
                self.baseline = baseline.or(self.baseline.take());
                self.effects.push(Effect::HasStarted);
                self.meet(hello, true, around)
            }
            Launched::NoAnswer { baseline } => {
                self.baseline = baseline.or(self.baseline.take());
                if self.tries < PATIENCE {
                    self.tries += 1;
                    return self.rest(around);
                }
                self.suspend(TroubleCode::NoShim, "no shim answers", around)
            }
            // What became of it is for the next look to find out.
            Launched::Superseded => self.rest(around),
            Launched::BadSpec(why) => self.fence(NeverStarted::BadSpec, why),
            Launched::Displaced(why) => self.fence(NeverStarted::NoDirectory, why),
            Launched::Failed { code, why } => {
                let code = code.map_or(TroubleCode::CannotStart, TroubleCode::from);
                self.suspend(code, &why, around)
            }
        }
    }

    fn suspend(&mut self, code: TroubleCode, why: &str, around: &dyn Surroundings) -> At {
        if self.stop.is_some() {
            let why = format!("stopped before it was started (cannot start a shim: {why})");
            return self.fence(NeverStarted::Stopped, why);
        }
        self.say_trouble(code, format!("cannot start a shim: {why}"));
        self.rest(around)
    }

    /// Has it written down that nothing ran, where a late shim would read it; the next look finds it there.
    fn fence(&mut self, code: NeverStarted, why: String) -> At {
        self.effects.push(Effect::Fence { code, why });
        At::Fencing
    }

    pub(super) fn fenced(&mut self, fenced: Result<(), Trouble>, around: &dyn Surroundings) -> At {
        if let Err(trouble) = fenced {
            self.effects.push(Effect::Trouble(Some(trouble)));
        }
        self.rest(around)
    }
}
