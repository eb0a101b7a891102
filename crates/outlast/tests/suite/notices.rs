//! Notices: every end reaches every sink, in order, whichever process dies in between; and a run that waits is woken.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::crash_matrix::assert_sound;
use crate::harness::{Gate, Home, str_of, text, until};
use crate::loops::{Loop, request, rests, until_waiting};
use crate::receiver::{Receiver, status};

const HOUR_MS: i64 = 3_600_000;

/// A file that a command is told into, a notice a line.
pub(crate) struct Sheet(PathBuf);

impl Sheet {
    pub(crate) fn new(home: &Home, name: &str) -> Self {
        Self(home.scratch().join(name))
    }

    /// The address of a command that writes down what it is told.
    pub(crate) fn address(&self) -> String {
        format!("cmd:{}", self.command())
    }

    pub(crate) fn command(&self) -> String {
        format!("cat >> '{}'", self.0.display())
    }

    pub(crate) fn notices(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).expect("a notice is JSON")).collect()
    }

    pub(crate) fn until(&self, count: usize) -> Vec<Value> {
        until("the command is told", || Some(self.notices()).filter(|told| told.len() >= count))
    }
}

/// Waits until nothing of a run waits to be told.
pub(crate) fn until_settled(home: &Home, id: &str) -> Value {
    until("every notice is settled", || {
        let run = home.show(id);
        let is_settled = run["ended_at"].is_string() && run["notices"]["pending"] == 0;
        is_settled.then_some(run)
    })
}

#[test]
fn an_end_is_told_to_every_sink_once_and_in_full() {
    let home = Home::new();
    let (sheet, receiver) = (Sheet::new(&home, "told"), Receiver::new());
    let hook = format!("webhook:{}", receiver.url("/hook?k=v"));
    let address = sheet.address();
    let args = [
        "run", "-d", "--name", "nightly", "--notify", &address, "--notify", &hook, "--notify",
        &address,
    ];
    let id = home.ok(&[&args[..], &["--", "sh", "-c", "echo one; echo two; exit 3"]].concat());
    let run = until_settled(&home, &id);
    assert_eq!(run["notices"]["delivered"], 2, "{run}");
    let told = receiver.told();
    assert_eq!((told.len(), sheet.notices().len()), (1, 1));
    assert_eq!(told[0].path, "/hook?k=v");
    let notice = told[0].json();
    assert_eq!(notice, sheet.notices()[0]);
    assert_eq!(str_of(&notice, "type"), "run.failed");
    assert_eq!(told[0].header("webhook-id"), str_of(&notice, "id"));
    assert!(str_of(&notice, "id").starts_with(&format!("{id}/t1.a1/")), "{notice}");
    let data = &notice["data"];
    assert_eq!((str_of(data, "run"), str_of(data, "name")), (id.as_str(), "nightly"));
    assert_eq!((str_of(data, "state"), &data["exit"]["code"]), ("failed", &3.into()));
    assert_eq!(str_of(data, "output_tail"), "one\ntwo\n");
    let mut keys: Vec<&str> =
        data.as_object().expect("it is one").keys().map(String::as_str).collect();
    keys.sort_unstable();
    let all = "dir duration_ms exit host name output_tail question reason_code run state summary turn usage";
    assert_eq!(keys.join(" "), all);
}

#[test]
fn a_notice_said_nothing_of_spend_duration_host_and_the_question() {
    let home = Home::new();
    let sheet = Sheet::new(&home, "told");
    let outlast = env!("CARGO_BIN_EXE_outlast");
    let spends = format!("{outlast} usage --cost 0.25 --input 10 --output 5");
    let id = home.ok(&["run", "-d", "--notify", &sheet.address(), "--", "sh", "-c", &spends]);
    until_settled(&home, &id);
    let notice = sheet.notices()[0].clone();
    let data = &notice["data"];
    let shown = home.show(&id);
    assert_eq!(data["usage"], shown["usage"], "{data}");
    assert!(data["usage"]["known"].is_boolean(), "{data}");
    assert!(data["duration_ms"].is_u64(), "{data}");
    let host = home.command("uname").arg("-n").output().expect("there is a uname");
    assert_eq!(str_of(data, "host"), text(&host.stdout).trim());
    assert_eq!(str_of(data, "dir"), home.scratch().to_str().expect("it is text"));
    assert_eq!(data["question"], Value::Null, "it asks nothing");
    let asks = Loop::of(&home, "say blocked 'left or right?'");
    asks.start_with(&["--notify", &sheet.address()]);
    let asked = sheet.until(2).pop().expect("there are two");
    assert_eq!(str_of(&asked, "type"), "run.blocked");
    assert_eq!(str_of(&asked["data"], "question"), "left or right?", "{asked}");
}

