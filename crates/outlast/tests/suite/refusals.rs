//! What cannot be done is refused: one line that says what is wrong, one that says what to do, the right
//! exit code, and nothing lost.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::{Gate, Home, is_alive, kill, str_of, text, until};
use crate::terminal::Terminal;

/// What a refused command says: the error on one line, the hint and below it commands to paste; and nothing on standard
/// output.
fn refused(home: &Home, code: i32, args: &[&str]) -> (String, String) {
    let output = home.output(args);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
    assert_eq!(text(&output.stdout), "", "{args:?}");
    let lines: Vec<&str> = said.lines().collect();
    let [error, hint, commands @ ..] = lines.as_slice() else {
        panic!("{args:?}: not a line and a hint: {said}")
    };
    assert!(commands.iter().all(|line| line.starts_with("  ")), "{args:?}: {said}");
    assert!(commands.is_empty() || hint.ends_with(':'), "{args:?}: {said}");
    let error = error.strip_prefix("outlast: ").unwrap_or_else(|| panic!("{args:?}: {said}"));
    let hint = hint.strip_prefix("hint: ").unwrap_or_else(|| panic!("{args:?}: {said}"));
    assert!(!error.is_empty() && !error.ends_with('.') && !hint.is_empty(), "{args:?}: {said}");
    (error.to_owned(), format!("{hint}\n{}", commands.join("\n")).trim_end().to_owned())
}

/// The same with `--json`: `code`, `message` and `hint` on standard error, and nothing else anywhere.
fn refused_as_json(home: &Home, code: i32, args: &[&str]) -> Value {
    let output = home.output(args);
    let printed = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {printed}{}", text(&output.stdout));
    assert_eq!(text(&output.stdout), "", "{args:?}");
    let answer: Value = serde_json::from_str(&printed)
        .unwrap_or_else(|error| panic!("{args:?}: {error}: {printed}"));
    let keys = |value: &Value| {
        value.as_object().expect("an object").keys().cloned().collect::<BTreeSet<String>>()
    };
    let expected =
        |keys: &[&str]| keys.iter().map(ToString::to_string).collect::<BTreeSet<String>>();
    assert_eq!(keys(&answer), expected(&["error"]), "{args:?}");
    assert_eq!(keys(&answer["error"]), expected(&["code", "message", "hint"]), "{args:?}");
    assert!(!str_of(&answer["error"], "message").is_empty(), "{args:?}: {printed}");
    answer["error"].clone()
}

fn run_ids(home: &Home) -> Vec<String> {
    let rows = home.json(&["ps", "-a", "--json"]);
    rows.as_array()
        .expect("ps prints an array")
        .iter()
        .map(|row| str_of(row, "id").to_owned())
        .collect()
}

/// Makes a run under an id of the test's own choice, as a client may.
fn create(home: &Home, id: &str) {
    let body = json!({"id": id, "command": ["true"], "dir": "/"}).to_string();
    let directory = File::open(home.path().join("run")).expect("a daemon has been started");
    // However long the path is.
    let socket = format!("/proc/self/fd/{}/daemon.sock", directory.as_raw_fd());
    let mut stream = UnixStream::connect(socket).expect("a daemon listens");
    let head = "POST /v1/runs HTTP/1.1\r\nHost: outlast\r\nConnection: close\r\nContent-Type: application/json";
    write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers with text");
    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
}

#[test]
fn a_run_that_nobody_knows() {
    let home = Home::new();
    let verbs = ["show", "logs", "attach", "wait", "stop", "events", "rm"];
    for verb in verbs {
        let (error, hint) = refused(&home, 2, &[verb, "nosuchrun"]);
        assert_eq!(error, "there is no run nosuchrun");
        assert!(hint.contains("outlast ps -a"), "{hint}");
    }
    for verb in ["show", "wait", "stop", "events", "rm"] {
        let error = refused_as_json(&home, 2, &[verb, "nosuchrun", "--json"]);
        assert_eq!(str_of(&error, "code"), "unknown_run");
    }
    let error =
        refused_as_json(&home, 2, &["run", "-d", "--json", "--parent", "nosuchrun", "--", "true"]);
    assert_eq!(str_of(&error, "code"), "unknown_run");
    assert_eq!(run_ids(&home), Vec::<String>::new());
}

