//! What an agent that is driven does, as people and scripts see it: while it works, and afterwards.

use std::fs;
use std::io::{BufRead, BufReader, Write};

use serde_json::{Value, json};

use crate::agents::{ALLOW, Scripted};
use crate::harness::{Gate, Home, str_of, text, until};
use crate::loops::rests;
use crate::tmux::Tmux;
use crate::watch::Watch;

/// What a script says to be held up at a gate.
fn pass(gate: &Gate) -> String {
    format!("open('{}').readline()", gate.path().display())
}

fn agent(home: &Home, id: &str) -> Value {
    home.show(id)["agent"].clone()
}

/// The row of a run in `ps --json`.
fn row(home: &Home, id: &str) -> Value {
    let rows = home.json(&["ps", "-a", "--json"]);
    let rows = rows.as_array().expect("an array");
    rows.iter().find(|row| row["id"] == id).expect("it is listed").clone()
}

fn until_tool(home: &Home, id: &str, name: &str) -> Value {
    // The call that uses the tool says both, the context last.
    until("the tool runs", || {
        let is_whole = |it: &Value| it["tool"]["name"] == name && !it["context"].is_null();
        Some(agent(home, id)).filter(is_whole)
    })
}

fn until_no_tool(home: &Home, id: &str) -> Value {
    until("the tool has ended", || {
        Some(agent(home, id)).filter(|it| it["tool"].is_null() && !it["model"].is_null())
    })
}

#[test]
fn the_tool_that_runs_the_context_and_the_spend_are_shown_while_they_are_so() {
    let home = Home::new();
    let (mut during, mut after) = (Gate::new(&home, "during"), Gate::new(&home, "after"));
    let script = format!(
        "tool('cargo test', given=1000, taken=40); {}; ended(); {}; result('done', given=1000, taken=40)",
        pass(&during),
        pass(&after)
    );
    let scripted = Scripted::new(&home, &[&script]);
    let id = scripted.start(ALLOW);
    let shown = until_tool(&home, &id, "Bash");
    assert_eq!((str_of(&shown, "kind"), str_of(&shown, "model")), ("claude", "scripted"));
    assert_eq!(
        (&shown["tool"]["about"], &shown["tools"], &shown["context"]["used"]),
        (&json!("cargo test"), &json!(1), &json!(1000)),
        "{shown}"
    );
    let spent = &shown["turn_usage"];
    assert_eq!((&spent["input_tokens"], &spent["output_tokens"]), (&json!(1000), &json!(40)));
    assert_eq!(spent["known"], false, "its price comes at the end");
    let since: jiff::Timestamp = str_of(&shown["tool"], "since").parse().expect("a time");
    let started: jiff::Timestamp = str_of(&home.show(&id), "started_at").parse().expect("a time");
    assert!(since >= started, "{since} {started}");
    let listed = row(&home, &id);
    assert_eq!(listed["agent"]["tool"], shown["tool"]);
    let table = home.ok(&["ps"]);
    assert!(table.contains("running: Bash") && table.contains("CONTEXT"), "{table}");
    let page = home.ok(&["show", &id]);
    assert!(page.contains("tool       Bash: cargo test, "), "{page}");
    assert!(page.contains("context    1k tokens"), "{page}");
    assert!(page.contains("this turn  1040 tokens (1000 in, 40 out, 0 cached)"), "{page}");
    // The run's own figures know it within the turn.
    until("the run is charged", || (row(&home, &id)["tokens"] == 1040).then_some(()));

    during.open();
    until_no_tool(&home, &id);
    assert!(!home.ok(&["ps"]).contains("running: Bash"));
    after.open();
    rests(&home, &id, "completed", "done");
    let ended = agent(&home, &id);
    let nothing = |key: &&str| ended[*key].is_null() || ended[*key] == 0;
    let at_work = ["tool", "tools", "background", "context", "retrying", "limit", "asks"];
    assert!(at_work.iter().all(nothing), "nothing is at work: {ended}");
    assert!(row(&home, &id)["agent"].is_null());
}

