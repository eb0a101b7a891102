//! What the daemon has to do with a service manager: it reports that it is ready, alive and leaving, and asks for a
//! scope for the shim of each step.
//!
//! Only the process that the manager has started itself is the service. A process that merely inherits an invocation
//! id or another service's socket is not. The client installs services.

mod handover;
mod notify;
mod scope;

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use outlast_wire::api::Mode;

pub(crate) use handover::{Before, Takeover, replace, take_over};
pub(crate) use scope::{Scopes, name as scope_name};

/// The service that this process is the main process of; all nothing if it is none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Service {
    /// A service manager waits to hear that we are ready.
    is_awaited: bool,
    /// We are killed unless we say that we are alive within each of these.
    watchdog: Option<Duration>,
    /// Where the systemd that started us is asked for scopes.
    bus: Option<String>,
}

impl Service {
    pub(crate) fn of(env: &[(OsString, OsString)], pid: u32, mode: Mode) -> Self {
        // A daemon that a client or a shim started has their environment, and is no manager's service.
        if mode == Mode::Background || lookup(env, "NOTIFY_SOCKET").is_none() {
            return Self::default();
        }
        let is_us = |name| lookup(env, name).map(|value| value.to_str() == Some(&pid.to_string()));
        let (started, watched) = (is_us("SYSTEMD_EXEC_PID"), is_us("WATCHDOG_PID"));
        if started == Some(false) {
            return Self::default();
        }
        let is_main = started == Some(true) || watched == Some(true);
        Self {
            is_awaited: true,
            watchdog: watchdog(env).filter(|_| watched != Some(false)),
            bus: is_main.then(|| bus(env)).flatten(),
        }
    }

    pub(crate) fn bus(&self) -> Option<&str> {
        self.bus.as_deref()
    }
}

fn watchdog(env: &[(OsString, OsString)]) -> Option<Duration> {
    let usec: u64 = lookup(env, "WATCHDOG_USEC")?.to_str()?.parse().ok()?;
    (usec > 0).then(|| Duration::from_micros(usec))
}

/// The user's bus, by its address or where it is by default.
fn bus(env: &[(OsString, OsString)]) -> Option<String> {
    if let Some(address) = lookup(env, "DBUS_SESSION_BUS_ADDRESS") {
        return address.to_str().map(str::to_owned);
    }
    let runtime = lookup(env, "XDG_RUNTIME_DIR")?.to_str()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_/.".contains(c);
    // Anything else would have to be escaped in an address; such a directory is no user's runtime directory.
    runtime.chars().all(is_plain).then(|| format!("unix:path={runtime}/bus"))
}

fn lookup<'a>(env: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    let (_, value) = env.iter().find(|(known, _)| known == name)?;
    (!value.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PID: u32 = 41;

    fn service(mode: Mode, pairs: &[(&str, &str)]) -> Service {
        let env: Vec<_> =
            pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        Service::of(&env, PID, mode)
    }

    const FULL: [(&str, &str); 6] = [
        ("NOTIFY_SOCKET", "/run/notify"),
        ("SYSTEMD_EXEC_PID", "41"),
        ("WATCHDOG_PID", "41"),
        ("WATCHDOG_USEC", "120000000"),
        ("XDG_RUNTIME_DIR", "/run/user/1000"),
        ("INVOCATION_ID", "0123"),
    ];

    #[test]
    fn the_process_that_the_manager_started_is_the_service() {
        let service = service(Mode::Service, &FULL);
        assert!(service.is_awaited);
        assert_eq!(service.watchdog, Some(Duration::from_secs(120)));
        assert_eq!(service.bus(), Some("unix:path=/run/user/1000/bus"));
    }

    #[test]
    fn what_was_inherited_makes_no_service() {
        let nothing = Service::default();
        assert_eq!(service(Mode::Background, &FULL), nothing);
        let another =
            FULL.map(|(name, value)| if value == "41" { (name, "40") } else { (name, value) });
        assert_eq!(service(Mode::Service, &another), nothing);
        let only_its_id = [("INVOCATION_ID", "0123"), ("XDG_RUNTIME_DIR", "/run/user/1000")];
        assert_eq!(service(Mode::Service, &only_its_id), nothing);
    }

    #[test]
    fn a_watchdog_of_another_process_is_not_fed() {
        let env = [("NOTIFY_SOCKET", "/n"), ("WATCHDOG_PID", "40"), ("WATCHDOG_USEC", "1000")];
        let service = service(Mode::Service, &env);
        assert!(service.is_awaited && service.watchdog.is_none() && service.bus.is_none());
    }

    #[test]
    fn without_a_word_on_whose_it_is_there_are_no_scopes() {
        let env = [("NOTIFY_SOCKET", "/n"), ("XDG_RUNTIME_DIR", "/run/user/1000")];
        assert_eq!(service(Mode::Service, &env).bus, None);
    }
}