#[test]
fn a_relative_command_of_a_sink_ran_in_the_root() {
    let home = Home::new();
    let here = home.scratch().join("here");
    fs::create_dir(&here).expect("the scratch directory is ours");
    let run = |dir: &std::path::Path, sink: &str| {
        let dir = dir.to_str().expect("it is text");
        let id = home.ok(&["run", "-d", "--dir", dir, "--notify", sink, "--", "true"]);
        let run = until_settled(&home, &id);
        assert_eq!(run["notices"]["delivered"], 1, "{run}");
        id
    };
    // By its address: where the run was started.
    let id = run(&here, "cmd:cat >> told.jsonl");
    assert!(fs::read_to_string(here.join("told.jsonl")).expect("it is there").contains(&id));
    // By its name: beside the config.
    let config = "[sinks.file]\nkind = \"cmd\"\ncommand = \"cat >> told.jsonl\"\n";
    fs::write(home.path().join("config.toml"), config).expect("the home is ours");
    let id = run(&here, "file");
    let told = fs::read_to_string(home.path().join("told.jsonl")).expect("it is there");
    assert!(told.contains(&id), "{told}");
    // A test by its address: where the person is.
    let said = home.ok(&["sink", "test", "cmd:cat > tested"]);
    assert_eq!(said, "delivered to cmd:cat …: exit code 0");
    assert!(home.scratch().join("tested").exists());
    // A directory that is gone keeps no notice from being delivered.
    let gone = home.scratch().join("gone");
    fs::create_dir(&gone).expect("the scratch directory is ours");
    let address = format!("cmd:pwd > '{}'", home.scratch().join("where").display());
    let mut gate = Gate::new(&home, "gate");
    let args = ["run", "-d", "--dir", gone.to_str().expect("it is text"), "--notify", &address];
    let id = home.ok(&[&args[..], &["--", "sh", "-c", &gate.pass()]].concat());
    fs::remove_dir(&gone).expect("it is empty");
    gate.open();
    assert_eq!(until_settled(&home, &id)["notices"]["delivered"], 1);
    assert_eq!(fs::read_to_string(home.scratch().join("where")).expect("it is there"), "/\n");
}

#[test]
fn a_hyperlink_leaves_no_backslash_in_the_output_tail_or_the_last_line() {
    let home = Home::new();
    let sheet = Sheet::new(&home, "told");
    let link = r"printf '\033]8;;https://example.org\033\\ link\033]8;;\033\\ done\n'; exit 3";
    let id = home.ok(&["run", "-d", "--notify", &sheet.address(), "--", "sh", "-c", link]);
    until_settled(&home, &id);
    assert_eq!(str_of(&sheet.notices()[0]["data"], "output_tail"), " link done\n");
    assert_eq!(str_of(&home.json(&["show", &id, "--json"]), "last_line"), "link done");
}

#[test]
fn three_runs_are_three_notices() {
    let home = Home::new();
    let sheet = Sheet::new(&home, "told");
    let runs: BTreeSet<String> = (0..3)
        .map(|_| home.ok(&["run", "-d", "--notify", &sheet.address(), "--", "true"]))
        .collect();
    sheet.until(3);
    runs.iter().for_each(|id| drop(until_settled(&home, id)));
    let told = sheet.notices();
    let about: BTreeSet<String> =
        told.iter().map(|it| str_of(&it["data"], "run").to_owned()).collect();
    assert_eq!((told.len(), about), (3, runs));
}

