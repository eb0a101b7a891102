//! Agents that a table `[agents.NAME]` of `config.toml` describes. The program here prints lines of JSON that no adapter
//! of ours knows.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Scripted, child_of, usage};
use crate::harness::{Home, kill, str_of, text, until};
use crate::loops::{Loop, rests, workspace};

/// Runs `N.py` as its N-th process. Writes down what it was started with and asked.
const AGENT: &str = r#"
import json, os, sys, time
here, args = sys.argv[1], sys.argv[2:]
log = os.path.join(here, "log.jsonl")
n = sum(1 for _ in open(log)) + 1 if os.path.exists(log) else 1
prompt = sys.stdin.read()
name = args[args.index("--continue") + 1] if "--continue" in args else "c-%d" % n
env = {key: value for key, value in os.environ.items() if key.startswith(("MINE_", "OTHER_"))}
with open(log, "a") as file:
    file.write(json.dumps({"args": args, "prompt": prompt, "name": name, "env": env}) + "\n")
def out(**line):
    sys.stdout.write(json.dumps(line) + "\n"); sys.stdout.flush()
def spend(given, taken, usd):
    out(type="spend", tokens={"in": given, "out": taken}, usd=usd)
def end(answer):
    out(type="end", ok=True, answer=answer)
out(type="hello", conversation=name)
exec(open(os.path.join(here, "%d.py" % n)).read())
"#;

/// The table of it, ten lines.
const TABLE: &str = r#"[agents.mine]
command = ["python3", "HERE/agent.py", "HERE"]
resume = ["--continue", "{session}"]
env = ["MINE_*"]
login = "mine login"
session = "conversation"
said = [{ when.type = "text", text = "text" }]
usage = [{ when.type = "spend", scope = "message", input = "tokens.in", output = "tokens.out", cost = "usd" }]
trouble = [{ when.why = "limit", kind = "quota", until = "again_at" }, { when.why = "login", kind = "auth" }]
result = { completed = [{ type = "end", ok = true }], failed = [{ type = "end", ok = false }], text = "answer", error = "why" }
"#;

struct Mine<'h> {
    home: &'h Home,
    dir: PathBuf,
}

impl<'h> Mine<'h> {
    /// An agent whose processes do this, one after another, and a config that declares it.
    fn new(home: &'h Home, scripts: &[&str]) -> Self {
        let dir = home.scratch().join("mine");
        fs::create_dir(&dir).expect("the scratch directory is ours");
        fs::write(dir.join("agent.py"), AGENT).expect("it was just made");
        for (at, script) in scripts.iter().enumerate() {
            fs::write(dir.join(format!("{}.py", at + 1)), script).expect("it was just made");
        }
        let mine = Self { home, dir };
        configure(home, &mine.table());
        mine
    }

    fn table(&self) -> String {
        TABLE.replace("HERE", &self.dir.display().to_string())
    }

    /// A loop of this agent, with these lines in its file.
    fn start(&self, lines: &str) -> String {
        Loop::running(self.home, "max_turns: 9").kind("mine").with(lines).start()
    }

    /// What each process was started with and asked.
    fn processes(&self) -> Vec<Value> {
        let log = fs::read_to_string(self.dir.join("log.jsonl")).unwrap_or_default();
        log.lines().map(|line| serde_json::from_str(line).expect("a whole line")).collect()
    }

    /// Waits until the first attempt at this turn has told an event of this name.
    fn until_told(&self, id: &str, turn: u32, event: &str) {
        let path = self.home.attempt_dir(id, turn, 1).join("agent.jsonl");
        let name = format!("\"event\":\"{event}\"");
        until(event, || {
            fs::read_to_string(&path).is_ok_and(|text| text.contains(&name)).then_some(())
        });
    }
}

fn configure(home: &Home, config: &str) {
    fs::write(home.path().join("config.toml"), config).expect("the home is ours");
}

