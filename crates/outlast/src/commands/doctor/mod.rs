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
use outlast_wire::api::{DaemonStatus, DoctorReport, Finding, Level};

use self::here::problem;
use crate::args::Doctor;
use crate::commands::daemon::{Heard, does_answer};
use crate::output::colour::Colour;
use crate::output::printable;
use crate::world::World;
use crate::{Answer, output};

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
        output::print(&page(&report.findings, world.colours()))?;
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
    if let Ok(DaemonStatus { version: Some(version), build, .. }) =
        ask(&mut connection, "/v1/daemon").await
    {
        findings.extend(here::versions(&version, build.as_deref()));
    }
    findings
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
    problem("daemon", message, hint.as_deref().unwrap_or("see outlast daemon logs"))
}

fn page(findings: &[Finding], colours: bool) -> String {
    findings.iter().map(|finding| line(finding, colours)).collect()
}

fn line(finding: &Finding, colours: bool) -> String {
    let (word, colour) = match finding.level {
        Level::Ok => ("ok", Colour::Green),
        Level::Warning => ("warning", Colour::Yellow),
        Level::Problem => ("problem", Colour::Red),
    };
    let word = colour.paint(&format!("{word:<8}"), colours);
    let hint = finding
        .hint
        .as_ref()
        .map(|hint| format!("hint: {}\n", printable(hint)))
        .unwrap_or_default();
    format!("{word} {}: {}\n{hint}", finding.subject, printable(&finding.message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_told_with_their_hints() {
        let findings =
            [here::ok("disk", "5.0 GiB free".to_owned()), problem("run", "odd".to_owned(), "look")];
        insta::assert_snapshot!(page(&findings, false), @r"
        ok       disk: 5.0 GiB free
        problem  run: odd
        hint: look
        ");
    }
}
