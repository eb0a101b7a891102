//! What a collector of OTLP is sent: `cargo test -p outlast --features otlp traces`.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::harness::{Gate, Home, PATIENCE, skip, text};
use crate::hosted::{becomes, begin, configure, left, put};
use crate::metrics::findings;
use crate::operator::Collector;

/// Spans as they come, until there are so many.
fn spans(collector: &Collector, count: usize) -> (Vec<Value>, Vec<Value>) {
    let (mut spans, mut bodies) = (Vec::new(), Vec::new());
    while spans.len() < count {
        let (line, body) = collector.asked.recv_timeout(PATIENCE).expect("a batch comes");
        assert_eq!(line, "POST /v1/traces HTTP/1.1");
        let body: Value = serde_json::from_slice(&body).expect("it is JSON");
        let sent = body.pointer("/resourceSpans/0/scopeSpans/0/spans").and_then(Value::as_array);
        spans.extend(sent.expect("it has spans").iter().cloned());
        bodies.push(body);
    }
    (spans, bodies)
}

fn named<'a>(spans: &'a [Value], name: &str) -> &'a Value {
    let found = spans.iter().find(|span| span["name"] == name);
    found.unwrap_or_else(|| panic!("no {name} in {spans:#?}"))
}

fn attribute<'a>(span: &'a Value, key: &str) -> Option<&'a Value> {
    let all = span["attributes"].as_array()?;
    all.iter().find(|it| it["key"] == key).map(|it| &it["value"])
}

const TOOL: &str = "tools: [{name: lint, command: [sh, -c, 'exit 1'], class: read}]";

#[test]
fn a_run_is_one_trace_and_its_agent_was_told_its_own_span() {
    let collector = Collector::new(100);
    let home = Home::new();
    configure(&home, &format!("[otlp]\nendpoint = \"{}\"\n", collector.url));
    let agent = r#"echo "$TRACEPARENT" >>"$HOME/parents"; case $OUTLAST_TURN in
        1) respond '{"status":"continue","summary":"x","tool_calls":[{"name":"lint","input":{}}],"usage":{"input_tokens":7,"output_tokens":5,"cost_usd":0.5}}';;
        *) say done x;; esac"#;
    let id = begin(&home, agent, TOOL);
    becomes(&home, &id, "completed", "done");
    // Two attempts, a tool, and the run.
    let (spans, bodies) = spans(&collector, 4);
    let run = named(&spans, &format!("invoke_workflow {id}"));
    let tool = named(&spans, "execute_tool lint");
    let agents: Vec<&Value> = spans.iter().filter(|it| it["name"] == "invoke_agent exec").collect();
    let told: Vec<String> = agents
        .iter()
        .map(|it| {
            format!(
                "00-{}-{}-01",
                it["traceId"].as_str().unwrap_or(""),
                it["spanId"].as_str().unwrap_or("")
            )
        })
        .collect();
    assert_eq!(told, left(&home, "parents"));
    assert!(spans.iter().all(|span| span["traceId"] == run["traceId"]));
    assert!(agents.iter().all(|span| span["parentSpanId"] == run["spanId"]));
    assert_eq!((&tool["parentSpanId"], &tool["status"]["code"]), (&agents[0]["spanId"], &2.into()));
    assert!(run["parentSpanId"].is_null() && run["status"].is_null(), "{run}");
    assert_eq!(
        attribute(agents[0], "gen_ai.usage.input_tokens").map(|it| &it["intValue"]),
        Some(&"7".into())
    );
    assert_eq!(
        attribute(agents[0], "gen_ai.operation.name").map(|it| &it["stringValue"]),
        Some(&"invoke_agent".into())
    );
    let at = |span: &Value, key: &str| {
        span[key].as_str().and_then(|it| it.parse::<u128>().ok()).expect("nanoseconds")
    };
    for span in &spans {
        assert!(at(span, "startTimeUnixNano") <= at(span, "endTimeUnixNano"), "{span}");
    }
    assert!(
        findings(&home, "otlp")[0]["message"]
            .as_str()
            .is_some_and(|it| it.starts_with("4 spans sent, 0 lost"))
    );
    parse_strictly(&home, &bodies);
}

#[test]
fn what_ends_under_another_daemon_is_sent_by_that_one() {
    let collector = Collector::new(100);
    let home = Home::new();
    configure(&home, &format!("[otlp]\nendpoint = \"{}\"\n", collector.url));
    let mut gate = Gate::new(&home, "gate");
    let id = home.start(&gate.pass());
    home.pid(&id);
    home.crash_daemon();
    home.ok(&["daemon", "start"]);
    gate.open();
    assert_eq!(home.wait(&id), 0);
    let (spans, _) = spans(&collector, 2);
    named(&spans, "invoke_agent exec");
    named(&spans, &format!("invoke_workflow {id}"));
}

#[test]
fn a_collector_that_cannot_be_asked_holds_nobody_up() {
    let home = Home::new();
    configure(&home, "[otlp]\nendpoint = \"ftp://collector\"\n");
    assert_eq!(home.wait(&home.start("true")), 0);
    let found = findings(&home, "otlp");
    assert_eq!(found[0]["level"], "warning", "{found:?}");
}

const PARSE: &str = r#"
import base64, json, sys
from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
for line in open(sys.argv[1]):
    body = json.loads(line)
    for span in body["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for key in ("traceId", "spanId", "parentSpanId"):
            if key in span:
                # OTLP writes these in hexadecimal where protobuf's JSON has base64.
                span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    request = json_format.ParseDict(body, ExportTraceServiceRequest(), ignore_unknown_fields=False)
    for span in request.resource_spans[0].scope_spans[0].spans:
        assert len(span.trace_id) == 16 and len(span.span_id) == 8, span
        assert span.kind == 1 and span.start_time_unix_nano > 0, span
print("parsed")
"#;

/// By OpenTelemetry's own messages, where they can be had.
fn parse_strictly(home: &Home, bodies: &[Value]) {
    let venv = home.scratch().join("venv");
    let made = Command::new("python3").args(["-m", "venv"]).arg(&venv).output();
    if !made.is_ok_and(|made| made.status.success()) {
        return skip("there is no python3 with venv, so no strict parser");
    }
    let python = venv.join("bin/python");
    let install = ["-m", "pip", "install", "--quiet", "opentelemetry-proto"];
    let installed = Command::new(&python).args(install).output().expect("it was just made");
    if !installed.status.success() {
        return skip(&format!("opentelemetry-proto cannot be had: {}", text(&installed.stderr)));
    }
    let (script, lines) = (home.scratch().join("parse.py"), home.scratch().join("bodies"));
    put(&script, PARSE);
    put(&lines, &bodies.iter().map(|body| format!("{body}\n")).collect::<String>());
    let parsed =
        Command::new(&python).args([Path::new(&script), &lines]).output().expect("it is there");
    assert_eq!(text(&parsed.stdout), "parsed\n", "{}", text(&parsed.stderr));
}
