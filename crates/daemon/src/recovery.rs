//! Rebuilds runs from their directories, for a journal that was lost, replaced or restored.
//!
//! Reads what the files of a run prove and lets the engine make events of it. Writes only those events, in one
//! append. A rebuilt run that is alive is then adopted as after any restart.

use std::io;
use std::sync::Arc;

use outlast_conduct::records as meaning;
use outlast_engine::{
    Agent, Answer, BootId, Custody, End, Event, Found, FoundAttempt, FoundEnd, Input, Report, Run,
    RunId, RunSpec, Slot, Step, Time, recover,
};
use outlast_home::layout::{AttemptDir, RunDir};
use outlast_store::{Append, Entry, Error, Used, slot};
use outlast_wire::api::{RecoverItem, RecoverReport};
use outlast_wire::codes::Code;
use outlast_wire::shim::{self, Record};

use crate::conductor::{self, append_to};
use crate::directory::{Contents, word};
use crate::ended;
use crate::lanes::Lane;
use crate::records;
use crate::redaction::{self, Absent};
use crate::refusal::Refusal;
use crate::steps;
use crate::supervisor::Supervisor;
use crate::supervisor::strays;
use crate::world::{World, files};
use outlast_conduct::fenced_run::FencedRun;

/// The word for a run whose directory has gone further than its journal.
pub(crate) const BEHIND: Code = Code::JournalBehind;

/// A run as its directory proves it, and how to write that down.
pub(crate) struct Rebuilt {
    pub(crate) run: Run,
    expected_seq: u64,
    events: Vec<Event>,
    found: Found,
}

impl Rebuilt {
    /// The run as it will be once it has been written down and looked at.
    pub(crate) fn preview(&self, world: &World) -> Run {
        let context = world.context(Slot::Free);
        self.run.decide(&Input::Woke, &context).after
    }

    fn is_live(&self) -> bool {
        self.run.live().is_some()
    }

    fn spent(&self) -> Entry {
        let last = self.found.attempts.last().map_or(self.run.created_at, |last| last.at);
        // What an older journal had counted is in it.
        let is_new = self.expected_seq == 0;
        let used = if is_new { Used::by(&self.run) } else { Used::default() };
        Entry { slot: slot(last), used }
    }
}

impl Supervisor {
    /// How far the directory of a run that the journal knows has gone beyond it, in words.
    pub(crate) fn ahead_of(&self, run: &Run) -> Option<String> {
        let dir = self.ground.layout.run(run.id.as_str());
        let contents = match Contents::read(&dir) {
            Ok(contents) => contents,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => return Some(format!("cannot list {}: {error}", dir.0.display())),
        };
        if !run.is_finishing() && contents.has("ended.json") {
            match ended::read(&dir, &self.ground.world) {
                Ok(end) => return end.map(|end| has_ended(&end)),
                // Then it proves nothing, which is said if the run has to be rebuilt.
                Err(error) => tracing::error!(run = %run.id, %error, "cannot read how a run ended"),
            }
        }
        let at = run.attempt.as_ref().map_or((0, 0), |last| (last.turn, last.number));
        let known = at.max((run.turns_committed, u32::MAX));
        let attempt = contents.attempts.last().copied().filter(|last| *last > known);
        let errand = contents.errands.last().copied().filter(|last| *last > run.errands);
        let step = attempt
            .map(|(turn, attempt)| Step::Attempt { turn, attempt })
            .or(errand.map(|errand| Step::Errand { errand }))?;
        Some(format!(
            "its directory holds {}, and the journal has come to t{}.a{}: the journal is older than the run",
            word(step),
            at.0,
            at.1
        ))
    }

