//! JSON-RPC in lines: what a line means, and what is answered. Pure.

use serde_json::{Value, json};

pub(crate) const PARSE_ERROR: i64 = -32700;
pub(crate) const INVALID_REQUEST: i64 = -32600;
pub(crate) const UNKNOWN_METHOD: i64 = -32601;
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// Codes of MCP, and not of JSON-RPC.
pub(crate) const UNSUPPORTED_VERSION: i64 = -32022;
pub(crate) const HEADER_MISMATCH: i64 = -32020;

/// No message is longer, in bytes.
pub(crate) const LONGEST_LINE: usize = 4 << 20;

/// What a client said.
#[derive(Debug, PartialEq)]
pub(crate) enum Said {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// An answer to a question of ours; there are none.
    Response,
    /// What cannot be understood, and the answer to it.
    Wrong(Value),
}

pub(crate) fn read(line: &[u8]) -> Said {
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        return Said::Wrong(error(&Value::Null, PARSE_ERROR, "this is not JSON"));
    };
    let Value::Object(mut message) = value else {
        let why = "a message is one JSON object; batches are not taken";
        return Said::Wrong(error(&Value::Null, INVALID_REQUEST, why));
    };
    let id = message.remove("id");
    let shown = id.clone().filter(is_id).unwrap_or(Value::Null);
    if message.get("jsonrpc") != Some(&json!("2.0")) {
        return Said::Wrong(error(&shown, INVALID_REQUEST, "jsonrpc has to be \"2.0\""));
    }
    let params = message.remove("params").unwrap_or(Value::Null);
    match (message.remove("method"), id) {
        (Some(Value::String(method)), None) => Said::Notification { method, params },
        (Some(Value::String(method)), Some(id)) if is_id(&id) => {
            Said::Request { id, method, params }
        }
        (None, Some(_)) if message.contains_key("result") || message.contains_key("error") => {
            Said::Response
        }
        _ => Said::Wrong(error(&shown, INVALID_REQUEST, "a request has a method and an id")),
    }
}

fn is_id(id: &Value) -> bool {
    id.is_string() || id.is_number()
}

pub(crate) fn error(id: &Value, code: i64, message: &str) -> Value {
    refusal(id, &json!({"code": code, "message": message}))
}

pub(crate) fn refusal(id: &Value, error: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

pub(crate) fn result(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

pub(crate) fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(line: &str) -> i64 {
        match read(line.as_bytes()) {
            Said::Wrong(answer) => answer["error"]["code"].as_i64().expect("a code"),
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn what_is_no_message_is_answered_with_its_fault() {
        assert_eq!(code("{"), PARSE_ERROR);
        assert_eq!(code("\u{0}"), PARSE_ERROR);
        for wrong in [
            "[]",
            "1",
            "null",
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            r#"{"id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":7}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
        ] {
            assert_eq!(code(wrong), INVALID_REQUEST, "{wrong}");
        }
    }

    #[test]
    fn requests_notifications_and_responses_are_told_apart() {
        let request = read(br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#);
        let (id, method) = (json!("a"), "ping".to_owned());
        assert_eq!(request, Said::Request { id, method, params: Value::Null });
        let notified = read(br#"{"jsonrpc":"2.0","method":"notifications/x","params":{"a":1}}"#);
        let method = "notifications/x".to_owned();
        assert_eq!(notified, Said::Notification { method, params: json!({"a": 1}) });
        assert_eq!(read(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Said::Response);
    }
}
