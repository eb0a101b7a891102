//! An upgrade under live runs: the program is moved, replaced or removed, daemons die and are restarted, and runs
//! and those that wait for them go on. docs/upgrade.md has a row for each.

use std::fs;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::harness::{Background, Gate, Home, is_alive, kill, lines, str_of, text, until};
use crate::{hosted, programs};

/// Two versions of the program, each in a directory of its own, and the link that people have on their PATH.
struct Installed {
    home: Home,
    bin: PathBuf,
}

impl Installed {
    fn new() -> Self {
        let home = Home::new();
        let bin = home.scratch().join("bin");
        fs::create_dir(&bin).expect("the scratch directory is ours");
        let installed = Self { home, bin };
        installed.make("v1", None);
        installed.switch_to("v1");
        installed
    }

    fn program(&self, version: &str) -> PathBuf {
        self.home.scratch().join(version).join("outlast")
    }

    /// A version of the program; with another build than the tested one if so asked.
    fn make(&self, version: &str, build: Option<&str>) -> PathBuf {
        let program = self.program(version);
        fs::create_dir(program.parent().expect("it has one"))
            .expect("the scratch directory is ours");
        programs::copy(&program);
        if let Some(build) = build {
            patch(&program, build);
        }
        program
    }

    fn remove(&self, version: &str) {
        let program = self.program(version);
        fs::remove_dir_all(program.parent().expect("it has one")).expect("it is ours");
    }

    /// What a package manager does last: the name leads to another version, at no moment to none.
    fn switch_to(&self, version: &str) {
        let (name, beside) = (self.bin.join("outlast"), self.bin.join("beside"));
        symlink(self.program(version), &beside).expect("the scratch directory is ours");
        fs::rename(beside, name).expect("the scratch directory is ours");
    }

    /// A command as it is typed: by its name on PATH.
    fn typed(&self, args: &[&str]) -> Command {
        let mut command = self.home.command("sh");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(
            std::iter::once(self.bin.clone()).chain(std::env::split_paths(&path)),
        );
        command.env("PATH", path.expect("no directory has a colon"));
        command.args(["-c", "exec outlast \"$@\"", "sh"]).args(args);
        command
    }

    fn ok(&self, args: &[&str]) -> String {
        let output = self.typed(args).output().expect("there is a sh");
        let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{args:?}: {}\n{said}", output.status);
        text(&output.stdout).trim_end().to_owned()
    }

    fn json(&self, args: &[&str]) -> Value {
        serde_json::from_str(&self.ok(args)).expect("it is JSON")
    }

    fn spawn(&self, args: &[&str], to: &str) -> Background {
        let file =
            fs::File::create(self.home.scratch().join(to)).expect("the scratch directory is ours");
        let errors = file.try_clone().expect("it is open");
        Background(self.typed(args).stdout(file).stderr(errors).spawn().expect("there is a sh"))
    }

    fn daemon(&self) -> Value {
        self.json(&["daemon", "status", "--json"])
    }

