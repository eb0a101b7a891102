//! CLIs that are described by a table, and their recordings played to it.

#![expect(clippy::disallowed_methods, reason = "reads recordings")]

use std::fs;
use std::path::{Path, PathBuf};

use outlast_agents::adapter::{
    Act, Adapter, ApprovalMode, Approvals, Caps, DRIVEN, Declared, End, Event, Heard, Orders,
    Spent, TroubleKind, Turn, Unusable, driven,
};
use outlast_agents::kind;

const CLAUDE: &str = include_str!("declared/claude.toml");
const CODEX: &str = include_str!("declared/codex.toml");
const GEMINI: &str = include_str!("declared/gemini.toml");

const TABLES: [(&str, &str); 3] =
    [("claude-2.1.325", CLAUDE), ("codex-exec-0.166.0", CODEX), ("gemini-0.61.0", GEMINI)];

fn table(text: &str) -> Declared {
    toml::from_str(text).expect("a table")
}

fn turn() -> Turn {
    Turn { prompt: "Do it.".to_owned(), dir: "/work".to_owned(), ..Turn::default() }
}

fn dir(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings").join(name)
}

/// What was printed by one process with one prompt: no transcript of both directions.
fn one_shots(name: &str) -> Vec<PathBuf> {
    let paths = fs::read_dir(dir(name)).expect("recordings").map(|it| it.expect("one").path());
    let is_of = |path: &PathBuf| path.extension().is_some_and(|it| it == "jsonl");
    let is_both = |path: &PathBuf| lines(path)[0].starts_with(b"{\"ms\"");
    let mut paths: Vec<PathBuf> = paths.filter(|path| is_of(path) && !is_both(path)).collect();
    paths.sort();
    assert!(paths.len() > 5, "{name}");
    paths
}

fn lines(path: &Path) -> Vec<Vec<u8>> {
    fs::read_to_string(path).expect("a recording").lines().map(Into::into).collect()
}

/// The events of one turn: what comes after its end is of another.
fn play(mut adapter: Box<dyn Adapter>, lines: &[Vec<u8>]) -> Vec<Event> {
    let mut events = told(adapter.begin());
    for line in lines {
        events.extend(told(adapter.hear(Heard::Line(line))));
        if events.iter().any(|event| matches!(event, Event::Ended(_))) {
            return events;
        }
    }
    events.extend(told(adapter.hear(Heard::End)));
    events
}

fn told(acts: Vec<Act>) -> Vec<Event> {
    acts.into_iter()
        .filter_map(|act| if let Act::Tell(event) = act { Some(event) } else { None })
        .collect()
}

fn played(table_text: &str, name: &str, case: &str, turn: Turn) -> Vec<Event> {
    let adapter = table(table_text).adapter(turn).expect("a table that works");
    play(adapter, &lines(&dir(name).join(format!("{case}.jsonl"))))
}

fn end(events: &[Event]) -> &End {
    let ends: Vec<&End> = events
        .iter()
        .filter_map(|it| if let Event::Ended(end) = it { Some(end) } else { None })
        .collect();
    assert_eq!(ends.len(), 1, "a turn ends once: {events:?}");
    ends[0]
}

/// `completed: text`, `interrupted`, or the kind of the failure.
fn ends(events: &[Event]) -> String {
    match end(events) {
        End::Completed { text } => format!("completed: {text}"),
        End::Interrupted => "interrupted".to_owned(),
        End::NeverStarted { why, .. } => format!("never started: {why}"),
        End::Failed { trouble } => format!("{:?}", trouble.kind),
    }
}

fn spent(events: &[Event]) -> Option<Spent> {
    let spent = |it: &Event| if let Event::Spent(spent) = it { Some(*spent) } else { None };
    events.iter().rev().find_map(spent)
}

fn counts(input: u64, output: u64, cached: u64) -> Spent {
    Spent {
        input_tokens: Some(input),
        output_tokens: Some(output),
        cached_tokens: Some(cached),
        ..Spent::default()
    }
}

fn tools(events: &[Event]) -> Vec<String> {
    let told = |event: &Event| match event {
        Event::ToolStarted { name, about, .. } => Some(format!("{name} {about}")),
        Event::ToolEnded { is_error, .. } => Some(format!("failed: {is_error}")),
        _ => None,
    };
    events.iter().filter_map(told).collect()
}

fn not_understood(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::NotUnderstood { .. })).count()
}

