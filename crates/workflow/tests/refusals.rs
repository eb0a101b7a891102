//! What is wrong with a file is told with a code, a line and a way out.

mod support;

use outlast_workflow::{Overrides, Problem, decode, runnable};
use support::{config, effective, exec, load_with, loaded, refused};

/// Code, line and key of the one problem, which has a hint.
fn only(problems: &[Problem]) -> (&'static str, Option<usize>, &str) {
    let [problem] = problems else { panic!("{}", support::told(problems)) };
    assert!(problem.hint.is_some(), "{problem} has no hint");
    (problem.code.word(), problem.line, problem.key.as_deref().unwrap_or_default())
}

#[test]
fn a_wrong_type() {
    let cases = [
        ("limits: { max_tokens: many }", "limits.max_tokens"),
        ("limits: { max_tokens: '5' }", "limits.max_tokens"),
        ("limits: { max_tokens: 1.5 }", "limits.max_tokens"),
        ("hooks: { before_run: [a] }", "hooks.before_run"),
        ("checks: { done: cargo test }", "checks.done"),
        ("output: { silent_unless_blocked: 'yes' }", "output.silent_unless_blocked"),
        ("limits: { max_cost_usd: cheap }", "limits.max_cost_usd"),
        ("queue: { priority: high }", "queue.priority"),
        ("tree: { depth: deep }", "tree.depth"),
        ("tree: { width: 1.5 }", "tree.width"),
    ];
    for (line, key) in cases {
        assert_eq!(only(&refused(&exec(&format!("{line}\n")))), ("wrong_type", Some(4), key));
    }
    let section = refused(&exec("limits: [5]\n"));
    assert_eq!((section[0].code.word(), section[0].line), ("wrong_type", Some(4)));
}

#[test]
fn a_tree_that_cannot_be() {
    let cases = [
        ("tree: { depths: 2 }", "unknown_key", "tree.depths"),
        ("tree: { max_width: 2 }", "unknown_key", "tree.max_width"),
        ("tree_depth: 2", "unknown_key", "tree_depth"),
        ("tree-runs: 2", "unknown_key", "tree-runs"),
        ("tree: { width: 0 }", "bad_value", "tree.width"),
        ("tree: { turns: 0 }", "bad_value", "tree.turns"),
        ("tree: { runs: -1 }", "negative_limit", "tree.runs"),
        ("tree: { children: kill }", "bad_value", "tree.children"),
    ];
    for (line, code, key) in cases {
        assert_eq!(only(&refused(&exec(&format!("{line}\n")))), (code, Some(4), key), "{line}");
    }
    let hint = |line: &str| refused(&exec(&format!("{line}\n")))[0].hint.clone();
    assert_eq!(hint("tree: { depths: 2 }").as_deref(), Some("did you mean tree.depth?"));
    assert_eq!(hint("tree_depth: 2").as_deref(), Some("did you mean tree.depth?"));
    // The name of a key as the docs have it, in one word.
    for (line, key) in
        [("tree.runs: 0", "tree.runs"), ("limits.max_cost_usd: 1", "limits.max_cost_usd")]
    {
        assert_eq!(only(&refused(&exec(&format!("{line}\n")))), ("unknown_key", Some(4), key));
        assert!(hint(line).is_some_and(|hint| hint.starts_with("write it below its section")));
    }
    // Other programs may have words such as these of their own.
    assert_eq!(loaded(&exec("runs: 2\n")).warnings[0].code.word(), "unknown_key");
}