/// One that is known is still seen to, although another one beside it is not.
#[test]
fn one_unknown_run_among_others_keeps_nobody_from_theirs() {
    let home = Home::new();
    let id = home.start("exec sleep 600");
    home.pid(&id);
    let said = home.fails(2, &["stop", "--now", "nosuchrun", &id]);
    assert!(said.starts_with("outlast: there is no run nosuchrun\nhint: "), "{said}");
    assert_eq!(home.wait(&id), 5);
}

#[test]
fn a_start_of_an_id_that_is_too_short_or_fits_several() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    for id in ["abc000000001", "abc000000002", "abd000000003"] {
        create(&home, id);
        assert_eq!(home.wait(id), 0);
    }
    let (error, hint) = refused(&home, 2, &["show", "abc"]);
    assert!(error.starts_with("abc is ambiguous: "), "{error}");
    assert!(
        error.contains("abc000000001") && error.contains("abc000000002") && !error.contains("abd"),
        "{error}"
    );
    assert_eq!(hint, "outlast ps -a");
    assert_eq!(
        str_of(&refused_as_json(&home, 2, &["show", "abc", "--json"]), "code"),
        "ambiguous_run"
    );
    for short in ["ab", "a"] {
        let (error, hint) = refused(&home, 2, &["stop", short]);
        assert_eq!(error, format!("there is no run {short}"));
        assert!(hint.contains("3 characters or more"), "{hint}");
    }
    assert_eq!(str_of(&home.show("abd"), "id"), "abd000000003");
    assert_eq!(str_of(&home.show("abc000000001"), "id"), "abc000000001");
    refused(&home, 2, &["rm", "abc"]);
    assert_eq!(run_ids(&home).len(), 3);
}

/// Each with the words that have to be in the reason.
fn commands_that_cannot_start(home: &Home) -> Vec<(String, &'static str)> {
    let scratch = home.scratch();
    let plain = scratch.join("plain.sh");
    fs::write(&plain, "#!/bin/sh\nexit 0\n").expect("the scratch directory is ours");
    fs::set_permissions(&plain, Permissions::from_mode(0o644)).expect("it is ours");
    let path = |path: PathBuf| path.to_str().expect("our paths are text").to_owned();
    vec![
        ("no-such-command".to_owned(), "command not found"),
        (path(scratch.join("no/such/command")), "command not found"),
        (path(plain), "not executable"),
        (path(scratch), "not executable"),
    ]
}

#[test]
fn a_command_that_cannot_start() {
    let home = Home::new();
    for (command, why) in commands_that_cannot_start(&home) {
        let (error, _) = refused(&home, 1, &["run", "--", &command]);
        assert_eq!(error, format!("{command}: {why}"));
        let id = home.ok(&["run", "-d", "--", &command]);
        let (error, _) = refused(&home, 1, &["wait", &id]);
        assert!(error.contains(why), "{error}");
        let run = home.show(&id);
        assert_eq!(
            (str_of(&run, "state"), str_of(&run, "outcome")),
            ("failed", "never_started"),
            "{run}"
        );
        assert!(str_of(&run, "reason").contains(why), "{run}");
        assert!(!str_of(&run, "reason_code").is_empty(), "{run}");
        assert_eq!(
            (&run["exit"], &run["pid"], &run["turns_committed"]),
            (&Value::Null, &Value::Null, &json!(0))
        );
        assert_eq!(home.count(&id, "AttemptEnded"), 1);
        let ended = home.events(&id).into_iter().find(|event| event["kind"] == "AttemptEnded");
        assert_eq!(ended.expect("it was just counted")["outcome"], "never_started");
    }
}

