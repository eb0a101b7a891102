//! Watching a run: what was printed, then what is printed, each byte once, whichever other process stops or dies.

use std::fs::{self, File};
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::harness::{Background, Gate, Home, kill, lines as lines_of, str_of, text, until};

/// How many numbers one step prints: a few megabytes, far more than any buffer between it and a client.
const STEP: u64 = 350_000;

/// Prints numbers from 1 on, as fast as it can, in steps that the gate lets through.
fn counting(gate: &Gate, steps: u64) -> String {
    let step =
        |step: u64| format!("{}; seq {} {}", gate.pass(), step * STEP + 1, (step + 1) * STEP);
    (0..steps).map(step).collect::<Vec<_>>().join("; ")
}

fn counted(steps: u64) -> Vec<u8> {
    let seq = Command::new("seq").args(["1", &(steps * STEP).to_string()]).output();
    seq.expect("there is a seq").stdout
}

/// A client whose standard output is a file.
struct Watcher {
    client: Background,
    seen: PathBuf,
}

impl Watcher {
    fn start(home: &Home, name: &str, args: &[&str]) -> Self {
        let seen = home.scratch().join(name);
        let file = File::create(&seen).expect("the test's directory is ours");
        let client = home.outlast(args).stdout(file).stderr(Stdio::piped()).spawn();
        Self { client: Background(client.expect("the program starts")), seen }
    }

    fn length(&self) -> u64 {
        fs::metadata(&self.seen).expect("the test made it").len()
    }

    fn until_beyond(&self, length: u64) {
        until("more is shown", || (self.length() > length).then_some(()));
    }

    /// Waits for its end, and compares what it printed.
    fn assert_saw(mut self, what: &str, expected: &[u8]) {
        let mut said = String::new();
        let stderr = self.client.0.stderr.as_mut().expect("it is piped");
        stderr.read_to_string(&mut said).expect("what we say is UTF-8");
        assert_same(what, &fs::read(&self.seen).expect("the test made it"), expected);
        assert_eq!(self.client.code(), 0, "{what}: {said}");
    }
}

fn assert_same(what: &str, seen: &[u8], expected: &[u8]) {
    let differs = seen.iter().zip(expected).position(|(one, other)| one != other);
    let at = differs.unwrap_or(seen.len().min(expected.len()));
    let around = |bytes: &[u8]| text(&bytes[at.saturating_sub(20)..bytes.len().min(at + 20)]);
    assert!(
        seen == expected,
        "{what} saw {} bytes and not {}, other ones from {at} on: {:?} and not {:?}",
        seen.len(),
        expected.len(),
        around(seen),
        around(expected),
    );
}

#[test]
fn slow_whoever_joins_while_output_pours_sees_each_byte_once() {
    const STEPS: u64 = 6;
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let id = home.start(&counting(&gate, STEPS));
    let mut watchers = Vec::new();
    for step in 0..STEPS {
        gate.open();
        for verb in [["attach", &id].as_slice(), &["logs", "-f", &id]] {
            let name = format!("{}-{step}", verb[0]);
            watchers.push((Watcher::start(&home, &name, verb), name));
        }
        // Nothing more is printed for now, so whatever is not shown yet would be held back.
        let printed = counted(step + 1).len() as u64;
        for (watcher, _) in &watchers {
            watcher.until_beyond(printed - 1);
        }
    }
    let expected = counted(STEPS);
    for (watcher, name) in watchers {
        watcher.assert_saw(&name, &expected);
    }
    assert_eq!(home.show(&id)["output_bytes"].as_u64(), u64::try_from(expected.len()).ok());
}

#[test]
fn slow_a_client_that_is_stopped_or_killed_is_not_noticed_by_the_run_nor_by_the_others() {
    const STEPS: u64 = 4;
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let id = home.start(&counting(&gate, STEPS));
    let other = Watcher::start(&home, "other", &["attach", &id]);
    let killed = Watcher::start(&home, "killed", &["attach", &id]);
    // The pipes of these two are not read.
    let mut stopped = home.spawn(&["attach", &id]);
    let mut blocked = home.spawn(&["logs", "-f", &id]);
    gate.open();
    killed.until_beyond(0);
    for client in [&stopped, &blocked] {
        until_full(client);
    }
    kill(stopped.0.id(), "STOP");
    gate.open();
    kill(killed.client.0.id(), "KILL");
    gate.open();
    gate.open();
    assert_eq!(home.wait(&id), 0);
    let expected = counted(STEPS);
    other.assert_saw("the other", &expected);

    // The client that was held up goes on where it was.
    kill(stopped.0.id(), "CONT");
    for (what, client) in [("the stopped one", &mut stopped), ("the blocked one", &mut blocked)] {
        let mut seen = Vec::new();
        let stdout = client.0.stdout.as_mut().expect("it is piped");
        stdout.read_to_end(&mut seen).expect("a pipe can be read");
        assert_same(what, &seen, &expected);
    }
    assert_eq!((stopped.code(), blocked.code()), (0, 0));
}

fn until_full(client: &Background) {
    let stdout = client.0.stdout.as_ref().expect("it is piped");
    let room = rustix::pipe::fcntl_getpipe_size(stdout).expect("it is a pipe");
    until("its pipe is full", || {
        let waiting = rustix::io::ioctl_fionread(stdout).expect("it is a pipe");
        (usize::try_from(waiting) == Ok(room)).then_some(())
    });
}

