//! Webhooks: what is signed is kept before it is answered, and makes one run.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::json;

use crate::harness::{Home, is_alive, kill, nap, skip, str_of, text, until};
use crate::triggered::{Http, count, made, occurrences, post, runs, trigger};

const SECRET: &str = "It's a Secret to Everybody";
const BEARER: (&str, &str) = ("Authorization", "Bearer It's a Secret to Everybody");

fn add(home: &Home, args: &[&str]) {
    let start = ["trigger", "add", "hook", "--webhook", "--secret", SECRET];
    let args: Vec<&str> = start.iter().chain(args).copied().collect();
    home.ok(&args);
}

#[test]
fn only_what_is_signed_is_taken() {
    let home = Home::new();
    add(&home, &["--", "true"]);
    let good = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
    let send = |headers: &[(&str, &str)], body: &str| {
        post(&home, "/hooks/hook", headers, body.as_bytes()).0
    };
    assert_eq!(send(&[("X-Hub-Signature-256", good)], "Hello, World!"), 202);
    assert_eq!(send(&[("X-Hub-Signature-256", good)], "Hello, World?"), 401);
    assert_eq!(send(&[("X-Hub-Signature-256", "sha256=00")], "Hello, World!"), 401);
    assert_eq!(send(&[], "Hello, World!"), 401);
    assert_eq!(send(&[("Authorization", "Bearer nonsense")], "Hello, World!"), 401);
    assert_eq!(send(&[BEARER], "by token"), 202);
    // Who asks for what is not there learns nothing but that.
    let unknown = post(&home, "/hooks/other", &[BEARER], b"x");
    assert_eq!((unknown.0, str_of(&unknown.1["error"], "code")), (404, "unknown_hook"));
    home.ok(&["schedule", "add", "clock", "--every", "1h", "--", "true"]);
    assert_eq!(post(&home, "/hooks/clock", &[BEARER], b"x"), unknown);
    assert_eq!(count(&made(&home, "hook", 2), "runs"), 2);
}

#[test]
fn a_secret_that_is_made_is_told_once() {
    let home = Home::new();
    let added = home.json(&["trigger", "add", "hook", "--webhook", "--json", "--", "true"]);
    let secret = str_of(&added, "secret");
    assert!(secret.starts_with("whsec_"));
    let bearer = format!("Bearer {secret}");
    assert_eq!(post(&home, "/hooks/hook", &[("Authorization", &bearer)], b"{}").0, 202);
    assert!(!home.ok(&["trigger", "ls", "--json"]).contains(secret));
    made(&home, "hook", 1);
    assert!(!home.show(str_of(&runs(&home, "hook")[0], "id")).to_string().contains(secret));
}

#[test]
fn what_comes_again_makes_no_second_run() {
    let home = Home::new();
    add(&home, &["--", "true"]);
    let send = || post(&home, "/hooks/hook", &[BEARER, ("X-GitHub-Delivery", "d-1")], b"{\"n\":1}");
    assert_eq!(send(), (202, json!({ "delivery": "d-1", "duplicate": false, "filtered": false })));
    assert_eq!(send(), (202, json!({ "delivery": "d-1", "duplicate": true, "filtered": false })));
    made(&home, "hook", 1);
    home.crash_daemon();
    home.ok(&["daemon", "start"]);
    assert_eq!(send().1["duplicate"], true);
    // Without a name of its own it goes by what it says.
    let nameless = || post(&home, "/hooks/hook", &[BEARER], b"{\"n\":2}").1["duplicate"].clone();
    assert_eq!((nameless(), nameless()), (false.into(), true.into()));
    made(&home, "hook", 2);
    assert_eq!(runs(&home, "hook").len(), 2);
}

/// What the example in GitHub's documentation has for this secret and this body.
const SIGNED: (&str, &str) = (
    "X-Hub-Signature-256",
    "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
);

