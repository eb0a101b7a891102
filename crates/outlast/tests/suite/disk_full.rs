//! A state directory that takes no more: what runs lives on, nothing is lost, and it is said what is wrong.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::harness::{Gate, Home, is_alive, skip, str_of, text, until};

/// A file system of 2 MiB for everything that a home holds.
pub(crate) struct SmallDisk {
    at: PathBuf,
}

impl SmallDisk {
    /// `None` where nothing can be mounted.
    pub(crate) fn under(home: &Home) -> Option<Self> {
        let at = home.path();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=2m,mode=0700", "outlast-test"])
            .arg(&at)
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self { at }),
            Ok(output) => {
                skip(&format!("a small disk cannot be mounted: {}", text(&output.stderr)));
                None
            }
            Err(error) => {
                skip(&format!("there is no mount: {error}"));
                None
            }
        }
    }

    /// Leaves no room for a single page.
    fn fill(&self) {
        let mut filler = File::create(self.filler()).expect("there is room for a name");
        loop {
            match filler.write(&[0; 4096]) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => return,
                Err(error) => panic!("cannot fill the disk: {error}"),
            }
        }
    }

    /// The same, with what a daemon had kept back.
    fn fill_without_reserve(&self, home: &Home) {
        let reserve = home.state().join("reserve");
        until("there is a reserve", || reserve.exists().then_some(()));
        fs::remove_file(reserve).expect("it was just there");
        self.fill();
    }

    fn free(&self) {
        fs::remove_file(self.filler()).expect("it was filled");
    }

    fn filler(&self) -> PathBuf {
        self.at.join("filler")
    }
}

/// Also while its processes live, which the home ends after this. So it must go before the home does.
impl Drop for SmallDisk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(&self.at).status();
        assert!(
            unmounted.is_ok_and(|status| status.success()) || std::thread::panicking(),
            "still mounted"
        );
    }
}

/// A script that prints a line of about 1 KiB for each number that it is given, and exits 7 at the end.
struct Chatty {
    id: String,
    numbers: File,
    given: usize,
}

impl Chatty {
    const PADDING: usize = 1000;

    fn start(home: &Home) -> Self {
        let gate = home.scratch().join("numbers");
        assert!(Command::new("mkfifo").arg(&gate).status().expect("there is a mkfifo").success());
        let padding = "x".repeat(Self::PADDING);
        let id = home.start(&format!(
            "while read -r n; do echo \"line $n {padding}\"; done <'{}'; exit 7",
            gate.display()
        ));
        // Opening it returns when the script has opened it too.
        let numbers = File::options().write(true).open(&gate).expect("the script reads");
        Self { id, numbers, given: 0 }
    }

    fn give(&mut self, count: usize) {
        let numbers: String =
            (self.given + 1..=self.given + count).map(|number| format!("{number}\n")).collect();
        self.numbers.write_all(numbers.as_bytes()).expect("a FIFO has room for some numbers");
        self.given += count;
    }

    fn expected(&self) -> String {
        let padding = "x".repeat(Self::PADDING);
        (1..=self.given).map(|number| format!("line {number} {padding}\n")).collect()
    }

    /// The numbers end, and so does the script.
    fn assert_seen_whole(self, home: &Home) {
        let expected = self.expected();
        drop(self.numbers);
        assert_eq!(home.wait(&self.id), 1);
        let run = home.show(&self.id);
        assert_eq!((&run["exit"]["code"], str_of(&run, "outcome")), (&7.into(), "exited"));
        assert_eq!(run["trouble"], Value::Null);
        assert_eq!(run["attempt"], 1);
        let logs = home.output(&["logs", &self.id]).stdout;
        assert!(
            logs == expected.as_bytes(),
            "{} bytes of {} came, or others",
            logs.len(),
            expected.len()
        );
        assert_eq!(home.count(&self.id, "AttemptEnded"), 1);
    }
}

fn until_trouble(home: &Home, id: &str) -> Value {
    until("the run is suspended", || {
        Some(home.show(id)["trouble"].clone()).filter(|trouble| !trouble.is_null())
    })
}

fn until_no_trouble(home: &Home, id: &str) {
    until("the run goes on", || home.show(id)["trouble"].is_null().then_some(()));
}

