//! What scripts ask over HTTP: probes and metrics, on the unix socket always and over TCP on request.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;

use serde_json::Value;

use crate::harness::{Gate, Home, str_of, until};
use crate::hosted::{becomes, begin, configure, file, start};

/// What the daemon answers over its own socket: the status and the body.
pub(crate) fn get(home: &Home, path: &str) -> (u16, String) {
    let stream = UnixStream::connect(home.path().join("run/daemon.sock"));
    ask(stream.expect("a daemon listens"), path, "")
}

/// The same over TCP, with more headers.
pub(crate) fn get_tcp(address: SocketAddr, path: &str, headers: &str) -> (u16, String) {
    ask(TcpStream::connect(address).expect("the daemon listens"), path, headers)
}

fn ask(mut stream: impl Read + Write, path: &str, headers: &str) -> (u16, String) {
    write!(stream, "GET {path} HTTP/1.1\r\nHost: outlast\r\nConnection: close\r\n{headers}\r\n")
        .expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers with text");
    let status = answer.split_whitespace().nth(1).and_then(|word| word.parse().ok());
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status.expect("a status"), body.to_owned())
}

/// What `doctor` says about one subject.
pub(crate) fn findings(home: &Home, subject: &str) -> Vec<Value> {
    let report: Value =
        serde_json::from_slice(&home.output(&["doctor", "--json"]).stdout).expect("it is JSON");
    let all = report["findings"].as_array().expect("a list").clone();
    all.into_iter().filter(|it| it["subject"] == subject).collect()
}

/// Where the daemon listens, once it does.
fn listening(home: &Home) -> SocketAddr {
    until("the daemon listens", || {
        let found = findings(home, "listener");
        let message = str_of(found.first()?, "message");
        message.split_once("http://").and_then(|(_, address)| address.parse().ok())
    })
}

fn metrics(home: &Home) -> String {
    let (status, page) = get(home, "/metrics");
    assert_eq!(status, 200, "{page}");
    page
}

/// The value of a series, exactly as it is named.
fn value(page: &str, series: &str) -> Option<f64> {
    let line = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok())
}

