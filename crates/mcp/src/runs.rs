//! Child runs: started by key, looked at, waited for and stopped.

use std::time::Duration;

use outlast_client::ask::Ask;
use outlast_client::problem::Problem;
use outlast_client::wait::{self, For};
use outlast_wire::api::{AskedLimits, AskedTree, CreateRun, Created, WorkflowFile};
use serde_json::{Value, json};

use crate::arguments::{Arguments, wrong};
use crate::owner::{Done, KEY_LABEL, Owner};
use crate::processes::{LONGEST_WAIT, brief, child, has_ended, output, state, view_of};

/// So much of the last output is part of a result.
const RESULT_OUTPUT: u64 = 8 << 10;
/// No loop file is longer.
const LARGEST_FILE: u64 = 1 << 20;

pub(crate) async fn spawn(owner: &Owner<'_>, args: &Arguments) -> Done {
    let key = owner.key(&args.text("key")?);
    let (command, task) = (args.command("command")?, args.maybe_text("task")?);
    let (agent, file) = (args.maybe_text("agent")?, args.maybe_text("file")?);
    if command.is_none() && agent.is_none() && file.is_none() {
        return Err(wrong("one of command, agent and file says what is run"));
    }
    let limits = AskedLimits {
        max_turns: args.number("max_turns")?.and_then(|turns| u32::try_from(turns).ok()),
        max_tokens: args.number("max_tokens")?,
        max_cost_usd_micros: args.amount("max_cost_usd")?.map(micros).transpose()?,
        ..AskedLimits::default()
    };
    let tries = args.number("tries")?.and_then(|tries| u32::try_from(tries).ok());
    let base = child(owner, args)?;
    let body = CreateRun {
        name: args.maybe_text("name")?,
        labels: [(KEY_LABEL.to_owned(), key.clone())].into_iter().collect(),
        key: Some(key),
        task,
        agent,
        workflow: file.map(|file| loop_file(&base.dir, &file)).transpose()?,
        command: command.unwrap_or_default(),
        limits,
        tree: AskedTree { tries, ..AskedTree::default() },
        ..base
    };
    let created: Created = owner.session().call(&Ask::post("/v1/runs", &body)).await?;
    if let Some(child) = created.child.as_ref().filter(|child| child.removed) {
        return Ok(json!({
            "id": created.id,
            "existed": true,
            "removed": true,
            "state": child.state,
            "reason_code": child.reason_code,
            "exit": child.exit,
            "summary": child.summary,
        }));
    }
    let view = view_of(owner, &created.id).await?;
    let mut told = state(&view);
    told["existed"] = created.existed.into();
    Ok(told)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the bounds are checked first, and a millionth of a dollar is the unit"
)]
fn micros(usd: f64) -> Result<u64, Problem> {
    let micros = (usd * 1e6).round();
    if !(1.0..1e15).contains(&micros) {
        return Err(wrong("max_cost_usd is no amount in US dollars"));
    }
    Ok(micros as u64)
}

fn loop_file(dir: &str, file: &str) -> Result<WorkflowFile, Problem> {
    use std::io::Read;
    let path = std::path::Path::new(dir).join(file);
    let cannot = |error: std::io::Error| {
        Problem::refusal("unreadable_file", format_args!("cannot read {}: {error}", path.display()))
    };
    let mut text = String::new();
    let opened = std::fs::File::open(&path).map_err(cannot)?;
    opened.take(LARGEST_FILE + 1).read_to_string(&mut text).map_err(cannot)?;
    if u64::try_from(text.len()).is_ok_and(|length| length > LARGEST_FILE) {
        return Err(Problem::refusal("file_too_big", "a loop file has at most 1 MiB"));
    }
    Ok(WorkflowFile { path: path.display().to_string(), text })
}

pub(crate) async fn status(owner: &Owner<'_>, args: &Arguments) -> Done {
    match args.maybe_text("id")? {
        Some(asked) => {
            let id = owner.find(&asked).await?;
            Ok(state(&view_of(owner, &id).await?))
        }
        None => {
            let rows = owner.below().await?;
            Ok(json!({"runs": rows.iter().map(brief).collect::<Vec<Value>>()}))
        }
    }
}

pub(crate) async fn result(owner: &Owner<'_>, args: &Arguments) -> Done {
    let id = owner.find(&args.text("id")?).await?;
    let view = view_of(owner, &id).await?;
    let mut told = state(&view);
    told["has_ended"] = has_ended(&view).into();
    let last = (view["turn"].as_u64(), view["attempt"].as_u64(), view["output_bytes"].as_u64());
    if let (Some(1), Some(1), Some(bytes)) = last {
        let from = bytes.saturating_sub(RESULT_OUTPUT);
        let read = output(owner, &id, from, RESULT_OUTPUT, has_ended(&view)).await?;
        told["last_output"] = read.text.into();
    }
    Ok(told)
}

pub(crate) async fn wait(owner: &Owner<'_>, args: &Arguments) -> Done {
    let id = owner.find(&args.text("id")?).await?;
    let seconds = args.number("timeout_s")?.unwrap_or(LONGEST_WAIT).min(LONGEST_WAIT);
    let ask = wait::ask(&id, For::Rest, Duration::from_secs(seconds));
    let waited: Value = owner.session().call(&ask).await?;
    let mut told = state(&view_of(owner, &id).await?);
    told["timed_out"] = waited["timed_out"].as_bool().unwrap_or(false).into();
    Ok(told)
}
