//! The page, in Debian's Chromium through chromedriver. Where there is none, the tests that need one say so.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::harness::{Background, Gate, Home, skip, str_of, text, until};

/// `outlast web`, and what it printed.
pub(crate) struct Page {
    pub(crate) web: Background,
    pub(crate) url: String,
    pub(crate) port: u64,
}

pub(crate) fn serve(home: &Home) -> Page {
    let mut web = home.spawn(&["web", "--port", "0", "--json"]);
    let mut line = String::new();
    let stdout = web.0.stdout.take().expect("it is piped");
    BufReader::new(stdout).read_line(&mut line).expect("it prints where it is");
    let said: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("it printed {line:?}"));
    let port = said["port"].as_u64().expect("a port");
    Page { web, url: str_of(&said, "url").to_owned(), port }
}

/// A browser with one window.
pub(crate) struct Browser {
    _driver: Background,
    port: u16,
    session: String,
}

impl Browser {
    /// `None` where there is no Chromium.
    pub(crate) fn open(home: &Home, width: u32) -> Option<Self> {
        let has = |name: &str| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            std::env::split_paths(&path).any(|dir| dir.join(name).is_file())
        };
        if !has("chromium") || !has("chromedriver") {
            skip("there is no chromium with a chromedriver here");
            return None;
        }
        let mut command = home.command("chromedriver");
        let child = command.arg("--port=0").stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
        let mut driver = Background(child.expect("it starts"));
        let mut said = BufReader::new(driver.0.stdout.take().expect("it is piped")).lines();
        let port = said.by_ref().map_while(Result::ok).find_map(|line| {
            line.split("successfully on port ").nth(1)?.trim_end_matches('.').parse().ok()
        });
        let port = port.expect("it says its port");
        // Read on, so that the driver never waits for a reader.
        std::thread::spawn(move || said.map_while(Result::ok).count());
        let mut browser = Self { _driver: driver, port, session: String::new() };
        let args = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            // A name that was rebound; and our doors are tried, not the browser's.
            "--host-resolver-rules=MAP evil.test 127.0.0.1",
            "--disable-features=LocalNetworkAccessChecks",
        ];
        let made = browser.ask(
            "POST",
            "/session",
            &json!({ "capabilities": { "alwaysMatch": { "goog:chromeOptions": { "args": args } } } }),
        );
        browser.session = format!("/session/{}", str_of(&made, "sessionId"));
        let size =
            json!({ "width": width, "height": 740, "deviceScaleFactor": 1, "mobile": width < 600 });
        let order = json!({ "cmd": "Emulation.setDeviceMetricsOverride", "params": size });
        browser.call("/goog/cdp/execute", &order);
        Some(browser)
    }

    pub(crate) fn call(&self, path: &str, body: &Value) -> Value {
        self.ask("POST", &format!("{}{path}", self.session), body)
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = body.to_string();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the driver listens");
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .expect("the driver reads");
        // The driver keeps its connections open, so its answer is as long as it says.
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("the driver answers");
            let line = line.trim().to_ascii_lowercase();
            if let Some(told) = line.strip_prefix("content-length:") {
                length = told.trim().parse().expect("a length");
            }
            if line.is_empty() {
                break;
            }
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer).expect("the driver answers");
        let answer = text(&answer);
        let body = answer.as_str();
        let said: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"));
        assert!(said["value"]["error"].is_null(), "{path}: {}", said["value"]);
        said["value"].clone()
    }

    pub(crate) fn go(&self, url: &str) {
        self.call("/url", &json!({ "url": url }));
    }

    /// The name of the window that is looked at.
    pub(crate) fn window(&self) -> String {
        let told = self.ask("GET", &format!("{}/window", self.session), &json!({}));
        told.as_str().expect("a name").to_owned()
    }

    pub(crate) fn js(&self, script: &str) -> Value {
        self.call("/execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Waits until a script answers with something that is true.
    pub(crate) fn until(&self, what: &str, script: &str) -> Value {
        until(what, || Some(self.js(script)).filter(|it| *it != Value::Null && *it != false))
    }

    fn element(&self, css: &str) -> String {
        let found = self.call("/element", &json!({ "using": "css selector", "value": css }));
        let (_, id) = found.as_object().and_then(|it| it.iter().next()).expect("an element");
        id.as_str().expect("its id").to_owned()
    }

    /// A tap of a finger or a mouse, where the element is on the screen.
    pub(crate) fn tap(&self, css: &str) {
        let id = self.element(css);
        self.call(&format!("/element/{id}/click"), &json!({}));
    }

    pub(crate) fn keys(&self, css: &str, keys: &str) {
        let id = self.element(css);
        self.call(&format!("/element/{id}/value"), &json!({ "text": keys }));
    }
}

/// An agent that asks once, and is done with the answer.
pub(crate) fn asker(home: &Home, question: &str) -> String {
    let script = home.scratch().join("agent.sh");
    let response = json!({ "status": "blocked", "summary": question }).to_string();
    std::fs::write(home.scratch().join("asks.json"), response)
        .expect("the test's directory is ours");
    let lines = "if [ \"$OUTLAST_TURN\" = 1 ]; then cat asks.json > \"$OUTLAST_RESPONSE_FILE\"; else \
                 printf '{\"status\":\"done\",\"summary\":\"thanks\"}' > \"$OUTLAST_RESPONSE_FILE\"; fi\n";
    std::fs::write(&script, lines).expect("the test's directory is ours");
    let script = script.display().to_string();
    home.ok(&[
        "run",
        "-d",
        "--name",
        "asker",
        "--max-turns",
        "3",
        "--task",
        question,
        "--",
        "sh",
        &script,
    ])
}

#[test]
fn only_a_person_gets_a_link_and_only_loopback_is_listened_on() {
    let home = Home::new();
    let said = home.fails(2, &["web", "url"]);
    assert!(said.contains("outlast web is not running here"), "{said}");
    let said = home.fails(2, &["web", "--listen", "0.0.0.0"]);
    assert!(said.contains("is not 127.0.0.1 or ::1") && said.contains("ssh -L"), "{said}");
    let page = serve(&home);
    let said = home.fails(2, &["web"]);
    assert!(said.contains("running here already"), "{said}");
    let link = home.ok(&["web", "url"]);
    assert!(link.starts_with(&format!("http://127.0.0.1:{}/#k=", page.port)), "{link}");
    assert_ne!(link, page.url);
    let outlast = env!("CARGO_BIN_EXE_outlast");
    let run = home.start(&format!(
        "{outlast} web url; env -u OUTLAST_RUN_ID {outlast} web url; {outlast} web --port 0"
    ));
    home.wait(&run);
    let printed = home.output(&["logs", &run]);
    let printed = format!("{}{}", text(&printed.stdout), text(&printed.stderr));
    assert!(!printed.contains("#k="), "an agent got a link: {printed}");
    assert_eq!(printed.matches("only a person gets a link").count(), 2, "{printed}");
}

#[test]
fn what_a_run_writes_is_shown_as_text_and_a_question_is_answered_in_two_taps_on_a_phone() {
    let home = Home::new();
    let Some(browser) = Browser::open(&home, 360) else { return };
    let hostile = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script> \u{202e}left? ";
    let long = "x".repeat(400);
    let run = asker(&home, &format!("{hostile}{long}"));
    home.output(&["wait", &run, "--timeout", "60s"]);
    let bytes = "printf '\\033]0;owned\\007\\033]52;c;b3duZWQ=\\007<b>bold</b>\\033[31mred\\033[0m \\342\\200\\256end\\n'";
    let printer = home.start(bytes);
    home.wait(&printer);
    let page = serve(&home);
    let at = |path: &str| format!("http://127.0.0.1:{}{path}", page.port);
    browser.go(&page.url);
    browser.until(
        "the phone opens at what needs it",
        "return location.pathname === '/needs-you' && location.hash === ''",
    );
    browser.until("the question is there", "return !!document.querySelector('.card blockquote')");
    let shown = browser.js("return document.querySelector('.card blockquote').textContent");
    let shown = shown.as_str().expect("text");
    assert!(shown.starts_with("<img src=x onerror=") && shown.contains("⟨202e⟩left?"), "{shown}");
    for path in
        ["/needs-you", "/runs", &format!("/runs/{run}"), &format!("/runs/{printer}"), "/report"]
    {
        browser.go(&at(path));
        browser.until("the page is drawn", "return document.querySelector('main h1') && document.querySelector('.status').textContent.includes('live')");
        let odd = browser
            .js("return [...document.querySelectorAll('main img, main script, main b')].length");
        assert_eq!(odd, 0, "{path}: markup");
        let wide = browser.js("return document.scrollingElement.scrollWidth");
        assert!(wide.as_u64().is_some_and(|it| it <= 360), "{path} scrolls sideways: {wide}");
        let small = browser.js("return [...document.querySelectorAll('button')].filter(b => b.offsetParent && (b.offsetHeight < 44 || b.offsetWidth < 44)).map(b => b.textContent)");
        assert_eq!(small, json!([]), "{path}: small buttons");
        let title = browser.js("return document.title");
        assert!(title.as_str().is_some_and(|it| it.ends_with("outlast")), "{path}: {title}");
    }
    browser.go(&at(&format!("/runs/{printer}")));
    let line = browser
        .until("the output is there", "return document.querySelector('.log .line')?.textContent");
    assert_eq!(line, "<b>bold</b>red ⟨202e⟩end");
    assert_eq!(browser.js("return document.querySelector('.log .line .f1').textContent"), "red");
    browser.go(&format!("http://evil.test:{}/", page.port));
    assert_eq!(
        browser.js("return document.querySelectorAll('header, main').length"),
        0,
        "a rebound name"
    );

    browser.go(&at("/needs-you"));
    browser.until("the question is there", "return !!document.querySelector('.card textarea')");
    browser.tap(".card textarea");
    browser.keys(".card textarea", "left");
    browser.tap(".card .reply button");
    browser.until(
        "it needs nothing more",
        "return document.querySelector('main').textContent.includes('Nothing needs you')",
    );
    assert_eq!(home.wait(&run), 0);
    assert_eq!(home.count(&run, "Answered"), 1);
    let events = home.events(&run);
    assert!(events.iter().any(|it| it["text"] == "left"), "{events:?}");
}

#[test]
fn a_page_outlives_its_daemon_and_goes_on_without_a_gap_or_a_repeat() {
    let home = Home::new();
    let Some(browser) = Browser::open(&home, 1280) else { return };
    let mut gate = Gate::new(&home, "gate");
    let count = "i=0; more() { n=0; while [ $n -lt 300 ]; do n=$((n+1)); i=$((i+1)); echo \"line $i\"; done; }";
    let script = format!("{count}; more; {gate}; more; {gate}; more; {gate}", gate = gate.pass());
    let run = home.start(&script);
    let page = serve(&home);
    browser.go(&page.url);
    browser.until("it is live", "return document.querySelector('.status').textContent.includes('live') && !!document.querySelector('a.row')");
    browser.tap("a.row");
    let last = |line: &str| {
        format!(
            "return [...document.querySelectorAll('.log .line')].pop()?.textContent === '{line}'"
        )
    };
    browser.until("the first lines", &last("line 300"));
    home.crash_daemon();
    browser.until("it says that the daemon is gone", "return window.wasGone ||= document.body.classList.contains('gone') && document.querySelector('.banner').textContent.includes('does not answer')");
    gate.open();
    browser.until("it is live again", "return !document.body.classList.contains('gone')");
    browser.until("the next lines", &last("line 600"));
    gate.open();
    browser.until("and those after", &last("line 900"));
    let all = browser.js(
        "return [...document.querySelectorAll('.log .line')].map(it => it.textContent).join('\\n')",
    );
    let expected: Vec<String> = (1..=900).map(|it| format!("line {it}")).collect();
    assert_eq!(all.as_str().expect("text"), expected.join("\n"));
    browser.tap("#tab-turns");
    browser.until("the adoption is said", "return document.querySelector('#panel-turns').textContent.includes('The daemon was replaced here; same process, no output missing.')");
    gate.open();
    assert_eq!(home.wait(&run), 0);
    browser.tap("#tab-events");
    browser.until(
        "the end is told",
        "return document.querySelector('#panel-events').textContent.includes('RunEnded')",
    );
    let numbers = browser.js(
        "return [...document.querySelectorAll('.events li')].map(it => Number(it.dataset.seq))",
    );
    let written: Vec<Value> = home.events(&run).iter().map(|it| it["seq"].clone()).collect();
    assert_eq!(numbers, Value::Array(written));
}

#[test]
fn a_run_of_unknown_end_says_so_and_an_answer_to_another_question_is_refused() {
    let home = Home::new();
    let Some(browser) = Browser::open(&home, 1280) else { return };
    let run = asker(&home, "left or right?");
    home.output(&["wait", &run, "--timeout", "60s"]);
    let gone = home.start("sleep 600");
    let (command, shim) = (home.pid(&gone), home.shim_pid(&gone));
    home.crash_daemon();
    crate::harness::kill(shim, "KILL");
    crate::harness::kill(command, "KILL");
    until("both are dead", || {
        (!crate::harness::is_alive(shim) && !crate::harness::is_alive(command)).then_some(())
    });
    assert_eq!(home.wait(&gone), 6, "its end was not seen");
    let page = serve(&home);
    browser.go(&page.url);
    browser.until(
        "it is live",
        "return document.querySelector('.status').textContent.includes('live')",
    );
    browser.go(&format!("http://127.0.0.1:{}/runs/{gone}", page.port));
    browser.until("it is said", "return document.querySelector('.truths').textContent.includes('The end of this was not seen. It may have finished; check before repeating.')");
    browser.go(&format!("http://127.0.0.1:{}/runs/{run}", page.port));
    browser.until("the question is there", "return !!document.querySelector('.card textarea')");
    // The question is answered from elsewhere; the page still has it, if only for a moment.
    let seq = home.show(&run)["asks"]["seq"].as_u64().expect("it asks");
    home.ok(&["answer", &run, "right"]);
    let order = format!(
        "const [done] = [arguments[arguments.length - 1]]; fetch('/api/runs/{run}/answer', {{ method: 'POST', headers: {{ 'content-type': 'application/json', authorization: 'Bearer ' + localStorage.getItem('outlast.session') }}, body: JSON.stringify({{ id: 'staletab0001', seq: {seq}, answer: 'approve' }}) }}).then(it => done(it.status))"
    );
    let status = browser.call("/execute/async", &json!({ "script": order, "args": [] }));
    assert_eq!(status, 409);
    assert_eq!(home.wait(&run), 0);
    assert_eq!(home.count(&run, "Answered"), 1);
}
