//! `outlast mcp`: the tools of a run, by the official SDKs of Python and TypeScript and by hostile lines.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::harness::{Home, lines, skip, str_of, text, until};
use crate::{node, python};

const STORY: &str = include_str!("mcp/story.py");
const STORY_OF_NODE: &str = include_str!("mcp/story.mjs");
const HOURS: &str = include_str!("mcp/hours.py");
const WATCHED: &str = include_str!("mcp/watched.py");
const CLIENT: &str = include_str!("mcp/client.py");
const FIFTY: &str = include_str!("mcp/fifty.py");
const HOSTILE: &str = include_str!("mcp/hostile.py");
const STATELESS: &str = include_str!("mcp/stateless.py");

/// The script as a file, beside the run, and the client that some scripts import.
fn script(home: &Home, name: &str, source: &str) -> PathBuf {
    fs::write(home.scratch().join("client.py"), CLIENT).expect("the scratch directory is ours");
    let path = home.scratch().join(name);
    fs::write(&path, source).expect("the scratch directory is ours");
    path
}

fn home() -> Home {
    let home = Home::new();
    let scratch = home.scratch();
    home.env("OUTLAST", env!("CARGO_BIN_EXE_outlast")).env("SCRATCH", scratch)
}

fn sdk() -> Option<PathBuf> {
    match python::with("mcp-sdk", &["mcp==1.30.0", "jsonschema==4.25.1"]) {
        Ok(python) => Some(python),
        Err(why) => {
            skip(&format!("no MCP SDK of Python: {why}"));
            None
        }
    }
}

#[test]
fn a_client_starts_reads_waits_spawns_and_loses_nothing_when_it_reconnects() {
    let Some(python) = sdk() else { return };
    let home = home();
    let story = script(&home, "story.py", STORY);
    let python = python.display().to_string();
    let story = story.display().to_string();
    let output = home.output(&["run", "--name", "parent", "--", &python, &story]);
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("the story is told"), "{said}");
    let parent = home.show("parent");
    assert_eq!(str_of(&parent, "summary"), "all is done", "{parent}");
    let id = str_of(&parent, "id").to_owned();
    let listed = home.events(&id).iter().filter(|event| event["what"] == "tools_listed").count();
    assert!(listed >= 1, "the journal has it that the tools were listed");
    let state = |name: &str| home.show(name)["state"].as_str().map(str::to_owned);
    until("the process ends with its run", || {
        (state("bound").as_deref() == Some("stopped")).then_some(())
    });
    assert_eq!(state("kept").as_deref(), Some("running"), "one that persists goes on");
    home.ok(&["stop", "--now", "kept"]);
}

#[test]
fn a_client_of_typescript_does_the_same() {
    let node = match node::with("mcp-sdk-node", &["@modelcontextprotocol/sdk@1.32.2"]) {
        Ok(node) => node,
        Err(why) => return skip(&format!("no MCP SDK of TypeScript: {why}")),
    };
    let home = home();
    let story = script(&home, "story.mjs", STORY_OF_NODE);
    // A module looks for packages beside and above its own file.
    std::os::unix::fs::symlink(node.join("node_modules"), home.scratch().join("node_modules"))
        .expect("the scratch directory is ours");
    let story = story.display().to_string();
    let output = home.output(&["run", "--name", "parent", "--", "node", &story]);
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("the story is told"), "{said}");
    assert_eq!(str_of(&home.show("parent"), "summary"), "all is done");
}

#[test]
fn a_client_of_the_protocol_without_a_handshake_is_understood() {
    let python = match python::with("mcp-sdk-2", &["mcp==2.3.0"]) {
        Ok(python) => python.display().to_string(),
        Err(why) => return skip(&format!("no MCP SDK of Python: {why}")),
    };
    let home = home();
    let story = script(&home, "stateless.py", STATELESS).display().to_string();
    let output = home.output(&["run", "--name", "parent", "--", &python, &story]);
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("the story is told"), "{said}");
    assert_eq!(str_of(&home.show("parent"), "summary"), "without a handshake");
}

