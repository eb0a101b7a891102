//! What a service manager hears of a daemon, on a socket that the test holds itself.

use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::Stdio;

use crate::harness::{Background, Home, PATIENCE, kill, str_of, text, until};

/// A listener as systemd would be.
pub(super) struct Listener {
    socket: UnixDatagram,
    path: PathBuf,
}

impl Listener {
    pub(super) fn new(home: &Home) -> Self {
        let path = home.scratch().join("notify");
        let socket = UnixDatagram::bind(&path).expect("no other process listens there");
        socket.set_read_timeout(Some(PATIENCE)).expect("it is a socket");
        Self { socket, path }
    }

    /// The next message that has this line.
    fn hears(&self, line: &str) -> String {
        let mut bytes = [0; 4096];
        loop {
            let length =
                self.socket.recv(&mut bytes).unwrap_or_else(|error| panic!("{line}: {error}"));
            let message = text(&bytes[..length]);
            if message.lines().any(|known| known == line) {
                return message;
            }
        }
    }

    fn pending(&self) -> Vec<String> {
        self.socket.set_nonblocking(true).expect("it is a socket");
        let mut bytes = [0; 4096];
        std::iter::from_fn(|| {
            self.socket.recv(&mut bytes).ok().map(|length| text(&bytes[..length]))
        })
        .collect()
    }
}

/// The main process of a service: it is told its own number, as systemd tells it.
pub(super) fn service(home: &Home, listener: &Listener, env: &[(&str, &str)]) -> Background {
    let mut command = home.command("sh");
    let program = env!("CARGO_BIN_EXE_outlast");
    command.args([
        "-c",
        "SYSTEMD_EXEC_PID=$$ WATCHDOG_PID=$$ exec \"$0\" daemon run --wait",
        program,
    ]);
    command.env("NOTIFY_SOCKET", &listener.path).env("INVOCATION_ID", "0123");
    command.envs(env.iter().copied()).stdout(Stdio::null()).stderr(Stdio::null());
    Background(command.spawn().expect("there is a sh"))
}

#[test]
fn a_service_says_when_it_is_ready_alive_and_leaving() {
    let home = Home::new();
    let listener = Listener::new(&home);
    let daemon = service(&home, &listener, &[("WATCHDOG_USEC", "200000")]);
    let ready = listener.hears("READY=1");
    assert!(ready.contains("STATUS=0 open runs"), "{ready}");
    assert_eq!(home.daemon_pid(), daemon.0.id(), "it answers once it is ready");
    for _ in 0..3 {
        listener.hears("WATCHDOG=1");
    }
    kill(daemon.0.id(), "TERM");
    listener.hears("STOPPING=1");
    assert_eq!(daemon.code(), 0);
}

#[test]
fn a_service_that_waits_for_its_turn_says_so_and_is_not_ready() {
    let home = Home::new();
    let by_hand = home.spawn(&["daemon", "run"]);
    until("it answers", || home.daemon_if_up());
    let listener = Listener::new(&home);
    let daemon = service(&home, &listener, &[]);
    let waiting = listener
        .hears("STATUS=waiting for the daemon that runs already; outlast daemon stop ends it");
    assert!(!waiting.contains("READY"), "{waiting}");
    assert_eq!(home.daemon_pid(), by_hand.0.id());
    kill(by_hand.0.id(), "INT");
    listener.hears("READY=1");
    assert_eq!(home.daemon_pid(), daemon.0.id());
}

#[test]
fn what_is_between_the_manager_and_the_daemon_reaches_nobody_else() {
    const NAMES: [&str; 5] = [
        "NOTIFY_SOCKET=",
        "WATCHDOG_USEC=",
        "WATCHDOG_PID=",
        "SYSTEMD_EXEC_PID=",
        "INVOCATION_ID=",
    ];
    let home = Home::new();
    let listener = Listener::new(&home);
    let daemon = service(&home, &listener, &[("WATCHDOG_USEC", "60000000")]);
    listener.hears("READY=1");
    let id = home.start("exec sleep 1000");
    let leaks = |pid: u32| {
        let environment =
            std::fs::read(format!("/proc/{pid}/environ")).expect("it is alive and ours");
        let environment = text(&environment);
        let has = |name: &&str| environment.split('\0').any(|variable| variable.starts_with(name));
        NAMES.into_iter().filter(has).collect::<Vec<_>>()
    };
    assert_eq!(leaks(daemon.0.id()).len(), NAMES.len(), "the daemon itself was told");
    assert_eq!(leaks(home.shim_pid(&id)), [""; 0]);
    assert_eq!(leaks(home.pid(&id)), [""; 0]);
    let recorded =
        std::fs::read_to_string(home.state().join("daemon.env.json")).expect("it was written");
    assert!(NAMES.iter().all(|name| !recorded.contains(name.trim_end_matches('='))), "{recorded}");
    // The one that a shim starts is not the service, whatever it descends from.
    kill(daemon.0.id(), "KILL");
    let revived =
        until("a shim has started one", || home.daemon_if_up().filter(|pid| *pid != daemon.0.id()));
    assert_eq!(leaks(revived), [""; 0]);
    assert_eq!(str_of(&home.json(&["daemon", "status", "--json"]), "mode"), "background");
    let said = listener.pending();
    assert!(said.iter().all(|message| !message.contains("READY")), "{said:?}");
}

#[test]
fn a_daemon_started_from_within_another_service_is_not_that_service() {
    let home = Home::new();
    let listener = Listener::new(&home);
    let inherited = [
        ("NOTIFY_SOCKET", listener.path.to_str().expect("a plain path")),
        ("SYSTEMD_EXEC_PID", "1"),
    ];
    let mut command = home.outlast(&["daemon", "start"]);
    let output = command.envs(inherited).output().expect("the program starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(str_of(&home.json(&["daemon", "status", "--json"]), "mode"), "background");
    // Nor does one in the foreground wait for it, as a service's would.
    let mut command = home.outlast(&["daemon", "run"]);
    let output = command.envs(inherited).output().expect("the program starts");
    assert!(text(&output.stderr).contains("already holds"), "{}", text(&output.stderr));
    assert_eq!(listener.pending(), [""; 0]);
}
