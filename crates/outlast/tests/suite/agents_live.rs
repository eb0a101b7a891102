//! A driven agent while it works: a person answers what it asks, and messages reach its turn.

use std::fs;

use serde_json::Value;

use crate::agents::{Scripted, child_of};
use crate::harness::{Home, kill, str_of, text, until};
use crate::loops::rests;
use crate::notices::Sheet;

const ASKS: &str = "say(ask('make')); result('asked')";

fn until_asked(home: &Home, id: &str) -> Value {
    until("the agent asks", || Some(home.show(id)).filter(|run| run["asks"]["text"].is_string()))
}

fn decisions(home: &Home, id: &str) -> Vec<Value> {
    let events = home.events(id).into_iter();
    events.filter(|event| event["kind"] == "Answered").collect()
}

#[test]
fn an_agent_that_asks_waits_is_told_of_and_is_answered_from_any_shell_over_a_crash() {
    let home = Home::new();
    let agent = Scripted::new(&home, &[ASKS]);
    let sheet = Sheet::new(&home, "told");
    let id = agent.start_with("", &["--notify", &sheet.address()]);
    let run = until_asked(&home, &id);
    assert_eq!((str_of(&run, "state"), str_of(&run, "health")), ("running", "waiting_human"));
    assert_eq!(run["asks"]["tool"], "Bash");
    assert_eq!(run["asks"]["text"], "Bash: make");
    let told = sheet.until(1);
    assert_eq!(str_of(&told[0], "type"), "run.asked");
    assert!(str_of(&told[0]["data"], "summary").contains("Bash: make"), "{}", told[0]);
    let shown = home.ok(&["show", &id]);
    assert!(shown.contains("asks  ") && shown.contains("--approve"), "{shown}");
    let logs = home.ok(&["logs", &id]);
    assert!(logs.contains(&format!("outlast answer {id} --approve")), "{logs}");
    let pid = home.pid(&id);
    home.crash_daemon();
    assert_eq!(until_asked(&home, &id)["asks"]["seq"], run["asks"]["seq"]);
    home.ok(&["answer", &id, "--approve"]);
    rests(&home, &id, "completed", "done");
    assert_eq!(agent.processes().len(), 1, "the process that asked has gone on");
    assert!(home.events(&id).iter().all(|event| event["kind"] != "AttemptOrphaned"), "{pid}");
    assert_eq!(str_of(&home.show(&id), "summary"), "asked");
    assert!(home.ok(&["logs", &id]).contains("  allowed\nallow"));
    assert_eq!(decisions(&home, &id).len(), 1);
}

#[test]
fn a_tool_that_a_person_denies_is_not_used_and_words_are_read_by_the_agent() {
    let words = "
out(type='control_request', request_id='q', request={'subtype': 'can_use_tool', 'tool_name': 'Bash',
    'input': {'command': 'make'}, 'tool_use_id': 't'})
answer = json.loads(sys.stdin.readline())['response']['response']
result(answer['behavior'] + ': ' + answer['message'])";
    for (answer, expected) in
        [("--deny", "A person has not allowed it"), ("use ninja", "use ninja")]
    {
        let home = Home::new();
        let agent = Scripted::new(&home, &[words]);
        let id = agent.start("");
        until_asked(&home, &id);
        home.ok(&["answer", &id, answer]);
        rests(&home, &id, "completed", "done");
        let summary = str_of(&home.show(&id), "summary").to_owned();
        assert!(summary.starts_with("deny: ") && summary.contains(expected), "{summary}");
    }
}

