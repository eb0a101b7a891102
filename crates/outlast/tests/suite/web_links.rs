//! People who are not the owner: read-only links to one run.

use serde_json::json;

use crate::harness::{Gate, Home, text, until};
use crate::health::configure;
use crate::web::{Browser, Page, asker, serve};
use crate::web_doors::curl;

/// What an address below the page's answers to this secret.
fn get(page: &Page, path: &str, secret: &str) -> (u16, String) {
    let url = format!("http://127.0.0.1:{}{path}", page.port);
    curl(&["-H", &format!("authorization: Bearer {secret}"), &url])
}

fn secret_of(link: &str) -> String {
    link.trim().rsplit('#').next().expect("a fragment").to_owned()
}

#[test]
fn a_read_only_link_shows_one_run_without_what_it_was_told_and_ends_when_it_is_revoked() {
    let home = Home::new();
    let said = home.fails(2, &["web", "shares"]);
    assert!(said.contains("outlast web is not running here"), "{said}");
    let mut gate = Gate::new(&home, "end");
    let script = format!("echo 'plain <b>output</b>'; {}", gate.pass());
    let words = ["--name", "shared", "--task", "the-private-task", "--label", "for=private-label"];
    let start = [&["run", "-d"][..], &words, &["--", "sh", "-c", &script]].concat();
    let run = home.ok(&start);
    let other = asker(&home, "the-private-question?");
    home.output(&["wait", &other, "--timeout", "60s"]);
    home.ok(&["send", &other, "the-private-message"]);
    let page = serve(&home);
    for wrong in ["0", "169"] {
        home.fails(2, &["web", "share", "shared", "--hours", wrong]);
    }
    let link = home.ok(&["web", "share", "shared"]);
    let (mine, quiet, asks) = (
        secret_of(&link),
        secret_of(&home.ok(&["web", "share", &run, "--no-output", "--hours", "168"])),
        secret_of(&home.ok(&["web", "share", &other])),
    );
    let listed = home.ok(&["web", "shares"]);
    assert_eq!(listed.matches(&run).count(), 2, "{listed}");
    assert!(listed.contains("no output") && !listed.contains(&mine), "{listed}");

    for (secret, shows) in [(&mine, true), (&quiet, false), (&asks, true)] {
        for path in ["/api/s/run", "/api/s/turns"] {
            let (status, answer) = get(&page, path, secret);
            assert_eq!(status, 200, "{answer}");
            let dir = home.scratch().display().to_string();
            for private in ["private", dir.as_str(), "\"env\"", "\"labels\"", "\"question\""] {
                assert!(!answer.contains(private), "{path} has {private}: {answer}");
            }
        }
        let (status, written) = get(&page, "/api/s/output", secret);
        assert_eq!(status, if shows { 200 } else { 403 });
        assert_eq!(written.contains("plain <b>output</b>"), *secret == mine, "{written}");
        let (status, _) = get(&page, &format!("/api/runs/{other}"), secret);
        assert_eq!(status, 403, "the owner's routes are closed");
    }

    let Some(browser) = Browser::open(&home, 360) else { return };
    browser.go(link.trim());
    let drawn = "return document.querySelector('main h1')?.textContent.includes('shared') && document.querySelector('.log')?.textContent.includes('plain <b>output</b>')";
    browser.until("the run is shown with its output", drawn);
    assert_eq!(browser.js("return location.hash + location.pathname"), "/s/");
    assert_eq!(browser.js("return document.querySelector('main').scrollWidth <= 360"), true);
    assert_eq!(
        browser.js("return document.querySelectorAll('main a[href^=\"/\"], textarea').length"),
        0
    );
    let shown = browser.js("return document.querySelector('main').textContent");
    assert!(!shown.as_str().expect("text").contains("private"), "{shown}");
    browser.js("location.reload()");
    browser.until("the tab keeps the link", drawn);
    gate.open();
    home.wait(&run);
    browser.until(
        "the end is shown as it comes",
        "return document.querySelector('.state')?.classList.contains('ended')",
    );
    browser.go(&format!("http://127.0.0.1:{}/runs", page.port));
    browser.until(
        "it is no session",
        "return document.querySelector('main').textContent.includes('This browser has no session')",
    );
    browser.go(&format!("http://127.0.0.1:{}/s/", page.port));
    browser.until("it is shown again", drawn);
    let ended = home.ok(&["web", "unshare", &run]);
    assert_eq!(ended.matches("revoked").count(), 2, "{ended}");
    browser.until(
        "what is revoked shows nothing",
        "return document.querySelector('main').textContent.includes('This link shows nothing')",
    );
    assert_eq!(get(&page, "/api/s/run", &mine).0, 401);
    assert_eq!(get(&page, "/api/s/run", &asks).0, 200, "other links go on");
    let said = home.fails(2, &["web", "unshare", &run]);
    assert!(said.contains("there is no read-only link"), "{said}");
    home.ok(&["web", "share", "shared"]);
    assert!(home.ok(&["web", "unshare", "shared"]).contains("revoked"), "a run has a name");
}