#[test]
fn a_screen_is_told_of_a_tools_end_although_nothing_is_printed() {
    let home = Home::new();
    let (mut during, _after) = (Gate::new(&home, "during"), Gate::new(&home, "after"));
    let script = format!("tool('make'); {}; ended(); {}", pass(&during), pass(&_after));
    let scripted = Scripted::new(&home, &[&script]);
    let id = scripted.start(ALLOW);
    let mut watch = Watch::open(&home, "");
    watch.listed();
    watch.row(&id, |row| row["agent"]["tool"]["name"] == "Bash");
    during.open();
    let row = watch.row(&id, |row| row["agent"]["tool"].is_null());
    assert_eq!(row["agent"]["model"], "scripted");
}

#[test]
fn top_shows_the_tool_the_context_and_the_spend() {
    let home = Home::new();
    let during = Gate::new(&home, "during");
    let script = format!("tool('cargo test', given=90000, taken=1000); {}", pass(&during));
    let scripted = Scripted::new(&home, &[&script]);
    scripted.start(ALLOW);
    let program = env!("CARGO_BIN_EXE_outlast");
    let Some(tmux) = Tmux::start(&home, 120, 20, &format!("'{program}' top")) else { return };
    tmux.until("the list has it", |screen| {
        screen.contains("running: Bash") && screen.contains("CTX") && screen.contains("91k")
    });
    tmux.press(&["Enter"]);
    tmux.shows("claude scripted  Bash: cargo test, ");
    tmux.shows("context 90k tokens  this turn 91k tokens");
    tmux.press(&["q"]);
}

#[test]
fn a_window_that_a_turn_has_told_is_known_in_the_next() {
    let home = Home::new();
    let gate = Gate::new(&home, "gate");
    let first = "say('one', given=100)
since = {'scripted': {'inputTokens': 100, 'outputTokens': 4, 'costUSD': 0.001, 'contextWindow': 400}}
result('one', modelUsage=since, model_usage_since_last_result=since)";
    let second = format!("tool('make', given=100); {}", pass(&gate));
    let scripted = Scripted::new(&home, &[first, &second]);
    let id = scripted.start(&format!("{ALLOW}\nchecks: {{done: [\"false\"]}}"));
    let shown = until_tool(&home, &id, "Bash");
    assert_eq!(shown["context"], json!({"used": 100, "window": 400, "fill": 0.25}), "{shown}");
    assert!(home.ok(&["ps"]).contains("25%"));
}

#[test]
fn a_retry_of_the_agents_own_is_shown_until_it_works_again() {
    let home = Home::new();
    let (mut during, _after) = (Gate::new(&home, "during"), Gate::new(&home, "after"));
    let script = format!(
        "out(type='system', subtype='api_retry', attempt=2, max_retries=10, retry_delay_ms=60000, error_status=529,
    error='overloaded')
{}
say('on'); {}",
        pass(&during),
        pass(&_after)
    );
    let scripted = Scripted::new(&home, &[&script]);
    let id = scripted.start(ALLOW);
    let shown =
        until("it retries", || Some(agent(&home, &id)).filter(|it| !it["retrying"].is_null()));
    let retrying = &shown["retrying"];
    assert_eq!((&retrying["attempt"], &retrying["most"]), (&json!(2), &json!(10)), "{shown}");
    assert!(str_of(retrying, "until") > str_of(retrying, "since"), "{retrying}");
    assert!(home.ok(&["ps"]).contains("running: retries"));
    assert!(home.ok(&["show", &id]).contains("; try 2 of 10 in "));
    during.open();
    until("it works again", || agent(&home, &id)["retrying"].is_null().then_some(()));
}

#[test]
fn what_an_agent_names_its_tools_cannot_act_on_a_terminal() {
    let home = Home::new();
    let gate = Gate::new(&home, "gate");
    let script = format!(
        "tool('\\x1b]0;title\\x07make\\nall', name='\\x1b[2JEvil\\x1b[31m\\x07' + 'x' * 300); {}",
        pass(&gate)
    );
    let scripted = Scripted::new(&home, &[&script]);
    let id = scripted.start(ALLOW);
    let shown =
        until("the tool runs", || Some(agent(&home, &id)).filter(|it| !it["tool"].is_null()));
    let tool = &shown["tool"];
    assert!(str_of(tool, "name").starts_with("Evilxx") && str_of(tool, "name").len() < 300);
    assert!(str_of(tool, "about").ends_with("make all"), "{tool}");
    for args in [&["ps"][..], &["show", &id], &["show", &id, "--turn", "1"]] {
        let printed = home.ok(args);
        assert!(printed.contains("Evil"), "{printed}");
        assert!(!printed.contains(|it: char| it.is_control() && it != '\n'), "{printed:?}");
    }
}

