//! What an operator relies on without looking: a log that stays readable, a doctor that tells the truth without a
//! daemon, a bundle with nothing private in it, and a sign of life that stops with the life.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};

use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::harness::{Home, PATIENCE, str_of, text, until};
use crate::hosted::{becomes, configure, file, put, start};
use crate::metrics::findings;

const OLD_LINE: &str = "2026-11-15T00:00:00.000000Z  INFO an old line\n";

/// A log that an older version has left, almost full.
fn old_log(home: &Home, bytes: usize) -> PathBuf {
    let path = home.state().join("daemon.log");
    fs::create_dir_all(home.state()).expect("the home is ours");
    fs::set_permissions(home.state(), PermissionsExt::from_mode(0o700)).expect("it is ours");
    put(&path, &OLD_LINE.repeat(bytes / OLD_LINE.len()));
    path
}

#[test]
fn the_log_is_json_and_turns_over_without_losing_a_line() {
    let home = Home::new();
    configure(&home, "[log]\nmax_mb = 1\nkeep = 3\n");
    let path = old_log(&home, 1 << 20);
    let mut followed = home.spawn(&["daemon", "logs", "-f", "--level", "info"]);
    let mut lines = BufReader::new(followed.0.stdout.take().expect("it is piped")).lines();
    // It is in the middle of the file that is about to become an older one.
    let first = lines.next().expect("a line").expect("text");
    assert_eq!(first, OLD_LINE.trim_end());
    home.ok(&["daemon", "start"]);
    let ready = lines.map(|line| line.expect("text")).find(|line| line.contains(" INFO ready "));
    assert!(ready.is_some(), "the line after the turn is not followed");
    drop(followed);
    let older = path.with_extension("log.1");
    let lines = |path: &Path| fs::read_to_string(path).expect("it is there").lines().count();
    assert_eq!(lines(&older), (1 << 20) / OLD_LINE.len(), "a line was lost or torn");
    let mode = fs::metadata(&path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    for line in fs::read_to_string(&path).expect("it is there").lines() {
        let line: Value = serde_json::from_str(line).expect("a line is an object");
        for key in ["at", "level", "message"] {
            assert!(line[key].is_string(), "{line}");
        }
    }
    // Both files are one log, also for a person who asks for JSON.
    let all = home.ok(&["daemon", "logs", "--json"]);
    assert_eq!(all.lines().count(), lines(&older) + lines(&path));
    assert!(all.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    assert_eq!(home.ok(&["daemon", "logs", "--tail", "2"]).lines().count(), 2);
    assert!(!home.ok(&["daemon", "logs", "--since", "1h"]).contains("an old line"));
    assert_eq!(home.ok(&["daemon", "logs", "--level", "error"]), "");
    // The next daemon goes on where this one was.
    let before = lines(&path);
    home.crash_daemon();
    home.ok(&["daemon", "start"]);
    assert!(lines(&path) > before && lines(&older) == (1 << 20) / OLD_LINE.len());
}

#[test]
fn last_words_on_standard_error_are_found_in_the_current_file() {
    let home = Home::new();
    configure(&home, "[log]\nmax_mb = 1\n");
    let path = old_log(&home, (1 << 20) - 10);
    home.ok(&["daemon", "start"]);
    let pid = home.daemon_pid();
    let inode = |path: &Path| {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(path).map(|metadata| metadata.ino()).expect("it is there")
    };
    assert!(path.with_extension("log.1").exists(), "it was not turned over");
    for descriptor in [1, 2] {
        let target = PathBuf::from(format!("/proc/{pid}/fd/{descriptor}"));
        assert_eq!(inode(&target), inode(&path), "descriptor {descriptor} is of an older file");
    }
}

#[test]
fn without_a_log_there_is_a_word() {
    let home = Home::new();
    assert!(home.fails(2, &["daemon", "logs"]).contains("there is no log"));
}

#[test]
fn doctor_says_since_when_there_has_been_no_daemon() {
    let home = Home::new().env("OUTLAST_NO_AUTOSTART", "1");
    assert!(str_of(&findings(&home, "daemon")[0], "message").contains("not running"));
    home.ok(&["daemon", "start"]);
    let found = findings(&home, "daemon");
    assert!(
        str_of(&found[0], "message").contains(&format!("pid {}", home.daemon_pid())),
        "{found:?}"
    );
    home.ok(&["daemon", "stop"]);
    let found = findings(&home, "daemon");
    assert!(str_of(&found[0], "message").contains("it was stopped"), "{found:?}");
    assert_eq!(str_of(&found[0], "level"), "ok");
    home.ok(&["daemon", "start"]);
    home.crash_daemon();
    let found = findings(&home, "daemon");
    assert!(str_of(&found[0], "message").contains("last sign of life"), "{found:?}");
    assert_eq!(str_of(&found[0], "level"), "warning");
    home.ok(&["doctor"]);
    // What is wrong with the config is found without a daemon, too.
    configure(&home, "[ceilings]\nmax_turns = \"few\"\n");
    let found = findings(&home, "config");
    assert_eq!((found.len(), str_of(&found[0], "level")), (1, "problem"), "{found:?}");
    assert_eq!(home.output(&["doctor"]).status.code(), Some(1));
}

#[test]
fn doctor_brings_up_a_run_that_has_waited_for_a_person_for_a_week() {
    let scratch = tempfile::tempdir().expect("a directory");
    let clock = scratch.path().join("clock");
    put(&clock, "0");
    let home = Home::new().env("OUTLAST_FAKE_CLOCK_FILE", clock.clone());
    let loop_file = file(&home, "asks", "say blocked 'which one'", "");
    let id = start(&home, &loop_file, &[]);
    becomes(&home, &id, "blocked", "agent_blocked");
    assert_eq!(findings(&home, "run"), Vec::<Value>::new());
    put(&clock, &(8 * 24 * 60 * 60 * 1000_i64).to_string());
    let found = findings(&home, "run");
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(str_of(&found[0], "message").contains(&id), "{found:?}");
    assert!(str_of(&found[0], "message").contains("8 days"), "{found:?}");
    // And the clock set back again is no secret either.
    let set_back = format!("{} -3600000", 8 * 24 * 60 * 60 * 1000_i64);
    put(&clock, &set_back);
    let found = findings(&home, "clock");
    assert_eq!(found.len(), 1, "{found:?}");
}

/// Nothing that a person would write by chance, and all of it letters that our own words are made of.
const SECRET: &str = "zx9secretq";

/// Everything in a bundle, by name.
fn unpack(path: &Path) -> Vec<(String, String)> {
    let file = File::open(path).expect("it was written");
    let mut archive = tar::Archive::new(GzDecoder::new(file));
    let entries = archive.entries().expect("it is an archive");
    entries
        .map(|entry| {
            let mut entry = entry.expect("it is whole");
            let name = entry.path().expect("a name").display().to_string();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).expect("it is whole");
            (name, text(&bytes))
        })
        .collect()
}

#[test]
fn a_bundle_has_what_helps_and_nothing_that_is_private() {
    let home = Home::named(&format!("dir-{SECRET}")).env("API_KEY", SECRET);
    let config = format!(
        "[listen]\ntoken = \"{SECRET}\"\naddress = \"127.0.0.1:0\"\n[ping]\nurl = \"http://u:{SECRET}@127.0.0.1:1/{SECRET}\"\n\
         [sinks.{SECRET}]\nkind = \"cmd\"\ncommand = \"echo {SECRET} >&2; false {SECRET}\"\n[retention]\n{SECRET} = \"{SECRET}\"\n\
         [concurrency.per_label]\n\"team={SECRET}\" = 3\n[env]\nallow = [\"*\"]\n[{SECRET}]\n{SECRET} = 471108150711\n[ceilings]\nmax_turns = 7\n"
    );
    configure(&home, &config);
    let agent = format!(
        "echo {SECRET}; echo {SECRET} >&2; case $OUTLAST_TURN in\n\
         1) respond '{{\"status\":\"continue\",\"summary\":\"{SECRET}\",\"next_task\":\"{SECRET}\",\"tool_calls\":[{{\"name\":\"t{SECRET}\",\"input\":{{\"{SECRET}\":471108150711}},\"key\":\"{SECRET}\"}}]}}';;\n\
         *) say blocked {SECRET};; esac"
    );
    let tool =
        format!("tools: [{{name: t{SECRET}, command: [sh, -c, 'echo {SECRET}'], class: keyed}}]");
    let loop_file = file(&home, &format!("loop-{SECRET}"), &agent, &tool);
    let label = format!("team={SECRET}");
    let name = format!("n{SECRET}");
    let flags = [
        "--task",
        SECRET,
        "--label",
        &label,
        "--name",
        &name,
        "--key",
        SECRET,
        "--env",
        &format!("TOKEN={SECRET}"),
        "--notify",
        SECRET,
        "--notify",
        &format!("webhook:http://u:{SECRET}@127.0.0.1:1/{SECRET}"),
        "--watch",
        SECRET,
    ];
    let blocked = start(&home, &loop_file, &flags);
    becomes(&home, &blocked, "blocked", "agent_blocked");
    home.ok(&["send", &blocked, SECRET]);
    let failed =
        home.ok(&["run", "-d", "--", "sh", "-c", &format!("echo {SECRET}; exit 3"), SECRET]);
    assert_eq!(home.wait(&failed), 1);
    let schedule = ["schedule", "add", SECRET, "--every", "1h", "--task", SECRET, "--", SECRET];
    home.ok(&schedule);
    // What another program wrote, quotes and all: a poll, a loop file that has come to be wrong.
    let poll = format!("printf '{SECRET} \"{SECRET}\" \\140{SECRET}\\n' >&2; exit 3");
    home.ok(&["trigger", "add", "polled", "--poll", &poll, "--every", "1h", "--", "true"]);
    let folder = home.scratch().join("folder");
    fs::create_dir(&folder).expect("the scratch directory is ours");
    let from = folder.display().to_string();
    home.ok(&["trigger", "add", "loop", "--folder", &from, "-f", &loop_file, "--task", SECRET]);
    let broken = format!("---\nagent: {{command: x}}\n---\n{{{{ {SECRET} }}}}\n");
    fs::write(&loop_file, broken).expect("it is ours");
    fs::write(folder.join("item"), SECRET).expect("it is ours");
    until("both are in trouble", || {
        let all = home.json(&["trigger", "ls", "--json"]);
        let codes: Vec<&str> = all
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|it| it["trouble"]["code"].as_str())
            .collect();
        (codes.contains(&"poll_failed") && codes.contains(&"workflow_broken")).then_some(())
    });
    let missing = home.ok(&["run", "-d", "--", &format!("./{SECRET}/tool")]);
    assert_eq!(home.wait(&missing), 1);
    // A config that is wrong is quoted in findings and in the log.
    configure(&home, &format!("{config}max_attempts = \"{SECRET}\"\n"));
    let bundle = home.scratch().join("report.tar.gz");
    let path = bundle.display().to_string();
    let said = home.output(&["doctor", "--bundle", &path]);
    assert_eq!(said.status.code(), Some(1), "the config is wrong: {}", text(&said.stdout));
    assert!(text(&said.stderr).contains("nothing was sent anywhere"), "{}", text(&said.stderr));
    assert_eq!(fs::metadata(&bundle).expect("it is there").permissions().mode() & 0o777, 0o600);
    let files = unpack(&bundle);
    for (name, content) in &files {
        let line = content.lines().find(|line| line.contains(SECRET));
        assert_eq!(line, None, "in {name}");
        assert!(!content.contains("471108150711"), "in {name}: {content}");
    }
    let of = |name: &str| {
        let found = files.iter().find(|(known, _)| known == &format!("outlast-report/{name}"));
        &found.unwrap_or_else(|| panic!("no {name} in {:?}", names(&files))).1
    };
    let json = |name: &str| serde_json::from_str::<Value>(of(name)).expect("it is JSON");
    assert_eq!(json("config.json")["config"]["ceilings"]["max_turns"], 7);
    assert_eq!(json("doctor.json")["healthy"], json!(false));
    assert_eq!(json("version.json")["daemon"]["pid"], home.daemon_pid());
    assert!(json("system.json")["kernel"].is_string());
    assert!(of("daemon.log").contains("poll_failed"), "codes stay: {}", of("daemon.log"));
    assert!(of("daemon.log").contains("config refused"), "{}", of("daemon.log"));
    assert!(of("runs.jsonl").contains(&failed) && of("runs.jsonl").contains("agent_blocked"));
    let events = of(&format!("events/{failed}.jsonl"));
    assert!(
        events.contains("\"AttemptEnded\"") && events.contains("\"program\":\"sh\""),
        "{events}"
    );
    // It is not written over, and names are in it if that is asked for.
    assert!(home.fails(2, &["doctor", "--bundle", &path]).contains("exists already"));
    let named = home.scratch().join("named.tar.gz").display().to_string();
    home.output(&["doctor", "--bundle", &named, "--with-names"]);
    let with_names = unpack(Path::new(&named));
    let told: Vec<_> = with_names.iter().filter(|(_, content)| content.contains(SECRET)).collect();
    assert_eq!(
        told.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
        ["outlast-report/runs.jsonl"]
    );
}

