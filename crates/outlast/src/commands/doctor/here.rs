//! What can be seen from here, with or without a daemon: directories, the lock, the disk, the service.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use outlast_client::absence::{self, Absence};
use outlast_home::address;
use outlast_home::holder;
use outlast_home::holder::Holder;
use outlast_home::layout::Layout;
use outlast_home::lock::Lock;
use outlast_wire::api::{Finding, Level};

use crate::builds;
use crate::loop_file;
use crate::output::figures;
use crate::output::time::both;
use crate::world::World;

/// Below this a run's output and the journal soon have no room.
const LITTLE_SPACE: u64 = 256 << 20;
const NO_SPACE: u64 = 16 << 20;

/// Where logind notes whose services go on without them.
const LINGER: &str = "/var/lib/systemd/linger";

pub(super) fn look_around(world: &World, layout: &Layout) -> Vec<Finding> {
    let mut findings = vec![
        directory("state directory", &layout.state),
        directory("runtime directory", &layout.runtime),
        socket_path(layout),
    ];
    findings.extend(service(world, Path::new(LINGER)));
    findings
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
    ok(subject, format!("{shown} is private (0700)"))
}

fn socket_path(layout: &Layout) -> Finding {
    let socket = address::socket(layout).unwrap_or_else(|| layout.socket());
    let length = socket.as_os_str().len();
    let is_long = outlast_home::socket::is_long(&socket);
    let how = if is_long { ", reached through its directory" } else { "" };
    ok("socket path", format!("{} has {length} bytes{how}", socket.display()))
}

/// A service that ends with its user's last session is no supervision.
fn service(world: &World, linger: &Path) -> Option<Finding> {
    let config = match world.client.var("XDG_CONFIG_HOME") {
        Some(config) => PathBuf::from(config),
        None => Path::new(world.client.var("HOME")?).join(".config"),
    };
    let unit = config.join("systemd/user/outlast.service");
    if !unit.exists() {
        return None;
    }
    let user = world.client.var("USER").or_else(|| world.client.var("LOGNAME"))?;
    let shown = unit.display();
    Some(if linger.join(user).exists() {
        ok("service", format!("{shown} is installed, and goes on without a session"))
    } else {
        let message =
            format!("{shown} is installed, and ends with the last session: lingering is off");
        let hint = format!("loginctl enable-linger {}", user.to_string_lossy());
        warning("service", message, &hint)
    })
}

/// The config, where no daemon has read it.
pub(super) fn config(layout: &Layout) -> Vec<Finding> {
    let hint = |problem: &outlast_workflow::Problem| problem.hint.clone().unwrap_or_default();
    match loop_file::config(layout) {
        Ok((_, odd)) => odd.iter().map(|it| warning("config", it.to_string(), &hint(it))).collect(),
        Err(wrong) => {
            let until = "no run can be started until it is fixed:\noutlast config check";
            let errors = wrong.errors.iter().map(|it| problem("config", it.to_string(), until));
            let odd = wrong.warnings.iter().map(|it| warning("config", it.to_string(), &hint(it)));
            errors.chain(odd).collect()
        }
    }
}

pub(super) fn space(state: &Path) -> Option<Finding> {
    let existing = state.ancestors().find(|path| path.exists())?;
    let Ok(system) = rustix::fs::statvfs(existing) else { return None };
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    let message = format!("{} free at {}", figures::bytes(free), existing.display());
    let hint = "make room; to remove runs that are no longer kept:\noutlast gc";
    Some(match free {
        ..NO_SPACE => problem("disk", message, hint),
        NO_SPACE..LITTLE_SPACE => warning("disk", message, hint),
        _ => ok("disk", message),
    })
}

/// No daemon answers, and none was started.
pub(super) fn no_daemon(layout: &Layout, lock: Lock, now: Timestamp) -> Finding {
    if lock == Lock::Held {
        let holder = holder::current(&layout.daemon_lock());
        let who = holder.as_ref().map(|holder| who(holder, now)).unwrap_or_default();
        let is_frozen = holder.as_ref().is_some_and(Holder::is_frozen);
        let why = if is_frozen { ": it is frozen, stopped by a signal" } else { "" };
        return problem(
            "daemon",
            format!("a daemon holds the lock and does not answer{why}{who}"),
            "read its last words; or end it, also if it hangs, and runs keep running:\noutlast daemon logs\noutlast daemon stop",
        );
    }
    match absence::absence(layout) {
        None => ok("daemon", "not running; the next command that needs it starts it".to_owned()),
        Some(Absence { since, was_asked: true }) => {
            let since = both(&since.to_string(), now);
            ok("daemon", format!("not running: it was stopped {since}; outlast daemon start"))
        }
        Some(absence) => was_down(&absence, now),
    }
}

/// A person should know that no daemon was watching.
pub(super) fn was_down(absence: &Absence, now: Timestamp) -> Finding {
    let since = both(&absence.since.to_string(), now);
    let message = format!("it was not asked to stop, and its last sign of life was {since}");
    warning("daemon", message, "read its last words:\noutlast daemon logs --tail 50")
}

fn who(holder: &Holder, now: Timestamp) -> String {
    let Holder { pid, version, started_at, .. } = holder;
    format!(" (pid {pid}, version {version}, started {})", both(started_at, now))
}

/// After an upgrade two builds may talk to each other.
pub(super) fn versions(daemon: &str, build: Option<&str>) -> Option<Finding> {
    builds::differs(daemon, build).map(|message| warning("version", message, builds::RESTART))
}

pub(super) fn ok(subject: &str, message: String) -> Finding {
    Finding { level: Level::Ok, subject: subject.to_owned(), message, hint: None }
}

pub(super) fn problem(subject: &str, message: String, hint: &str) -> Finding {
    let hint = Some(hint.to_owned());
    Finding { level: Level::Problem, subject: subject.to_owned(), message, hint }
}

pub(super) fn warning(subject: &str, message: String, hint: &str) -> Finding {
    let hint = (!hint.is_empty()).then(|| hint.to_owned());
    Finding { level: Level::Warning, subject: subject.to_owned(), message, hint }
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
    fn a_socket_path_is_called_long_from_where_it_is_reached_through_its_directory() {
        let told = |bytes: usize| {
            let rest = "/run/daemon.sock".len();
            let home = format!("/{}", "h".repeat(bytes - rest - 1));
            socket_path(&Layout::under(Path::new(&home))).message
        };
        assert!(told(100).ends_with("has 100 bytes"), "{}", told(100));
        assert!(told(101).ends_with("has 101 bytes, reached through its directory"));
        assert!(told(107).ends_with("directory"));
    }

    #[test]
    fn a_service_without_lingering_is_worth_a_word() {
        let dir = tempfile::tempdir().expect("a directory");
        let env = |name: &str, value: &str| (name.into(), value.into());
        let home = dir.path().display().to_string();
        let world = World::new(vec![env("HOME", &home), env("USER", "ada")]);
        let linger = dir.path().join("linger");
        assert!(service(&world, &linger).is_none());
        let units = dir.path().join(".config/systemd/user");
        std::fs::create_dir_all(&units).expect("directories");
        std::fs::File::create(units.join("outlast.service")).expect("a file");
        let found = service(&world, &linger).expect("it is installed");
        assert_eq!(
            (found.level, found.hint.as_deref()),
            (Level::Warning, Some("loginctl enable-linger ada"))
        );
        std::fs::create_dir(&linger).expect("a directory");
        std::fs::File::create(linger.join("ada")).expect("a file");
        assert_eq!(service(&world, &linger).map(|it| it.level), Some(Level::Ok));
    }
}
