//! What is wrong, if something is: the journal, the runs that cannot be read, the disk, and what is around them.

mod around;
mod kept;
mod stale;
mod waiting;

use std::sync::Arc;

use outlast_engine::{RunId, Time};
use outlast_wire::again;
use outlast_wire::api::{DoctorReport, Finding, Holding, Level, TriggerView};
use outlast_wire::codes::Code;

use crate::custody;
use crate::notify;
use crate::recovery;
use crate::refusal::Refusal;
use crate::runs::names;
use crate::supervisor::Supervisor;
use crate::supervisor::strays::Stray;
use crate::triggers::view;
use crate::world::files;

/// Less free space than this is worth a warning.
const LOW_BYTES: u64 = 256 << 20;

/// So many triggers that are in trouble are told one by one, of which so many are looked at together.
const MOST_TROUBLED: usize = 20;
const TRIGGERS_PAGE: usize = 256;
const TROUBLED_HINT: &str = "outlast trigger ls";

/// So many directories that the journal does not know are told one by one.
const MOST_STRAYS: usize = 20;

/// Looks at everything. Blocks.
pub(crate) fn examine(supervisor: &Arc<Supervisor>) -> DoctorReport {
    let mut findings = journal(supervisor);
    findings.extend(EXAMINERS.iter().flat_map(|examine| examine(supervisor)));
    let findings: Vec<Finding> =
        findings.into_iter().map(|finding| named(supervisor, finding)).collect();
    let healthy = findings.iter().all(|finding| finding.level == Level::Ok);
    DoctorReport { healthy, findings }
}

/// The finding with its runs named as their users name them. A journal that cannot be read has no names.
fn named(supervisor: &Supervisor, finding: Finding) -> Finding {
    let name = |text: String| names::in_text(&*supervisor.ground.store, &text).unwrap_or(text);
    Finding { message: name(finding.message), hint: finding.hint.map(name), ..finding }
}

type Examiner = fn(&Arc<Supervisor>) -> Vec<Finding>;

/// Who looks, in the order in which it is told. Each says nothing where there is nothing to look at.
const EXAMINERS: [Examiner; 18] = [
    runs,
    storm,
    pause_all,
    stale::runs,
    waiting::runs,
    custody,
    lineage,
    leftovers,
    kept::snapshots,
    config,
    around::secrets,
    sinks,
    triggers,
    disk,
    around::program,
    around::listener,
    around::outbound,
    around::clock,
];

fn sinks(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    notify::findings(&supervisor.ground)
}

/// A trigger that makes no runs looks like one that had no reason to.
fn triggers(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    match troubled(supervisor) {
        Ok((found, 0)) => found,
        Ok((mut found, more)) => {
            let message = format!("{more} more are in trouble");
            found.push(finding(Level::Warning, "trigger", message, Some(TROUBLED_HINT)));
            found
        }
        Err(error) => {
            let message = format!("the triggers cannot be read: {error}");
            vec![finding(Level::Problem, "trigger", message, None)]
        }
    }
}

/// The first triggers that are in trouble, and how many more there are.
fn troubled(supervisor: &Supervisor) -> Result<(Vec<Finding>, usize), outlast_store::Error> {
    let (mut found, mut more) = (Vec::new(), 0);
    let mut after = String::new();
    loop {
        let page = view::page(&supervisor.triggers, &after, TRIGGERS_PAGE)?;
        for TriggerView { name, trouble, .. } in &page {
            let Some(trouble) = trouble else { continue };
            if found.len() == MOST_TROUBLED {
                more += 1;
                continue;
            }
            let message = format!("{name:?} since {}: {:?}", trouble.since, trouble.message);
            found.push(finding(Level::Warning, "trigger", message, Some(TROUBLED_HINT)));
        }
        match page.last() {
            Some(last) if page.len() == TRIGGERS_PAGE => after.clone_from(&last.name),
            _ => return Ok((found, more)),
        }
    }
}