#[test]
fn metrics_count_what_has_happened() {
    let home = Home::new();
    let usage = r#"{"input_tokens":7,"output_tokens":5,"cached_tokens":2,"cost_usd":0.25}"#;
    let agent =
        format!(r#"echo done >work; respond '{{"status":"done","summary":"x","usage":{usage}}}'"#);
    let done = begin(&home, &agent, "");
    becomes(&home, &done, "completed", "done");
    let failed = home.ok(&["run", "-d", "--", "sh", "-c", "exit 3"]);
    assert_eq!(home.wait(&failed), 1);
    let stalls = file(
        &home,
        "stalls",
        "exec sleep 600",
        "limits: {stall_window_ms: 200, max_stall_restarts: 1}",
    );
    let stalled = start(&home, &stalls, &[]);
    becomes(&home, &stalled, "blocked", "stall_restarts_exhausted");
    let page = metrics(&home);
    for (series, expected) in [
        (r#"outlast_turns_total{agent="exec",outcome="meaningful_completion"}"#, 1.0),
        (r#"outlast_turns_total{agent="exec",outcome="failed"}"#, 1.0),
        ("outlast_turn_duration_seconds_count", 1.0),
        (r#"outlast_tokens_total{agent="exec",model="unknown",type="input"}"#, 7.0),
        (r#"outlast_tokens_total{agent="exec",model="unknown",type="output"}"#, 5.0),
        (r#"outlast_tokens_total{agent="exec",model="unknown",type="cached"}"#, 2.0),
        (r#"outlast_cost_usd_total{agent="exec",model="unknown",estimated="false"}"#, 0.25),
        (r#"outlast_restarts_total{reason="stalled"}"#, 1.0),
        ("outlast_stalls_total", 2.0),
        ("outlast_limit_waits_total", 0.0),
        ("outlast_limit_wait_seconds_total", 0.0),
        ("outlast_queue_depth", 0.0),
        (r#"outlast_runs{state="completed",agent="exec"}"#, 1.0),
        (r#"outlast_runs{state="failed",agent="exec"}"#, 1.0),
        (r#"outlast_runs{state="blocked",agent="exec"}"#, 1.0),
    ] {
        assert_eq!(value(&page, series), Some(expected), "{series} in\n{page}");
    }
    assert!(page.contains("outlast_build_info{version=\""), "{page}");
    assert!(page.ends_with("# EOF\n"), "{page}");
    for id in [&done, &failed, &stalled] {
        assert!(!page.contains(id.as_str()), "a series is of one run: {page}");
    }
    // Series of runs are what is there now, also for a daemon that has counted nothing yet.
    home.crash_daemon();
    home.ok(&["daemon", "start"]);
    let page = metrics(&home);
    assert_eq!(value(&page, r#"outlast_runs{state="completed",agent="exec"}"#), Some(1.0));
    assert_eq!(value(&page, "outlast_stalls_total"), Some(0.0));
}

#[test]
fn every_family_is_one_that_is_documented() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let page = metrics(&home);
    let families: BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/operator.md");
    let documented = std::fs::read_to_string(root).expect("there is a page about it");
    for family in families {
        assert!(documented.contains(&format!("`{family}")), "{family} is not in docs/operator.md");
    }
}

#[test]
fn a_queue_that_is_waiting_has_a_depth() {
    let home = Home::new();
    configure(&home, "[concurrency]\nmax_runs = 1\n");
    let first = home.start("exec sleep 600");
    home.pid(&first);
    home.start("true");
    home.start("true");
    assert_eq!(value(&metrics(&home), "outlast_queue_depth"), Some(2.0));
    home.ok(&["stop", "--now", &first]);
    until("the queue is empty", || {
        (value(&metrics(&home), "outlast_queue_depth") == Some(0.0)).then_some(())
    });
}

#[test]
fn probes_are_answered_on_the_unix_socket_without_any_config() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    assert_eq!(get(&home, "/healthz"), (200, r#"{"status":"ok"}"#.to_owned()));
    assert_eq!(get(&home, "/readyz"), (200, r#"{"status":"ready","reasons":[]}"#.to_owned()));
    assert_eq!(findings(&home, "listener"), Vec::<Value>::new());
    assert!(tcp_listeners(home.daemon_pid()).is_empty(), "it listens without being asked to");
}

/// The inodes of the TCP sockets that a process listens on.
fn tcp_listeners(pid: u32) -> Vec<String> {
    let held: BTreeSet<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("it is ours")
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .filter_map(|target| {
            let target = target.to_string_lossy().into_owned();
            Some(target.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned())
        })
        .collect();
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let texts = tables.iter().filter_map(|table| std::fs::read_to_string(table).ok());
    let rows: Vec<String> =
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    let listens = rows.iter().filter_map(|row| {
        let words: Vec<&str> = row.split_whitespace().collect();
        (words.get(3) == Some(&"0A")).then(|| words.get(9).map(|inode| (*inode).to_owned()))?
    });
    listens.filter(|inode| held.contains(inode)).collect()
}

#[test]
fn over_tcp_there_are_probes_and_nothing_else() {
    let home = Home::new();
    configure(&home, "[listen]\naddress = \"127.0.0.1:0\"\ntoken = \"t0ken\"\n");
    let id = home.start("exec sleep 600");
    home.pid(&id);
    let address = listening(&home);
    assert_eq!(get_tcp(address, "/healthz", "").0, 200);
    assert_eq!(get_tcp(address, "/readyz", "").0, 200);
    let (status, body) = get_tcp(address, "/metrics", "");
    assert_eq!(status, 401, "{body}");
    assert!(!body.contains("outlast_runs"), "{body}");
    assert_eq!(get_tcp(address, "/metrics", "Authorization: Bearer wrong\r\n").0, 401);
    let (status, body) = get_tcp(address, "/metrics", "Authorization: Bearer t0ken\r\n");
    assert!(status == 200 && body.contains("outlast_runs{"), "{body}");
    for path in ["/v1/runs", "/v1/daemon", "/v1/openapi.json", "/v1/doctor", "/", "/v1/../metrics"]
    {
        assert_eq!(get_tcp(address, path, "Authorization: Bearer t0ken\r\n").0, 404, "{path}");
    }
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "POST /v1/daemon/stop HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
        .expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers and closes");
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    assert_eq!(home.show(&id)["state"], "running");
}

#[test]
fn what_says_nothing_on_a_connection_does_not_keep_others_from_theirs() {
    let home = Home::new();
    configure(&home, "[listen]\naddress = \"127.0.0.1:0\"\n");
    home.ok(&["daemon", "start"]);
    let address = listening(&home);
    let silent: Vec<TcpStream> =
        (0..40).map(|_| TcpStream::connect(address).expect("it listens")).collect();
    assert_eq!(get_tcp(address, "/healthz", "").0, 200);
    assert_eq!(silent.len(), 40);
}

#[test]
fn a_port_that_is_taken_is_said_and_tried_again() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = taken.local_addr().expect("it is bound");
    configure(&home, &format!("[listen]\naddress = \"{address}\"\n"));
    home.ok(&["daemon", "start"]);
    let found = until("the port is missed", || findings(&home, "listener").pop());
    assert_eq!(str_of(&found, "level"), "problem");
    assert!(str_of(&found, "message").contains("in use"), "{found}");
    assert_eq!(home.output(&["doctor"]).status.code(), Some(1));
    // It keeps nothing else from working.
    assert_eq!(home.wait(&home.start("true")), 0);
    drop(taken);
    assert_eq!(listening(&home), address);
    assert_eq!(get_tcp(address, "/healthz", "").0, 200);
    home.ok(&["doctor"]);
}

#[test]
fn an_address_for_other_machines_is_refused_until_that_is_said() {
    let home = Home::new();
    configure(&home, "[listen]\naddress = \"0.0.0.0:0\"\n");
    home.ok(&["daemon", "start"]);
    let found = until("the address is refused", || findings(&home, "listener").pop());
    assert_eq!(str_of(&found, "level"), "problem");
    assert!(str_of(&found, "hint").contains("allow_remote"), "{found}");
    assert!(tcp_listeners(home.daemon_pid()).is_empty());
    assert_eq!(home.wait(&home.start("true")), 0);
}

#[test]
fn a_listener_follows_the_config() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    configure(&home, "[listen]\naddress = \"127.0.0.1:0\"\n");
    // A question has the config read again.
    let first = listening(&home);
    assert_eq!(get_tcp(first, "/metrics", "").0, 200);
    configure(&home, "[listen]\naddress = \"127.0.0.1:0\"\ntoken = \"t\"\n");
    until("the token is asked for", || {
        let address = listening(&home);
        let stream = TcpStream::connect(address).ok()?;
        (ask(stream, "/metrics", "").0 == 401).then_some(())
    });
    configure(&home, "");
    until("no listener is left", || findings(&home, "listener").is_empty().then_some(()));
    until("the port is closed", || tcp_listeners(home.daemon_pid()).is_empty().then_some(()));
}

/// How large the files of a process may become, from here on.
pub(crate) fn limit_files(pid: u32, bytes: Option<u64>) {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};

    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let limit = Rlimit { current: bytes, maximum: None };
    prlimit(pid, Resource::Fsize, limit).expect("it is our own process");
}

#[test]
fn a_journal_that_takes_nothing_makes_the_daemon_unready_and_nothing_more() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let id = home.start(&format!("{}; exit 3", gate.pass()));
    home.pid(&id);
    let daemon = home.daemon_pid();
    limit_files(daemon, Some(0));
    gate.open();
    let said = until("the daemon is not ready", || {
        let (status, body) = get(&home, "/readyz");
        (status == 503).then_some(body)
    });
    let said: Value = serde_json::from_str(&said).expect("it is JSON");
    assert_eq!(said["status"], "not_ready");
    let code = str_of(&said["reasons"][0], "code");
    assert!(matches!(code, "journal_unwritable" | "disk_full"), "{said}");
    assert_eq!(get(&home, "/healthz").0, 200);
    assert_eq!(get(&home, "/metrics").0, 200);
    limit_files(daemon, None);
    until("the daemon is ready again", || (get(&home, "/readyz").0 == 200).then_some(()));
    assert_eq!(home.wait(&id), 1);
    assert_eq!(home.daemon_pid(), daemon);
    // What could not be written to the log meanwhile is counted there.
    home.ok(&["daemon", "stop"]);
    let log = home.ok(&["daemon", "logs"]);
    assert!(log.contains("of this log were lost"), "{log}");
}
