//! The cases of Symphony's conformance list that are about the file, each under its number.

mod support;

use std::io::ErrorKind;
use std::path::Path;

use outlast_engine::Strategy;
use outlast_workflow::template::{self, Variables};
use outlast_workflow::{LastGood, News, Problem, Stamp, decode, path};
use support::{effective, loaded, refused};

const STAMP: Stamp = Stamp { device: 1, inode: 1, bytes: 1, modified_ns: 1 };

fn max_turns(text: &str) -> Result<Option<u32>, Vec<Problem>> {
    let loaded = support::load_with(text, &Default::default(), &Default::default())?;
    Ok(loaded.effective.limits.max_turns)
}

fn with_turns(turns: &str) -> String {
    format!("---\nagent: {{ command: x, max_turns: {turns} }}\n---\n")
}

#[test]
fn conformance_17_1_a_named_path_goes_before_the_default() {
    let here = Path::new("/here");
    assert_eq!(path(Some(Path::new("other.md")), here), Path::new("/here/other.md"));
    assert_eq!(path(Some(Path::new("/x/other.md")), here), Path::new("/x/other.md"));
    assert_eq!(path(None, here), Path::new("/here/WORKFLOW.md"));
}

#[test]
fn conformance_17_1_a_change_is_noticed_and_read_again() {
    let mut file = LastGood::new(Path::new("WORKFLOW.md"));
    assert!(file.is_news(Some(&STAMP)));
    assert_eq!(file.reload(Some(STAMP), Ok(with_turns("1").into()), max_turns), News::Changed);
    assert_eq!(file.good(), Some(&Some(1)));
    assert!(!file.is_news(Some(&STAMP)));
    let later = Stamp { modified_ns: 2, ..STAMP };
    assert!(file.is_news(Some(&later)));
    assert_eq!(file.reload(Some(later), Ok(with_turns("1").into()), max_turns), News::None);
    assert_eq!(file.reload(Some(STAMP), Ok(with_turns("2").into()), max_turns), News::Changed);
    assert_eq!(file.good(), Some(&Some(2)));
}

#[test]
fn conformance_17_1_an_invalid_reload_keeps_the_last_good() {
    let mut file = LastGood::new(Path::new("WORKFLOW.md"));
    file.reload(Some(STAMP), Ok(with_turns("1").into()), max_turns);
    assert_eq!(file.reload(Some(STAMP), Ok(with_turns("many").into()), max_turns), News::Refused);
    assert_eq!((file.good(), file.problems()[0].code.word()), (Some(&Some(1)), "wrong_type"));
    assert_eq!(file.reload(None, Err(ErrorKind::NotFound), max_turns), News::Refused);
    assert_eq!(
        (file.good(), file.problems()[0].code.word()),
        (Some(&Some(1)), "missing_workflow_file")
    );
    assert_eq!(file.reload(Some(STAMP), Ok(with_turns("3").into()), max_turns), News::Changed);
    assert_eq!((file.good(), file.problems()), (Some(&Some(3)), &[][..]));
}

#[test]
fn conformance_17_1_a_missing_file_is_a_typed_error() {
    let problem = decode(Path::new("nope.md"), Err(ErrorKind::NotFound)).unwrap_err();
    assert_eq!(problem.code.word(), "missing_workflow_file");
    assert!(problem.hint.is_some());
}

#[test]
fn conformance_17_1_bad_yaml_is_a_typed_error() {
    let problems = refused("---\nagent: [unclosed\n---\nhi\n");
    assert_eq!(problems[0].code.word(), "workflow_parse_error");
    assert!(problems[0].line.is_some());
    let twice = refused("---\nhooks: {}\nagent: {}\nhooks: {}\n---\n");
    assert_eq!((twice[0].code.word(), twice[0].line), ("workflow_parse_error", Some(4)));
}

#[test]
fn conformance_17_1_front_matter_that_is_no_map_is_a_typed_error() {
    for text in ["---\n- a\n- b\n---\nhi\n", "---\njust words\n---\n", "---\n5\n---\n"] {
        let problems = refused(text);
        assert_eq!(
            (problems[0].code.word(), problems[0].line),
            ("workflow_front_matter_not_a_map", Some(2))
        );
    }
}

#[test]
fn conformance_17_1_defaults_hold_where_nothing_is_said() {
    let found = effective("---\ntracker: { kind: linear }\n---\nDo {{ issue.title }}\n");
    assert_eq!(found.agent.kind, "codex");
    assert_eq!(found.agent.command, ["sh", "-c", "codex app-server"]);
    assert_eq!(found.limits.max_turns, Some(20));
    assert_eq!(found.limits.stall_window_ms, Some(300_000));
    assert_eq!(found.retry.max_backoff_ms, 300_000);
    assert_eq!(found.hooks.timeout_ms, Some(60_000));
    assert_eq!(found.strategy, Strategy::Dir);
    assert_eq!(found.root.as_deref(), Some(Path::new("/tmp/symphony_workspaces")));
    assert_eq!(found.tracker.unwrap().polling_interval_ms, 30_000);
}

#[test]
fn conformance_17_1_the_trackers_kind_is_read() {
    let tracker = effective("---\ntracker: { kind: linear }\n---\n").tracker.unwrap();
    assert_eq!(tracker.kind.as_deref(), Some("linear"));
    assert_eq!(refused("---\ntracker: { kind: 5 }\n---\n")[0].code.word(), "wrong_type");
}

