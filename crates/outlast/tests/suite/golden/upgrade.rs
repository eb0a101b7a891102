//! What one release has left running, and another meets.

use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use outlast_wire::shim::{Decoder, Frame, Order, Role};
use serde_json::{Value, json};

use super::{from_lines, with_more_in_it};
use crate::harness::{Gate, Home, PATIENCE, is_alive, kill, lines, str_of, until};

/// The same program at another place, as an upgrade that keeps the old one would have it.
fn upgraded(home: &Home) -> PathBuf {
    let program = home.scratch().join("upgraded").join("outlast");
    fs::create_dir(home.scratch().join("upgraded")).expect("the scratch directory is ours");
    crate::programs::copy(&program);
    program
}

fn program_of(pid: u32) -> PathBuf {
    fs::read_link(format!("/proc/{pid}/exe")).expect("it is our process")
}

#[test]
fn a_daemon_of_another_build_takes_over_what_runs() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let executed = home.scratch().join("executed");
    let printing = home.start(&format!(
        "echo once >>'{}'; echo before; {}; echo after; exit 7",
        executed.display(),
        gate.pass()
    ));
    let sleeping = home.start("exec sleep 600");
    let pids = [home.pid(&printing), home.pid(&sleeping)];
    let shims = [home.shim_pid(&printing), home.shim_pid(&sleeping)];
    let program = upgraded(&home);
    // The shims may be faster, and start the old one again.
    until("the new build's daemon is up", || {
        home.crash_daemon();
        let started = home
            .command(program.to_str().expect("our paths are text"))
            .args(["daemon", "start"])
            .output();
        assert!(started.expect("it starts").status.success());
        (program_of(home.daemon_pid()) == program).then_some(())
    });
    for id in [&printing, &sleeping] {
        until("the run is adopted", || (home.count(id, "AttemptAdopted") >= 1).then_some(()));
    }
    assert_eq!([home.pid(&printing), home.pid(&sleeping)], pids);
    assert_eq!([home.shim_pid(&printing), home.shim_pid(&sleeping)], shims);
    assert_eq!(program_of(shims[0]), Path::new(env!("CARGO_BIN_EXE_outlast")));

    let attached = home.spawn(&["attach", &printing]);
    gate.open();
    assert_eq!(attached.code(), 1);
    let run = home.show(&printing);
    assert_eq!((&run["exit"], run["attempt"].as_u64()), (&json!({"code": 7}), Some(1)));
    assert_eq!(home.ok(&["logs", &printing]), "before\nafter");
    assert_eq!(lines(&executed), 1, "it was started again");
    home.ok(&["stop", &sleeping]);
    assert!(!is_alive(pids[1]));
    assert_eq!(str_of(&home.show(&sleeping), "state"), "stopped");

    let new = home.start("exec sleep 600");
    assert_eq!(program_of(home.shim_pid(&new)), program);
}

/// A shim of another release, played by the test: it holds the lock and answers on the socket.
struct OtherShim {
    listener: UnixListener,
    _lock: File,
    hello: Value,
}

impl OtherShim {
    /// Takes the place of the run's real shim, which is killed, while no daemon lives.
    fn in_place_of(home: &Home, id: &str) -> Self {
        let shim = home.shim_pid(id);
        home.ok(&["daemon", "stop"]);
        kill(shim, "KILL");
        until("the shim is dead", || (!is_alive(shim)).then_some(()));
        let dir = home.attempt_dir(id, 1, 1);
        let lock =
            File::options().write(true).open(dir.join("shim.lock")).expect("a shim has made it");
        lock.try_lock().expect("the dead hold no locks");
        fs::remove_file(dir.join("ctl.sock")).expect("it was killed");
        let opened = File::open(&dir).expect("it is ours");
        // However long the path is.
        let listener = UnixListener::bind(format!("/proc/self/fd/{}/ctl.sock", opened.as_raw_fd()))
            .expect("the name is free");
        listener.set_nonblocking(true).expect("it is open");
        let records: Vec<Value> =
            from_lines(&fs::read(dir.join("events.jsonl")).expect("a shim has written it"));
        let hello = json!({
            "say": "hello", "proto": 1, "build": "9.9.9", "pid": std::process::id(), "run": id, "turn": 1, "attempt": 1,
            "records": records, "output_bytes": 0,
        });
        Self { listener, _lock: lock, hello: with_more_in_it(&hello) }
    }

