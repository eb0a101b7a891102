//! Loop files as a person checks and imports them. No daemon is asked.

use std::fs;

use crate::harness::{Home, str_of, text};

/// A home with a loop file in the current directory.
fn with(file: &str) -> Home {
    let home = Home::new();
    fs::write(home.scratch().join("WORKFLOW.md"), file).expect("the test's directory is ours");
    home
}

const GOOD: &str = "---\nagent: { command: ./agent, max_turns: 5 }\nlimits: { run_timeout: 2h }\n---\nDo {{ task }}\n";

#[test]
fn conformance_17_7_the_file_in_this_directory_is_the_default() {
    let home = with(GOOD);
    let valid = |file: &str| {
        let here = home.scratch().display().to_string();
        format!(
            "{file} is valid, with 1 warning: agent exec (./agent), in {here}\n  \
             ends at 5 turns or 2h; blocks after 3 turns without progress; a turn: 1h; \
             silence: no limit; 5 tries; done by exit code 0 (no checks)"
        )
    };
    assert_eq!(home.ok(&["check"]), valid("WORKFLOW.md"));
    fs::rename(home.scratch().join("WORKFLOW.md"), home.scratch().join("other.md"))
        .expect("it is there");
    assert_eq!(home.ok(&["check", "other.md"]), valid("other.md"));
    let said = home.fails(2, &["check"]);
    assert!(said.starts_with("error: WORKFLOW.md: there is no such file\nhint: "), "{said}");
}

#[test]
fn a_problem_is_told_with_its_line_and_a_hint() {
    let home = with("---\nagent:\n  command: x\n  max_turns: many\n---\n");
    let said = home.fails(2, &["check"]);
    let first = said.lines().next().unwrap_or_default();
    assert_eq!(
        first,
        "error: WORKFLOW.md:4: agent.max_turns: must be a whole number, got \"many\""
    );
    assert!(said.contains("\nhint: "), "{said}");
    let output = home.output(&["check", "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!((&answer["ok"], &answer["problems"][0]["line"]), (&false.into(), &4.into()));
    assert_eq!(str_of(&answer["problems"][0], "code"), "wrong_type");
}

#[test]
fn keys_of_other_programs_are_warnings_until_they_are_errors() {
    let home = with("---\nagent: { command: x }\nweather: {}\n---\n");
    let output = home.output(&["check"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(text(&output.stderr).contains("warning: WORKFLOW.md:3: weather: unknown key\n"));
    assert!(home.fails(2, &["check", "--strict"]).contains("error: WORKFLOW.md:3: weather"));
}

#[test]
fn every_setting_says_where_it_comes_from() {
    let home = with(GOOD);
    fs::write(home.path().join("config.toml"), "[ceilings]\nmax_tokens = 9\n").expect("it is ours");
    let page = home.ok(&["check", "--explain"]);
    let row = |key: &str| {
        let row = page
            .lines()
            .find(|line| line.starts_with(key))
            .unwrap_or_else(|| panic!("{key}: {page}"));
        row.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("agent.max_turns"), "5 file, line 2");
    assert_eq!(row("limits.max_tokens"), "9 ceiling, config.toml line 2");
    assert_eq!(row("limits.turn_timeout"), "1h default");
    let settings = home.json(&["check", "--json"])["settings"].clone();
    let turn = settings.as_array().expect("a list").iter();
    let turn = turn.clone().find(|row| row["key"] == "limits.turn_timeout_ms").expect("a row");
    assert_eq!((str_of(turn, "value"), str_of(turn, "shown")), ("3600000", "1h"));
}

#[test]
fn the_operators_own_file_is_checked_too() {
    let home = with(GOOD);
    fs::write(home.path().join("config.toml"), "[ceilings]\nmax_tokens = \"few\"\n")
        .expect("it is ours");
    assert!(home.fails(2, &["check"]).contains("config.toml:2: ceilings.max_tokens"));
    let schema = home.json(&["check", "--schema", "config"]);
    assert_eq!(schema["properties"]["ceilings"]["type"], "object");
}

#[test]
fn an_import_is_written_where_no_file_is() {
    let home = with(
        "---\ntracker: { kind: linear }\ncodex: { command: codex app-server }\n---\nDo {{ issue.title }}\n",
    );
    let output = home.output(&["import", "symphony", "WORKFLOW.md", "-o", "new.md"]);
    assert_eq!(output.status.code(), Some(0));
    let said = text(&output.stderr);
    assert!(
        said.starts_with("wrote new.md\nleft out of WORKFLOW.md: tracker.kind (line 2): "),
        "{said}"
    );
    assert_eq!(home.output(&["check", "new.md"]).status.code(), Some(0));
    let before = fs::read(home.scratch().join("new.md")).expect("it was written");
    let said = home.fails(2, &["import", "symphony", "WORKFLOW.md", "-o", "new.md"]);
    assert!(said.starts_with("outlast: new.md exists\nhint: "), "{said}");
    assert_eq!(fs::read(home.scratch().join("new.md")).expect("it is still there"), before);
}

#[test]
fn a_file_that_is_not_there_cannot_be_imported() {
    let home = Home::new();
    let said = home.fails(2, &["import", "ace", "nope.md"]);
    assert!(said.contains("nope.md: there is no such file\nhint: "), "{said}");
}
