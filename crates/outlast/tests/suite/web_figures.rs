//! The figures of the page: `cargo xtask bench --web` runs this with a release build and prints its rows.
//!
//! Ignored by default: it asserts nothing, since a machine that is busy is no fault of the page.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::harness::{Home, str_of, until};
use crate::web::{Browser, Page, serve};

const RUNS: usize = 10_000;
const CHANGES_FOR: Duration = Duration::from_secs(10);
/// Runs that change; the others are in the list beside them.
const CHANGED: usize = 400;
/// So many orders are under way at a time, so that the daemon can commit them together.
const CHANGERS: usize = 40;
/// Between two changes by one changer: all together make 1,000 a second.
const PACE: Duration = Duration::from_millis(40);
const TABS: usize = 8;
const HIDDEN_FOR: Duration = Duration::from_secs(10);

/// Notes, in each document, when the first row and the first line came, and the longest task.
const PROBE: &str = "window.probe = { row: 0, line: 0, longest: 0 }; new MutationObserver(() => { if (!probe.row && document.querySelector('a.row')) probe.row = performance.now(); if (!probe.line && document.querySelector('.log .line')) probe.line = performance.now(); }).observe(document, { childList: true, subtree: true }); new PerformanceObserver((list) => { for (const it of list.getEntries()) probe.longest = Math.max(probe.longest, it.duration); }).observe({ type: 'longtask', buffered: true });";

#[expect(clippy::print_stdout, reason = "`xtask bench --web` shows these lines")]
fn row(name: &str, found: impl std::fmt::Display, most: &str) {
    println!("{name:<44} {found:>12}   at most {most}");
}

/// One request to the daemon on a connection that is kept.
struct Caller(BufReader<UnixStream>);

impl Caller {
    fn new(home: &Home) -> Self {
        let stream = UnixStream::connect(home.path().join("run/daemon.sock"));
        Self(BufReader::new(stream.expect("the daemon listens")))
    }

    fn post(&mut self, path: &str, body: &Value) -> Value {
        let body = body.to_string();
        let length = body.len();
        write!(self.0.get_mut(), "POST {path} HTTP/1.1\r\nhost: outlast\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}").expect("it listens");
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).expect("it answers");
            let line = line.trim().to_ascii_lowercase();
            if let Some(told) = line.strip_prefix("content-length:") {
                length = told.trim().parse().expect("a length");
            }
            if line.is_empty() {
                break;
            }
        }
        let mut answer = vec![0; length];
        self.0.read_exact(&mut answer).expect("it answers");
        serde_json::from_slice(&answer).unwrap_or_default()
    }
}

fn probed(browser: &Browser) {
    let order =
        json!({ "cmd": "Page.addScriptToEvaluateOnNewDocument", "params": { "source": PROBE } });
    browser.call("/goog/cdp/execute", &order);
}

fn ms(value: &Value) -> String {
    format!("{:.0} ms", value.as_f64().unwrap_or(-1.0))
}

fn at(page: &Page, path: &str) -> String {
    format!("http://127.0.0.1:{}{path}", page.port)
}

/// Memory of a process in KiB, as the kernel says.
fn rss_kib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

/// Connections to the page that browsers hold.
fn connections(page: &Page) -> usize {
    let table = std::fs::read_to_string("/proc/net/tcp").expect("a table of connections");
    let port = format!(":{:04X}", page.port);
    let is_ours = |line: &&str| {
        let mut words = line.split_whitespace().skip(1);
        words.next().is_some_and(|local| local.ends_with(&port)) && words.nth(1) == Some("01")
    };
    table.lines().filter(is_ours).count()
}

