//! What executes a turn, and what it gets of the environment.

use outlast_agents::adapter::driven;
use outlast_agents::{KINDS, Kind};
use outlast_engine::{Agent, ModelClass};

use super::defaults::ENV;
use super::sheet::Sheet;
use super::{Origin, symphony};
use crate::agents::AgentTable;
use crate::node::{Node, Value};
use crate::problem::{Code, Problem};

pub(super) fn kind(sheet: &mut Sheet<'_>) -> String {
    let key = "agent.kind";
    let (kind, origin) = match (&sheet.overrides.agent_kind, sheet.text(key)) {
        (Some(flag), _) => (flag.clone(), Origin::CommandLine),
        (None, Some((kind, line))) => (kind.to_owned(), Origin::Workflow { line }),
        (None, None) if symphony::is_symphony(sheet) => {
            (symphony::KIND.to_owned(), Origin::Default)
        }
        (None, None) => ("exec".to_owned(), Origin::Default),
    };
    if outlast_agents::kind(&kind).is_none() && declared(sheet, &kind).is_none() {
        let problem =
            sheet.problem(Code::UnknownKind, key, format_args!("there is no kind {kind:?}"));
        let names = KINDS.iter().map(|kind| kind.name);
        let names: Vec<&str> =
            names.chain(sheet.config.agents.keys().map(String::as_str)).collect();
        let problem = problem.hint(format_args!(
            "one of {}; config.toml may have another as [agents.NAME]",
            names.join(", ")
        ));
        sheet.errors.push(match origin {
            Origin::Workflow { line } => problem.at(line),
            _ => problem,
        });
    }
    sheet.note(key, &kind, origin);
    kind
}

pub(super) fn agent(sheet: &mut Sheet<'_>, kind: String) -> Agent {
    let (command, origin) = command(sheet, &kind);
    let is_blank = command.iter().all(|word| word.trim().is_empty());
    let is_declared = declared(sheet, &kind).is_some();
    let knows_its_own = is_declared || driven(&kind).is_some_and(|it| !it.needs_command);
    if is_blank && is_runnable(&kind) && !knows_its_own {
        let message = format!("an agent of kind {kind} needs a command");
        let problem = sheet.problem(Code::MissingCommand, "agent.command", message);
        let place = sheet.given("agent.command").or(sheet.given("agent.kind"));
        let line = place.or(sheet.given("agent")).map(|node| node.line);
        let problem = Problem { line, ..problem };
        sheet.errors.push(problem.hint("give it in the file, or on the command line after --"));
    }
    match declared(sheet, &kind).filter(|_| is_blank) {
        Some(table) => {
            let (words, line) = (shown(&table.declared.command), table.line);
            sheet.note("agent.command", words, Origin::Config { line });
        }
        None => sheet.note("agent.command", shown(&command), origin),
    }
    Agent { kind, command }
}

/// The operator's table of this kind. A name that is built in is none of the operator's.
pub(super) fn declared<'a>(sheet: &Sheet<'a>, kind: &str) -> Option<&'a AgentTable> {
    sheet.config.agents.get(kind)
}

/// True if a driver speaks to agents of this kind.
pub(super) fn is_driven(sheet: &Sheet<'_>, kind: &str) -> bool {
    declared(sheet, kind).is_some() || driven(kind).is_some()
}

/// How long an attempt may be silent if the file does not say.
pub(super) fn stall_window_ms(sheet: &Sheet<'_>, kind: &str) -> Option<u64> {
    match declared(sheet, kind) {
        Some(table) => table.declared.stall_window_ms(),
        None => outlast_agents::kind(kind).and_then(|kind| kind.stall_window_ms),
    }
}

pub(super) fn is_runnable(kind: &str) -> bool {
    outlast_agents::kind(kind).is_some_and(Kind::is_runnable)
}

/// An agent of another kind that is given no command knows its own.
fn command(sheet: &Sheet<'_>, kind: &str) -> (Vec<String>, Origin) {
    if let Some(words) = &sheet.overrides.command {
        return (words.clone(), Origin::CommandLine);
    }
    let is_symphony = kind == symphony::KIND;
    let given = sheet.given("agent.command");
    let given = given.or_else(|| sheet.given("codex.command").filter(|_| is_symphony));
    match given {
        // Its own arguments come after the line's.
        Some(node) if is_driven(sheet, kind) && sheet.given("agent.command").is_some() => {
            (with_arguments(argv(node)), Origin::Workflow { line: node.line })
        }
        Some(node) => (argv(node), Origin::Workflow { line: node.line }),
        None if is_symphony && symphony::is_symphony(sheet) => {
            (shell(symphony::COMMAND), Origin::Default)
        }
        None => (Vec::new(), Origin::Default),
    }
}

