//! A run outlasts its terminal.

use crate::harness::{Home, str_of, text};

#[test]
fn run_detached_prints_the_id_alone() {
    let home = Home::new();
    let output = home.output(&["run", "-d", "--", "true"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let id = text(&output.stdout);
    assert_eq!(id.trim_end().len(), 12, "{id:?}");
    assert_eq!(id.lines().count(), 1);
    assert_eq!(home.wait(id.trim_end()), 0);
}

#[test]
fn run_attached_passes_on_output_and_outcome() {
    let home = Home::new();
    let output = home.output(&["run", "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(text(&output.stdout), "out\n");
    assert!(text(&output.stderr).starts_with("err\n"), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("exit code 7"), "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn show_says_what_happened() {
    let home = Home::new();
    let id = home.start("echo hello; exit 7");
    assert_eq!(home.wait(&id), 1);
    let run = home.show(&id);
    assert_eq!((str_of(&run, "state"), str_of(&run, "reason_code")), ("failed", "exit_code"));
    assert_eq!(run["exit"], serde_json::json!({"code": 7}));
    assert_eq!(str_of(&run, "outcome"), "exited");
    assert_eq!(run["output_bytes"], 6);
    assert_eq!(home.ok(&["logs", &id]), "hello");
}