#[test]
fn a_directory_that_is_none() {
    let home = Home::new();
    let file = home.scratch().join("file");
    fs::write(&file, "").expect("the scratch directory is ours");
    let missing = home.scratch().join("missing");
    for dir in [&missing, &file, &file.join("below")] {
        let dir = dir.to_str().expect("our paths are text");
        for how in [&["run", "-d"][..], &["run"]] {
            let (error, hint) = refused(&home, 2, &[how, &["--dir", dir, "--", "true"]].concat());
            assert!(error.contains(dir), "{error}");
            assert!(hint.contains("--dir"), "{hint}");
        }
        let error = refused_as_json(&home, 2, &["run", "-d", "--json", "--dir", dir, "--", "true"]);
        assert_eq!(str_of(&error, "code"), "no_directory");
    }
    // A name without a slash means one beside us, and is said whole.
    let (error, _) = refused(&home, 2, &["run", "-d", "--dir", "missing", "--", "true"]);
    assert!(error.contains(missing.to_str().expect("our paths are text")), "{error}");
    assert_eq!(run_ids(&home), Vec::<String>::new());
    assert_eq!(fs::read_dir(home.state().join("runs")).expect("a daemon was started").count(), 0);
}

#[test]
fn names_keys_and_variables_that_are_none() {
    let home = Home::new();
    let long = "n".repeat(101);
    let bad: [&[&str]; 7] = [
        &["--env", "NOVALUE"],
        &["--env", "=value"],
        &["--name", ""],
        &["--name", "two\nlines"],
        &["--name", &long],
        &["--key", ""],
        &["--env", ""],
    ];
    for options in bad {
        refused(&home, 2, &[&["run", "-d"], options, &["--", "true"]].concat());
        refused_as_json(&home, 2, &[&["run", "-d", "--json"], options, &["--", "true"]].concat());
    }
    assert_eq!(run_ids(&home), Vec::<String>::new());
}

#[test]
fn a_name_that_is_in_use() {
    let home = Home::new();
    let id = home.ok(&["run", "-d", "--name", "nightly", "--", "sleep", "600"]);
    let (error, _) = refused(&home, 2, &["run", "-d", "--name", "nightly", "--", "true"]);
    assert!(error.contains("nightly") && error.contains(&id), "{error}");
    home.ok(&["stop", "--now", "nightly"]);
    let next = home.ok(&["run", "-d", "--name", "nightly", "--", "true"]);
    assert_eq!(home.wait("nightly"), 0);
    assert_eq!(run_ids(&home), [next, id]);
}

/// Refused before the client asks a daemon, so none is started for it.
#[test]
fn a_command_line_that_is_none() {
    let home = Home::new();
    let bad: [(&[&str], &str); 14] = [
        (&["run", "-d", "--turn-timeout", "5x", "--", "true"], "5x"),
        (&["run", "-d", "--stall", "-1s", "--", "true"], "-1"),
        (&["run", "-d", "--run-timeout", "0s", "--", "true"], "0s"),
        (&["run", "-d", "--backoff", "soon", "--", "true"], "soon"),
        (&["run", "-d", "--retry", "many", "--", "true"], "many"),
        (&["run", "-d", "--label", "plain", "--", "true"], "plain"),
        (&["run", "-d", "--bogus", "--", "true"], "--bogus"),
        (&["run", "-d"], "COMMAND"),
        (&["run", "-d", "--"], "COMMAND"),
        (&["wait", "abc", "--timeout", "1 fortnight"], "fortnight"),
        (&["ps", "--state", "dreaming"], "dreaming"),
        (&["events", "abc", "--after", "x"], "'x'"),
        (&["logs", "abc", "--since", "tomorrow"], "tomorrow"),
        (&["frobnicate"], "frobnicate"),
    ];
    for (args, named) in bad {
        let said = home.fails(2, args);
        assert!(said.contains(named), "{args:?}: {said}");
        let (verb, rest) = args.split_first().expect("there is a verb");
        if *verb != "logs" {
            let error = refused_as_json(&home, 2, &[&[verb, "--json"], rest].concat());
            assert_eq!(str_of(&error, "code"), "usage", "{args:?}");
        }
    }
    assert!(!home.state().exists(), "a daemon was started for nothing");
}