#[test]
fn events_that_cannot_be_read_are_said_to_be_so_and_hold_nothing_up() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script = format!("tool('make'); {}; ended(); result('done')", pass(&gate));
    let scripted = Scripted::new(&home, &[&script]);
    let id = scripted.start(ALLOW);
    until_tool(&home, &id, "Bash");
    let events = scripted.attempt_file(&id, 1, "agent.jsonl");
    let whole = fs::read(&events).expect("the driver has written it");

    // Cut in the middle of a line, as a disk that was full would leave it.
    let file = fs::OpenOptions::new().write(true).open(&events).expect("it is ours");
    file.set_len(whole.len() as u64 - 5).expect("it is ours");
    assert!(agent(&home, &id)["unreadable"].is_null(), "what is whole is read");
    fs::OpenOptions::new()
        .append(true)
        .open(&events)
        .and_then(|mut file| file.write_all(b"\ngarbage\n"))
        .expect("it is ours");
    assert!(agent(&home, &id)["unread_bytes"].as_u64() > Some(8), "the rest is said to be missing");
    let page = home.ok(&["show", &id]);
    assert!(page.contains("not read"), "{page}");
    let turn = home.json(&["show", &id, "--turn", "1", "--json"]);
    assert_eq!(turn["attempts"][0]["agent"]["damaged_lines"], 2, "{turn}");

    fs::remove_file(&events).expect("it is ours");
    assert!(str_of(&agent(&home, &id), "unreadable").contains("agent.jsonl"));
    assert!(home.ok(&["ps"]).contains("running: events unreadable"));
    let made = home.command("mkfifo").arg(&events).status().expect("there is a mkfifo");
    assert!(made.success());
    assert!(str_of(&agent(&home, &id), "unreadable").contains("no regular file"));
    let turn = home.ok(&["show", &id, "--turn", "1"]);
    assert!(turn.contains("[not readable: agent.jsonl"), "{turn}");
    gate.open();
    rests(&home, &id, "completed", "done");
}

#[test]
fn a_turn_is_read_back_as_it_was_with_each_attempt_and_its_end() {
    let home = Home::new();
    let first = "say('I look.'); tool('make'); ended(failed=True); sys.exit(1)";
    let second =
        "say('Once more.'); say(ask('rm -r build')); tool('make'); ended(); result('It is built.')";
    let scripted = Scripted::new(&home, &[first, second]);
    let id = scripted.start("approvals: {mode: deny}");
    rests(&home, &id, "completed", "done");
    let page = home.ok(&["show", &id, "--turn", "1"]);
    let (one, two) = page.split_once("\nattempt 2\n").expect("two attempts");
    for words in
        ["[model scripted]", "I look.", "→ Bash: make", "← Bash: failed, ", "[interrupted: "]
    {
        assert!(one.contains(words), "{words}: {one}");
    }
    for words in [
        "Once more.",
        "? Bash: rm -r build",
        "  denied: ",
        "← Bash: ok, ",
        "[spent $0.001, 312 tokens",
        "It is built.\n",
        "[completed]",
    ] {
        assert!(two.contains(words), "{words}: {two}");
    }
    let turn = home.json(&["show", &id, "--turn", "1", "--json"]);
    let attempts = turn["attempts"].as_array().expect("attempts");
    assert_eq!(attempts.len(), 2);
    let events = |at: usize| {
        let events = attempts[at]["agent"]["events"].as_array().expect("events");
        events.iter().map(|event| str_of(event, "event").to_owned()).collect::<Vec<_>>()
    };
    assert!(events(0).contains(&"tool_ended".to_owned()), "{:?}", events(0));
    assert!(events(1).contains(&"decided".to_owned()), "{:?}", events(1));
    assert_eq!(attempts[0]["agent"]["end"]["end"]["end"], "interrupted");
    assert_eq!(attempts[1]["agent"]["end"]["end"]["text"], "It is built.");
    let command = home.start("true");
    home.wait(&command);
    let turn = home.json(&["show", &command, "--turn", "1", "--json"]);
    assert!(turn["attempts"][0]["agent"].is_null(), "{turn}");
}