    /// The next connection of the daemon, if it has called, with Hello said on both sides.
    fn accept(&self) -> Option<Line> {
        let (stream, _) = self.listener.accept().ok()?;
        stream.set_nonblocking(false).expect("it is open");
        stream.set_read_timeout(Some(PATIENCE)).expect("it is open");
        let mut line = Line { stream, decoder: Decoder::default() };
        let order = line.hear();
        assert!(
            matches!(order, Some(Order::Hello { proto: 1, role: Role::Daemon, .. })),
            "{order:?}"
        );
        line.say(&self.hello);
        Some(line)
    }
}

struct Line {
    stream: UnixStream,
    decoder: Decoder,
}

impl Line {
    /// Whether the daemon still listens shows in what it does, not here.
    fn say(&mut self, news: &Value) {
        let frame = Frame::Message(news).encode().expect("it is short");
        drop(self.stream.write_all(&frame));
    }

    fn record(&mut self, record: &Value) {
        self.say(&json!({"say": "record", "record": with_more_in_it(record), "added_later": 1}));
    }

    /// The next order; `None` if the daemon has hung up.
    fn hear(&mut self) -> Option<Order> {
        match self.decoder.read(&mut self.stream) {
            Ok(Some(Frame::Message(order))) => Some(order),
            Ok(Some(Frame::Bytes(bytes))) => panic!("a daemon types nothing: {bytes:?}"),
            Ok(None) => None,
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("the daemon says nothing any more: {error}"),
        }
    }
}

#[test]
fn a_shim_that_says_more_than_we_know_is_understood() {
    let home = Home::new();
    let id = home.start("exec sleep 600");
    let pid = home.pid(&id);
    let shim = OtherShim::in_place_of(&home, &id);
    home.ok(&["daemon", "start"]);
    let daemon = home.daemon_pid();
    // Twice it says what the older side does not know; then it knows that it is not understood.
    for _ in 0..2 {
        let mut line = until("the daemon calls", || shim.accept());
        line.say(
            &json!({"say": "weather", "sun": true, "record": {"event": "rained", "at_ms": 1}}),
        );
        while line.hear().is_some() {}
    }
    let mut line = until("the daemon calls again", || shim.accept());
    until("it is its shim", || (home.show(&id)["shim_pid"] == std::process::id()).then_some(()));
    let run = home.show(&id);
    assert_eq!(
        (str_of(&run, "state"), &run["trouble"], home.pid(&id)),
        ("running", &Value::Null, pid)
    );

    let stop = home.spawn(&["stop", &id]);
    assert!(matches!(line.hear(), Some(Order::Stop { grace_ms: 10_000 })));
    let at_ms = 1_790_000_000_000_u64;
    line.record(&json!({"event": "ending", "at_ms": at_ms, "cause": "stopped"}));
    line.record(&json!({"event": "exited", "at_ms": at_ms, "exit": {"signal": 15}, "output_bytes": 0, "survivors": []}));
    line.record(&json!({"event": "tree_empty", "at_ms": at_ms}));
    assert_eq!(stop.code(), 0);
    let run = home.show(&id);
    assert_eq!((str_of(&run, "state"), &run["exit"]), ("stopped", &json!({"signal": 15})));
    assert_eq!(home.count(&id, "AttemptAdopted"), 1, "one daemon has adopted it once");
    assert_eq!(home.daemon_pid(), daemon);
}

#[test]
fn a_shim_of_a_newer_protocol_is_refused_by_name_and_left_alone() {
    refused(2, "newer");
}

#[test]
fn a_shim_that_is_too_old_is_left_alone() {
    refused(0, "older");
}

fn refused(proto: u32, how: &str) {
    let home = Home::new();
    let id = home.start("exec sleep 600");
    let pid = home.pid(&id);
    let mut shim = OtherShim::in_place_of(&home, &id);
    shim.hello["proto"] = proto.into();
    // Nothing else of what it says need be known.
    shim.hello["records"] = json!([{"event": "of a later version"}]);
    home.ok(&["daemon", "start"]);
    let trouble = until("the daemon gives up on it", || {
        drop(shim.accept());
        Some(home.show(&id)["trouble"].clone()).filter(|trouble| !trouble.is_null())
    });
    assert_eq!(str_of(&trouble, "code"), "unreachable");
    let said = str_of(&trouble, "message");
    assert!(said.contains(&format!("version 9.9.9 and speaks protocol {proto}, {how}")), "{said}");
    // Its lock is held: it is neither started again nor called ended.
    let run = home.show(&id);
    assert_eq!(
        (str_of(&run, "state"), run["attempt"].as_u64(), &run["exit"]),
        ("running", Some(1), &Value::Null)
    );
    assert_eq!(home.count(&id, "TurnStarted"), 1);
    assert!(is_alive(pid));
    assert!(home.output(&["doctor"]).status.code() == Some(1));
}
