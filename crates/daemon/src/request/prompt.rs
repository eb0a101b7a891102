//! The prompt: the loop file's template, filled in, and below it what the turn has to know whether or not
//! its author thought of it.

use std::fmt::Write;

use outlast_engine::{CallResult, Message, Previous, Run};
use outlast_workflow::template::{self, LARGEST_PROMPT, OVER_BUDGET, Rendered, Variables};
use serde_json::Value;

use super::cut::{self, Keep};
use super::{Given, Left, Note, item, status};
use crate::conversation::Past;

/// The template does not render with what this turn has; it did with what the run was made with.
#[derive(Debug, thiserror::Error)]
#[error("the prompt cannot be rendered: {0}")]
pub(crate) struct Unrenderable(String);

impl From<template::Problem> for Unrenderable {
    fn from(problem: template::Problem) -> Self {
        Self(match problem.line {
            Some(line) => format!("line {line} of the prompt: {}", problem.message),
            None => problem.message,
        })
    }
}

/// How much of what a run was told a template gets to see.
#[derive(Clone, Copy)]
struct Share {
    /// Bytes of one text: the task, the summary, the output of a check.
    each: usize,
    /// Bytes of all messages, and of all outputs of tools.
    all: usize,
    /// Messages, and results.
    items: usize,
}

/// Bytes of the last turn's summary that a new conversation is told of.
const MOST_CARRIED_OVER: usize = 16 << 10;

/// What a template is given. One that makes too much of the first is given the next: what a run was told
/// makes no turn fail.
const SHARES: [Share; 3] = [
    Share { each: 256 << 10, all: 256 << 10, items: usize::MAX },
    Share { each: 32 << 10, all: 32 << 10, items: 64 },
    Share { each: 2 << 10, all: 2 << 10, items: 8 },
];

pub(super) fn render(
    run: &Run,
    note: Option<&Note>,
    left: &Left,
    given: &Given<'_>,
) -> Result<String, Unrenderable> {
    let Some(workflow) = &run.spec.workflow else {
        return Ok(run.task.clone().unwrap_or_default());
    };
    let known = known(run, note, given);
    let most = LARGEST_PROMPT.saturating_sub(known.len() + 1);
    let mut prompt = within(&workflow.prompt, run, note, left, given, most)?;
    if !known.is_empty() && !prompt.is_empty() && !prompt.ends_with('\n') {
        prompt.push('\n');
    }
    prompt.push_str(&known);
    Ok(prompt)
}

/// True if a message is too long for what a prompt has for messages.
pub(super) fn cuts_messages(run: &Run) -> bool {
    run.spec.workflow.is_some() && message_level(run, SHARES[0]) != usize::MAX
}

/// What the template comes to in at most so many bytes.
fn within(
    text: &str,
    run: &Run,
    note: Option<&Note>,
    left: &Left,
    given: &Given<'_>,
    most: usize,
) -> Result<String, Unrenderable> {
    let request = given.places.attempt.request();
    let mark = |why: &str| {
        let request = request.display();
        format!("[outlast: {why}; what it is made of is in {request}]\n")
    };
    // Room for the mark itself, whatever the path.
    let room = most.saturating_sub(mark("").len() + 256);
    let mut too_much = None;
    for share in SHARES {
        match template::render_within(text, &variables(run, note, left, given, share), room) {
            Ok(Rendered::Whole(prompt)) => return Ok(prompt),
            Ok(Rendered::Beginning { text, line }) => {
                let line = line.map_or_else(String::new, |line| format!(" in line {line}"));
                let mark = mark(&format!("the prompt is longer than 1 MiB and was cut here{line}"));
                return Ok(format!("{text}\n{mark}"));
            }
            Err(problem) if problem.code == OVER_BUDGET => too_much = Some(problem),
            Err(problem) => return Err(problem.into()),
        }
    }
    let why = too_much.map_or_else(String::new, |problem| Unrenderable::from(problem).0);
    tracing::warn!(run = %run.id, why, "prompt replaced by the task: its template makes too much");
    let task = run.task.as_deref().unwrap_or_default();
    let whole = format!("the whole task is in {}", request.display());
    let task = cut::marked(task, SHARES[0].each, Keep::Beginning, &whole);
    Ok(format!("{task}\n\n{}", mark(&format!("the loop file's prompt makes too much: {why}"))))
}