#[test]
fn a_person_who_signs_out_leaves_no_stream_open() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let run = home.start(&gate.pass());
    let page = serve(&home);
    let at = |path: &str| format!("http://127.0.0.1:{}{path}", page.port);
    let code = secret_of(&page.url);
    let body = json!({ "code": code.trim_start_matches("k=") }).to_string();
    let post = |path: &str, headers: &[&str], body: &str| {
        let typed = ["-H", "content-type: application/json", "-d", body];
        curl(&[&typed[..], headers, &[&at(path)]].concat())
    };
    let (status, said) = post("/api/session", &[], &body);
    assert_eq!(status, 200, "{said}");
    let said: serde_json::Value = serde_json::from_str(&said).expect("it is JSON");
    let bearer = format!("authorization: Bearer {}", said["secret"].as_str().expect("a secret"));
    let stream = |path: &str| {
        let mut curl = std::process::Command::new("curl");
        curl.args(["--silent", "--no-buffer", "--noproxy", "*", "--max-time", "60"]);
        curl.args(["-H", &bearer, &at(path)]).stdout(std::process::Stdio::piped());
        let mut curl = curl.spawn().expect("there is a curl");
        let mut first = [0];
        let out = curl.stdout.as_mut().expect("it has an output");
        std::io::Read::read_exact(out, &mut first).expect("the stream has begun");
        curl
    };
    let streams = [stream("/api/live"), stream(&format!("/api/runs/{run}/output?follow=true"))];
    assert_eq!(post("/api/session/end", &["-H", &bearer], "{}").0, 200);
    for curl in streams {
        let ended = curl.wait_with_output().expect("it ends");
        assert!(ended.status.success(), "it went on until its time was over: {}", ended.status);
    }
    gate.open();
    home.wait(&run);
}

#[test]
fn a_run_gets_no_read_only_link() {
    let home = Home::new();
    let _page = serve(&home);
    let outlast = env!("CARGO_BIN_EXE_outlast");
    let run = home.start(&format!("{outlast} web share @last; {outlast} web shares; true"));
    home.wait(&run);
    let said = home.output(&["logs", &run]);
    let said = format!("{}{}", text(&said.stdout), text(&said.stderr));
    assert_eq!(said.matches("only a person gets a link").count(), 2, "{said}");
    assert!(!said.contains("/s/#"), "{said}");
}

#[test]
fn a_person_whom_the_proxy_names_gets_in_without_a_link_and_stands_in_the_journal() {
    let home = Home::new();
    let file = home.scratch().join("proxy-secret");
    std::fs::write(&file, "correct-horse-battery\n").expect("the test's directory is ours");
    let mode = |mode| {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(&file, mode).expect("the file is ours");
    };
    mode(0o644);
    let proxy = "[web.proxy]\nuser_header = \"Remote-User\"\n";
    configure(&home, proxy);
    let said = home.fails(2, &["web", "--port", "0"]);
    assert!(said.contains("need each other"), "{said}");
    let secret =
        format!("secret_header = \"X-Proxy-Secret\"\nsecret_file = \"{}\"\n", file.display());
    let roles = "[web.roles]\noperator = [\"otto\"]\nviewer = [\"*\"]\n";
    configure(&home, &format!("{proxy}{secret}{roles}"));
    home.ok(&["config", "check"]);
    let said = home.fails(2, &["web", "--port", "0"]);
    assert!(said.contains("other users may read it"), "{said}");
    mode(0o600);
    let run = asker(&home, "left or right?");
    home.output(&["wait", &run, "--timeout", "60s"]);
    let page = serve(&home);
    let Some(browser) = Browser::open(&home, 1280) else { return };
    let there = format!("http://127.0.0.1:{}/runs/{run}", page.port);
    // The browser's own headers stand for those of the proxy.
    let named = |name: &str, secret: &str| {
        let headers = json!({ "Remote-User": name, "X-Proxy-Secret": secret });
        browser.call("/goog/cdp/execute", &json!({ "cmd": "Network.enable", "params": {} }));
        let order =
            json!({ "cmd": "Network.setExtraHTTPHeaders", "params": { "headers": headers } });
        browser.call("/goog/cdp/execute", &order);
        browser.go(&there);
    };
    named("otto", "wrong-horse-battery");
    browser.until(
        "a name alone opens nothing",
        "return document.querySelector('main').textContent.includes('This browser has no session')",
    );
    named("vera", "correct-horse-battery");
    let asked = "return !!document.querySelector('.card textarea')";
    browser.until("a viewer sees the question", asked);
    browser.keys(".card textarea", "left");
    browser.js("[...document.querySelectorAll('.card button')].find(it => it.textContent === 'Send').click()");
    browser.until(
        "a viewer may not answer",
        "return document.querySelector('main').textContent.includes('it needs the role operator')",
    );
    assert_eq!(home.count(&run, "Answered"), 0);
    // Another name is another person, whatever this browser kept.
    named("otto", "correct-horse-battery");
    browser.until("the operator sees the question", asked);
    browser.keys(".card textarea", "right");
    browser.js("[...document.querySelectorAll('.card button')].find(it => it.textContent === 'Send').click()");
    // A blocked run is waited for no longer, so the answer comes first.
    until("the answer is in the journal", || (home.count(&run, "Answered") == 1).then_some(()));
    assert_eq!(home.wait(&run), 0);
    let events = home.events(&run);
    let answered = events.iter().find(|it| it["kind"] == "Answered").expect("it was answered");
    assert_eq!(answered["by"]["via"], "web:otto");
}