fn make_runs(home: &Home) -> Vec<String> {
    let one = |caller: &mut Caller, number: usize| {
        let order = json!({ "name": format!("run-{number}"), "command": ["true"], "dir": "/", "start": { "delay_ms": 86_400_000 }, "labels": { "team": format!("t{}", number % 7) } });
        str_of(&caller.post("/v1/runs", &order), "id").to_owned()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|thread| {
                scope.spawn(move || {
                    let mut caller = Caller::new(home);
                    (0..RUNS / 8)
                        .map(|at| one(&mut caller, thread * RUNS / 8 + at))
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|it| it.join().expect("runs are made")).collect()
    })
}

#[test]
#[ignore = "figures, for `cargo xtask bench --web`"]
fn ten_thousand_runs() {
    let home = Home::new();
    let Some(browser) = Browser::open(&home, 1280) else { return };
    home.ok(&["daemon", "start"]);
    let ids = make_runs(&home);
    let page = serve(&home);
    row(
        "web: memory of `outlast web`, idle",
        format!("{} KiB", rss_kib(page.web.0.id())),
        "10240 KiB",
    );
    probed(&browser);
    browser.go(&page.url);
    browser.until(
        "it is live",
        "return document.querySelector('.status')?.textContent.includes('live')",
    );
    let wire = browser.js("const all = [...performance.getEntriesByType('resource').filter(it => it.name.includes('/ui/')), ...performance.getEntriesByType('navigation')]; return all.reduce((sum, it) => sum + it.transferSize, 0)");
    row("web: first load over the wire", format!("{wire} bytes"), "61440 bytes");
    browser.go(&at(&page, "/runs"));
    browser.until(
        "it is live",
        "return document.querySelector('.status').textContent.includes('live')",
    );
    row("web: first row of 10,000 runs", ms(&browser.js("return probe.row")), "500 ms");
    let nodes = browser.js("return document.querySelectorAll('*').length");
    row("web: elements of the page, 10,000 runs", nodes, "1500");
    browser.js("probe.longest = 0; return true");
    let (is_over, given) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..CHANGERS {
            let (home, ids, is_over, given) = (&home, &ids, &is_over, &given);
            scope.spawn(move || change(home, &ids[thread * CHANGED / CHANGERS..], is_over, given));
        }
        // The daemon wakes each run once, which is no part of what is measured.
        until("each has changed", || {
            (given.load(Ordering::Relaxed) >= CHANGED as u64).then_some(())
        });
        browser.js("probe.longest = 0; return true");
        let before = given.load(Ordering::Relaxed);
        let began = Instant::now();
        let mut slowest = Duration::ZERO;
        while began.elapsed() < CHANGES_FOR {
            let asked = Instant::now();
            browser.js(
                "scrollTo(0, Math.random() * document.scrollingElement.scrollHeight); return true",
            );
            slowest = slowest.max(asked.elapsed());
            std::thread::sleep(Duration::from_millis(100));
        }
        is_over.store(true, Ordering::Relaxed);
        let rate = (given.load(Ordering::Relaxed) - before) / CHANGES_FOR.as_secs();
        row("web: changes a second, of 1,000 that are given", rate, "-");
        row("web: longest task meanwhile", ms(&browser.js("return probe.longest")), "200 ms");
        row(
            "web: slowest answer of the page meanwhile",
            format!("{} ms", slowest.as_millis()),
            "-",
        );
    });
    let most = browser.js("return document.querySelectorAll('*').length");
    row("web: elements after scrolling", most, "1500");
    row(
        "web: memory of `outlast web`, one page",
        format!("{} KiB", rss_kib(page.web.0.id())),
        "24576 KiB",
    );
    tabs(&home, &browser, &page);
}

/// Pauses and resumes runs at its pace, and goes on as fast as it can if the daemon is slower.
fn change(home: &Home, ids: &[String], is_over: &AtomicBool, given: &AtomicU64) {
    let mut caller = Caller::new(home);
    let began = Instant::now();
    let mine = &ids[..CHANGED / CHANGERS];
    for (number, id) in (0..).zip(mine.iter().cycle()) {
        std::thread::sleep((PACE * number).saturating_sub(began.elapsed()));
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let is_odd = usize::try_from(number).is_ok_and(|it| !(it / mine.len()).is_multiple_of(2));
        let verb = if is_odd { "resume" } else { "pause" };
        caller.post(&format!("/v1/runs/{id}/{verb}"), &json!({}));
        given.fetch_add(1, Ordering::Relaxed);
    }
}