#[test]
fn a_daemon_that_may_not_be_started() {
    let home = Home::new().env("OUTLAST_NO_AUTOSTART", "1");
    for args in [&["ps"][..], &["run", "-d", "--", "true"], &["wait", "abc"]] {
        let (error, hint) = refused(&home, 7, args);
        assert!(error.contains("not running"), "{error}");
        assert!(hint.contains("OUTLAST_NO_AUTOSTART"), "{hint}");
    }
    assert_eq!(str_of(&refused_as_json(&home, 7, &["ps", "--json"]), "code"), "daemon_unreachable");
    assert!(!home.state().exists());
}

/// A journal with a few runs in it, of a daemon that has gone in peace.
struct Journal {
    home: Home,
    ids: Vec<String>,
    sound: Vec<u8>,
}

impl Journal {
    fn new() -> Self {
        let home = Home::new();
        for number in 0..3 {
            let id = home.start(&format!("echo {number}"));
            assert_eq!(home.wait(&id), 0);
        }
        let ids = run_ids(&home);
        home.ok(&["daemon", "stop"]);
        let sound = fs::read(home.state().join("outlast.db")).expect("a journal is one file");
        Self { home, ids, sound }
    }

    fn path(&self) -> PathBuf {
        self.home.state().join("outlast.db")
    }

    /// Everything that needs the journal is refused, and whatever is there of it stays as it is.
    fn assert_refused(&self, code: &str, because: &str) {
        let before = self.contents();
        for args in [
            &["ps", "-a"][..],
            &["run", "-d", "--", "true"],
            &["run", "--", "true"],
            &["daemon", "start"],
            &["daemon", "run"],
        ] {
            let (error, _) = refused(&self.home, 2, args);
            assert!(error.contains(because), "{args:?}: {error}");
            assert!(before == self.contents(), "{args:?} has changed the journal");
        }
        let error = refused_as_json(&self.home, 2, &["ps", "--json"]);
        assert_eq!(str_of(&error, "code"), code);
        assert!(before == self.contents());
    }

    /// The database and what SQLite may put beside it.
    fn contents(&self) -> Vec<Option<Vec<u8>>> {
        let beside = [
            "outlast.db",
            "outlast.db-wal",
            "outlast.db-shm",
            "outlast.db-journal",
            "outlast.db.new",
        ];
        beside.iter().map(|name| fs::read(self.home.state().join(name)).ok()).collect()
    }

    /// Once the file is as it was, nothing is missing.
    fn assert_whole_again(&self) {
        fs::write(self.path(), &self.sound).expect("it is ours");
        assert_eq!(run_ids(&self.home), self.ids);
        self.home.ok(&["doctor"]);
        self.home.ok(&["daemon", "stop"]);
    }
}

#[test]
fn a_journal_that_is_empty_or_cut_short() {
    let journal = Journal::new();
    let length = journal.sound.len();
    for left in [0, 1, 99, 4096, length / 2, length - 1] {
        fs::write(journal.path(), &journal.sound[..left]).expect("it is ours");
        journal.assert_refused("database_corrupt", "is not a sound journal");
    }
    journal.assert_whole_again();
}

#[test]
fn a_journal_that_is_damaged() {
    let journal = Journal::new();
    let file = || OpenOptions::new().write(true).open(journal.path()).expect("it is ours");
    file().write_all_at(b"#!/bin/sh\n", 0).expect("it takes writes");
    journal.assert_refused("database_corrupt", "is not a SQLite database");
    for page in [1, journal.sound.len() / 4096 - 1] {
        fs::write(journal.path(), &journal.sound).expect("it is ours");
        file().write_all_at(&[0xee; 64], page as u64 * 4096).expect("it takes writes");
        journal.assert_refused("database_corrupt", "is not a sound journal");
    }
    journal.assert_whole_again();
}

#[test]
fn a_journal_of_a_newer_version() {
    let journal = Journal::new();
    // Where SQLite keeps the number of the schema.
    let file = OpenOptions::new().write(true).open(journal.path()).expect("it is ours");
    file.write_all_at(&99_u32.to_be_bytes(), 60).expect("it takes writes");
    journal.assert_refused("database_newer", "schema 99");
    journal.assert_whole_again();
}