/// A home in which a process dies at a point, and the run that is told about.
struct Story {
    home: Home,
    sheet: Sheet,
    receiver: Receiver,
}

impl Story {
    fn new(point: Option<&str>) -> Self {
        let home = Home::new();
        let (token, log) = (home.scratch().join("token"), home.scratch().join("passed"));
        let home = home.env("OUTLAST_CRASH_LOG", &log).env("OUTLAST_CRASH_TOKEN", &token);
        let home = match point {
            Some(point) => {
                fs::write(token, "").expect("the scratch directory is ours");
                home.env("OUTLAST_CRASH_AT", point)
            }
            None => home,
        };
        let sheet = Sheet::new(&home, "told");
        Self { home, sheet, receiver: Receiver::new() }
    }

    /// As a person would: whatever does not answer is asked again, and the key makes that one run.
    fn tell(&self) -> String {
        let (cmd, hook) = (self.sheet.address(), format!("webhook:{}", self.receiver.url("/")));
        let args =
            ["run", "-d", "--key", "one", "--notify", &cmd, "--notify", &hook, "--", "echo", "hi"];
        let id = until("the run is made", || {
            let output = self.home.output(&args);
            output.status.success().then(|| text(&output.stdout).trim_end().to_owned())
        });
        until("every notice is settled", || {
            // The first command that finds no daemon starts one.
            let output = self.home.output(&["show", &id, "--json"]);
            let run: Value = serde_json::from_slice(&output.stdout).ok()?;
            let is_settled = run["ended_at"].is_string() && run["notices"]["pending"] == 0;
            is_settled.then_some(())
        });
        id
    }

    fn points(&self) -> BTreeMap<String, usize> {
        let passed = fs::read_to_string(self.home.scratch().join("passed")).unwrap_or_default();
        let mut points = BTreeMap::new();
        for point in passed.lines() {
            *points.entry(point.to_owned()).or_insert(0) += 1;
        }
        points
    }
}

/// Every point that a run with sinks passes when no process dies, and how often.
pub(crate) fn points() -> BTreeMap<String, usize> {
    let story = Story::new(None);
    story.tell();
    story.points()
}

#[test]
fn a_notice_arrives_wherever_the_daemon_dies_and_its_id_is_the_same() {
    let points = points();
    for point in ["before-send", "sent", "marked"].map(|it| format!("daemon.notice-{it}")) {
        assert_eq!(points.get(&point), Some(&2), "{point} is passed for each sink");
    }
    let ours =
        ["daemon.before-append", "daemon.after-append", "daemon.before-finish", "daemon.finished"];
    let is_on_the_way = |point: &str| ours.contains(&point) || point.contains("notice");
    for (point, passes) in points.into_iter().filter(|(point, _)| is_on_the_way(point)) {
        for pass in 1..=passes {
            let when = format!("{point}@{pass}");
            let story = Story::new(Some(&when));
            let id = story.tell();
            assert!(!story.home.scratch().join("token").exists(), "{when}: no process died");
            let told: BTreeSet<String> =
                story.sheet.notices().iter().map(|it| str_of(it, "id").to_owned()).collect();
            assert_eq!(told.len(), 1, "{when}: told {told:?}");
            assert_eq!(story.receiver.ids(), Vec::from_iter(told), "{when}");
            assert!(story.receiver.told().len() <= 2, "{when}: told more than once too often");
            assert_eq!(story.home.show(&id)["notices"]["delivered"], 2, "{when}");
            assert_sound(&story.home, &when);
        }
    }
}

/// A home whose wall clock the test sets.
fn home_with_clock() -> (Home, PathBuf) {
    let home = Home::new();
    let file = home.scratch().join("clock");
    set_clock(&file, 0);
    let home = home.env("OUTLAST_FAKE_CLOCK_FILE", &file);
    (home, file)
}

fn set_clock(file: &PathBuf, offset_ms: i64) {
    let part = file.with_extension("part");
    fs::write(&part, offset_ms.to_string()).expect("the scratch directory is ours");
    fs::rename(part, file).expect("the scratch directory is ours");
}

