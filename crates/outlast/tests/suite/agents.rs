//! Agents that speak a protocol, driven inside the step. The program here speaks Claude Code's stream-json as a script
//! says, and cheats where the script does; `xtask agents` runs the real ones.

mod declared;
mod forks;
mod sessions;

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::harness::{Home, kill, str_of, until};
use crate::loops::{Loop, rests, workspace};

/// Runs `N.py` as its N-th process, the last one again and again. Writes down what it was started with and asked.
const AGENT: &str = r#"
import json, os, sys, time, threading
here = sys.argv[1]
log = os.path.join(here, "log.jsonl")
n = sum(1 for _ in open(log)) + 1 if os.path.exists(log) else 1
args = sys.argv[2:]
resumed = args[args.index("--resume") + 1] if "--resume" in args else None
session = resumed if resumed and "--fork-session" not in args else "session-%d" % n
def raw(text):
    sys.stdout.write(text + "\n"); sys.stdout.flush()
def out(**message):
    raw(json.dumps(dict(message, session_id=session)))
first = json.loads(sys.stdin.readline())
prompt = first["message"]["content"][0]["text"]
with open(log, "a") as file:
    file.write(json.dumps({"args": args, "prompt": prompt, "session": session}) + "\n")
out(type="system", subtype="init", model="scripted")
def replay(line):
    if "--replay-user-messages" in args:
        out(type="user", isReplay=True, message=line["message"])
replay(first)
def hear():
    line = json.loads(sys.stdin.readline())
    replay(line)
    return line["message"]["content"][0]["text"]
calls = 0
def call(blocks, given=100, taken=4):
    global calls
    calls += 1
    out(type="assistant", parent_tool_use_id=None, message={"id": "m%d.%d" % (n, calls), "content": blocks,
        "usage": {"input_tokens": given, "output_tokens": taken}})
def say(text, **usage):
    call([{"type": "text", "text": text}], **usage)
def tool(command, name="Bash", **usage):
    call([{"type": "tool_use", "id": "t%d" % calls, "name": name, "input": {"command": command}}], **usage)
def ended(failed=False):
    out(type="user", message={"content": [{"type": "tool_result", "tool_use_id": "t%d" % (calls - 1), "is_error": failed}]})
def ask(command, name="Bash"):
    out(type="control_request", request_id="q%d" % n, request={"subtype": "can_use_tool", "tool_name": name,
        "input": {"command": command}, "tool_use_id": "t"})
    return json.loads(sys.stdin.readline())["response"]["response"]["behavior"]
def result(text, given=100, taken=4, cost=0.001, **more):
    since = {"scripted": {"inputTokens": given, "outputTokens": taken, "costUSD": cost}}
    out(**dict(dict(type="result", subtype="success", is_error=False, terminal_reason="completed", result=text,
        model_usage_since_last_result=since), **more))
def failed(status, kind, text, **more):
    result(text, given=0, taken=0, cost=0, is_error=True, terminal_reason="api_error", api_error_status=status,
        api_error_type=kind, **more)
step = n
while not os.path.exists(os.path.join(here, "%d.py" % step)):
    step -= 1
exec(open(os.path.join(here, "%d.py" % step)).read())
"#;

pub(crate) struct Scripted<'h> {
    home: &'h Home,
    pub(crate) dir: PathBuf,
}

impl<'h> Scripted<'h> {
    /// An agent whose processes do this, one after another.
    pub(crate) fn new(home: &'h Home, scripts: &[&str]) -> Self {
        let dir = home.scratch().join("agent");
        fs::create_dir(&dir).expect("the scratch directory is ours");
        fs::write(dir.join("agent.py"), AGENT).expect("it was just made");
        for (at, script) in scripts.iter().enumerate() {
            fs::write(dir.join(format!("{}.py", at + 1)), script).expect("it was just made");
        }
        Self { home, dir }
    }

    /// A loop of this agent, with these lines in its file.
    pub(crate) fn start(&self, lines: &str) -> String {
        self.start_with(lines, &[])
    }

    pub(crate) fn start_with(&self, lines: &str, flags: &[&str]) -> String {
        self.in_loop("claude").with(lines).start_with(flags)
    }