#[test]
fn conformance_17_1_the_providers_own_keys_are_preserved() {
    let text = "---\ntracker:\n  kind: linear\n  provider: { project: p-1, odd: { deep: [1, two] } }\n---\n";
    let found = loaded(text);
    assert!(
        found.warnings.iter().all(|warning| warning.code.word() == "no_effect"),
        "{:?}",
        found.warnings
    );
    let settings = found.effective.tracker.unwrap().settings;
    assert!(settings.contains(r#""odd":{"deep":[1,"two"]}"#), "{settings}");
}

#[test]
fn conformance_17_1_a_variable_stands_for_a_secret_and_a_path() {
    let codes = |text: &str| {
        loaded(text).warnings.iter().map(|warning| warning.code.word()).collect::<Vec<_>>()
    };
    assert_eq!(codes("---\ntracker: { kind: a, api_key: $TRACKER_KEY }\n---\n"), ["no_effect"]);
    let missing = codes("---\ntracker: { kind: a, api_key: $EMPTY }\n---\n");
    assert_eq!(missing, ["no_effect", "missing_secret"]);
    let nested = codes("---\ntracker: { kind: a, provider: { api_key: $NOPE } }\n---\n");
    assert_eq!(nested, ["no_effect", "missing_secret"]);
    let found = effective(
        "---\ntracker: { kind: a, api_key: $TRACKER_KEY }\nworkspace: { root: $ROOM/w }\n---\n",
    );
    assert_eq!(found.root.as_deref(), Some(Path::new("/room/w")));
    assert!(
        !found.tracker.unwrap().settings.contains("secret"),
        "a secret is not pinned with the run"
    );
}

#[test]
fn conformance_17_1_a_tilde_is_home() {
    let found = effective(&support::exec("workspace: { root: ~/runs }\n"));
    assert_eq!(found.root.as_deref(), Some(Path::new("/people/ada/runs")));
    assert_eq!(found.strategy, Strategy::Dir);
    let beside = effective(&support::exec("workspace: { root: runs }\n"));
    assert_eq!(beside.root.as_deref(), Some(Path::new("/repo/runs")));
}

#[test]
fn conformance_17_1_the_command_is_kept_to_the_letter() {
    let line = "codex --config '$HOME/x' \\\"a\\\" ~/y app-server | tee log";
    let found = effective(&format!("---\ncodex:\n  command: {line}\n---\n"));
    assert_eq!(found.agent.command, ["sh", "-c", line]);
    let words = effective("---\nagent: { kind: exec, command: [./a, '$B'] }\n---\n");
    assert_eq!(words.agent.command, ["./a", "$B"]);
}

#[test]
fn conformance_17_1_the_map_by_state_is_normalised_and_bad_entries_ignored() {
    let text = "---\ntracker: { kind: a }\nagent:\n  max_concurrent_agents: 3\n  \
                max_concurrent_agents_by_state: { Todo: 2, Doing: 0, Odd: many, Minus: -1 }\n---\n";
    let found = effective(text);
    let by_state: Vec<_> = found.tracker.unwrap().most_at_once_by_state.into_iter().collect();
    assert_eq!(by_state, [("todo".to_owned(), 2)]);
    assert_eq!(found.queue.most_of_workflow, Some(3));
}

#[test]
fn conformance_17_1_the_prompt_speaks_of_the_issue_and_the_attempt() {
    let prompt =
        "{{ issue.identifier }}: {{ issue.title }}{% if attempt %} (try {{ attempt }}){% endif %}";
    let mut run = Variables {
        task: "Fix it\nAll of it".to_owned(),
        run: "k3mx".to_owned(),
        ..Variables::default()
    };
    assert_eq!(template::render(prompt, &run).unwrap(), "k3mx: Fix it");
    run.name = Some("fix".to_owned());
    run.earlier_attempts = 1;
    assert_eq!(template::render(prompt, &run).unwrap(), "fix: Fix it (try 1)");
}

#[test]
fn conformance_17_1_unknown_variable_fails() {
    for prompt in [
        "{{ nope }}",
        "{% if nope %}{% endif %}",
        "{{ issue.nope }}",
        "{% for x in nope %}{% endfor %}",
    ] {
        let problems = refused(&format!("---\nagent: {{ command: x }}\n---\n\nline\n{prompt}\n"));
        assert_eq!(
            (problems[0].code.word(), problems[0].line),
            ("template_render_error", Some(6)),
            "{prompt}"
        );
    }
}

#[test]
fn conformance_17_6_validation_is_visible_with_its_place() {
    let problem = &refused(&support::exec("limits: { max_tokens: many }\n"))[0];
    assert_eq!(
        problem.to_string(),
        "/repo/WORKFLOW.md:4: limits.max_tokens: must be a whole number, got \"many\""
    );
}

#[test]
fn conformance_17_7_a_missing_file_says_which() {
    let problem = decode(Path::new("some/WORKFLOW.md"), Err(ErrorKind::NotFound)).unwrap_err();
    assert_eq!(problem.to_string(), "some/WORKFLOW.md: there is no such file");
    let denied = decode(Path::new("WORKFLOW.md"), Err(ErrorKind::PermissionDenied)).unwrap_err();
    assert_eq!(denied.code.word(), "unreadable_file");
    assert!(denied.hint.is_some());
}
