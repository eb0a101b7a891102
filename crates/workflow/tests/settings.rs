//! What a file comes to, with flags, ceilings and without.

mod support;

use outlast_engine::{
    ModelClass, OnEnd, OnInterrupt, Room, SessionRules, Strategy, ToolClass, ToolCost,
};
use outlast_workflow::{Config, Loaded, Origin, Overrides, envelope, plain};
use support::{config, effective, exec, load_with, loaded, refused, told};

fn explained(loaded: &Loaded, key: &str) -> (String, Origin) {
    let found = loaded.explained.iter().find(|explained| explained.key == key);
    let found = found.expect("every setting is explained");
    (found.value.clone(), found.origin)
}

#[test]
fn a_session_is_kept_or_begun_anew_by_a_rule() {
    let rules = |value: &str| {
        let session = effective(&exec(&format!("  session: {value}\n"))).driving.session;
        (session.every, session.refresh_at_millionths)
    };
    assert_eq!(effective(&exec("")).driving.session, SessionRules::default());
    assert_eq!(rules("keep"), (None, None));
    assert_eq!(rules("fresh"), (Some(1), None));
    assert_eq!(rules("{ every: 5 }"), (Some(5), None));
    assert_eq!(rules("{ refresh_at: 0.8 }"), (None, Some(800_000)));
    assert_eq!(rules("{ refresh_at: 1 }"), (None, Some(1_000_000)));
    assert_eq!(rules("{ refresh_at: 0.000001, every: 2 }"), (Some(2), Some(1)));
    let word = loaded(&exec("  session: fresh\n"));
    let origin = |line| Origin::Workflow { line };
    assert_eq!(explained(&word, "agent.session"), ("fresh".to_owned(), origin(4)));
    let both = loaded(&exec("  session:\n    refresh_at: 0.80\n    every: 5\n"));
    assert_eq!(explained(&both, "agent.session.refresh_at"), ("0.80".to_owned(), origin(5)));
    assert_eq!(explained(&both, "agent.session.every"), ("5".to_owned(), origin(6)));
    let slip = refused(&exec("  session: { every: 5, refresh: 0.8 }\n"));
    assert_eq!(slip[0].key.as_deref(), Some("agent.session.refresh"));
}