/// A line for the shell that passes on what is put behind it.
fn with_arguments(argv: Vec<String>) -> Vec<String> {
    match argv.as_slice() {
        // Symphony's line for Codex has all that there is to say.
        [sh, flag, line]
            if sh == "sh"
                && flag == "-c"
                && !line.split_whitespace().any(|word| word == "app-server") =>
        {
            vec![sh.clone(), flag.clone(), format!("{line} \"$@\""), sh.clone()]
        }
        _ => argv,
    }
}

/// A line is the shell's, to the letter; a list is what it says.
pub(super) fn argv(node: &Node) -> Vec<String> {
    match &node.value {
        Value::Text(line) if line.trim().is_empty() => Vec::new(),
        Value::Text(line) => shell(line),
        _ => node.texts(),
    }
}

fn shell(line: &str) -> Vec<String> {
    ["sh", "-c", line].map(str::to_owned).into()
}

pub(super) fn shown(command: &[String]) -> String {
    match command {
        [] => "the kind's own".to_owned(),
        [sh, flag, line] if sh == "sh" && flag == "-c" => line.clone(),
        [sh, flag, line, _] if sh == "sh" && flag == "-c" => {
            line.strip_suffix(" \"$@\"").unwrap_or(line).to_owned()
        }
        words => words.join(" "),
    }
}

pub(super) fn model_class(sheet: &mut Sheet<'_>) -> ModelClass {
    let key = "agent.model_class";
    let (class, origin) = match sheet.text(key) {
        Some(("small_local", line)) => (ModelClass::SmallLocal, Origin::Workflow { line }),
        Some((_, line)) => (ModelClass::Frontier, Origin::Workflow { line }),
        None => (ModelClass::Frontier, Origin::Default),
    };
    let word = match class {
        ModelClass::Frontier => "frontier",
        ModelClass::SmallLocal => "small_local",
    };
    sheet.note(key, word, origin);
    class
}

/// Names that may end in `*`. Of the defaults the operator's list takes away; a file that asks for more is refused.
pub(super) fn env(sheet: &mut Sheet<'_>, kind: &str) -> Vec<String> {
    let key = "agent.env";
    // What an agent that speaks a protocol needs to find its login and its provider.
    let of_kind = match declared(sheet, kind) {
        Some(table) => table.declared.env_names(),
        None => driven(kind).map_or(Vec::new(), |driven| driven.env.to_vec()),
    };
    let Some(node) = sheet.given(key) else {
        let names: Vec<_> = ENV
            .into_iter()
            .chain(of_kind)
            .filter(|name| is_allowed(sheet, name))
            .map(str::to_owned)
            .collect();
        sheet.note(key, names.join(" "), Origin::Default);
        return names;
    };
    let names = node.texts();
    for name in &names {
        let problem = if !is_pattern(name) {
            sheet
                .problem(
                    Code::BadValue,
                    key,
                    format_args!("{name:?} is not the name of a variable"),
                )
                .hint("letters, digits and underscores, with a * at most at the end")
        } else if !is_allowed(sheet, name) {
            sheet
                .problem(
                    Code::EnvNotAllowed,
                    key,
                    format_args!("the operator does not allow {name}"),
                )
                .hint(format_args!("env.allow in {} says what is", sheet.config.file))
        } else {
            continue;
        };
        sheet.errors.push(problem.at(node.line));
    }
    sheet.note(key, names.join(" "), Origin::Workflow { line: node.line });
    names
}

fn is_pattern(name: &str) -> bool {
    let stem = name.strip_suffix('*').unwrap_or(name);
    let starts_well = !name.starts_with(|first: char| first.is_ascii_digit());
    let is_word = stem.chars().all(|any| any.is_ascii_alphanumeric() || any == '_');
    !stem.is_empty() && starts_well && is_word
}

fn is_allowed(sheet: &Sheet<'_>, name: &str) -> bool {
    let Some(allowed) = &sheet.config.env_allow else { return true };
    allowed.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(stem) => name.starts_with(stem),
        None => name == pattern,
    })
}