#[test]
fn of_two_answers_at_once_one_is_taken_and_the_other_is_told_which() {
    let home = Home::new();
    let agent = Scripted::new(&home, &["say(ask('make')); result(hear())"]);
    let id = agent.start("");
    let seq = until_asked(&home, &id)["asks"]["seq"].to_string();
    let said = std::thread::scope(|scope| {
        let ask = |how: &'static str| {
            let (home, id, seq) = (&home, &id, &seq);
            scope.spawn(move || home.output(&["answer", id, how, "--seq", seq]))
        };
        let both = [ask("--approve"), ask("--deny")];
        both.map(|it| it.join().expect("it answers"))
    });
    let refused: Vec<_> = said.iter().filter(|it| !it.status.success()).collect();
    assert_eq!(refused.len(), 1);
    let why = text(&refused[0].stderr);
    assert!(why.contains("has been answered"), "{why}");
    assert_eq!(decisions(&home, &id).len(), 1);
    home.ok(&["send", &id, "go"]);
    rests(&home, &id, "completed", "done");
}

#[test]
fn after_its_patience_the_process_is_ended_and_the_answer_is_for_the_next() {
    let home = Home::new();
    let agent = Scripted::new(&home, &[ASKS]);
    let id = agent.start("approvals: {patience_ms: 200}");
    rests(&home, &id, "blocked", "needs_approval");
    let events = home.events(&id);
    let asked = events.iter().find(|event| event["kind"] == "QuestionAsked");
    let shown = home.show(&id);
    assert_eq!(shown["asks"]["seq"], asked.expect("it was asked")["seq"], "the same question");
    assert!(shown["pid"].is_null(), "no process waits any longer: {shown}");
    home.ok(&["answer", &id, "--approve"]);
    rests(&home, &id, "completed", "done");
    let processes = agent.processes();
    let prompt = processes[1]["prompt"].as_str().expect("a prompt");
    assert!(prompt.contains("It had asked: Bash: make. A person has allowed it."), "{prompt}");
    assert!(home.ok(&["logs", &id]).ends_with("  allowed\nallow"));
}

#[test]
fn a_question_that_no_person_answers_in_time_is_refused_if_the_run_says_so() {
    let home = Home::new();
    let agent = Scripted::new(&home, &["said = ask('make'); hear(); result(said)"]);
    let id = agent.start("approvals: {timeout: 300ms}");
    until("the question is refused", || {
        home.events(&id).iter().any(|event| event["kind"] == "QuestionWithdrawn").then_some(())
    });
    let run = home.show(&id);
    assert!(run["asks"].is_null() && run["health"] != "waiting_human", "{run}");
    home.ok(&["send", &id, "go"]);
    rests(&home, &id, "completed", "done");
    assert_eq!(str_of(&home.show(&id), "summary"), "deny");
    assert_eq!(agent.processes().len(), 1);
}

#[test]
fn an_answer_that_a_killed_driver_never_heard_holds_for_the_next_attempt() {
    let home = Home::new();
    let agent = Scripted::new(&home, &[ASKS]);
    let id = agent.start("");
    until_asked(&home, &id);
    let driver = home.pid(&id);
    let child = child_of(driver);
    kill(driver, "STOP");
    home.ok(&["answer", &id, "--approve"]);
    kill(child, "KILL");
    kill(driver, "KILL");
    rests(&home, &id, "completed", "done");
    assert_eq!(decisions(&home, &id).len(), 1, "no person was asked again");
    assert_eq!(agent.processes().len(), 2);
    assert!(home.ok(&["logs", &id]).contains("  allowed\nallow"));
}

#[test]
fn a_message_reaches_the_turn_that_runs_and_no_other() {
    let home = Home::new();
    let first = "tool('make'); said = hear(); result(said)";
    let agent = Scripted::new(&home, &[first, "open('made', 'w').close(); result('second')"]);
    let id = agent.start("approvals: {mode: allow}\nchecks: {done: [\"test -e made\"]}");
    until("the tool runs", || home.ok(&["logs", &id]).contains("→ Bash").then_some(()));
    let send = || home.json(&["send", "--id", "m-1", &id, "stop at 5", "--json"]);
    assert_ne!(str_of(&send(), "reaches"), "next_turn");
    until("the agent has it", || {
        home.events(&id).iter().any(|event| event["kind"] == "MessagesGiven").then_some(())
    });
    assert_eq!(str_of(&send(), "reaches"), "this_turn");
    rests(&home, &id, "completed", "done");
    let processes = agent.processes();
    let prompt = processes[1]["prompt"].as_str().expect("a prompt");
    assert!(!prompt.contains("stop at 5"), "it is given once: {prompt}");
    let events = home.events(&id);
    assert!(events.iter().any(|event| event["kind"] == "MessagesGiven"), "{events:?}");
    assert_eq!(home.show(&id)["inbox"]["unread"], 0);
}

