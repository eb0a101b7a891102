//! `outlast doctor`: what needs attention. Looks at this machine itself and asks a daemon if one runs.

mod bundle;
mod here;

use outlast_client::ask::Ask;
use outlast_client::connect::meet;
use outlast_client::connection::{Connection, Failed};
use outlast_client::problem::Problem;
use outlast_client::session::unreadable;
use outlast_client::world::Autostart;
use outlast_client::{absence, autostart};
use outlast_home::layout::Layout;
use outlast_home::lock::{self, Lock};
use outlast_wire::api::{DaemonStatus, DoctorReport, Finding, Level, Mode, TriggerView};

use self::here::problem;
use crate::args::Doctor;
use crate::commands::daemon::{Heard, does_answer};
use crate::output::colour::Colour;
use crate::output::table::Look;
use crate::output::{figures, lines, printable, time};
use crate::world::World;
use crate::{Answer, output, service};

pub(crate) async fn doctor(world: &World, args: Doctor) -> Answer {
    let layout = world.client.layout()?;
    if let Some(path) = &args.bundle {
        bundle::refuse_existing(path)?;
    }
    let mut findings = here::look_around(world, layout);
    match meet(&world.client).await {
        Ok(Some(connection)) => findings.extend(ask_daemon(world, layout, connection).await),
        Ok(None) => findings.extend(without_daemon(world, layout).await),
        Err(problem) => findings.push(unanswered(&problem)),
    }
    let healthy = findings.iter().all(|finding| finding.level != Level::Problem);
    let report = DoctorReport { healthy, findings };
    if args.json {
        output::print_json(&report)?;
    } else {
        let look = Look { columns: world.columns(), colours: world.colours() };
        output::print(&page(&report.findings, look))?;
    }
    if let Some(path) = &args.bundle {
        let names = if args.with_names { bundle::Names::Kept } else { bundle::Names::LeftOut };
        output::tell(&bundle::write(world, path, &report, names).await?);
    }
    Ok(u8::from(!healthy))
}

/// Only a daemon can look at the journal, so one is started if there is a journal to look at.
async fn without_daemon(world: &World, layout: &Layout) -> Vec<Finding> {
    let may_start = world.client.autostart() == Autostart::Allowed && layout.database().exists();
    let lock = lock::probe(&layout.daemon_lock());
    if may_start && lock == Lock::Free {
        // Looked at first: a daemon that is started leaves signs of life of its own.
        let absence = absence::absence(layout).filter(|absence| !absence.was_asked);
        let was_down = absence.map(|absence| here::was_down(&absence, world.now()));
        let found = match autostart::start(&world.client).await {
            Ok(connection) => ask_daemon(world, layout, connection).await,
            Err(problem) => {
                here::space(&layout.state).into_iter().chain([unanswered(&problem)]).collect()
            }
        };
        return was_down.into_iter().chain(found).collect();
    }
    let mut findings = here::config(layout);
    findings.extend(here::space(&layout.state));
    findings.push(here::no_daemon(layout, lock, world.now()));
    findings
}

async fn ask_daemon(world: &World, layout: &Layout, mut connection: Connection) -> Vec<Finding> {
    match does_answer(&mut connection).await {
        Ok(Heard::Something) => {}
        Ok(Heard::Nothing) => return vec![here::no_daemon(layout, Lock::Held, world.now())],
        Err(problem) => return vec![unanswered(&problem)],
    }
    let mut findings = match ask::<DoctorReport>(&mut connection, "/v1/doctor").await {
        Ok(report) => report.findings,
        Err(problem) => vec![unanswered(&problem)],
    };
    if let Ok(status) = ask::<DaemonStatus>(&mut connection, "/v1/daemon").await {
        let version = status.version.as_deref();
        findings.extend(version.and_then(|it| here::versions(it, status.build.as_deref())));
        let triggers = ask::<Vec<TriggerView>>(&mut connection, "/v1/triggers").await;
        findings.extend(alone(world, &status, &triggers.unwrap_or_default()).await);
    }
    findings
}

/// No service manager starts the daemon, and something here relies on a daemon: after a reboot it waits for a person.
async fn alone(world: &World, status: &DaemonStatus, triggers: &[TriggerView]) -> Option<Finding> {
    let open = status.runs.map_or(0, |runs| runs.live + runs.resting);
    let active = triggers.iter().filter(|trigger| !trigger.paused).count();
    if status.mode == Some(Mode::Service) || (open == 0 && active == 0) {
        return None;
    }
    if service::status(world, None).await.installed {
        return None;
    }
    let open = usize::try_from(open).unwrap_or(usize::MAX);
    let what = [(active, "trigger"), (open, "open run")]
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| figures::count(*count, word))
        .collect::<Vec<_>>()
        .join(" and ");
    let message =
        format!("none is installed: after a reboot, {what} will wait for the next outlast command");
    Some(here::warning("service", message, "outlast daemon install"))
}

/// One question to a daemon that is there.
async fn ask<T: serde::de::DeserializeOwned>(
    connection: &mut Connection,
    path: &str,
) -> Result<T, Problem> {
    match connection.fetch(&Ask::get(path)).await {
        Ok(body) => serde_json::from_slice(&body).map_err(|error| unreadable(&error)),
        Err(Failed::Lost(why)) => Err(Problem::unreachable(why)),
        Err(Failed::Answered(problem)) => Err(problem),
    }
}

fn unanswered(reason: &Problem) -> Finding {
    let (message, hint) = match reason {
        Problem::Told { info, .. } => (info.message.clone(), info.hint.clone()),
        Problem::OutputClosed => ("no answer".to_owned(), None),
    };
    problem("daemon", message, hint.as_deref().unwrap_or("outlast daemon logs"))
}

/// What needs a look first, the worst of it at the top; the rest is one line.
fn page(findings: &[Finding], look: Look) -> String {
    let mut odd: Vec<&Finding> =
        findings.iter().filter(|finding| finding.level != Level::Ok).collect();
    odd.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    let fine = findings.len() - odd.len();
    let page: String = odd.into_iter().map(|finding| line(finding, look)).collect();
    let word = Colour::Green.paint(&format!("{:<8}", "ok"), look.colours);
    format!("{page}{word} {}\n", figures::count(fine, "check"))
}

fn line(finding: &Finding, look: Look) -> String {
    let (word, colour) = match finding.level {
        Level::Ok => ("ok", Colour::Green),
        Level::Warning => ("warning", Colour::Yellow),
        Level::Problem => ("problem", Colour::Red),
    };
    let hint =
        finding.hint.as_ref().map(|hint| format!("{}\n", lines::hint(hint))).unwrap_or_default();
    let message = printable(&time::localised(&finding.message));
    let text = format!("{word:<8} {}: {message}\n{hint}", finding.subject);
    let text = lines::fitting(&text, look.columns);
    let rest = text.strip_prefix(word).unwrap_or_default();
    format!("{}{rest}", colour.paint(word, look.colours))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_told_with_their_hints() {
        let findings =
            [here::ok("disk", "5.0 GiB free".to_owned()), problem("run", "odd".to_owned(), "look")];
        insta::assert_snapshot!(page(&findings, Look { columns: None, colours: false }), @r"
        problem  run: odd
        hint: look
        ok       1 check
        ");
    }
}