fn journal(supervisor: &Supervisor) -> Vec<Finding> {
    let problems = match supervisor.ground.store.check() {
        Ok(problems) => problems,
        Err(error) => {
            let refusal = Refusal::from(error);
            return vec![finding(
                Level::Problem,
                "journal",
                refusal.message,
                refusal.hint.as_deref(),
            )];
        }
    };
    if problems.is_empty() {
        let message = "every journal replays and agrees with its row";
        return vec![finding(Level::Ok, "journal", message, None)];
    }
    let hint = Some(
        "the others are not touched by it; a run that cannot be read can be removed, by name:\noutlast rm RUN",
    );
    problems
        .into_iter()
        .map(|problem| match problem.run {
            Some(run) => {
                finding(Level::Problem, "run", format!("{run}: {}", problem.message), hint)
            }
            None => finding(Level::Problem, "journal", problem.message, None),
        })
        .collect()
}

/// A journal that was taken away under a daemon, and what came of that.
fn custody(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    let took = "something on this machine removes or writes to the state directory's files";
    let mended = supervisor.ground.store.mended().into_iter();
    let mended = mended.map(|words| finding(Level::Warning, "journal", words, Some(took)));
    let copies = custody::rescued(&supervisor.ground.layout).into_iter().map(|copy| {
        let message = format!(
            "{} holds what a daemon had open when its journal was replaced",
            copy.display()
        );
        let hint = "remove it; or, to serve it, stop the daemon, move outlast.db and its -wal away, and the copy to outlast.db:\noutlast daemon stop";
        finding(Level::Warning, "journal", message, Some(hint))
    });
    mended.chain(copies).chain(set_aside(supervisor)).collect()
}

/// Files of the daemon that could not be used, and lie where they were put.
fn set_aside(supervisor: &Supervisor) -> Vec<Finding> {
    let names = files::names(&supervisor.ground.layout.state).unwrap_or_default();
    let mut aside: Vec<String> = names
        .iter()
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name.contains(files::DAMAGED))
        .collect();
    aside.sort();
    let of = |name: String| {
        let message = format!("{name} could not be used and was set aside");
        finding(Level::Warning, "state", message, Some("look at it, and then remove it"))
    };
    aside.into_iter().map(of).collect()
}

/// Runs that are in quarantine, or in trouble, or have outlived their shim.
fn runs(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    let quarantined = supervisor.quarantined();
    let mut findings: Vec<Finding> = quarantined
        .iter()
        .map(|(id, trouble)| {
            let hint = if trouble.code == recovery::BEHIND {
                format!("take it on to where its directory is:\noutlast recover {id}")
            } else {
                format!("it is left alone and read again later; to remove it:\noutlast rm {id}")
            };
            finding(
                Level::Problem,
                "run",
                format!("{id} is in quarantine: {}", trouble.message),
                Some(&hint),
            )
        })
        .collect();
    for (id, handle) in supervisor.handles() {
        let snapshot = handle.snapshot.borrow();
        if let Some(trouble) = &snapshot.trouble {
            let hint = (trouble.code == Code::Unreadable).then(|| {
                format!(
                    "end what is left of it, then remove it:\noutlast stop {id}\noutlast rm {id}"
                )
            });
            findings.push(finding(
                Level::Problem,
                "run",
                format!("{id}: {} since {}: {}", trouble.code, trouble.since, trouble.message),
                hint.as_deref(),
            ));
        }
        if snapshot.run.is_orphaned() {
            let hint = format!(
                "its output and exit cannot be seen any more; to end it:\noutlast stop {id}"
            );
            findings.push(finding(
                Level::Warning,
                "run",
                format!("{id} has lost its shim and its process is alive"),
                Some(&hint),
            ));
        }
        let left = snapshot.run.survivors().len();
        if left > 0 && snapshot.run.has_ended() {
            findings.push(finding(
                Level::Warning,
                "run",
                format!("{id} has ended and {left} of its processes are alive"),
                Some(&format!("outlast stop {id}")),
            ));
        }
    }
    findings
}

/// A daemon that holds back what it resumes looks idle from outside.
fn storm(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    let Some(Holding { until, why, runs }) = supervisor.holding() else { return Vec::new() };
    let message = format!("nothing is resumed until {until}, {runs} waiting: {why}");
    let hint = "read why, or end the wait:\noutlast daemon logs\noutlast daemon restart";
    vec![finding(Level::Problem, "daemon", message, Some(hint))]
}

