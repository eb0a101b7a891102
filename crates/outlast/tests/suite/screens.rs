//! What the verbs print on a terminal: no row is wider than the window, and a person finds the way on.

use std::fs;

use crate::harness::{Gate, Home, text};
use crate::terminal::Terminal;

/// The screen of a terminal after a verb was run on it. A row that went on below itself was too wide.
fn shown(home: &Home, columns: u16, args: &[&str]) -> String {
    let mut terminal = Terminal::new(120, columns);
    terminal.start(home, args);
    terminal.status();
    let screen = terminal.screen();
    for row in 0..119 {
        let text = screen.rows(0, columns).nth(row.into()).unwrap_or_default();
        assert!(!screen.row_wrapped(row), "{args:?} at {columns} columns: {text}");
    }
    screen.contents()
}

/// A loop file whose agent is this script.
fn file(home: &Home, script: &str) -> String {
    let (path, agent) = (home.scratch().join("WORKFLOW.md"), home.scratch().join("agent.sh"));
    fs::write(&agent, script).expect("it is ours");
    let command = format!("sh {}", agent.display());
    let text = format!("---\nagent: {{kind: file, command: {command}}}\n---\nPort all of it.\n");
    fs::write(&path, text).expect("it is ours");
    path.display().to_string()
}

const LONG: &str = "a-name-that-is-longer-than-most-names-and-fits-nowhere";

#[test]
fn no_row_of_a_list_is_wider_than_the_window() {
    let home = Home::new();
    let config = "[budgets.day]\nmax_cost_usd = 50\nmax_tokens = 20000000\n\
        [sinks.a-sink-with-quite-a-name]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:9/hooks/of/some/length\"\n";
    fs::create_dir_all(home.path()).expect("it is ours");
    fs::write(home.path().join("config.toml"), config).expect("it is ours");
    let gate = Gate::new(&home, "gate");
    let question = "May I change mul to multiply? It may break callers, of which there are a lot.";
    let response = format!(r#"{{"status":"blocked","summary":"{question}"}}"#);
    let loop_file = file(&home, &format!("echo '{response}' > $OUTLAST_RESPONSE_FILE\n"));
    home.ok(&["run", "-d", "--name", LONG, "--", "sh", "-c", &gate.pass()]);
    home.ok(&["run", "-d", "--parent", LONG, "--", "sh", "-c", "exit 7"]);
    home.ok(&["run", "-d", "--name", "asks", "-f", &loop_file]);
    assert_eq!(home.wait("asks"), 3);
    home.ok(&[
        "schedule",
        "add",
        "nightly-build-of-everything",
        "--cron",
        "0 3 * * *",
        "--",
        "make",
        "check",
    ]);
    for columns in [80, 120] {
        for args in [
            &["ps", "-a"][..],
            &["sink", "ls"],
            &["trigger", "ls"],
            &["schedule", "ls"],
            &["budgets"],
            &["agents"],
            &["tree", LONG],
            &["events", "asks"],
            &["show", "asks"],
            &["show", LONG],
            &["show", LONG, "--limits"],
        ] {
            shown(&home, columns, args);
        }
    }
    let page = shown(&home, 80, &["show", "asks"]);
    assert!(page.lines().count() <= 24, "it fits a screen:\n{page}");
    assert_eq!(page.matches("May I change mul").count(), 2, "once, and once in its turn:\n{page}");
    assert!(page.contains("outlast answer asks 'TEXT'"), "{page}");
    let plain = shown(&home, 80, &["show", LONG]);
    assert!(!plain.contains("turn"), "a command has no turns:\n{plain}");
}

#[test]
fn an_empty_list_says_what_ended_and_how_to_see_it() {
    let home = Home::new();
    assert!(shown(&home, 80, &["ps"]).contains("no runs yet; start one: outlast run -- COMMAND"));
    let id = home.start("exit 0");
    home.wait(&id);
    let said = shown(&home, 80, &["ps"]);
    assert!(said.contains("nothing is running · 1 ended since yesterday: outlast ps -a"), "{said}");
    assert!(home.ok(&["ps"]).starts_with("ID "), "a script finds the head of the table");
    assert_eq!(home.ok(&["ps", "-q", "-n", "1"]), id);
    assert_eq!(
        home.ok(&["ps", "--since", "1h", "--format", "{{.id}} {{.state}}"]),
        format!("{id} completed")
    );
    assert!(home.fails(2, &["ps", "--format", "size"]).contains("there is no column \"size\""));
}

/// Found by a new user: the retries of a plain command were mute, and nothing said which run this was.
#[test]
fn an_attached_command_says_its_name_and_its_retries() {
    let home = Home::new();
    let script = [
        "run",
        "--name",
        "flaky",
        "--retry",
        "1",
        "--backoff",
        "10ms",
        "--",
        "sh",
        "-c",
        "echo try; exit 4",
    ];
    let said = home.fails(1, &script);
    assert!(said.contains("attempt 1 exited with code 4, retry in "), "{said}");
    assert!(said.ends_with("outlast: run flaky failed: exit code 4\n"), "{said}");
    let seen = shown(&home, 80, &["run", "--name", "again", "--", "true"]);
    assert!(seen.contains("run again (") && seen.contains("ctrl-\\ leaves it running"), "{seen}");
}

/// `sh -c 'sleep 1000 &'` leaves a child that has not become `sleep` yet when its parent ends.
#[test]
fn a_survivor_is_shown_with_its_own_command_line() {
    let home = Home::new();
    // The shim gives a child a moment to become its own program; how long a busy machine takes for that is not known.
    let script = "sleep 1000 & until grep -qa ^sleep /proc/$!/cmdline; do :; done; exit 0";
    let id = home.ok(&["run", "-d", "--name", "hog", "--", "sh", "-c", script]);
    home.wait(&id);
    let run = home.show("hog");
    assert_eq!(run["survivors"][0]["command"], "sleep 1000", "{run}");
    let said = text(&home.output(&["wait", "hog"]).stderr);
    assert!(said.contains("hint: outlast stop hog"), "{said}");
    assert_eq!(home.ok(&["stop", "hog"]), "killed 1 leftover process of hog");
}

/// `while read` in a shell takes no line without an end.
#[test]
fn the_last_line_of_a_prompt_is_a_line() {
    let home = Home::new();
    let path = file(&home, "exit 0\n");
    let id = home.ok(&["run", "-d", "-f", &path]);
    let prompt = crate::harness::until("the prompt is there", || {
        fs::read_to_string(home.attempt_dir(&id, 1, 1).join("prompt.md")).ok()
    });
    assert!(prompt.ends_with(".\n"), "{prompt:?}");
    home.ok(&["stop", "--now", &id]);
}

/// Found by a new user: a blocked run keeps its name, and `rerun` only said to wait for its end.
#[test]
fn a_rerun_of_a_blocked_run_says_how_to_free_its_name() {
    let home = Home::new();
    let script = r#"echo '{"status":"blocked","summary":"left?"}' > $OUTLAST_RESPONSE_FILE"#;
    let path = file(&home, &format!("{script}\n"));
    home.ok(&["run", "-d", "--name", "asks", "-f", &path]);
    assert_eq!(home.wait("asks"), 3);
    let said = home.fails(2, &["rerun", "-d", "asks"]);
    assert!(
        said.contains("hint: stop it first") && said.contains("\n  outlast stop asks\n"),
        "{said}"
    );
    home.ok(&["stop", "asks"]);
    home.ok(&["rerun", "-d", "asks"]);
}

/// Found by a new user: the page of a failed run had nothing to type, and lists of what was removed had ids.
#[test]
fn a_failed_run_can_be_run_again_from_its_page_and_is_removed_by_its_name() {
    let home = Home::new();
    home.ok(&["run", "-d", "--name", "train", "--", "sh", "-c", "exit 7"]);
    home.wait("train");
    let page = home.ok(&["show", "train"]);
    assert!(page.contains("do         outlast rerun train"), "{page}");
    let page = home.ok(&["gc", "--dry-run", "--older-than", "0s"]);
    assert!(page.contains("would remove train: ") && page.contains("would remove 1 run"), "{page}");
    assert_eq!(home.ok(&["rm", "--state", "failed"]), "removed train");
}

/// Found by a new user: the report offered the shortened address of a sink, which was refused.
#[test]
fn a_sink_is_tested_by_the_address_that_lists_show() {
    let home = Home::new();
    home.ok(&[
        "run",
        "-d",
        "--name",
        "x",
        "--notify",
        "webhook:http://127.0.0.1:9/secret",
        "--",
        "true",
    ]);
    let shown = "webhook:http://127.0.0.1:9/…";
    crate::harness::until("it fails", || {
        let sinks = home.json(&["sink", "ls", "--json"]);
        (sinks[0]["name"] == shown && sinks[0]["failing_since"].is_string()).then_some(())
    });
    let page = text(&home.output(&["report"]).stdout);
    assert!(page.contains(&format!("outlast sink test '{shown}'")), "{page}");
    let output = home.output(&["sink", "test", shown]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stdout).starts_with("not delivered to webhook:"), "{output:?}");
}

