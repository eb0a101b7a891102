//! One way to the daemon, from every shell: whatever the environment says, whatever became of the socket, the
//! lock or the daemon's wits.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::harness::{Background, Gate, Home, end_all, is_alive, kill, str_of, text, until};

/// What `daemon stop` says of the time without a daemon.
const WITHOUT: &str = "commands that run keep running, but loops take no next turn,\nschedules do not start and notices are not sent until it is back:\n  outlast daemon start";

/// A home laid out by XDG, as a log-in has it: the socket lies in a directory of the session.
struct Login {
    home: Home,
    runtime: PathBuf,
}

impl Login {
    fn new() -> Self {
        let home = Home::new();
        let runtime = home.scratch().join("session");
        fs::create_dir(&runtime).expect("the scratch directory is ours");
        Self { home, runtime }
    }

    /// A shell of that log-in.
    fn shell(&self, args: &[&str]) -> Command {
        let mut command = self.bare_shell(args);
        command.env("XDG_RUNTIME_DIR", &self.runtime);
        command
    }

    /// What cron, `su` and `sudo -u` have: the same home, and no session.
    fn bare_shell(&self, args: &[&str]) -> Command {
        let mut command = self.home.outlast(args);
        command.env_remove("OUTLAST_HOME").env("OUTLAST_TEST_HOME", self.home.path());
        command.env("XDG_STATE_HOME", self.state_home());
        command
    }

    fn state_home(&self) -> PathBuf {
        self.home.scratch().join("state-home")
    }

    fn socket(&self) -> PathBuf {
        self.runtime.join("outlast/daemon.sock")
    }

    fn lock(&self) -> Value {
        let path = self.state_home().join("outlast/daemon.lock");
        serde_json::from_slice(&fs::read(path).expect("there is a lock")).expect("it is whole")
    }

    fn status(&self) -> Value {
        json(self.bare_shell(&["daemon", "status", "--json"]))
    }

    fn start(&self, script: &str) -> String {
        ok(self.shell(&["run", "-d", "--", "sh", "-c", script]))
    }
}

impl Drop for Login {
    fn drop(&mut self) {
        // Nothing here carries OUTLAST_HOME, by which the harness would find it.
        end_all(&self.home.mark("OUTLAST_TEST_HOME"));
    }
}

fn run(mut command: Command) -> Output {
    command.output().expect("the program starts")
}

fn ok(command: Command) -> String {
    let output = run(command);
    assert!(output.status.success(), "{}\n{}", output.status, text(&output.stderr));
    text(&output.stdout).trim_end().to_owned()
}

fn json(command: Command) -> Value {
    let printed = ok(command);
    serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{printed:?}: {error}"))
}

#[test]
fn a_run_is_reached_from_a_shell_without_a_session_and_from_one_with_another() {
    let login = Login::new();
    let mut gate = Gate::new(&login.home, "gate");
    let id = login.start(&format!("{}; exit 5", gate.pass()));
    assert_eq!(login.lock()["socket"], login.socket().to_str().expect("a plain path"));
    let other = login.home.scratch().join("other-session");
    fs::create_dir(&other).expect("the scratch directory is ours");
    let shells = [
        |login: &Login, _: &Path, args: &[&str]| login.bare_shell(args),
        |login: &Login, other: &Path, args: &[&str]| {
            let mut command = login.bare_shell(args);
            command.env("XDG_RUNTIME_DIR", other);
            command
        },
        |login: &Login, _: &Path, args: &[&str]| {
            let mut command = login.bare_shell(args);
            command.env("XDG_RUNTIME_DIR", "/nonexistent/session");
            command
        },
    ];
    let daemon = login.status()["pid"].clone();
    for shell in shells {
        let listed = json(shell(&login, &other, &["ps", "--json"]));
        assert_eq!(str_of(&listed[0], "id"), id, "{listed}");
        assert_eq!(json(shell(&login, &other, &["daemon", "status", "--json"]))["pid"], daemon);
        let made = ok(shell(&login, &other, &["run", "-d", "--", "true"]));
        assert_eq!(run(shell(&login, &other, &["wait", &made])).status.code(), Some(0));
    }
    gate.open();
    assert_eq!(run(login.bare_shell(&["wait", &id])).status.code(), Some(1));
    assert!(!other.join("outlast").exists(), "nothing was started there");
    ok(login.bare_shell(&["daemon", "stop"]));
    assert!(!login.socket().exists());
}

