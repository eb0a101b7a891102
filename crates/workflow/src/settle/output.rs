//! What leaves the run by itself, what follows an interruption, and how the run waits for its turn.

use outlast_engine::{OnInterrupt, OutputPolicy, Queue};

use super::Origin;
use super::sheet::Sheet;
use crate::notify::{self, LOG, Sink};
use crate::problem::Code;

pub(super) fn policy(sheet: &mut Sheet<'_>) -> OutputPolicy {
    OutputPolicy {
        emit_to: emit_to(sheet),
        silent_unless_blocked: flag(sheet, "output.silent_unless_blocked"),
        require_approval_before_emit: flag(sheet, "output.require_approval_before_emit"),
    }
}

fn emit_to(sheet: &mut Sheet<'_>) -> Vec<String> {
    let key = "output.emit_to";
    let Some(node) = sheet.given(key) else {
        sheet.note(key, LOG, Origin::Default);
        return vec![LOG.to_owned()];
    };
    let names = node.texts();
    for name in names.iter().filter(|name| *name != LOG) {
        let why = match Sink::at(name) {
            _ if sheet.config.sinks.contains_key(name) => continue,
            Some(Ok(_)) => continue,
            Some(Err(why)) => why,
            None => format!("there is no sink {name:?}"),
        };
        let problem = sheet.problem(Code::UnknownSink, key, why).at(node.line);
        let known = known(sheet);
        sheet.errors.push(problem.hint(known));
    }
    let shown: Vec<String> = names.iter().map(|name| notify::shown(name)).collect();
    sheet.note(key, shown.join(" "), Origin::Workflow { line: node.line });
    names
}

fn known(sheet: &Sheet<'_>) -> String {
    let names: Vec<&str> =
        std::iter::once(LOG).chain(sheet.config.sinks.keys().map(String::as_str)).collect();
    format!("{}, or an address such as cmd:COMMAND or webhook:URL", names.join(", "))
}

fn flag(sheet: &mut Sheet<'_>, key: &str) -> bool {
    let given = sheet.given(key).and_then(|node| Some((node.flag()?, node.line)));
    let (value, origin) = match given {
        Some((value, line)) => (value, Origin::Workflow { line }),
        None => (false, Origin::Default),
    };
    sheet.note(key, value, origin);
    value
}

pub(super) fn on_interrupt(sheet: &mut Sheet<'_>) -> OnInterrupt {
    let key = "on_interrupt";
    let Some((word, line)) = sheet.text(key) else {
        sheet.note(key, "resume", Origin::Default);
        return OnInterrupt::Resume;
    };
    sheet.note(key, word, Origin::Workflow { line });
    match word {
        "block" => OnInterrupt::Block,
        "restore" => OnInterrupt::Restore,
        _ => OnInterrupt::Resume,
    }
}

pub(super) fn queue(sheet: &mut Sheet<'_>) -> Queue {
    let (priority, most_of_workflow) = (priority(sheet), most_of_workflow(sheet));
    Queue { priority, most_of_workflow, ..Queue::default() }
}

fn priority(sheet: &mut Sheet<'_>) -> i32 {
    let key = "queue.priority";
    let given =
        sheet.given(key).and_then(|node| Some((i32::try_from(node.whole()?).ok()?, node.line)));
    let (value, origin) = match (sheet.overrides.priority, given) {
        (Some(flag), _) => (flag, Origin::CommandLine),
        (None, Some((value, line))) => (value, Origin::Workflow { line }),
        (None, None) => (0, Origin::Default),
    };
    sheet.note(key, value, origin);
    value
}

fn most_of_workflow(sheet: &mut Sheet<'_>) -> Option<u32> {
    let key = "agent.max_concurrent_agents";
    let (most, line) = sheet.whole(key)?;
    let most = u32::try_from(most).ok().filter(|most| *most > 0);
    let shown = most.map_or("no limit".to_owned(), |most| most.to_string());
    sheet.note(key, shown, Origin::Workflow { line });
    most
}
