//! Every page in Chromium: what it says of what is not known, what can be done on it, and whether people who see little or use no mouse can use it.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::harness::{Gate, Home, skip, until};
use crate::health::{a_loop, configure};
use crate::stalls::says;
use crate::web::{Browser, Page, serve};
use crate::web_shots::{furnished, look, shoot};

/// What a page that has been drawn answers with true.
const DRAWN: &str = "return !!document.querySelector('main h1') && document.querySelector('.status').textContent.includes('live') && !document.querySelector('main').textContent.includes('Loading…') && !document.querySelector('main').textContent.includes('Asking…')";

pub(crate) fn at(page: &Page, path: &str) -> String {
    format!("http://127.0.0.1:{}{path}", page.port)
}

pub(crate) fn enter(browser: &Browser, page: &Page) {
    browser.go(&page.url);
    browser.until("the page is live", "return document.querySelector('.status')?.textContent.includes('live') && location.pathname !== '/'");
}

pub(crate) fn open(browser: &Browser, page: &Page, path: &str) {
    browser.go(&at(page, path));
    browser.until("the page is drawn", DRAWN);
}

/// All that a reader of the screen is told, in one text.
pub(crate) fn heard(browser: &Browser) -> String {
    let tree = browser
        .call("/goog/cdp/execute", &json!({ "cmd": "Accessibility.getFullAXTree", "params": {} }));
    let nodes = tree["nodes"].as_array().expect("a tree").iter();
    let shown =
        nodes.filter(|node| node["ignored"] != true && node["role"]["value"] != "InlineTextBox");
    let names = shown.filter_map(|node| node["name"]["value"].as_str());
    names.collect::<Vec<_>>().join(" ")
}

/// A loop that asks `question N` at the end of turn N, and rests at the first.
fn asks_each_turn(home: &Home) -> String {
    let file = home.scratch().join("ASKS.md");
    let asks = r#"echo '{"status":"blocked","summary":"question '$OUTLAST_TURN'"}' > "$OUTLAST_RESPONSE_FILE""#;
    std::fs::write(&file, a_loop(asks, "max_tokens: 100000"))
        .expect("the scratch directory is ours");
    let run = home.ok(&["run", "-d", "-f", file.to_str().expect("it is text")]);
    assert_eq!(home.wait(&run), 3);
    run
}

/// An element that is replaced takes a press, an open part and the focus with it.
#[test]
fn a_turn_stays_the_same_element_while_the_run_goes_on() {
    let home = Home::new();
    let Some(browser) = Browser::open(&home, 1280) else { return };
    let run = asks_each_turn(&home);
    let page = serve(&home);
    enter(&browser, &page);
    open(&browser, &page, &format!("/runs/{run}#turns"));
    browser.until(
        "the address leads to the tab",
        "return document.querySelector('.tabs').getBoundingClientRect().top < 50",
    );
    let first = "document.querySelector('#panel-turns details[data-turn=\"1\"] > summary')";
    browser.until("the first turn", &format!("return !!{first}"));
    browser.js(&format!("{first}.mark = 'it'; {first}.focus(); {first}.click(); return true"));
    home.ok(&["answer", &run, "go on"]);
    browser.until(
        "the second turn",
        "return !!document.querySelector('#panel-turns details[data-turn=\"2\"] > summary')",
    );
    let kept = format!(
        "const it = {first}; return [it.mark, document.activeElement === it, it.parentElement.open]"
    );
    assert_eq!(browser.js(&kept), serde_json::json!(["it", true, true]));
    home.ok(&["stop", &run]);
}

