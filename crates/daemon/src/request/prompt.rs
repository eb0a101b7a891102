//! The prompt: the loop file's template, filled in, and below it what the turn has to know whether or not
//! its author thought of it.

use std::fmt::Write;

use outlast_engine::{Previous, Run};
use outlast_workflow::template::{self, Variables};
use serde_json::Value;

use super::{Left, Note, status};

/// The template does not render with what this turn has; it did with what the run was made with.
#[derive(Debug, thiserror::Error)]
#[error("the prompt cannot be rendered: {0}")]
pub(crate) struct Unrenderable(String);

pub(super) fn render(
    run: &Run,
    note: Option<&Note>,
    left: &Left,
    item: &Value,
) -> Result<String, Unrenderable> {
    let mut prompt = match &run.spec.workflow {
        Some(workflow) => template::render(&workflow.prompt, &variables(run, note, left, item))
            .map_err(|problem| Unrenderable(problem.message))?,
        None => run.task.clone().unwrap_or_default(),
    };
    if run.spec.workflow.is_some() {
        append(&mut prompt, run, note);
    }
    Ok(prompt)
}

/// Renders as a first turn would, and as a later one that has everything to say, before there is any: a prompt
/// that names what is not always there fails here, and not in the night.
pub(super) fn try_out(run: &Run, left: &Left, item: &Value) -> Result<(), Unrenderable> {
    let Some(workflow) = &run.spec.workflow else { return Ok(()) };
    let text = |text: &str| text.to_owned();
    let first = variables(run, None, left, item);
    let later = Variables {
        turn: 2,
        earlier_attempts: 1,
        previous: template::Previous {
            status: Some(text("continue")),
            summary: Some(text("so far")),
            failed_checks: vec![template::FailedCheck {
                command: text("true"),
                output: text("no"),
            }],
            tool_results: vec![template::ToolResult {
                name: text("tool"),
                key: Some(text("key")),
                status: text("ok"),
                output: text("yes"),
            }],
        },
        note: Some(template::Note { cause: text("stalled"), text: text("go on") }),
        messages: vec![template::Message { text: text("hello"), from: Some(text("user")) }],
        ..variables(run, None, left, item)
    };
    [first, later].iter().try_for_each(|variables| {
        let rendered = template::render(&workflow.prompt, variables);
        rendered.map(drop).map_err(|problem| Unrenderable(problem.message))
    })
}

/// What is there to know, each under a heading; nothing where there is nothing.
fn append(prompt: &mut String, run: &Run, note: Option<&Note>) {
    if let Some(note) = note {
        section(prompt, "Note", &note.text);
    }
    let messages: Vec<String> =
        run.given().map(|it| format!("- {} says: {}", it.from, it.text)).collect();
    if !messages.is_empty() {
        section(prompt, "Messages", &messages.join("\n"));
    }
    let Some(previous) = &run.previous else { return };
    for check in &previous.failed_checks {
        let text = format!("`{}`: {}\n\n{}", check.command, check.why, fenced(&check.output));
        section(prompt, "The claim of done was checked and refuted", &text);
    }
    for result in previous.results.iter().flatten() {
        let (status, why) = status(&result.outcome);
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        let text = format!("{status}{why}\n\n{}", fenced(&result.output));
        section(prompt, &format!("Result of {} ({})", result.name, result.key), &text);
    }
}

fn section(prompt: &mut String, title: &str, text: &str) {
    let gap = if prompt.is_empty() || prompt.ends_with('\n') { "" } else { "\n" };
    write!(prompt, "{gap}\n## {title}\n\n{}\n", text.trim_end()).expect("a string takes all text");
}

/// A fence that the text itself does not hold.
fn fenced(text: &str) -> String {
    if text.trim().is_empty() {
        return String::new();
    }
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    format!("{fence}\n{}\n{fence}", text.trim_end())
}

fn variables(run: &Run, note: Option<&Note>, left: &Left, item: &Value) -> Variables {
    let attempt = run.attempt.as_ref();
    Variables {
        task: run.task.clone().unwrap_or_default(),
        run: run.id.0.clone(),
        name: run.spec.name.clone(),
        turn: attempt.map_or(1, |it| it.turn),
        earlier_attempts: attempt.map_or(0, |it| it.number.saturating_sub(1)),
        workspace: run.spec.dir.clone(),
        labels: run.spec.labels.clone(),
        previous: run.previous.as_ref().map(previous).unwrap_or_default(),
        note: note
            .map(|note| template::Note { cause: note.cause.to_owned(), text: note.text.clone() }),
        messages: run.given().map(message).collect(),
        limits_left: template::LimitsLeft {
            max_turns: left.turns,
            max_attempts: Some(left.attempts),
            run_timeout_ms: left.run_ms,
            max_tokens: left.tokens,
            max_cost_usd_micros: left.cost_usd_micros,
        },
        item: item.clone(),
    }
}

fn message(message: &outlast_engine::Message) -> template::Message {
    template::Message { text: message.text.clone(), from: Some(message.from.clone()) }
}

fn previous(previous: &Previous) -> template::Previous {
    let check = |it: &outlast_engine::FailedCheck| template::FailedCheck {
        command: it.command.clone(),
        output: it.output.clone(),
    };
    let result = |it: &outlast_engine::CallResult| template::ToolResult {
        name: it.name.clone(),
        key: Some(it.key.clone()).filter(|key| !key.is_empty()),
        status: status(&it.outcome).0.to_owned(),
        output: it.output.clone(),
    };
    template::Previous {
        status: Some(previous.status.word().to_owned()),
        summary: Some(previous.summary.clone()),
        failed_checks: previous.failed_checks.iter().map(check).collect(),
        tool_results: previous.results.iter().flatten().map(result).collect(),
    }
}
