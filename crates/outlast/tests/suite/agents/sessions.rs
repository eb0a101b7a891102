//! `agent.session`: when an agent that is driven begins a new conversation, and what that is told of the old one.

use std::fs;

use serde_json::Value;

use super::{ALLOW, Scripted, usage};
use crate::harness::{Gate, Home, kill, str_of, until};
use crate::loops::{outcomes, request, rests};

/// A turn that is one of those that the run needs. The model's context has 1000 tokens.
const TURN: &str = "
open('turns', 'a').write('x\\n')
say('at work', given=100 * n)
result('word of process %d' % n, given=100 * n, cost=0.001, modelUsage={'scripted': {'contextWindow': 1000}})";

/// Claims of done are refuted until there were so many turns.
fn turns(count: u32) -> String {
    format!(
        "{ALLOW}\nlimits: {{no_progress_turns: 20}}\nchecks: {{done: [\"test $(wc -l <turns) -ge {count}\"]}}"
    )
}

fn start(agent: &Scripted<'_>, session: &str, lines: &str) -> String {
    agent.in_loop("claude").agent(&format!("session: {session}")).with(lines).start()
}

/// The conversation that each process was in, and whether it was told to go on with it.
fn conversations(agent: &Scripted<'_>) -> Vec<(String, bool)> {
    let resumes =
        |it: &Value| it["args"].as_array().expect("arguments").contains(&"--resume".into());
    let processes = agent.processes();
    processes.iter().map(|it| (str_of(it, "session").to_owned(), resumes(it))).collect()
}

fn are(agent: &Scripted<'_>, expected: &[(&str, bool)]) {
    let found = conversations(agent);
    let found: Vec<(&str, bool)> = found.iter().map(|(name, it)| (name.as_str(), *it)).collect();
    assert_eq!(found, expected);
}

fn prompt(agent: &Scripted<'_>, at: usize) -> String {
    str_of(&agent.processes()[at], "prompt").to_owned()
}

fn json_of(path: std::path::PathBuf) -> Value {
    serde_json::from_slice(&fs::read(path).expect("it was written")).expect("it is JSON")
}

#[test]
fn each_turn_of_a_fresh_run_has_its_own_conversation_and_knows_the_last_word_of_the_old_one() {
    let home = Home::new();
    let agent = Scripted::new(&home, &[TURN]);
    let id = start(&agent, "fresh", &turns(3));
    rests(&home, &id, "completed", "done");
    are(&agent, &[("session-1", false), ("session-2", false), ("session-3", false)]);
    assert!(!prompt(&agent, 0).contains("conversation"), "{}", prompt(&agent, 0));
    let third = prompt(&agent, 2);
    assert!(third.starts_with("Do it."), "{third}");
    for part in [
        "## A new conversation",
        "begins with this turn: each turn has its own.",
        "Turn 2 ended with these words:\n\n```\nword of process 2\n```",
        "## The claim of done was checked and refuted\n\n`test $(wc -l <turns) -ge 3`",
    ] {
        assert!(third.contains(part), "{part} is missing in {third}");
    }
    assert!(!third.contains("word of process 1"), "{third}");
    let logs = home.ok(&["logs", &id]);
    let line = "[outlast: a new conversation begins: each turn has its own]";
    assert_eq!(logs.matches(line).count(), 2, "{logs}");
    let events = |turn| {
        let path = home.attempt_dir(&id, turn, 1).join("agent.jsonl");
        fs::read_to_string(path).expect("it was driven")
    };
    assert!(!events(1).contains("new_conversation"));
    assert!(events(2).contains("\"event\":\"new_conversation\",\"why\":\"each turn has its own\""));
    // The run has used up what its conversations have, and each of those began with nothing.
    assert_eq!(usage(&home, &id), (100 + 200 + 300, 3 * 4, true));
    assert_eq!(home.show(&id)["usage"]["cost_usd"], 0.003);
    let session = json_of(home.state().join(format!("runs/{id}/session.json")));
    assert_eq!(
        (&session["id"], &session["spent"]["input_tokens"]),
        (&"session-3".into(), &300.into())
    );
}