/// The table and our own adapter hear the same in what one `claude -p` prints. A table does not know of the turn that
/// Claude owes to a sub-agent which ended before the result did.
#[test]
fn claude_by_a_table_ends_as_claude_by_its_adapter() {
    let is_known = |path: &PathBuf| !path.ends_with("agent-background.jsonl");
    for path in one_shots("claude-2.1.325").into_iter().filter(is_known) {
        let own = play(driven("claude").unwrap().adapter(turn()), &lines(&path));
        let by_table = play(table(CLAUDE).adapter(turn()).unwrap(), &lines(&path));
        let name = path.display();
        assert_eq!(not_understood(&by_table), 0, "{name}");
        assert_eq!(tools(&own).len(), tools(&by_table).len(), "{name}");
        match (end(&own), end(&by_table)) {
            (End::Failed { trouble }, End::Failed { trouble: other }) => {
                assert_eq!((&trouble.text, trouble.until_ms), (&other.text, other.until_ms));
                assert!(trouble.kind == other.kind || other.kind == TroubleKind::Other, "{name}");
            }
            (one, other) => assert_eq!(one, other, "{name}"),
        }
        let figures = |events: &[Event]| {
            spent(events)
                .map(|it| (it.input_tokens, it.output_tokens, it.cached_tokens, it.cost_usd_micros))
        };
        let is_settled = matches!(end(&own), End::Completed { .. });
        if is_settled {
            assert_eq!(figures(&own), figures(&by_table), "{name}");
            assert_eq!(spent(&by_table).map(|it| it.is_floor), Some(false), "{name}");
        }
    }
}

#[test]
fn what_a_claude_that_was_killed_has_used_up_is_a_floor() {
    let events = played(CLAUDE, "claude-2.1.325", "sigkill-tool.1", turn());
    assert_eq!(ends(&events), "interrupted");
    assert_eq!(spent(&events), Some(Spent { is_floor: true, ..counts(100, 1, 0) }));
}

#[test]
fn codex_exec_is_understood() {
    let ended = |case: &str| ends(&played(CODEX, "codex-exec-0.166.0", case, turn()));
    assert_eq!(ended("ok"), "completed: Hello from the fake model.");
    assert_eq!(ended("limit-429-reset"), "Quota");
    assert_eq!(ended("auth-401"), "Auth");
    assert_eq!(ended("drop-then-ok"), "completed: Hello after a cut.");
    assert_eq!(ended("sigkill-tool.1"), "interrupted");
    let events = played(CODEX, "codex-exec-0.166.0", "tool-shell", turn());
    let command =
        "command_execution /bin/bash -lc 'echo made > out.txt; echo to-stderr >&2; exit 3'";
    assert_eq!(tools(&events), [command, "failed: true"]);
    assert_eq!(spent(&events), Some(counts(1200, 48, 1000)));
    let events = played(CODEX, "codex-exec-0.166.0", "throttle-429-then-ok", turn());
    let tries: Vec<u32> = events
        .iter()
        .filter_map(
            |it| if let Event::Retries { attempt, .. } = it { Some(*attempt) } else { None },
        )
        .collect();
    assert_eq!(tries, [1, 2]);
}

/// Codex counts over the whole thread: 1000, 3000, 6000 for calls of 1000, 2000, 3000.
#[test]
fn a_counter_of_the_whole_conversation_is_rebased() {
    let mut before = Spent::default();
    for (case, input) in [("resume.1", 1000), ("resume.2", 2000), ("resume.3", 3000)] {
        let session = Some("01a1e06a".to_owned()).filter(|_| case != "resume.1");
        let turn = Turn { session, spent_before: Some(before), ..turn() };
        let spent = spent(&played(CODEX, "codex-exec-0.166.0", case, turn)).unwrap();
        assert_eq!((spent.input_tokens, spent.is_floor), (Some(input), false), "{case}");
        before.input_tokens = Some(before.input_tokens.unwrap_or(0) + input);
        let output = before.output_tokens.unwrap_or(0) + spent.output_tokens.unwrap();
        before.output_tokens = Some(output);
    }
    assert_eq!(before.output_tokens, Some(60));
    // What came before is not known, so this attempt's share is not either.
    let unknown = Turn { session: Some("01a1e06a".to_owned()), ..turn() };
    assert_eq!(spent(&played(CODEX, "codex-exec-0.166.0", "resume.2", unknown)), None);
}