#[test]
fn slow_clients_come_back_by_themselves_after_a_daemon_was_killed_and_see_each_byte_once() {
    const STEPS: u64 = 6;
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script = counting(&gate, STEPS);
    let run =
        Watcher::start(&home, "run", &["run", "--name", "counting", "--", "sh", "-c", &script]);
    gate.open();
    run.until_beyond(0);
    let attach = Watcher::start(&home, "attach", &["attach", "counting"]);
    let logs = Watcher::start(&home, "logs", &["logs", "-f", "counting"]);
    let watchers = [run, attach, logs];
    for step in 1..STEPS {
        let before: Vec<u64> = watchers.iter().map(Watcher::length).collect();
        let daemon = until("a daemon is there", || home.daemon_if_up());
        gate.open();
        // Each of them in turn is the one that is surely in the middle.
        let first = usize::try_from(step).expect("small") % watchers.len();
        watchers[first].until_beyond(before[first]);
        kill(daemon, "KILL");
        // A client that needs one starts the next, or the shim does.
        for (watcher, before) in watchers.iter().zip(before) {
            watcher.until_beyond(before);
        }
    }
    let expected = counted(STEPS);
    for (watcher, what) in watchers.into_iter().zip(["run", "attach", "logs -f"]) {
        watcher.assert_saw(what, &expected);
    }
    assert_eq!(home.count("counting", "AttemptEnded"), 1);
}

#[test]
fn a_second_attempt_is_followed_across_the_death_of_the_daemon() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script = format!(
        "echo attempt $OUTLAST_ATTEMPT; {0}; echo again $OUTLAST_ATTEMPT; exit 7",
        gate.pass()
    );
    let args = ["run", "-d", "--retry", "1", "--backoff", "100ms", "--", "sh", "-c", &script];
    let id = home.ok(&args);
    let expected = "attempt 1\nagain 1\nattempt 2\nagain 2\n";
    let until_shown = |watcher: &Watcher, lines: usize| {
        until("so many lines are shown", || (lines_of(&watcher.seen) == lines).then_some(()));
    };
    let all = Watcher::start(&home, "all", &["logs", "-f", &id]);
    until_shown(&all, 1);
    home.crash_daemon();
    gate.open();
    until_shown(&all, 3);
    let last = Watcher::start(&home, "last", &["logs", "-f", "--tail", "1", &id]);
    until_shown(&last, 1);
    home.crash_daemon();
    gate.open();
    all.assert_saw("logs -f", expected.as_bytes());
    last.assert_saw("logs -f --tail 1", b"attempt 2\nagain 2\n");
    assert_eq!(home.count(&id, "AttemptEnded"), 2);
}

/// Prints a line, and ends with 7 once it may.
fn held(gate: &Gate) -> String {
    format!("echo ready; {}; echo done; exit 7", gate.pass())
}

#[test]
fn a_signal_to_whoever_watches_detaches_and_the_run_goes_on() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    for signal in ["INT", "QUIT", "HUP", "TERM"] {
        let name = format!("left-by-{signal}");
        let script = held(&gate);
        let mut client =
            Watcher::start(&home, signal, &["run", "--name", &name, "--", "sh", "-c", &script]);
        client.until_beyond(0);
        kill(client.client.0.id(), signal);
        let mut said = String::new();
        let stderr = client.client.0.stderr.as_mut().expect("it is piped");
        stderr.read_to_string(&mut said).expect("what we say is UTF-8");
        assert_eq!(client.client.code(), 130, "{signal}: {said}");
        let run = home.show(&name);
        assert_eq!(str_of(&run, "state"), "running", "{signal}");
        assert!(said.contains(&format!("outlast attach {name}\n")), "{said}");
        gate.open();
        assert_eq!(home.wait(&name), 1);
        assert_eq!(home.show(&name)["exit"], serde_json::json!({"code": 7}));
        assert_eq!(home.ok(&["logs", &name]), "ready\ndone");
    }
}

#[test]
fn a_client_that_nobody_reads_from_leaves_all_the_same_when_it_is_told_to() {
    let home = Home::new();
    let gate = Gate::new(&home, "gate");
    let client = home.spawn(&[
        "run",
        "--name",
        "much",
        "--",
        "sh",
        "-c",
        &format!("seq {STEP}; {}", gate.pass()),
    ]);
    until_full(&client);
    kill(client.0.id(), "INT");
    assert_eq!(client.code(), 130);
    assert_eq!(str_of(&home.show("much"), "state"), "running");
}

#[test]
fn a_reader_that_goes_away_takes_the_client_with_it_and_not_the_run() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let id = home.start(&format!("seq {STEP}; {}; exit 7", gate.pass()));
    for verb in [["attach", &id].as_slice(), &["logs", "-f", &id]] {
        let mut client = home.spawn(verb);
        let mut line = [0; 2];
        let mut stdout = client.0.stdout.take().expect("it is piped");
        stdout.read_exact(&mut line).expect("a line is shown");
        drop(stdout);
        // As for any program in a pipe whose reader has gone, and never the code of an outcome.
        assert_eq!(client.code(), 141, "{verb:?}");
    }
    assert_eq!(str_of(&home.show(&id), "state"), "running");
    gate.open();
    assert_eq!(home.wait(&id), 1);
}

#[test]
fn a_run_that_has_ended_is_shown_whole_with_its_outcome() {
    let home = Home::new();
    let id = home.start("echo out; echo err >&2; exit 7");
    assert_eq!(home.wait(&id), 1);
    let output = home.output(&["attach", &id]);
    assert_eq!(text(&output.stdout), "out\n");
    assert!(text(&output.stderr).starts_with("err\n"), "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(1));
}