#[test]
fn a_session_that_ends_and_begins_again_takes_no_daemon_with_it() {
    let login = Login::new();
    let mut gate = Gate::new(&login.home, "gate");
    let id = login.start(&format!("{}; exit 5", gate.pass()));
    let daemon = login.status()["pid"].clone();
    fs::remove_dir_all(&login.runtime).expect("it is ours");
    fs::create_dir(&login.runtime).expect("the scratch directory is ours");
    for shell in [Login::shell, Login::bare_shell] {
        let listed = json(shell(&login, &["ps", "--json"]));
        assert_eq!(str_of(&listed[0], "id"), id, "{listed}");
    }
    assert_eq!(login.status()["pid"], daemon, "the same daemon");
    assert_eq!(str_of(&login.status(), "socket"), login.socket().to_str().expect("a plain path"));
    // And with nothing made again, it is heard in the state directory.
    fs::remove_dir_all(&login.runtime).expect("it is ours");
    let status = login.status();
    assert_eq!(status["pid"], daemon);
    let socket = PathBuf::from(str_of(&status, "socket"));
    assert_eq!(socket, login.state_home().join("outlast/daemon.sock"));
    assert_eq!(fs::metadata(&socket).expect("it is there").mode() & 0o777, 0o600);
    gate.open();
    assert_eq!(run(login.bare_shell(&["wait", &id])).status.code(), Some(1));
    // What is started from here on is told the new place.
    let told = ok(login.bare_shell(&["run", "--", "sh", "-c", "echo $OUTLAST_SOCKET"]));
    assert_eq!(told, socket.to_str().expect("a plain path"));
    ok(login.bare_shell(&["daemon", "stop"]));
    assert!(!socket.exists());
}

#[test]
fn a_daemon_whose_directory_was_moved_away_is_told_by_the_client_that_needs_it() {
    let home = Home::new();
    let id = home.start("exec sleep 1000");
    // A command that is still being started would fail for the directory that is gone.
    home.pid(&id);
    let daemon = home.daemon_pid();
    // Of a directory further up that is moved the kernel says nothing to the daemon.
    let (parent, elsewhere) = (home.path(), home.scratch().join("elsewhere"));
    fs::rename(&parent, &elsewhere).expect("the scratch directory is ours");
    fs::create_dir(&parent).expect("the scratch directory is ours");
    fs::rename(elsewhere.join("state"), parent.join("state")).expect("it is ours");
    // A client waits 3 s for a daemon that it has told to listen anew, which a busy machine may not keep.
    assert_eq!(until("the daemon listens anew", || home.daemon_if_up()), daemon);
    assert_eq!(str_of(&home.show(&id), "state"), "running");
}

#[test]
fn two_homes_with_one_session_keep_out_of_each_others_way() {
    let (first, mut second) = (Login::new(), Login::new());
    second.runtime.clone_from(&first.runtime);
    let (of_first, of_second) = (first.start("sleep 600"), second.start("sleep 600"));
    let (one, other) = (first.status(), second.status());
    assert_eq!(str_of(&one, "socket"), first.socket().to_str().expect("a plain path"));
    assert_eq!(
        str_of(&other, "socket"),
        second.state_home().join("outlast/daemon.sock").to_str().expect("a plain path")
    );
    for (login, id) in [(&first, &of_first), (&second, &of_second)] {
        let listed = json(login.shell(&["ps", "--json"]));
        let runs = listed.as_array().expect("a list");
        assert_eq!((runs.len(), str_of(&runs[0], "id")), (1, id.as_str()));
    }
    ok(second.shell(&["daemon", "stop"]));
    assert!(first.socket().exists(), "it was not the second's to remove");
    assert_eq!(first.status()["pid"], one["pid"]);
}

#[test]
fn a_lock_that_is_removed_is_made_anew_and_no_second_daemon_starts() {
    let home = Home::new();
    let id = home.start("exec sleep 1000");
    let daemon = home.daemon_pid();
    let lock = home.state().join("daemon.lock");
    fs::remove_file(&lock).expect("it is ours");
    until("the daemon has made it anew", || {
        let said: Value = serde_json::from_slice(&fs::read(&lock).ok()?).ok()?;
        (said["pid"] == daemon).then_some(())
    });
    let said = home.fails(2, &["daemon", "run"]);
    assert!(said.contains(&format!("pid {daemon}")), "{said}");
    assert_eq!(home.daemon_pid(), daemon);
    assert_eq!(str_of(&home.show(&id), "state"), "running");
}

#[test]
fn a_lock_that_is_emptied_or_scribbled_on_names_its_daemon_again() {
    let home = Home::new();
    let id = home.start("exec sleep 1000");
    let daemon = home.daemon_pid();
    let lock = home.state().join("daemon.lock");
    for words in ["", "{", "{\"pid\":1,\"version\":\"0\",\"epoch\":1,\"started_at\":\"x\"}"] {
        fs::write(&lock, words).expect("it is ours");
        until("the daemon has written who it is", || {
            let said: Value = serde_json::from_slice(&fs::read(&lock).ok()?).ok()?;
            (said["pid"] == daemon).then_some(())
        });
        assert_eq!(home.daemon_pid(), daemon);
        assert_eq!(str_of(&home.show(&id), "state"), "running");
    }
}

