//! What can be looked up afterwards, what an agent is given of the environment, and what leaves a loop.

use serde_json::{Value, json};

use crate::harness::{Home, str_of};
use crate::hosted::{becomes, begin, file, left, of_kind, put, refused, start, starting};

#[test]
fn a_turn_can_be_looked_into() {
    let home = Home::new();
    let agent = r#"
echo "working on $OUTLAST_ATTEMPT"
test "$OUTLAST_ATTEMPT" = 1 && exit 3
respond '{"status":"done","summary":"built","usage":{"input_tokens":70,"output_tokens":7,"cost_usd":0.5}}'"#;
    let settings = "checks: {done: ['echo looks fine']}\nhooks: {after_turn: 'echo swept'}";
    let id = start(&home, &file(&home, "loop", agent, settings), &["--task", "build it"]);
    becomes(&home, &id, "completed", "done");
    let turn = home.json(&["show", &id, "--turn", "1", "--json"]);
    let committed = &turn["committed"];
    assert_eq!((str_of(committed, "status"), str_of(committed, "summary")), ("done", "built"));
    assert_eq!((&committed["attempt"], &committed["usage"]["cost_usd"]), (&2.into(), &0.5.into()));
    let attempts = turn["attempts"].as_array().expect("a list");
    let ends: Vec<&Value> = attempts.iter().map(|attempt| &attempt["exit"]).collect();
    assert_eq!(ends, [&json!({"code": 3}), &json!({"code": 0})]);
    for (at, attempt) in attempts.iter().enumerate() {
        assert_eq!(str_of(attempt, "outcome"), "exited");
        assert_eq!(str_of(attempt, "output_tail"), format!("working on {}\n", at + 1));
        assert!(str_of(attempt, "prompt").starts_with("Do it: build it"), "{attempt:#}");
        assert_eq!(attempt["request"]["schema"], "outlast/request@1");
        assert_eq!(attempt["request"]["attempt"], at + 1);
        assert!(attempt["started_at"].is_string() && attempt["ended_at"].is_string());
    }
    assert!(attempts[0]["note"].is_null() && attempts[0]["response"].is_null());
    assert_eq!(str_of(&attempts[1]["note"], "cause"), "crashed");
    assert_eq!(attempts[1]["response"]["summary"], "built");
    assert_eq!(attempts[1]["usage"]["input_tokens"], 70);
    let errands = turn["errands"].as_array().expect("a list");
    let errand =
        |it: &Value| (str_of(it, "purpose").to_owned(), str_of(it, "output_tail").to_owned());
    let told: Vec<(String, String)> = errands.iter().map(errand).collect();
    let expected = [("hook after_turn", "swept\n"), ("check done 1", "looks fine\n")];
    assert_eq!(told, expected.map(|(one, other)| (one.to_owned(), other.to_owned())));
    let page = home.ok(&["show", &id, "--turn", "1"]);
    for part in [
        "built",
        "ended without an answer",
        "check done 1",
        "looks fine",
        "Do it: build it",
        "working on 2",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let said = home.fails(2, &["show", &id, "--turn", "9"]);
    assert!(said.contains("has no turn 9\nhint: "), "{said}");
}

#[test]
fn every_change_says_from_where_to_where_why_and_by_whom() {
    let home = Home::new();
    let agent = "if [ \"$OUTLAST_TURN\" = 1 ]; then say blocked 'may I?'; else exec sleep 600; fi";
    let id = begin(&home, agent, "hooks: {before_run: 'true'}");
    becomes(&home, &id, "blocked", "agent_blocked");
    home.ok(&["answer", &id, "you may"]);
    home.pid(&id);
    home.ok(&["stop", &id]);
    becomes(&home, &id, "stopped", "stopped");
    let changes = of_kind(&home, &id, "StateChanged");
    let mut from = "queued".to_owned();
    for change in &changes {
        assert_eq!(str_of(change, "from"), from, "{change}");
        from = str_of(change, "to").to_owned();
        for key in ["reason", "reason_code", "actor", "at"] {
            assert!(!str_of(change, key).is_empty(), "{key}: {change}");
        }
        assert!(change["evidence"].is_array() && change["seq"].is_u64(), "{change}");
    }
    assert_eq!(from, "stopped");
    let of = |code: &str| changes.iter().find(|change| change["reason_code"] == code);
    let blocked = of("agent_blocked").expect("it was blocked");
    assert_eq!(blocked["evidence"], json!(["attempt t1.a1"]));
    assert_eq!(str_of(blocked, "reason"), "may I?");
    assert_eq!(str_of(of("stopped").expect("it was stopped"), "actor"), "user");
    let seqs: Vec<u64> =
        home.events(&id).iter().filter_map(|event| event["seq"].as_u64()).collect();
    assert!(seqs.iter().zip(1..).all(|(seq, expected)| *seq == expected), "{seqs:?}");
}

#[test]
fn an_agent_gets_the_environment_that_is_meant_for_it_and_no_secret() {
    let home = Home::new().env("API_TOKEN", "secret").env("DEPLOY_KEY", "open").env("LC_TIME", "C");
    let agent = "env >\"$HOME/env.$OUTLAST_RUN_ID\"; say done x";
    let loop_file = file(&home, "loop", agent, "hooks: {before_run: 'env >\"$HOME/hook\"'}");
    let open_file = file(&home, "named", agent, "");
    let text = std::fs::read_to_string(&open_file).expect("it was written");
    put(
        open_file.as_ref(),
        &text.replace("kind: exec,", "kind: exec, env: [PATH, HOME, DEPLOY_*],"),
    );
    let runs = [
        start(&home, &loop_file, &[]),
        start(&home, &loop_file, &["--env", "API_TOKEN=other"]),
        start(&home, &open_file, &[]),
    ];
    for id in &runs {
        becomes(&home, id, "completed", "done");
    }
    let value = |file: &str, name: &str| {
        let start = format!("{name}=");
        left(&home, file).iter().find_map(|line| line.strip_prefix(&start).map(str::to_owned))
    };
    let home_path = home.path().display().to_string();
    let [plain, set, named] = runs.each_ref().map(|id| format!("env.{id}"));
    for (id, env) in runs.iter().zip([&plain, &set, &named]) {
        assert_eq!(value(env, "OUTLAST_HOME"), Some(home_path.clone()));
        let of_attempt = home.attempt_dir(id, 1, 1).display().to_string();
        for (alias, file) in [("REQUEST", "request.json"), ("RESPONSE", "response.json")] {
            let path = Some(format!("{of_attempt}/{file}"));
            assert_eq!(value(env, &format!("ACE_RUNTIME_{alias}_FILE")), path);
            assert_eq!(value(env, &format!("OUTLAST_{alias}_FILE")), path);
        }
        assert_eq!(value(env, "OUTLAST_KEY_BASE"), Some(format!("{id}/t1")));
        assert!(value(env, "TRACEPARENT").is_some_and(|parent| parent.starts_with("00-")));
    }
    assert_eq!(value(&plain, "API_TOKEN"), None);
    assert_eq!(value(&plain, "DEPLOY_KEY"), None);
    assert_eq!(value(&plain, "LC_TIME").as_deref(), Some("C"));
    assert_eq!(value("hook", "DEPLOY_KEY"), None, "nor does a hook");
    assert_eq!(value(&set, "API_TOKEN").as_deref(), Some("other"));
    assert_eq!(value(&named, "DEPLOY_KEY").as_deref(), Some("open"));
    assert_eq!((value(&named, "API_TOKEN"), value(&named, "LC_TIME")), (None, None));
}

#[test]
fn a_config_keeps_variables_from_every_loop() {
    let home = Home::new().env("DEPLOY_KEY", "open");
    crate::hosted::configure(&home, "[env]\nallow = [\"PATH\", \"HOME\", \"LANG\"]\n");
    let named = file(&home, "named", "env >\"$HOME/env\"; say done x", "");
    let text = std::fs::read_to_string(&named).expect("it was written");
    put(named.as_ref(), &text.replace("kind: exec,", "kind: exec, env: [PATH, HOME, DEPLOY_KEY],"));
    let error = refused(&home, &starting(&home, &named, &["--json"]));
    assert_eq!(str_of(&error, "code"), "env_not_allowed", "{error}");
    assert!(str_of(&error, "message").contains("DEPLOY_KEY"), "{error}");
    let asks_for_nothing = file(&home, "plain", "env >\"$HOME/env\"; say done x", "");
    let id = start(&home, &asks_for_nothing, &[]);
    becomes(&home, &id, "completed", "done");
    let names: Vec<String> = left(&home, "env")
        .iter()
        .filter_map(|line| line.split_once('=').map(|(name, _)| name.to_owned()))
        .collect();
    assert!(!names.contains(&"DEPLOY_KEY".to_owned()), "{names:?}");
    assert!(names.contains(&"OUTLAST_HOME".to_owned()), "{names:?}");
}

/// What left the loop, and what each turn was worth.
fn told(home: &Home, id: &str) -> (Vec<String>, Vec<String>) {
    let texts = of_kind(home, id, "Emitted");
    let worth = of_kind(home, id, "TurnCommitted");
    (
        texts.iter().map(|event| str_of(event, "text").to_owned()).collect(),
        worth.iter().map(|event| str_of(event, "outcome").to_owned()).collect(),
    )
}

const THREE: &str = r#"
case "$OUTLAST_TURN" in
1) echo one >file; say continue first;;
2) say continue second;;
*) say blocked third;;
esac"#;