#[test]
fn ten_lines_of_a_table_make_an_agent_that_loops_resumes_and_is_charged() {
    assert_eq!(TABLE.lines().count(), 10);
    let home = Home::new().env("MINE_KEY", "mine-secret-value").env("OTHER_KEY", "not for it");
    let mine = Mine::new(
        &home,
        &[
            "out(type='text', text='one'); spend(100, 10, 0.25); end('one')",
            "spend(50, 5, 0.125); time.sleep(1000)",
            "spend(20, 2, 0.5); end('two')",
            "open('made', 'w').close(); spend(30, 3, 1); end('three')",
        ],
    );
    let id = mine.start("checks: {done: [\"test -e made\"]}");
    mine.until_told(&id, 2, "spent");
    kill(child_of(home.pid(&id)), "KILL");
    let shown = rests(&home, &id, "completed", "done");
    assert_eq!((str_of(&shown, "summary"), shown["turns_committed"].as_u64()), ("three", Some(3)));
    let processes = mine.processes();
    assert_eq!(processes.len(), 4, "{processes:?}");
    assert!(processes.iter().all(|it| it["name"] == "c-1"), "one conversation: {processes:?}");
    assert_eq!(processes[0]["args"], json!([]));
    assert_eq!(processes[3]["args"], json!(["--continue", "c-1"]));
    let prompt = |at: usize| processes[at]["prompt"].as_str().expect("a prompt");
    assert!(prompt(0).contains("Do it."), "{}", prompt(0));
    assert!(prompt(1).contains("test -e made") && prompt(3).contains("test -e made"));
    assert!(prompt(2).contains("turn 2, attempt 2"), "{}", prompt(2));
    let env = json!({"MINE_KEY": "mine-secret-value"});
    assert!(processes.iter().all(|it| it["env"] == env), "{processes:?}");
    // What was killed is counted as far as it was heard, which is a floor.
    assert_eq!(usage(&home, &id), (200, 20, false));
    assert_eq!(shown["usage"]["cost_usd"], 1.875);
    let told = fs::read_to_string(home.attempt_dir(&id, 1, 1).join("agent.jsonl")).expect("events");
    assert!(!told.contains("not_understood"), "ten lines know all of its lines: {told}");
    let logs = home.ok(&["logs", &id, "--turn", "1"]);
    assert!(logs.contains("one") && !logs.contains("conversation"), "{logs}");
}

#[test]
fn what_a_declared_agent_reports_of_limits_and_logins_is_acted_upon() {
    let home = Home::new();
    let mine = Mine::new(
        &home,
        &[
            "out(type='end', ok=False, why='limit', again_at=int(time.time()) + 2)",
            "out(type='end', ok=False, why='login')",
            "spend(7, 3, 0.5); end('in')",
        ],
    );
    let id = mine.start("");
    let blocked = rests(&home, &id, "blocked", "auth_expired");
    assert!(str_of(&blocked, "reason").contains("(run: mine login)"), "{blocked}");
    home.ok(&["resume", &id]);
    let shown = rests(&home, &id, "completed", "done");
    assert_eq!(shown["limits"]["max_attempts"]["used"], 1, "neither was a try: {shown}");
    let waited = home.events(&id).into_iter().find(|event| event["cause"] == "rate_limit");
    let waited = waited.expect("the run has waited");
    let ended = home.events(&id).into_iter().find(|event| event["outcome"] == "impeded");
    assert_eq!(waited["until"], ended.expect("it was impeded")["until"], "{waited}");
    assert_eq!(mine.processes().len(), 3);
}

