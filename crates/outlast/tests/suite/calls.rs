//! System calls that fail or are interrupted: strace makes them, in the built program.
//!
//! What a failed sync may have lost is shown by `cargo xtask power --fault eio`, which has the power go after it.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::harness::{Home, kill, skip, str_of, text, until};
use crate::hosted::{becomes, configure, file, start};

/// Calls that a signal can interrupt before they have done anything. Of a socket that does not block no read or
/// write is ever interrupted, so these are left alone.
const INTERRUPTIBLE: &str = "epoll_wait,epoll_pwait,poll,ppoll,wait4,waitid,flock,openat,ftruncate,fsync,fdatasync,\
    nanosleep,clock_nanosleep";

/// A strace with faults, ended with the test. What it traces goes on.
struct Faults {
    strace: Child,
    said: PathBuf,
}

impl Faults {
    fn is_possible() -> bool {
        let asked = Command::new("strace").arg("--version").stdout(Stdio::null()).status();
        let is_there = asked.is_ok_and(|status| status.success());
        if !is_there {
            skip("there is no strace to make calls fail");
        }
        is_there
    }

    /// Has these calls of a process that runs already fail, from now on.
    fn of(home: &Home, pid: u32, calls: &str, how: &str) -> Option<Self> {
        let faults = Self::begin(home, pid, calls, how);
        faults.has_attached().then_some(faults)
    }

    fn has_attached(&self) -> bool {
        let attached = until("strace has attached", || {
            let said = fs::read_to_string(&self.said).unwrap_or_default();
            let refused = said.contains("Operation not permitted");
            (refused || said.contains("attached")).then_some(!refused)
        });
        if !attached {
            skip("processes may not be traced here");
        }
        attached
    }

    fn begin(home: &Home, pid: u32, calls: &str, how: &str) -> Self {
        let mut strace = Command::new("strace");
        strace.args(["-f", "-p", &pid.to_string()]);
        let said = home.scratch().join(format!("strace.{}", how.replace(['=', '+', ':'], ".")));
        let log = fs::File::create(&said).expect("the scratch directory is ours");
        strace.args(["-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:{how}")]);
        strace.args(["-e", "signal=none", "-o", "/dev/null"]);
        strace.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        Self { strace: strace.spawn().expect("there is a strace"), said }
    }

    /// From now on calls do what they should.
    fn end(mut self) {
        kill(self.strace.id(), "TERM");
        self.strace.wait().expect("it is our child");
    }
}

impl Drop for Faults {
    fn drop(&mut self) {
        if self.strace.try_wait().is_ok_and(|ended| ended.is_none()) {
            // Asked, so that it lets go of what it traces.
            kill(self.strace.id(), "TERM");
            let _reaped = self.strace.wait();
        }
    }
}

/// A command that waits in the queue may still wait when the machine goes down, so what it was given is on the disk
/// before its id is.
#[test]
fn the_environment_of_a_queued_command_is_synced_before_its_id_is_given() {
    if !Faults::is_possible() {
        return;
    }
    let home = Home::new();
    configure(&home, "[concurrency]\nmax_runs = 1\n");
    let first = home.start("exec sleep 600");
    home.pid(&first);
    let trace = home.scratch().join("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-p", &home.daemon_pid().to_string()]);
    strace.args(["-e", "trace=fsync,fdatasync,rename", "-e", "signal=none", "-o"]).arg(&trace);
    let said = home.scratch().join("strace.said");
    let log = fs::File::create(&said).expect("the scratch directory is ours");
    strace.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    let faults = Faults { strace: strace.spawn().expect("there is a strace"), said };
    if !faults.has_attached() {
        return;
    }
    let queued = home.start("exit 0");
    assert_eq!(home.show(&queued)["state"], "queued");
    faults.end();
    let trace = fs::read_to_string(trace).expect("strace wrote it");
    let at = |call: &str, file: &str| {
        trace.lines().position(|line| line.contains(call) && line.contains(file))
    };
    let synced = at("sync(", &format!("{queued}/env.json"));
    let acknowledged = at("rename(", &format!("{queued}/spec.json"));
    assert!(synced.is_some() && synced < acknowledged, "{trace}");
    home.ok(&["stop", "--now", &first]);
    assert_eq!(home.wait(&queued), 0);
}

/// Every sync fails: no client is told that a run exists, and once syncs work, one run does.
#[test]
fn a_journal_that_cannot_be_synced_acknowledges_nothing() {
    if !Faults::is_possible() {
        return;
    }
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let before = home.start("exit 0");
    assert_eq!(home.wait(&before), 0);
    let Some(faults) = Faults::of(&home, home.daemon_pid(), "fsync,fdatasync", "error=EIO") else {
        return;
    };
    let once = ["run", "-d", "--key", "once", "--", "true"];
    let output = home.output(&once);
    assert!(!output.status.success(), "acknowledged: {}", text(&output.stdout));
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
    let trigger = home.output(&["schedule", "add", "never", "--every", "8760h", "--", "true"]);
    assert!(!trigger.status.success(), "acknowledged: {}", text(&trigger.stdout));
    faults.end();
    let id = home.ok(&once);
    assert_eq!(home.wait(&id), 0);
    home.crash_daemon();
    let listed = home.json(&["ps", "-a", "--json"]);
    let ids: Vec<&str> =
        listed.as_array().expect("a list").iter().map(|row| str_of(row, "id")).collect();
    assert_eq!(ids, [id.as_str(), before.as_str()]);
    assert_sound(&home);
}