#[test]
fn a_session_that_is_neither_a_word_nor_a_rule() {
    let cases = [
        ("always", "bad_value", "agent.session"),
        ("5", "bad_value", "agent.session"),
        ("[fresh]", "bad_value", "agent.session"),
        ("{}", "bad_value", "agent.session"),
        ("{ refresh: 0.8, every: 2 }", "unknown_key", "agent.session.refresh"),
        ("{ refresh_at: 0 }", "bad_value", "agent.session.refresh_at"),
        ("{ refresh_at: 1.01 }", "bad_value", "agent.session.refresh_at"),
        ("{ refresh_at: 80 }", "bad_value", "agent.session.refresh_at"),
        ("{ refresh_at: -0.5 }", "bad_value", "agent.session.refresh_at"),
        ("{ refresh_at: 0.0000001 }", "bad_value", "agent.session.refresh_at"),
        ("{ refresh_at: 80% }", "wrong_type", "agent.session.refresh_at"),
        ("{ every: 0 }", "bad_value", "agent.session.every"),
        ("{ every: 4294967296 }", "bad_value", "agent.session.every"),
        ("{ every: -1 }", "negative_limit", "agent.session.every"),
        ("{ every: 1.5 }", "wrong_type", "agent.session.every"),
    ];
    for (value, code, key) in cases {
        let problems = refused(&exec(&format!("  session: {value}\n")));
        assert_eq!(only(&problems), (code, Some(4), key), "{value}");
    }
    let below = refused(&exec("  session:\n    every: 2\n    refresh_at: 2\n"));
    assert_eq!(only(&below), ("bad_value", Some(6), "agent.session.refresh_at"));
    let message = below[0].to_string();
    assert!(
        message.ends_with(
            "must be more than 0 and at most 1, with at most 6 decimals, like 0.8, got 2"
        ),
        "{message}"
    );
}

#[test]
fn an_unknown_kind() {
    let text = "---\nagent:\n  kind: robot\n  command: x\n---\n";
    assert_eq!(only(&refused(text)), ("unknown_kind", Some(3), "agent.kind"));
    let flags = Overrides { agent_kind: Some("robot".to_owned()), ..Overrides::default() };
    let problems = load_with(&exec(""), &config(""), &flags).unwrap_err();
    assert_eq!(only(&problems), ("unknown_kind", None, "agent.kind"));
}

#[test]
fn a_negative_limit() {
    for key in ["turn_timeout_ms", "max_attempts", "max_cost_usd", "no_progress_turns"] {
        let problems = refused(&exec(&format!("limits:\n  {key}: -1\n")));
        assert_eq!(only(&problems), ("negative_limit", Some(5), format!("limits.{key}").as_str()));
    }
    let codex = effective("---\ncodex: { stall_timeout_ms: -1 }\n---\n");
    assert_eq!(codex.limits.stall_window_ms, None);
}

#[test]
fn an_unreadable_file() {
    use std::io::ErrorKind;
    let path = std::path::Path::new("WORKFLOW.md");
    let code = |read| decode(path, read).unwrap_err().code.word();
    assert_eq!(code(Err(ErrorKind::PermissionDenied)), "unreadable_file");
    assert_eq!(code(Err(ErrorKind::IsADirectory)), "unreadable_file");
    assert_eq!(code(Ok(vec![b'x'; 1024 * 1024 + 1])), "file_too_big");
    let problem = decode(path, Ok(b"a\nb\xff".to_vec())).unwrap_err();
    assert_eq!((problem.code.word(), problem.line), ("not_utf8", Some(2)));
}

#[test]
fn an_error_of_the_template() {
    let problems = refused("---\nagent: { command: x }\n---\nHi\n\n{% if task %}\nyes\n");
    assert_eq!(only(&problems), ("template_parse_error", Some(6), ""));
    let problems = refused("---\nagent: { command: x }\n---\nHi {{ task | shout }}\n");
    assert_eq!(only(&problems), ("template_render_error", Some(4), ""));
}

#[test]
fn a_workspace_root_that_leads_out() {
    for root in ["../elsewhere", "/", "~/..", "/a/../.."] {
        let problems = refused(&exec(&format!("workspace:\n  root: {root}\n")));
        assert_eq!(only(&problems), ("workspace_escapes", Some(5), "workspace.root"), "{root}");
    }
    let problems = refused(&exec("workspace: { root: $NOPE/x }\n"));
    assert_eq!(only(&problems), ("unset_variable", Some(4), "workspace.root"));
}