/// Renders as a first turn would, and as a later one that has everything to say, before there is any: a prompt
/// that names what is not always there fails here, and not in the night.
pub(super) fn try_out(run: &Run, left: &Left, told: Option<&Value>) -> Result<(), Unrenderable> {
    let Some(workflow) = &run.spec.workflow else { return Ok(()) };
    let first = Variables {
        task: run.task.clone().unwrap_or_default(),
        ..of_run(run, None, left, item(told))
    };
    [first.clone(), first.later()]
        .iter()
        .try_for_each(|variables| Ok(template::render(&workflow.prompt, variables).map(drop)?))
}

/// What is there to know, each under a heading; nothing where there is nothing.
fn known(run: &Run, note: Option<&Note>, given: &Given<'_>) -> String {
    let mut known = String::new();
    if let Some(text) = carried_over(run, given) {
        section(&mut known, "A new conversation", &text);
    }
    if let Some(note) = note {
        section(&mut known, "Note", &note.text);
    }
    if note.is_none()
        && let Some(text) = super::calls::told(run)
    {
        section(&mut known, "Calls of the turn before", text.trim_start());
    }
    if note.is_none()
        && let Some(text) = super::calls::noted(run)
    {
        section(&mut known, "Notes", text.trim_start());
    }
    let share = SHARES[0];
    let messages: Vec<String> = messages(run, given, share)
        .into_iter()
        .map(|it| format!("- {} says: {}", it.from.unwrap_or_default(), it.text))
        .collect();
    if !messages.is_empty() {
        section(&mut known, "Messages", &messages.join("\n"));
    }
    let Some(previous) = &run.previous else { return known };
    for check in &previous.failed_checks {
        let text = format!("`{}`: {}\n\n{}", check.command, check.why, fenced(&check.output));
        section(&mut known, "The claim of done was checked and refuted", &text);
    }
    for (result, output) in results(previous, given, share) {
        let (status, why) = status(&result.outcome);
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        let text = format!("{status}{why}\n\n{}", fenced(&output));
        section(&mut known, &format!("Result of {} ({})", result.name, result.key), &text);
    }
    known
}

/// What a conversation that began with this turn is told of the turns before.
fn carried_over(run: &Run, given: &Given<'_>) -> Option<String> {
    let begins = match &given.conversation.past {
        Past::Whole | Past::Copied { .. } => return None,
        Past::Left { why } => {
            format!("This is the same run, and a new conversation begins with this turn: {why}.")
        }
        Past::ThisTurn => {
            "This is the same run, and this conversation began with this turn.".to_owned()
        }
    };
    let mut text = format!(
        "{begins} What was said in the turns before is not in it. Their work is in the workspace: \
         continue from there; do not start over."
    );
    if let Some(previous) = run.previous.as_ref().filter(|it| !it.summary.trim().is_empty()) {
        let request = given.places.attempt.request();
        let whole = format!("the whole text is `previous.summary` in {}", request.display());
        let summary = cut::marked(&previous.summary, MOST_CARRIED_OVER, Keep::Beginning, &whole);
        let (turn, summary) = (previous.turn, fenced(&summary));
        write!(text, "\n\nTurn {turn} ended with these words:\n\n{summary}")
            .expect("a string takes all text");
    }
    Some(text)
}

