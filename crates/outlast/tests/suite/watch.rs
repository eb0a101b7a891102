//! `/v1/watch`: the list of runs, and what changes in it, as a screen reads it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use serde_json::Value;

use crate::harness::{Gate, Home, PATIENCE};

pub(crate) struct Watch {
    lines: BufReader<UnixStream>,
}

impl Watch {
    pub(crate) fn open(home: &Home, query: &str) -> Self {
        let socket = home.path().join("run/daemon.sock");
        let mut stream = UnixStream::connect(socket).expect("a daemon listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("it is a socket");
        write!(stream, "GET /v1/watch{query} HTTP/1.1\r\nhost: outlast\r\n\r\n")
            .expect("it is open");
        Self { lines: BufReader::new(stream) }
    }

    /// The next piece of news.
    fn next(&mut self) -> Value {
        loop {
            let mut line = String::new();
            let count = self.lines.read_line(&mut line).expect("there is more in time");
            assert!(count > 0, "the daemon hung up");
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).expect("news are JSON");
            }
        }
    }

    /// Everything up to and with the first that is so.
    fn until(&mut self, is: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut seen = Vec::new();
        loop {
            seen.push(self.next());
            if seen.last().is_some_and(&is) {
                return seen;
            }
        }
    }

    pub(crate) fn listed(&mut self) -> Vec<Value> {
        self.until(|news| news["news"] == "listed")
    }

    pub(crate) fn row(&mut self, id: &str, is: impl Fn(&Value) -> bool) -> Value {
        let seen = self.until(|news| news["run"]["id"] == id && is(&news["run"]));
        seen.last().expect("it was just seen")["run"].clone()
    }
}

fn ids(list: &[Value]) -> Vec<&str> {
    list.iter().filter_map(|news| news["run"]["id"].as_str()).collect()
}

#[test]
fn the_list_comes_first_then_what_changes_in_it() {
    let home = Home::new();
    let ended = home.start("true");
    assert_eq!(home.wait(&ended), 0);
    let open = home.start("sleep 1000");
    home.pid(&open);
    let mut watch = Watch::open(&home, "");
    let list = watch.listed();
    assert_eq!(
        (list[0]["news"].as_str(), list[0]["pid"].as_u64()),
        (Some("hello"), Some(home.daemon_pid().into()))
    );
    assert_eq!(ids(&list), [open.as_str(), ended.as_str()]);
    assert_eq!(list.last().map(|news| &news["truncated"]), Some(&Value::Bool(false)));
    let child = home.ok(&["run", "-d", "--parent", &open, "--", "sh", "-c", "echo all is well"]);
    let row = watch.row(&child, |row| row["state"] == "completed");
    assert_eq!(
        (row["parent"].as_str(), row["last_line"].as_str()),
        (Some(open.as_str()), Some("all is well"))
    );
    home.ok(&["stop", &open]);
    watch.row(&open, |row| row["state"] == "stopped");
    home.ok(&["rm", &ended]);
    watch.until(|news| news["news"] == "gone" && news["run"] == ended.as_str());
    // A client that comes later, or again, is told the whole.
    let mut again = Watch::open(&home, "?ended=1");
    let list = again.listed();
    assert_eq!(ids(&list), [child.as_str()]);
    assert_eq!(list[1]["run"]["parent"], open.as_str(), "also of a run that has ended");
    assert_eq!(list.last().map(|news| &news["truncated"]), Some(&Value::Bool(true)));
}

#[test]
fn lines_are_told_as_they_are_written() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script = format!(
        "while {}; do n=$((n+1)); printf '\\033[1mline %s\\033[0m\\n' $n; done",
        gate.pass()
    );
    let id = home.start(&script);
    let mut watch = Watch::open(&home, "");
    watch.listed();
    for number in 1..=5 {
        gate.open();
        watch.row(&id, |row| row["last_line"] == format!("line {number}"));
    }
}

#[test]
fn a_reader_that_does_not_read_holds_nobody_up_and_is_told_only_the_last() {
    let home = Home::new();
    let id =
        home.start("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo line $i; done; sleep 1000");
    let mut slow = Watch::open(&home, "");
    let mut quick = Watch::open(&home, "");
    quick.row(&id, |row| row["last_line"] == "line 20000");
    let seen = slow.until(|news| news["run"]["last_line"] == "line 20000");
    assert!(seen.len() < 200, "a row for each of its lines: {}", seen.len());
}

#[test]
fn a_daemon_that_leaves_ends_the_stream() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let mut watch = Watch::open(&home, "");
    watch.listed();
    home.ok(&["daemon", "stop"]);
    let mut rest = String::new();
    while watch.lines.read_line(&mut rest).expect("it ends in time") > 0 {}
    assert!(!rest.contains("data:"), "{rest}");
}