#[test]
fn a_ceiling_that_is_exceeded_or_switched_off() {
    let config = config(
        "[ceilings]\nmax_tokens = 1000\nmax_turns = 5\nmax_cost_usd = 1.5\nhooks_timeout_ms = 100\n",
    );
    let cases = [
        ("limits: { max_tokens: 1001 }", "limits.max_tokens", 2),
        ("limits: { max_tokens: 0 }", "limits.max_tokens", 2),
        ("limits: { max_cost_usd: 1.500001 }", "limits.max_cost_usd", 4),
        ("hooks: { timeout_ms: 101 }", "hooks.timeout_ms", 5),
    ];
    for (line, key, ceiling) in cases {
        let problems =
            load_with(&exec(&format!("{line}\n")), &config, &Overrides::default()).unwrap_err();
        assert_eq!(only(&problems), ("ceiling_exceeded", Some(4), key));
        assert!(
            problems[0].message.contains(&format!("(config.toml:{ceiling})")),
            "{}",
            problems[0]
        );
    }
    let flags = Overrides { max_turns: Some(6), ..Overrides::default() };
    let problems = load_with(&exec(""), &config, &flags).unwrap_err();
    assert_eq!(only(&problems), ("ceiling_exceeded", None, "agent.max_turns"));
    assert_eq!(&*problems[0].file, "command line");
}

#[test]
fn a_missing_command() {
    for (text, line) in [
        ("Just a prompt.\n", None),
        ("---\nagent: { kind: file }\n---\n", Some(2)),
        ("---\nagent:\n  command: '  '\n---\n", Some(3)),
    ] {
        assert_eq!(only(&refused(text)), ("missing_command", line, "agent.command"));
    }
}

#[test]
fn a_sink_that_there_is_not() {
    let text = exec("output: { emit_to: [log, phone] }\n");
    assert_eq!(only(&refused(&text)), ("unknown_sink", Some(4), "output.emit_to"));
    let config = config("[sinks.phone]\nkind = \"ntfy\"\nurl = \"https://ntfy.example/me\"\n");
    let found = load_with(&text, &config, &Overrides::default()).unwrap();
    assert_eq!(found.warnings, []);
    assert_eq!(found.effective.output.emit_to, ["log", "phone"]);
    let address = exec("output: { emit_to: ['cmd:cat >> told', 'run:boss'] }\n");
    load_with(&address, &config, &Overrides::default()).unwrap();
    let bad = exec("output: { emit_to: ['webhook:nowhere'] }\n");
    assert_eq!(only(&refused(&bad)), ("unknown_sink", Some(4), "output.emit_to"));
}

#[test]
fn tools_that_cannot_be() {
    let tool = |fields: &str| refused(&exec(&format!("tools:\n  - {{ {fields} }}\n")));
    assert_eq!(only(&tool("name: Deploy, command: [x]")), ("bad_value", Some(5), "tools[0].name"));
    assert_eq!(only(&tool("name: a")), ("missing_command", Some(5), "tools[0].command"));
    assert_eq!(
        only(&tool("name: a, command: []")),
        ("missing_command", Some(5), "tools[0].command")
    );
    assert_eq!(
        only(&tool("name: a, command: x, class: harmless")),
        ("bad_value", Some(5), "tools[0].class")
    );
    assert_eq!(
        only(&tool("name: a, command: x, timeout_ms: 0")),
        ("bad_value", Some(5), "tools[0].timeout_ms")
    );
    let twice = refused(&exec("tools: [{ name: a, command: x }, { name: a, command: y }]\n"));
    assert_eq!(only(&twice), ("duplicate_tool", Some(4), "tools[1].name"));
}

#[test]
fn a_keyword_of_a_schema_that_inputs_are_not_checked_against_is_refused_with_its_line() {
    let tool = |schema: &str| {
        exec(&format!("tools:\n  - name: a\n    command: x\n    input_schema:\n{schema}"))
    };
    let deep = "      type: object\n      title: fine\n      properties:\n        b.c: { type: string }\n        url:\n          pattern: ^a\n";
    let problems = refused(&tool(deep));
    assert_eq!(
        only(&problems),
        ("bad_schema", Some(13), "tools[0].input_schema.properties.url.pattern")
    );
    let hint = problems[0].hint.as_deref().unwrap_or_default();
    assert!(hint.contains("maxLength") && hint.contains("title"), "{hint}");
    for keyword in ["pattern: a", "minItems: 1", "oneOf: []", "$ref: a", "format: uri"] {
        let problems = refused(&tool(&format!("      {keyword}\n")));
        assert_eq!((only(&problems).0, only(&problems).1), ("bad_schema", Some(8)), "{keyword}");
    }
    let problems = refused(&tool("      type: text\n"));
    assert_eq!(only(&problems), ("bad_schema", Some(8), "tools[0].input_schema.type"));
}

