//! `outlast doctor`: what needs attention. Looks at this machine itself and asks a daemon if one runs.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use outlast_wire::api::{DoctorReport, Finding, Level};
use outlast_wire::layout::Layout;

use crate::args::Doctor;
use crate::ask::Ask;
use crate::client::{Connection, Failed};
use crate::connect::try_connect;
use crate::lock::{self, Lock};
use crate::output::colour::Colour;
use crate::output::{figures, printable};
use crate::problem::Problem;
use crate::session::unreadable;
use crate::world::{Autostart, World};
use crate::{Answer, autostart, output};

/// Below this a run's output and the journal soon have no room.
const LITTLE_SPACE: u64 = 256 << 20;
const NO_SPACE: u64 = 16 << 20;
/// What the kernel takes as the path of a socket.
const SOCKET_PATH_MAX: usize = 107;

pub(crate) async fn doctor(world: &World, args: Doctor) -> Answer {
    let layout = world.layout()?;
    let mut findings = look_around(layout);
    match try_connect(layout).await {
        Ok(Some(connection)) => findings.extend(ask_daemon(connection).await),
        Ok(None) => findings.extend(without_daemon(world, layout).await),
        Err(problem) => findings.push(unanswered(&problem)),
    }
    let healthy = findings.iter().all(|finding| finding.level != Level::Problem);
    if args.json {
        output::print_json(&DoctorReport { healthy, findings })?;
    } else {
        output::print(&page(&findings, world.colours()))?;
    }
    Ok(u8::from(!healthy))
}

fn look_around(layout: &Layout) -> Vec<Finding> {
    vec![
        directory("state directory", &layout.state),
        directory("runtime directory", &layout.runtime),
        socket_path(layout),
    ]
}

fn directory(subject: &str, path: &Path) -> Finding {
    let shown = path.display();
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return ok(subject, format!("{shown} is made when it is needed"));
        }
        Err(error) => {
            return problem(
                subject,
                format!("cannot look at {shown}: {error}"),
                "check who owns it",
            );
        }
    };
    if !metadata.is_dir() {
        return problem(subject, format!("{shown} is not a directory"), "move it out of the way");
    }
    let owner = metadata.uid();
    if owner != rustix::process::geteuid().as_raw() {
        return problem(
            subject,
            format!("{shown} belongs to user {owner}"),
            "give it back with chown",
        );
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        let hint = format!("chmod 700 {shown}");
        return problem(subject, format!("{shown} is open to others (mode {mode:o})"), &hint);
    }
    ok(subject, format!("{shown} is ours alone"))
}

fn socket_path(layout: &Layout) -> Finding {
    let socket = layout.socket();
    let length = socket.as_os_str().len();
    let how = if length > SOCKET_PATH_MAX { ", reached by way of its directory" } else { "" };
    ok("socket path", format!("{} has {length} bytes{how}", socket.display()))
}

fn space(state: &Path) -> Option<Finding> {
    let existing = state.ancestors().find(|path| path.exists())?;
    let Ok(system) = rustix::fs::statvfs(existing) else { return None };
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    let message = format!("{} free at {}", figures::bytes(free), existing.display());
    let hint = "make room; outlast gc removes runs that are no longer kept";
    Some(match free {
        ..NO_SPACE => problem("disk", message, hint),
        NO_SPACE..LITTLE_SPACE => {
            Finding { level: Level::Warning, ..problem("disk", message, hint) }
        }
        _ => ok("disk", message),
    })
}

/// Only a daemon can look at the journal, so one is started if there is a journal to look at.
async fn without_daemon(world: &World, layout: &Layout) -> Vec<Finding> {
    let may_start = world.autostart() == Autostart::Allowed && layout.database().exists();
    let lock = lock::probe(&layout.daemon_lock());
    if may_start && lock == Lock::Free {
        return match autostart::start(world).await {
            Ok(connection) => ask_daemon(connection).await,
            Err(problem) => {
                space(&layout.state).into_iter().chain([unanswered(&problem)]).collect()
            }
        };
    }
    space(&layout.state).into_iter().chain([no_daemon(lock)]).collect()
}

fn no_daemon(lock: Lock) -> Finding {
    match lock {
        Lock::Free => {
            ok("daemon", "not running; the next command that needs it starts it".to_owned())
        }
        Lock::Held => problem(
            "daemon",
            "a daemon holds the lock and does not listen on its socket".to_owned(),
            "see outlast daemon logs",
        ),
    }
}

async fn ask_daemon(mut connection: Connection) -> Vec<Finding> {
    let report = match connection.fetch(&Ask::get("/v1/doctor")).await {
        Ok(body) => {
            serde_json::from_slice::<DoctorReport>(&body).map_err(|error| unreadable(&error))
        }
        Err(Failed::Lost(why)) => Err(Problem::unreachable(why)),
        Err(Failed::Answered(problem)) => Err(problem),
    };
    match report {
        Ok(report) => report.findings,
        Err(problem) => vec![unanswered(&problem)],
    }
}

fn unanswered(reason: &Problem) -> Finding {
    let (message, hint) = match reason {
        Problem::Told { info, .. } => (info.message.clone(), info.hint.clone()),
        Problem::OutputClosed => ("no answer".to_owned(), None),
    };
    problem("daemon", message, hint.as_deref().unwrap_or("see outlast daemon logs"))
}

fn ok(subject: &str, message: String) -> Finding {
    Finding { level: Level::Ok, subject: subject.to_owned(), message, hint: None }
}

fn problem(subject: &str, message: String, hint: &str) -> Finding {
    let hint = Some(hint.to_owned());
    Finding { level: Level::Problem, subject: subject.to_owned(), message, hint }
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
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_directory_that_others_can_read_is_a_problem() {
        let dir = tempfile::tempdir().expect("a directory");
        let set = |mode| {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(dir.path(), permissions).expect("it is ours");
        };
        set(0o700);
        assert_eq!(directory("d", dir.path()).level, Level::Ok);
        set(0o755);
        assert_eq!(directory("d", dir.path()).level, Level::Problem);
        assert_eq!(directory("d", &dir.path().join("none")).level, Level::Ok);
        let file = dir.path().join("file");
        std::fs::File::create(&file).expect("a file");
        assert_eq!(directory("d", &file).level, Level::Problem);
    }

    #[test]
    fn findings_are_told_with_their_hints() {
        let findings =
            [ok("disk", "5.0 GiB free".to_owned()), problem("run", "odd".to_owned(), "look")];
        insta::assert_snapshot!(page(&findings, false), @r"
        ok       disk: 5.0 GiB free
        problem  run: odd
        hint: look
        ");
    }
}