    /// What can be made of a run's directory. Reads the disk.
    pub(crate) fn rebuild(&self, id: &RunId) -> Result<Rebuilt, Refusal> {
        let dir = self.ground.layout.run(id.as_str());
        let contents = Contents::read(&dir).map_err(|error| unreadable(id, &error))?;
        let alive = contents.errands.iter().copied().find(|errand| is_errand_alive(&dir, *errand));
        if let Some(errand) = alive {
            let message = format!(
                "errand e{errand} of run {id} is alive, and only its journal knew what for"
            );
            let hint =
                format!("recover the run once it has ended, or end it now:\noutlast stop {id}");
            return Err(Refusal::new(Code::ErrandIsLive, message).hint(hint));
        }
        let known = match self.ground.store.row(id) {
            Ok(row) => row.is_some(),
            Err(error) => return Err(Refusal::new(Code::UnreadableRun, error.to_string())),
        };
        let context = self.ground.world.context(Slot::Free);
        let cannot = |error: &dyn std::fmt::Display| {
            Refusal::new(Code::NotRecoverable, format!("run {id} cannot be rebuilt: {error}"))
                .hint("its files are kept as they are")
        };
        if known {
            let before = self.ground.replay(id).map_err(|error| cannot(&error))?;
            let found = self.find(&dir, &contents, &before.spec, Vec::new());
            let events = before.catch_up(&found, &context).map_err(|error| cannot(&error))?;
            let expected_seq = before.seq();
            let apply = |run: Result<Run, _>, event: &Event| run?.apply(event);
            let run = events.iter().fold(Ok(before), apply);
            let run = run.map_err(|error: outlast_engine::Illegal| cannot(&error))?;
            return Ok(Rebuilt { run, expected_seq, events, found });
        }
        let mut missing = Vec::new();
        let spec = spec_of(&dir, &contents, &mut missing).map_err(|error| cannot(&error))?;
        let found = self.find(&dir, &contents, &spec, missing);
        let first = found.attempts.iter().map(|it| it.at).min();
        let created_at = strays::made_at(&dir).min(first.unwrap_or(Time(u64::MAX)));
        let events =
            recover(id, spec, created_at, &found, &context).map_err(|error| cannot(&error))?;
        let run = Run::replay(id, &events).map_err(|error| cannot(&error))?;
        Ok(Rebuilt { run, expected_seq: 0, events, found })
    }

    fn find(
        &self,
        dir: &RunDir,
        contents: &Contents,
        spec: &RunSpec,
        mut missing: Vec<String>,
    ) -> Found {
        let secrets = redaction::secrets(&self.ground, dir, spec, None, Absent::Gone);
        if let Err(error) = &secrets {
            missing.push(format!("env.json, so that what its turns said is withheld: {error}"));
        }
        let look = |&(turn, attempt): &(u32, u32)| {
            let step = Step::Attempt { turn, attempt };
            let mut found =
                look(&self.ground.world, &dir.attempt(turn, attempt), step, spec, &mut missing);
            redaction::hide_in_report(secrets.as_ref().ok(), &mut found.report);
            note_answer(&found.report.answer, step, &mut missing);
            found
        };
        let mut attempts: Vec<FoundAttempt> = contents.attempts.iter().map(look).collect();
        let errands = contents.errands.last().copied().unwrap_or(0);
        let end = ended::read(dir, &self.ground.world).unwrap_or_else(|error| {
            missing.push(format!("how it ended: {error}"));
            None
        });
        // The disk may have been too full for a record of how an attempt ended.
        for it in attempts.iter_mut().filter(|it| end.is_some() && !it.is_over) {
            it.is_over = !steps::is_locked(&dir.attempt(it.turn, it.attempt));
            missing.push(format!("t{}.a{}: how it ended", it.turn, it.attempt));
        }
        Found { attempts, errands, missing, end }
    }

    /// Writes down what a run's directory proves, and takes the run over.
    pub(crate) async fn recover(self: &Arc<Self>, id: &RunId) -> Result<RecoverItem, Refusal> {
        let Some(_claim) = self.claim_soon(id).await else {
            return Err(
                Refusal::new(Code::Busy, format!("run {id} is being changed")).hint("ask again")
            );
        };
        // Another client may have had it recovered while this one waited: it is conducted then, and rebuilt no more.
        if !self.forgotten().contains(id) {
            let (reader, wanted) = (self.clone(), id.clone());
            let read = Lane::Surveys.run(move || reader.ground.replay(&wanted)).await;
            if let Ok(Ok(run)) = read
                && let Some(before) = recovered_before(&run)
            {
                return Ok(before);
            }
            let message = format!("the journal knows run {id} as it is");
            return Err(
                Refusal::new(Code::NothingToRecover, message).hint(format!("outlast show {id}"))
            );
        }
        let (reader, wanted) = (self.clone(), id.clone());
        let rebuilt = Lane::Surveys.run(move || reader.rebuild(&wanted)).await;
        let rebuilt = rebuilt.map_err(|error| Refusal::new(Code::Bug, error.to_string()))??;
        let append = Append {
            run: id.clone(),
            expected_seq: rebuilt.expected_seq,
            epoch: self.ground.epoch,
            events: rebuilt.events.clone(),
            row: rebuilt.run.row(),
            outbox: Vec::new(),
            spent: rebuilt.spent(),
        };
        append_to(self, append).await.map_err(|error| not_taken(id, &error))?;
        let dir = self.ground.layout.run(id.as_str());
        strays::acknowledge(&dir);
        if let Err(error) = files::remove(&dir.removing()) {
            tracing::error!(run = %id, %error, "cannot take back the mark of a removal");
        }
        self.strays.forget(id);
        self.release(id);
        tracing::info!(run = %id, "rebuilt from its directory");
        let item = item(&rebuilt, "recovered");
        self.note(&rebuilt.run, Entry::default());
        conductor::start(self, FencedRun::new(rebuilt.run, self.ground.epoch), Some(Input::Woke));
        self.note_all_seen_to();
        Ok(item)
    }

