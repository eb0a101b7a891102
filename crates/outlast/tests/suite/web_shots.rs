//! What pictures are made of: a home with something on every page, the size and colours of a window, the picture itself.

use std::path::Path;

use serde_json::json;

use crate::harness::{Gate, Home, kill, str_of, until};
use crate::health::{a_loop, configure};
use crate::stalls::says;
use crate::web::{Browser, asker, serve};
use crate::web_pages::{enter, open};

/// A home with something on every page, and the paths of the pages. `labour` is what an agent does first in each turn.
pub(crate) fn furnished(home: &Home, labour: &str) -> (Vec<(&'static str, String)>, Vec<Gate>) {
    configure(
        home,
        "[sinks.phone]\nkind = \"cmd\"\ncommand = \"exit 1\"\nlevel = \"needs_me\"\n\n[budgets.day]\nmax_cost_usd = 20\n",
    );
    let write = |name: &str, text: String| {
        let path = home.scratch().join(name);
        std::fs::write(&path, text).expect("the scratch directory is ours");
        path.to_str().expect("it is text").to_owned()
    };
    let spends = r#"echo "turn $OUTLAST_TURN, attempt $OUTLAST_ATTEMPT"; printf '\033[32mCompiling\033[0m parser v0.1\n\033[33mwarning\033[0m: unused variable\n'; echo 'note: it is only a note' >&2
if [ "$OUTLAST_TURN.$OUTLAST_ATTEMPT" = 2.1 ]; then exit 3; fi
echo "$OUTLAST_TURN" >> done.txt
echo '{"status":"'$([ "$OUTLAST_TURN" -lt 4 ] && echo continue || echo done)'","summary":"part '$OUTLAST_TURN' of 4","usage":{"input_tokens":1200,"output_tokens":300,"cost_usd":0.42}}' > "$OUTLAST_RESPONSE_FILE""#;
    let work = home.scratch().join("work");
    std::fs::create_dir_all(&work).expect("the scratch directory is ours");
    let port = write(
        "PORT.md",
        a_loop(&format!("{labour}\n{spends}"), "max_cost_usd: 5")
            .replace("kind: exec", "kind: exec\n  max_turns: 20")
            .replace("agent:\n", "workspace: { snapshot: on }\nagent:\n"),
    );
    let port = home.ok(&[
        "run",
        "-d",
        "--name",
        "port",
        "--label",
        "team=web",
        "--dir",
        work.to_str().expect("text"),
        "-f",
        &port,
    ]);
    home.wait(&port);
    let silent =
        write("SILENT.md", a_loop(&says("continue"), "max_cost_usd: 5, no_progress_turns: 5"));
    let silent = home.ok(&[
        "run",
        "-d",
        "--name",
        "silent",
        "--label",
        "team=ops",
        "--max-turns",
        "2",
        "-f",
        &silent,
    ]);
    home.wait(&silent);
    let lost = home.ok(&["run", "-d", "--name", "import", "--", "sleep", "600"]);
    let (command, shim) = (home.pid(&lost), home.shim_pid(&lost));
    let gate = Gate::new(home, "gate");
    let live = home.ok(&[
        "run",
        "-d",
        "--name",
        "nightly",
        "--",
        "sh",
        "-c",
        &format!("seq 400; {}", gate.pass()),
    ]);
    home.crash_daemon();
    kill(shim, "KILL");
    kill(command, "KILL");
    home.wait(&lost);
    asker(
        home,
        "Left or right? The parser can be made either way; the left one keeps the old files.",
    );
    let asker = home.json(&["ps", "--json"]);
    let asker = asker
        .as_array()
        .expect("a list")
        .iter()
        .find(|it| it["name"] == "asker")
        .expect("it is listed")
        .clone();
    home.output(&["wait", str_of(&asker, "id"), "--timeout", "60s"]);
    home.ok(&["schedule", "add", "nightly", "--cron", "0 3 * * 1-5", "--", "echo", "tests"]);
    home.ok(&["trigger", "run", "nightly"]);
    let run = |id: &str, tab: &str| format!("/runs/{id}{tab}");
    let pages = vec![
        ("needs-you", "/needs-you".to_owned()),
        ("runs", "/runs".to_owned()),
        ("run-done", run(&port, "")),
        ("run-turns", run(&port, "#turns")),
        ("run-diff", run(&port, "#diff")),
        ("run-tree", run(&port, "#tree")),
        ("run-events", run(&port, "#events")),
        ("run-live", run(&live, "")),
        ("run-lost", run(&lost, "")),
        ("run-silent", run(&silent, "")),
        ("run-asks", run(str_of(&asker, "id"), "")),
        ("report", "/report?since=12h".to_owned()),
        ("schedule", "/schedule".to_owned()),
        ("spend", "/spend".to_owned()),
        ("sinks", "/sinks".to_owned()),
        ("doctor", "/doctor".to_owned()),
        ("start", "/start".to_owned()),
    ];
    (pages, vec![gate])
}

pub(crate) fn look(browser: &Browser, width: u32, scheme: &str) {
    sized(browser, (width, if width < 600 { 740 } else { 800 }), scheme);
}

fn sized(browser: &Browser, (width, height): (u32, u32), scheme: &str) {
    let size =
        json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
    browser.call(
        "/goog/cdp/execute",
        &json!({ "cmd": "Emulation.setDeviceMetricsOverride", "params": size }),
    );
    let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }, { "name": "prefers-reduced-motion", "value": "reduce" }] });
    browser.call(
        "/goog/cdp/execute",
        &json!({ "cmd": "Emulation.setEmulatedMedia", "params": media }),
    );
}