#[test]
fn gemini_is_understood() {
    let ended = |case: &str| ends(&played(GEMINI, "gemini-0.61.0", case, turn()));
    assert_eq!(ended("ok"), "completed: Hello from the fake model.");
    assert_eq!(ended("resume.2"), "completed: Second answer.");
    assert_eq!(ended("throttle-429-then-ok"), "completed: Hello after a throttle.");
    assert_eq!(ended("limit-429-reset"), "Quota");
    assert_eq!(ended("auth-401"), "Auth");
    assert_eq!(ended("max-turns"), "OwnCap");
    assert_eq!(ended("drop-then-ok"), "Other");
    assert_eq!(ended("sigkill-tool.1"), "interrupted");
    let events = played(GEMINI, "gemini-0.61.0", "tool-shell", turn());
    let command = "run_shell_command echo made > out.txt; echo to-stderr >&2; exit 3";
    assert_eq!(tools(&events), [command, "failed: false"]);
    assert_eq!(spent(&events), Some(counts(1200, 48, 1000)));
    let said: Vec<&Event> = events.iter().filter(|it| matches!(it, Event::Said { .. })).collect();
    assert_eq!(said, [&Event::Said { text: "The command failed with 3.".to_owned() }]);
}

#[test]
fn a_success_that_used_up_nothing_is_none() {
    let line = br#"{"type":"result","status":"success","stats":{"total_tokens":0}}"#.to_vec();
    let events = play(table(GEMINI).adapter(turn()).unwrap(), &[line]);
    assert_eq!(ends(&events), "Other");
}

#[test]
fn a_recording_that_is_cut_at_any_line_is_never_a_success_before_its_time() {
    for (name, text) in TABLES {
        for path in one_shots(name) {
            let lines = lines(&path);
            let whole = play(table(text).adapter(turn()).unwrap(), &lines);
            for cut in 0..lines.len() {
                let events = play(table(text).adapter(turn()).unwrap(), &lines[..cut]);
                match end(&events) {
                    End::Interrupted => {}
                    ended => assert_eq!(ended, end(&whole), "{} at {cut}", path.display()),
                }
            }
        }
    }
}

#[test]
fn garbage_between_lines_is_counted_and_changes_nothing_else() {
    for (name, text) in TABLES {
        for path in one_shots(name) {
            let lines = lines(&path);
            let garbage = [b"\xff\xfe".to_vec(), b"{\"type\":".to_vec(), b"[1]".to_vec()];
            let noisy: Vec<Vec<u8>> = lines
                .iter()
                .enumerate()
                .flat_map(|(at, line)| [garbage[at % 3].clone(), line.clone()])
                .collect();
            let clean = play(table(text).adapter(turn()).unwrap(), &lines);
            let mut events = play(table(text).adapter(turn()).unwrap(), &noisy);
            assert!(not_understood(&events) > 0);
            events.retain(|event| !matches!(event, Event::NotUnderstood { .. }));
            assert_eq!(events, clean, "{}", path.display());
        }
    }
}

#[test]
fn a_turn_is_launched_as_the_table_says() {
    let argv = |text: &str, turn: Turn| table(text).adapter(turn).unwrap().launch().argv.join(" ");
    assert_eq!(argv(CODEX, turn()), "codex exec --json --skip-git-repo-check -");
    let resumed = Turn {
        session: Some("s1".to_owned()),
        model: Some("m1".to_owned()),
        command: vec!["/opt/codex".to_owned()],
        args: vec!["--color".to_owned(), "never".to_owned()],
        approvals: Approvals { mode: ApprovalMode::Allow, ..Approvals::default() },
        ..turn()
    };
    let expected = "/opt/codex exec --json --skip-git-repo-check --model m1 --sandbox danger-full-access resume s1 --color never -";
    assert_eq!(argv(CODEX, resumed), expected);
    let begun = table(CODEX).adapter(turn()).unwrap().begin();
    assert_eq!(begun, [Act::Send(b"Do it.".to_vec()), Act::CloseInput]);
}

const SMALL: &str = r#"command = ["agent"]
result.completed = [{ type = "done" }]
"#;

#[test]
fn a_prompt_is_an_argument_or_a_file_if_the_table_says_so() {
    let by = |prompt: &str, turn: Turn| {
        let table = table(&format!("{SMALL}prompt = \"{prompt}\"\nprompt_flag = \"--task\""));
        table.adapter(turn).map(|mut adapter| (adapter.launch().argv, adapter.begin()))
    };
    let (argv, begun) = by("arg", turn()).unwrap();
    assert_eq!((argv.join(" "), begun), ("agent --task Do it.".to_owned(), vec![Act::CloseInput]));
    let prompt_file = Some("/tmp/prompt".to_owned());
    let (argv, _) = by("file", Turn { prompt_file, ..turn() }).unwrap();
    assert_eq!(argv, ["agent", "--task", "/tmp/prompt"]);
    assert_eq!(by("file", turn()), Err(Unusable::NoPromptFile));
}