#[test]
fn a_body_that_is_signed_by_itself_is_replayed_under_no_other_id() {
    let home = Home::new();
    add(&home, &["--", "true"]);
    let send = |id: (&str, &str)| {
        let (status, said) = post(&home, "/hooks/hook", &[SIGNED, id], b"Hello, World!");
        assert_eq!(status, 202);
        said["duplicate"].clone()
    };
    assert_eq!(send(("X-GitHub-Delivery", "d-1")), false);
    assert_eq!(send(("X-GitHub-Delivery", "d-1")), true);
    assert_eq!(send(("X-GitHub-Delivery", "d-2")), true, "the id is not signed");
    assert_eq!(send(("webhook-id", "d-3")), true);
    assert_eq!(send(("X-Other", "none at all")), true);
    home.crash_daemon();
    home.ok(&["daemon", "start"]);
    assert_eq!(send(("X-GitHub-Delivery", "d-4")), true, "also by the next daemon");
    // What is not signed by its body alone goes by its id.
    for n in ["1", "2"] {
        let by_token = [BEARER, ("X-GitHub-Delivery", n)];
        assert_eq!(post(&home, "/hooks/hook", &by_token, b"same").1["duplicate"], false);
    }
    made(&home, "hook", 3);
    assert_eq!(occurrences(&home, "hook"), ["d-1", "1", "2"]);
    let view = trigger(&home, "hook");
    assert_eq!(
        (count(&view, "skipped"), count(&view, "refused"), count(&view, "waiting")),
        (0, 0, 0)
    );
}

#[test]
fn a_sender_of_equal_bodies_can_be_let_in() {
    let home = Home::new();
    add(&home, &["--equal-bodies", "--", "true"]);
    for id in ["d-1", "d-2"] {
        let headers = [SIGNED, ("X-GitHub-Delivery", id)];
        assert_eq!(post(&home, "/hooks/hook", &headers, b"Hello, World!").1["duplicate"], false);
    }
    made(&home, "hook", 2);
}

#[test]
fn a_large_body_is_refused_before_it_is_read() {
    let home = Home::new();
    add(&home, &["--", "true"]);
    let mut http = Http::open(&home).expect("a daemon listens");
    let head = "POST /hooks/hook HTTP/1.1\r\nHost: outlast\r\nContent-Length: 10000000\r\n\r\n";
    http.stream().write_all(head.as_bytes()).expect("it is heard");
    // Not one byte of it was sent.
    assert_eq!(http.answer().expect("it answers").0, 413);
    // One that does not say how long it is is read up to the bound.
    let mut http = Http::open(&home).expect("a daemon listens");
    let head = format!(
        "POST /hooks/hook HTTP/1.1\r\nHost: outlast\r\n{}: {}\r\nTransfer-Encoding: chunked\r\n\r\n",
        BEARER.0, BEARER.1
    );
    http.stream().write_all(head.as_bytes()).expect("it is heard");
    let piece = [format!("{:x}\r\n", 1 << 16).as_bytes(), &vec![b'x'; 1 << 16], b"\r\n"].concat();
    // It may hang up on us before we have said all.
    let sent = (0..153).take_while(|_| http.stream().write_all(&piece).is_ok()).count();
    assert!(sent >= 16, "it gave up after {sent} pieces");
    assert_eq!(http.answer().map_or(413, |(status, _)| status), 413);
    let view = trigger(&home, "hook");
    assert_eq!((count(&view, "runs"), count(&view, "waiting")), (0, 0));
}

#[test]
fn a_filter_turns_away_what_nobody_wants() {
    let home = Home::new();
    add(
        &home,
        &[
            "--filter",
            "/action=opened",
            "--filter",
            "/title~^fix",
            "--task",
            "{{ item.title }}",
            "--",
            "true",
        ],
    );
    let send = |body: serde_json::Value| {
        post(&home, "/hooks/hook", &[BEARER], body.to_string().as_bytes()).1["filtered"].clone()
    };
    assert_eq!(send(json!({ "action": "opened", "title": "fix it" })), false);
    assert_eq!(send(json!({ "action": "closed", "title": "fix it" })), true);
    assert_eq!(send(json!({ "action": "opened", "title": "break it" })), true);
    assert_eq!(post(&home, "/hooks/hook", &[BEARER], b"no json").1["filtered"], true);
    let view = made(&home, "hook", 1);
    assert_eq!((count(&view, "filtered"), count(&view, "runs")), (3, 1));
    assert_eq!(str_of(&runs(&home, "hook")[0], "task"), "fix it");
    let said =
        home.fails(2, &["trigger", "add", "x", "--webhook", "--filter", "action", "--", "true"]);
    assert!(said.contains("JSON pointer") && said.contains("hint: "), "{said}");
}

