//! Tools of the host: made after the turn, in order, once for each key, and never in silence.

use serde_json::{Value, json};

use crate::harness::{Home, is_alive, str_of};
use crate::hosted::{becomes, begin, configure, left, of_kind, request};

/// An agent that asks for these calls in its first turn, and is done after it.
fn asks_for(calls: &str) -> String {
    format!(
        "if [ \"$OUTLAST_TURN\" = 1 ]; then respond '{{\"status\":\"continue\",\"summary\":\"x\",\"tool_calls\":[{calls}]}}'; else say done y; fi"
    )
}

fn results(home: &Home, id: &str, turn: u32) -> Vec<Value> {
    let request = request(home, id, turn, 1);
    request["previous"]["tool_results"].as_array().expect("a list").clone()
}

fn refusals(home: &Home, id: &str, turn: &str) -> Vec<(u64, String)> {
    let turn = home.json(&["show", id, "--turn", turn, "--json"]);
    let refused = turn["tools"]["refused"].as_array().expect("a list");
    let one =
        |it: &Value| (it["call"].as_u64().unwrap_or(99), str_of(it, "reason_code").to_owned());
    refused.iter().map(one).collect()
}

const TELL: &str = r#"
tools:
  - name: tell
    command: ['sh', '-c', 'read -r input; echo "$OUTLAST_TOOL $OUTLAST_CALL_KEY $OUTLAST_TURN $input" >>"$HOME/told"; echo "heard $input"']
    class: idempotent"#;

#[test]
fn calls_are_made_after_the_turn_in_order_and_the_next_turn_has_the_results() {
    let home = Home::new();
    let calls = r#"{"name":"tell","input":{"n":1}},{"name":"tell","input":{"n":2},"key":"second"}"#;
    let id = begin(&home, &asks_for(calls), TELL);
    becomes(&home, &id, "completed", "done");
    let first = format!("{id}/t1/c0");
    assert_eq!(
        left(&home, "told"),
        [format!("tell {first} 1 {{\"n\":1}}"), "tell second 1 {\"n\":2}".to_owned()]
    );
    let results = results(&home, &id, 2);
    assert_eq!(
        results[0],
        json!({"name": "tell", "key": first, "status": "ok", "output": "heard {\"n\":1}\n"})
    );
    assert_eq!((&results[1]["key"], &results[1]["status"]), (&"second".into(), &"ok".into()));
    let prompt = request(&home, &id, 2, 1)["prompt"].to_string();
    assert!(prompt.contains("Result of tell (second)"), "{prompt}");
    assert_eq!(request(&home, &id, 1, 1)["tools"][0]["name"], "tell");
    let kinds = home.kinds(&id);
    let at = |kind: &str| kinds.iter().position(|known| known == kind);
    assert!(at("TurnCommitted") < at("ErrandStarted"), "{kinds:?}");
    let turn = home.json(&["show", &id, "--turn", "1", "--json"]);
    let purposes: Vec<&str> = turn["errands"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|errand| str_of(errand, "purpose"))
        .collect();
    assert_eq!(purposes, ["tool tell", "tool tell"]);
}

#[test]
fn a_key_that_has_completed_is_answered_without_a_second_call() {
    let home = Home::new();
    let call = r#"{"name":"tell","input":{},"key":"once"}"#;
    let agent = format!(
        "if [ \"$OUTLAST_TURN\" -lt 3 ]; then respond '{{\"status\":\"continue\",\"summary\":\"x\",\"tool_calls\":[{call},{call}]}}'; else say done y; fi"
    );
    let id = begin(&home, &agent, TELL);
    becomes(&home, &id, "completed", "done");
    assert_eq!(left(&home, "told").len(), 1);
    assert_eq!(of_kind(&home, &id, "CallAnswered").len(), 3);
    for turn in [2, 3] {
        let results = results(&home, &id, turn);
        assert_eq!(results.len(), 2);
        assert!(results.iter().all(|it| it["status"] == "ok" && it["output"] == "heard {}\n"));
    }
}

#[test]
fn a_call_that_takes_too_long_is_ended_with_its_children_and_told() {
    let home = Home::new();
    let tools = r#"
tools:
  - name: hang
    command: 'sleep 600 & echo "$$ $!" >>"$HOME/pids"; echo half; wait'
    class: read
    timeout_ms: 2000
  - name: fail
    command: 'echo "no route" >&2; exit 7'"#;
    let calls = r#"{"name":"hang","input":{}},{"name":"fail","input":{}}"#;
    let id = begin(&home, &asks_for(calls), tools);
    becomes(&home, &id, "completed", "done");
    let pids = left(&home, "pids").join(" ");
    let alive = pids.split_whitespace().filter(|pid| is_alive(pid.parse().expect("a pid"))).count();
    assert_eq!((pids.split_whitespace().count(), alive), (2, 0));
    let told: Vec<(String, String, String)> = results(&home, &id, 2)
        .iter()
        .map(|it| ["status", "why", "output"].map(|key| str_of(it, key).to_owned()).into())
        .collect();
    let expected =
        [("failed", "it took too long", "half\n"), ("failed", "exit code 7", "no route\n")];
    let expected = expected.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
    assert_eq!(told, expected);
}

