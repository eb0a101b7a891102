//! `outlast mcp --http`: the tools of a run over HTTP, by the official SDK of Python and by requests that must not get in.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{Gate, Home, is_alive, skip, str_of, text, until};
use crate::loops::assert_sound;
use crate::python;

const SERVER: &str = include_str!("mcp/http_server.py");
const STORY: &str = include_str!("mcp/http_story.py");
const STATELESS: &str = include_str!("mcp/http_stateless.py");
const DOORS: &str = include_str!("mcp/http_doors.py");

fn home() -> Home {
    let home = Home::new();
    let scratch = home.scratch();
    home.env("OUTLAST", env!("CARGO_BIN_EXE_outlast")).env("SCRATCH", scratch)
}

/// Has a run execute the script; gives what it printed.
fn told(home: &Home, python: &Path, source: &str) -> String {
    let write = |name: &str, source: &str| {
        let path = home.scratch().join(name);
        fs::write(&path, source).expect("the scratch directory is ours");
        path.display().to_string()
    };
    write("http_server.py", SERVER);
    let (python, script) = (python.display().to_string(), write("script.py", source));
    let output = home.output(&["run", "--name", "parent", "--", &python, &script]);
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    said
}

#[test]
fn a_client_lists_starts_reads_reconnects_and_reports_over_http() {
    let python = match python::with("mcp-sdk", &["mcp==1.30.0", "jsonschema==4.25.1"]) {
        Ok(python) => python,
        Err(why) => return skip(&format!("no MCP SDK of Python: {why}")),
    };
    let home = home();
    let gate = Gate::new(&home, "gate");
    let said = told(&home, &python, STORY);
    drop(gate);
    assert!(said.contains("the story is told"), "{said}");
    let parent = home.show("parent");
    assert_eq!(str_of(&parent, "summary"), "told over HTTP", "{parent}");
    let made = fs::read_to_string(home.scratch().join("made")).expect("the call was made");
    assert_eq!(made, "made\n");
    let events = home.events(str_of(&parent, "id"));
    assert!(events.iter().any(|event| event["what"] == "tools_listed"), "{events:?}");
    assert_sound(&home);
}

#[test]
fn a_client_of_the_protocol_without_a_handshake_is_understood_over_http() {
    let python = match python::with("mcp-sdk-2", &["mcp==2.3.0"]) {
        Ok(python) => python,
        Err(why) => return skip(&format!("no MCP SDK of Python: {why}")),
    };
    let home = home();
    let said = told(&home, &python, STATELESS);
    assert!(said.contains("the story is told"), "{said}");
    assert_eq!(str_of(&home.show("parent"), "summary"), "without a handshake over HTTP");
}

#[test]
fn each_request_that_must_not_get_in_is_refused_by_its_own_door() {
    let home = home();
    let said = told(&home, &PathBuf::from("python3"), DOORS);
    assert!(said.contains("29 requests were judged"), "{said}");
    if rustix::process::getuid().is_root() {
        assert!(said.contains("another user gets nothing"), "{said}");
    }
}

/// A command may leave processes behind when it ends, and a server among them would stay for good.
#[test]
fn the_server_ends_with_the_attempt_that_it_was_started_in() {
    let home = home();
    // The shell that starts it ends at once, as the one of an agent's tool does, and the server goes on.
    let mut gate = Gate::new(&home, "gate");
    let script = format!(
        "sh -c '\"$OUTLAST\" mcp --http >url & echo $! >pid'; until [ -s url ]; do sleep 0.02; done; {}",
        gate.pass()
    );
    let id = home.ok(&["run", "-d", "--", "sh", "-c", &script]);
    let read = |name: &str| fs::read_to_string(home.scratch().join(name)).unwrap_or_default();
    until("the server listens", || (!read("url").is_empty()).then_some(()));
    let pid: u32 = read("pid").trim().parse().expect("a number");
    home.crash_daemon();
    home.ok(&["daemon", "start"]);
    assert!(is_alive(pid), "it needs no daemon that stays the same");
    gate.open();
    assert_eq!(home.wait(&id), 0);
    until("the server is gone", || (!is_alive(pid)).then_some(()));
    until("nothing is left of the run", || {
        home.show(&id)["survivors"].as_array().is_none_or(Vec::is_empty).then_some(())
    });
    assert_sound(&home);
}

#[test]
fn outside_of_a_run_or_without_its_token_there_is_nothing_to_serve() {
    let home = home();
    let said = home.fails(2, &["mcp", "--http"]);
    assert!(said.contains("belongs to the attempt of a run"), "{said}");
    let said = home.fails(2, &["mcp", "--port", "1"]);
    assert!(said.contains("--http"), "{said}");
    let script = "env -u OUTLAST_TOKEN \"$OUTLAST\" mcp --http 2>&1; echo exit $?";
    let said = text(&home.output(&["run", "--", "sh", "-c", script]).stdout);
    assert!(said.contains("OUTLAST_TOKEN is not set") && said.contains("exit 2"), "{said}");
}
