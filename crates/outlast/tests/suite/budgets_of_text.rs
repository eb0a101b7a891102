//! Untrusted text has a budget of bytes: templates, messages, results of tools. What is allowed in makes no turn fail.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::harness::{Gate, Home, is_alive, kill, lines, str_of, until};
use crate::hosted::{becomes, file, left, of_kind, post, put, request, start, until_state, work};

/// 26 doublings: 640 MiB, and 1.7 GiB at the peak of a daemon that renders it.
fn bomb() -> String {
    let line = "{% assign a = a | append: a %}\n".repeat(26);
    format!("---\nagent: {{command: 'true'}}\n---\n{{% assign a = \"xxxxxxxxxx\" %}}\n{line}ok\n")
}

/// Far above what a daemon takes, and far below what the template wants.
const MOST_KIB: u64 = 300 << 10;

fn peak_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it is alive");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux says so");
    line.split_whitespace().next().and_then(|kib| kib.parse().ok()).expect("a number")
}

#[test]
fn a_template_that_doubles_a_value_is_refused_before_it_has_any_memory() {
    let home = Home::new();
    let path = home.scratch().join("bomb.md");
    put(&path, &bomb());
    let path = path.display().to_string();
    // Twenty-two lines of 10 bytes doubled seventeen times.
    let expected = "bomb.md:21: append makes a value of more than 1 MiB";
    // The client may not even reserve what the template wants.
    let script = format!("ulimit -v {}; exec \"$@\"", 4 * MOST_KIB);
    let mut check = home.command("sh");
    check.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_outlast"), "check", &path]);
    let said = check.output().expect("there is a sh");
    let said = (said.status.code(), String::from_utf8_lossy(&said.stderr).into_owned());
    assert!(said.0 == Some(2) && said.1.contains(expected), "{said:?}");
    home.ok(&["daemon", "start"]);
    let said = home.fails(2, &["run", "-d", "-f", &path, "--task", "x"]);
    assert!(said.contains("append makes a value of more than 1 MiB"), "{said}");
    // A client of another version, or none of ours, has the daemon look.
    let workflow = json!({ "path": path, "text": bomb() });
    let (status, answer) =
        post(&home, "/v1/runs", &json!({ "workflow": workflow, "task": "x", "dir": work(&home) }));
    assert!((400..500).contains(&status), "{status} {answer}");
    assert!(answer.to_string().contains("more than 1 MiB"), "{answer}");
    assert!(peak_kib(home.daemon_pid()) < MOST_KIB, "{} KiB", peak_kib(home.daemon_pid()));
}

/// The prompt of a turn, as the agent found it.
fn prompt(home: &Home, id: &str, turn: u32) -> String {
    let path = home.attempt_dir(id, turn, 1).join("prompt.md");
    fs::read_to_string(path).expect("the attempt has a prompt")
}

/// A loop file whose template prints everything that it is told.
fn talkative(home: &Home, agent: &str, settings: &str) -> String {
    let path = file(home, "talk", agent, settings);
    let text = fs::read_to_string(&path).expect("it was just written");
    let template = "{% for m in messages %}{{ m.from }}: {{ m.text }}\n{% endfor %}\
        {% for r in previous.tool_results %}{{ r.name }}: {{ r.output | upcase }}\n{% endfor %}\
        {{ previous.summary }}";
    put(path.as_ref(), &format!("{text}{template}\n"));
    path
}

const LARGEST_PROMPT: usize = 1 << 20;