#[test]
fn what_a_turn_says_goes_where_the_file_sends_it() {
    let home = Home::new();
    let id = begin(&home, THREE, "workspace: {strategy: dir}");
    becomes(&home, &id, "blocked", "agent_blocked");
    let (texts, worth) = told(&home, &id);
    assert_eq!(texts, ["first", "second", "third"]);
    assert_eq!(worth, ["meaningful_completion", "no_op_success", "escalation_blocker"]);
    let id = begin(&home, THREE, "output: {emit_to: []}");
    becomes(&home, &id, "blocked", "agent_blocked");
    assert_eq!(told(&home, &id).0, Vec::<String>::new());
}

#[test]
fn a_loop_that_shall_be_silent_speaks_only_when_it_is_blocked() {
    let home = Home::new();
    let policy = "workspace: {strategy: dir}\noutput: {silent_unless_blocked: true}";
    let id = begin(&home, THREE, policy);
    becomes(&home, &id, "blocked", "agent_blocked");
    let (texts, worth) = told(&home, &id);
    assert_eq!(texts, ["third"]);
    assert_eq!(worth, ["no_op_success", "no_op_success", "escalation_blocker"]);
}

#[test]
fn a_silent_loop_whose_claim_is_refuted_gets_its_next_turn() {
    let home = Home::new();
    let agent = "test \"$OUTLAST_TURN\" = 2 && touch there; exit 0";
    let id = begin(&home, agent, "checks: {done: ['test -e there']}");
    becomes(&home, &id, "completed", "done");
    assert_eq!(home.count(&id, "TurnCommitted"), 2);
}