#[test]
fn what_was_kept_is_made_by_the_next_daemon() {
    let home = Home::new();
    let token = home.scratch().join("token");
    let log = home.scratch().join("passed");
    let home = home
        .env("OUTLAST_CRASH_AT", "daemon.occurrence-kept")
        .env("OUTLAST_CRASH_LOG", log)
        .env("OUTLAST_CRASH_TOKEN", &token);
    add(&home, &["--", "true"]);
    std::fs::write(&token, "").expect("the scratch directory is ours");
    let mut http = Http::open(&home).expect("a daemon listens");
    // It dies once it has kept it, and before it has said so.
    assert!(http.post("/hooks/hook", &[BEARER], b"{}").is_err());
    home.ok(&["daemon", "start"]);
    made(&home, "hook", 1);
    assert_eq!(post(&home, "/hooks/hook", &[BEARER], b"{}").1["duplicate"], true);
    assert_eq!(occurrences(&home, "hook").len(), 1);
}

const BURST: usize = 1000;
const SENDERS: usize = 8;

/// Sends its share of the burst; what got no answer is sent again.
fn send_share(home: &Home, sender: usize, accepted: &AtomicUsize) {
    let mut http = None;
    for n in (sender..BURST).step_by(SENDERS) {
        let (id, body) = (format!("burst-{n}"), json!({ "n": n }).to_string());
        until("it is accepted", || {
            let open = match http.take() {
                Some(open) => Ok(open),
                None => Http::open(home),
            };
            let mut open = open.ok()?;
            let headers = [BEARER, ("X-GitHub-Delivery", id.as_str())];
            let (status, _) = open.post("/hooks/hook", &headers, body.as_bytes()).ok()?;
            http = Some(open);
            assert!(status == 202 || status == 503, "{status}");
            (status == 202).then_some(())
        });
        accepted.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn slow_a_burst_of_a_thousand_with_a_death_in_it_loses_none() {
    let home = Home::new();
    add(&home, &["--", "true"]);
    home.ok(&["trigger", "pause", "hook"]);
    let (accepted, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .map(|sender| {
                scope.spawn({
                    let (home, accepted) = (&home, &accepted);
                    move || send_share(home, sender, accepted)
                })
            })
            .collect();
        while accepted.load(Ordering::Relaxed) < BURST / 2 && !is_over.load(Ordering::Relaxed) {
            nap();
            is_over.store(
                senders.iter().all(std::thread::ScopedJoinHandle::is_finished),
                Ordering::Relaxed,
            );
        }
        let daemon = home.daemon_pid();
        kill(daemon, "KILL");
        until("the daemon is dead", || (!is_alive(daemon)).then_some(()));
        home.ok(&["daemon", "start"]);
    });
    assert_eq!(count(&trigger(&home, "hook"), "waiting"), 1000);
    home.ok(&["trigger", "resume", "hook"]);
    // Once more in the middle of making runs of them.
    made(&home, "hook", 100);
    home.crash_daemon();
    home.ok(&["daemon", "start"]);
    for hundreds in 2..=10 {
        made(&home, "hook", hundreds * 100);
    }
    let listed = home.json(&["ps", "-a", "--trigger", "hook", "--json"]);
    assert_eq!(listed.as_array().map(Vec::len), Some(BURST));
    let view = trigger(&home, "hook");
    assert_eq!(
        (count(&view, "runs"), count(&view, "waiting"), count(&view, "refused")),
        (1000, 0, 0)
    );
    let some: BTreeSet<String> = listed
        .as_array()
        .expect("a list")
        .iter()
        .step_by(50)
        .map(|run| str_of(&home.show(str_of(run, "id"))["origin"], "occurrence").to_owned())
        .collect();
    assert_eq!(some.len(), BURST / 50);
}

/// The commands below `try it`.
fn printed_delivery(said: &str) -> String {
    said.split_once("\ntry it\n").expect("it says how to try it").1.to_owned()
}

fn deliver(home: &Home, script: &str) -> serde_json::Value {
    let output = home.command("sh").args(["-c", script]).output().expect("there is a shell");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {output:?} of {script}"))
}

fn has_tools() -> bool {
    let mut look = std::process::Command::new("sh");
    look.args(["-c", "command -v curl && command -v openssl"]);
    look.output().is_ok_and(|found| found.status.success())
}

#[test]
fn the_delivery_that_add_prints_can_be_pasted() {
    if !has_tools() {
        skip("curl and openssl are not both here");
        return;
    }
    let home = Home::new();
    let add = [
        "trigger",
        "add",
        "issues",
        "--webhook",
        "--filter",
        "/action=opened",
        "--filter",
        "/label~^it's",
        "--task",
        "{{ item.issue.title }}",
        "--",
        "true",
    ];
    let said = home.output(&add);
    let (out, err) = (text(&said.stdout), text(&said.stderr));
    assert!(out.contains("http://localhost/hooks/issues\n"), "{out}");
    assert!(err.contains("nothing listens on TCP"), "{err}");
    let socket = home.path().join("run/daemon.sock");
    assert!(out.contains(&format!("--unix-socket {}", socket.display())), "{out}");
    let received = deliver(&home, &printed_delivery(&out));
    assert_eq!((&received["filtered"], &received["duplicate"]), (&false.into(), &false.into()));
    made(&home, "issues", 1);
    assert_eq!(str_of(&home.show("issues-1"), "task"), "test");
    assert_eq!(home.show("issues")["id"], home.show("issues-1")["id"]);
    // The hint makes the daemon listen; the delivery that is printed from then on goes by TCP.
    let mut lines = err.lines().skip_while(|line| !line.starts_with("hint: "));
    let hint = lines.nth(1).expect("there is a command below the hint").trim_start();
    let port = free_port();
    let hint = hint.replace("8737", &port.to_string()).replace(" && outlast doctor", "");
    assert!(home.command("sh").args(["-c", &hint]).status().expect("a shell").success());
    home.output(&["doctor"]);
    let said = until("it listens", || {
        let said = home.ok(&["trigger", "add", "issues", "--webhook", "--replace", "--", "true"]);
        said.contains(&format!("http://127.0.0.1:{port}/hooks/issues")).then_some(said)
    });
    assert!(said.contains("replaced issues") && said.contains("secret     as before"), "{said}");
    let secret = out.lines().find_map(|line| line.trim().strip_prefix("secret="));
    let secret = secret.expect("it is printed");
    let script = printed_delivery(&said).replace("secret=SECRET", &format!("secret={secret}"));
    let received = until("it is heard", || {
        let output = home.command("sh").args(["-c", &script]).output().expect("a shell");
        serde_json::from_slice::<serde_json::Value>(&output.stdout).ok()
    });
    assert_eq!(received["duplicate"], false, "{received}");
    made(&home, "issues", 2);
    assert_eq!(home.show("issues")["name"], "issues-2");
}

fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a port");
    listener.local_addr().expect("it is bound").port()
}

