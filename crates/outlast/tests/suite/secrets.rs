//! Keys that are given to a run are in no file but its environment, in no answer, in no notice and on no screen.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::harness::{Gate, Home, str_of, text, until};
use crate::hosted::{becomes, configure, file, put, rested, start};
use crate::privacy::tree;
use crate::receiver::Receiver;
use crate::terminal::Terminal;

const SECRET: &str = "s3cr3t-Xq7vT2-never-on-disk";

/// One that JSON does not write as it is.
const QUOTED: &str = r#"q"uo\ted-s3cr3t/4711"#;

/// As `--env` has them.
fn given() -> [String; 4] {
    let token = format!("MY_TOKEN={SECRET}");
    ["--env".to_owned(), token, "--env".to_owned(), format!("MY_PASSWORD={QUOTED}")]
}

fn run(home: &Home, flags: &[&str], script: &str) -> String {
    let given = given();
    let given: Vec<&str> = given.iter().map(String::as_str).collect();
    home.ok(&[&["run", "-d"][..], &given, flags, &["--", "sh", "-c", script]].concat())
}

/// What a program might write of them.
fn forms() -> Vec<String> {
    let json = serde_json::to_string(QUOTED).expect("text is JSON");
    vec![SECRET.to_owned(), QUOTED.to_owned(), json[1..json.len() - 1].to_owned()]
}

/// What `logs` prints of both streams.
fn logs(home: &Home, id: &str) -> String {
    let output = home.output(&["logs", id]);
    text(&[output.stdout, output.stderr].concat())
}

fn holds(bytes: &[u8]) -> Option<String> {
    let has = |form: &String| bytes.windows(form.len()).any(|window| window == form.as_bytes());
    forms().into_iter().find(has)
}

/// Searches every file of the home. Only the environment of a run that has not ended may have a key, for its user alone.
fn assert_not_on_disk(home: &Home) {
    let mut looked_at = 0;
    for path in tree(&home.path()).into_iter().filter(|path| path.is_file()) {
        // A socket's lock or a file beside another may go meanwhile.
        let Ok(bytes) = fs::read(&path) else { continue };
        looked_at += 1;
        let Some(form) = holds(&bytes) else { continue };
        let mode = fs::metadata(&path).expect("it is there").permissions().mode() & 0o777;
        let is_env = path.file_name().is_some_and(|name| name == "env.json");
        assert!(is_env && mode == 0o600, "{} ({mode:o}) has {form}", path.display());
    }
    assert!(looked_at > 10, "only {looked_at} files were there");
}

/// Asks everything that can be asked about a run.
fn assert_not_told(home: &Home, id: &str) {
    let mut asked: Vec<Vec<String>> = Vec::new();
    let mut ask = |args: &[&str]| asked.push(args.iter().map(|arg| (*arg).to_owned()).collect());
    ask(&["logs", id]);
    ask(&["show", id]);
    ask(&["show", id, "--json"]);
    ask(&["events", id]);
    ask(&["events", id, "--json"]);
    ask(&["ps", "-a"]);
    ask(&["ps", "-a", "--json"]);
    ask(&["sink", "ls", "--json"]);
    ask(&["doctor", "--json"]);
    ask(&["daemon", "logs"]);
    for turn in 1..=home.show(id)["turn"].as_u64().unwrap_or(1).max(1) {
        ask(&["show", id, "--turn", &turn.to_string()]);
        ask(&["show", id, "--turn", &turn.to_string(), "--json"]);
    }
    for args in asked {
        let output = home.output(&args);
        let said = [output.stdout, output.stderr].concat();
        assert_eq!(holds(&said), None, "{args:?}: {}", text(&said));
    }
}

