//! `outlast config`: which file, is it valid, what holds; and what `daemon status` and `doctor` say of it.

use std::fs;

use crate::harness::{Home, str_of, text};

#[test]
fn the_path_is_that_of_the_file_that_is_used() {
    let home = Home::new();
    let path = home.path().join("config.toml").display().to_string();
    assert_eq!(home.ok(&["config", "path"]), path);
    assert_eq!(home.ok(&["config", "check"]), format!("{path} does not exist; defaults hold"));
    fs::write(&path, "[concurrency]\nmax_runs = 3\n").expect("ours");
    assert_eq!(home.ok(&["config", "check"]), format!("{path} is valid"));
    let shown = home.ok(&["config", "show"]);
    let row = |key: &str| {
        let line = shown.lines().find(|line| line.starts_with(key)).expect("it is listed");
        line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(row("concurrency.max_runs "), ["concurrency.max_runs", "3", "line", "2"]);
    assert_eq!(row("log.level ").last().map(String::as_str), Some("default"));
    assert!(home.daemon_if_up().is_none(), "no daemon is needed for it");
}

#[test]
fn a_file_that_is_wrong_is_told_with_its_line_by_check_show_edit_and_status() {
    let home = Home::new();
    let path = home.path().join("config.toml");
    fs::write(&path, "[concurrency]\nmax_runs = \"three\"\n").expect("ours");
    for verb in ["check", "show"] {
        let said = home.fails(2, &["config", verb]);
        assert!(said.contains("config.toml:2") && said.contains("max_runs"), "{verb}: {said}");
        assert!(said.contains("hint: outlast config edit"), "{said}");
    }
    // What can be read is shown beside it.
    let shown = text(&home.output(&["config", "show"]).stdout);
    let row = shown.lines().find(|line| line.starts_with("concurrency.max_runs "));
    assert!(row.is_some_and(|row| row.ends_with("line 2, invalid")), "{shown}");
    assert!(shown.contains("log.level "), "{shown}");
    fs::write(home.scratch().join("ok.md"), "---\nagent: { command: 'true' }\n---\nhi\n")
        .expect("ours");
    let output = home.output(&["check", "ok.md"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("config.toml:2"), "{output:?}");
    assert!(text(&output.stdout).starts_with("ok.md is valid"), "{output:?}");
    let json = home.output(&["config", "check", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!((&json["ok"], &json["exists"]), (&false.into(), &true.into()));
    home.ok(&["daemon", "start"]);
    assert!(home.ok(&["daemon", "status"]).contains("NOT VALID"));
    let status = home.json(&["daemon", "status", "--json"]);
    assert_eq!(status["config"]["valid"], false);
    assert_eq!(str_of(&status["config"], "path"), path.display().to_string());
    fs::write(&path, "").expect("ours");
    assert!(home.ok(&["daemon", "status"]).contains("config.toml (valid)"));
}

#[test]
fn edit_opens_the_editor_with_its_options_and_checks_afterwards() {
    let home = Home::new();
    let path = home.path().join("config.toml");
    let editor = home.scratch().join("my editor");
    let script = "#!/bin/sh\n[ \"$1\" = -w ] || exit 9\necho '[concurrency]' >> \"$2\"\necho 'max_runs = 2' >> \"$2\"\n".to_string();
    fs::write(&editor, script).expect("ours");
    let made = home.command("chmod").arg("+x").arg(&editor).status().expect("there is a chmod");
    assert!(made.success());
    let edit = |editor: &str| {
        home.outlast(&["config", "edit"]).env("EDITOR", editor).output().expect("it starts")
    };
    let output = edit(&format!("'{}' -w", editor.display()));
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).ends_with("is valid\n"), "{output:?}");
    assert!(fs::read_to_string(&path).expect("it was made").contains("max_runs = 2"));
    let output = edit("sed -i s/max_runs/max_runz/");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stderr).contains("max_runz"), "{output:?}");
    let output = edit("false");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

#[test]
fn doctor_says_what_is_wrong_first_and_that_no_service_is_installed() {
    let home = Home::new();
    home.ok(&["daemon", "start"]);
    let page = home.ok(&["doctor"]);
    assert!(!page.contains("service: none is installed"), "nothing relies on a daemon: {page}");
    home.ok(&["schedule", "add", "nightly", "--cron", "0 3 * * *", "--", "true"]);
    let page = home.ok(&["doctor"]);
    let first = page.lines().next().unwrap_or_default();
    assert!(first.starts_with("warning  service: none is installed"), "{page}");
    assert!(
        page.contains("1 trigger will wait") && page.contains("hint: outlast daemon install"),
        "{page}"
    );
    let last = page.lines().last().unwrap_or_default();
    assert!(last.starts_with("ok ") && last.ends_with("checks"), "{page}");
}
