//! The doors of the page besides its sessions: the terminal, the links of notices, other addresses than loopback.

use std::process::Command;

use serde_json::Value;

use crate::harness::{Gate, Home, skip, str_of, text, until};
use crate::health::configure;
use crate::receiver::Receiver;
use crate::web::{Browser, asker, serve};

/// Says how large its terminal is, asks where the cursor is and reads the answer, takes a line, and says its size again.
fn program(gate: &Gate) -> String {
    let gate = gate.pass();
    format!(
        "size() {{ echo \"size $(stty size)\"; }}; size; {gate}; \
         stty raw -echo; printf '\\033[6n'; \
         while c=$(dd bs=1 count=1 2>/dev/null); [ \"$c\" != R ]; do :; done; stty sane; \
         printf '\\033]0;owned\\007<b>answered</b>\\n'; size; read -r line; echo \"got $line\"; size; {gate}"
    )
}

fn rows(browser: &Browser) -> String {
    let rows = browser.js(
        "return [...document.querySelectorAll('.screen .tr')].map(it => it.textContent.trimEnd()).join('\\n')",
    );
    rows.as_str().unwrap_or_default().trim_end().to_owned()
}

fn shows(text: &str) -> String {
    format!("return document.querySelector('.screen')?.textContent.includes('{text}')")
}

#[test]
fn a_phone_that_watches_a_terminal_changes_nothing_and_typing_needs_a_press_and_is_written_down() {
    let home = Home::new();
    let Some(browser) = Browser::open(&home, 360) else { return };
    let mut gate = Gate::new(&home, "gate");
    let run = home.ok(&["run", "-d", "--tty", "--", "sh", "-c", &program(&gate)]);
    let page = serve(&home);
    browser.go(&page.url);
    browser.until("it is live", "return document.querySelector('.status').textContent.includes('live') && !!document.querySelector('a.row')");
    browser.tap("a.row");
    browser.until("there is a terminal", "return !!document.querySelector('a.terminal')");
    browser.tap("a.terminal");
    browser.until("its screen", &shows("size 24 80"));
    // The program asks its terminal while only the phone looks on: it is answered, and by no phone.
    gate.open();
    browser.until("it was answered", &shows("<b>answered</b>"));
    assert_eq!(rows(&browser), "size 24 80\n<b>answered</b>\nsize 24 80");
    assert_eq!(browser.js("return document.querySelectorAll('main b').length"), 0);
    assert_eq!(browser.js("return document.title"), "terminal · outlast");
    assert_eq!(browser.js("return document.querySelector('.screen').dataset.size"), "24x80");
    let wide = browser.js("return document.scrollingElement.scrollWidth");
    assert!(wide.as_u64().is_some_and(|it| it <= 360), "the page scrolls sideways: {wide}");
    assert_eq!(home.count(&run, "TerminalOpened"), 0, "no person typed");
    let hidden = browser.js("return document.querySelector('.keybar').hidden");
    assert_eq!(hidden, true, "there is nothing to type into before the press");

    browser.tap("button.danger");
    browser
        .until("it says so", "return document.querySelector('.status').textContent === 'you type'");
    assert_eq!(home.count(&run, "TerminalOpened"), 1, "before the first key");
    browser.keys(".keybar input", "left");
    browser.tap(".keybar button[aria-label=Enter]");
    browser.until("the program has read it", &shows("got left"));
    let small = browser.js("return [...document.querySelectorAll('button')].filter(b => b.offsetParent && (b.offsetHeight < 44 || b.offsetWidth < 44)).map(b => b.textContent)");
    assert_eq!(small, serde_json::json!([]), "small buttons");
    browser.until(
        "its size stays",
        "return document.querySelector('.screen').textContent.split('size 24 80').length === 4",
    );
    let events = home.events(&run);
    let opened = events.iter().find(|it| it["kind"] == "TerminalOpened").expect("it is written");
    assert_eq!((&opened["by"]["kind"], &opened["by"]["via"]), (&"user".into(), &"web".into()));
    let told = home.ok(&["events", &run]);
    assert!(told.contains("a person may type into the terminal of"), "{told}");
    gate.open();
    assert_eq!(home.wait(&run), 0);
    browser.until(
        "the end is said",
        "return document.querySelector('.status').textContent.includes('gone')",
    );
}

/// One request with curl; its status, and what it was answered.
pub(crate) fn curl(args: &[&str]) -> (u16, String) {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--noproxy", "*", "--max-time", "20", "--write-out", "\n%{http_code}"]);
    let said = curl.args(args).output().expect("there is a curl");
    let said = text(&said.stdout);
    let (body, status) = said.trim_end().rsplit_once('\n').unwrap_or(("", said.trim_end()));
    (status.parse().unwrap_or_else(|_| panic!("{args:?}: {said}")), body.to_owned())
}