/// The agent has it in its answer, its tool calls, its output and a message to itself; tools, hooks and checks print it.
const AGENT: &str = r#"
half=${MY_TOKEN%??????????????}
printf 'in halves: %s' "$half"; printf '%s\n' "${MY_TOKEN#"$half"}"
printf 'as it is: %s %s\n' "$MY_TOKEN" "$MY_PASSWORD"
python3 - <<'END'
import json, os
token, password = os.environ["MY_TOKEN"], os.environ["MY_PASSWORD"]
print("as JSON: " + json.dumps({"key": token, "password": password}))
print("in codes: " + "".join("\\u%04x" % ord(it) for it in token))
turn = int(os.environ["OUTLAST_TURN"])
coded = "".join("\\u%04x" % ord(it) for it in token)
calls = [{"name": "look", "input": {"key": "CODED", "n": 1}}, {"name": "not " + password, "input": {}}]
answer = {"status": "continue" if turn == 1 else "done", "summary": "used %s and %s" % (token, password)}
if turn == 1:
    answer.update(next_task="go on with " + token, tool_calls=calls)
path = os.environ["OUTLAST_RESPONSE_FILE"]
with open(path + ".part", "w") as file:
    file.write(json.dumps(answer).replace("CODED", coded))
os.rename(path + ".part", path)
END
if [ "$OUTLAST_TURN" = 1 ]; then
    "$OUTLAST" send "$OUTLAST_RUN_ID" "remember $MY_TOKEN"
    : >"$HOME/answered"
    read -r _ <"$GATE"
fi
"#;

const SETTINGS: &str = r#"
hooks:
  before_run: 'echo "ready with $MY_TOKEN"'
  after_turn: 'printf "after a turn with %s" "$MY_PASSWORD" >&2'
checks:
  done: ['echo "it says $MY_TOKEN"; test "$OUTLAST_TURN" = 3']
tools:
  - name: look
    class: read
    command: 'cat; printf " and %s" "$MY_PASSWORD"'
"#;

#[test]
fn keys_of_a_loop_are_in_no_file_no_answer_and_no_notice() {
    let home = Home::new();
    let (receiver, mut gate) = (Receiver::new(), Gate::new(&home, "gate"));
    let file = file(&home, "loop", AGENT, SETTINGS);
    let sink = format!("webhook:{}", receiver.url("/told"));
    let gate_path = format!("GATE={}", gate.path().display());
    let program = format!("OUTLAST={}", env!("CARGO_BIN_EXE_outlast"));
    let given = given();
    let mut flags = vec!["--notify", &sink, "--env", &gate_path, "--env", &program];
    flags.extend(given.iter().map(String::as_str));
    flags.extend(["--watch", "in halves"]);
    let id = start(&home, &file, &flags);
    until("the agent has answered", || home.scratch().join("answered").exists().then_some(()));
    // While it lives, its own file has what it wrote.
    assert_not_told(&home, &id);
    home.crash_daemon();
    gate.open();
    let run = becomes(&home, &id, "completed", "done");
    assert_eq!(str_of(&run, "summary"), "used [MY_TOKEN] and [MY_PASSWORD]");

    let log = home.ok(&["logs", &id]);
    for line in [
        "in halves: [MY_TOKEN]",
        "as it is: [MY_TOKEN] [MY_PASSWORD]",
        r#"as JSON: {"key": "[MY_TOKEN]", "password": "[MY_PASSWORD]"}"#,
        "in codes: [MY_TOKEN]",
    ] {
        assert!(log.contains(line), "{line} is not in {log}");
    }
    let events = Value::Array(home.events(&id)).to_string();
    for said in [
        "remember [MY_TOKEN]",
        "go on with [MY_TOKEN]",
        "not [MY_PASSWORD]",
        r#"{\"key\": \"[MY_TOKEN]\", \"n\": 1}"#,
        "after a turn with [MY_PASSWORD]",
        " and [MY_PASSWORD]",
        "it says [MY_TOKEN]",
    ] {
        assert!(events.contains(said), "{said} is not in {events}");
    }
    let third = home.json(&["show", &id, "--turn", "3", "--json"]);
    assert!(str_of(&third["attempts"][0], "prompt").contains("it says [MY_TOKEN]"), "{third:#}");
    let told = receiver.until_told(2);
    assert!(told.iter().any(|it| it.body.contains("in halves: [MY_TOKEN]")));
    for it in told {
        assert_eq!(holds(it.body.as_bytes()), None, "{}", it.body);
    }
    assert_not_told(&home, &id);
    assert_not_on_disk(&home);
}