    fn in_loop(&self, kind: &str) -> Loop<'h> {
        let command = format!("command: [python3, {0}/agent.py, {0}]", self.dir.display());
        Loop::running(self.home, &command).kind(kind)
    }

    /// What each process was started with and asked.
    pub(crate) fn processes(&self) -> Vec<Value> {
        let log = fs::read_to_string(self.dir.join("log.jsonl")).unwrap_or_default();
        log.lines().map(|line| serde_json::from_str(line).expect("a whole line")).collect()
    }

    pub(crate) fn until_processes(&self, count: usize) -> Vec<Value> {
        until("the agent is started", || Some(self.processes()).filter(|all| all.len() >= count))
    }

    pub(crate) fn attempt_file(&self, id: &str, attempt: u32, name: &str) -> PathBuf {
        self.home.state().join(format!("runs/{id}/t1.a{attempt}/{name}"))
    }
}

/// The first child of a process.
pub(crate) fn child_of(pid: u32) -> u32 {
    let children =
        fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("it lives");
    let first = children.split_whitespace().next().expect("it has a child");
    first.parse().expect("a pid")
}

pub(crate) const ALLOW: &str = "approvals: {mode: allow}";

fn usage(home: &Home, id: &str) -> (u64, u64, bool) {
    let usage = &home.show(id)["usage"];
    let count = |name: &str| usage[name].as_u64().expect("a count");
    (count("input_tokens"), count("output_tokens"), usage["known"].as_bool().expect("known or not"))
}

#[test]
fn a_refuted_claim_is_the_next_prompt_of_the_same_conversation() {
    let home = Home::new();
    let first = "tool('make'); result('one', given=1000, taken=40)";
    let second = "open('made', 'w').close(); say('two'); result('two', given=300, taken=9)";
    let agent = Scripted::new(&home, &[first, second]);
    let id = agent.start(&format!("{ALLOW}\nchecks: {{done: [\"test -e made\"]}}"));
    rests(&home, &id, "completed", "done");
    let processes = agent.processes();
    assert_eq!(processes.len(), 2, "{processes:?}");
    assert_eq!(processes[1]["session"], "session-1");
    let prompt = processes[1]["prompt"].as_str().expect("a prompt");
    assert!(prompt.contains("test -e made"), "{prompt}");
    assert_eq!(usage(&home, &id), (1300, 49, true));
    let shown = home.show(&id);
    assert_eq!((str_of(&shown, "summary"), shown["turns_committed"].as_u64()), ("two", Some(2)));
    let logs = home.ok(&["logs", &id]);
    assert!(logs.contains("→ Bash: make") && !logs.contains("session_id"), "{logs}");
}

#[test]
fn a_quota_is_waited_for_until_its_reset_and_uses_up_no_try() {
    let home = Home::new();
    let limited = "
reset = int(time.time()) + 2
out(type='rate_limit_event', rate_limit_info={'status': 'rejected', 'resetsAt': reset - 1, 'rateLimitType': 'five_hour',
    'unifiedWindows': {'five_hour': {'resetsAt': reset - 1, 'status': 'rejected'}, 'seven_day': {'resetsAt': reset, 'status': 'rejected'}}})
failed(429, 'rate_limit_error', 'limit', api_error='usage_limit_reached')";
    let agent = Scripted::new(&home, &[limited, "say('on'); result('on')"]);
    let id = agent.start(ALLOW);
    rests(&home, &id, "completed", "done");
    let ended = home.events(&id).into_iter().find(|event| event["outcome"] == "impeded");
    let ended = ended.expect("the first attempt was impeded");
    assert_eq!(ended["by"], "provider", "{ended}");
    let waited = home.events(&id).into_iter().find(|event| event["cause"] == "rate_limit");
    assert_eq!(waited.expect("the run has waited")["until"], ended["until"]);
    let processes = agent.processes();
    assert_eq!(processes[1]["session"], "session-1", "the same conversation: {processes:?}");
    assert_eq!(home.show(&id)["limits"]["max_attempts"]["used"], 1, "by the one that answered");
}

#[test]
fn an_expired_login_blocks_at_its_first_sign_and_a_person_lets_it_go_on() {
    let home = Home::new();
    let expired = "
out(type='system', subtype='api_retry', attempt=1, max_retries=10, retry_delay_ms=500, error_status=401,
    error='authentication_failed')
time.sleep(1000)";
    let agent = Scripted::new(&home, &[expired, "result('on')"]);
    let id = agent.start(ALLOW);
    rests(&home, &id, "blocked", "auth_expired");
    assert!(str_of(&home.show(&id), "reason").contains("/login"));
    home.ok(&["resume", &id]);
    rests(&home, &id, "completed", "done");
    assert_eq!(agent.processes().len(), 2);
}

