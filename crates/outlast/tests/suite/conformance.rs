//! Symphony's list, as far as it is about the program: files written for it check, explain and import.

use crate::harness::{Home, str_of, text};
use crate::hosted::{becomes, put, starting};

/// A file as one that was written for Symphony looks.
const SYMPHONY: &str = r#"---
tracker:
  kind: linear
  provider: { project_slug: web, api_key: $LINEAR_API_KEY }
  active_states: [Todo, In Progress]
polling: { interval_ms: 5000 }
workspace: { root: ./workspaces }
hooks:
  after_create: echo made
  timeout_ms: 60000
agent: { max_turns: 20, max_concurrent_agents: 2 }
codex: { command: codex app-server, stall_timeout_ms: 300000 }
---
You work on {{ issue.identifier }}: {{ issue.title }}
{% if attempt %}This is attempt {{ attempt }}.{% endif %}
"#;

fn with(file: &str) -> Home {
    let home = Home::new();
    put(&home.scratch().join("WORKFLOW.md"), file);
    home
}

#[test]
fn conformance_17_7_the_program_checks_and_says_so_in_its_exit_code() {
    let home = with("---\nagent: { command: ./agent }\n---\nDo {{ task }}\n");
    home.ok(&["check"]);
    home.ok(&["check", "./WORKFLOW.md"]);
    home.ok(&["check", "--strict", "--json"]);
    let said = home.fails(2, &["check", "nowhere.md"]);
    assert!(said.contains("nowhere.md") && said.contains("hint: "), "{said}");
    assert!(!home.state().exists(), "nothing is started to check a file");
}

#[test]
fn a_schema_that_asks_for_what_is_not_checked_is_refused_by_check_and_by_run() {
    let home = with(
        "---\nagent: { command: ./agent }\ntools:\n  - name: fetch\n    command: [ls]\n    input_schema:\n      \
         type: object\n      properties:\n        url: { type: string, format: uri }\n---\nDo {{ task }}\n",
    );
    let said = home.fails(2, &["check"]);
    assert!(said.contains("WORKFLOW.md:9: tools[0].input_schema.properties.url.format"), "{said}");
    assert!(said.contains("hint: known are type, enum"), "{said}");
    let said = home.fails(2, &["run", "-d", "-f", "WORKFLOW.md"]);
    assert!(said.contains("properties.url.format"), "{said}");
}

#[test]
fn conformance_17_1_a_file_written_for_symphony_checks_fine() {
    let home = with(SYMPHONY);
    let report = home.json(&["check", "--json"]);
    assert_eq!((&report["ok"], &report["problems"]), (&true.into(), &serde_json::json!([])));
    let settings = report["settings"].as_array().expect("a list");
    let value = |key: &str| {
        let found = settings.iter().find(|it| it["key"] == key);
        found.unwrap_or_else(|| panic!("{key}: {settings:?}"))
    };
    for (key, expected, line) in [
        ("agent.max_turns", "20", Some(11)),
        ("agent.kind", "codex", None),
        ("agent.command", "codex app-server", Some(12)),
        ("workspace.strategy", "dir", None),
        ("limits.stall_window_ms", "300000", Some(12)),
    ] {
        assert_eq!(str_of(value(key), "value"), expected, "{key}");
        assert_eq!(value(key)["line"].as_u64(), line, "{key}");
    }
    let page = home.ok(&["check", "--explain"]);
    assert!(page.contains("file, line 11") && page.contains("default"), "{page}");
    // Its own keys are known, so that strictness has nothing against them.
    home.ok(&["check", "--strict"]);
}

#[test]
fn conformance_17_7_a_file_written_for_symphony_runs_with_another_agent() {
    let home = with(SYMPHONY);
    let file = home.scratch().join("WORKFLOW.md").display().to_string();
    let script = "cat \"$OUTLAST_PROMPT_FILE\" >\"$HOME/prompt\"";
    let flags =
        ["--agent", "exec", "--name", "WEB-7", "--task", "fix it", "--", "sh", "-c", script];
    let id = home.ok(&starting(&home, &file, &flags));
    let run = becomes(&home, &id, "completed", "done");
    assert_eq!(str_of(&run["agent"], "kind"), "exec");
    assert!(str_of(&run, "workspace").ends_with("/workspaces/WEB-7"), "{run:#}");
    let prompt = std::fs::read_to_string(home.scratch().join("prompt")).expect("it ran");
    assert!(prompt.starts_with("You work on WEB-7: fix it"), "{prompt}");
}

#[test]
fn conformance_17_6_what_is_odd_is_told_to_whoever_starts_it() {
    let home = with("---\nagent: { command: 'true' }\nweather: {}\n---\n");
    let file = home.scratch().join("WORKFLOW.md").display().to_string();
    let said = home.output(&starting(&home, &file, &[]));
    assert!(said.status.success(), "{said:?}");
    assert_eq!(text(&said.stdout).trim_end().len(), 12, "the id alone");
    assert!(
        text(&said.stderr).contains("warning: WORKFLOW.md:3: weather: unknown key\n"),
        "{said:?}"
    );
}

#[test]
fn a_file_for_symphony_is_imported_and_what_has_no_place_is_listed() {
    let home = with(SYMPHONY);
    let report = home.json(&["import", "symphony", "WORKFLOW.md", "--json"]);
    put(&home.scratch().join("new.md"), str_of(&report, "text"));
    let unmapped = report["unmapped"].as_array().expect("a list");
    let listed = |key: &str| unmapped.iter().find(|it| it["key"] == key);
    let tracker = listed("tracker.kind").unwrap_or_else(|| panic!("{unmapped:?}"));
    assert_eq!(tracker["line"], 3);
    assert!(!str_of(tracker, "why").is_empty());
    assert!(listed("polling.interval_ms").is_some(), "{unmapped:?}");
    let checked = home.json(&["check", "new.md", "--strict", "--json"]);
    assert_eq!(checked["ok"], true, "{checked:#}");
    let turns = checked["settings"].as_array().expect("a list");
    let turns = turns.iter().find(|it| it["key"] == "agent.max_turns").expect("it is a setting");
    assert_eq!((str_of(turns, "value"), str_of(turns, "from")), ("20", "workflow"));
}

#[test]
fn a_file_for_ace_is_imported_and_what_has_no_place_is_listed() {
    let home = with(
        "---\nruntime: { mode: unattended }\nexecutor:\n  command: [sh, agent.sh]\n  max_turns: 7\n  mood: calm\nautonomy: { stop: [test -e done] }\n---\nDo the rounds\n",
    );
    let said = home.output(&["import", "ace", "WORKFLOW.md", "-o", "new.md"]);
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    let left_out = text(&said.stderr);
    assert_eq!(
        left_out,
        "wrote new.md\nleft out of WORKFLOW.md: executor.mood (line 6): no equivalent in Outlast\n"
    );
    // ACE's own names for the files are aliases, so its agents run as they are.
    let agent = "grep -q 'Do the rounds' \"$ACE_RUNTIME_REQUEST_FILE\" && touch done && printf '{\"status\":\"done\",\"summary\":\"round\"}' >\"$ACE_RUNTIME_RESPONSE_FILE\"";
    put(&home.scratch().join("agent.sh"), agent);
    let id = home.ok(&["run", "-d", "-f", "new.md"]);
    let run = becomes(&home, &id, "completed", "done");
    assert_eq!((str_of(&run, "summary"), &run["limits"]["max_turns"]["max"]), ("round", &7.into()));
    assert_eq!(str_of(&run["agent"], "kind"), "file");
}