#[test]
fn a_sink_that_was_down_for_an_hour_gets_everything_in_order() {
    let (home, clock) = home_with_clock();
    let receiver = Receiver::new();
    receiver.answers(|_, _| status(503, ""));
    let hook = format!("webhook:{}", receiver.url("/"));
    let mut runs = Vec::new();
    for n in 0..7 {
        set_clock(&clock, n * HOUR_MS / 6);
        let id = home.ok(&["run", "-d", "--notify", &hook, "--", "echo", "hi"]);
        assert_eq!(home.wait(&id), 0);
        runs.push(id);
        if n == 3 {
            home.crash_daemon();
        }
    }
    let row = until("it was tried and failed", || {
        let row = home.json(&["sink", "ls", "--json"])[0].clone();
        row["problem"].is_string().then_some(row)
    });
    assert_eq!((&row["pending"], str_of(&row, "kind")), (&7.into(), "webhook"));
    assert!(str_of(&row, "problem").contains("503"), "{row}");
    // No sink is being told anything while the clock and the sink change.
    home.crash_daemon();
    let before = receiver.told().len();
    receiver.answers(|_, _| status(204, ""));
    set_clock(&clock, 8 * HOUR_MS);
    let last = home.ok(&["run", "-d", "--notify", &hook, "--", "true"]);
    runs.push(last.clone());
    until_settled(&home, &last);
    let about: Vec<String> = receiver.told()[before..]
        .iter()
        .map(|told| str_of(&told.json()["data"], "run").to_owned())
        .collect();
    assert_eq!(about, runs);
}

#[test]
fn what_nobody_takes_for_five_days_is_given_up_and_said() {
    let (home, clock) = home_with_clock();
    let receiver = Receiver::new();
    receiver.answers(|_, told| status(if told.path == "/down" { 503 } else { 422 }, ""));
    let address = |path| format!("webhook:{}", receiver.url(path));
    let (down, picky) = (address("/down"), address("/picky"));
    let start = || {
        let id = home.ok(&["run", "-d", "--notify", &down, "--notify", &picky, "--", "true"]);
        until("both have been tried", || {
            let run = home.show(&id);
            run["notices"]["problem"].is_string().then_some(())
        });
        id
    };
    let first = start();
    receiver.until_told(2);
    let sinks_failing = || {
        let sinks = home.json(&["sink", "ls", "--json"]);
        let failing = |row: &Value| row["failing_since"].is_string();
        sinks.as_array().expect("a list").iter().filter(|row| failing(row)).count()
    };
    until("both are failing", || (sinks_failing() == 2).then_some(()));
    set_clock(&clock, 4 * 24 * HOUR_MS);
    home.crash_daemon();
    home.ok(&["daemon", "start"]);
    receiver.until_told(4);
    assert_eq!(home.show(&first)["notices"]["given_up"], 0, "four days are not five");
    set_clock(&clock, 6 * 24 * HOUR_MS);
    home.crash_daemon();
    home.ok(&["daemon", "start"]);
    let run = until_settled(&home, &first);
    assert_eq!(run["notices"]["given_up"], 2, "{run}");
    let doctor = text(&home.output(&["doctor"]).stdout);
    assert_eq!(doctor.matches("was given up and never delivered").count(), 2, "{doctor}");
}

#[test]
fn a_notice_that_is_refused_does_not_hold_up_other_runs() {
    let home = Home::new();
    let receiver = Receiver::new();
    receiver.answers(|_, told| {
        let is_poison = told.json()["data"]["name"] == "poison";
        if is_poison { status(400, "") } else { status(200, "") }
    });
    let hook = format!("webhook:{}", receiver.url("/"));
    let poison = home.ok(&["run", "-d", "--name", "poison", "--notify", &hook, "--", "true"]);
    receiver.until_told(1);
    let fine = home.ok(&["run", "-d", "--notify", &hook, "--", "true"]);
    until_settled(&home, &fine);
    let run = home.show(&poison);
    assert_eq!(run["notices"]["pending"], 1, "{run}");
    assert!(str_of(&run["notices"], "problem").contains("400"), "{run}");
}