#[test]
fn a_table_that_cannot_work_is_refused_with_its_reason() {
    let refused = |text: &str| table(text).check().map_err(|reason| reason.to_string());
    assert_eq!(refused(SMALL), Ok(()));
    let cases = [
        ("", "is empty: which program is it?"),
        ("command = [\" \"]", "is empty: which program is it?"),
        ("command = [\"agent\"]", "is empty: no line could say that a turn has ended well"),
        (
            "command = [\"agent\"]\nresult.completed = [{}]",
            "a match is empty and would fit each line",
        ),
    ];
    for (text, reason) in cases {
        assert_eq!(refused(text), Err(reason.to_owned()));
    }
    let more = [
        ("resume = [\"--continue\"]", Unusable::ResumesNothing),
        ("resume = [\"{session}\"]", Unusable::NoSession),
        ("usage = [{ when.a = 1, scope = \"turn\" }]", Unusable::CountsNothing),
        ("ignore = [{}]", Unusable::FitsAll { of: "ignore" }),
        ("allow_args = [\"a\\u0000\"]", Unusable::ZeroByte { key: "allow_args" }),
        ("set_env = { A = \"a\\u0000\" }", Unusable::ZeroByte { key: "set_env" }),
        ("env = [\"*\"]", Unusable::NoVariable { key: "env", name: "*".to_owned() }),
        (
            "set_env = { A-B = \"1\" }",
            Unusable::NoVariable { key: "set_env", name: "A-B".to_owned() },
        ),
    ];
    for (line, reason) in more {
        assert_eq!(table(&format!("{SMALL}{line}")).check(), Err(reason));
    }
}

#[test]
fn a_key_that_is_not_known_is_refused() {
    let error = |line: &str| {
        toml::from_str::<Declared>(&format!("{SMALL}{line}")).unwrap_err().message().to_owned()
    };
    assert!(error("comand = 1").starts_with("unknown field `comand`"));
    assert!(error("said = [{ when.a = 1, txt = \"b\" }]").starts_with("unknown field `txt`"));
    let usage = "usage = [{ when.a = 1, scope = \"day\", input = \"b\" }]";
    assert!(error(usage).starts_with("unknown variant `day`"), "{}", error(usage));
    assert!(
        error("ignore = [{ a = 1.5 }]").contains("a whole number"),
        "{}",
        error("ignore = [{ a = 1.5 }]")
    );
}

#[test]
fn a_turn_that_the_table_has_no_flag_for_is_refused() {
    let refused = |turn: Turn| table(SMALL).adapter(turn).err();
    let some = Some("x".to_owned());
    let model = Turn { model: some.clone(), ..turn() };
    assert_eq!(refused(model), Some(Unusable::TurnNeeds { key: "model_flag" }));
    let mode = Turn { permission_mode: some, ..turn() };
    assert_eq!(refused(mode), Some(Unusable::TurnNeeds { key: "permission_flag" }));
}

#[test]
fn a_conversation_that_is_not_there_is_said_on_standard_error() {
    let resumed = Turn { session: Some("s1".to_owned()), ..turn() };
    let mut adapter = table(CODEX).adapter(resumed).unwrap();
    assert_eq!(adapter.hear_stderr(b"Reading prompt from stdin..."), []);
    let acts =
        adapter.hear_stderr(b"Error: thread/resume failed: no rollout found for thread id s1");
    let is_failure = |kind| matches!(&acts[..], [Act::Tell(Event::Ended(End::Failed { trouble }))] if trouble.kind == kind);
    assert!(is_failure(TroubleKind::CannotResume), "{acts:?}");
    assert_eq!(adapter.hear(Heard::End), []);
}

#[test]
fn an_id_that_would_be_a_flag_is_none() {
    let line = |id: &str| format!("{{\"type\":\"done\",\"id\":\"{id}\"}}").into_bytes();
    let events = |id: &str| {
        let table = table(&format!("{SMALL}session = \"id\""));
        play(table.adapter(turn()).unwrap(), &[line(id)])
    };
    assert_eq!(events("s1")[0], Event::Session { id: "s1".to_owned() });
    assert_eq!(events("--yolo").len(), 1);
}