#[test]
fn a_message_that_comes_too_late_for_a_turn_is_answered_in_one_more_before_the_end() {
    let home = Home::new();
    // The model has answered when the message comes; the CLI then takes another turn by itself.
    let script = "
while not os.path.exists('sent'): time.sleep(0.02)
line = json.loads(sys.stdin.readline())
result('too early')
replay(line)
result('with ' + line['message']['content'][0]['text'])";
    let agent = Scripted::new(&home, &[script]);
    let id = agent.start("approvals: {mode: allow}");
    agent.until_processes(1);
    let sent = home.json(&["send", &id, "the message", "--json"]);
    assert_eq!(str_of(&sent, "reaches"), "next_step");
    let workspace = crate::loops::workspace(&home);
    fs::write(workspace.join("sent"), "").expect("the scratch directory is ours");
    rests(&home, &id, "completed", "done");
    assert_eq!(str_of(&home.show(&id), "summary"), "with the message");
}

#[test]
fn a_message_that_the_agent_did_not_take_is_the_next_turns() {
    let home = Home::new();
    let first = "
while not os.path.exists('sent'): time.sleep(0.02)
os.close(0); failed(400, 'invalid_request_error', 'no')";
    let agent = Scripted::new(&home, &[first, "result('second')"]);
    let id = agent.start("approvals: {mode: allow}");
    agent.until_processes(1);
    home.ok(&["send", &id, "stop at 5"]);
    let workspace = crate::loops::workspace(&home);
    fs::write(workspace.join("sent"), "").expect("the scratch directory is ours");
    rests(&home, &id, "completed", "done");
    let processes = agent.processes();
    let prompt = processes[1]["prompt"].as_str().expect("a prompt");
    assert!(prompt.contains("stop at 5"), "{prompt}");
}

#[test]
fn what_a_person_allowed_is_allowed_once_and_then_asked_anew() {
    let home = Home::new();
    let agent = Scripted::new(&home, &["say(ask('make')); say(ask('make')); result('x')"]);
    let id = agent.start("approvals: {patience_ms: 0}");
    rests(&home, &id, "blocked", "needs_approval");
    home.ok(&["answer", &id, "--approve"]);
    agent.until_processes(2);
    rests(&home, &id, "blocked", "needs_approval");
    assert!(home.ok(&["logs", &id]).contains("  allowed\nallow"));
    home.ok(&["stop", &id]);
}

#[test]
fn a_name_that_an_agent_uses_for_a_second_question_has_no_answer_yet() {
    let home = Home::new();
    let agent = Scripted::new(&home, &["say(ask('make')); say(ask('rm')); result('x')"]);
    let id = agent.start("");
    until_asked(&home, &id);
    home.ok(&["answer", &id, "--approve"]);
    until("it asks again", || (home.show(&id)["asks"]["text"] == "Bash: rm").then_some(()));
    home.ok(&["answer", &id, "--deny"]);
    rests(&home, &id, "completed", "done");
    let logs = home.ok(&["logs", &id]);
    assert!(logs.contains("  allowed\nallow") && logs.contains("  denied\ndeny"), "{logs}");
    assert_eq!(decisions(&home, &id).len(), 2);
}