/// Root may write to anything, so this is a wish and not a wall there; it is still kept.
#[test]
fn a_journal_that_may_not_be_written_to() {
    let journal = Journal::new();
    let set = |mode| {
        fs::set_permissions(journal.path(), Permissions::from_mode(mode)).expect("it is ours");
    };
    set(0o400);
    journal.assert_refused("database_read_only", "may not be written to");
    set(0o600);
    journal.assert_whole_again();
}

#[test]
fn a_state_directory_that_is_none() {
    let home = Home::new();
    fs::write(home.state(), "mine").expect("the home is ours");
    for args in [&["ps"][..], &["run", "-d", "--", "true"], &["daemon", "start"]] {
        let (error, _) = refused(&home, 7, args);
        assert!(error.contains(home.state().to_str().expect("our paths are text")), "{error}");
    }
    assert_eq!(str_of(&refused_as_json(&home, 7, &["ps", "--json"]), "code"), "state_unusable");
    assert_eq!(fs::read_to_string(home.state()).expect("it is still a file"), "mine");
    assert_eq!(home.output(&["doctor"]).status.code(), Some(1));
}

/// A home with one run that will be damaged and one that will not, both alive, and no daemon.
struct Damaged {
    home: Home,
    gate: Gate,
    victim: String,
    shim: u32,
    pid: u32,
    neighbour: String,
}

impl Damaged {
    fn new() -> Self {
        let home = Home::new();
        let gate = Gate::new(&home, "gate");
        let victim = home.ok(&["run", "-d", "--name", "victim", "--", "sleep", "600"]);
        let (pid, shim) = (home.pid(&victim), home.shim_pid(&victim));
        let neighbour = home.start(&format!("{}; echo fine; exit 7", gate.pass()));
        home.pid(&neighbour);
        home.ok(&["daemon", "stop"]);
        Self { home, gate, victim, shim, pid, neighbour }
    }

    fn spoil_records(&self) {
        fs::write(self.home.attempt_dir(&self.victim, 1, 1).join("events.jsonl"), "not a record\n")
            .expect("it is ours");
    }

    /// As a bit flipped by the disk would; SQLite has no checksum that could tell.
    fn spoil_journal(&self) {
        let path = self.home.state().join("outlast.db");
        let mut bytes = fs::read(&path).expect("a journal is one file");
        let wanted = br#"{"kind":"RunCreated","spec":{"name":"victim""#;
        let at: Vec<usize> =
            (0..bytes.len() - wanted.len()).filter(|at| bytes[*at..].starts_with(wanted)).collect();
        assert!(!at.is_empty(), "the journal has no event to spoil");
        for at in at {
            bytes[at + 9] = b'r';
        }
        fs::write(path, bytes).expect("it is ours");
    }

    /// Whatever has become of the victim, this is seen, and no other run is held up by it.
    fn assert_quarantined(&mut self) {
        let home = &self.home;
        let row = until("the damage is noticed", || {
            let rows = home.json(&["ps", "--json"]);
            let row =
                rows.as_array()?.iter().find(|row| row["id"] == self.victim.as_str())?.clone();
            (!row["trouble"].is_null()).then_some(row)
        });
        assert_eq!(
            (str_of(&row["trouble"], "code"), str_of(&row, "health")),
            ("unreadable", "unreachable")
        );
        assert!(home.ok(&["ps"]).contains("unreadable"));
        let doctor = home.output(&["doctor"]);
        assert_eq!(doctor.status.code(), Some(1), "{}", text(&doctor.stdout));
        let report = text(&doctor.stdout);
        assert!(
            report.lines().any(|line| line.starts_with("problem") && line.contains("victim")),
            "{report}"
        );
        assert!(!report.contains(&self.neighbour), "{report}");
        let refused = home.output(&["rm", &self.victim]);
        assert_eq!(
            refused.status.code(),
            Some(2),
            "what is alive was removed: {}",
            text(&refused.stderr)
        );
        self.gate.open();
        assert_eq!(home.wait(&self.neighbour), 1);
        assert_eq!(home.ok(&["logs", &self.neighbour]), "fine");
        assert_eq!(home.wait(&home.start("true")), 0);
    }