#[test]
fn a_run_that_waits_is_woken_by_the_end_of_another_with_the_daemon_restarted_in_between() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script = r#"[ $OUTLAST_TURN = 1 ] || { say done 'heard of it'; exit; }
        answer '{"status":"continue","summary":"waiting","wait":{"message":true}}'"#;
    let parent = Loop::of(&home, script).start_with(&["--name", "boss"]);
    until_waiting(&home, &parent, "message");
    let work = format!("echo first; {}; echo the last line; exit 4", gate.pass());
    let args = ["run", "-d", "--name", "worker", "--notify", "run:boss", "--", "sh", "-c", &work];
    let child = home.ok(&args);
    home.pid(&child);
    home.crash_daemon();
    gate.open();
    home.ok(&["daemon", "start"]);
    rests(&home, &parent, "completed", "done");
    let messages = &request(&home, &parent, 2, 1)["messages"];
    let heard = str_of(&messages[0], "text");
    assert!(heard.contains("worker failed: exit 4") && heard.contains("the last line"), "{heard}");
    assert_eq!(str_of(&messages[0], "from"), format!("run {child}"));
    assert_eq!(home.count(&parent, "MessageReceived"), 1);
    until_settled(&home, &child);
}

#[test]
fn a_run_that_has_ended_cannot_be_told_and_that_is_said_at_once() {
    let home = Home::new();
    let target = home.ok(&["run", "-d", "--name", "gone", "--", "true"]);
    assert_eq!(home.wait(&target), 0);
    let id = home.ok(&["run", "-d", "--notify", "run:gone", "--", "true"]);
    let run = until_settled(&home, &id);
    assert_eq!((&run["notices"]["given_up"], &run["notices"]["delivered"]), (&1.into(), &0.into()));
    assert!(str_of(&run["notices"], "problem").contains("has ended"), "{run}");
    assert!(!text(&home.output(&["doctor"]).stdout).contains("given up"), "it is no sink's fault");
}

#[test]
fn a_sink_that_hangs_delays_neither_runs_nor_other_sinks_nor_the_daemon() {
    let home = Home::new();
    let (sheet, receiver) = (Sheet::new(&home, "told"), Receiver::new());
    receiver.answers(|_, _| String::new());
    let hook = format!("webhook:{}", receiver.url("/"));
    let mark = home.scratch().join("hung");
    let hung = format!("cmd:echo $$ > '{}'; exec sleep 600", mark.display());
    let args = ["--notify", &hook, "--notify", &hung, "--notify", &sheet.address()];
    let start = |command: &[&str]| home.ok(&[&["run", "-d"], &args[..], &["--"], command].concat());
    let first = start(&["true"]);
    receiver.until_told(1);
    let pid =
        until("the command hangs", || fs::read_to_string(&mark).ok()?.trim().parse::<u32>().ok());
    assert_eq!(home.wait(&first), 0);
    let long = start(&["sleep", "600"]);
    home.pid(&long);
    home.ok(&["stop", "--now", &long]);
    let told = sheet.until(2);
    assert_eq!(str_of(&told[1], "type"), "run.stopped");
    until("the sinks that hang are all that is left", || {
        (home.show(&long)["notices"]["pending"] == 2).then_some(())
    });
    home.ok(&["daemon", "stop"]);
    until("the hung command is gone with its daemon", || {
        (!crate::harness::is_alive(pid)).then_some(())
    });
}

#[test]
fn what_is_removed_is_still_told() {
    let home = Home::new();
    let receiver = Receiver::new();
    receiver.answers(|_, _| status(500, ""));
    let hook = format!("webhook:{}", receiver.url("/"));
    let id = home.ok(&["run", "-d", "--notify", &hook, "--", "true"]);
    receiver.until_told(1);
    until("it can be removed", || home.output(&["rm", &id]).status.success().then_some(()));
    let before = receiver.told().len();
    receiver.answers(|_, _| status(200, ""));
    home.ok(&["sink", "test", &hook]);
    until("nothing waits any more", || (home.ok(&["sink", "ls", "--json"]) == "[]").then_some(()));
    let told = receiver.told();
    assert!(told[before..].iter().any(|told| told.json()["data"]["run"] == id), "{told:?}");
}