#[test]
fn an_agent_that_was_cut_off_at_its_question_has_not_completed_whatever_it_says() {
    let home = Home::new();
    let script = "
out(type='control_request', request_id='q', request={'subtype': 'can_use_tool', 'tool_name': 'Bash',
    'input': {'command': 'make'}, 'tool_use_id': 't'})
sys.stdin.readline()
result('done anyway')";
    let agent = Scripted::new(&home, &[script]);
    let id = agent.start("approvals: {patience_ms: 0}");
    rests(&home, &id, "blocked", "needs_approval");
    home.ok(&["stop", &id]);
}

#[test]
fn a_key_that_a_cut_goes_through_is_shown_in_no_part() {
    let key = format!("sk-ant-{}", "Zq9".repeat(300));
    let home = Home::new().env("ANTHROPIC_API_KEY", &key);
    let script = "
key = os.environ['ANTHROPIC_API_KEY']
tool('curl ' + 'x' * 170 + ' ' + key)
say(ask('x' * 7970 + ' ' + key))
result('x')";
    let agent = Scripted::new(&home, &[script]);
    let id = agent.start("");
    let asked = until_asked(&home, &id).to_string();
    let events = fs::read_to_string(agent.attempt_file(&id, 1, "agent.jsonl")).expect("events");
    let logs = home.ok(&["logs", &id]);
    for said in [&asked, &events, &logs] {
        assert!(said.contains("xxxxxxxx") && !said.contains(&key[..12]), "{said}");
    }
    home.ok(&["stop", &id]);
}

#[test]
fn money_that_was_heard_of_before_a_turn_was_cut_off_is_charged_and_its_ceiling_holds() {
    let home = Home::new();
    let program = home.scratch().join("agent.py");
    let script = "import sys, time\nsys.stdin.read()\nprint('{\"type\":\"spend\",\"id\":\"c\",\"usd\":0.4}', flush=True)\n\
                  print('{\"type\":\"spend\",\"usd\":0.7}', flush=True)\ntime.sleep(1000)\n";
    fs::write(&program, script).expect("the scratch directory is ours");
    let table = format!(
        "[agents.mine]\ncommand = [\"python3\", \"{}\"]\nresume = [\"--go-on\", \"{{session}}\"]\nsession = \"id\"\n\
         usage = [{{ when.type = \"spend\", scope = \"message\", cost = \"usd\" }}]\n\
         result = {{ completed = [{{ type = \"end\" }}], text = \"t\" }}\n",
        program.display()
    );
    fs::write(home.path().join("config.toml"), table).expect("the home is ours");
    let id = home.ok(&["run", "-d", "--agent", "mine", "--task", "x", "--max-cost", "1"]);
    let run = rests(&home, id.trim(), "exhausted", "max_cost_usd");
    let usage = &run["usage"];
    assert_eq!(
        (usage["cost_usd"].as_f64(), &usage["known"]),
        (Some(1.1), &false.into()),
        "{usage}"
    );
}

#[test]
fn a_question_that_the_agent_takes_back_is_open_no_longer() {
    let home = Home::new();
    let script = "
out(type='control_request', request_id='q', request={'subtype': 'can_use_tool', 'tool_name': 'Bash',
    'input': {'command': 'make'}, 'tool_use_id': 't'})
while not os.path.exists('go'): time.sleep(0.02)
out(type='control_cancel_request', request_id='q')
hear(); result('without it')";
    let agent = Scripted::new(&home, &[script]);
    let id = agent.start("");
    until_asked(&home, &id);
    let workspace = crate::loops::workspace(&home);
    fs::write(workspace.join("go"), "").expect("the scratch directory is ours");
    until("the question is gone", || home.show(&id)["asks"].is_null().then_some(()));
    let said = home.fails(2, &["answer", &id, "--approve"]);
    assert!(said.contains("asks nothing"), "{said}");
    home.ok(&["send", &id, "go"]);
    rests(&home, &id, "completed", "done");
}