#[test]
fn a_conversation_of_two_turns_is_left_after_them_also_when_the_daemon_dies_before_the_launch() {
    let home = Home::new();
    let (token, log) = (home.scratch().join("token"), home.scratch().join("passed"));
    fs::write(&token, "").expect("the scratch directory is ours");
    // A turn is an attempt and a check: the fifth launch is the third turn's.
    let home = home
        .env("OUTLAST_CRASH_AT", "daemon.attempt-spec@5")
        .env("OUTLAST_CRASH_LOG", &log)
        .env("OUTLAST_CRASH_TOKEN", &token);
    let agent = Scripted::new(&home, &[TURN]);
    let id = start(&agent, "{ every: 2 }", &turns(5));
    until("the daemon died", || (!token.exists()).then_some(()));
    rests(&home, &id, "completed", "done");
    are(
        &agent,
        &[
            ("session-1", false),
            ("session-1", true),
            ("session-3", false),
            ("session-3", true),
            ("session-5", false),
        ],
    );
    let logs = home.ok(&["logs", &id]);
    let line = "[outlast: a new conversation begins: the old one has had 2 turns]";
    assert_eq!(logs.matches(line).count(), 2, "{logs}");
    assert!(prompt(&agent, 2).contains("word of process 2"), "{}", prompt(&agent, 2));
    assert!(!prompt(&agent, 3).contains("conversation"), "{}", prompt(&agent, 3));
    assert_eq!(usage(&home, &id).0, 100 + 200 + 300 + 400 + 500);
}

#[test]
fn a_context_that_is_full_at_the_end_of_a_turn_is_left_and_one_that_was_full_within_it_is_not() {
    let home = Home::new();
    // Within its first turn the context is full; the agent shrinks it before the turn's end.
    let shrinks = "say('much', given=990)".to_owned() + TURN;
    let fills = TURN.replace("100 * n)", "830)");
    let unknown = TURN.replace("contextWindow", "other").replace("100 * n)", "990)");
    let agent = Scripted::new(&home, &[&shrinks, &fills, &unknown, TURN]);
    let id = start(&agent, "{ refresh_at: 0.8 }", &turns(4));
    rests(&home, &id, "completed", "done");
    // The third turn's conversation has no window that is known, and is gone on with.
    are(
        &agent,
        &[("session-1", false), ("session-1", true), ("session-3", false), ("session-3", true)],
    );
    let line = "[outlast: a new conversation begins: the old one's context was 83 % full]";
    let logs = home.ok(&["logs", &id]);
    assert_eq!(logs.matches(line).count(), 1, "{logs}");
    assert!(prompt(&agent, 2).contains("the old one's context was 83 % full."));
}

#[test]
fn a_daemon_that_dies_between_two_turns_is_followed_by_one_that_decides_the_same() {
    for (session, expected) in [
        ("fresh", ("session-2", false)),
        ("{ refresh_at: 0.1 }", ("session-2", false)),
        ("{ refresh_at: 0.2 }", ("session-1", true)),
        ("keep", ("session-1", true)),
    ] {
        let home = Home::new();
        let mut gate = Gate::new(&home, "gate");
        let agent = Scripted::new(&home, &[TURN]);
        let between = format!("hooks: {{after_turn: \"{}\"}}", gate.pass());
        let id = start(&agent, session, &format!("{}\n{between}", turns(2)));
        until("the first turn is committed", || {
            (home.show(&id)["turns_committed"] == 1).then_some(())
        });
        home.crash_daemon();
        gate.open();
        until("the second turn is committed", || {
            (home.show(&id)["turns_committed"] == 2).then_some(())
        });
        gate.open();
        rests(&home, &id, "completed", "done");
        are(&agent, &[("session-1", false), expected]);
    }
}