#[test]
fn an_answer_counts_once_and_a_stale_approval_shows_the_new_question() {
    let home = Home::new();
    let Some(browser) = Browser::open(&home, 1280) else { return };
    let run = asks_each_turn(&home);
    let page = serve(&home);
    enter(&browser, &page);
    open(&browser, &page, &format!("/runs/{run}"));
    browser.until(
        "the first question",
        "return document.querySelector('blockquote')?.textContent === 'question 1'",
    );
    // Pressed many times before the page can draw anything: one answer.
    browser.js("document.querySelector('.card textarea').value = 'go on'; const send = document.querySelector('.card .reply button'); for (let i = 0; i < 5; i++) { send.disabled = false; send.click(); } return true");
    browser.until(
        "the second question",
        "return document.querySelector('blockquote')?.textContent === 'question 2'",
    );
    assert_eq!(home.count(&run, "Answered"), 1);
    // The tab hears nothing while the question is answered from elsewhere; then its own answer is sent.
    browser.js("window.fetch_ = window.fetch; window.fetch = (path, asked) => asked.method === 'POST' ? fetch_(path, asked) : new Promise(() => {}); dispatchEvent(new Event('online')); return true");
    home.ok(&["answer", &run, "from elsewhere"]);
    assert_eq!(home.wait(&run), 3);
    assert_eq!(browser.js("return document.querySelector('blockquote').textContent"), "question 2");
    browser.js("window.fetch = fetch_; document.querySelector('.card textarea').value = 'stale'; document.querySelector('.card .reply button').click(); return true");
    browser.until(
        "the new question, and why",
        "return document.querySelector('blockquote')?.textContent === 'question 3'",
    );
    assert_eq!(home.count(&run, "Answered"), 2, "the stale approval counted");
    home.ok(&["stop", &run]);
}

#[test]
fn output_is_reached_by_byte_by_search_and_by_time_and_stderr_is_marked() {
    let home = Home::new();
    let Some(browser) = Browser::open(&home, 1280) else { return };
    let run = home.start("i=0; while [ $i -lt 60000 ]; do i=$((i+1)); echo \"this is line number $i\"; done; echo 'to the other' >&2; echo end");
    assert_eq!(home.wait(&run), 0);
    let size = home.show(&run)["output_bytes"].as_u64().expect("a size");
    let page = serve(&home);
    enter(&browser, &page);
    open(&browser, &page, &format!("/runs/{run}"));
    browser.until(
        "its end",
        "return [...document.querySelectorAll('.log .line')].slice(-2).some(it => it.textContent === 'end') && !!document.querySelector('.line.err')",
    );
    let error = browser.js("const line = document.querySelector('.line.err'); return line.textContent + '|' + getComputedStyle(line, '::before').content");
    assert_eq!(error, "to the other|\"err \"");
    let timed = browser.js("return document.querySelector('.line.err').dataset.time");
    assert_eq!(timed.as_str().map(str::len), Some(8), "{timed}");

    browser.keys(".search input", "line number 31234");
    browser.js("[...document.querySelectorAll('.search button')].find(it => it.textContent === 'Find in all').click(); return true");
    browser.until("it was found", "return document.querySelectorAll('.found li a').length === 1");
    browser.tap(".found li a");
    browser.until(
        "it is on the screen",
        "return document.querySelector('.line.aim')?.textContent === 'this is line number 31234'",
    );
    let link = browser.js("return location.hash");
    let offset: u64 = link
        .as_str()
        .and_then(|it| it.rsplit(':').next())
        .and_then(|it| it.parse().ok())
        .expect("a byte");
    assert!(offset > size / 4 && offset < size, "{link}");

    browser.go("about:blank");
    open(&browser, &page, &format!("/runs/{run}{}", link.as_str().expect("a hash")));
    browser.until(
        "a link leads to its byte",
        "return document.querySelector('.line.aim')?.textContent === 'this is line number 31234'",
    );
    let lines = browser.js("return document.querySelectorAll('.log .line').length");
    assert!(lines.as_u64().is_some_and(|it| it <= 4100), "{lines} lines on the page");
    // On to the end by scrolling, and nothing is missing or twice on the way.
    let all = browser.js("return [...document.querySelectorAll('.log .line')].map(it => Number(it.textContent.split(' ').pop()))");
    let all: Vec<u64> = all.as_array().expect("a list").iter().filter_map(Value::as_u64).collect();
    assert!(all.windows(2).all(|two| two[1] == two[0] + 1), "a gap or a repeat");
    browser.js("document.querySelector('.log').scrollTop = 1e9; return true");
    let last = *all.last().expect("lines");
    let more = format!(
        "const log = document.querySelector('.log'); log.scrollTop = 1e9; const all = [...log.querySelectorAll('.line')].map(it => Number(it.textContent.split(' ').pop())); return all.some(it => it > {last} + 500) && all.every((it, at) => at === 0 || it === all[at - 1] + 1)"
    );
    browser.until("what follows comes by scrolling", &more);
}