/// The person who paused everything may have forgotten it.
fn pause_all(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    let Some(since) = supervisor.held_since() else { return Vec::new() };
    let by = supervisor.held_by().map(|by| format!(", by {by}")).unwrap_or_default();
    let message = format!("everything is paused since {}{by}", crate::view::rfc3339(since));
    let hint = Some("outlast resume --all");
    vec![finding(Level::Warning, "hold", message, hint)]
}

/// A config that is wrong does not stop anything, so `doctor` has to say so.
fn config(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    // The person who looks for what is wrong has perhaps just put it right.
    let holds = supervisor.config();
    let problems = supervisor.ground.settings.problems();
    let hint = match holds {
        Ok(_) => "the last valid settings hold until it is fixed:\noutlast config check",
        Err(_) => {
            "no run can be started until it is fixed, and live runs keep running:\noutlast config check"
        }
    };
    let wrong = problems.iter().map(|it| {
        let hint = it.hint.as_ref().map_or(hint.to_owned(), |own| {
            let between = if own.ends_with('?') { "" } else { ";" };
            format!("{own}{between} {hint}")
        });
        finding(Level::Problem, "config", it.to_string(), Some(&hint))
    });
    let warnings = supervisor.ground.settings.warnings();
    let odd = warnings
        .iter()
        .map(|it| finding(Level::Warning, "config", it.to_string(), it.hint.as_deref()));
    wrong.chain(odd).collect()
}

/// A journal that was replaced or restored answers every question as if nothing had been lost.
fn lineage(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    let Some(broken) = supervisor.ground.lineage.broken() else { return Vec::new() };
    let since = crate::view::rfc3339(Time(broken.at_ms));
    let message = format!("{} (noticed {since})", broken.what);
    let hint = "list what the run directories still prove:\noutlast recover --dry-run";
    vec![finding(Level::Problem, "journal", message, Some(hint))]
}

/// Directories that the journal does not know: they may be the work of a person, and may be alive.
fn leftovers(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    let runs = supervisor.ground.layout.runs();
    if let Err(error) = again::read_dir(&runs)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        let message = format!("{} cannot be read: {error}", runs.display());
        let hint = "give it back to the user of the daemon, with mode 700";
        return vec![finding(Level::Problem, "state", message, Some(hint))];
    }
    let strays = supervisor.strays.all();
    let of = |(id, stray): (&RunId, &Stray)| {
        let hint = format!("rebuild it, or remove it:\noutlast recover {id}\noutlast rm {id}");
        finding(Level::Problem, "run", format!("{id}: {}", stray.trouble.message), Some(&hint))
    };
    let mut findings: Vec<Finding> = strays.iter().take(MOST_STRAYS).map(of).collect();
    if strays.len() > MOST_STRAYS {
        let message = format!("the journal does not know {} directories in all", strays.len());
        let hint = Some("rebuild what their files prove:\noutlast recover");
        findings.push(finding(Level::Problem, "run", message, hint));
    }
    findings
}

fn disk(supervisor: &Arc<Supervisor>) -> Vec<Finding> {
    let found = match rustix::fs::statvfs(&supervisor.ground.layout.state) {
        Ok(stat) => {
            let free = stat.f_bavail.saturating_mul(stat.f_frsize);
            let (level, hint) = if free < LOW_BYTES {
                (Level::Warning, Some("remove old runs:\noutlast gc"))
            } else {
                (Level::Ok, None)
            };
            finding(level, "disk", format!("{} MiB free for the state directory", free >> 20), hint)
        }
        Err(error) => {
            finding(Level::Warning, "disk", format!("cannot tell the free space: {error}"), None)
        }
    };
    vec![found]
}

fn finding(level: Level, subject: &str, message: impl Into<String>, hint: Option<&str>) -> Finding {
    Finding {
        level,
        subject: subject.to_owned(),
        message: message.into(),
        hint: hint.map(str::to_owned),
    }
}