#[test]
fn a_run_that_prints_is_suspended_and_goes_on_when_there_is_room() {
    let home = Home::new();
    let Some(disk) = SmallDisk::under(&home) else { return };
    let mut chatty = Chatty::start(&home);
    let pid = home.pid(&chatty.id);
    chatty.give(10);
    disk.fill();
    chatty.give(300);
    let trouble = until_trouble(&home, &chatty.id);
    assert_eq!(str_of(&trouble, "code"), "disk_full");
    assert!(!str_of(&trouble, "message").is_empty());
    let rows = home.json(&["ps", "--json"]);
    assert_eq!(rows[0]["trouble"], trouble);
    let listed = home.ok(&["ps"]);
    assert!(listed.contains("suspended: disk full"), "{listed}");
    assert!(home.ok(&["show", &chatty.id]).contains("trouble"));
    let doctor = home.output(&["doctor"]);
    assert_eq!(doctor.status.code(), Some(1));
    assert!(text(&doctor.stdout).contains("disk_full"), "{}", text(&doctor.stdout));
    assert_new_runs_are_refused(&home);
    assert!(is_alive(pid), "the command died of a full disk");
    assert_eq!(str_of(&home.show(&chatty.id), "state"), "running");

    disk.free();
    until_no_trouble(&home, &chatty.id);
    assert_eq!(home.wait(&home.start("true")), 0);
    chatty.give(10);
    assert_eq!(home.pid(&chatty.id), pid);
    chatty.assert_seen_whole(&home);
    home.ok(&["doctor"]);
}

fn assert_new_runs_are_refused(home: &Home) {
    let runs = || fs::read_dir(home.state().join("runs")).expect("there are runs").count();
    let before = runs();
    let said = home.fails(2, &["run", "-d", "--", "true"]);
    let lines: Vec<&str> = said.lines().collect();
    let [error, hint] = lines.as_slice() else { panic!("not a line and a hint: {said}") };
    assert!(error.starts_with("outlast: cannot write the files of a new run to "), "{said}");
    assert!(error.contains("No space left on device"), "{said}");
    assert!(hint.starts_with("hint: free some space"), "{said}");
    let output = home.output(&["run", "-d", "--json", "--", "true"]);
    let answer: Value = serde_json::from_slice(&output.stderr).expect("an error is JSON");
    assert_eq!(str_of(&answer["error"], "code"), "disk_full");
    assert_eq!(home.json(&["ps", "-a", "--json"]).as_array().map(Vec::len), Some(before));
    assert_eq!(runs(), before, "a run that was refused has left files behind");
}

#[test]
fn an_end_that_cannot_be_written_down_is_written_down_later() {
    let home = Home::new();
    let Some(disk) = SmallDisk::under(&home) else { return };
    let mut gate = Gate::new(&home, "gate");
    let id = home.start(&format!("{}; exit 3", gate.pass()));
    let pid = home.pid(&id);
    disk.fill();
    gate.open();
    until("the command has ended", || (!is_alive(pid)).then_some(()));
    assert_eq!(str_of(&until_trouble(&home, &id), "code"), "disk_full");
    // No client is told of an end that is not durable.
    let run = home.show(&id);
    assert_eq!((str_of(&run, "state"), &run["exit"]), ("running", &Value::Null));
    assert_eq!(home.fails(124, &["wait", &id, "--timeout", "1ms"]).lines().count(), 1);
    disk.free();
    assert_eq!(home.wait(&id), 1);
    let run = home.show(&id);
    assert_eq!((&run["exit"]["code"], &run["trouble"]), (&3.into(), &Value::Null));
    assert_eq!(home.count(&id, "RunEnded"), 1);
}

#[test]
fn a_daemon_that_cannot_start_says_why_and_its_runs_are_met_again() {
    let home = Home::new();
    let Some(disk) = SmallDisk::under(&home) else { return };
    let mut chatty = Chatty::start(&home);
    let pid = home.pid(&chatty.id);
    chatty.give(10);
    disk.fill_without_reserve(&home);
    home.crash_daemon();
    chatty.give(300);
    // One that a shim starts fails just so, and holds the lock for as long.
    let error = until("the start is refused", || {
        let output = home.output(&["daemon", "start", "--json"]);
        assert_eq!(output.status.code(), Some(7), "{output:?}");
        let answer: Value = serde_json::from_slice(&output.stderr).expect("an error is JSON");
        (answer["error"]["code"] == "disk_full").then(|| answer["error"].clone())
    });
    assert!(str_of(&error, "message").starts_with("no room left to write to: "), "{error}");
    assert!(str_of(&error, "hint").starts_with("free some space"), "{error}");
    assert!(is_alive(pid));
    disk.free();
    home.ok(&["daemon", "start"]);
    until("the run is adopted", || (home.count(&chatty.id, "AttemptAdopted") >= 1).then_some(()));
    until_no_trouble(&home, &chatty.id);
    chatty.give(10);
    chatty.assert_seen_whole(&home);
}

#[test]
fn a_daemon_starts_on_a_full_disk_and_shows_and_stops_what_runs() {
    let home = Home::new();
    let Some(disk) = SmallDisk::under(&home) else { return };
    let id = home.start("sleep 1000");
    let pid = home.pid(&id);
    until("there is a reserve", || home.state().join("reserve").exists().then_some(()));
    disk.fill();
    home.crash_daemon();
    until("a daemon runs", || home.daemon_if_up());
    assert_eq!(str_of(&home.show(&id), "state"), "running");
    assert!(home.ok(&["ps"]).contains(&id[..8]));
    disk.fill();
    assert_new_runs_are_refused(&home);
    // Whether or not the journal has room for the order, what runs is ended.
    let stopped = home.output(&["stop", &id]);
    until("nothing of it is alive", || (!is_alive(pid)).then_some(()));
    match stopped.status.code() {
        Some(0) => assert_eq!(home.count(&id, "StopRequested"), 1),
        code => assert_eq!(code, Some(2), "{}", text(&stopped.stderr)),
    }
    disk.free();
    assert_eq!(home.wait(&id), 5);
    assert_eq!(home.count(&id, "StopRequested"), 1);
    assert_eq!(home.wait(&home.start("true")), 0);
}