#[test]
fn what_can_be_done_on_the_pages_is_done() {
    let home = Home::new();
    let Some(browser) = Browser::open(&home, 1280) else { return };
    let told = home.scratch().join("told");
    configure(
        &home,
        &format!("[sinks.here]\nkind = \"cmd\"\ncommand = \"cat >> '{}'\"\n", told.display()),
    );
    let file = home.scratch().join("WORKFLOW.md");
    std::fs::write(
        &file,
        a_loop(&says("continue"), "no_progress_turns: 9")
            .replace("kind: exec", "kind: exec\n  max_turns: 2"),
    )
    .expect("the scratch directory is ours");
    let file = file.to_str().expect("it is text");
    home.ok(&["schedule", "add", "yearly", "--cron", "0 3 1 1 *", "--", "echo", "made by it"]);
    let page = serve(&home);
    enter(&browser, &page);

    open(&browser, &page, "/start");
    browser.keys("#path", file);
    browser.tap("form button");
    browser.until("the run has begun", "return /^\\/runs\\/[a-z0-9]+$/.test(location.pathname)");
    let run = browser.js("return location.pathname.split('/')[2]");
    let run = run.as_str().expect("an id").to_owned();
    assert_eq!(home.wait(&run), 4, "it is exhausted after two turns");
    browser.until("more room can be given", "return document.querySelector('.raise')?.open && document.querySelector('.raise input').value === '3'");
    browser.tap(".raise button");
    until("it goes on", || (home.count(&run, "TurnCommitted") == 3).then_some(()));
    assert_eq!(home.wait(&run), 4);

    open(&browser, &page, "/schedule");
    browser.until(
        "the trigger is there",
        "return document.querySelector('main').textContent.includes('yearly')",
    );
    browser.js("[...document.querySelectorAll('.card button')].find(it => it.textContent === 'Run now').click(); return true");
    let made = browser
        .until("it has run", "return document.querySelector('.said a')?.getAttribute('href')");
    let made = made.as_str().and_then(|it| it.rsplit('/').next()).expect("an id").to_owned();
    assert_eq!(home.wait(&made), 0);

    open(&browser, &page, "/sinks");
    browser.until("the sink is there", "return !!document.querySelector('.card button')");
    browser.tap(".card button");
    browser.until(
        "it was delivered",
        "return document.querySelector('.said').textContent.startsWith('Delivered')",
    );
    assert!(told.is_file());

    open(&browser, &page, "/doctor");
    browser.until("it says something", "return !!document.querySelector('.findings li')");
    open(&browser, &page, "/spend");
    browser.until(
        "it says what was spent",
        "return document.querySelector('main').textContent.includes('in days of')",
    );

    let mut gate = Gate::new(&home, "gate");
    let slow = home.start(&gate.pass());
    browser.tap(".more summary");
    browser.until("everything can be paused", "return [...document.querySelectorAll('.menu button')].some(it => it.textContent === 'Pause all…')");
    browser.js("[...document.querySelectorAll('.menu button')].find(it => it.textContent === 'Pause all…').click(); return true");
    browser.js("[...document.querySelectorAll('.menu button')].find(it => it.textContent === 'Yes, pause everything').click(); return true");
    browser.until(
        "it says so",
        "return document.querySelector('.banner').textContent.includes('Everything is paused')",
    );
    assert_eq!(home.show(&slow)["paused"], true);
    browser.js("[...document.querySelectorAll('.menu button')].find(it => it.textContent === 'Resume all').click(); return true");
    until("it goes on", || (home.show(&slow)["paused"] == false).then_some(()));
    gate.open();
    assert_eq!(home.wait(&slow), 0);

    // Keys, as in `top`.
    open(&browser, &page, "/runs");
    browser.until("rows", "return document.querySelectorAll('a.row').length > 2");
    browser.keys("body", "j");
    browser.keys("a.row:focus", "j");
    let second = browser
        .js("return [...document.querySelectorAll('a.row')].indexOf(document.activeElement)");
    assert_eq!(second, 1, "j moves");
    browser.keys("body", "/");
    assert_eq!(browser.js("return document.activeElement.id"), "filter");
    browser.keys("#filter", "yearly");
    browser.until(
        "filtered",
        "return location.search === '?q=yearly' && document.querySelectorAll('a.row').length <= 1",
    );
    browser.js("document.activeElement.blur(); return true");
    browser.keys("body", "gn");
    browser.until("g n goes to what needs you", "return location.pathname === '/needs-you'");
}

