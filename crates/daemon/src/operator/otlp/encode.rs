//! Spans as the JSON of OTLP: ids in hexadecimal, times as texts of nanoseconds, kinds as numbers.

use outlast_wire::version;
use serde_json::{Value as Json, json};

use super::span::{Span, Value};
use crate::view;

/// A span of our own doing, neither asked of another nor by another.
const INTERNAL: u32 = 1;
const STATUS_ERROR: u32 = 2;

/// The body of one request to `/v1/traces`.
pub(super) fn request(spans: &[Span]) -> String {
    let attribute = |key: &str, value: Json| json!({ "key": key, "value": value });
    let text = |text: &str| json!({ "stringValue": text });
    let resource = [
        attribute("service.name", text("outlast")),
        attribute("service.version", text(version::BUILD)),
    ];
    let spans: Vec<Json> = spans.iter().map(span).collect();
    let body = json!({ "resourceSpans": [{
        "resource": { "attributes": resource },
        "scopeSpans": [{
            "scope": { "name": "outlast", "version": version::BUILD },
            "spans": spans,
        }],
    }] });
    serde_json::to_string(&body).expect("it is plain data")
}

fn span(span: &Span) -> Json {
    let attributes: Vec<Json> = span
        .attributes
        .iter()
        .map(|(key, value)| json!({ "key": key, "value": any_value(value) }))
        .collect();
    let nanos = |ms: u64| (u128::from(ms) * 1_000_000).to_string();
    let mut body = json!({
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "name": span.name,
        "kind": INTERNAL,
        "startTimeUnixNano": nanos(span.start.0),
        "endTimeUnixNano": nanos(span.end.0),
        "attributes": attributes,
    });
    if let Some(parent) = &span.parent {
        body["parentSpanId"] = json!(parent);
    }
    if let Some(error) = span.error {
        body["status"] = json!({ "code": STATUS_ERROR, "message": error });
    }
    body
}

/// Whole numbers are texts there, because a JSON number may be no more than a float.
fn any_value(value: &Value) -> Json {
    match value {
        Value::Text(text) => json!({ "stringValue": text }),
        Value::Whole(number) => json!({ "intValue": number.to_string() }),
        Value::Dollars { micros } => json!({ "doubleValue": view::usd(*micros) }),
        Value::Flag(flag) => json!({ "boolValue": flag }),
    }
}
