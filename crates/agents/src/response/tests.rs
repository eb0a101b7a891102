//! What is taken, what is refused, and in which words.

use super::*;

fn given(text: &str) -> Response {
    parse(text.as_bytes()).unwrap_or_else(|bad| panic!("{text}: {bad}"))
}

fn refused(text: &str) -> String {
    match parse(text.as_bytes()) {
        Ok(response) => panic!("{text}: {response:?}"),
        Err(bad) => bad.to_string(),
    }
}

fn with(rest: &str) -> String {
    format!(r#"{{"status":"continue",{rest}}}"#)
}

fn plain(status: TurnStatus) -> Response {
    Response {
        status,
        summary: String::new(),
        next_task: None,
        tool_calls: Vec::new(),
        usage: None,
        wait: None,
    }
}

#[test]
fn everything_that_can_be_said_is_taken() {
    let response = given(
        r#" {"status": "continue", "summary": "half of it\u0021", "next_task": "the rest",
             "tool_calls": [{"name": "deploy", "input": {"to" : 1.50}, "key": "k1"}, {"name": "look"}],
             "usage": {"input_tokens": 1200, "output_tokens": 3e2, "cached_tokens": 0, "cost_usd": 0.0123456},
             "wait": {"until": "2030-01-01T00:00:00.250Z"}, "mood": {"mine": [1, null]}}
        "#,
    );
    assert_eq!(
        response,
        Response {
            status: TurnStatus::Continue,
            summary: "half of it!".to_owned(),
            next_task: Some("the rest".to_owned()),
            tool_calls: vec![
                ToolCall {
                    name: "deploy".to_owned(),
                    input: r#"{"to" : 1.50}"#.to_owned(),
                    key: Some("k1".to_owned()),
                },
                ToolCall { name: "look".to_owned(), input: "{}".to_owned(), key: None },
            ],
            usage: Some(Usage {
                input_tokens: Some(1200),
                output_tokens: Some(300),
                cached_tokens: Some(0),
                cost_usd_micros: Some(12_346),
            }),
            wait: Some(Wait::Until(Time(1_893_456_000_250))),
        }
    );
}