/// Axe, from npm; `None`, and a word about it, where the registry cannot be reached.
fn axe() -> Option<&'static str> {
    static FOUND: OnceLock<Result<String, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| {
        let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("axe");
        let file = dir.join("node_modules/axe-core/axe.min.js");
        if !file.is_file() {
            std::fs::create_dir_all(&dir).map_err(|error| error.to_string())?;
            let mut npm = Command::new("npm");
            npm.args([
                "install",
                "--no-save",
                "--no-audit",
                "--no-fund",
                "--fetch-retries=0",
                "axe-core@4.14.0",
            ]);
            let done = npm.current_dir(&dir).output().map_err(|error| format!("npm: {error}"))?;
            if !done.status.success() {
                return Err("npm or its registry cannot be reached".to_owned());
            }
        }
        std::fs::read_to_string(&file).map_err(|error| error.to_string())
    });
    match found {
        Ok(text) => Some(text),
        Err(why) => {
            skip(&format!("axe-core cannot be had: {why}"));
            None
        }
    }
}

fn serious(browser: &Browser, axe: &str) -> Value {
    let script = format!(
        "const done = arguments[arguments.length - 1]; if (!window.axe) {{ {axe} }}; axe.run(document, {{ resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }}).then(found => done(found.violations.filter(it => ['serious', 'critical'].includes(it.impact)).map(it => it.id + ': ' + it.nodes.slice(0, 3).map(node => node.target.join(' ') + ' ' + (node.any[0]?.message ?? '')).join('; ')))).catch(error => done(['' + error]))"
    );
    browser.call("/execute/async", &json!({ "script": script, "args": [] }))
}

#[test]
fn slow_every_page_fits_at_three_widths_in_light_and_dark_and_axe_finds_nothing_serious() {
    let home = Home::new();
    let Some(browser) = Browser::open(&home, 1280) else { return };
    let (pages, mut gates) = furnished(&home, "");
    let page = serve(&home);
    enter(&browser, &page);
    let axe = axe();
    let mut found = Vec::new();
    for (scheme, widths) in [("light", [1280, 768, 360]), ("dark", [1280, 768, 360])] {
        for width in widths {
            look(&browser, width, scheme);
            for (name, path) in &pages {
                browser.go("about:blank");
                open(&browser, &page, path);
                if path.contains("/runs/") && !path.contains('#') {
                    browser.until("its output", "return !!document.querySelector('.log .line') || document.querySelector('main').textContent.includes('byte 0')");
                }
                if let Some(tab) = path.split_once('#').map(|(_, tab)| tab) {
                    let shown = format!(
                        "return !document.querySelector('#panel-{tab}').hidden && !!document.querySelector('#panel-{tab}').firstElementChild && !document.querySelector('#panel-{tab}').textContent.includes('Comparing…')"
                    );
                    browser.until("its tab", &shown);
                }
                if ["schedule", "spend", "sinks", "doctor"].contains(name) {
                    browser.until("its answer", "return document.querySelector('main').children.length > 1 && [...document.querySelectorAll('main > div')].some(it => it.textContent.length > 20) && !document.querySelector('main').textContent.includes('Reading the journal')");
                }
                shoot(&browser, &format!("{name}-{width}-{scheme}.png"));
                let at = format!("{name} at {width}, {scheme}");
                let wide = browser.js("return document.scrollingElement.scrollWidth");
                if wide.as_u64() > Some(u64::from(width)) {
                    let which = browser.js("return [...document.querySelectorAll('main *')].filter(it => it.getBoundingClientRect().right > innerWidth + 1).slice(0, 3).map(it => it.tagName + '.' + it.className)");
                    found.push(format!("{at} scrolls sideways: {wide}: {which}"));
                }
                if width == 360 {
                    let small = browser.js("return [...document.querySelectorAll('button, select, summary')].filter(b => b.checkVisibility() && !b.closest('.events') && (b.offsetHeight < 44 || b.offsetWidth < 44)).map(b => b.textContent)");
                    if small != json!([]) {
                        found.push(format!("{at}: small: {small}"));
                    }
                }
                if let Some(axe) = axe.filter(|_| width != 768) {
                    let serious = serious(&browser, axe);
                    if serious != json!([]) {
                        found.push(format!("{at}: {serious}"));
                    }
                }
            }
        }
    }
    gates.iter_mut().for_each(Gate::open);
    assert!(found.is_empty(), "{}", found.join("\n"));
}