/// Eight tabs, opened as fast as can be; each shows what is new once it is looked at, and a hidden one holds nothing.
fn tabs(home: &Home, browser: &Browser, page: &Page) {
    let is_live = "return document.querySelector('.status')?.textContent.includes('live')";
    let mut handles = vec![browser.window()];
    let mut slowest = Duration::ZERO;
    for _ in 1..TABS {
        let made = browser.call("/window/new", &json!({ "type": "tab" }));
        handles.push(str_of(&made, "handle").to_owned());
        browser.call("/window", &json!({ "handle": str_of(&made, "handle") }));
        let began = Instant::now();
        browser.go(&at(page, "/runs"));
        browser.until("it is live", is_live);
        slowest = slowest.max(began.elapsed());
    }
    row("web: slowest of 8 tabs to be live", format!("{} ms", slowest.as_millis()), "5000 ms");
    let new = home.ok(&["run", "-d", "--name", "news", "--", "true"]);
    home.wait(&new);
    let shows = format!(
        "return !!document.querySelector('a.row[data-key=\"{new}\"]') && document.querySelector('.status').textContent.includes('live')"
    );
    let (mut live, mut slowest) = (0, Duration::ZERO);
    for handle in &handles {
        browser.call("/window", &json!({ "handle": handle }));
        browser.js("location.search = '?q=news'; return true");
        let began = Instant::now();
        browser.until("it shows the new run", &shows);
        slowest = slowest.max(began.elapsed());
        live += 1;
    }
    row("web: tabs of 8 that show a new run", live, "8, no fewer");
    row(
        "web: the slowest of them, once looked at",
        format!("{} ms", slowest.as_millis()),
        "5000 ms",
    );
    let made = browser.call("/window/new", &json!({ "type": "tab" }));
    browser.call("/window", &json!({ "handle": str_of(&made, "handle") }));
    let began = Instant::now();
    until("hidden tabs hold no connection", || {
        (connections(page) == 0 || began.elapsed() > Duration::from_secs(50)).then_some(())
    });
    row("web: connections of 8 hidden tabs", connections(page), "0");
    row("web: after", format!("{} s", began.elapsed().as_secs()), "35 s");
    let before = switches(page.web.0.id());
    std::thread::sleep(HIDDEN_FOR);
    let woken = switches(page.web.0.id()) - before;
    row("web: wakeups of `outlast web` in 10 s then", woken, "0");
}

/// How often the threads of a process went to sleep and were woken.
fn switches(pid: u32) -> u64 {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it lives");
    let of = |thread: std::fs::DirEntry| {
        let status = std::fs::read_to_string(thread.path().join("status")).ok()?;
        let line = status.lines().find_map(|it| it.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse::<u64>().ok()
    };
    threads.flatten().filter_map(of).sum()
}

#[test]
#[ignore = "figures, for `cargo xtask bench --web`"]
fn a_gibibyte_of_output() {
    let home = Home::new();
    let Some(browser) = Browser::open(&home, 1280) else { return };
    let run = home.start("yes 'a line of output that is sixty-four bytes long, with its newline' | head -c 1073741824; echo; echo the end");
    let began = Instant::now();
    until("it has ended", || {
        let is_over = !home.show(&run)["ended_at"].is_null();
        (is_over || began.elapsed() > Duration::from_secs(55)).then_some(())
    });
    let size = home.show(&run)["output_bytes"].as_u64().unwrap_or(0);
    row("web: bytes of output", size, "-");
    let page = serve(&home);
    probed(&browser);
    browser.go(&page.url);
    browser.until(
        "it is live",
        "return document.querySelector('.status')?.textContent.includes('live')",
    );
    browser.go(&at(&page, &format!("/runs/{run}")));
    browser.until(
        "its end",
        "return [...document.querySelectorAll('.log .line')].pop()?.textContent === 'the end'",
    );
    row("web: last line of 1 GiB", ms(&browser.js("return probe.line")), "400 ms");
    let jump = |offset: u64| {
        let script = format!(
            "const done = arguments[arguments.length - 1]; for (const it of document.querySelectorAll('.aim')) it.classList.remove('aim'); const began = performance.now(); const look = () => {{ if (document.querySelector('.line.aim, .log .notice')) done(performance.now() - began); else setTimeout(look, 2); }}; location.hash = 'at=t1.a1:{offset}'; look();"
        );
        let took = browser.call("/execute/async", &json!({ "script": script, "args": [] }));
        took.as_f64().unwrap_or(-1.0)
    };
    let mut took: Vec<f64> = (1..40_u64).map(|at| jump(size / 40 * at + at)).collect();
    took.sort_by(f64::total_cmp);
    row(
        "web: any byte of it, the slowest of 39",
        format!("{:.0} ms", took[took.len() - 1]),
        "300 ms",
    );
    for _ in 0..20 {
        jump(0);
        jump(size.saturating_sub(65_536));
    }
    browser
        .call("/goog/cdp/execute", &json!({ "cmd": "HeapProfiler.collectGarbage", "params": {} }));
    let heap =
        browser.call("/goog/cdp/execute", &json!({ "cmd": "Runtime.getHeapUsage", "params": {} }));
    let mib = heap["usedSize"].as_f64().unwrap_or(-1.0) / 1_048_576.0;
    row("web: heap after end and start 20 times", format!("{mib:.1} MiB"), "150 MB");
}