    fn assert_removed(&self) {
        let home = &self.home;
        home.ok(&["rm", &self.victim]);
        assert!(!run_ids(home).contains(&self.victim));
        assert!(!home.state().join("runs").join(&self.victim).exists());
        home.ok(&["doctor"]);
        // And it stays so.
        home.ok(&["daemon", "stop"]);
        home.ok(&["daemon", "start"]);
        assert_eq!(run_ids(home).len(), 2);
        home.ok(&["doctor"]);
    }
}

#[test]
fn records_that_cannot_be_read_and_a_shim_that_is_dead() {
    let mut damaged = Damaged::new();
    kill(damaged.shim, "KILL");
    until("the shim is dead", || (!is_alive(damaged.shim)).then_some(()));
    damaged.spoil_records();
    damaged.assert_quarantined();
    let Damaged { home, victim, pid, .. } = &damaged;
    let run = home.show(victim);
    assert_eq!(
        (str_of(&run, "state"), &run["exit"]),
        ("running", &Value::Null),
        "an end was invented"
    );
    assert!(str_of(&run["trouble"], "message").contains("events.jsonl line 1"), "{run}");
    assert!(is_alive(*pid), "it was ended unasked");
    // What cannot be known is not made up, but what is alive of it can be ended.
    home.ok(&["stop", "--now", victim]);
    assert!(!is_alive(*pid));
    let run = home.show(victim);
    assert_eq!((str_of(&run, "state"), &run["exit"]), ("stopped", &Value::Null), "{run}");
    damaged.assert_removed();
}

#[test]
fn records_that_cannot_be_read_of_an_attempt_that_is_gone() {
    let mut damaged = Damaged::new();
    kill(damaged.shim, "KILL");
    kill(damaged.pid, "KILL");
    until("both are dead", || (!is_alive(damaged.shim) && !is_alive(damaged.pid)).then_some(()));
    damaged.spoil_records();
    let Damaged { home, gate, victim, neighbour, .. } = &mut damaged;
    // Its end was not observed, and it is looked for no longer.
    assert_eq!(home.wait(victim), 6);
    let run = home.show(victim);
    assert_eq!((str_of(&run, "outcome"), &run["exit"]), ("lost", &Value::Null), "{run}");
    gate.open();
    assert_eq!(home.wait(neighbour), 1);
    assert_eq!(home.wait(&home.start("true")), 0);
    damaged.assert_removed();
}

#[test]
fn records_that_cannot_be_read_of_another_boot() {
    let home = Home::new().env("OUTLAST_FAKE_BOOT_ID", "first-boot");
    let id = home.start("exec sleep 600");
    home.pid(&id);
    home.ok(&["daemon", "stop"]);
    fs::write(home.attempt_dir(&id, 1, 1).join("events.jsonl"), "not a record\n")
        .expect("it is ours");
    let start =
        home.outlast(&["daemon", "start"]).env("OUTLAST_FAKE_BOOT_ID", "second-boot").output();
    assert!(start.expect("it starts").status.success());
    until("the damage is noticed", || {
        (home.show(&id)["trouble"]["code"] == "unreadable").then_some(())
    });
    home.ok(&["stop", &id]);
    assert_eq!(str_of(&home.show(&id), "outcome"), "interrupted");
    home.ok(&["rm", &id]);
}

/// What a power loss leaves of a file that was not synced is its length, with zeros for the bytes.
#[test]
fn records_that_a_power_loss_took_hold_up_no_run() {
    let home = Home::new().env("OUTLAST_FAKE_BOOT_ID", "first-boot");
    let id = home.start("exec sleep 600");
    home.pid(&id);
    home.ok(&["daemon", "stop"]);
    let records = home.attempt_dir(&id, 1, 1).join("events.jsonl");
    let mut bytes = fs::read(&records).expect("it was written");
    let half = bytes.len() / 2;
    bytes[..half].fill(0);
    fs::write(&records, bytes).expect("it is ours");
    let start =
        home.outlast(&["daemon", "start"]).env("OUTLAST_FAKE_BOOT_ID", "second-boot").output();
    assert!(start.expect("it starts").status.success());
    assert_eq!(home.wait(&id), 1);
    let run = home.show(&id);
    assert_eq!((str_of(&run, "outcome"), &run["exit"]), ("interrupted", &Value::Null), "{run}");
}