fn names(files: &[(String, String)]) -> Vec<&str> {
    files.iter().map(|(name, _)| name.as_str()).collect()
}

#[test]
fn a_bundle_can_be_had_without_a_daemon() {
    let home = Home::new().env("OUTLAST_NO_AUTOSTART", "1");
    let path = home.scratch().join("report.tar.gz");
    home.ok(&["doctor", "--bundle", &path.display().to_string()]);
    let files = unpack(&path);
    assert!(names(&files).contains(&"outlast-report/doctor.json"), "{:?}", names(&files));
}

/// A server that says what it was asked, and answers 200.
pub(crate) struct Collector {
    pub(crate) url: String,
    pub(crate) asked: Receiver<(String, Vec<u8>)>,
}

impl Collector {
    /// Answers so many requests.
    pub(crate) fn new(requests: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let (tell, asked) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().take(requests) {
                let mut stream = BufReader::new(stream.expect("a connection"));
                let mut head = String::new();
                while !head.ends_with("\r\n\r\n")
                    && stream.read_line(&mut head).is_ok_and(|it| it > 0)
                {}
                let length = head.lines().find_map(|line| {
                    let (name, value) = line.split_once(':')?;
                    name.eq_ignore_ascii_case("content-length")
                        .then(|| value.trim().parse().ok())?
                });
                let mut body = vec![0; length.unwrap_or(0)];
                stream.read_exact(&mut body).expect("the body comes");
                let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                stream.into_inner().write_all(answer).expect("they listen");
                let line = head.lines().next().unwrap_or_default().to_owned();
                if tell.send((line, body)).is_err() {
                    return;
                }
            }
        });
        Self { url, asked }
    }
}

#[test]
fn a_sign_of_life_is_sent_while_the_daemon_lives_and_only_then() {
    let collector = Collector::new(2);
    let home = Home::new();
    configure(
        &home,
        &format!("[ping]\nurl = \"{}/alive?token=x\"\nevery = \"1s\"\n", collector.url),
    );
    home.ok(&["daemon", "start"]);
    for _ in 0..2 {
        let (line, _) = collector.asked.recv_timeout(PATIENCE).expect("a ping comes");
        assert_eq!(line, "GET /alive?token=x HTTP/1.1");
    }
    // No server answers any more, and that is said, without the address.
    let found = until("the silence is noticed", || {
        findings(&home, "ping").pop().filter(|it| it["level"] == "problem")
    });
    assert!(!found.to_string().contains("token=x"), "{found}");
    configure(&home, "");
    until("pings are off", || findings(&home, "ping").is_empty().then_some(()));
}