#[test]
fn an_agent_that_is_like_claude_speaks_as_claude_does() {
    let home = Home::new().env("ANTHROPIC_API_KEY", "a-key-of-the-user");
    let asks = "allowed = ask('rm -r build')
say(allowed + ' ' + os.environ['FLAVOUR'] + ' ' + os.environ['ANTHROPIC_API_KEY'][:5])
say(os.environ['FLAVOUR_TOKEN'])
result('asked')";
    let agent = Scripted::new(&home, &[asks]);
    let here = agent.dir.display();
    let table = format!(
        "[agents.cousin]\nlike = \"claude\"\ncommand = [\"python3\", \"{here}/agent.py\", \"{here}\"]\n\
         set_env = {{ FLAVOUR = \"plain\", FLAVOUR_TOKEN = \"not-for-eyes\" }}\n"
    );
    configure(&home, &table);
    let id = Loop::running(&home, "model: big").kind("cousin");
    let id = id.with("approvals: {patience_ms: 0}").start();
    let shown = rests(&home, &id, "blocked", "needs_approval");
    assert!(str_of(&shown, "reason").contains("rm -r build"), "{shown}");
    assert_eq!(shown["agent"]["kind"], "cousin");
    home.ok(&["answer", &id, "--approve"]);
    rests(&home, &id, "completed", "done");
    let processes = agent.processes();
    assert_eq!(processes[1]["session"], "session-1", "{processes:?}");
    let args = processes[1]["args"].to_string();
    assert!(args.contains("\"--model\",\"big\"") && args.contains("stream-json"), "{args}");
    let logs = home.ok(&["logs", &id]);
    assert!(logs.contains("allow plain a-key"), "{logs}");
    assert!(logs.contains("[FLAVOUR_TOKEN]") && !logs.contains("not-for-eyes"), "{logs}");
}

#[test]
fn a_run_keeps_its_table_when_the_config_changes_and_the_daemon_dies() {
    let home = Home::new();
    let waits = "while not os.path.exists('go'): time.sleep(0.02)\nspend(1, 1, 0.5); end('one')";
    let last = "open('made', 'w').close(); spend(1, 1, 0.5); end('two')";
    let mine = Mine::new(&home, &[waits, last]);
    let id = mine.start("checks: {done: [\"test -e made\"]}");
    mine.until_told(&id, 1, "session");
    configure(&home, "[agents.other]\nlike = \"pi\"\n");
    let refused = home.fails(2, &["run", "-d", "--agent", "mine", "--task", "x"]);
    assert!(refused.contains("there is no kind \"mine\""), "{refused}");
    assert!(refused.contains(", other;"), "{refused}");
    home.crash_daemon();
    fs::write(workspace(&home).join("go"), "").expect("the scratch directory is ours");
    let shown = rests(&home, &id, "completed", "done");
    assert_eq!(shown["turns_committed"], 2);
    let processes = mine.processes();
    assert_eq!((processes.len(), &processes[1]["name"]), (2, &json!("c-1")), "{processes:?}");
    assert_eq!(usage(&home, &id), (2, 2, true));
}

#[test]
fn an_agent_without_a_way_to_resume_begins_anew_each_turn() {
    let home = Home::new();
    let made = "open('made', 'w').close(); spend(1, 1, 0.5); end('two')";
    let mine = Mine::new(&home, &["spend(1, 1, 0.5); end('one')", made]);
    let table = mine.table();
    let lines: Vec<&str> = table.lines().filter(|line| !line.starts_with("resume")).collect();
    configure(&home, &lines.join("\n"));
    let id = mine.start("checks: {done: [\"test -e made\"]}");
    rests(&home, &id, "completed", "done");
    let names: Vec<Value> = mine.processes().iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names, ["c-1", "c-2"]);
    assert_eq!(usage(&home, &id), (2, 2, true));
}