/// Found by a new user: on a terminal, `attach` began with the last turn, and `logs --tail` had no more than that.
#[test]
fn the_last_lines_are_those_of_all_turns() {
    let home = Home::new();
    let status = "s=continue; [ $OUTLAST_TURN = 3 ] && s=blocked";
    let script = format!(
        "echo line of turn $OUTLAST_TURN; {status}\necho '{{\"status\":\"'$s'\",\"summary\":\"x\"}}' > $OUTLAST_RESPONSE_FILE\n"
    );
    let path = file(&home, &script);
    home.ok(&["run", "-d", "--name", "turns", "-f", &path]);
    assert_eq!(home.wait("turns"), 3);
    assert_eq!(home.ok(&["logs", "turns", "--tail", "2"]), "line of turn 2\nline of turn 3");
    assert_eq!(home.ok(&["logs", "turns", "--tail", "0"]), "");
    assert_eq!(home.ok(&["logs", "turns", "--tail", "99"]).lines().count(), 3);
    let seen = shown(&home, 80, &["attach", "turns"]);
    for turn in 1..=3 {
        assert!(seen.contains(&format!("line of turn {turn}")), "{seen}");
    }
}

/// Found by a new user: `init` listed nothing where no agent was installed, and ended at a bad answer.
#[test]
fn init_lists_what_is_not_installed_and_asks_again() {
    let home = Home::new().env("PATH", "/usr/bin:/bin");
    let mut terminal = Terminal::new(40, 80);
    terminal.start(&home, &["init"]);
    terminal.until_shows("claude     not installed");
    terminal.until_shows("Agent [script]:");
    terminal.press(b"nope\r");
    terminal.until_shows("\"nope\" is none of these");
    terminal.press(b"script\r");
    terminal.until_shows("whether it is done");
    terminal.press(b"-\r");
    terminal.until_shows("Task");
    terminal.press(b"\r");
    assert_eq!(terminal.code(), 0, "{}", terminal.screen().contents());
    let said = terminal.screen().contents();
    assert!(said.contains("is a placeholder"), "{said}");
    let checked = text(&home.output(&["check"]).stderr);
    assert!(checked.contains("placeholder of outlast init"), "{checked}");
}