#[test]
fn a_question_rests_without_a_process_and_what_was_allowed_is_allowed_once_more() {
    let home = Home::new();
    let asks = "say(ask('rm -r build')); result('asked')";
    let agent = Scripted::new(&home, &[asks]);
    let id = agent.start("approvals: {patience_ms: 0}");
    rests(&home, &id, "blocked", "needs_approval");
    let shown = home.show(&id);
    assert!(str_of(&shown, "reason").contains("rm -r build"), "{shown}");
    assert!(shown["pid"].is_null(), "no process waits for a person: {shown}");
    home.crash_daemon();
    home.ok(&["answer", &id, "--approve"]);
    rests(&home, &id, "completed", "done");
    let processes = agent.processes();
    let prompt = processes[1]["prompt"].as_str().expect("a prompt");
    assert!(
        prompt.contains("It had asked: Bash: rm -r build. A person has allowed it."),
        "{prompt}"
    );
    let logs = home.ok(&["logs", &id]);
    assert!(logs.ends_with("  allowed\nallow"), "{logs}");
}

#[test]
fn a_policy_denies_at_once_and_the_agent_goes_on() {
    let home = Home::new();
    let agent = Scripted::new(&home, &["result(ask('rm -r build') + ' ' + ask('ls'))"]);
    let id = agent.start("approvals: {mode: deny, allow: [Read]}");
    rests(&home, &id, "completed", "done");
    assert_eq!(str_of(&home.show(&id), "summary"), "deny deny");
}

#[test]
fn an_end_without_the_agents_own_word_is_no_success_whatever_the_exit_code() {
    let home = Home::new();
    let agent = Scripted::new(&home, &["say('all done'); sys.exit(0)", "result('now')"]);
    let id = agent.start(ALLOW);
    rests(&home, &id, "completed", "done");
    let processes = agent.processes();
    let prompt = processes[1]["prompt"].as_str().expect("a prompt");
    assert!(prompt.contains("ended without an answer"), "{prompt}");
    // What the first was heard to use is charged, and its price is not known.
    assert_eq!(usage(&home, &id), (200, 8, false));
}

#[test]
fn a_result_is_not_the_end_while_work_goes_on_in_the_background() {
    let home = Home::new();
    let script = "
out(type='system', subtype='background_tasks_changed', tasks=[{'task_id': 'b1'}])
result('too early')
out(type='system', subtype='background_tasks_changed', tasks=[])
result('at the end')";
    let agent = Scripted::new(&home, &[script]);
    let id = agent.start(ALLOW);
    rests(&home, &id, "completed", "done");
    assert_eq!(str_of(&home.show(&id), "summary"), "at the end");
    assert_eq!(usage(&home, &id), (200, 8, true));
}

#[test]
fn an_agent_that_does_not_leave_after_its_result_is_made_to() {
    let home = Home::new();
    let script = "
import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
result('done')
result('done again')
time.sleep(1000)";
    let agent = Scripted::new(&home, &[script]);
    let id = agent.start(ALLOW);
    rests(&home, &id, "completed", "done");
    assert_eq!(usage(&home, &id), (100, 4, true), "what comes after the end is not counted");
    assert_eq!(agent.processes().len(), 1);
}

#[test]
fn a_conversation_that_cannot_be_resumed_is_begun_anew_once() {
    let home = Home::new();
    let gone = "result('', subtype='error_during_execution', is_error=True, terminal_reason=None,
    errors=['No conversation found with session ID: x'], given=0, taken=0, cost=0)
sys.exit(1)";
    let agent = Scripted::new(&home, &["say('begun'); sys.exit(1)", gone, "result('anew')"]);
    let id = agent.start(ALLOW);
    rests(&home, &id, "completed", "done");
    let processes = agent.processes();
    let resumes = |at: usize| {
        processes[at]["args"].as_array().expect("arguments").contains(&"--resume".into())
    };
    assert_eq!((processes.len(), resumes(1), resumes(2)), (3, true, false), "{processes:?}");
    assert_eq!(home.show(&id)["attempt"], 2, "both were one attempt");
}

#[test]
fn a_ceiling_holds_in_the_middle_of_a_turn() {
    let home = Home::new();
    let script = "
for _ in range(1000):
    tool('again', given=1000, taken=10)
    time.sleep(0.05)
result('never')";
    let agent = Scripted::new(&home, &[script]);
    let id = agent.start(&format!("{ALLOW}\nlimits: {{max_tokens: 5000}}"));
    rests(&home, &id, "exhausted", "max_tokens");
    let (input, output, is_known) = usage(&home, &id);
    assert!((5000..20_000).contains(&(input + output)) && !is_known, "{input} {output} {is_known}");
}

