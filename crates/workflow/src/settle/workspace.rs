//! Where the turns work, for how long that is kept, and what the host runs around it.

use std::path::{Path, PathBuf};

use outlast_engine::{Checks, Hooks, Retain, Strategy};

use super::defaults::{CHECK_TIMEOUT_MS, HOOK_TIMEOUT_MS};
use super::sheet::Sheet;
use super::{Origin, Surroundings, paths, symphony};
use crate::node::Node;
use crate::problem::{Code, Problem};
use crate::{times, values};

/// The strategy, and the root that it needs.
pub(super) fn place(
    sheet: &mut Sheet<'_>,
    file: &Path,
    around: &Surroundings<'_>,
) -> (Strategy, Option<PathBuf>) {
    let (strategy, origin) = strategy(sheet);
    sheet.note("workspace.strategy", strategy.word(), origin);
    let root = root(sheet, file, around);
    if strategy == Strategy::Inplace {
        if let Some(node) = sheet.given("workspace.root") {
            let note =
                sheet.problem(Code::NoEffect, "workspace.root", "has no effect on runs in place");
            sheet.warnings.push(note.at(node.line));
        }
        return (strategy, None);
    }
    let (root, origin) = root;
    sheet.note("workspace.root", root.display(), origin);
    (strategy, Some(root))
}

fn strategy(sheet: &Sheet<'_>) -> (Strategy, Origin) {
    if let Some(flag) = sheet.overrides.workspace {
        return (flag, Origin::CommandLine);
    }
    match sheet.text("workspace.strategy") {
        Some((word, line)) => {
            // Any other word has been told as a problem by then.
            (Strategy::of(word).unwrap_or_default(), Origin::Workflow { line })
        }
        None if sheet.given("workspace.root").is_some() => (Strategy::Dir, Origin::Default),
        // Its hooks expect an empty directory of their own.
        None if symphony::is_symphony(sheet) => (Strategy::Dir, Origin::Default),
        None => (Strategy::Inplace, Origin::Default),
    }
}

fn root(sheet: &mut Sheet<'_>, file: &Path, around: &Surroundings<'_>) -> (PathBuf, Origin) {
    let default = match symphony::is_symphony(sheet) {
        true => around.temp_dir.join(symphony::WORKSPACES),
        false => around.default_root.to_owned(),
    };
    let Some((text, line)) = sheet.text("workspace.root") else {
        return (default, Origin::Default);
    };
    match paths::expand(text, file, around) {
        Ok(root) => (root, Origin::Workflow { line }),
        Err((code, message, hint)) => {
            let problem = sheet.problem(code, "workspace.root", message).at(line).hint(hint);
            sheet.errors.push(problem);
            (default, Origin::Workflow { line })
        }
    }
}

pub(super) fn retain(sheet: &mut Sheet<'_>) -> Retain {
    let default = Retain::default();
    always_kept(sheet);
    Retain {
        completed_ms: span(sheet, "workspace.retain.completed", default.completed_ms),
        failed_ms: span(sheet, "workspace.retain.failed", default.failed_ms),
        stopped_ms: span(sheet, "workspace.retain.stopped", default.stopped_ms),
        exhausted_ms: span(sheet, "workspace.retain.exhausted", default.exhausted_ms),
    }
}

fn span(sheet: &mut Sheet<'_>, key: &str, default: Option<u64>) -> Option<u64> {
    let given = sheet.given(key).and_then(|node| Some((values::span(node)?, node.line)));
    let (span, origin) = match given {
        Some((span, line)) => (span, Origin::Workflow { line }),
        None => (default, Origin::Default),
    };
    sheet.note(key, values::spelt_span(span), origin);
    span
}

fn always_kept(sheet: &mut Sheet<'_>) {
    let key = "workspace.retain.blocked";
    let Some(node) = sheet.given(key) else { return };
    if values::span(node).is_some_and(|span| span.is_some()) {
        let message = "has no effect: a blocked run has not ended, and its workspace is kept";
        let note: Problem = sheet.problem(Code::NoEffect, key, message);
        sheet.warnings.push(note.at(node.line));
    }
}

pub(super) fn hooks(sheet: &mut Sheet<'_>) -> Hooks {
    Hooks {
        after_create: hook(sheet, "hooks.after_create"),
        before_run: hook(sheet, "hooks.before_run"),
        after_turn: hook(sheet, "hooks.after_turn"),
        after_run: hook(sheet, "hooks.after_run"),
        before_remove: hook(sheet, "hooks.before_remove"),
        timeout_ms: Some(hook_timeout_ms(sheet)),
    }
}

/// Kept to the letter; a blank one is none.
fn hook(sheet: &mut Sheet<'_>, key: &str) -> Option<String> {
    let (text, line) = sheet.text(key).filter(|(text, _)| !text.trim().is_empty())?;
    sheet.note(key, one_line(text), Origin::Workflow { line });
    Some(text.to_owned())
}

fn one_line(text: &str) -> String {
    let mut lines = text.lines();
    let first = lines.next().unwrap_or_default();
    if lines.next().is_some() { format!("{first} …") } else { first.to_owned() }
}

fn hook_timeout_ms(sheet: &mut Sheet<'_>) -> u64 {
    let key = "hooks.timeout_ms";
    let ceiling = sheet.config.ceilings.get("hooks_timeout_ms");
    let (value, origin) = match (sheet.whole(key), ceiling) {
        (Some((value, line)), Some(ceiling)) if value > ceiling.most => {
            let (asked, most) = (times::shown(value), times::shown(ceiling.most));
            let message = format!(
                "{asked} is too much: the operator's ceiling is {most} ({}:{})",
                sheet.config.file, ceiling.line
            );
            let problem = sheet.problem(Code::CeilingExceeded, key, message).at(line);
            sheet.errors.push(problem.hint(format_args!("ask for at most {most}")));
            (ceiling.most, Origin::Ceiling { line: ceiling.line })
        }
        (Some((value, line)), _) => (value, Origin::Workflow { line }),
        (None, Some(ceiling)) if ceiling.most < HOOK_TIMEOUT_MS => {
            (ceiling.most, Origin::Ceiling { line: ceiling.line })
        }
        (None, _) => (HOOK_TIMEOUT_MS, Origin::Default),
    };
    sheet.note(key, value, origin);
    value
}

pub(super) fn checks(sheet: &mut Sheet<'_>) -> Checks {
    let before_run = commands(sheet, "checks.before_run");
    let done = commands(sheet, "checks.done");
    let key = "checks.timeout_ms";
    let (timeout_ms, origin) = match sheet.whole(key) {
        Some((value, line)) => (value, Origin::Workflow { line }),
        None => (CHECK_TIMEOUT_MS, Origin::Default),
    };
    sheet.note(key, timeout_ms, origin);
    Checks { before_run, done, timeout_ms: Some(timeout_ms) }
}

fn commands(sheet: &mut Sheet<'_>, key: &str) -> Vec<String> {
    let Some(node) = sheet.given(key) else { return Vec::new() };
    let commands = Node::texts(node);
    if let Some(blank) = commands.iter().position(|command| command.trim().is_empty()) {
        let message = format!("check {} is blank", blank + 1);
        let problem = sheet.problem(Code::BadValue, key, message).at(node.line);
        sheet
            .errors
            .push(problem.hint("a check is a shell command that fails if the claim is false"));
    }
    sheet.note(key, commands.join("; "), Origin::Workflow { line: node.line });
    commands
}