#[test]
fn a_daemon_that_lost_its_lock_leaves_its_successors_socket_alone() {
    let home = Home::new();
    let id = home.start("exec sleep 1000");
    let pid = home.pid(&id);
    let first = home.daemon_pid();
    // Frozen, so that it cannot take the lock anew before another daemon does.
    kill(first, "STOP");
    fs::remove_file(home.state().join("daemon.lock")).expect("it is ours");
    let second = home.spawn(&["daemon", "run"]);
    until("the second answers", || (home.daemon_if_up()? == second.0.id()).then_some(()));
    kill(first, "CONT");
    until("the first has left", || (!is_alive(first)).then_some(()));
    assert_eq!(home.daemon_pid(), second.0.id());
    assert_eq!((home.pid(&id), str_of(&home.show(&id), "state")), (pid, "running"));
    let log = fs::read_to_string(home.state().join("daemon.log")).expect("there is a log");
    assert!(log.contains("Fenced"), "{log}");
}

#[test]
fn a_daemon_that_is_frozen_is_named_by_status_and_doctor_and_ended_by_stop() {
    let home = Home::new();
    let id = home.start("exec sleep 1000");
    let (pid, daemon) = (home.pid(&id), home.daemon_pid());
    kill(daemon, "STOP");
    let status = home.output(&["daemon", "status"]);
    assert_eq!(status.status.code(), Some(7));
    let said = text(&status.stdout);
    assert!(said.contains(&format!("pid {daemon} holds the lock, is frozen")), "{said}");
    let doctor = home.output(&["doctor"]);
    assert_eq!(doctor.status.code(), Some(1));
    let said = text(&doctor.stdout);
    assert!(said.contains("frozen") && said.contains(&format!("pid {daemon}")), "{said}");
    assert!(said.contains("\n  outlast daemon stop\n"), "{said}");
    let said = home.ok(&["daemon", "stop"]);
    assert_eq!(said, format!("stopped by SIGTERM: pid {daemon}, it was frozen; {WITHOUT}"));
    assert!(!is_alive(daemon) && is_alive(pid));
    home.ok(&["daemon", "start"]);
    assert_eq!((home.pid(&id), str_of(&home.show(&id), "state")), (pid, "running"));
}

/// A process that holds the lock as a daemon does, listens nowhere and heeds no signal that can be ignored.
fn deaf_holder(home: &Home) -> Background {
    fs::create_dir_all(home.state()).expect("the test's directory is ours");
    let path = home.state().join("daemon.lock");
    let lock = fs::File::create(&path).expect("it is ours");
    lock.lock().expect("it is free");
    let mut command = home.command("sh");
    command.args(["-c", "trap '' TERM HUP; exec sleep 1000"]).stdin(lock);
    let holder = Background(command.spawn().expect("there is a sh"));
    let pid = holder.0.id();
    until("it ignores signals", || {
        let command = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        (command.trim() == "sleep").then_some(())
    });
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it lives");
    let fields = stat.rsplit_once(')').expect("a whole line").1;
    let start: u64 = fields.split_whitespace().nth(19).and_then(|it| it.parse().ok()).expect("22");
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("there is a /proc");
    let said = serde_json::json!({
        "pid": pid, "version": "0.1.0", "epoch": 1, "started_at": "2026-11-16T00:00:00Z",
        "socket": home.scratch().join("nowhere"), "boot": boot.trim(), "start": start,
    });
    fs::write(path, said.to_string()).expect("it is ours");
    holder
}

#[test]
fn a_daemon_that_neither_listens_nor_heeds_sigterm_is_killed_by_its_identity() {
    let home = Home::new();
    let mut holder = deaf_holder(&home);
    let pid = holder.0.id();
    let said = home.fails(7, &["daemon", "status"]);
    assert_eq!(said, "", "it is no error to ask");
    // Its parent, who reaps it, is this test.
    let reaper = std::thread::spawn(move || holder.0.wait().expect("it is our child"));
    let said = home.ok(&["daemon", "stop"]);
    assert_eq!(said, format!("stopped by SIGKILL: pid {pid}, it did not answer; {WITHOUT}"));
    assert!(reaper.join().expect("no panic").code().is_none(), "it was killed");
    assert!(home.state().join("daemon.stopped").exists(), "no shim starts another");
}

#[test]
fn a_lock_whose_words_are_of_another_process_has_nobody_signalled() {
    let home = Home::new();
    let holder = deaf_holder(&home);
    let bystander =
        Background(home.command("sleep").arg("1000").spawn().expect("there is a sleep"));
    let path = home.state().join("daemon.lock");
    let mut said: Value = serde_json::from_slice(&fs::read(&path).expect("a lock")).expect("JSON");
    // The pid was given out again: what is written is not who has it now.
    said["pid"] = bystander.0.id().into();
    said["start"] = 1.into();
    fs::write(&path, said.to_string()).expect("it is ours");
    let output = home.output(&["daemon", "stop"]);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stdout));
    assert!(is_alive(bystander.0.id()) && is_alive(holder.0.id()));
}
