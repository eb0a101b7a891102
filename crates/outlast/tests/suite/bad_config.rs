//! Files that are wrong: said with the line and a hint, before anything starts.

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Home, str_of, text};
use crate::hosted::{becomes, configure, file, put, refused, start, starting};

/// A loop file with this front matter.
fn with(home: &Home, front: &str, prompt: &str) -> String {
    let path = home.scratch().join("WORKFLOW.md");
    put(&path, &format!("---\n{front}\n---\n{prompt}\n"));
    path.display().to_string()
}

fn assert_no_runs(home: &Home) {
    assert_eq!(home.json(&["ps", "-a", "--json"]), json!([]));
}

#[test]
fn a_file_that_is_wrong_starts_nothing_and_says_where_and_what_to_do() {
    let home = Home::new();
    configure(&home, "[ceilings]\nmax_turns = 5\n");
    let agent = "agent:\n  command: x";
    let front = |more: &str| format!("{agent}\n{more}");
    for (code, line, front, prompt) in [
        ("wrong_type", 4, front("limits: {max_attempts: often}"), ""),
        ("wrong_type", 4, front("hooks: [a, b]"), ""),
        ("unknown_kind", 2, "agent: {kind: magic, command: x}".to_owned(), ""),
        ("negative_limit", 4, front("limits: {run_timeout_ms: -5}"), ""),
        ("workspace_escapes", 4, front("workspace: {root: ../../elsewhere}"), ""),
        ("ceiling_exceeded", 4, front("  max_turns: 9"), ""),
        ("unknown_sink", 4, front("output: {emit_to: [pager]}"), ""),
        ("template_render_error", 6, agent.to_owned(), "Hello\n{{ nothing }}"),
        ("template_parse_error", 5, agent.to_owned(), "{% if task %}never closed"),
        ("workflow_parse_error", 3, "agent:\n\tcommand: x".to_owned(), ""),
    ] {
        let file = with(&home, &front, prompt);
        let flags = ["--json"];
        let error = refused(&home, &starting(&home, &file, &flags));
        let message = str_of(&error, "message");
        assert!(message.contains(&format!("WORKFLOW.md:{line}")), "{code}: {error:#}");
        // What is no YAML at all says by itself what it lacks.
        let has_hint = error["hint"].is_string() || code == "workflow_parse_error";
        assert!(has_hint, "{code}: {error:#}");
        assert_eq!(str_of(&error, "code"), code, "{error:#}");
        let said = home.fails(2, &starting(&home, &file, &[]));
        assert!(
            said.starts_with("outlast: ") && said.contains("\nhint: ") == error["hint"].is_string(),
            "{code}: {said}"
        );
    }
    assert_no_runs(&home);
    assert!(fs::read_dir(home.state().join("runs")).map_or(0, Iterator::count) == 0);
}

#[test]
fn a_file_that_cannot_be_read_starts_nothing() {
    let home = Home::new();
    fs::create_dir(home.scratch().join("directory.md")).expect("the scratch directory is ours");
    fs::write(home.scratch().join("binary.md"), [0xff, 0xfe, 0x00]).expect("it is ours");
    for (code, name) in [
        ("missing_workflow_file", "none.md"),
        ("unreadable_file", "directory.md"),
        ("not_utf8", "binary.md"),
    ] {
        let error = refused(&home, &["run", "-d", "--json", "-f", name]);
        assert_eq!(str_of(&error, "code"), code);
        assert!(str_of(&error, "message").contains(name), "{error}");
    }
    assert_no_runs(&home);
}

#[test]
fn what_is_wrong_on_the_command_line_starts_nothing_either() {
    let home = Home::new();
    configure(&home, "[ceilings]\nmax_turns = 5\n");
    let file = file(&home, "loop", "say done x", "");
    let error = refused(&home, &starting(&home, &file, &["--json", "--max-turns", "6"]));
    assert_eq!(str_of(&error, "code"), "ceiling_exceeded");
    assert!(str_of(&error, "message").contains("config.toml:2"), "{error}");
    let error = refused(&home, &starting(&home, &file, &["--json", "--agent", "magic"]));
    assert_eq!(str_of(&error, "code"), "unknown_kind");
    assert_no_runs(&home);
}

/// What `doctor` has to say about the config.
fn findings(home: &Home) -> Vec<Value> {
    let report: Value =
        serde_json::from_slice(&home.output(&["doctor", "--json"]).stdout).expect("it is JSON");
    let all = report["findings"].as_array().expect("a list").clone();
    all.into_iter().filter(|it| it["subject"] == "config").collect()
}

#[test]
fn a_config_that_is_wrong_from_the_start_is_shown_and_lets_nothing_start() {
    let home = Home::new();
    configure(&home, "[ceilings]\nmax_turns = \"few\"\n");
    home.ok(&["daemon", "start"]);
    let found = findings(&home);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(str_of(&found[0], "level"), "problem");
    assert!(str_of(&found[0], "message").contains("config.toml:2"), "{found:?}");
    let file = file(&home, "loop", "say done x", "");
    let many = starting(&home, &file, &["--json", "--max-turns", "9"]);
    let error = refused(&home, &many);
    assert!(str_of(&error, "message").contains("config.toml:2"), "{error}");
    assert_no_runs(&home);
    let page = text(&home.output(&["doctor"]).stdout);
    assert!(page.contains("config.toml:2"), "{page}");
    configure(&home, "[ceilings]\nmax_turns = 9\n");
    let id = start(&home, &file, &["--max-turns", "9"]);
    becomes(&home, &id, "completed", "done");
}

#[test]
fn a_config_that_becomes_wrong_leaves_the_last_good_one_in_force() {
    let home = Home::new();
    configure(&home, "[ceilings]\nmax_turns = 5\n");
    let file = file(&home, "loop", "say done x", "");
    let too_many = starting(&home, &file, &["--json", "--max-turns", "6"]);
    assert_eq!(str_of(&refused(&home, &too_many), "code"), "ceiling_exceeded");
    for bad in ["[ceilings]\nmax_turns = 50\nmax_tokens = -1\n", "[ceilings\n"] {
        configure(&home, bad);
        assert_eq!(str_of(&refused(&home, &too_many), "code"), "ceiling_exceeded");
        let found = findings(&home);
        let line = if bad.contains("tokens") { "config.toml:3" } else { "config.toml:1" };
        assert!(str_of(&found[0], "message").contains(line), "{found:?}");
        let id = start(&home, &file, &["--max-turns", "5"]);
        becomes(&home, &id, "completed", "done");
    }
    configure(&home, "[ceilings]\nmax_turns = 50\n");
    assert_eq!(findings(&home), Vec::<Value>::new());
    let id = start(&home, &file, &["--max-turns", "6"]);
    becomes(&home, &id, "completed", "done");
}
