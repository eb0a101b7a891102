//! Files of others, rewritten: what comes out loads, and means the same.

mod support;

use std::path::Path;

use outlast_workflow::Source;
use outlast_workflow::import::{Imported, ace, symphony};
use support::{effective, loaded};

const SYMPHONY: &str = "---\n\
    tracker:\n  kind: linear\n  project_slug: demo\n\
    polling: { interval_ms: 5000 }\n\
    workspace: { root: ~/code/spaces }\n\
    hooks:\n  after_create: |\n    git clone --depth 1 \"$REPO\" .\n    make setup\n  before_remove: \"echo 'bye: now'\"\n\
    agent: { max_concurrent_agents: 4, max_turns: 9, max_retry_backoff_ms: 1000 }\n\
    codex:\n  command: codex --model x app-server\n  approval_policy: never\n  turn_timeout_ms: 200000\n  stall_timeout_ms: 250000\n\
    ---\n\nWork on {{ issue.identifier }}{% if attempt %} again{% endif %}.\n";

fn source(text: &str) -> Source<'_> {
    Source { path: Path::new("/repo/WORKFLOW.md"), text }
}

fn keys(imported: &Imported) -> Vec<(&str, usize)> {
    imported.unmapped.iter().map(|unmapped| (unmapped.key.as_str(), unmapped.line)).collect()
}

#[test]
fn a_symphony_file_loads_as_it_is() {
    let found = loaded(SYMPHONY);
    assert!(
        found.warnings.iter().all(|warning| warning.code.word() == "no_effect"),
        "{:?}",
        found.warnings
    );
    assert_eq!(found.effective.limits.stall_window_ms, Some(200_000));
}

#[test]
fn an_imported_symphony_file_means_the_same() {
    let imported = symphony(&source(SYMPHONY)).unwrap();
    let (before, after) = (effective(SYMPHONY), effective(&imported.text));
    assert_eq!(after.agent, before.agent);
    assert_eq!(after.hooks, before.hooks);
    assert_eq!(after.limits, before.limits);
    assert_eq!(after.retry, before.retry);
    assert_eq!(after.queue, before.queue);
    assert_eq!((after.strategy, &after.root), (before.strategy, &before.root));
    assert_eq!(after.workflow.unwrap().prompt, before.workflow.unwrap().prompt);
    assert_eq!(loaded(&imported.text).warnings, []);
    assert_eq!(
        keys(&imported),
        [
            ("tracker.kind", 3),
            ("tracker.project_slug", 4),
            ("polling.interval_ms", 5),
            ("codex.approval_policy", 15),
            ("codex.turn_timeout_ms", 16)
        ]
    );
}

#[test]
fn an_imported_ace_profile_runs_its_command_as_a_file_agent() {
    let text = "---\nruntime: { mode: unattended }\nexecutor:\n  command: \"node agent.js\"\n  max_turns: 6\n  turn_timeout_ms: 300000\n\
        autonomy:\n  before_run: [\"test -d src\"]\n  stop: [npm test]\n  level: high\ncontinuity: { recall: true }\n---\nDo {{ task }}\n";
    let imported = ace(&source(text)).unwrap();
    let found = effective(&imported.text);
    assert_eq!(
        (found.agent.kind.as_str(), found.agent.command.join(" ")),
        ("file", "sh -c node agent.js".to_owned())
    );
    assert_eq!((found.limits.max_turns, found.limits.turn_timeout_ms), (Some(6), Some(300_000)));
    assert_eq!(
        (found.checks.before_run, found.checks.done),
        (vec!["test -d src".to_owned()], vec!["npm test".to_owned()])
    );
    assert_eq!(keys(&imported), [("autonomy.level", 10), ("continuity.recall", 11)]);
}

#[test]
fn a_profile_with_a_person_in_it_is_refused() {
    let problems = ace(&source("---\nruntime: { mode: interactive }\n---\n")).unwrap_err();
    assert_eq!((problems[0].line, problems[0].key.as_deref()), (Some(2), Some("runtime.mode")));
}

#[test]
fn a_prompt_that_cannot_be_rendered_is_told_of_and_kept() {
    let imported =
        ace(&source("---\nexecutor: { command: x }\n---\nRun {{ session_id }}\n")).unwrap();
    assert_eq!(keys(&imported), [("prompt", 4)]);
    assert!(imported.text.ends_with("Run {{ session_id }}\n"));
}

#[test]
fn an_imported_file_without_a_root_keeps_out_of_the_persons_directory() {
    let imported = symphony(&source("---\ntracker: { kind: a }\n---\nhi\n")).unwrap();
    assert_eq!(effective(&imported.text).strategy, outlast_engine::Strategy::Dir);
}