#[test]
fn declared_agents_are_listed_with_what_they_can_do_and_can_be_tested() {
    let home = Home::new();
    let mine = Mine::new(&home, &["spend(70, 7, 0.25); end('ready')"]);
    let cousin = "[agents.cousin]\nlike = \"codex\"\ncommand = [\"/no/such/program\"]\n";
    configure(&home, &format!("{}{cousin}", mine.table()));
    let listed = home.json(&["agents", "--json"]);
    let of = |kind: &str| {
        let all = listed.as_array().expect("a list");
        all.iter().find(|it| it["kind"] == kind).expect("it is listed").clone()
    };
    let (own, like) = (of("mine"), of("cousin"));
    assert_eq!((&own["declared"], &own["like"]), (&json!(true), &Value::Null));
    assert_eq!((&like["declared"], &like["like"]), (&json!(true), &json!("codex")));
    assert_eq!(of("codex")["declared"], false);
    assert_eq!(of("codex")["capabilities"], like["capabilities"]);
    let can = &own["capabilities"];
    let is_all = |names: &[&str], is: bool| names.iter().all(|name| can[*name] == is);
    assert!(is_all(&["resume", "cost", "reset_time"], true), "{can}");
    assert!(is_all(&["steer", "cancel", "approvals", "mcp"], false), "{can}");
    assert!(own["program"].as_str().is_some_and(|path| path.ends_with("/python3")), "{own}");
    assert!(own["version"].is_null() && like["program"].is_null(), "{own} {like}");
    let table = home.ok(&["agents"]);
    assert!(table.contains("config.toml, like codex"), "{table}");
    let tested = home.ok(&["agents", "test", "mine"]);
    assert!(tested.contains("mine works: one turn, 77 tokens, $0.25"), "{tested}");
    let processes = mine.processes();
    let prompt = processes[0]["prompt"].as_str().expect("a prompt");
    assert!(processes.len() == 1 && prompt.contains("the one word: ready"), "{prompt}");
    let refused = home.fails(2, &["agents", "test", "theirs"]);
    assert!(refused.contains("one of claude") && refused.contains("cousin, mine"), "{refused}");
}

#[test]
fn a_kind_that_is_not_known_is_refused_with_those_that_are() {
    let home = Home::new();
    let mine = Mine::new(&home, &[]);
    let file = home.scratch().join("WORKFLOW.md");
    let check = |agent: &str| {
        fs::write(&file, format!("---\nagent: {agent}\n---\nDo it.\n")).expect("ours");
        let output = home.output(&["check", &file.display().to_string()]);
        (output.status.code(), format!("{}{}", text(&output.stdout), text(&output.stderr)))
    };
    let (code, said) = check("{kind: mine}");
    assert!(code == Some(0) && said.contains("agent mine"), "{said}");
    let (code, said) = check("{kind: nine}");
    assert!(code == Some(2) && said.contains("WORKFLOW.md:2: agent.kind"), "{said}");
    assert!(said.contains("one of exec, file, claude") && said.contains(", mine;"), "{said}");
    let (code, said) = check("{kind: mine, model: big}");
    assert!(code == Some(2) && said.contains("agents.mine.model_flag"), "{said}");
    let refused = home.fails(2, &["run", "-d", "--agent", "mine"]);
    assert!(refused.contains("an agent of kind mine needs a task"), "{refused}");
    let refused = home.fails(2, &["run", "-d", "--agent", "nine", "--task", "x"]);
    assert!(refused.contains("there is no kind \"nine\"") && refused.contains("mine"), "{refused}");
    assert!(mine.processes().is_empty());
}

#[test]
fn a_table_that_is_wrong_starts_nothing_and_says_where() {
    for (from, to, place) in [
        ("session =", "sesion =", "config.toml:6: agents.mine.sesion"),
        ("scope = \"message\"", "scope = \"day\"", "config.toml:8: agents.mine.usage[0].scope"),
        ("[agents.mine]", "[agents.claude]", "config.toml:1: agents: \"claude\" is a kind"),
        ("result = {", "ignore = [] #", "config.toml:1: agents.mine.result.completed"),
    ] {
        let home = Home::new();
        let mine = Mine::new(&home, &[]);
        configure(&home, &mine.table().replace(from, to));
        let refused = home.fails(2, &["run", "-d", "--agent", "mine", "--task", "x"]);
        assert!(refused.contains(place), "{place}: {refused}");
        let listed = home.output(&["agents"]);
        assert!(text(&listed.stdout).contains("claude") && listed.status.code() == Some(2));
        assert!(text(&listed.stderr).contains(place), "{place}: {}", text(&listed.stderr));
    }
}
