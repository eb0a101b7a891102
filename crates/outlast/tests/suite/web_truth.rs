//! What is not known, said in Chromium: every case is made to happen for real, and is read on the page and in its accessibility tree.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::json;

use crate::harness::{Background, Gate, Home, is_alive, kill, skip, text, until};
use crate::health::{a_loop, configure};
use crate::hosted::until_waiting;
use crate::stalls::says;
use crate::web::{Browser, serve};
use crate::web_pages::{enter, heard, open};

/// The page and its accessibility tree both have this sentence; times stand where `…` does.
fn says_both(browser: &Browser, sentence: &str) {
    let parts: Vec<String> = sentence.split('…').map(str::to_owned).collect();
    let script = format!(
        "const text = document.querySelector('main').innerText; let at = 0; for (const part of {}) {{ at = text.indexOf(part, at); if (at < 0) return false; }} return true;",
        json!(parts)
    );
    browser.until(sentence, &script);
    until("the accessibility tree has it", || {
        let heard = heard(browser).split_whitespace().collect::<Vec<_>>().join(" ");
        let found = parts.iter().try_fold(0, |at, part| {
            let part = part.trim();
            heard[at..].find(part).map(|found| at + found + part.len())
        });
        found.map(|_| ())
    });
}

#[test]
fn what_is_not_known_is_said_on_the_page_and_to_a_reader_of_the_screen() {
    let home = Home::new();
    let Some(browser) = Browser::open(&home, 1280) else { return };
    let file = home.scratch().join("SILENT.md");
    std::fs::write(&file, a_loop(&says("continue"), "max_cost_usd: 5, no_progress_turns: 5"))
        .expect("the scratch directory is ours");
    let file = file.to_str().expect("it is text");
    let silent = home.ok(&["run", "-d", "--max-turns", "2", "-f", file]);
    assert_eq!(home.wait(&silent), 4);
    let orphan = home.start("sleep 600");
    let (pid, shim) = (home.pid(&orphan), home.shim_pid(&orphan));
    kill(shim, "KILL");
    until("the daemon has seen it", || (home.count(&orphan, "AttemptOrphaned") == 1).then_some(()));
    let gone = home.start("sleep 600");
    let (command, its_shim) = (home.pid(&gone), home.shim_pid(&gone));
    let adopted = home.start("sleep 600");
    // An attempt is adopted only if it was seen to run before.
    home.pid(&adopted);
    home.crash_daemon();
    kill(its_shim, "KILL");
    kill(command, "KILL");
    assert_eq!(home.wait(&gone), 6);
    until("it was adopted", || (home.count(&adopted, "AttemptAdopted") == 1).then_some(()));
    let page = serve(&home);
    enter(&browser, &page);

    open(&browser, &page, &format!("/runs/{gone}"));
    says_both(
        &browser,
        "The end of this was not seen. It may have finished; check before repeating.",
    );
    browser.tap("#tab-turns");
    browser.until("the turn is listed", "return !!document.querySelector('#panel-turns summary')");
    browser.tap("#panel-turns summary");
    says_both(&browser, "The end of this was not seen. Its process was gone at … . It may have finished; check before repeating.".replace(" . It", ". It").as_str());

    open(&browser, &page, &format!("/runs/{orphan}"));
    says_both(&browser, "Its shim died, as seen at …. Process ");
    says_both(
        &browser,
        &format!(
            "Process {pid} lives; its output and exit can no longer be seen. Stop still works."
        ),
    );

    open(&browser, &page, &format!("/runs/{adopted}"));
    // A plain command has reported nothing, which is no zero.
    says_both(&browser, "money…none reported");
    browser.tap("#tab-turns");
    browser.until("the turn is listed", "return !!document.querySelector('#panel-turns summary')");
    browser.tap("#panel-turns summary");
    says_both(&browser, "The daemon was replaced here; same process, no output missing.");
    let marks = browser.js("return document.querySelectorAll('.t-mark').length");
    assert_eq!(marks, 1, "the timeline marks the adoption");

    open(&browser, &page, &format!("/runs/{silent}"));
    says_both(&browser, "$0.00 reported, up to $5.00 more was not.");

    open(&browser, &page, "/runs");
    says_both(
        &browser,
        "The end of this was not seen. It may have finished; check before repeating.",
    );
    says_both(&browser, "$0.00 + up to $5.00 not reported");
    home.ok(&["stop", "--now", &orphan]);
    home.ok(&["stop", "--now", &adopted]);
}

#[test]
fn a_machine_that_restarted_is_said() {
    let home = Home::new().env("OUTLAST_FAKE_BOOT_ID", "first-boot");
    let Some(browser) = Browser::open(&home, 1280) else { return };
    let id = home.start("sleep 600");
    let pid = home.pid(&id);
    home.ok(&["daemon", "stop"]);
    let home = home.env("OUTLAST_FAKE_BOOT_ID", "second-boot");
    assert_eq!(home.wait(&id), 1);
    let page = serve(&home);
    enter(&browser, &page);
    open(&browser, &page, &format!("/runs/{id}#turns"));
    browser.until("the turn is listed", "return !!document.querySelector('#panel-turns summary')");
    browser.tap("#panel-turns summary");
    says_both(
        &browser,
        "The machine restarted. Nothing was signalled. If the turn is attempted again, attempt 2 starts from the workspace as it is.",
    );
    kill(pid, "KILL");
}