#[test]
fn a_status_is_enough_and_null_is_absent() {
    assert_eq!(given(r#"{"status":"done"}"#), plain(TurnStatus::Done));
    assert_eq!(given(r#"{"status":"blocked"}"#), plain(TurnStatus::Blocked));
    assert_eq!(given(r#"{"status":"failed"}"#), plain(TurnStatus::Failed));
    let nulls = r#""summary":null,"next_task":" \n","tool_calls":null,"usage":{"cost_usd":null,"mine":1},"wait":null"#;
    assert_eq!(given(&with(nulls)), plain(TurnStatus::Continue));
}

#[test]
fn each_wait_is_one_thing() {
    let wait = |text: &str| given(&with(&format!(r#""wait":{text}"#))).wait;
    assert_eq!(wait(r#"{"until":1893456000250}"#), Some(Wait::Until(Time(1_893_456_000_250))));
    let limited = wait(r#"{"until":9,"cause":"rate_limit"}"#);
    assert_eq!(limited, Some(Wait::RateLimit(Time(9))));
    assert_eq!(wait(r#"{"until":9,"cause":["mine"]}"#), Some(Wait::Until(Time(9))));
    assert_eq!(wait(r#"{"until":1893456000250.9}"#), Some(Wait::Until(Time(1_893_456_000_250))));
    assert_eq!(
        wait(r#"{"until":"2030-01-01T02:00:00+02:00"}"#),
        Some(Wait::Until(Time(1_893_456_000_000)))
    );
    assert_eq!(wait(r#"{"until":"1960-01-01T00:00:00Z"}"#), Some(Wait::Until(Time(0))));
    assert_eq!(wait(r#"{"children":true,"mine":0}"#), Some(Wait::Children));
    assert_eq!(wait(r#"{"message":true,"until":null}"#), Some(Wait::Message));
    let refusal = |text: &str| refused(&with(&format!(r#""wait":{text}"#)));
    let one = "wait: must have one of until, children and message";
    assert_eq!(refusal("{}"), one);
    assert_eq!(refusal(r#"{"children":true,"message":true}"#), one);
    assert_eq!(refusal(r#"{"children":false}"#), "wait.children: must be true");
    assert_eq!(refusal(r#"{"message":"yes"}"#), "wait.message: must be true");
    assert_eq!(refusal("true"), "wait: must be an object");
    let time = "wait.until: must be a time of RFC 3339, or milliseconds since 1970";
    assert_eq!(refusal(r#"{"until":"tomorrow"}"#), time);
    assert_eq!(refusal(r#"{"until":"2030-01-01T00:00:00"}"#), time);
    assert_eq!(refusal(r#"{"until":[1]}"#), time);
    assert_eq!(refusal(r#"{"until":-1}"#), "wait.until: must not be negative");
    assert_eq!(refusal(r#"{"until":253402300800000}"#), "wait.until: is too late");
}

#[test]
fn wrong_types_are_named_by_their_place() {
    assert_eq!(refused("{}"), "status: is missing");
    assert_eq!(refused(r#"{"status":null}"#), "status: is missing");
    assert_eq!(refused(r#"{"status":1}"#), "status: must be a string");
    assert_eq!(
        refused(r#"{"status":"Done"}"#),
        "status: must be continue, done, blocked or failed"
    );
    assert_eq!(refused(&with(r#""summary":[]"#)), "summary: must be a string");
    assert_eq!(refused(&with(r#""next_task":{}"#)), "next_task: must be a string");
    assert_eq!(refused(&with(r#""tool_calls":{}"#)), "tool_calls: must be a list");
    assert_eq!(refused(&with(r#""tool_calls":[1]"#)), "tool_calls[0]: must be an object");
    assert_eq!(
        refused(&with(r#""tool_calls":[{"name":"a"},{"input":1}]"#)),
        "tool_calls[1].name: is missing"
    );
    assert_eq!(
        refused(&with(r#""tool_calls":[{"name":"a","key":7}]"#)),
        "tool_calls[0].key: must be a string"
    );
    assert_eq!(refused(&with(r#""usage":3"#)), "usage: must be an object");
}

#[test]
fn usage_is_a_number_that_can_be_true() {
    let usage = |text: &str| refused(&with(&format!(r#""usage":{{{text}}}"#)));
    assert_eq!(usage(r#""input_tokens":"12""#), "usage.input_tokens: must be a number");
    assert_eq!(usage(r#""input_tokens":-1"#), "usage.input_tokens: must not be negative");
    assert_eq!(usage(r#""output_tokens":0.5"#), "usage.output_tokens: must be a whole number");
    assert_eq!(usage(r#""cached_tokens":1e16"#), "usage.cached_tokens: is too large to be true");
    assert_eq!(usage(r#""cost_usd":-0.0000001"#), "usage.cost_usd: must not be negative");
    assert_eq!(
        usage(r#""cost_usd":1000000000.0000001"#),
        "usage.cost_usd: is too large to be true"
    );
    assert_eq!(
        usage(r#""cost_usd":NaN"#),
        "the response is not JSON: expected value at line 1 column 42"
    );
    let cost = |text: &str| {
        let usage = given(&with(&format!(r#""usage":{{"cost_usd":{text}}}"#))).usage;
        usage.expect("a cost is usage").cost_usd_micros
    };
    assert_eq!(cost("0.1"), Some(100_000));
    assert_eq!(cost("-0"), Some(0));
    assert_eq!(cost("0.00000000000001"), Some(1));
    assert_eq!(cost("1000000000"), Some(1_000_000_000_000_000));
}

#[test]
fn the_input_of_a_call_is_kept_as_it_was_written() {
    for input in ["null", "[ 1,2 ]", r#""a\u00e4""#, "1.0e2", r#"{"b":1, "a":{}}"#] {
        let text = with(&format!(r#""tool_calls":[{{"name":"t","input": {input} ,"key":""}}]"#));
        let call = given(&text).tool_calls.remove(0);
        assert_eq!((call.input.as_str(), call.key), (input, None));
    }
}

#[test]
fn too_many_calls_are_refused_and_as_many_as_allowed_are_not() {
    let calls = |count: usize| {
        with(&format!(r#""tool_calls":[{}]"#, vec![r#"{"name":"t"}"#; count].join(",")))
    };
    assert_eq!(given(&calls(MAX_TOOL_CALLS)).tool_calls.len(), MAX_TOOL_CALLS);
    assert_eq!(refused(&calls(MAX_TOOL_CALLS + 1)), "tool_calls: must be 64 calls at the most");
}

#[test]
fn a_long_summary_is_cut_between_two_characters() {
    let summary = |text: &str| given(&with(&format!(r#""summary":"{text}""#))).summary;
    let fits = "a".repeat(MAX_SUMMARY_BYTES);
    assert_eq!(summary(&fits), fits);
    let cut = summary(&"ä".repeat(MAX_SUMMARY_BYTES));
    assert_eq!(cut, format!("{}…", "ä".repeat((MAX_SUMMARY_BYTES - 3) / 2)));
    assert_eq!(summary(&cut), cut);
}

#[test]
fn what_is_not_one_whole_object_is_refused() {
    assert_eq!(refused(""), "the response is empty");
    assert_eq!(refused(" \n\t"), "the response is empty");
    assert_eq!(refused("[]"), "the response is not a JSON object");
    assert_eq!(refused("null"), "the response is not a JSON object");
    assert_eq!(refused(r#""status""#), "the response is not a JSON object");
    assert_eq!(refused(r#"{"status":"do"#), "the response ends too early, at line 1 column 13");
    assert_eq!(
        refused("{\"status\":\"done\",\n"),
        "the response ends too early, at line 2 column 0"
    );
    assert_eq!(
        refused(r#"{"status":"done"} {}"#),
        "the response is not JSON: trailing characters at line 1 column 19"
    );
    assert_eq!(refused("done"), "the response is not JSON: expected value at line 1 column 1");
    assert_eq!(
        parse(b"{\"status\":\"done\",\"summary\":\"\xff\"}"),
        Err(BadResponse::NotUtf8 { at: 28 })
    );
}

#[test]
fn a_key_that_is_there_twice_is_refused_wherever_it_is() {
    let twice = |key: &str, column: usize| BadResponse::TwiceTheKey {
        key: key.to_owned(),
        line: 1,
        column,
    };
    let parsed = |text: &str| parse(text.as_bytes());
    assert_eq!(parsed(r#"{"status":"done","st\u0061tus":"failed"}"#), Err(twice("status", 30)));
    let inside = with(r#""tool_calls":[{"name":"t","input":{"a":[{"b":1,"b":1}]}}]"#);
    assert!(matches!(parsed(&inside), Err(BadResponse::TwiceTheKey { key, .. }) if key == "b"));
    assert!(
        matches!(parsed(&with(r#""mine":{"x\n":1,"x\n":1}"#)), Err(BadResponse::TwiceTheKey { key, .. }) if key == r"x\n")
    );
    given(&with(r#""mine":[{"a":1},{"a":1}]"#));
}

#[test]
fn depth_and_size_have_an_end() {
    let nested =
        |depth: usize| with(&format!(r#""mine":{}{}"#, "[".repeat(depth), "]".repeat(depth)));
    given(&nested(63));
    assert!(refused(&nested(64)).starts_with("the response is nested too deep"));
    assert!(refused(&nested(400_000)).starts_with("the response is nested too deep"));
    let sized = |bytes: usize| {
        let start = r#"{"status":"done"}"#;
        format!("{start}{}", " ".repeat(bytes - start.len()))
    };
    given(&sized(MAX_BYTES));
    assert_eq!(refused(&sized(MAX_BYTES + 1)), "the response is larger than 1 MiB");
}