    fn daemon_pid(&self) -> u32 {
        self.daemon()["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("it runs")
    }

    fn turns(&self, id: &str) -> u64 {
        self.json(&["show", id, "--json"])["turns_committed"].as_u64().expect("a number")
    }

    /// A loop that takes `turns` turns, each held up at the gate and counted in a file.
    fn start_loop(&self, gate: &Gate, turns: u32) -> String {
        let script = format!(
            "echo more >>file\necho \"$OUTLAST_TURN\" >>\"$HOME/turns\"\necho \"turn $OUTLAST_TURN\"\n{}\n\
             if [ \"$OUTLAST_TURN\" -ge {turns} ]; then say done x; else say continue x; fi",
            gate.pass()
        );
        let file = hosted::file(&self.home, "loop", &script, "");
        let most = (turns + 5).to_string();
        let typed = hosted::starting(&self.home, &file, &["--max-turns", &most]);
        self.ok(&typed.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn turns_begun(&self) -> usize {
        lines(&self.home.scratch().join("turns"))
    }
}

/// Has a copy of the program say that it is another build: the same code under another hash.
fn patch(program: &Path, build: &str) {
    let version = Command::new(program).args(["version", "--json"]).output().expect("it starts");
    let version: Value = serde_json::from_slice(&version.stdout).expect("it is JSON");
    let known = str_of(&version, "build").to_owned();
    assert_eq!(known.len(), build.len());
    // Quicker than looking at a hundred megabytes in a test that is not optimised.
    let found = Command::new("grep")
        .args(["--byte-offset", "--only-matching", "--text", "--fixed-strings"])
        .args([known.as_str()])
        .arg(program)
        .output()
        .expect("there is a grep");
    let places = text(&found.stdout);
    let offsets = places.lines().filter_map(|line| line.split_once(':')?.0.parse().ok());
    let mut count = 0;
    for at in offsets {
        programs::overwrite(program, at, build.as_bytes());
        count += 1;
    }
    assert!(count > 0, "the program says which build it is");
}

const OTHER: &str = "00000000000000b2";

#[test]
fn slow_a_loop_of_30_turns_lives_through_an_upgrade_that_removes_its_version() {
    let installed = Installed::new();
    let home = &installed.home;
    let mut gate = Gate::new(home, "gate");
    let id = installed.start_loop(&gate, 30);
    let wait = installed.spawn(&["wait", &id], "wait.out");
    let logs = installed.spawn(&["logs", "-f", &id], "logs.out");
    let v1 = str_of(&installed.daemon(), "build").to_owned();
    installed.make("v2", Some(OTHER));
    let mut next = |turn: usize| {
        until("the turn has begun", || (installed.turns_begun() >= turn).then_some(()));
        gate.open();
    };
    (1..=2).for_each(&mut next);
    until("turn 3 has begun", || (installed.turns_begun() == 3).then_some(()));
    installed.switch_to("v2");
    installed.remove("v1");
    (3..=5).for_each(&mut next);
    until("turn 6 has begun", || (installed.turns_begun() == 6).then_some(()));
    assert_eq!(str_of(&installed.daemon(), "build"), v1, "the old one has launched since");
    let old = installed.daemon_pid();
    kill(old, "KILL");
    // A shim or a client that waits starts the next one.
    let build = until("another daemon answers", || {
        let output = installed.typed(&["daemon", "status", "--json"]).output().expect("it starts");
        let status: Value = serde_json::from_slice(&output.stdout).ok()?;
        (status["running"] == true && status["pid"] != old).then(|| status["build"].clone())
    });
    assert_eq!(build, OTHER, "the next daemon is v2's");
    (6..=30).for_each(&mut next);
    assert_eq!(wait.code(), 0, "{}", read(home, "wait.out"));
    assert_eq!(logs.code(), 0, "{}", read(home, "logs.out"));
    assert_eq!(installed.turns(&id), 30);
    let begun: Vec<String> = read(home, "turns").lines().map(str::to_owned).collect();
    assert_eq!(begun, (1..=30).map(|turn| turn.to_string()).collect::<Vec<_>>(), "none twice");
    let committed = installed.ok(&["events", &id, "--json"]);
    let committed: Vec<u64> = committed
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("an event is JSON"))
        .filter(|event| event["kind"] == "TurnCommitted")
        .map(|event| event["turn"].as_u64().expect("a number"))
        .collect();
    assert_eq!(committed, (1..=30).collect::<Vec<_>>());
    let printed = (1..=30).map(|turn| format!("turn {turn}\n")).collect::<String>();
    assert!(read(home, "logs.out").starts_with(&printed), "{}", read(home, "logs.out"));
}

fn read(home: &Home, name: &str) -> String {
    fs::read_to_string(home.scratch().join(name)).unwrap_or_default()
}

#[test]
fn slow_waiting_clients_live_through_a_replaced_file_and_ten_restarts() {
    let installed = Installed::new();
    let home = &installed.home;
    let mut gate = Gate::new(home, "gate");
    let script = format!("echo before; {}; echo after; exit 7", gate.pass());
    let id = installed.ok(&["run", "-d", "--", "sh", "-c", &script]);
    let wait = installed.spawn(&["wait", &id], "wait.out");
    let logs = installed.spawn(&["logs", "-f", &id], "logs.out");
    let events = installed.spawn(&["events", "-f", "-v", &id], "events.out");
    let attach = installed.spawn(&["attach", &id], "attach.out");
    for file in ["logs.out", "attach.out"] {
        until("it follows", || read(home, file).contains("before").then_some(()));
    }
    until("events are followed", || {
        read(home, "events.out").contains("AttemptStarted").then_some(())
    });
    // In place, as a package manager does: renamed over, so that the programs that run have no file any more.
    let beside = installed.make("beside", Some(OTHER));
    fs::rename(beside, installed.program("v1")).expect("it is ours");
    let crashed = installed.daemon_pid();
    kill(crashed, "KILL");
    until("another daemon answers", || {
        let output = installed.typed(&["daemon", "status", "--json"]).output().expect("it starts");
        let status: Value = serde_json::from_slice(&output.stdout).ok()?;
        (status["running"] == true && status["build"] == OTHER).then_some(())
    });
    let mut before = installed.daemon_pid();
    for _ in 0..10 {
        let said = installed.json(&["daemon", "restart", "--json"]);
        let after = installed.daemon_pid();
        assert_eq!(said["pid"], after);
        assert_ne!(after, before);
        assert!(!is_alive(before));
        before = after;
    }
    assert_eq!(installed.daemon()["holding"], Value::Null, "a restart is no death");
    // And a stop with a start after it.
    installed.ok(&["daemon", "stop"]);
    installed.ok(&["daemon", "start"]);
    gate.open();
    for (client, code, file) in [
        (wait, 1, "wait.out"),
        (logs, 0, "logs.out"),
        (events, 0, "events.out"),
        (attach, 1, "attach.out"),
    ] {
        assert_eq!(client.code(), code, "{file}: {}", read(home, file));
    }
    assert_eq!(read(home, "logs.out").matches("after").count(), 1);
    let run = installed.json(&["show", &id, "--json"]);
    assert_eq!((&run["attempt"], &run["exit"]["code"]), (&1.into(), &7.into()));
}

#[test]
fn a_program_without_a_file_goes_on_launching_and_is_started_again_from_memory() {
    let installed = Installed::new();
    let home = &installed.home;
    let mut gate = Gate::new(home, "gate");
    let id = installed.ok(&["run", "-d", "--", "sh", "-c", &gate.pass()]);
    until("its shim is met", || installed.json(&["show", &id, "--json"])["shim_pid"].as_u64());
    let waiting = installed.spawn(&["wait", &id], "wait.out");
    until("it waits", || is_connected(&waiting).then_some(()));
    installed.remove("v1");
    // Nothing of it is on disk any more, and this shell's own is another.
    let made = home.start("exit 3");
    assert_eq!(home.wait(&made), 1);
    assert_eq!(home.show(&made)["exit"]["code"], 3);
    let shim = home.shim_pid(&home.start("exec sleep 1000"));
    let name = fs::read_to_string(format!("/proc/{shim}/comm")).expect("it lives");
    assert_eq!(name.trim(), "outlast", "pgrep finds it");
    let old = home.daemon_pid();
    kill(old, "KILL");
    until("another daemon answers", || home.daemon_if_up().filter(|pid| *pid != old));
    gate.open();
    assert_eq!(waiting.code(), 0, "{}", read(home, "wait.out"));
}

/// True once it has a connection, which is how it waits.
fn is_connected(client: &Background) -> bool {
    let Ok(entries) = fs::read_dir(format!("/proc/{}/fd", client.0.id())) else { return false };
    let target = |entry: fs::DirEntry| fs::read_link(entry.path()).ok();
    let is_socket = |target: PathBuf| target.to_string_lossy().starts_with("socket:");
    entries.flatten().filter_map(target).any(is_socket)
}

#[test]
fn a_restart_hands_over_and_says_which_build_has_it_now() {
    let installed = Installed::new();
    let id = installed.ok(&["run", "-d", "--", "sleep", "1000"]);
    let before = installed.daemon();
    installed.make("v2", Some(OTHER));
    installed.switch_to("v2");
    for args in
        [&["ps"][..], &["daemon", "status"], &["run", "-d", "--", "true"], &["ps", "--json"]]
    {
        let output = installed.typed(args).output().expect("it starts");
        let said = text(&output.stderr);
        assert_eq!(said.matches("outlast daemon restart").count(), 1, "{args:?}: {said}");
        assert!(said.contains(OTHER) && said.contains(str_of(&before, "build")), "{said}");
        assert!(!text(&output.stdout).contains("outlast daemon restart"));
    }
    let doctor = text(&installed.typed(&["doctor"]).output().expect("it starts").stdout);
    assert!(doctor.contains("warning  version:") && doctor.contains(OTHER), "{doctor}");
    let said = installed.ok(&["daemon", "restart"]);
    let after = installed.daemon();
    assert_eq!(str_of(&after, "build"), OTHER);
    assert!(said.contains(&format!("pid {}", after["pid"])) && said.contains(OTHER), "{said}");
    assert_eq!(installed.json(&["version", "--json"])["build"], OTHER);
    let output = installed.typed(&["ps"]).output().expect("it starts");
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    let run = installed.json(&["show", &id, "--json"]);
    assert_eq!((str_of(&run, "state"), &run["attempt"]), ("running", &1.into()));
    // The way back is the same.
    installed.switch_to("v1");
    installed.ok(&["daemon", "restart"]);
    assert_eq!(installed.daemon()["build"], before["build"]);
}

#[test]
fn a_daemon_that_is_started_inside_a_run_is_no_process_of_the_run() {
    let installed = Installed::new();
    let home = &installed.home;
    let other = installed.ok(&["run", "-d", "--", "sleep", "1000"]);
    for command in ["outlast daemon restart", "outlast daemon stop; outlast daemon start"] {
        let before = installed.daemon_pid();
        let said = home.scratch().join("said");
        let script = format!("{{ {command}; }} >'{}' 2>&1", said.display());
        let id = installed.ok(&["run", "-d", "--", "sh", "-c", &script]);
        assert_eq!(home.wait(&id), 0, "{}", fs::read_to_string(&said).unwrap_or_default());
        let after = installed.daemon_pid();
        assert_ne!(after, before, "{command}");
        assert_eq!(str_of(&home.show(&id), "state"), "completed");
        until("the processes of the run are gone", || {
            home.show(&id)["survivors"].as_array().is_none_or(Vec::is_empty).then_some(())
        });
        home.ok(&["rm", &id]);
        assert_eq!(home.daemon_if_up(), Some(after), "it outlives the run");
        assert_eq!(str_of(&home.show(&other), "state"), "running");
    }
}

#[test]
fn a_successor_that_cannot_read_the_journal_or_the_config_leaves_the_old_one_in_place() {
    let home = Home::new();
    let id = home.start("exec sleep 1000");
    let daemon = home.daemon_pid();
    let database = home.state().join("outlast.db");
    let file = fs::File::options().read(true).write(true).open(&database).expect("it is ours");
    // The number of its schema, as a later version would have left it.
    let mut schema = [0; 4];
    file.read_exact_at(&mut schema, 60).expect("a database has a header");
    file.write_all_at(&99_u32.to_be_bytes(), 60).expect("it is ours");
    let said = home.fails(2, &["daemon", "restart"]);
    assert!(said.contains("newer"), "{said}");
    file.write_all_at(&schema, 60).expect("it is ours");
    assert_eq!(home.daemon_pid(), daemon, "the old one stays");
    let config = home.path().join("config.toml");
    fs::write(&config, "[concurrency\n").expect("it is ours");
    let said = home.fails(2, &["daemon", "restart"]);
    assert!(said.contains("config"), "{said}");
    assert_eq!(home.daemon_pid(), daemon);
    fs::remove_file(config).expect("it is ours");
    home.ok(&["daemon", "restart"]);
    assert_ne!(home.daemon_pid(), daemon);
    assert_eq!(str_of(&home.show(&id), "state"), "running");
}

#[test]
fn the_copy_from_before_a_change_of_schema_is_the_way_back() {
    let home = Home::new();
    let id = home.start("exec sleep 1000");
    let pid = home.pid(&id);
    home.ok(&["daemon", "stop"]);
    let (database, copy) =
        (home.state().join("outlast.db"), home.state().join("outlast.db.before-99"));
    // As a later version would leave it: a copy, and a schema that this one does not know.
    fs::copy(&database, &copy).expect("it is ours");
    let file = fs::File::options().write(true).open(&database).expect("it is ours");
    file.write_all_at(&99_u32.to_be_bytes(), 60).expect("it is ours");
    let said = home.fails(2, &["daemon", "start"]);
    assert!(said.contains("newer"), "{said}");
    // What docs/upgrade.md says to do.
    let aside = home.scratch().join("aside");
    fs::create_dir(&aside).expect("the scratch directory is ours");
    for name in ["outlast.db", "outlast.db-wal", "outlast.db-shm"] {
        let moved = fs::rename(home.state().join(name), aside.join(name));
        assert!(moved.is_ok() || name != "outlast.db", "{moved:?}");
    }
    fs::copy(&copy, &database).expect("it is ours");
    home.ok(&["daemon", "start"]);
    assert_eq!((home.pid(&id), str_of(&home.show(&id), "state")), (pid, "running"));
}

#[test]
fn a_daemon_in_somebodys_terminal_is_not_replaced_and_none_at_all_is_started() {
    let home = Home::new();
    home.ok(&["daemon", "restart"]);
    home.ok(&["daemon", "stop"]);
    let by_hand = home.spawn(&["daemon", "run"]);
    until("it answers", || home.daemon_if_up());
    let said = home.fails(2, &["daemon", "restart"]);
    assert!(said.contains("makes no room"), "{said}");
    assert_eq!(home.daemon_pid(), by_hand.0.id());
}

#[test]
fn a_wait_ends_with_a_word_when_the_daemon_is_stopped_and_none_comes() {
    let home = Home::new();
    let id = home.start("exec sleep 1000");
    let mut wait = home.outlast(&["wait", &id]);
    let wait = wait.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let wait = Background(wait);
    until("it waits", || is_connected(&wait).then_some(()));
    home.ok(&["daemon", "stop"]);
    let mut wait = wait;
    let code = wait.0.wait().expect("it is our child").code();
    let mut said = String::new();
    let errors = wait.0.stderr.take().expect("it is piped");
    std::io::Read::read_to_string(&mut { errors }, &mut said).expect("it is text");
    assert_eq!((code, said.contains("it was stopped")), (Some(7), true), "{said}");
    assert_eq!(home.daemon_if_up(), None, "and it started none");
}
