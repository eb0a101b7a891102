//! How an agent that speaks a protocol is driven: the vendor's own names, and who decides when it asks.

use outlast_agents::adapter::{DRIVEN, driven};
use outlast_engine::{Approvals, Driving};

use super::Origin;
use super::sheet::Sheet;
use crate::problem::{Code, Problem};

pub(super) fn driving(sheet: &mut Sheet<'_>, kind: &str) -> Driving {
    refuse_flags(sheet, kind);
    let (flags, args) = (sheet.overrides, texts(sheet, "agent.args", None));
    Driving {
        model: text(sheet, "agent.model", flags.model.as_ref()),
        effort: text(sheet, "agent.effort", flags.effort.as_ref()),
        permission_mode: text(sheet, "agent.permission_mode", None),
        args,
        approvals: approvals(sheet),
        allow: texts(sheet, "approvals.allow", flags.allow.as_ref()),
    }
}

/// A command takes no part in any of this, and what a flag asks for is not passed over in silence.
fn refuse_flags(sheet: &mut Sheet<'_>, kind: &str) {
    if driven(kind).is_some() {
        return;
    }
    let flags = sheet.overrides;
    let given = [
        ("--approvals", flags.approvals.is_some()),
        ("--allow", flags.allow.is_some()),
        ("--model", flags.model.is_some()),
        ("--effort", flags.effort.is_some()),
    ];
    let kinds = DRIVEN.map(|driven| driven.name).join(", ");
    for (flag, _) in given.into_iter().filter(|(_, is_given)| *is_given) {
        let message =
            format!("{flag} is for an agent that is driven; an agent of kind {kind} is a command");
        let problem = Problem::new(Code::NotDriven, sheet.file, message);
        sheet.errors.push(problem.hint(format_args!("--agent KIND names one of {kinds}")));
    }
}

/// Only what is given is noted: an agent of another kind has none of these.
fn text(sheet: &mut Sheet<'_>, key: &str, flag: Option<&String>) -> Option<String> {
    if let Some(flag) = flag {
        sheet.note(key, flag, Origin::CommandLine);
        return Some(flag.clone());
    }
    let (text, line) = sheet.text(key)?;
    sheet.note(key, text, Origin::Workflow { line });
    Some(text.to_owned())
}

fn texts(sheet: &mut Sheet<'_>, key: &str, flag: Option<&Vec<String>>) -> Vec<String> {
    if let Some(flag) = flag {
        sheet.note(key, flag.join(" "), Origin::CommandLine);
        return flag.clone();
    }
    let Some(node) = sheet.given(key) else { return Vec::new() };
    let texts = node.texts();
    sheet.note(key, texts.join(" "), Origin::Workflow { line: node.line });
    texts
}

fn approvals(sheet: &mut Sheet<'_>) -> Approvals {
    let key = "approvals.mode";
    if let Some(flag) = sheet.overrides.approvals {
        sheet.note(key, flag.word(), Origin::CommandLine);
        return flag;
    }
    let Some((word, line)) = sheet.text(key) else { return Approvals::default() };
    sheet.note(key, word, Origin::Workflow { line });
    // Any other word was refused before.
    Approvals::of(word).unwrap_or_default()
}
