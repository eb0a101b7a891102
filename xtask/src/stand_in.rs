//! A stand-in for Claude Code that costs next to nothing: it speaks its protocol and asks no model.
//!
//! Not for tests of agents, which use the real CLIs: the bench measures with it what Outlast itself costs.

use std::io::{self, BufRead, Write};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How often it says something before it ends its turn
    #[arg(long, default_value_t = 0)]
    says: u32,
    /// How long it pauses before each of these
    #[arg(long, default_value_t = 1000)]
    pause_ms: u64,
    /// What Outlast appends for the real one
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    ignored: Vec<String>,
}

const SESSION: &str = "5f6f6c6d-0000-4000-8000-000000000001";

pub(crate) fn run(args: &Args) -> Result<()> {
    let mut out = io::stdout().lock();
    let mut tell = |mut message: Value| -> Result<()> {
        message["session_id"] = json!(SESSION);
        writeln!(out, "{message}").and_then(|()| out.flush()).context("telling")
    };
    let mut lines = io::stdin().lock().lines();
    // The prompt.
    lines.next().context("there is no prompt")?.context("reading the prompt")?;
    tell(json!({ "type": "system", "subtype": "init", "model": "stand-in" }))?;
    for said in 0..args.says {
        thread::sleep(Duration::from_millis(args.pause_ms));
        let text = json!([{ "type": "text", "text": format!("Line {said}.") }]);
        tell(json!({ "type": "assistant", "parent_tool_use_id": null,
            "message": { "role": "assistant", "content": text } }))?;
    }
    let usage = json!({ "inputTokens": 100, "outputTokens": 10, "cacheReadInputTokens": 0,
        "cacheCreationInputTokens": 0, "costUSD": 0.001 });
    tell(json!({ "type": "result", "subtype": "success", "is_error": false,
        "terminal_reason": "completed", "result": "It is done.",
        "model_usage_since_last_result": { "stand-in": usage } }))?;
    // It leaves when its input ends.
    lines.try_for_each(|line| line.map(drop)).context("reading to the end")
}