#[test]
fn slow_a_stop_that_cannot_be_written_down_ends_the_processes_and_says_so() {
    let home = Home::new();
    let Some(disk) = SmallDisk::under(&home) else { return };
    let mut chatty = Chatty::start(&home);
    let pid = home.pid(&chatty.id);
    chatty.give(10);
    disk.fill_without_reserve(&home);
    chatty.give(300);
    until_trouble(&home, &chatty.id);
    let stopped = home.output(&["stop", "--now", &chatty.id]);
    assert_eq!(stopped.status.code(), Some(2), "{}", text(&stopped.stderr));
    let said = text(&stopped.stderr);
    assert!(said.contains("its processes are ended even so"), "{said}");
    until("nothing of it is alive", || (!is_alive(pid)).then_some(()));
    // What is not in the journal is not said to be so.
    assert_eq!(str_of(&home.show(&chatty.id), "state"), "running");
    disk.free();
    assert_eq!(home.wait(&chatty.id), 5);
    assert_eq!(home.count(&chatty.id, "StopRequested"), 1);
}

#[test]
fn slow_a_message_that_found_no_room_is_sent_again_under_its_id_and_is_there_once() {
    let home = Home::new();
    let Some(disk) = SmallDisk::under(&home) else { return };
    let looping = crate::loops::Loop::of(
        &home,
        "answer '{\"status\":\"continue\",\"summary\":\"x\",\"wait\":{\"message\":true}}'",
    );
    let id = looping.start();
    until("it waits for a message", || (home.show(&id)["reason_code"] == "message").then_some(()));
    disk.fill_without_reserve(&home);
    let sent = home.output(&["send", &id, "hello there"]);
    let said = text(&sent.stderr);
    assert_eq!(sent.status.code(), Some(2), "{said}");
    let paste = said.lines().find_map(|line| line.split_once("outlast send --id ")).expect(&said).1;
    let message = paste.split_whitespace().next().expect("an id");
    disk.free();
    home.ok(&["send", "--id", message, &id, "hello there"]);
    assert_eq!(home.count(&id, "MessageReceived"), 1, "{:?}", home.kinds(&id));
}

#[test]
fn an_attempt_that_is_due_waits_for_room() {
    let home = Home::new();
    let Some(disk) = SmallDisk::under(&home) else { return };
    let mut gate = Gate::new(&home, "gate");
    let script = format!("{}; exit $((2 - OUTLAST_ATTEMPT))", gate.pass());
    let id = home.ok(&["run", "-d", "--retry", "1", "--backoff", "0s", "--", "sh", "-c", &script]);
    home.pid(&id);
    disk.fill();
    gate.open();
    assert_eq!(str_of(&until_trouble(&home, &id), "code"), "disk_full");
    gate.open();
    disk.free();
    assert_eq!(home.wait(&id), 0);
    let run = home.show(&id);
    assert_eq!((run["attempt"].as_u64(), &run["trouble"]), (Some(2), &Value::Null));
}

/// A limit on the size of files stands for a disk on which the journal still has room and the output has not.
#[test]
fn a_journal_that_can_be_written_does_not_hide_an_output_that_cannot() {
    let home = Home::new();
    let mut limited = home.command("sh");
    limited.args(["-c", "ulimit -f 4096; exec \"$0\" daemon start", env!("CARGO_BIN_EXE_outlast")]);
    let started = limited.output().expect("there is a sh");
    assert!(started.status.success(), "{}", text(&started.stderr));
    let daemon = home.json(&["daemon", "status", "--json"]);
    let id = home.start("head -c 16000000 /dev/zero");
    let trouble = until_trouble(&home, &id);
    let _stop = home.spawn(&["stop", &id]);
    let run = until("the stop is written down", || {
        let asked = home.events(&id).into_iter().find(|event| event["kind"] == "StopRequested")?;
        Some(home.show(&id)).filter(|run| run["seq"].as_u64() >= asked["seq"].as_u64())
    });
    assert_eq!(run["trouble"], trouble, "the run is suspended still");
    assert_eq!(
        str_of(&run, "state"),
        "running",
        "its end was made known before its output was saved"
    );
    let same = home.json(&["daemon", "status", "--json"]);
    assert_eq!(same["pid"], daemon["pid"], "the limit has ended the daemon");
    assert_eq!(same["epoch"], 1, "the limit has ended a daemon");
}