/// The notice of this run's question, as the phone was sent it.
fn asked(receiver: &Receiver, run: &str) -> Value {
    until("the phone is told", || {
        let told = receiver.told();
        let mut notices = told.iter().map(crate::receiver::Told::json);
        notices.find(|it| it["actions"].to_string().contains(run))
    })
}

/// The address of a press, as the phone has it.
fn press_of(notice: &Value, label: &str) -> String {
    let actions = notice["actions"].as_array().expect("there are actions");
    let found = actions.iter().find(|it| it["label"] == label).expect("there is such a press");
    assert_eq!((&found["action"], &found["method"]), (&"http".into(), &"POST".into()));
    str_of(found, "url").to_owned()
}

#[test]
fn a_question_is_answered_from_its_notice_once_and_a_look_at_the_link_answers_nothing() {
    let home = Home::new();
    let receiver = Receiver::new();
    let sink = |name: &str, more: &str| {
        let url = receiver.url(&format!("/{name}"));
        format!("[sinks.{name}]\nkind = \"ntfy\"\nurl = \"{url}\"\n{more}")
    };
    let phone = sink("phone", "actions = true\n");
    let config = format!(
        "[web]\npublic_url = \"https://page.test/\"\n[notify]\ndefault = [\"phone\"]\n{phone}"
    );
    configure(&home, &config);
    let run = asker(&home, "<b>left</b> or right?");
    let notice = asked(&receiver, &run);
    let (yes, no) = (press_of(&notice, "Approve"), press_of(&notice, "Deny"));
    let page = serve(&home);
    let here = |link: &str| {
        let path = link.strip_prefix("https://page.test").expect("it leads to the page");
        format!("http://127.0.0.1:{}{path}", page.port)
    };
    // A scanner or a preview that fetches an address changes nothing; nor does another page.
    for _ in 0..3 {
        let (status, body) = curl(&["-H", "Host: page.test", &here(&yes)]);
        assert_eq!(status, 200, "{body}");
        assert!(body.contains("&lt;b&gt;left&lt;/b&gt; or right?"), "{body}");
        assert!(body.contains("Approve</button>") && !body.contains("<script"), "{body}");
    }
    assert_eq!(curl(&["-I", &here(&yes)]).0, 200);
    assert_eq!(curl(&["-X", "POST", "-H", "Host: evil.test", &here(&yes)]).0, 421);
    assert_eq!(curl(&["-X", "POST", "-H", "Origin: https://evil.test", &here(&yes)]).0, 403);
    let (status, body) = curl(&["-X", "POST", &here(&yes.replace(".yes.", ".no."))]);
    assert_eq!(status, 404, "{body}");
    assert_eq!(home.count(&run, "Answered"), 0);

    // The phone presses, twice; and the other button after it.
    let (status, body) = curl(&["-X", "POST", "-H", "Host: page.test", &here(&yes)]);
    assert_eq!(status, 200, "{body}");
    // A button that was not obeyed does not say that it was: an app that sees a 200 takes the notice away.
    for (method, link, wanted) in [("POST", &yes, 200), ("POST", &no, 409), ("GET", &no, 200)] {
        let (status, body) = curl(&["-X", method, &here(link)]);
        assert_eq!(status, wanted, "{method} {link}: {body}");
        assert!(body.contains("has been answered: approved by user"), "{body}");
        assert!(body.contains("(link:phone)") && !body.contains("<form"), "{body}");
    }
    assert_eq!(home.wait(&run), 0);
    assert_eq!(home.count(&run, "Answered"), 1);
    let events = home.events(&run);
    let answered = events.iter().find(|it| it["kind"] == "Answered").expect("it is written");
    assert_eq!(
        (&answered["decision"], &answered["by"]["via"]),
        (&"approve".into(), &"link:phone".into())
    );
    let journal = serde_json::to_string(&events).expect("plain data");
    assert!(!journal.contains("al1."), "the link itself is in no journal");
}

#[test]
fn a_link_of_a_notice_works_in_a_browser_without_a_session_and_without_script() {
    let home = Home::new();
    let Some(browser) = Browser::open(&home, 360) else { return };
    let receiver = Receiver::new();
    let url = receiver.url("/phone");
    configure(
        &home,
        &format!(
            "[web]\npublic_url = \"https://page.test\"\n[notify]\ndefault = [\"phone\"]\n[sinks.phone]\nkind = \"ntfy\"\nurl = \"{url}\"\nactions = true\n"
        ),
    );
    let run = asker(&home, "shall it go on?");
    let notice = asked(&receiver, &run);
    let page = serve(&home);
    let path = press_of(&notice, "Deny").replace("https://page.test", "");
    browser.go(&format!("http://127.0.0.1:{}{path}", page.port));
    let shown = browser.js("return document.querySelector('main').textContent");
    assert!(shown.as_str().is_some_and(|it| it.contains("shall it go on?")), "{shown}");
    let high = browser.js("return document.querySelector('button').offsetHeight");
    assert!(high.as_u64().is_some_and(|it| it >= 44), "{high}");
    assert_eq!(home.count(&run, "Answered"), 0);
    browser.tap("button");
    browser.until("it says what was answered", "return document.querySelector('main')?.textContent.includes('has been answered: denied by user')");
    assert_eq!(home.count(&run, "Answered"), 1);
    assert_eq!(home.wait(&run), 0);
}