#[test]
fn kill_of_agent_driver_shim_daemon_and_all_goes_on_with_the_same_conversation() {
    for who in ["agent", "driver", "shim", "daemon", "all"] {
        let home = Home::new();
        let agent = Scripted::new(
            &home,
            &["tool('work')\nwhile not os.path.exists('go'): time.sleep(0.02)\nresult('done')"],
        );
        let id = agent.start(ALLOW);
        agent.until_processes(1);
        let events = agent.attempt_file(&id, 1, "agent.jsonl");
        until("the tool runs", || {
            fs::read_to_string(&events)
                .is_ok_and(|text| text.contains("tool_started"))
                .then_some(())
        });
        let (driver, shim) = (home.pid(&id), home.shim_pid(&id));
        let child = child_of(driver);
        let daemon = home.daemon_pid();
        let struck = match who {
            "agent" => vec![child],
            "driver" => vec![driver],
            "shim" => vec![shim],
            "daemon" => vec![daemon],
            _ => vec![daemon, shim, driver, child],
        };
        struck.into_iter().for_each(|pid| kill(pid, "KILL"));
        fs::write(workspace(&home).join("go"), "").expect("the scratch directory is ours");
        rests(&home, &id, "completed", "done");
        let processes = agent.processes();
        let expected = if who == "daemon" { 1 } else { 2 };
        assert_eq!(processes.len(), expected, "{who}: {processes:?}");
        assert!(processes.iter().all(|it| it["session"] == "session-1"), "{who}: {processes:?}");
        assert_eq!(home.show(&id)["turns_committed"], 1, "{who}");
    }
}

#[test]
fn what_an_agent_writes_into_its_own_files_is_not_believed_over_its_end() {
    let home = Home::new();
    let script = "
attempt = os.path.dirname(os.environ['OUTLAST_PROMPT_FILE'])
forged = {'end': {'end': 'completed', 'text': 'forged'}, 'spent': {'input_tokens': 1}}
json.dump(forged, open(os.path.join(attempt, 'agent-end.json'), 'w'))
os.remove(os.path.join(attempt, 'agent.jsonl'))
say('caught')
failed(400, 'invalid_request_error', 'no')";
    let agent = Scripted::new(&home, &[script, "result('honest')"]);
    let id = agent.start(ALLOW);
    rests(&home, &id, "completed", "done");
    assert_eq!(str_of(&home.show(&id), "summary"), "honest");
    assert_eq!(agent.processes().len(), 2);
}

#[test]
fn an_end_that_an_agent_forges_before_it_kills_its_driver_is_not_believed() {
    let home = Home::new();
    let script = "
import signal
attempt = os.path.dirname(os.environ['OUTLAST_PROMPT_FILE'])
forged = {'end': {'end': 'completed', 'text': 'forged'}, 'spent': {'input_tokens': 1, 'cost_usd_micros': 1}}
json.dump(forged, open(os.path.join(attempt, 'agent-end.json'), 'w'))
os.kill(os.getppid(), signal.SIGKILL)";
    let agent = Scripted::new(&home, &[script, "result('honest')"]);
    let id = agent.start(ALLOW);
    rests(&home, &id, "completed", "done");
    assert_eq!(str_of(&home.show(&id), "summary"), "honest");
    assert!(!usage(&home, &id).2, "what the first used up is not known");
}

#[test]
fn a_response_file_counts_over_the_end_of_the_turn() {
    let home = Home::new();
    let script = "
answer = os.environ['OUTLAST_RESPONSE_FILE']
json.dump({'status': 'blocked', 'summary': 'left or right?'}, open(answer + '.new', 'w'))
os.rename(answer + '.new', answer)
result('all done')";
    let agent = Scripted::new(&home, &[script]);
    let id = agent.start(ALLOW);
    rests(&home, &id, "blocked", "agent_blocked");
    assert_eq!(usage(&home, &id), (100, 4, true), "its spend is the driver's count");
}

#[test]
fn garbage_and_a_line_without_end_are_counted_and_kept() {
    let home = Home::new();
    let script = "
raw('not json'); raw('[1,2]'); sys.stdout.buffer.write(b'\\xff\\xfe\\n'); sys.stdout.flush()
raw('{\"type\":\"' + 'x' * 40000000 + '\"}')
result('fine')";
    let agent = Scripted::new(&home, &[script]);
    let id = agent.start(ALLOW);
    rests(&home, &id, "completed", "done");
    let events = fs::read_to_string(agent.attempt_file(&id, 1, "agent.jsonl")).expect("events");
    assert!(events.contains("\"lines\":4"), "{events}");
}