#[test]
fn calls_that_are_not_made_say_why() {
    let home = Home::new();
    configure(&home, "[tools]\ndeny = [\"drop\"]\n");
    let tools = r#"
tools:
  - {name: fetch, command: [touch, made], input_schema: {type: object, required: [url], properties: {url: {type: string}}}}
  - {name: drop, command: [touch, made]}
  - {name: train, command: [touch, made], cost: heavy}
  - {name: pay, command: [touch, made], class: keyed}"#;
    let calls = r#"{"name":"fetch","input":{"url":4}},{"name":"fetch","input":{}},{"name":"rm","input":{}},{"name":"drop","input":{}},{"name":"train","input":{}},{"name":"pay","input":{}}"#;
    let file = crate::hosted::file(&home, "loop", &asks_for(calls), tools);
    let text = std::fs::read_to_string(&file).expect("it was written");
    let text = text.replace("kind: exec,", "kind: exec, model_class: small_local,");
    crate::hosted::put(file.as_ref(), &text);
    let id = crate::hosted::start(&home, &file, &[]);
    becomes(&home, &id, "completed", "done");
    let codes = [
        "invalid_input",
        "invalid_input",
        "unknown_tool",
        "policy_disabled",
        "heavy_for_small_local",
        "missing_key",
    ];
    let results = results(&home, &id, 2);
    let told: Vec<&str> = results.iter().map(|it| str_of(it, "reason_code")).collect();
    assert_eq!(told, codes);
    assert!(results.iter().all(|it| it["status"] == "refused" && it["why"].is_string()));
    let seen: Vec<String> = refusals(&home, &id, "1").into_iter().map(|(_, code)| code).collect();
    assert_eq!(seen, codes);
    assert!(!crate::hosted::work(&home).join("made").exists(), "none of them was made");
    let offered: Vec<String> = request(&home, &id, 1, 1)["tools"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|tool| str_of(tool, "name").to_owned())
        .collect();
    assert_eq!(offered, ["fetch", "pay"]);
    let turn = home.json(&["show", &id, "--turn", "1", "--json"]);
    assert_eq!(turn["tools"]["allowed"], json!(["fetch", "pay"]));
    assert_eq!(
        turn["tools"]["unavailable"],
        json!([
            {"name": "drop", "reason_code": "policy_disabled"},
            {"name": "train", "reason_code": "heavy_for_small_local"},
        ])
    );
    assert_eq!(str_of(&turn["tools"], "model_class"), "small_local");
    let page = home.ok(&["show", &id, "--turn", "1"]);
    assert!(codes.iter().all(|code| page.contains(&code.replace('_', " "))), "{page}");
}

#[test]
fn a_call_in_a_loop_without_tools_is_told_too() {
    let home = Home::new();
    let id = begin(&home, &asks_for(r#"{"name":"rm","input":{}}"#), "");
    becomes(&home, &id, "completed", "done");
    assert_eq!(str_of(&results(&home, &id, 2)[0], "reason_code"), "unknown_tool");
    assert_eq!(refusals(&home, &id, "1"), [(0, "unknown_tool".to_owned())]);
}

#[test]
fn a_turn_that_gives_up_has_no_calls_made() {
    let home = Home::new();
    for (status, state, code) in
        [("blocked", "blocked", "agent_blocked"), ("failed", "failed", "agent_failed")]
    {
        let call = r#"{"name":"tell","input":{}}"#;
        let agent = format!(
            "respond '{{\"status\":\"{status}\",\"summary\":\"x\",\"tool_calls\":[{call}]}}'"
        );
        let id = begin(&home, &agent, TELL);
        becomes(&home, &id, state, code);
        assert_eq!(home.count(&id, "ErrandStarted"), 0, "{status}");
    }
    assert_eq!(left(&home, "told"), Vec::<String>::new());
}

#[test]
fn a_tool_that_is_running_outlasts_the_daemon_and_is_not_made_again() {
    let home = Home::new();
    let mut gate = crate::harness::Gate::new(&home, "gate");
    let tools = format!(
        "tools:\n  - name: slow\n    class: unsafe\n    command: |\n      echo x >>\"$HOME/made\"\n      {}\n      echo through",
        gate.pass()
    );
    let id = begin(&home, &asks_for(r#"{"name":"slow","input":{}}"#), &tools);
    crate::hosted::until_left(&home, "made");
    home.crash_daemon();
    home.ok(&["ps"]);
    gate.open();
    becomes(&home, &id, "completed", "done");
    assert_eq!(left(&home, "made").len(), 1);
    let results = results(&home, &id, 2);
    assert_eq!((&results[0]["status"], &results[0]["output"]), (&"ok".into(), &"through\n".into()));
}
