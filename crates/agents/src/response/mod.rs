//! The answer an agent writes at the end of its turn: from bytes to what they mean.
//!
//! A response is taken whole or not at all, and a broken one is never guessed at. Fields that are not ours
//! are left alone, and one that is null is one that is absent. No file is opened here, and nothing is
//! decided about the run.

mod amount;
mod node;
mod whole;

use outlast_engine::{Response, Time, ToolCall, TurnStatus, Usage, Wait};

use node::{Fields, Node};

/// A larger response is refused, whatever it says.
pub const MAX_BYTES: usize = 1 << 20;

/// Of a longer summary the start is kept.
pub const MAX_SUMMARY_BYTES: usize = 64 << 10;

pub const MAX_TOOL_CALLS: usize = 64;

/// The last millisecond of the year 9999, which is the last that RFC 3339 can write.
const LATEST_MS: u64 = 253_402_300_799_999;

/// Ends a summary that was cut.
const CUT: char = '…';

/// Why a response cannot be used. People read it, and so does the next attempt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadResponse {
    #[error("the response is empty")]
    Empty,
    #[error("the response is larger than 1 MiB")]
    TooLarge,
    #[error("the response is not UTF-8 at byte {at}")]
    NotUtf8 { at: usize },
    #[error("the response ends too early, at line {line} column {column}")]
    CutShort { line: usize, column: usize },
    #[error("the response is not JSON: {why}")]
    NotJson { why: String },
    #[error("the response is not a JSON object")]
    NotAnObject,
    #[error("the response has the key {key} twice, at line {line} column {column}")]
    TwiceTheKey { key: String, line: usize, column: usize },
    #[error("the response is nested too deep, at line {line} column {column}")]
    TooDeep { line: usize, column: usize },
    #[error("{field}: {problem}")]
    Field { field: String, problem: &'static str },
}

pub fn parse(bytes: &[u8]) -> Result<Response, BadResponse> {
    let fields = Fields::of_whole(whole::check(bytes)?)?;
    Ok(Response {
        status: status(&fields.require("status")?)?,
        summary: summary(&fields)?,
        next_task: unless_blank(&fields, "next_task")?,
        tool_calls: tool_calls(&fields)?,
        usage: usage(&fields)?,
        wait: wait(&fields)?,
    })
}

fn status(node: &Node<'_>) -> Result<TurnStatus, BadResponse> {
    match node.text()?.as_str() {
        "continue" => Ok(TurnStatus::Continue),
        "done" => Ok(TurnStatus::Done),
        "blocked" => Ok(TurnStatus::Blocked),
        "failed" => Ok(TurnStatus::Failed),
        _ => Err(node.bad("must be continue, done, blocked or failed")),
    }
}

fn summary(fields: &Fields<'_>) -> Result<String, BadResponse> {
    let Some(node) = fields.get("summary") else { return Ok(String::new()) };
    let mut text = node.text()?;
    if text.len() > MAX_SUMMARY_BYTES {
        text.truncate(text.floor_char_boundary(MAX_SUMMARY_BYTES - CUT.len_utf8()));
        text.push(CUT);
    }
    Ok(text)
}

/// A text that says nothing was not given.
fn unless_blank(fields: &Fields<'_>, name: &str) -> Result<Option<String>, BadResponse> {
    let text = fields.get(name).map(|node| node.text()).transpose()?;
    Ok(text.filter(|text| !text.trim().is_empty()))
}

fn tool_calls(fields: &Fields<'_>) -> Result<Vec<ToolCall>, BadResponse> {
    let Some(node) = fields.get("tool_calls") else { return Ok(Vec::new()) };
    let calls = node.list()?;
    if calls.len() > MAX_TOOL_CALLS {
        return Err(node.bad("must be 64 calls at the most"));
    }
    calls.iter().map(|call| tool_call(&call.fields()?)).collect()
}

fn tool_call(fields: &Fields<'_>) -> Result<ToolCall, BadResponse> {
    Ok(ToolCall {
        name: fields.require("name")?.text()?,
        input: fields.written("input").unwrap_or("{}").to_owned(),
        key: unless_blank(fields, "key")?,
    })
}

/// `None` as well if there is nothing in it that we know of, so that silence is not taken for a report.
fn usage(fields: &Fields<'_>) -> Result<Option<Usage>, BadResponse> {
    let Some(node) = fields.get("usage") else { return Ok(None) };
    let fields = node.fields()?;
    let tokens = |name| fields.get(name).map(|node| amount::whole(&node)).transpose();
    let usage = Usage {
        input_tokens: tokens("input_tokens")?,
        output_tokens: tokens("output_tokens")?,
        cached_tokens: tokens("cached_tokens")?,
        cost_usd_micros: fields.get("cost_usd").map(|node| amount::micros(&node)).transpose()?,
    };
    Ok((usage != Usage::default()).then_some(usage))
}

fn wait(fields: &Fields<'_>) -> Result<Option<Wait>, BadResponse> {
    let Some(node) = fields.get("wait") else { return Ok(None) };
    let fields = node.fields()?;
    let until = fields.get("until").map(|node| until(&node)).transpose()?;
    let children = fields.get("children").map(|node| node.yes()).transpose()?;
    let message = fields.get("message").map(|node| node.yes()).transpose()?;
    match (until, children, message) {
        (Some(at), None, None) if is_rate_limit(&fields) => Ok(Some(Wait::RateLimit(at))),
        (Some(at), None, None) => Ok(Some(Wait::Until(at))),
        (None, Some(()), None) => Ok(Some(Wait::Children)),
        (None, None, Some(())) => Ok(Some(Wait::Message)),
        _ => Err(node.bad("must have one of until, children and message")),
    }
}

/// True if it says that it waits for its provider; one word is known, and any other is left alone.
fn is_rate_limit(fields: &Fields<'_>) -> bool {
    fields.get("cause").is_some_and(|node| node.text().is_ok_and(|cause| cause == "rate_limit"))
}

/// What is below a millisecond is left out. A time before 1970 is as past as any.
fn until(node: &Node<'_>) -> Result<Time, BadResponse> {
    if node.is_number() {
        let at_ms = amount::floor(node)?;
        return if at_ms > LATEST_MS { Err(node.bad("is too late")) } else { Ok(Time(at_ms)) };
    }
    let bad = || node.bad("must be a time of RFC 3339, or milliseconds since 1970");
    let text = node.text().map_err(|_| bad())?;
    let at: jiff::Timestamp = text.parse().map_err(|_| bad())?;
    Ok(Time(u64::try_from(at.as_millisecond()).unwrap_or(0)))
}

#[cfg(test)]
mod tests;