#[test]
fn a_key_is_not_on_a_screen() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script = format!("{}; echo \"<$MY_TOKEN>\"; {}", gate.pass(), gate.pass());
    let id = run(&home, &["--tty"], &script);
    let mut terminal = Terminal::new(24, 80);
    terminal.start(&home, &["attach", &id]);
    gate.open();
    terminal.until_shows("<[MY_TOKEN]>");
    let mut late = Terminal::new(24, 80);
    late.start(&home, &["attach", &id]);
    late.until_shows("<[MY_TOKEN]>");
    for terminal in [&mut terminal, &mut late] {
        assert_eq!(holds(terminal.screen().contents().as_bytes()), None);
    }
    assert_not_on_disk(&home);
    gate.open();
    assert_eq!(home.wait(&id), 0);
    assert_not_told(&home, &id);
}

/// However an attempt ends, what it had written for an answer has no key in it afterwards.
#[test]
fn an_answer_that_was_never_read_is_cleaned_too() {
    let home = Home::new();
    let agent = r#"say done "used $MY_TOKEN"; : >"$HOME/answered"; sleep 600"#;
    let file = file(&home, "loop", agent, "");
    let given = given();
    let flags: Vec<&str> = given.iter().map(String::as_str).collect();
    let id = start(&home, &file, &flags);
    until("the agent has answered", || home.scratch().join("answered").exists().then_some(()));
    home.ok(&["stop", "--now", &id]);
    rested(&home, &id);
    let answer = home.attempt_dir(&id, 1, 1).join("response.json");
    let answer = fs::read_to_string(answer).expect("it is there");
    assert_eq!(answer, r#"{"status":"done","summary":"used [MY_TOKEN]"}"#);
    assert_not_told(&home, &id);
    assert_not_on_disk(&home);
}

#[test]
fn a_key_is_in_no_word_about_a_start_or_an_end_that_failed() {
    let home = Home::new();
    let failed = run(&home, &[], r#"echo "no login with $MY_TOKEN" >&2; exec "$MY_PASSWORD""#);
    assert_eq!(home.wait(&failed), 1);
    assert!(logs(&home, &failed).contains("no login with [MY_TOKEN]"));
    // One that outlives its main process is named by its command line.
    let mut gate = Gate::new(&home, "gate");
    let script = format!(
        "sh -c \": >left; {}\" \"$MY_TOKEN\" & until [ -e left ]; do sleep 0.01; done; exit 0",
        gate.pass()
    );
    let left = run(&home, &["--dir", &home.scratch().display().to_string()], &script);
    until("what is left is told", || {
        Value::Array(home.events(&left)).to_string().contains("[MY_TOKEN]").then_some(())
    });
    gate.open();
    rested(&home, &left);
    // The driver of an agent whose program fails.
    let script = home.scratch().join("agent.sh");
    put(
        &script,
        r#"echo "invalid key $MY_TOKEN" >&2; echo "{\"type\":\"x\",\"k\":\"$MY_TOKEN\"}"; exit 1"#,
    );
    let loop_file = home.scratch().join("driven.md");
    let front = format!("agent: {{kind: claude, command: [sh, '{}']}}", script.display());
    put(&loop_file, &format!("---\n{front}\nlimits: {{max_attempts: 1}}\n---\nDo it\n"));
    let given = given();
    let flags: Vec<&str> = given.iter().map(String::as_str).collect();
    let driven = start(&home, &loop_file.display().to_string(), &flags);
    rested(&home, &driven);
    assert!(logs(&home, &driven).contains("invalid key [MY_TOKEN]"));
    let transcript = home.attempt_dir(&driven, 1, 1).join("transcript.jsonl");
    assert!(fs::read_to_string(transcript).expect("it is there").contains("[MY_TOKEN]"));
    for id in [&failed, &left, &driven] {
        assert_not_told(&home, id);
    }
    assert_not_on_disk(&home);
}

#[test]
fn an_environment_that_vanished_is_not_one_without_secrets() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let outlast = env!("CARGO_BIN_EXE_outlast");
    let call = format!("{outlast} call --key key -- sh -c 'echo $MY_TOKEN'");
    let pass = gate.pass();
    let script =
        format!("if [ $OUTLAST_ATTEMPT = 1 ]; then {pass}; {call}; {pass}; exit 1; fi; {call}");
    let id = run(&home, &["--retry", "1", "--backoff", "10ms"], &script);
    home.pid(&id);
    let message = |text: &str| home.ok(&["send", &id, &format!("{text} {SECRET}")]);
    message("before");
    let env = home.state().join("runs").join(&id).join("env.json");
    let kept = home.scratch().join("kept");
    fs::rename(&env, &kept).expect("it is the test's");
    message("known from before");
    home.crash_daemon();
    message("known to no daemon");
    gate.open();
    until("the call has its result", || (home.count(&id, "CallEnded") == 1).then_some(()));
    fs::rename(&kept, &env).expect("it is the test's");
    gate.open();
    // The second attempt is told that the output is not there; what it is was not known.
    assert_eq!(home.wait(&id), 1);
    let events = home.ok(&["events", &id, "--json"]);
    assert!(!events.contains(SECRET), "{events}");
    assert!(events.contains("known from before [MY_TOKEN]"), "{events}");
    assert_eq!(events.matches("\"text\":\"[withheld").count(), 1, "{events}");
    let said = logs(&home, &id);
    assert!(said.contains("it was not known what in it is secret"), "{said}");
    assert_eq!(home.count(&id, "CallBegun"), 1, "it was made once");
    assert_not_on_disk(&home);
}

#[test]
fn the_operator_says_what_is_secret_and_whether_it_is_hidden() {
    let home = Home::new();
    let printed = |config: &str| {
        configure(&home, config);
        let script = r#"echo "$MY_TOKEN $MY_URL $KEY_ID""#;
        let more = ["--env", "MY_URL=postgres://me:pw@db", "--env", "KEY_ID=public-4711"];
        let id = run(&home, &more, script);
        assert_eq!(home.wait(&id), 0);
        home.ok(&["logs", &id])
    };
    assert_eq!(printed(""), "[MY_TOKEN] postgres://me:pw@db [KEY_ID]");
    let config = "[secrets]\nnames = [\"MY_U*\"]\noff = [\"KEY_ID\"]\n";
    assert_eq!(printed(config), "[MY_TOKEN] [MY_URL] public-4711");
    assert!(!home.ok(&["doctor"]).contains("secret"));
    let raw = format!("{SECRET} postgres://me:pw@db public-4711");
    assert_eq!(printed("[secrets]\nredact = false\n"), raw);
    let doctor = text(&home.output(&["doctor"]).stdout);
    assert!(
        doctor.contains("values of secret variables are kept and shown as they are"),
        "{doctor}"
    );
    configure(&home, "[secrets]\nnames = [\"*\"]\n");
    let doctor = text(&home.output(&["doctor"]).stdout);
    assert!(doctor.contains("secrets.names: must be names of variables, got \"*\""), "{doctor}");
}

/// A run goes by what held when it was made.
#[test]
fn a_run_is_made_of_one_reading_of_the_config() {
    let home = Home::new();
    let mut gate = Gate::new(&home, "gate");
    let script = format!("{}; echo \"$MY_TOKEN\"", gate.pass());
    let id = run(&home, &[], &script);
    home.pid(&id);
    configure(&home, "[secrets]\nredact = false\n");
    home.crash_daemon();
    gate.open();
    assert_eq!(home.wait(&id), 0);
    assert_eq!(home.ok(&["logs", &id]), "[MY_TOKEN]");
}

/// The command of a poll has the environment that its trigger was made with.
#[test]
fn what_a_poll_complains_of_has_no_key_in_it() {
    let home = Home::new();
    let given = given();
    let given: Vec<&str> = given.iter().map(String::as_str).collect();
    let add = ["trigger", "add", "t", "--poll", "echo \"no login with $MY_TOKEN\" >&2; exit 1"];
    home.ok(&[&add[..], &["--every", "1s"], &given, &["--", "true"]].concat());
    let trouble = until("the poll has failed", || {
        Some(home.json(&["trigger", "ls", "--json"])[0]["trouble"].clone())
            .filter(|it| !it.is_null())
    });
    assert!(str_of(&trouble, "message").ends_with("no login with [MY_TOKEN]"), "{trouble}");
    assert_eq!(holds(text(&home.output(&["daemon", "logs"]).stdout).as_bytes()), None);
}