#[test]
fn what_a_turn_says_goes_where_the_loop_file_says() {
    let home = Home::new();
    let sheet = Sheet::new(&home, "told");
    let to = format!("output: {{emit_to: [log, \"{}\"]}}", sheet.address());
    let id = Loop::of(&home, "say done 'the report'").with(&to).start();
    rests(&home, &id, "completed", "done");
    let told = sheet.until(1);
    assert_eq!(
        (str_of(&told[0], "type"), str_of(&told[0]["data"], "summary")),
        ("run.emitted", "the report")
    );
    until_settled(&home, &id);
    assert_eq!(sheet.notices().len(), 1);
}

#[test]
fn what_cannot_be_told_is_refused_before_anything_runs() {
    let home = Home::new();
    fs::write(home.path().join("config.toml"), "[sinks.phone]\nkind = \"desktop\"\n")
        .expect("ours");
    let wrong = [
        ("nosink", "there is no sink \"nosink\"", "phone, or an address"),
        ("webhook:example.org", "a URL begins with https:// or http://", "phone"),
        ("cmd: ", "a command is missing", "phone"),
        ("telex:1", "not a kind of address", "phone"),
        ("run:norun", "there is no run norun to notify", "outlast ps -a"),
    ];
    for (sink, message, hint) in wrong {
        let said = home.fails(2, &["run", "-d", "--notify", sink, "--", "true"]);
        assert!(
            said.contains(message) && said.contains("hint: ") && said.contains(hint),
            "{sink}: {said}"
        );
    }
    assert_eq!(home.ok(&["ps", "-a", "--json"]), "[]");
}

#[test]
fn secrets_of_a_sink_are_nowhere_to_be_read() {
    let home = Home::new().env("HOOK_TOKEN", "t0ps3cret-token");
    let receiver = Receiver::new();
    receiver.answers(|before, _| if before < 2 { status(500, "") } else { status(204, "") });
    let url =
        receiver.url("/t0ps3cret-path?k=t0ps3cret-query").replace("//", "//me:t0ps3cret-word@");
    let key = "whsec_dDBwczNjcmV0LWtleS10MHBzM2NyZXQta2V5";
    let config = format!(
        "[sinks.hook]\nkind = \"webhook\"\nurl = \"{url}\"\nsecret = \"{key}\"\n\
         headers = {{ X-Token = \"env:HOOK_TOKEN\" }}\n"
    );
    fs::write(home.path().join("config.toml"), config).expect("ours");
    let address = format!("webhook:{url}");
    let id = home.ok(&["run", "-d", "--notify", "hook", "--notify", &address, "--", "true"]);
    let told = receiver.until_told(2);
    assert!(
        told.iter()
            .any(|told| told.headers.get("x-token").is_some_and(|it| it == "t0ps3cret-token"))
    );
    assert!(told.iter().all(|told| told.header("authorization").starts_with("Basic ")));
    home.output(&["sink", "test", "hook"]);
    home.output(&["sink", "test", &address]);
    until_settled(&home, &id);
    let log = fs::read_to_string(home.state().join("daemon.log")).unwrap_or_default();
    let mut all = format!("{log}{}", home.ok(&["sink", "ls"]));
    for args in [
        &["show", &id, "--json"][..],
        &["show", &id],
        &["events", &id, "--json"],
        &["events", &id],
        &["sink", "ls", "--json"],
        &["doctor", "--json"],
    ] {
        let output = home.output(args);
        all += &format!("{}{}", text(&output.stdout), text(&output.stderr));
    }
    assert!(log.contains("delivery to the sink fails"), "the log says what is wrong: {log}");
    for secret in ["t0ps3cret", "dDBwczNjcmV0", "whsec_"] {
        assert!(!all.contains(secret), "{secret} in {all}");
    }
}