    /// Recovers these runs, or says what would come of it. One that cannot be rebuilt does not keep the others
    /// from it.
    pub(crate) async fn recover_all(
        self: &Arc<Self>,
        ids: Vec<RunId>,
        dry_run: bool,
    ) -> RecoverReport {
        let mut report = RecoverReport { dry_run, runs: Vec::new() };
        for id in ids {
            let done =
                if dry_run { self.would_recover(&id).await } else { self.recover(&id).await };
            report.runs.push(done.unwrap_or_else(|refusal| kept(&id, &refusal)));
        }
        if !dry_run {
            self.note_all_seen_to();
        }
        report
    }

    /// Once nothing is forgotten any more, it is no longer said that the journal was replaced or restored.
    fn note_all_seen_to(&self) {
        if self.forgotten().is_empty()
            && let Err(error) =
                self.ground.lineage.forget_break(&*self.ground.store, self.ground.epoch)
        {
            tracing::error!(%error, "cannot note that the journal has been seen to");
        }
    }

    async fn would_recover(self: &Arc<Self>, id: &RunId) -> Result<RecoverItem, Refusal> {
        let (reader, wanted) = (self.clone(), id.clone());
        let rebuilt = Lane::Surveys.run(move || reader.rebuild(&wanted)).await;
        let rebuilt = rebuilt.map_err(|error| Refusal::new(Code::Bug, error.to_string()))??;
        Ok(item(&rebuilt, "would_recover"))
    }

    /// Every run that the journal has forgotten, or stands behind.
    pub(crate) fn forgotten(&self) -> Vec<RunId> {
        let quarantined = self.quarantined();
        let behind = quarantined.into_iter().filter(|(_, trouble)| trouble.code == BEHIND);
        self.strays.all().into_keys().chain(behind.map(|(id, _)| id)).collect()
    }

    /// Ends through their shims those steps of a run that are alive and pass, whatever its journal says of them.
    pub(crate) async fn end_alive(
        self: &Arc<Self>,
        id: &RunId,
        grace_ms: u64,
        passes: fn(Step) -> bool,
    ) -> io::Result<()> {
        let dir = self.ground.layout.run(id.as_str());
        let steps: Vec<Step> = Contents::read(&dir)?.steps().filter(|step| passes(*step)).collect();
        for step in steps {
            let dir = steps::step_dir(&dir, step);
            if steps::is_locked(&dir) {
                steps::end(&self.ground, &dir, grace_ms).await?;
            }
        }
        Ok(())
    }
}

fn has_ended(end: &FoundEnd) -> String {
    format!(
        "its directory says that it ended as {}: the journal is older than the run",
        end.verdict.name().word()
    )
}

fn is_errand_alive(dir: &RunDir, errand: u32) -> bool {
    steps::is_locked(&dir.errand(errand))
}

/// The run's own spec; without one, what its last attempt was told to run.
fn spec_of(dir: &RunDir, contents: &Contents, missing: &mut Vec<String>) -> io::Result<RunSpec> {
    let why = match strays::read_spec(dir) {
        Ok(spec) => return Ok(spec),
        Err(error) => error,
    };
    let (turn, attempt) = *contents.attempts.last().ok_or(why)?;
    let told = outlast_home::regular::read(&dir.attempt(turn, attempt).spec())?;
    let told: shim::Spec = serde_json::from_slice(&told)?;
    missing.push("spec.json: only the command, its directory and its limits are known".to_owned());
    let agent = Agent { kind: "exec".to_owned(), command: told.argv };
    let mut spec = RunSpec::command(agent, told.dir.display().to_string());
    spec.limits.turn_timeout_ms = told.limits.turn_timeout_ms;
    spec.limits.stall_window_ms = told.limits.stall_window_ms;
    Ok(spec)
}