#[test]
fn a_long_turn_is_cut_in_the_middle_and_says_where_all_of_it_is() {
    let home = Home::new();
    let script = "
say('the first word')
for n in range(3000):
    say('word %d ' % n + 'x' * 1000)
say('the last word')
result('the last word')";
    let scripted = Scripted::new(&home, &[script]);
    let id = scripted.start(ALLOW);
    rests(&home, &id, "completed", "done");
    let page = home.ok(&["show", &id, "--turn", "1"]);
    assert!(page.contains("the first word") && page.contains("the last word"));
    assert!(!page.contains("word 1000 "), "the middle is left out");
    let all = format!("outlast logs {id} --turn 1 --attempt 1");
    let line = page.lines().find(|line| line.contains("left out")).expect("it is said");
    assert!(line.contains(&all), "{line}");
    let args: Vec<&str> = all.split(' ').skip(1).collect();
    assert!(home.ok(&args).contains("word 1000 "));
}

#[test]
fn logs_raw_prints_every_line_from_and_to_the_agent() {
    let home = Home::new();
    let script = "raw('not json'); say(ask('make')); result('done')";
    let scripted = Scripted::new(&home, &["say('one'); sys.exit(1)", script]);
    let id = scripted.start(ALLOW);
    rests(&home, &id, "completed", "done");
    let files: String = (1..=2)
        .map(|attempt| {
            let path = scripted.attempt_file(&id, attempt, "transcript.jsonl");
            fs::read_to_string(path).expect("the driver has written it")
        })
        .collect();
    let printed = home.output(&["logs", &id, "--raw"]);
    assert!(printed.status.success(), "{}", text(&printed.stderr));
    assert_eq!(text(&printed.stdout), files, "to the byte, attempt by attempt");
    assert!(text(&printed.stderr).is_empty(), "{}", text(&printed.stderr));
    let second = home.ok(&["logs", &id, "--raw", "--turn", "1", "--attempt", "2"]);
    assert!(files.ends_with(&format!("{second}\n")) && second.contains("not json"));
    let last = home.ok(&["logs", &id, "--raw", "--tail", "1"]);
    assert_eq!(Some(last.as_str()), files.lines().last());
    let lines: Vec<Value> =
        second.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(lines.iter().any(|line| line["dir"] == ">") && lines.iter().any(|it| it["dir"] == "<"));

    fs::remove_file(scripted.attempt_file(&id, 1, "transcript.jsonl")).expect("it is ours");
    let said = home.fails(2, &["logs", &id, "--raw"]);
    assert!(said.contains("there is no transcript on the disk: t1.a1"), "{said}");
}

#[test]
fn logs_raw_follows_what_comes_and_refuses_a_run_that_is_not_driven() {
    let home = Home::new();
    let mut gates = [Gate::new(&home, "a"), Gate::new(&home, "b")];
    let script = format!(
        "{}; out(type='system', subtype='status', word='unprinted'); {}; result('done')",
        pass(&gates[0]),
        pass(&gates[1])
    );
    let scripted = Scripted::new(&home, &[&script]);
    let id = scripted.start(ALLOW);
    scripted.until_processes(1);
    let mut client = home.spawn(&["logs", &id, "--raw", "-f"]);
    let mut lines = BufReader::new(client.0.stdout.take().expect("it is piped")).lines();
    let mut next = |words: &str| {
        let found = lines.find(|line| line.as_ref().is_ok_and(|line| line.contains(words)));
        found.unwrap_or_else(|| panic!("no line has {words}")).expect("it is read")
    };
    next("init");
    gates[0].open();
    // Nothing of it is printed for people, so only the file itself says that it has come.
    next("unprinted");
    gates[1].open();
    next("done");
    assert_eq!(client.code(), 0, "it ends with the run");

    let command = home.start("true");
    let said = home.fails(2, &["logs", &command, "--raw"]);
    assert!(said.contains("is a command") && said.contains("outlast logs"), "{said}");
    home.fails(2, &["logs", &id, "--raw", "--stream", "stderr"]);
}