/// A picture of the whole page, if pictures are wanted: `OUTLAST_WEB_SHOTS` says where.
pub(crate) fn shoot(browser: &Browser, name: &str) {
    let Some(dir) = std::env::var_os("OUTLAST_WEB_SHOTS") else { return };
    let format = if name.ends_with(".webp") { "webp" } else { "png" };
    let params = json!({ "captureBeyondViewport": false, "format": format });
    let order = json!({ "cmd": "Page.captureScreenshot", "params": params });
    let shot = browser.call("/goog/cdp/execute", &order);
    let path = Path::new(&dir).join(name);
    std::fs::create_dir_all(&dir).expect("the directory can be made");
    std::fs::write(path, unbase64(str_of(&shot, "data"))).expect("the picture can be written");
}

fn unbase64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::new();
    for four in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits =
            four.iter().fold(0, |bits, byte| bits << 6 | value(*byte)) << (6 * (4 - four.len()));
        bytes.extend(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes
}

/// The pictures of the README and of docs/web.md; `cargo xtask web-shots --pictures` has them made.
#[test]
#[ignore = "pictures, for `cargo xtask web-shots --pictures`"]
fn pictures_of_the_docs() {
    let home = Home::new();
    let Some(browser) = Browser::open(&home, 1280) else { return };
    // Bars of the timeline have a width only if the agent takes its time.
    let (pages, mut gates) = furnished(&home, "sleep 0.$((OUTLAST_TURN * 2))");
    let page = serve(&home);
    enter(&browser, &page);
    let bars = json!({ "cmd": "Emulation.setScrollbarsHidden", "params": { "hidden": true } });
    browser.call("/goog/cdp/execute", &bars);
    let wanted = [
        ("runs", "web-runs.webp", 1120, 708, "light"),
        ("run-done", "web-run.webp", 1120, 850, "dark"),
        ("schedule", "web-schedule.webp", 1120, 500, "light"),
        ("needs-you", "web-phone.webp", 360, 480, "light"),
    ];
    for (name, file, width, height, scheme) in wanted {
        sized(&browser, (width, height), scheme);
        let path = pages.iter().find(|(it, _)| *it == name).map(|(_, path)| path);
        browser.go("about:blank");
        open(&browser, &page, path.expect("it is one of the pages"));
        browser.until(
            "it is drawn",
            "return !!document.querySelector('a.row, .log .line, .week td, .card blockquote')",
        );
        // Times tick, and a picture of a second that is half over is as good as any other.
        until("its fonts are there", || {
            (browser.js("return document.fonts.status") == "loaded").then_some(())
        });
        shoot(&browser, file);
    }
    gates.iter_mut().for_each(Gate::open);
}