/// What the files of one attempt prove.
fn look(
    world: &World,
    dir: &AttemptDir,
    step: Step,
    spec: &RunSpec,
    missing: &mut Vec<String>,
) -> FoundAttempt {
    let (turn, attempt) = match step {
        Step::Attempt { turn, attempt } => (turn, attempt),
        Step::Errand { .. } => unreachable!("only attempts are looked at"),
    };
    let is_locked = steps::is_locked(dir);
    let records = records::read(&dir.events()).unwrap_or_else(|error| {
        missing.push(format!("{}: {error}", word(step)));
        Vec::new()
    });
    if records.is_empty() && !is_locked {
        missing.push(format!("{}: its records", word(step)));
    }
    let boot = meaning::identity(&records).map(|it| BootId(it.boot.clone()));
    let is_of_this_boot = boot.as_ref().is_none_or(|boot| *boot == world.boot);
    let custody = match (&boot, records.is_empty()) {
        (Some(_), _) if !is_of_this_boot => Custody::Rebooted,
        // The shim died before it could release the command, which it says beforehand.
        (None, false) => Custody::NeverHeld,
        (Some(_), _) | (None, true) => Custody::Nobody,
    };
    let is_over = !is_locked && (meaning::is_over(&records) || !is_of_this_boot || boot.is_none());
    let mut report = Report { ..meaning::report(step, custody, &records, 0) };
    if let Some(End::Exited { exit, cause: None, .. }) = report.end {
        report.answer = steps::answer(spec, dir, exit)
            .unwrap_or_else(|error| Answer::Bad { why: error.to_string() });
    }
    // A line of time is that of one boot.
    let line = meaning::line(&records).filter(|_| is_of_this_boot);
    records::in_our_time(&mut report, line, world);
    let at = match told_at(&records) {
        Some(told) => world.of_shim(told, line),
        None => world.ours(written_at(dir)),
    };
    let boot = boot.unwrap_or_else(|| world.boot.clone());
    FoundAttempt { turn, attempt, boot, at, is_over, report }
}

fn note_answer(answer: &Answer, step: Step, missing: &mut Vec<String>) {
    if let Answer::Bad { why } = answer {
        missing.push(format!("{}: its response: {why}", word(step)));
    }
}

fn told_at(records: &[Record]) -> Option<Time> {
    records.iter().find_map(|record| match record {
        Record::Starting { at_ms, .. }
        | Record::Started { at_ms, .. }
        | Record::NeverStarted { at_ms, .. } => Some(Time(*at_ms)),
        _ => None,
    })
}

/// When the attempt's spec was written, or its directory made.
fn written_at(dir: &AttemptDir) -> Time {
    strays::made_at(&RunDir(dir.0.clone()))
}

fn item(rebuilt: &Rebuilt, result: &str) -> RecoverItem {
    let attempts = rebuilt.found.attempts.len();
    RecoverItem {
        run: rebuilt.run.id.0.clone(),
        result: result.to_owned(),
        alive: rebuilt.is_live(),
        turns_committed: rebuilt.run.turns_committed,
        attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
        missing: rebuilt.run.recovered.as_ref().map_or_else(Vec::new, |it| it.missing.clone()),
        why: None,
    }
}

fn kept(id: &RunId, refusal: &Refusal) -> RecoverItem {
    RecoverItem {
        run: id.0.clone(),
        result: "kept".to_owned(),
        alive: false,
        turns_committed: 0,
        attempts: 0,
        missing: Vec::new(),
        why: Some(refusal.message.clone()),
    }
}

fn unreadable(id: &RunId, error: &io::Error) -> Refusal {
    Refusal::new(Code::NotRecoverable, format!("the directory of run {id} cannot be read: {error}"))
        .hint("its files are kept as they are")
}

fn not_taken(id: &RunId, error: &Error) -> Refusal {
    let refusal =
        Refusal::new(Code::NotRecoverable, format!("run {id} cannot be written down: {error}"));
    match error {
        Error::NameTaken { .. } | Error::KeyTaken { .. } => {
            refusal.hint("stop or remove the other run first")
        }
        _ => refusal.hint("its files are kept as they are; try again"),
    }
}

/// What is said of a run that was recovered before.
pub(crate) fn recovered_before(run: &Run) -> Option<RecoverItem> {
    let recovered = run.recovered.as_ref()?;
    Some(RecoverItem {
        run: run.id.0.clone(),
        result: "recovered_before".to_owned(),
        alive: run.live().is_some(),
        turns_committed: run.turns_committed,
        attempts: run.attempt.as_ref().map_or(0, |last| last.number),
        missing: recovered.missing.clone(),
        why: None,
    })
}