#[test]
fn another_address_needs_leave_a_certificate_and_a_name_and_speaks_tls_only() {
    let home = Home::new();
    let (chain, key) = (home.scratch().join("chain.pem"), home.scratch().join("key.pem"));
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    openssl.args(["-nodes", "-days", "2", "-subj", "/CN=page.test"]);
    openssl.args(["-addext", "subjectAltName=DNS:page.test", "-keyout"]).arg(&key);
    let Ok(made) = openssl.arg("-out").arg(&chain).output() else {
        skip("there is no openssl here");
        return;
    };
    assert!(made.status.success(), "{}", text(&made.stderr));
    let fails = |config: &str| {
        configure(&home, config);
        home.fails(2, &["web", "--port", "0"])
    };
    // An address of this machine that is not one of the two: nothing leaves the machine.
    let web = "[web]\nlisten = \"127.0.0.2\"\n".to_owned();
    let said = fails(&web);
    assert!(said.contains("is not 127.0.0.1 or ::1") && said.contains("ssh -L"), "{said}");
    let web = format!("{web}allow_remote = true\n");
    assert!(fails(&web).contains("needs web.certificate"));
    let web = format!("{web}certificate = \"{}\"\nkey = \"{}\"\n", chain.display(), key.display());
    assert!(fails(&web).contains("needs web.public_url"));
    assert!(
        fails(&format!("{web}public_url = \"http://page.test\"\n"))
            .contains("needs web.public_url")
    );
    assert!(
        fails(&format!("{web}public_url = \"https://page.test/x\"\n"))
            .contains("https://NAME[:PORT]")
    );
    let wrong = web.replace("chain.pem", "key.pem");
    let said = fails(&format!("{wrong}public_url = \"https://page.test\"\n"));
    assert!(said.contains("key.pem"), "{said}");

    configure(&home, &format!("{web}public_url = \"https://page.test\"\n"));
    let page = serve(&home);
    let links = home.ok(&["web", "url"]);
    assert!(links.contains("https://page.test/#k="), "{links}");
    let to = format!("page.test:443:127.0.0.2:{}", page.port);
    let trust = chain.display().to_string();
    let tls = ["--cacert", trust.as_str(), "--connect-to", to.as_str()];
    let ask = |more: &[&str]| curl(&[&tls[..], more].concat());
    let (status, body) = ask(&["https://page.test/"]);
    assert!(status == 200 && body.contains("/ui/app.js"), "{status} {body}");
    assert_eq!(ask(&["https://page.test/api/live"]).0, 401);
    for host in ["evil.test", "127.0.0.2", "page.test:443", "page.test.evil.test"] {
        assert_eq!(ask(&["-H", &format!("Host: {host}"), "https://page.test/"]).0, 421, "{host}");
    }
    for origin in ["https://evil.test", "http://page.test", "null"] {
        assert_eq!(ask(&["-H", &format!("Origin: {origin}"), "https://page.test/"]).0, 403);
    }
    let code = links.lines().find(|it| it.contains("page.test")).expect("a link for elsewhere");
    let code = code.rsplit('=').next().expect("a code");
    let body = format!("{{\"code\":\"{code}\"}}");
    let exchange =
        ["-H", "Content-Type: application/json", "-H", "Origin: https://page.test", "-d"];
    let exchange = [&exchange[..], &[&body, "https://page.test/api/session"]].concat();
    assert_eq!(ask(&exchange).0, 200);
    assert_eq!(ask(&exchange).0, 401, "once");
    // Without TLS there is nothing, also for a proxy's word on who a person is.
    let plain = format!("http://127.0.0.2:{}/", page.port);
    assert_eq!(curl(&["-H", "Host: page.test", &plain]).0, 0);
    let known = ["-H", "Remote-User: anna", "-H", "X-Forwarded-User: anna"];
    assert_eq!(ask(&[&known[..], &["https://page.test/api/live"]].concat()).0, 401);
}

#[test]
fn a_link_is_drawn_for_a_camera() {
    let home = Home::new();
    let page = serve(&home);
    let said = home.ok(&["web", "url", "--qr"]);
    assert!(said.starts_with(&format!("http://127.0.0.1:{}/#k=", page.port)), "{said}");
    let drawn: Vec<&str> = said.lines().skip(1).collect();
    assert!(
        drawn.len() > 12 && drawn.iter().all(|line| line.starts_with("\x1b[30;107m")),
        "{said}"
    );
}