#[test]
fn the_end_of_a_limit_is_read_in_its_unit() {
    let until = |unit: &str, value: &str| {
        let text = format!(
            "{SMALL}result.failed = [{{ type = \"failed\" }}]\n[[trouble]]\nwhen.type = \"failed\"\nkind = \"quota\"\nuntil = \"windows.*.until\"\nunit = \"{unit}\""
        );
        let line =
            format!("{{\"type\":\"failed\",\"windows\":[{{\"until\":1}},{{\"until\":{value}}}]}}");
        let events = play(table(&text).adapter(turn()).unwrap(), &[line.into_bytes()]);
        match end(&events) {
            End::Failed { trouble } => trouble.until_ms,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(until("s", "1794770590"), Some(1_794_770_590_000));
    assert_eq!(until("ms", "1794770590000"), Some(1_794_770_590_000));
    assert_eq!(until("rfc3339", "\"2026-11-15T19:23:10Z\""), Some(1_794_770_590_000));
    assert_eq!(until("rfc3339", "\"soon\""), None);
}

#[test]
fn a_table_without_a_way_to_resume_begins_a_conversation_each_time() {
    let session = Some("s1".to_owned());
    let spent_before = Some(counts(100, 10, 0));
    let resumed = Turn { session, spent_before, ..turn() };
    let text = format!(
        "{SMALL}session = \"id\"\n[[usage]]\nwhen.type = \"done\"\nscope = \"session\"\ninput = \"in\""
    );
    let adapter = table(&text).adapter(resumed).unwrap();
    assert_eq!(adapter.launch().argv, ["agent"]);
    let events = play(adapter, &[br#"{"type":"done","id":"s2","in":7}"#.to_vec()]);
    assert_eq!(spent(&events).and_then(|it| it.input_tokens), Some(7), "nothing was before it");
}

#[test]
fn a_table_that_is_like_an_agent_has_its_adapter_with_another_command() {
    for built_in in DRIVEN {
        let text = format!("like = \"{}\"\ncommand = [\"mine\", \"-x\"]", built_in.name);
        let like = table(&text);
        assert_eq!(like.check(), Ok(()));
        assert_eq!(like.capabilities(), built_in.capabilities);
        assert_eq!((like.env_names(), like.login()), (built_in.env.to_vec(), Some(built_in.login)));
        let command = vec!["mine".to_owned(), "-x".to_owned()];
        let same = built_in.adapter(Turn { command, ..turn() }).launch();
        assert_eq!(like.adapter(turn()).unwrap().launch(), same, "{}", built_in.name);
        let command = vec!["/opt/mine".to_owned()];
        let argv = like.adapter(Turn { command, ..turn() }).unwrap().launch().argv;
        assert_eq!(argv[..2], ["/opt/mine", "-x"], "a command of the run is the program");
    }
    assert_eq!(table("like = \"claude\"").check(), Ok(()), "it is on PATH");
    assert_eq!(table("like = \"acp\"").check(), Err(Unusable::NoCommand));
    let what = Unusable::LikeWhat { kind: "exec".to_owned() };
    assert_eq!(table("like = \"exec\"").check(), Err(what));
}

#[test]
fn orders_name_the_adapter_by_their_table_or_by_their_kind() {
    let orders = |kind: &str, declared: Option<Declared>| Orders {
        kind: kind.to_owned(),
        turn: turn(),
        session_file: PathBuf::new(),
        heartbeat: None,
        caps: Caps::default(),
        turn_number: None,
        begins: None,
        patience_ms: 0,
        refuses: false,
        secrets: Default::default(),
        declared,
        prompt_afresh: None,
    };
    let program = |orders: &Orders| {
        // As they come from a file.
        let json = serde_json::to_string(orders).unwrap();
        let read: Orders = serde_json::from_str(&json).unwrap();
        assert_eq!(&read, orders);
        read.adapter(turn()).map(|adapter| adapter.launch().argv[0].clone())
    };
    assert_eq!(program(&orders("claude", None)).as_deref(), Ok("claude"));
    assert_eq!(program(&orders("claude", Some(table(SMALL)))).as_deref(), Ok("agent"));
    let unknown = Unusable::NoDriver { kind: "mine".to_owned() };
    assert_eq!(program(&orders("mine", None)), Err(unknown));
    let old: Orders =
        serde_json::from_str(r#"{"kind":"pi","turn":{},"session_file":"/s"}"#).unwrap();
    assert_eq!(old.declared, None);
}

#[test]
fn an_agent_that_tells_of_its_tools_may_be_silent_for_less() {
    let window = |text: &str| table(text).stall_window_ms();
    let of_kind = |name: &str| kind(name).and_then(|kind| kind.stall_window_ms);
    assert_eq!(window(SMALL), of_kind("file"));
    assert_eq!(window(CODEX), of_kind("codex"));
    assert_eq!(window("like = \"codex\""), of_kind("codex"));
}