#[test]
fn an_attempt_that_was_cut_off_goes_on_with_the_conversation_of_its_turn() {
    let cut_off = "say('begun', given=990); sys.exit(1)";
    let unnamed = "sys.stdout = open(os.devnull, 'w'); sys.exit(1)";
    for session in ["fresh", "{ every: 1 }", "{ refresh_at: 0.1 }"] {
        let home = Home::new();
        let agent = Scripted::new(&home, &[TURN, cut_off, TURN]);
        let id = start(&agent, session, &turns(2));
        rests(&home, &id, "completed", "done");
        are(&agent, &[("session-1", false), ("session-2", false), ("session-2", true)]);
        assert_eq!(outcomes(&home, &id).len(), 3);
        // It may have been cut off before it had read anything.
        let again = prompt(&agent, 2);
        assert!(again.contains("this conversation began with this turn"), "{again}");
        assert!(again.contains("word of process 1") && again.contains("ended without an answer"));
    }
    // One that had room at the border of the turns is full in the middle of the second.
    let home = Home::new();
    let agent = Scripted::new(&home, &[TURN, cut_off, TURN]);
    let id = start(&agent, "{ refresh_at: 0.5 }", &turns(2));
    rests(&home, &id, "completed", "done");
    are(&agent, &[("session-1", false), ("session-1", true), ("session-1", true)]);
    assert!(!prompt(&agent, 2).contains("conversation"), "{}", prompt(&agent, 2));
    // A conversation that was left before it had a name is begun once more.
    let home = Home::new();
    let agent = Scripted::new(&home, &[TURN, unnamed, TURN]);
    let script = fs::read_to_string(agent.dir.join("agent.py")).expect("it was just made");
    let mute = script.replace(
        "out(type=\"system\", subtype=\"init\"",
        "if n != 2: out(type=\"system\", subtype=\"init\"",
    );
    let mute = mute.replace("\nreplay(first)", "\nif n != 2: replay(first)");
    fs::write(agent.dir.join("agent.py"), mute).expect("it was just made");
    let id = start(&agent, "fresh", &turns(2));
    rests(&home, &id, "completed", "done");
    are(&agent, &[("session-1", false), ("session-2", false), ("session-3", false)]);
}

#[test]
fn a_limit_a_question_and_a_kill_do_not_end_the_conversation_of_a_fresh_turn() {
    let home = Home::new();
    let limited = "
reset = int(time.time()) + 1
out(type='rate_limit_event', rate_limit_info={'status': 'rejected', 'resetsAt': reset, 'rateLimitType': 'five_hour'})
failed(429, 'rate_limit_error', 'limit', api_error='usage_limit_reached')";
    let asks = "say(ask('rm -r build'))";
    let hangs = "tool('work'); time.sleep(1000)";
    let agent = Scripted::new(&home, &[TURN, limited, asks, hangs, TURN]);
    let lines = turns(2).replace("{mode: allow}", "{mode: park, patience_ms: 0}");
    let id = start(&agent, "fresh", &lines);
    rests(&home, &id, "blocked", "needs_approval");
    home.ok(&["answer", &id, "--approve"]);
    agent.until_processes(4);
    let driver = until("the driver runs", || {
        home.show(&id)["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok())
    });
    kill(driver, "KILL");
    rests(&home, &id, "completed", "done");
    are(
        &agent,
        &[
            ("session-1", false),
            ("session-2", false),
            ("session-2", true),
            ("session-2", true),
            ("session-2", true),
        ],
    );
}

#[test]
fn the_turns_of_a_conversation_are_counted_from_its_first_whatever_it_is_called() {
    let gone = "result('', subtype='error_during_execution', is_error=True, terminal_reason=None,
    errors=['No conversation found with session ID: x'], given=0, taken=0, cost=0)
sys.exit(1)";
    let home = Home::new();
    let agent = Scripted::new(&home, &[TURN, gone, TURN]);
    let id = start(&agent, "{ every: 2 }", &turns(4));
    rests(&home, &id, "completed", "done");
    // The one that was begun in the place of the first has the second turn and the third.
    are(
        &agent,
        &[
            ("session-1", false),
            ("session-1", true),
            ("session-3", false),
            ("session-3", true),
            ("session-5", false),
        ],
    );
    let home = Home::new();
    let renames = format!("session = 'other-%d' % n{TURN}");
    let agent = Scripted::new(&home, &[TURN, &renames, TURN]);
    let id = start(&agent, "{ every: 2 }", &turns(3));
    rests(&home, &id, "completed", "done");
    are(&agent, &[("session-1", false), ("session-1", true), ("session-3", false)]);
}