#[test]
fn every_key_of_ours_is_read() {
    let found = effective(
        "---\n\
         agent: { kind: file, command: ./loop, max_turns: 7, model_class: small_local, env: [PATH, MY_*] }\n\
         workspace: { strategy: worktree, root: ~/runs, retain: { completed: 12h, blocked: forever, failed: 30d } }\n\
         hooks: { after_create: a, before_run: b, after_turn: c, after_run: d, before_remove: e, timeout_ms: 5 }\n\
         checks: { before_run: [x], done: [cargo test], timeout_ms: 6 }\n\
         limits: { turn_timeout_ms: 1, stall_window_ms: 2, run_timeout_ms: 3, max_attempts: 4, max_stall_restarts: 5,\n  \
           max_tokens: 6, max_cost_usd: 0.10, no_progress_turns: 8 }\n\
         retry: { initial_backoff_ms: 9, max_backoff_ms: 10 }\n\
         output: { emit_to: [log], silent_unless_blocked: true, require_approval_before_emit: true }\n\
         tools: [{ name: look, command: [ls, -l], class: read, cost: heavy, timeout_ms: 11, input_schema: { type: object } },\n  \
           { name: shout, command: echo hi }]\n\
         on_interrupt: block\n\
         queue: { priority: -3 }\n\
         ---\nprompt\n",
    );
    assert_eq!((found.agent.kind.as_str(), found.model_class), ("file", ModelClass::SmallLocal));
    assert_eq!(found.env.unwrap(), ["PATH", "MY_*"]);
    assert_eq!(found.strategy, Strategy::Worktree);
    assert_eq!(found.retain.completed_ms, Some(12 * 3_600_000));
    assert_eq!(found.retain.failed_ms, Some(30 * 86_400_000));
    assert_eq!(found.hooks.after_turn.as_deref(), Some("c"));
    assert_eq!(found.hooks.timeout_ms, Some(5));
    assert_eq!(
        (found.checks.done, found.checks.timeout_ms),
        (vec!["cargo test".to_owned()], Some(6))
    );
    let limits = found.limits;
    assert_eq!(
        (limits.turn_timeout_ms, limits.stall_window_ms, limits.run_timeout_ms),
        (Some(1), Some(2), Some(3))
    );
    assert_eq!(
        (limits.max_turns, limits.max_stall_restarts, limits.no_progress_turns),
        (Some(7), Some(5), Some(8))
    );
    assert_eq!((limits.max_tokens, limits.max_cost_usd_micros), (Some(6), Some(100_000)));
    let retry = found.retry;
    assert_eq!((retry.max_attempts, retry.initial_backoff_ms, retry.max_backoff_ms), (4, 9, 10));
    assert!(found.output.silent_unless_blocked && found.output.require_approval_before_emit);
    let [look, shout] = found.tools.as_slice() else { panic!("{:?}", found.tools) };
    assert_eq!((look.class, look.cost, look.timeout_ms), (ToolClass::Read, ToolCost::Heavy, 11));
    assert_eq!(look.input_schema.as_deref(), Some(r#"{"type":"object"}"#));
    assert_eq!(
        (shout.command.join(" "), shout.class),
        ("sh -c echo hi".to_owned(), ToolClass::Unsafe)
    );
    assert_eq!((found.on_interrupt, found.queue.priority), (OnInterrupt::Block, -3));
    let workflow = found.workflow.unwrap();
    assert_eq!((workflow.prompt.as_str(), workflow.sha256.len()), ("prompt", 64));
}

#[test]
fn defaults_depend_on_the_kind() {
    let stall = |kind: &str| {
        effective(&format!("---\nagent: {{ kind: {kind}, command: x }}\n---\n"))
            .limits
            .stall_window_ms
    };
    assert_eq!(
        (stall("exec"), stall("file"), stall("claude")),
        (None, Some(1_800_000), Some(300_000))
    );
    let found = effective(&exec(""));
    assert_eq!(found.limits.turn_timeout_ms, Some(3_600_000));
    assert_eq!(
        (found.limits.run_timeout_ms, found.limits.max_turns),
        (None, None),
        "made for nights"
    );
    assert_eq!((found.limits.max_tokens, found.limits.max_cost_usd_micros), (None, None));
    assert_eq!((found.retry.max_attempts, found.limits.max_stall_restarts), (5, Some(3)));
    assert_eq!((found.strategy, found.root), (Strategy::Inplace, None));
    assert_eq!(found.on_interrupt, OnInterrupt::Resume);
    assert_eq!(found.env.unwrap().join(" "), "PATH HOME USER LANG LC_* TERM SHELL TMPDIR XDG_*");
}

#[test]
fn zero_is_off() {
    let found = effective(&exec(
        "limits: { turn_timeout_ms: 0, run_timeout_ms: 0, max_attempts: 0, no_progress_turns: 0 }\n",
    ));
    assert_eq!((found.limits.turn_timeout_ms, found.limits.run_timeout_ms), (None, None));
    assert_eq!((found.limits.no_progress_turns, found.retry.max_attempts), (None, u32::MAX));
}

#[test]
fn symphonys_windows_of_silence_never_become_the_total() {
    let limits = |codex: &str| effective(&format!("---\ncodex: {{ {codex} }}\n---\n")).limits;
    let both = limits("stall_timeout_ms: 200000, turn_timeout_ms: 100000");
    assert_eq!((both.stall_window_ms, both.turn_timeout_ms), (Some(100_000), Some(3_600_000)));
    assert_eq!(
        limits("stall_timeout_ms: 50000, turn_timeout_ms: 100000").stall_window_ms,
        Some(50_000)
    );
    assert_eq!(
        limits("stall_timeout_ms: 0, turn_timeout_ms: 100000").stall_window_ms,
        Some(100_000)
    );
    assert_eq!(limits("stall_timeout_ms: 0").stall_window_ms, None);
    assert_eq!(limits("turn_timeout_ms: 3600000").stall_window_ms, Some(300_000));
    let found = loaded("---\ncodex:\n  turn_timeout_ms: 5000\n---\n");
    assert_eq!((found.warnings[0].line, found.warnings[0].code.word()), (Some(3), "no_effect"));
    assert!(found.warnings[0].message.contains("silence"));
}

#[test]
fn flags_go_before_the_file_and_ceilings_fill_what_nobody_set() {
    let config = config(
        "[ceilings]\nmax_tokens = 1000\nturn_timeout_ms = 60000\nrun_timeout_ms = 99999999\n",
    );
    let flags = Overrides {
        max_turns: Some(3),
        max_attempts: Some(2),
        priority: Some(9),
        ..Overrides::default()
    };
    let found = load_with(&exec("limits: { max_attempts: 4 }\n"), &config, &flags).unwrap();
    assert_eq!(explained(&found, "agent.max_turns"), ("3".to_owned(), Origin::CommandLine));
    assert_eq!(explained(&found, "limits.max_attempts"), ("2".to_owned(), Origin::CommandLine));
    assert_eq!(
        explained(&found, "limits.max_tokens"),
        ("1000".to_owned(), Origin::Ceiling { line: 2 })
    );
    assert_eq!(
        explained(&found, "limits.turn_timeout_ms"),
        ("60000".to_owned(), Origin::Ceiling { line: 3 })
    );
    assert_eq!(
        explained(&found, "limits.run_timeout_ms"),
        ("99999999".to_owned(), Origin::Ceiling { line: 4 })
    );
    assert_eq!(
        explained(&found, "agent.command"),
        ("./agent".to_owned(), Origin::Workflow { line: 3 })
    );
    assert_eq!(found.effective.limits.max_tokens, Some(1000));
    assert_eq!(found.effective.queue.priority, 9);
}

#[test]
fn a_tree_is_as_the_file_says_and_flags_go_before_it() {
    let text = exec("tree: { depth: 0, width: 2, runs: 9, turns: 40, children: wait }\n");
    let tree = effective(&text).tree;
    let room =
        Room { depth: Some(0), width: Some(2), runs: Some(9), turns: Some(40), ..Room::default() };
    assert_eq!((tree.room, tree.children), (room, OnEnd::Wait));
    assert!(envelope(&effective(&text)).starts_with("ends at 40 turns with those below it;"));
    let flags = Overrides {
        room: Room { runs: Some(3), ..Room::default() },
        children: Some(OnEnd::Stop),
        ..Overrides::default()
    };
    let found = load_with(&text, &Config::default(), &flags).unwrap();
    assert_eq!(explained(&found, "tree.runs"), ("3".to_owned(), Origin::CommandLine));
    assert_eq!(explained(&found, "tree.children"), ("stop".to_owned(), Origin::CommandLine));
    assert_eq!(explained(&found, "tree.depth"), ("0".to_owned(), Origin::Workflow { line: 4 }));
    assert_eq!(found.effective.tree.room, Room { runs: Some(3), ..room });
    let none = loaded(&exec(""));
    assert_eq!(explained(&none, "tree.width"), ("no limit".to_owned(), Origin::Default));
    assert_eq!(explained(&none, "tree.children"), ("leave".to_owned(), Origin::Default));
}

#[test]
fn a_flag_replaces_the_agent_of_a_symphony_file() {
    let flags = Overrides {
        agent_kind: Some("exec".to_owned()),
        command: Some(vec!["./mine".to_owned()]),
        workspace: Some(Strategy::Inplace),
        ..Overrides::default()
    };
    let found =
        load_with("---\ntracker: { kind: a }\n---\nhi\n", &Config::default(), &flags).unwrap();
    assert_eq!(
        (found.effective.agent.kind.as_str(), found.effective.strategy),
        ("exec", Strategy::Inplace)
    );
    assert_eq!(found.effective.agent.command, ["./mine"]);
}

#[test]
fn a_denied_tool_stays_known_and_disabled() {
    let config = config("[tools]\ndeny = [\"deploy\"]\n");
    let text = exec("tools: [{ name: deploy, command: x }, { name: look, command: y }]\n");
    let tools = load_with(&text, &config, &Overrides::default()).unwrap().effective.tools;
    assert_eq!(tools[0].disabled.as_deref(), Some("policy_disabled"));
    assert_eq!(tools[1].disabled, None);
}

#[test]
fn a_plain_command_is_bounded_by_flags_and_ceilings_only() {
    let command = Overrides { command: Some(vec!["true".to_owned()]), ..Overrides::default() };
    let found = plain(&Config::default(), &command).unwrap().effective;
    assert_eq!((found.agent.kind.as_str(), found.env.as_ref()), ("exec", None));
    assert_eq!((found.limits.turn_timeout_ms, found.limits.run_timeout_ms), (None, None));
    assert_eq!((found.limits.max_turns, found.limits.no_progress_turns), (None, Some(3)));
    assert_eq!((found.retry.max_attempts, found.on_interrupt), (1, OnInterrupt::Fail));
    let config = config("[ceilings]\nrun_timeout_ms = 5000\n");
    assert_eq!(plain(&config, &command).unwrap().effective.limits.run_timeout_ms, Some(5000));
    let long = Overrides { run_timeout_ms: Some(6000), ..command };
    assert_eq!(plain(&config, &long).unwrap_err().errors[0].code.word(), "ceiling_exceeded");
    assert_eq!(
        plain(&config, &Overrides::default()).unwrap_err().errors[0].code.word(),
        "missing_command"
    );
}

#[test]
fn a_first_wait_that_is_asked_for_is_not_cut() {
    let flags = Overrides {
        command: Some(vec!["true".to_owned()]),
        backoff_ms: Some(600_000),
        ..Overrides::default()
    };
    assert_eq!(plain(&Config::default(), &flags).unwrap().effective.retry.max_backoff_ms, 600_000);
}

#[test]
fn the_same_text_has_the_same_hash_and_another_has_another() {
    let hash = |text: &str| effective(text).workflow.unwrap().sha256;
    assert_eq!(hash(&exec("")), hash(&exec("")));
    assert_ne!(hash(&exec("")), hash(&exec("# a comment\n")));
}

/// An agent of the operator's that prints lines, and one that is like Claude.
const DECLARED: &str = "[env]\nallow = [\"PATH\", \"MINE_*\", \"ANTHROPIC_*\"]\n\
    [agents.mine]\ncommand = [\"mine\", \"--json\"]\nenv = [\"MINE_*\", \"THEIRS\"]\nmodel_flag = \"-m\"\n\
    result.completed = [{ type = \"done\" }]\n\
    [agents.cousin]\nlike = \"claude\"\nenv = [\"MINE_KEY\"]\n";

#[test]
fn a_declared_kind_is_settled_by_its_table_which_the_run_keeps() {
    let config = config(DECLARED);
    let of = |text: &str| load_with(text, &config, &Overrides::default()).map_err(|it| told(&it));
    let mine = of("---\nagent: { kind: mine, model: big }\n---\nhi\n").unwrap();
    assert_eq!(mine.warnings, []);
    let found = &mine.effective;
    assert_eq!((found.agent.kind.as_str(), found.agent.command.len()), ("mine", 0));
    assert_eq!(found.env.as_deref(), Some(&["PATH".to_owned(), "MINE_*".to_owned()][..]));
    assert_eq!(found.limits.stall_window_ms, Some(1_800_000));
    assert_eq!(found.driving.declared.as_ref(), Some(&config.agents["mine"].json));
    assert!(outlast_workflow::runnable(found).is_ok());
    let command = ("mine --json".to_owned(), Origin::Config { line: 3 });
    assert_eq!(explained(&mine, "agent.command"), command);

    let cousin = of("---\nagent: { kind: cousin, effort: high }\n---\nhi\n").unwrap().effective;
    let env = cousin.env.unwrap();
    assert!(env.contains(&"ANTHROPIC_*".to_owned()) && env.contains(&"MINE_KEY".to_owned()));
    assert_eq!(cousin.limits.stall_window_ms, Some(300_000));

    let effort = of("---\nagent:\n  kind: mine\n  effort: high\n---\nhi\n").unwrap_err();
    assert_eq!(effort, "/repo/WORKFLOW.md:4: agent.effort: agents of kind mine take none");
    let unknown = of("---\nagent: { kind: nine }\n---\nhi\n").unwrap_err();
    assert_eq!(unknown, "/repo/WORKFLOW.md:2: agent.kind: there is no kind \"nine\"");
}

#[test]
fn an_agent_that_asks_nothing_is_not_held_back_by_a_policy_and_that_is_said() {
    let config = config(DECLARED);
    let remarks = |approvals: &str, kind: &str| {
        let text = format!("---\nagent: {{ kind: {kind} }}\napprovals: {approvals}\n---\nhi\n");
        let found = load_with(&text, &config, &Overrides::default()).unwrap();
        found.warnings.iter().filter_map(|it| it.key.clone()).collect::<Vec<String>>()
    };
    let both = ["approvals.mode", "approvals.allow"];
    assert_eq!(remarks("{ mode: deny, allow: [Read] }", "mine"), both);
    assert!(remarks("{ mode: allow }", "mine").is_empty());
    assert!(remarks("{ mode: deny, allow: [Read] }", "cousin").is_empty());
}

#[test]
fn a_declared_agent_without_a_file_has_the_limits_of_a_loop() {
    let config = config(DECLARED);
    let flags = Overrides { agent_kind: Some("mine".to_owned()), ..Overrides::default() };
    let found = plain(&config, &flags).unwrap().effective;
    assert_eq!((found.limits.max_turns, found.retry.max_attempts), (None, 5));
    assert_eq!(found.driving.declared.as_ref(), Some(&config.agents["mine"].json));
    assert_eq!(found.on_interrupt, OnInterrupt::Resume);
}

#[test]
fn lengths_of_time_are_written_for_people() {
    let found = loaded(&exec(
        "limits: { turn_timeout: 1h30m, stall_window: 10m, run_timeout: off }\n\
         retry: { initial_backoff: 5s, max_backoff: 1h }\nhooks: { timeout: 2m }\n\
         checks: { timeout: 20m }\ntools: [{ name: a, command: x, timeout: 90s }]\n\
         approvals: { patience: 1h, timeout: 8h }\n",
    ));
    assert_eq!(found.warnings, []);
    let Loaded { effective, .. } = &found;
    let limits = effective.limits;
    assert_eq!(
        (limits.turn_timeout_ms, limits.stall_window_ms, limits.run_timeout_ms),
        (Some(5_400_000), Some(600_000), None)
    );
    let retry = effective.retry;
    assert_eq!((retry.initial_backoff_ms, retry.max_backoff_ms), (5000, 3_600_000));
    assert_eq!(effective.hooks.timeout_ms, Some(120_000));
    assert_eq!(effective.checks.timeout_ms, Some(1_200_000));
    assert_eq!(effective.tools[0].timeout_ms, 90_000);
    assert_eq!(effective.driving.patience_ms, Some(3_600_000));
    let shown = |key: &str| {
        let row = found.explained.iter().find(|row| row.key == key).expect(key);
        let (key, value) = row.shown();
        format!("{key} {value}")
    };
    assert_eq!(shown("limits.turn_timeout_ms"), "limits.turn_timeout 90m");
    assert_eq!(shown("limits.run_timeout_ms"), "limits.run_timeout off");
    assert_eq!(shown("approvals.timeout"), "approvals.timeout 8h");
    assert_eq!(shown("limits.max_tokens"), "limits.max_tokens off");
}

#[test]
fn the_envelope_of_a_run_is_one_line() {
    let of = |more: &str| {
        let text = format!("---\nagent:\n  kind: file\n  command: ./agent\n{more}---\nhi\n");
        outlast_workflow::envelope(&effective(&text))
    };
    assert_eq!(
        of(
            "  max_turns: 30\nlimits: { max_cost_usd: 5, run_timeout: 8h, stall_window: 10m, no_progress_turns: 0 }\n\
            checks: { done: [cargo test] }\n"
        ),
        "ends at 30 turns, $5.00 or 8h; a turn: 1h; silence: 10m; 5 tries; done by cargo test"
    );
    assert_eq!(
        of(
            "  max_turns: 0\nlimits: { run_timeout: off, turn_timeout: off, stall_window: off, max_attempts: 0 }\n"
        ),
        "no limit of turns, money or time; blocks after 3 turns without progress; a turn: no limit; \
         silence: no limit; any number of tries; done by the agent's word (no checks)"
    );
}