/// Now and then a sync of each thread fails while a loop with hooks goes on: each turn is committed once.
#[test]
fn a_turn_whose_sync_fails_is_committed_once_when_it_can_be() {
    if !Faults::is_possible() {
        return;
    }
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let pid = home.daemon_pid();
    let Some(faults) = Faults::of(&home, pid, "fsync,fdatasync", "error=EIO:when=4+13") else {
        return;
    };
    let agent = "echo once >>\"$HOME/ran.$OUTLAST_TURN.$OUTLAST_ATTEMPT\"; \
        if [ \"$OUTLAST_TURN\" -lt 5 ]; then say continue \"turn $OUTLAST_TURN\"; else say done x; fi";
    let settings = "hooks: {after_turn: 'true'}\nlimits: {no_progress_turns: 0}";
    let loop_file = file(&home, "loop", agent, settings);
    let id = until("a sync worked", || {
        let work = home.scratch().join("work").display().to_string();
        fs::create_dir_all(&work).expect("the scratch directory is ours");
        let output = home.output(&["run", "-d", "--key", "loop", "--dir", &work, "-f", &loop_file]);
        output.status.success().then(|| text(&output.stdout).trim_end().to_owned())
    });
    until("the loop has ended", || {
        let output = home.output(&["show", &id, "--json"]);
        let run: Value = serde_json::from_slice(&output.stdout).ok()?;
        (run["state"] == "completed").then_some(())
    });
    faults.end();
    let kinds = home.kinds(&id);
    let committed = kinds.iter().filter(|kind| *kind == "TurnCommitted").count();
    assert_eq!(committed, 5, "{kinds:?}");
    for turn in 1..=5 {
        let ran = home.scratch().join(format!("ran.{turn}.1"));
        assert_eq!(crate::harness::lines(&ran), 1, "turn {turn}");
    }
    assert_sound(&home);
}

/// Every third wait, lock, open and sync of each thread is interrupted, in daemon, shims and clients.
#[test]
fn calls_that_are_interrupted_are_made_again() {
    if !Faults::is_possible() {
        return;
    }
    let home = Home::new();
    let mut daemon = home.command("strace");
    daemon.arg("-f");
    // The loader of a program does not expect it; it is through after its first calls.
    let how = "error=EINTR:when=40+3";
    let calls = INTERRUPTIBLE;
    daemon.args(["-e", &format!("trace={calls}"), "-e", &format!("inject={calls}:{how}")]);
    daemon.args(["-e", "signal=none", "-o", "/dev/null", env!("CARGO_BIN_EXE_outlast")]);
    daemon.args(["daemon", "run"]).stdout(Stdio::null()).stderr(Stdio::null());
    let daemon = crate::harness::Background(daemon.spawn().expect("there is a strace"));
    until("the daemon answers", || home.daemon_if_up());
    let agent = "if [ \"$OUTLAST_TURN\" -lt 8 ]; then say continue \"turn $OUTLAST_TURN\"; else say done x; fi";
    let settings =
        "hooks: {before_run: 'true', after_turn: 'echo swept'}\nlimits: {no_progress_turns: 0}";
    let id = start(&home, &file(&home, "loop", agent, settings), &[]);
    becomes(&home, &id, "completed", "done");
    assert_eq!(home.count(&id, "TurnCommitted"), 8);
    let codes = [home.start("yes | head -c 200000; exit 7"), home.start("sleep 0.2; exit 8")];
    assert_eq!(codes.each_ref().map(|id| home.wait(id)), [1, 1]);
    let exits = codes.each_ref().map(|id| home.show(id)["exit"]["code"].clone());
    assert_eq!(exits, [7.into(), Value::from(8)]);
    let mut client = home.command("strace");
    client.args(["-f", "-e", &format!("trace={calls}")]);
    client.args(["-e", &format!("inject={calls}:error=EINTR:when=20+2")]);
    client.args(["-e", "signal=none", "-o", "/dev/null", env!("CARGO_BIN_EXE_outlast")]);
    let logs = client.args(["logs", &codes[0]]).output().expect("there is a strace");
    assert_eq!(logs.stdout.len(), 200_000, "{}", text(&logs.stderr));
    let stopped = home.start("exec sleep 600");
    home.pid(&stopped);
    home.ok(&["stop", "--now", &stopped]);
    assert_eq!(home.wait(&stopped), 5);
    assert_sound(&home);
    home.ok(&["daemon", "stop"]);
    assert_eq!(daemon.code(), 0);
}

fn assert_sound(home: &Home) {
    let output = home.output(&["doctor", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).expect("a report");
    let findings = report["findings"].as_array().expect("a list").iter();
    let problems: Vec<&Value> = findings.filter(|finding| finding["level"] == "problem").collect();
    assert!(problems.is_empty(), "{problems:#?}");
}
