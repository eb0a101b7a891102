//! What an attempt is told of calls under keys, which have results and which are in doubt, and of notes.

use outlast_engine::{AgentNote, Exit, KeyedCall, Noted, Run};
use serde_json::{Value, json};

/// So many calls of each sort are named in words; the request has all of them.
const MOST_NAMED: usize = 32;

/// The calls that a repeated turn may ask for again, and those whose end was not observed.
pub(super) fn json(run: &Run) -> Vec<Value> {
    let call = |(key, call): (&str, &KeyedCall)| {
        let mut value = json!({
            "key": key,
            "command": call.command,
            "class": call.class,
            "status": status(call),
            "turn": call.turn,
            "attempt": call.attempt,
        });
        match call.end.map(|end| end.exit) {
            Some(Exit::Code(code)) => value["exit_code"] = code.into(),
            Some(Exit::Signal(signal)) => value["signal"] = signal.into(),
            None => {}
        }
        value
    };
    run.keyed.iter().map(call).collect()
}

fn status(call: &KeyedCall) -> &'static str {
    match call.end.map(|end| end.exit) {
        Some(Exit::Code(0)) => "ok",
        Some(_) => "failed",
        // The request is made before the attempt makes calls of its own.
        None => "unknown",
    }
}

/// The same in words; nothing if there are no calls.
pub(super) fn told(run: &Run) -> Option<String> {
    let named = |is_wanted: fn(&KeyedCall) -> bool| {
        let mut found = run.keyed.iter().filter(|(_, call)| is_wanted(call));
        let named: Vec<String> = found
            .by_ref()
            .take(MOST_NAMED)
            .map(|(key, call)| format!("{key} (`{}`: {})", call.command, status(call)))
            .collect();
        match found.count() {
            0 => named.join(", "),
            more => format!("{} and {more} more", named.join(", ")),
        }
    };
    let known = named(|call| call.end.is_some());
    let unknown = named(|call| call.end.is_none());
    let mut text = String::new();
    if !known.is_empty() {
        text.push_str(&format!(
            " Calls with known results, which are answered from the journal under the same key; do \
             not make them in another way: {known}."
        ));
    }
    if !unknown.is_empty() {
        text.push_str(&format!(
            " Calls of unknown outcome; look whether their effect is there before you repeat them: \
             {unknown}."
        ));
    }
    Some(text).filter(|text| !text.is_empty())
}

fn is_for_agents(note: &&AgentNote) -> bool {
    match note.kind {
        Noted::Note | Noted::Checkpoint => true,
        Noted::ToolsListed => false,
    }
}

/// What attempts before have noted.
pub(super) fn notes(run: &Run) -> Vec<Value> {
    let note = |note: &AgentNote| {
        json!({
            "turn": note.turn,
            "attempt": note.attempt,
            "kind": note.kind,
            "text": note.text,
        })
    };
    run.notes.iter().filter(is_for_agents).map(note).collect()
}

/// The same in words; nothing if there are none.
pub(super) fn noted(run: &Run) -> Option<String> {
    let told: String = run
        .notes
        .iter()
        .filter(is_for_agents)
        .map(|note| {
            format!(" Noted in turn {}, attempt {}: {}", note.turn, note.attempt, note.text.trim())
        })
        .collect();
    Some(told).filter(|told| !told.is_empty())
}