fn section(prompt: &mut String, title: &str, text: &str) {
    write!(prompt, "\n## {title}\n\n{}\n", text.trim_end()).expect("a string takes all text");
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

fn variables(
    run: &Run,
    note: Option<&Note>,
    left: &Left,
    given: &Given<'_>,
    share: Share,
) -> Variables {
    let request = given.places.attempt.request();
    let request = request.display();
    let text = |text: &str, what: &str| {
        let whole = format!("the whole text is {what} in {request}");
        cut::marked(text, share.each, Keep::Beginning, &whole)
    };
    Variables {
        task: text(run.task.as_deref().unwrap_or_default(), "`task`"),
        previous: run
            .previous
            .as_ref()
            .map(|it| previous(it, given, share, &text))
            .unwrap_or_default(),
        messages: messages(run, given, share),
        ..of_run(run, note, left, item(given.told))
    }
}

/// What does not depend on what the run was told since it was made.
fn of_run(run: &Run, note: Option<&Note>, left: &Left, item: Value) -> Variables {
    let attempt = run.attempt.as_ref();
    Variables {
        run: run.id.0.clone(),
        name: run.spec.name.clone(),
        turn: attempt.map_or(1, |it| it.turn),
        earlier_attempts: attempt.map_or(0, |it| it.number.saturating_sub(1)),
        workspace: run.spec.dir.clone(),
        labels: run.spec.labels.clone(),
        note: note
            .map(|note| template::Note { cause: note.cause.to_owned(), text: note.text.clone() }),
        limits_left: template::LimitsLeft {
            turns: left.turns,
            attempts: Some(left.attempts),
            run_ms: left.run_ms,
            tokens: left.tokens,
            cost_usd_micros: left.cost_usd_micros,
        },
        item,
        ..Variables::default()
    }
}

fn message_level(run: &Run, share: Share) -> usize {
    cut::level(run.given().take(share.items).map(|it| it.text.len()), share.all)
}

/// The messages that the attempt is given, each within its share.
fn messages(run: &Run, given: &Given<'_>, share: Share) -> Vec<template::Message> {
    let most = message_level(run, share);
    let file = given.places.messages();
    let message = |(n, it): (usize, &Message)| {
        let whole = format!("the whole message is line {} of {}", n + 1, file.display());
        let text = cut::marked(&it.text, most, Keep::Beginning, &whole);
        template::Message { text, from: Some(it.from.clone()) }
    };
    let mut messages: Vec<_> = run.given().enumerate().take(share.items).map(message).collect();
    let left_out = run.given().count() - messages.len();
    if left_out > 0 {
        let text = format!("[outlast: {left_out} more messages; see below]");
        messages.push(template::Message { text, from: Some("outlast".to_owned()) });
    }
    messages
}

/// The results of the last turn's calls, and of each output its share.
fn results<'a>(
    previous: &'a Previous,
    given: &Given<'_>,
    share: Share,
) -> Vec<(&'a CallResult, String)> {
    let all = || previous.results.iter().flatten().take(share.items);
    let most = cut::level(all().map(|it| given.outputs.of(it).len()), share.all);
    let output = |it: &CallResult| {
        let file = given.places.output(it).map(|it| it.display().to_string()).unwrap_or_default();
        let whole = format!("the whole output is in {file}");
        cut::marked(given.outputs.of(it), most, Keep::End, &whole)
    };
    all().map(|it| (it, output(it))).collect()
}

fn previous(
    previous: &Previous,
    given: &Given<'_>,
    share: Share,
    text: &dyn Fn(&str, &str) -> String,
) -> template::Previous {
    let check = |it: &outlast_engine::FailedCheck| template::FailedCheck {
        command: it.command.clone(),
        output: text(&it.output, "`previous.failed_checks`"),
    };
    let result = |(it, output): (&CallResult, String)| template::ToolResult {
        name: it.name.clone(),
        key: Some(it.key.clone()).filter(|key| !key.is_empty()),
        status: status(&it.outcome).0.to_owned(),
        output,
    };
    template::Previous {
        status: Some(previous.status.word().to_owned()),
        summary: Some(text(&previous.summary, "`previous.summary`")),
        failed_checks: previous.failed_checks.iter().map(check).collect(),
        tool_results: results(previous, given, share).into_iter().map(result).collect(),
    }
}