#[test]
fn slow_messages_that_are_allowed_in_are_cut_in_the_prompt_and_fail_nothing() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let agent = format!(
        "if [ \"$OUTLAST_TURN\" = 1 ]; then {}; say continue x; else say done y; fi",
        gate.pass()
    );
    let id = start(&home, &talkative(&home, &agent, ""), &[]);
    until_state(&home, &id, "running");
    for n in 0..256 {
        let text = format!("message {n} {}", "m".repeat(65_000));
        let (status, said) = post(
            &home,
            &format!("/v1/runs/{id}/messages"),
            &json!({ "text": text, "id": format!("m{n}") }),
        );
        assert!((200..300).contains(&status), "{status} {said}");
    }
    gate.open();
    becomes(&home, &id, "completed", "done");
    let prompt = prompt(&home, &id, 2);
    assert!(prompt.len() <= LARGEST_PROMPT, "{} bytes", prompt.len());
    let whole = home.attempt_dir(&id, 2, 1).join("messages.jsonl");
    assert!(prompt.contains("message 255 mmm"), "each is there");
    let mark =
        format!("bytes left out here; the whole message is line 256 of {}]", whole.display());
    assert!(prompt.contains(&mark), "no {mark}");
    assert_eq!(lines(&whole), 256);
    let last = fs::read_to_string(&whole).expect("it is there");
    let last: Value = serde_json::from_str(last.lines().last().unwrap_or_default()).expect("JSON");
    assert_eq!(str_of(&last, "text").len(), "message 255 ".len() + 65_000);
    // The request has them within its own budget, and says so.
    let request = request(&home, &id, 2, 1);
    let given = request["messages"].as_array().expect("a list");
    let bytes: usize = given.iter().map(|it| str_of(it, "text").len()).sum();
    assert!(given.len() == 256 && bytes <= 1 << 20, "{bytes}");
    let (kept, cut) = (str_of(&given[9], "text").len(), given[9]["bytes_left_out"].as_u64());
    assert_eq!(cut, Some(("message 9 ".len() + 65_000 - kept) as u64));
    assert_eq!(given[9]["whole"], whole.display().to_string());
}

#[test]
fn slow_results_of_tools_are_cut_in_the_prompt_and_whole_where_it_says() {
    let home = Home::new();
    let tools =
        "tools: [{name: fill, command: [sh, -c, 'yes | head -c 40000; printf end'], class: keyed}]";
    let call = |n: u32| format!("{{\"name\":\"fill\",\"input\":{{}},\"key\":\"k{n}\"}}");
    let calls: Vec<String> = (0..40).map(call).collect();
    let agent = format!(
        "if [ \"$OUTLAST_TURN\" = 1 ]; then respond '{{\"status\":\"continue\",\"summary\":\"x\",\"tool_calls\":[{}]}}'; else say done y; fi",
        calls.join(",")
    );
    let id = start(&home, &talkative(&home, &agent, tools), &[]);
    becomes(&home, &id, "completed", "done");
    let prompt = prompt(&home, &id, 2);
    assert!(prompt.len() <= LARGEST_PROMPT, "{} bytes", prompt.len());
    let run = home.state().join("runs").join(&id);
    let whole = run.join("e40").join("output.log");
    assert!(prompt.contains(&format!("the whole output is in {}]", whole.display())));
    assert_eq!(fs::metadata(&whole).map(|it| it.len()).ok(), Some(40_003));
    assert_eq!(prompt.matches("bytes left out here").count() % 40, 0, "each of them, each time");
    assert!(prompt.contains("Result of fill (k39)") && prompt.contains("END\n"));
    let results = request(&home, &id, 2, 1)["previous"]["tool_results"].clone();
    assert!(results.as_array().is_some_and(|all| all.len() == 40));
    assert!(str_of(&results[39], "output").ends_with("end"), "the request has what it had");
}

#[test]
fn what_an_agent_says_at_its_longest_makes_the_next_prompt_no_failure() {
    let home = Home::new();
    // A task of its own making, printed twice, is longer than a prompt may be.
    let agent = "if [ \"$OUTLAST_TURN\" = 1 ]; then\n\
        long=$(head -c 600000 /dev/zero | tr '\\0' t)\n\
        respond \"{\\\"status\\\":\\\"continue\\\",\\\"summary\\\":\\\"$(head -c 300000 /dev/zero | tr '\\0' s)\\\",\\\"next_task\\\":\\\"$long\\\"}\"\n\
        else say done y; fi";
    let path = file(&home, "long", agent, "");
    let text = fs::read_to_string(&path).expect("it was just written");
    put(
        path.as_ref(),
        &format!("{text}{{{{ task | append: task | append: task }}}}{{{{ previous.summary }}}}\n"),
    );
    let id = start(&home, &path, &[]);
    becomes(&home, &id, "completed", "done");
    let prompt = prompt(&home, &id, 2);
    assert!(prompt.len() <= LARGEST_PROMPT, "{} bytes", prompt.len());
    let request_file = home.attempt_dir(&id, 2, 1).join("request.json");
    let mark = format!("the whole text is `task` in {}]", request_file.display());
    assert!(prompt.contains(&mark), "no {mark}");
    assert_eq!(str_of(&request(&home, &id, 2, 1), "task").len(), 600_000);
}