/// Stays between a KILL and the end of a process: a process that is traced so ends when its tracer lets it, and no later
/// KILL changes that. It is the only way to be unkillable that needs no rights and harms no machine.
const HOLD: &str = r#"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
SEIZE, TRACE_EXIT = 0x4206, 0x40
refused = libc.ptrace(SEIZE, int(sys.argv[1]), None, TRACE_EXIT) != 0
print(os.strerror(ctypes.get_errno()) if refused else "held", flush=True)
sys.stdin.read()
"#;

/// Becomes `sleep 1000`, which every process of the user may trace, also where the kernel reserves that for ancestors.
const TRACEABLE: &str = r#"
import ctypes, os
PR_SET_PTRACER = 0x59616d61
ctypes.CDLL(None).prctl(PR_SET_PTRACER, ctypes.c_ulong(-1), 0, 0, 0)
os.execvp("sleep", ["sleep", "1000"])
"#;

/// Holds this process until the answer is dropped; `None`, and a word about it, where that is not allowed.
fn hold(home: &Home, pid: u32) -> Option<Background> {
    let mut python = home.command("python3");
    python.args(["-c", HOLD, &pid.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut tracer = Background(python.spawn().expect("there is a python3"));
    let mut said = String::new();
    let stdout = tracer.0.stdout.take().expect("it is piped");
    BufReader::new(stdout).read_line(&mut said).expect("it says how it went");
    if said.trim() == "held" {
        return Some(tracer);
    }
    skip(&format!("a process cannot be traced here: {}", said.trim()));
    None
}

#[test]
fn processes_that_would_not_go_are_named() {
    let home = Home::new();
    let Some(browser) = Browser::open(&home, 1280) else { return };
    let run = home.ok(&["run", "-d", "--name", "stuck", "--", "python3", "-c", TRACEABLE]);
    let pid = home.pid(&run);
    until("it is asleep", || {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(b"sleep").then_some(())
    });
    let Some(tracer) = hold(&home, pid) else { return };
    let stop = home.output(&["stop", "--now", &run]);
    if stop.status.success() {
        assert!(!is_alive(pid), "it is called stopped, and {pid} lives");
        skip("this kernel lets a second KILL end a process that is traced");
        return;
    }
    assert!(text(&stop.stderr).contains("could not be proven stopped"), "{}", text(&stop.stderr));
    let page = serve(&home);
    enter(&browser, &page);
    let named = format!("Stop asked; 1 process would not go: {pid} sleep 1000.");
    open(&browser, &page, &format!("/runs/{run}"));
    says_both(&browser, &named);
    browser.tap("#tab-turns");
    browser.until("the turn is listed", "return !!document.querySelector('#panel-turns summary')");
    browser.tap("#panel-turns summary");
    let of_attempt = format!(
        "return document.querySelector('#panel-turns .attempt')?.textContent.includes({})",
        json!(named)
    );
    browser.until("the attempt says it, too", &of_attempt);
    open(&browser, &page, "/runs");
    says_both(&browser, "Stop asked; 1 process would not go.");
    // Once it can die it does, and only then the page says that the run is stopped.
    assert_eq!(browser.js("return document.querySelector('main').innerText.includes('■')"), false);
    drop(tracer);
    assert_eq!(home.wait(&run), 5);
    browser.until("it is stopped", "return document.querySelector('a.row.ended .state')?.textContent.includes('stopped') && !document.querySelector('main').textContent.includes('would not go')");
}

#[test]
fn a_wait_without_a_known_end_is_said() {
    let home = Home::new();
    configure(&home, "[concurrency]\nmax_runs = 1\n");
    let Some(browser) = Browser::open(&home, 1280) else { return };
    let listens = r#"echo '{"status":"continue","summary":"tell me","wait":{"message":true}}' > "$OUTLAST_RESPONSE_FILE""#;
    let file = home.scratch().join("LISTENS.md");
    std::fs::write(&file, a_loop(listens, "max_attempts: 2")).expect("the scratch is ours");
    let told = home.ok(&["run", "-d", "-f", file.to_str().expect("it is text")]);
    until_waiting(&home, &told, "message");
    let mut gate = Gate::new(&home, "gate");
    let first = home.start(&gate.pass());
    home.pid(&first);
    let queued = home.ok(&["run", "-d", "--name", "queued", "--", "true"]);
    let page = serve(&home);
    enter(&browser, &page);
    let endless = "It waits, and it is not known until when.";
    for run in [&told, &queued] {
        open(&browser, &page, &format!("/runs/{run}"));
        says_both(&browser, endless);
        let told = browser
            .js("return document.querySelector('main').innerText.includes('goes on or is due in')");
        assert_eq!(told, false, "a time was invented");
    }
    open(&browser, &page, "/runs");
    let rows = format!(
        "return [...document.querySelectorAll('a.row')].filter(it => it.textContent.includes({})).map(it => it.dataset.key).sort()",
        json!(endless)
    );
    let mut both = [told.clone(), queued.clone()];
    both.sort();
    browser.until("both rows", "return document.querySelectorAll('a.row').length === 3");
    assert_eq!(browser.js(&rows), json!(both));
    says_both(&browser, endless);
    gate.open();
    assert_eq!((home.wait(&first), home.wait(&queued)), (0, 0));
    let gone = format!(
        "return !document.querySelector('a.row[data-key=\"{queued}\"]').textContent.includes({})",
        json!(endless)
    );
    browser.until("its wait is over", &gone);
    home.ok(&["stop", &told]);
}