#[test]
fn an_end_that_is_no_file_of_the_drivers_is_a_failed_try_and_holds_nothing_up() {
    let home = Home::new();
    let script = "
import subprocess
attempt = os.path.dirname(os.environ['OUTLAST_PROMPT_FILE'])
end = os.path.join(attempt, 'agent-end.json')
# Once the driver has written its word, a leftover puts something else in its place.
subprocess.Popen(['sh', '-c', 'while ! test -e \"$0\"; do sleep 0.01; done; rm -f \"$0\"; mkdir \"$0\"', end],
    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
result('one')";
    let agent = Scripted::new(&home, &[script, "result('two')"]);
    let id = agent.start(ALLOW);
    let output = home.output(&["wait", &id, "--timeout", "60s"]);
    assert_eq!(output.status.code(), Some(0), "{}", crate::harness::text(&output.stderr));
}

#[test]
fn a_name_of_a_conversation_that_is_an_option_or_a_path_is_given_to_no_program() {
    for name in ["--dangerously-skip-permissions", "../../x", "a b", ""] {
        let home = Home::new();
        let first =
            format!("session = {name:?}\nout(type='system', subtype='status')\nsys.exit(1)");
        let agent = Scripted::new(&home, &[&first, "result('done')"]);
        let id = agent.start(ALLOW);
        rests(&home, &id, "completed", "done");
        let processes = agent.processes();
        let args = processes[1]["args"].as_array().expect("arguments");
        assert!(!args.contains(&name.into()) || name.is_empty(), "{args:?}");
    }
}

#[test]
fn what_was_not_said_is_not_nothing_and_what_was_counted_is_not_taken_back() {
    let home = Home::new();
    let silent = "out(type='result', subtype='success', is_error=False, terminal_reason='completed', result='x')";
    let agent = Scripted::new(&home, &[silent]);
    let id = agent.start(&format!("{ALLOW}\nlimits: {{max_tokens: 5000}}"));
    rests(&home, &id, "completed", "done");
    let (input, _, is_known) = usage(&home, &id);
    assert!(input > 0 && !is_known, "the reservation is charged, and marked: {input}");
    let home = Home::new();
    let agent = Scripted::new(&home, &["say('much', given=2500); result('x', given=2, taken=1)"]);
    let id = agent.start(ALLOW);
    rests(&home, &id, "completed", "done");
    assert_eq!(usage(&home, &id).0, 2500);
}

#[test]
fn keys_of_the_agent_are_in_no_file_but_its_environment() {
    let key = "sk-ant-a-very-secret-key";
    let home = Home::new().env("ANTHROPIC_API_KEY", key);
    let script = "key = os.environ['ANTHROPIC_API_KEY']
say(key); sys.stderr.write(key + '\\n'); sys.stderr.flush(); tool('echo ' + key); result(key)";
    let agent = Scripted::new(&home, &[script]);
    let id = agent.start(ALLOW);
    rests(&home, &id, "completed", "done");
    let logs = home.ok(&["logs", &id]);
    assert!(logs.contains("[ANTHROPIC_API_KEY]") && !logs.contains(key), "{logs}");
    assert!(!home.ok(&["show", &id, "--json"]).contains(key));
    let found = home
        .command("grep")
        .args(["-rl", key])
        .arg(home.state())
        .output()
        .expect("there is a grep");
    let found = crate::harness::text(&found.stdout);
    // What the daemon was started with has a file of its own, 0600.
    assert!(found.lines().all(|path| path.ends_with("/daemon.env.json")), "{found}");
}

#[test]
fn a_budget_that_runs_share_is_known_and_kept_within_the_turn() {
    let home = Home::new();
    let rule = "[budgets.labels.night]\nmax_tokens = 5000\non_exceed = \"end\"\n";
    fs::write(home.path().join("config.toml"), rule).expect("the home is ours");
    let script = "
for _ in range(2000):
    tool('again', given=1000, taken=10)
    time.sleep(0.05)
result('never')";
    let agent = Scripted::new(&home, &[script]);
    let id = agent.start_with(ALLOW, &["--label", "night=1"]);
    rests(&home, &id, "exhausted", "budget");
}
