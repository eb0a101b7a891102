//! A trigger as it is asked for, and as it is found again: what is wrong with it is said here.

use std::path::Path;
use std::sync::Arc;

use outlast_engine::Time;
use outlast_store::Trigger;
use outlast_wire::api::{AddTrigger, TriggerSource};
use outlast_wire::codes::Code;
use outlast_workflow::template;

use super::progress::Progress;
use super::run_of::asked as run_of;
use super::schedule::{self, Schedule};
use super::webhook::{self, Condition};
use super::{Brief, Entry, Triggers, view};
use crate::occasion::Occasion;
use crate::refusal::Refusal;
use crate::refusal::{Answer, bad_request};
use crate::world;

const LONGEST_NAME: usize = 64;
const MOST_FILTERS: usize = 32;
const SHORTEST_POLL_MS: u64 = 1000;

/// A trigger that can be added.
pub(crate) struct Checked {
    pub(crate) entry: Entry,
    pub(crate) stored: Trigger,
    /// A secret that was made here.
    pub(crate) secret: Option<String>,
    pub(crate) warnings: Vec<String>,
}

/// Blocks: looks at files and directories.
pub(crate) fn check(triggers: &Triggers, mut asked: AddTrigger) -> Answer<Checked> {
    check_name(&asked.name)?;
    check_run(&asked)?;
    let now = triggers.ground.world.now();
    let before = match asked.replace {
        true => triggers.ground.store.trigger(&asked.name)?,
        false => None,
    };
    asked.replace = false;
    let mut made = None;
    if let TriggerSource::Webhook { secret, .. } = &mut asked.source {
        match (&secret, before.as_ref().and_then(secret_of)) {
            (Some(secret), _) => webhook::check_secret(secret)?,
            (None, Some(old)) => *secret = Some(old),
            (None, None) => {
                let new = webhook::new_secret(world::random()?);
                made = Some(new.clone());
                *secret = Some(new);
            }
        }
    }
    check_source(triggers, &asked.source)?;
    let warnings = try_out(triggers, &asked)?;
    // Nothing that was due before is made up for.
    let cursor_ms = match asked.source {
        TriggerSource::Schedule { .. } => now.0,
        _ => 0,
    };
    let progress = Progress { cursor_ms, ..Progress::default() };
    if let TriggerSource::Schedule { when, tz } = &mut asked.source {
        *when = schedule::with_day(when.clone(), tz.as_deref(), now)?;
        Schedule::new(when, tz.as_deref(), now)?;
    }
    let entry = entry(&asked, now, progress, false)?;
    if let Some(schedule) = &entry.schedule
        && schedule.next_after(now).is_none()
    {
        return Err(Refusal::new(Code::BadSchedule, "that time has passed")
            .hint("to start it now:\noutlast run COMMAND"));
    }
    let stored = stored(&asked, &entry)?;
    Ok(Checked { entry, stored, secret: made, warnings })
}

fn stored(asked: &AddTrigger, entry: &Entry) -> Answer<Trigger> {
    let spec =
        serde_json::to_string(asked).map_err(|error| Refusal::new(Code::Bug, error.to_string()))?;
    Ok(Trigger {
        name: asked.name.clone(),
        kind: asked.source.kind().to_owned(),
        spec,
        state: entry.progress.json(),
        paused: entry.paused,
        created_at: entry.created_at,
    })
}

fn secret_of(trigger: &Trigger) -> Option<String> {
    match spec(trigger).ok()?.source {
        TriggerSource::Webhook { secret, .. } => secret,
        TriggerSource::Schedule { .. }
        | TriggerSource::Folder { .. }
        | TriggerSource::Poll { .. } => None,
    }
}

impl Checked {
    /// The same in the place of a trigger of its name: what has come to that one stays, and so does how far it has come.
    pub(crate) fn instead_of(self, there: &Entry) -> Answer<Self> {
        let (kind, before) = (self.stored.kind.as_str(), there.brief.source.kind());
        if kind != before {
            let name = there.name();
            let message = format!("{name} is a {before} and cannot be replaced by a {kind}");
            return Err(Refusal::new(Code::TriggerTaken, message)
                .hint(format!("outlast trigger rm {name}")));
        }
        let asked = spec(&self.stored).map_err(|what| Refusal::new(Code::Bug, what))?;
        let cursor_ms = self.entry.progress.cursor_ms.max(there.progress.cursor_ms);
        let progress = Progress { cursor_ms, ..there.progress.succeeded() };
        let entry = entry(&asked, there.created_at, progress, there.paused)?;
        let stored = stored(&asked, &entry)?;
        Ok(Self { entry, stored, ..self })
    }
}

/// A trigger as the store has it. All of it is read, so that one which cannot make a run is known from the start.
pub(crate) fn read(trigger: &Trigger) -> Result<Entry, String> {
    let spec = spec(trigger)?;
    let progress: Progress =
        serde_json::from_str(&trigger.state).map_err(|error| format!("its state: {error}"))?;
    entry(&spec, trigger.created_at, progress, trigger.paused)
        .map_err(|refusal| refusal.to_string())
}