#[test]
fn a_long_last_word_is_cut_for_a_new_conversation_and_is_whole_in_the_request() {
    let home = Home::new();
    let long = "
answer = os.environ['OUTLAST_RESPONSE_FILE']
json.dump({'status': 'continue', 'summary': 'begin ' + 'ä' * 30000 + ' end'}, open(answer + '.new', 'w'))
os.rename(answer + '.new', answer)
result('on')";
    let agent = Scripted::new(&home, &[long, TURN]);
    let id = start(&agent, "fresh", &turns(1));
    rests(&home, &id, "completed", "done");
    let second = prompt(&agent, 1);
    assert!(second.len() < 20 << 10, "{} bytes", second.len());
    assert!(second.contains("Turn 1 ended with these words:\n\n```\nbegin ää"), "{second}");
    assert!(second.contains("bytes left out here; the whole text is `previous.summary` in "));
    let summary = request(&home, &id, 2, 1)["previous"]["summary"].clone();
    assert!(summary.as_str().is_some_and(|it| it.ends_with("ä end")), "{summary}");
}

/// Speaks the Agent Client Protocol. A cent a turn is added to what its session has cost, and the sum is what it says.
const ACP: &str = r#"
import json, os, sys
here = sys.argv[1]
def out(**message):
    sys.stdout.write(json.dumps(dict(message, jsonrpc="2.0")) + "\n"); sys.stdout.flush()
log = open(os.path.join(here, "log.jsonl"), "a+")
log.seek(0)
session = "session-%d" % (len(log.readlines()) + 1)
for line in sys.stdin:
    asked = json.loads(line)
    method, params = asked.get("method"), asked.get("params", {})
    if method == "initialize":
        out(id=asked["id"], result={"protocolVersion": 1, "agentInfo": {"name": "claude-agent-acp"},
            "agentCapabilities": {"sessionCapabilities": {"resume": {}}}})
    elif method in ("session/new", "session/resume"):
        session = params.get("sessionId", session)
        log.write(json.dumps({"method": method, "session": session}) + "\n"); log.flush()
        out(id=asked["id"], result={"sessionId": session,
            "modes": {"currentModeId": "default", "availableModes": [{"id": "default", "name": "Default"}]}})
    elif method == "session/prompt":
        open("turns", "a").write("x\n")
        path = os.path.join(here, session)
        cents = int(open(path).read()) + 1 if os.path.exists(path) else 1
        open(path, "w").write(str(cents))
        out(method="session/update", params={"sessionId": session, "update": {"sessionUpdate": "agent_message_chunk",
            "content": {"type": "text", "text": "done"}}})
        out(method="session/update", params={"sessionId": session, "update": {"sessionUpdate": "usage_update",
            "used": 400 * cents, "size": 1000, "cost": {"amount": cents / 100, "currency": "USD"}}})
        out(id=asked["id"], result={"stopReason": "end_turn",
            "usage": {"inputTokens": 10, "outputTokens": 1, "totalTokens": 11}})
"#;

#[test]
fn what_an_agent_counts_over_a_conversation_is_counted_from_nothing_in_a_new_one() {
    let home = Home::new();
    let agent = Scripted::new(&home, &[]);
    fs::write(agent.dir.join("agent.py"), ACP).expect("it was just made");
    let id = agent.in_loop("acp").agent("session: { refresh_at: 0.8 }").with(&turns(5)).start();
    rests(&home, &id, "completed", "done");
    let opened: Vec<(String, String)> = agent
        .processes()
        .iter()
        .map(|it| (str_of(it, "method").to_owned(), str_of(it, "session").to_owned()))
        .collect();
    let opened: Vec<(&str, &str)> =
        opened.iter().map(|(method, session)| (method.as_str(), session.as_str())).collect();
    assert_eq!(
        opened,
        [
            ("session/new", "session-1"),
            ("session/resume", "session-1"),
            ("session/new", "session-3"),
            ("session/resume", "session-3"),
            ("session/new", "session-5"),
        ]
    );
    let usage = &home.show(&id)["usage"];
    assert_eq!((&usage["cost_usd"], &usage["input_tokens"]), (&0.05.into(), &50.into()), "{usage}");
}