#[test]
fn slow_a_call_costs_the_same_however_many_there_were() {
    let home = Home::new();
    // Three turns of thirty calls with 32 KiB each, and then the first of them once more.
    let tools = "tools: [{name: fill, command: [sh, -c, 'yes \"$OUTLAST_CALL_KEY\" | head -c 32768'], class: keyed}]";
    let agent = "t=$OUTLAST_TURN; calls=; n=0\n\
        while [ $n -lt 30 ]; do [ $t = 4 ] && key=k1.$n || key=k$t.$n\n\
        calls=\"$calls${calls:+,}{\\\"name\\\":\\\"fill\\\",\\\"input\\\":{},\\\"key\\\":\\\"$key\\\"}\"; n=$((n+1)); done\n\
        if [ $t -lt 5 ]; then respond \"{\\\"status\\\":\\\"continue\\\",\\\"summary\\\":\\\"x\\\",\\\"tool_calls\\\":[$calls]}\"; else say done y; fi";
    let id = start(&home, &file(&home, "calls", agent, tools), &[]);
    becomes(&home, &id, "completed", "done");
    assert_eq!(of_kind(&home, &id, "CallAnswered").len(), 30, "none is made again");
    assert_eq!(of_kind(&home, &id, "ErrandStarted").len(), 90);
    let results = request(&home, &id, 5, 1)["previous"]["tool_results"].clone();
    let results = results.as_array().expect("a list");
    assert_eq!(results.len(), 30);
    for (n, result) in results.iter().enumerate() {
        let output = str_of(result, "output");
        assert!(
            output.ends_with(&format!("k1.{n}\n")) || output.contains(&format!("k1.{n}\n")),
            "{n}"
        );
        assert!(output.len() > 30_000, "read from the journal: {} bytes", output.len());
    }
}

#[test]
fn a_daemon_whose_reader_hangs_leaves_when_it_is_told_to() {
    let bin = tempfile::tempdir().expect("a directory");
    let path = format!("{}:{}", bin.path().display(), std::env::var("PATH").unwrap_or_default());
    let home = Home::new().env("PATH", path);
    let git = home.scratch().join("git.pid");
    let id = home.start("true");
    assert_eq!(home.wait(&id), 0);
    let repository = crate::hosted::repository(&home);
    // From now on a git never ends. The daemon asks one on a thread of its own.
    let script = format!("#!/bin/sh\necho $$ >>'{}'\nexec sleep 300\n", git.display());
    put(&bin.path().join("git"), &script);
    let made = Command::new("chmod").arg("700").arg(bin.path().join("git")).status();
    assert!(made.expect("there is a chmod").success());
    let path = file(&home, "loop", "say done x", "workspace: {strategy: worktree}");
    let dir = repository.display().to_string();
    let _asking = home.spawn(&["run", "-d", "--dir", &dir, "-f", &path]);
    until("a git hangs", || (lines(&git) > 0).then_some(()));
    let daemon = home.daemon_pid();
    home.ok(&["daemon", "stop"]);
    // The lock goes an instant before the process does.
    until("the daemon is gone", || (!is_alive(daemon)).then_some(()));
    let pid: u32 = left(&home, "git.pid")[0].parse().expect("a pid");
    assert!(is_alive(pid), "the daemon did not wait for it");
    kill(pid, "KILL");
    // The lock is free, and the journal is whole.
    fs::remove_file(bin.path().join("git")).expect("it is ours");
    home.ok(&["daemon", "start"]);
    assert_eq!(home.show(&id)["state"], "completed");
}