#[test]
fn what_needs_what_this_version_lacks() {
    let problems = refused(&exec("on_interrupt: restore\n"));
    assert_eq!(only(&problems), ("needs_snapshots", Some(4), "on_interrupt"));
    assert_eq!(runnable(&effective(&exec(""))), Ok(()));
}

#[test]
fn environment_that_the_operator_does_not_allow() {
    let config = config("[env]\nallow = [\"PATH\", \"LC_*\"]\n");
    let text = "---\nagent: { command: x, env: [PATH, LC_ALL, AWS_SECRET] }\n---\n";
    let problems = load_with(text, &config, &Overrides::default()).unwrap_err();
    assert_eq!(only(&problems), ("env_not_allowed", Some(2), "agent.env"));
    let found = load_with(&exec(""), &config, &Overrides::default()).unwrap();
    assert_eq!(found.effective.env.unwrap(), ["PATH", "LC_*"]);
}

/// Code, line and hint of each.
fn briefly(problems: &[Problem]) -> Vec<(&'static str, Option<usize>, Option<&str>)> {
    problems.iter().map(|it| (it.code.word(), it.line, it.hint.as_deref())).collect()
}

#[test]
fn a_typo_in_a_key_of_ours_let_a_run_go_unchecked() {
    let text = exec("limit: { max_tokens: 5 }\nlimits: { max_turns: 5, max_cost_usdd: 5 }\n");
    assert_eq!(
        briefly(&refused(&text)),
        [
            ("unknown_key", Some(4), Some("did you mean limits?")),
            ("unknown_key", Some(5), Some("did you mean agent.max_turns?")),
            ("unknown_key", Some(5), Some("did you mean limits.max_cost_usd?")),
        ]
    );
    for (line, meant) in [
        ("check: { done: [x] }", "checks"),
        ("approval: { mode: deny }", "approvals"),
        ("on_interupt: block", "on_interrupt"),
        ("max_cost_usd: 5", "limits.max_cost_usd"),
        ("run_timeout: 8h", "limits.run_timeout"),
        ("max_turns: 5", "agent.max_turns"),
        ("maxTurns: 5", "agent.max_turns"),
        ("max_cost: 5", "limits.max_cost_usd"),
        ("maxCostUsd: 5", "limits.max_cost_usd"),
        ("timeout: 5m", "limits.turn_timeout or limits.run_timeout"),
        ("tokens: 5", "limits.max_tokens"),
        ("tools: [{ name: a, command: x, clas: read }]", "tools[].class"),
        ("workspace: { retain: { complete: 7d } }", "workspace.retain.completed"),
    ] {
        let hint = format!("did you mean {meant}?");
        let problems = refused(&exec(&format!("{line}\n")));
        assert_eq!(briefly(&problems), [("unknown_key", Some(4), Some(hint.as_str()))], "{line}");
    }
}

#[test]
fn keys_of_other_programs_are_warnings_and_errors_when_strict() {
    let found = loaded(&exec("weather: good\nname: mine\ncodex: { odd: 1 }\n"));
    let told = briefly(&found.warnings);
    assert_eq!(
        told.iter().map(|it| (it.0, it.1)).collect::<Vec<_>>(),
        [("unknown_key", Some(4)), ("unknown_key", Some(5)), ("unknown_key", Some(6)),]
    );
    assert_eq!(found.strict().unwrap_err().errors.len(), 3);
    assert!(loaded(&exec("approvals: { mode: park }\n")).strict().is_ok());
    // A file for Symphony may have more than this version knows of; what is almost a key of ours is a typo there, too.
    let symphony =
        |agent: &str| format!("---\ntracker: {{ kind: a }}\nagent: {{ {agent} }}\n---\nhi\n");
    assert!(
        loaded(&symphony("novelty: 5")).warnings.iter().any(|it| it.code.word() == "unknown_key")
    );
    assert_eq!(only(&refused(&symphony("max_turn: 5"))).0, "unknown_key");
}