#[test]
fn one_bad_delivery_was_trouble_for_good() {
    let home = Home::new();
    add(&home, &["--task", "{{ item.title }}", "--", "true"]);
    let send = |id: &str, body: &[u8]| {
        assert_eq!(post(&home, "/hooks/hook", &[BEARER, ("webhook-id", id)], body).0, 202);
    };
    send("1", b"{\"no\": 1}");
    let view = until("it is refused", || {
        Some(trigger(&home, "hook")).filter(|view| count(view, "refused") == 1)
    });
    assert_eq!(str_of(&view["trouble"], "code"), "refused");
    send("2", b"{\"title\": \"good\"}");
    let view = made(&home, "hook", 1);
    assert_eq!(view["trouble"], serde_json::Value::Null, "{view}");
    assert_eq!((count(&view, "refused"), str_of(&view["refusal"], "code")), (1, "refused"));
    let said = home.ok(&["trigger", "show", "hook"]);
    assert!(said.contains("state      ok\n"), "{said}");
    assert!(said.contains("1 refused") && said.contains("the task cannot be rendered"), "{said}");
}

#[test]
fn a_webhook_had_no_way_to_be_run_by_hand() {
    let home = Home::new();
    add(&home, &["--task", "{{ item.issue.title }}", "--", "true"]);
    let said = home.fails(2, &["trigger", "run", "hook"]);
    let hint = said.lines().find_map(|line| line.strip_prefix("hint: outlast "));
    assert_eq!(hint, Some(r#"trigger run hook --item '{"issue":{"title":"test"}}'"#), "{said}");
    let file = home.scratch().join("item.json");
    std::fs::write(&file, r#"{"issue":{"title":"from a file"}}"#).expect("it is ours");
    let id = home.ok(&["trigger", "run", "hook", "--item", &format!("@{}", file.display())]);
    assert_eq!(str_of(&home.show(&id), "task"), "from a file");
    assert_eq!(home.show("hook")["id"], id.as_str(), "a trigger's name is its newest run");
    let said = home.fails(2, &["trigger", "run", "hook", "--item", "@nothing.json"]);
    assert!(said.contains("cannot read nothing.json"), "{said}");
    let said = home.fails(2, &["trigger", "run", "hook", "--item", "{"]);
    assert!(said.contains("--item is not JSON"), "{said}");
}