/// The shim has every record in its memory, so nothing is missing while it lives.
#[test]
fn records_that_cannot_be_read_while_their_shim_lives() {
    let damaged = Damaged::new();
    damaged.spoil_records();
    let Damaged { home, victim, pid, .. } = &damaged;
    until("the run is adopted", || (home.count(victim, "AttemptAdopted") == 1).then_some(()));
    assert_eq!((home.pid(victim), &home.show(victim)["trouble"]), (*pid, &Value::Null));
    home.ok(&["stop", "--now", victim]);
    let run = home.show(victim);
    assert!(run["exit"]["signal"].is_number(), "its end was not seen: {run}");
}

#[test]
fn a_journal_of_one_run_that_cannot_be_read() {
    let mut damaged = Damaged::new();
    damaged.spoil_journal();
    damaged.assert_quarantined();
    let Damaged { home, victim, pid, shim, .. } = &damaged;
    for verb in ["show", "wait", "attach", "events", "stop"] {
        let (error, _) = refused(home, 2, &[verb, victim]);
        assert!(error.starts_with("run victim cannot be read: event 1: "), "{error}");
    }
    assert_eq!(
        str_of(&refused_as_json(home, 2, &["show", victim, "--json"]), "code"),
        "unreadable_run"
    );
    // Forgetting what is alive would leave it running unknown.
    assert!(is_alive(*pid));
    let (error, hint) = refused(home, 2, &["rm", victim]);
    assert!(error.contains(&format!("pid {pid} (sleep)")), "{error}");
    assert_eq!(hint, format!("kill {pid}"));
    kill(*pid, "KILL");
    until("it is dead", || (!is_alive(*pid)).then_some(()));
    until("its shim has gone", || (!is_alive(*shim)).then_some(()));
    damaged.assert_removed();
}

/// Longer than a socket's path may be, for each of the sockets.
#[test]
fn a_home_whose_path_is_too_long_for_a_socket() {
    let home = Home::named(&"long-".repeat(30));
    assert!(home.path().join("run/daemon.sock").as_os_str().len() > 150);
    let output = home.output(&["run", "--", "sh", "-c", "echo out; exit 7"]);
    assert_eq!((text(&output.stdout).as_str(), output.status.code()), ("out\n", Some(1)));

    let mut gate = Gate::new(&home, "gate");
    let id = home.start(&format!("{}; echo late; exec sleep 600", gate.pass()));
    let pid = home.pid(&id);
    home.crash_daemon();
    until("the run is adopted", || (home.count(&id, "AttemptAdopted") == 1).then_some(()));
    assert_eq!(home.pid(&id), pid);
    let attached = home.spawn(&["attach", &id]);
    gate.open();
    until("it is seen", || (home.ok(&["logs", &id]) == "late").then_some(()));
    home.ok(&["stop", &id]);
    assert!(!is_alive(pid));
    assert_eq!(attached.code(), 5);
}

#[test]
fn a_terminal_in_a_home_whose_path_is_too_long_for_a_socket() {
    let home = Home::named(&"long-".repeat(30));
    let id = home.ok(&[
        "run",
        "-d",
        "--tty",
        "--",
        "sh",
        "-c",
        "echo ready; read -r word; echo \"got $word\"; exit 7",
    ]);
    let mut terminal = Terminal::new(24, 80);
    terminal.start(&home, &["attach", &id]);
    terminal.until_shows("ready");
    terminal.press(b"keys\r");
    terminal.until_shows("got keys");
    assert_eq!(terminal.code(), 1);
    assert_eq!(home.show(&id)["exit"], json!({"code": 7}));
}