#[test]
fn the_typo_that_is_the_cause_was_hidden_by_what_followed_from_it() {
    let text = "---\nagent:\n  kind: file\n  comand: ./agent.sh\nweather: good\n---\nhi\n";
    let around = outlast_workflow::Surroundings {
        home: None,
        env: &support::env,
        temp_dir: std::path::Path::new("/tmp"),
        default_root: std::path::Path::new("/state"),
    };
    let source = outlast_workflow::Source { path: std::path::Path::new("/repo/WORKFLOW.md"), text };
    let refused =
        outlast_workflow::load(&source, &config(""), &Overrides::default(), &around).unwrap_err();
    let told = briefly(&refused.errors);
    assert_eq!(told[0], ("unknown_key", Some(4), Some("did you mean agent.command?")));
    assert_eq!((told[1].0, told[1].1, told.len()), ("missing_command", Some(3), 2));
    assert_eq!(briefly(&refused.warnings), [("unknown_key", Some(5), None)]);
}

#[test]
fn only_the_first_of_several_template_errors_was_told() {
    let text = "---\nagent: { command: x }\n---\n{{ nope }} and {{ task | shout | scream }}\n\
                {% for x in nothing %}{{ x.y }}{% endfor %}\n";
    let problems = refused(text);
    let lines: Vec<_> = problems.iter().map(|it| (it.line, it.message.as_str())).collect();
    assert_eq!(
        lines,
        [
            (Some(4), "there is no variable nope"),
            (Some(4), "there is no filter shout"),
            (Some(4), "there is no filter scream"),
            (Some(5), "there is no variable nothing"),
        ]
    );
}

#[test]
fn a_length_of_time_that_cannot_be_read_says_how_it_is_written() {
    for (line, code, key, hint) in [
        ("run_timeout: soon", "bad_value", "limits.run_timeout", "the whole run"),
        ("run_timeout: 10", "bad_value", "limits.run_timeout", "10s, 10m or 10h"),
        ("run_timeout: -1", "negative_limit", "limits.run_timeout", "the whole run"),
        ("run_timeout_ms: 8h", "wrong_type", "limits.run_timeout_ms", "run_timeout: 8h"),
        ("stall_window: 1h30", "bad_value", "limits.stall_window", "else 5m"),
    ] {
        let problems = refused(&exec(&format!("limits:\n  {line}\n")));
        assert_eq!(only(&problems), (code, Some(5), key), "{line}");
        assert!(problems[0].hint.as_deref().unwrap_or_default().contains(hint), "{problems:?}");
    }
    let twice = refused(&exec("limits:\n  stall_window_ms: 5\n  stall_window: 10m\n"));
    assert_eq!(only(&twice), ("bad_value", Some(6), "limits.stall_window"));
    let never = refused(&exec("hooks: { timeout: off }\n"));
    assert_eq!(only(&never), ("bad_value", Some(4), "hooks.timeout"));
    let config = config("[ceilings]\nrun_timeout = \"4h\"\n");
    let problems =
        load_with(&exec("limits: { run_timeout: 8h }\n"), &config, &Overrides::default())
            .unwrap_err();
    assert_eq!(
        problems[0].to_string(),
        "/repo/WORKFLOW.md:4: limits.run_timeout: 8h is too much: the operator's ceiling is 4h (config.toml:2)"
    );
}

#[test]
fn all_problems_are_told_at_once_in_the_files_order() {
    let problems = refused(&exec(
        "retry: { initial_backoff_ms: x }\non_interrupt: never\nlimits: { max_attempts: -1 }\n",
    ));
    let lines: Vec<_> = problems.iter().filter_map(|problem| problem.line).collect();
    assert_eq!(lines, [4, 5, 6]);
}