#[test]
fn flags_of_run_say_what_a_loop_file_would_say_of_an_agent() {
    let home = Home::new();
    let script = "result(ask('ls') + ' ' + ask('rm', 'Write'))";
    let scripted = Scripted::new(&home, &[script]);
    let program = format!("{}/agent.py", scripted.dir.display());
    let dir = scripted.dir.display().to_string();
    let start = |flags: &[&str]| {
        let head = ["run", "-d", "--agent", "claude", "--task", "do it"];
        let command = ["--", "python3", &program, &dir];
        home.ok(&[&head[..], flags, &command[..]].concat())
    };
    let id = start(&["--approvals", "deny", "--allow", "Ba*", "--model", "m1", "--effort", "high"]);
    rests(&home, &id, "completed", "done");
    assert_eq!(str_of(&home.show(&id), "summary"), "allow deny");
    let args = scripted.processes()[0]["args"].clone();
    let args: Vec<&str> =
        args.as_array().expect("arguments").iter().filter_map(Value::as_str).collect();
    assert!(args.windows(2).any(|pair| pair == ["--model", "m1"]), "{args:?}");
    assert!(args.windows(2).any(|pair| pair == ["--effort", "high"]), "{args:?}");

    let id = start(&["--approvals", "allow"]);
    rests(&home, &id, "completed", "done");
    assert_eq!(str_of(&home.show(&id), "summary"), "allow allow");
    let id = start(&[]);
    until("a person is asked", || home.show(&id)["asks"]["text"].is_string().then_some(()));
    home.ok(&["stop", &id]);

    // Over what a file says.
    let id = scripted.start_with("approvals: {mode: deny}", &["--approvals", "allow"]);
    rests(&home, &id, "completed", "done");
    assert_eq!(str_of(&home.show(&id), "summary"), "allow allow");
}

#[test]
fn flags_for_an_agent_are_refused_for_a_command() {
    let home = Home::new();
    for flag in
        [&["--approvals", "deny"], &["--allow", "Bash"], &["--model", "m"], &["--effort", "e"]]
    {
        let args = [&["run", "-d"][..], flag, &["--", "true"]].concat();
        let said = home.fails(2, &args);
        assert!(said.contains(flag[0]) && said.contains("--agent KIND"), "{said}");
    }
    home.fails(2, &["run", "-d", "--agent", "claude", "--approvals", "maybe", "--task", "x"]);
    assert!(home.json(&["ps", "-a", "--json"]).as_array().is_some_and(Vec::is_empty));
}

/// Five tries of `bad_response` came of it once.
#[test]
fn an_agent_that_is_not_installed_fails_at_once_and_says_so() {
    let home = Home::new();
    let bin = home.scratch().join("bin");
    fs::create_dir(&bin).expect("the scratch directory is ours");
    let args = ["run", "--name", "lp", "--agent", "claude", "--retry", "4", "--max-cost", "1"];
    let mut command = home.outlast(&[&args[..], &["--task", "do it"]].concat());
    let output = command.env("PATH", &bin).output().expect("it starts");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("outlast: claude: command not found\n"), "{said}");
    assert!(said.contains("outlast agents\n"), "{said}");
    let shown = home.show("lp");
    assert_eq!(
        (str_of(&shown, "state"), str_of(&shown, "reason_code")),
        ("failed", "never_started")
    );
    assert_eq!((&shown["attempt"], &shown["usage"]["known"]), (&1.into(), &true.into()));
    let page = home.ok(&["show", "lp"]);
    assert!(page.contains("outlast rerun lp"), "{page}");
}

#[test]
fn an_agent_that_knows_its_program_needs_neither_file_nor_command() {
    let home = Home::new();
    let scripted = Scripted::new(&home, &["result('done')"]);
    let bin = home.scratch().join("bin");
    fs::create_dir(&bin).expect("the scratch directory is ours");
    let here = scripted.dir.display();
    let program = bin.join("claude");
    fs::write(&program, format!("#!/bin/sh\nexec python3 {here}/agent.py {here} \"$@\"\n"))
        .expect("it is ours");
    let made = home.command("chmod").args(["+x"]).arg(&program).status().expect("there is a chmod");
    assert!(made.success());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = format!("{}:{}", bin.display(), path.to_string_lossy());
    let mut command = home.outlast(&["run", "--agent", "claude", "--task", "do it"]);
    let output = command.env("PATH", path).output().expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = home.fails(2, &["run", "--agent", "acp", "--task", "x"]);
    assert!(said.contains("put the command after"), "{said}");
    let schedule = ["schedule", "add", "nightly", "--cron", "0 2 * * *", "--agent", "claude"];
    home.ok(&[&schedule[..], &["--approvals", "deny", "--task", "x"]].concat());
}