#[test]
fn a_process_of_two_hours_is_looked_after_by_short_calls() {
    let home = home();
    let clock = home.scratch().join("clock");
    fs::write(&clock, "0").expect("the scratch directory is ours");
    let home = home.env("OUTLAST_FAKE_CLOCK_FILE", &clock);
    let hours = script(&home, "hours.py", HOURS).display().to_string();
    let output = home.output(&["run", "--", "python3", &hours]);
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("two hours have passed"), "{said}");
    let shown = home.show("hours");
    let (began, ended) = (str_of(&shown, "started_at"), str_of(&shown, "ended_at"));
    let minute = |at: &str| -> u64 {
        let clock = at.split_once('T').expect("a time").1;
        let of = |from: usize| clock[from..from + 2].parse::<u64>().expect("a number");
        of(0) * 60 + of(3)
    };
    let minutes = (minute(ended) + 24 * 60 - minute(began)) % (24 * 60);
    assert!((120..180).contains(&minutes), "{minutes} minutes: {shown}");
}

#[test]
fn a_line_of_a_process_that_matches_and_its_end_are_told_once_each() {
    let home = home();
    let watched = script(&home, "watched.py", WATCHED).display().to_string();
    let id = home.ok(&["run", "-d", "--", "python3", &watched]);
    let messages = || {
        let events = home.events(&id);
        let of_kind = events.into_iter().filter(|event| event["kind"] == "MessageReceived");
        of_kind.map(|event| str_of(&event, "text").to_owned()).collect::<Vec<_>>()
    };
    let make = |name: &str| fs::write(home.scratch().join(name), "").expect("it is ours");
    until("the match is told", || {
        messages().iter().any(|text| text.contains("listening on 80")).then_some(())
    });
    assert_eq!(messages().len(), 1, "{:?}", messages());
    make("end");
    until("the end is told", || (messages().len() >= 2).then_some(()));
    // Notices of the process that are still on their way would come before its run can be removed.
    until("every notice is delivered", || {
        (home.show("watched")["notices"]["pending"] == 0).then_some(())
    });
    make("over");
    assert_eq!(home.wait(&id), 0);
    let said = messages();
    assert_eq!(said.len(), 2, "its end is told as a child's and not as a notice too: {said:?}");
    assert!(said[1].contains("a child of this one, has ended as completed"), "{said:?}");
}

#[test]
fn two_hundred_malformed_and_hostile_lines_harm_nothing() {
    let home = home();
    let hostile = script(&home, "hostile.py", HOSTILE).display().to_string();
    let output = home.output(&["run", "--", "python3", &hostile]);
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("200 lines were answered"), "{said}");
}

#[test]
fn outside_of_a_run_there_is_nothing_to_serve() {
    let home = Home::new();
    let said = home.fails(2, &["mcp"]);
    assert!(said.contains("belongs to the attempt of a run"), "{said}");
}

#[test]
fn fifty_processes_of_two_runs_survive_three_daemons_and_each_run_sees_its_own() {
    let home = home();
    let fifty = script(&home, "fifty.py", FIFTY).display().to_string();
    let start = |name: &str| home.ok(&["run", "-d", "--name", name, "--", "python3", &fifty, name]);
    let runs = [start("left"), start("right")];
    for round in 1..=3 {
        let started = |name: &str| lines(&home.scratch().join(format!("{name}.started")));
        until("processes are started", || {
            (started("left") >= round * 5 && started("right") >= round * 5).then_some(())
        });
        home.crash_daemon();
        home.output(&["ps"]);
    }
    fs::write(home.scratch().join("go"), "").expect("the scratch directory is ours");
    for run in &runs {
        until("the run ends", || {
            let code = home.output(&["wait", run, "--timeout", "30s"]).status.code()?;
            (code != 7 && code != 124).then_some(())
        });
        let shown = home.show(run);
        let output = text(&home.output(&["logs", run]).stdout);
        assert_eq!(str_of(&shown, "state"), "completed", "{output}");
        let events = home.events(run);
        let of = |kind: &str| events.iter().filter(|event| event["kind"] == kind).count();
        assert_eq!((of("ChildSpawned"), of("ChildSettled")), (25, 25), "one notice each");
        let ends: Vec<&Value> =
            events.iter().filter(|event| event["kind"] == "MessageReceived").collect();
        assert_eq!(ends.len(), 25, "one message each");
    }
    crate::crash_matrix::assert_sound(&home, "after three daemons");
}