/// What was asked for, and so what its runs are.
pub(crate) fn spec(trigger: &Trigger) -> Result<AddTrigger, String> {
    serde_json::from_str(&trigger.spec).map_err(|error| format!("its spec: {error}"))
}

fn entry(
    spec: &AddTrigger,
    created_at: Time,
    progress: Progress,
    paused: bool,
) -> Result<Entry, Refusal> {
    let schedule = match &spec.source {
        TriggerSource::Schedule { when, tz } => {
            Some(Arc::new(Schedule::read(when, tz.as_deref(), created_at)?))
        }
        _ => None,
    };
    let filters: Result<Vec<Condition>, Refusal> = match &spec.source {
        TriggerSource::Webhook { filters, .. } => {
            filters.iter().map(|filter| Condition::parse(filter)).collect()
        }
        _ => Ok(Vec::new()),
    };
    let brief = Brief {
        id: spec.id.clone(),
        name: spec.name.as_str().into(),
        source: spec.source.clone(),
        overlap: spec.overlap,
        missed: spec.missed,
        what: view::what(&spec.run),
    };
    Ok(Entry {
        brief: Arc::new(brief),
        schedule,
        filters: filters?.into(),
        paused,
        created_at,
        progress,
        waiting: 0,
        filtered: 0,
        settled: 0,
        trouble: None,
        stuck: None,
        note: None,
        is_polling: false,
    })
}

fn check_name(name: &str) -> Result<(), Refusal> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_good = (1..=LONGEST_NAME).contains(&name.len())
        && name.chars().all(is_plain)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if is_good {
        return Ok(());
    }
    Err(Refusal::new(Code::BadRequest, format!("{name:?} is not a name for a trigger"))
        .hint(format!("letters, digits, `.` `_` and `-`, up to {LONGEST_NAME}")))
}

/// What belongs to a single run cannot be said of all that a trigger makes.
fn check_run(asked: &AddTrigger) -> Answer<()> {
    let run = &asked.run;
    let single = [
        ("a name", run.name.is_some()),
        ("a key", run.key.is_some()),
        ("an id", run.id.is_some()),
        ("a parent", run.parent.is_some()),
        ("a terminal", run.tty.is_some()),
    ];
    if let Some((what, _)) = single.iter().find(|(_, is_there)| *is_there) {
        return Err(bad_request(format!("the runs of a trigger cannot share {what}")));
    }
    if let Some(task) = &run.task {
        template::check(task).map_err(|problem| {
            Refusal::new(Code::BadTask, format!("the task: {}", problem.message))
                .hint("{{ item.title }} stands for the title of what arrived; {{ begins a name")
        })?;
    }
    Ok(())
}

fn check_source(triggers: &Triggers, source: &TriggerSource) -> Answer<()> {
    match source {
        TriggerSource::Schedule { .. } => Ok(()),
        TriggerSource::Webhook { filters, .. } if filters.len() > MOST_FILTERS => {
            Err(bad_request(format!("{} filters are more than {MOST_FILTERS}", filters.len())))
        }
        TriggerSource::Webhook { .. } => Ok(()),
        TriggerSource::Folder { dir, .. } => check_folder(triggers, Path::new(dir)),
        TriggerSource::Poll { command, every_ms, .. } => {
            if command.trim().is_empty() {
                return Err(bad_request("--poll needs a command"));
            }
            if *every_ms < SHORTEST_POLL_MS {
                return Err(Refusal::new(Code::BadRequest, "a poll runs at most once a second")
                    .hint("--every 5m"));
            }
            Ok(())
        }
    }
}

fn check_folder(triggers: &Triggers, dir: &Path) -> Answer<()> {
    if !dir.is_absolute() || !dir.is_dir() {
        return Err(Refusal::new(
            Code::NoDirectory,
            format!("{} is not a directory", dir.display()),
        )
        .hint(format!("mkdir -p {}", dir.display())));
    }
    let is_ours = dir.canonicalize().is_ok_and(|dir| {
        triggers.ground.layout.state.canonicalize().is_ok_and(|state| dir.starts_with(state))
    });
    if is_ours {
        let message = format!("{} belongs to Outlast itself", dir.display());
        return Err(Refusal::new(Code::NoDirectory, message).hint("use a directory of your own"));
    }
    Ok(())
}

/// Whether a run could be made now, as far as that can be known before there is anything to make it of.
fn try_out(triggers: &Triggers, asked: &AddTrigger) -> Answer<Vec<String>> {
    let is_known = matches!(asked.source, TriggerSource::Schedule { .. });
    let (run, occasion) = if is_known {
        let delivery = outlast_store::Delivery {
            id: "0".to_owned(),
            at: triggers.ground.world.now(),
            body: "{}".to_owned(),
        };
        run_of(asked, &delivery).map_err(|why| Refusal::new(Code::BadTask, why))?
    } else {
        (asked.run.clone(), Occasion::Tried)
    };
    triggers.maker()?.try_out(&run, &occasion)
}
