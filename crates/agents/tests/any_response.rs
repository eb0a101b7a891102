//! Whatever an agent leaves behind, reading it does not panic, and what was taken once is taken for the
//! same again.

use outlast_agents::response::{BadResponse, parse};
use outlast_agents::tool_input::{self, BadSchema, Wrong};
use outlast_engine::{Response, Time, ToolCall, TurnStatus, Usage, Wait};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;
use serde_json::{Value, json};

const MOST: u64 = 1_000_000_000_000_000;
const LATEST_MS: u64 = 253_402_300_799_999;

/// A response as an agent would write it down.
fn written(response: &Response) -> String {
    let status = match response.status {
        TurnStatus::Continue => "continue",
        TurnStatus::Done => "done",
        TurnStatus::Blocked => "blocked",
        TurnStatus::Failed => "failed",
    };
    let mut fields = vec![
        format!("\"status\": {}", json!(status)),
        format!("\"summary\": {}", json!(response.summary)),
        format!("\"next_task\": {}", json!(response.next_task)),
        format!("\"tool_calls\": [{}]", join(response.tool_calls.iter().map(call))),
    ];
    fields.extend(response.usage.map(|usage| format!("\"usage\": {}", spent(&usage))));
    fields.extend(response.wait.map(|wait| format!("\"wait\": {}", awaited(wait))));
    format!("{{{}}}", join(fields.into_iter()))
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(",\n ")
}

fn call(call: &ToolCall) -> String {
    let (name, key) = (json!(call.name), json!(call.key));
    format!(r#"{{"name": {name}, "input": {}, "key": {key}}}"#, call.input)
}

fn spent(usage: &Usage) -> String {
    let cost = usage.cost_usd_micros.map_or("null".to_owned(), |micros| {
        format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
    });
    format!(
        r#"{{"input_tokens": {}, "output_tokens": {}, "cached_tokens": {}, "cost_usd": {cost}}}"#,
        json!(usage.input_tokens),
        json!(usage.output_tokens),
        json!(usage.cached_tokens)
    )
}

fn awaited(wait: Wait) -> Value {
    match wait {
        Wait::Until(Time(at_ms)) => json!({ "until": at_ms }),
        Wait::RateLimit(Time(at_ms)) => json!({ "until": at_ms, "cause": "rate_limit" }),
        Wait::Children => json!({ "children": true }),
        Wait::Message => json!({ "message": true }),
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            vec((any_name(), inner), 0..4).prop_map(|members| members.into_iter().collect()),
        ]
    })
}

/// Mostly names that mean something to us.
fn any_name() -> impl Strategy<Value = String> {
    let known = [
        "status",
        "summary",
        "next_task",
        "tool_calls",
        "usage",
        "wait",
        "name",
        "input",
        "key",
        "input_tokens",
        "cost_usd",
        "until",
        "children",
        "message",
        "type",
        "required",
        "properties",
        "additionalProperties",
        "enum",
        "const",
        "items",
        "minimum",
        "maxLength",
    ];
    prop_oneof![4 => prop::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => any::<String>()]
}

fn any_status() -> impl Strategy<Value = TurnStatus> {
    prop_oneof![
        Just(TurnStatus::Continue),
        Just(TurnStatus::Done),
        Just(TurnStatus::Blocked),
        Just(TurnStatus::Failed),
    ]
}

fn any_response() -> impl Strategy<Value = Response> {
    let not_blank = || of(any::<String>().prop_map(|text| format!("{text}.")));
    let call = (any::<String>(), any_json(), not_blank()).prop_map(|(name, input, key)| ToolCall {
        name,
        input: input.to_string(),
        key,
    });
    let amount = || of(0..=MOST);
    let usage = (amount(), amount(), amount(), amount()).prop_map(|amounts| Usage {
        input_tokens: amounts.0,
        output_tokens: amounts.1,
        cached_tokens: amounts.2,
        cost_usd_micros: amounts.3,
    });
    let usage = of(usage.prop_filter("says something", |usage| *usage != Usage::default()));
    let wait = of(prop_oneof![
        (0..=LATEST_MS).prop_map(|at_ms| Wait::Until(Time(at_ms))),
        (0..=LATEST_MS).prop_map(|at_ms| Wait::RateLimit(Time(at_ms))),
        Just(Wait::Children),
        Just(Wait::Message),
    ]);
    let parts = (any_status(), any::<String>(), not_blank(), vec(call, 0..4), usage, wait);
    parts.prop_map(|(status, summary, next_task, tool_calls, usage, wait)| Response {
        status,
        summary,
        next_task,
        tool_calls,
        usage,
        wait,
    })
}

/// What was taken, written down and read again.
fn again(taken: &Response) -> Result<Response, BadResponse> {
    parse(written(taken).as_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_an_agent_says_is_what_is_taken(response in any_response()) {
        prop_assert_eq!(parse(written(&response).as_bytes()), Ok(response));
    }

    #[test]
    fn a_response_that_is_half_written_is_never_taken(response in any_response()) {
        let text = written(&response);
        for end in 0..text.len() {
            prop_assert!(parse(&text.as_bytes()[..end]).is_err(), "{}", String::from_utf8_lossy(&text.as_bytes()[..end]));
        }
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in vec(any::<u8>(), 0..200)) {
        prop_assert!(parse(&bytes).is_err());
    }

    #[test]
    fn a_response_with_a_few_bytes_changed_is_refused_or_means_one_thing(
        response in any_response(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = written(&response).into_bytes();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(taken) = parse(&bytes) {
            prop_assert_eq!(again(&taken), Ok(taken));
        }
    }

    #[test]
    fn any_object_is_refused_or_means_one_thing(
        status in any_status(),
        members in vec((any_name(), any_json()), 0..6),
    ) {
        let mut object: serde_json::Map<String, Value> = members.into_iter().collect();
        object.insert("status".to_owned(), serde_json::to_value(status).unwrap());
        let text = Value::Object(object).to_string();
        if let Ok(taken) = parse(text.as_bytes()) {
            prop_assert_eq!(taken.status, status);
            prop_assert_eq!(again(&taken), Ok(taken));
        }
    }

    #[test]
    fn costs_are_exact_and_never_told_as_less(dollars in 0..1_000_000_u64, places in "[0-9]{0,12}") {
        let text = format!(r#"{{"status":"done","usage":{{"cost_usd":{dollars}.0{places}}}}}"#);
        let taken = parse(text.as_bytes()).unwrap().usage.unwrap().cost_usd_micros.unwrap();
        let trillionths: u128 = format!("{dollars}{:0<13}", format!("0{places}")).parse().unwrap();
        prop_assert_eq!(u128::from(taken), trillionths.div_ceil(10_000_000));
    }

    #[test]
    fn any_schema_and_input_are_checked_without_a_panic(schema in any_json(), input in any_json()) {
        let (schema, input) = (schema.to_string(), input.to_string());
        match tool_input::check_schema(&schema) {
            Ok(()) | Err(BadSchema { what: Wrong::UnknownKeyword, .. }) => {
                drop(tool_input::check(&schema, &input));
            }
            Err(_) => prop_assert!(tool_input::check(&schema, &input).is_err()),
        }
    }
}
